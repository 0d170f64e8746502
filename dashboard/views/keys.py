"""A team's API keys: made, shown once, limited, revoked."""

from http import HTTPStatus

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import access
from dashboard.access import Act
from dashboard.accounts import keys as accounts
from dashboard.accounts.refusals import Refused
from dashboard.models import ApiKey, Team, User
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.forms import KeyForm, KeyLimitsForm
from dashboard.pages.key_use import list_key_use
from dashboard.views.team_page import signed_in, team_rights


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def keys(request: PageRequest, slug: str) -> HttpResponse:
    """A new key is shown in the answer itself: it is stored nowhere, so there is nothing to redirect to."""
    team = access.require_team(request.actor, slug, Act.KEEP_KEYS)
    remember_team(request, team)
    scopes = access.scopes_to_give(request.actor, team)
    may_collect = request.actor.may(Act.MANAGE, team)
    form = KeyForm(request.POST or None, scopes=scopes, may_collect=may_collect)
    made = None
    if request.method == "POST" and form.is_valid():
        try:
            made = _make_key(team, form, by=signed_in(request))
            form = KeyForm(scopes=scopes, may_collect=may_collect)
        except Refused as refusal:
            form.add_error(None, str(refusal))
    context = {
        "team": team,
        "form": form,
        "made": {"key": made[0], "text": made[1]} if made else None,
        "uses": list(list_key_use(access.keys(request.actor, slug), now=timezone.now())),
        "now": timezone.now(),
        **team_rights(request, team),
    }
    return render(
        request, "keys/page.html", context, status=HTTPStatus.UNPROCESSABLE_ENTITY if form.is_bound else HTTPStatus.OK
    )


def _make_key(team: Team, form: KeyForm, *, by: User) -> tuple[ApiKey, str]:
    valid_for, told = form.valid_for(), form.cleaned_data
    expires_at = timezone.now() + valid_for if valid_for else None
    return accounts.create_key(
        team,
        by,
        name=told["name"],
        scopes=told["scopes"],
        expires_at=expires_at,
        is_collector=told.get("is_collector", False),
        by=by,
    )


@require_POST
def revoke_key(request: PageRequest, slug: str, key_id: int) -> HttpResponse:
    key = get_object_or_404(access.keys(request.actor, slug), pk=key_id)
    accounts.revoke_key(key, by=signed_in(request), now=timezone.now())
    messages.success(request, f"Key {key.name} revoked.")
    return redirect("keys", slug)


@require_POST
def limit_key(request: PageRequest, slug: str, key_id: int) -> HttpResponse:
    """What a key may send is an admin's to say, also of the admin's own keys."""
    access.require_team(request.actor, slug, Act.MANAGE)
    key = get_object_or_404(access.keys(request.actor, slug), pk=key_id)
    form = KeyLimitsForm(request.POST)
    if form.is_valid():
        accounts.limit_key(key, **form.cleaned_data, by=signed_in(request))
        messages.success(request, f"Limits of {key.name} saved. They apply from its next request.")
    else:
        messages.error(request, "Enter a whole number: 0 for unlimited, empty for the default limit.")
    return redirect("keys", slug)


@require_POST
def mark_key(request: PageRequest, slug: str, key_id: int) -> HttpResponse:
    """Whether a key sends for many people is an admin's decision, also about the admin's own keys."""
    access.require_team(request.actor, slug, Act.MANAGE)
    key = get_object_or_404(access.keys(request.actor, slug), pk=key_id)
    is_collector = request.POST.get("is_collector") == "yes"
    try:
        accounts.mark_collector(key, is_collector=is_collector, by=signed_in(request))
    except Refused as refusal:
        messages.error(request, str(refusal))
    else:
        owner = "no owner" if is_collector else f"the owner {key.owner}"
        messages.success(request, f"New sessions sent with {key.name} have {owner}.")
    return redirect("keys", slug)
