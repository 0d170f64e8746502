"""Views that people keep: saved under a name, shared with a team, removed."""

from django.db import transaction

from dashboard.accounts.refusals import Refused
from dashboard.models import ListName, SavedView, Team, User

MOST_VIEWS = 50  # of one list, of one person
LONGEST_NAME = SavedView._meta.get_field("name").max_length
LONGEST_QUERY = SavedView._meta.get_field("query").max_length


def save_view(owner: User, list_name: ListName, name: str, query: str, *, team: Team | None) -> SavedView:
    """A name that the person has used for this list before gets the new filters."""
    name = " ".join(name.split())
    if not name or not name.isprintable() or len(name) > (LONGEST_NAME or 0):
        raise Refused(f"Enter a name of at most {LONGEST_NAME} characters.")
    if len(query) > (LONGEST_QUERY or 0):
        raise Refused("These filters are too long to save.")
    own = SavedView.objects.filter(owner=owner, list_name=list_name)
    with transaction.atomic():
        if own.exclude(name=name).count() >= MOST_VIEWS:
            raise Refused(f"You have {MOST_VIEWS} saved views of this list. Remove one first.")
        view, _ = SavedView.objects.update_or_create(
            owner=owner, list_name=list_name, name=name, defaults={"query": query, "team": team}
        )
    return view
