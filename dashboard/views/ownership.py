"""Pages on which admins assign sessions to accounts: one session, or all of a developer."""

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard import access
from dashboard.access import Act
from dashboard.accounts import ownership
from dashboard.accounts.refusals import Refused
from dashboard.models import User
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.views.team_page import signed_in, team_rights

NOT_ASSIGNABLE = "You cannot assign sessions to this account."


class DeveloperForm(forms.Form):
    developer = forms.CharField(max_length=150, strip=False)


class AccountForm(DeveloperForm):
    account = forms.IntegerField(min_value=1, max_value=2**63 - 1)


class OwnerForm(forms.Form):
    """Empty: no owner."""

    account = forms.IntegerField(min_value=1, max_value=2**63 - 1, required=False)


@require_safe
def developers(request: PageRequest, slug: str) -> HttpResponse:
    team = access.require_team(request.actor, slug, Act.MANAGE)
    remember_team(request, team)
    context = {
        "team": team,
        "developers": ownership.list_developers(team),
        "people": list(access.people_to_assign(request.actor, team)),
        **team_rights(request, team),
    }
    return render(request, "team/developers.html", context)


@require_POST
def assign_developer(request: PageRequest, slug: str) -> HttpResponse:
    team = access.require_team(request.actor, slug, Act.MANAGE)
    form = AccountForm(request.POST)
    owner = _find_person(access.people_to_assign(request.actor, team), form)
    if owner is None:
        messages.error(request, NOT_ASSIGNABLE)
    else:
        developer = form.cleaned_data["developer"]
        count = ownership.assign_developer(team, developer, owner, by=signed_in(request))
        sessions = "1 session" if count == 1 else f"{count:,} sessions"
        messages.success(request, f"{developer} assigned to {owner}: {sessions} so far, and all new ones.")
    return redirect("developers", slug)


@require_POST
def unassign_developer(request: PageRequest, slug: str) -> HttpResponse:
    team = access.require_team(request.actor, slug, Act.MANAGE)
    form = DeveloperForm(request.POST)
    if form.is_valid():
        ownership.unassign_developer(team, form.cleaned_data["developer"], by=signed_in(request))
        messages.success(request, "Assignment removed. New sessions from this developer have no owner.")
    return redirect("developers", slug)


@require_POST
def assign_owner(request: PageRequest, session_id: int) -> HttpResponse:
    session = get_object_or_404(access.sessions(request.actor).select_related("team", "owner"), pk=session_id)
    access.require_team(request.actor, session.team.slug, Act.MANAGE)
    people, form = access.owners_to_assign(request.actor, session), OwnerForm(request.POST)
    may_move = request.actor.may(Act.GOVERN, session.team)
    owner = _find_person(people, form)
    if session.owner_id is not None and not may_move:
        raise PermissionDenied(ownership.NOT_MOVABLE)
    if owner is None and (not form.is_valid() or form.cleaned_data["account"]):
        messages.error(request, NOT_ASSIGNABLE)
    else:
        try:
            ownership.assign_session(session, owner, by=signed_in(request), may_move=may_move)
        except Refused as refusal:
            raise PermissionDenied(str(refusal)) from refusal
        messages.success(request, f"Session assigned to {owner}." if owner else "Owner removed.")
    return redirect(reverse("session_tab", args=[session.pk, "settings"]))


def _find_person(people: QuerySet[User], form: forms.Form) -> User | None:
    return people.filter(pk=form.cleaned_data["account"]).first() if form.is_valid() else None
