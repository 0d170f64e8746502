"""The saved views of a list that a person sees: their own, and those their teams share."""

from dataclasses import dataclass

from dashboard import access
from dashboard.access import Actor
from dashboard.models import ListName, SavedView


@dataclass(frozen=True, slots=True)
class ViewLink:
    """`team` is empty for a view of one's own alone; `is_current` while the list shows exactly it."""

    id: int
    name: str
    query: str
    team: str
    owner: str
    is_own: bool
    may_remove: bool
    is_current: bool

    @property
    def told(self) -> str:
        """Whose it is, for a tooltip."""
        if not self.team:
            return "Only you can see this view."
        return f"{'You share' if self.is_own else f'{self.owner} shares'} this view with {self.team}."


def list_views(actor: Actor, list_name: ListName, *, query: str) -> list[ViewLink]:
    """One query."""
    return [_make_link(actor, view, query) for view in access.list_saved_views(actor, list_name)]


def _make_link(actor: Actor, view: SavedView, query: str) -> ViewLink:
    return ViewLink(
        id=view.pk,
        name=view.name,
        query=view.query,
        team=view.team.name if view.team else "",
        owner=view.owner.username,
        is_own=actor.user is not None and view.owner_id == actor.user.pk,
        may_remove=access.may_remove_view(actor, view),
        is_current=view.query == query,
    )
