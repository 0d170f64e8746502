"""Inviting people into a team, and what an invited person sees."""

from http import HTTPStatus

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from dashboard import access
from dashboard.access import Act
from dashboard.accounts import invitations as accounts
from dashboard.accounts.refusals import Refused
from dashboard.models import Invitation, Role
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.forms import InvitationForm, NewAccountForm
from dashboard.views.sign_in import BACKEND
from dashboard.views.team_page import signed_in, team_rights

NEWEST = 50


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitations(request: PageRequest, slug: str) -> HttpResponse:
    """A new link is shown in the answer itself: it is stored nowhere, so there is nothing to redirect to."""
    team = access.require_team(request.actor, slug, Act.MANAGE)
    roles = access.roles_to_give(request.actor, team)
    form = InvitationForm(request.POST or None, roles=roles, initial={"role": Role.MEMBER.value})
    link = ""
    if request.method == "POST" and form.is_valid():
        role, note = Role(form.cleaned_data["role"]), form.cleaned_data["note"]
        _, link = accounts.invite(team, role, note=note, by=signed_in(request), now=timezone.now())
        form = InvitationForm(roles=roles, initial={"role": role.value})
    context = {
        "team": team,
        "form": form,
        "link": link,
        "valid_days": accounts.VALID_FOR.days,
        "invitations": access.invitations(request.actor, slug)[:NEWEST],
        "now": timezone.now(),
        **team_rights(request, team),
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form.is_bound and not link else HTTPStatus.OK
    return render(request, "invitations/page.html", context, status=status)


@require_POST
def revoke_invitation(request: PageRequest, slug: str, invitation_id: int) -> HttpResponse:
    invitation = get_object_or_404(access.invitations(request.actor, slug), pk=invitation_id)
    try:
        accounts.revoke(invitation, by=signed_in(request), now=timezone.now())
        messages.success(request, "Invitation revoked.")
    except Refused as refusal:
        messages.error(request, str(refusal))
    return redirect("invitations", slug)


@login_not_required
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: PageRequest, token: str) -> HttpResponse:
    """The link's holder joins: as the person signed in, or with a new account."""
    found = accounts.find_open(token, now=timezone.now())
    if found is None:
        return render(request, "invitations/spent.html", status=HTTPStatus.GONE)
    if not access.can_be_accepted(found):
        accounts.revoke_without_maker(found, now=timezone.now())
        return render(request, "invitations/without_maker.html", {"invitation": found}, status=HTTPStatus.GONE)
    if request.actor.user is not None:
        return _join(request, found)
    form = NewAccountForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            with transaction.atomic():
                user = form.save()
                accounts.accept(found, user, now=timezone.now())
        except Refused:
            return render(request, "invitations/spent.html", status=HTTPStatus.GONE)
        login(request, user, backend=BACKEND)
        return _welcome(request, found)
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form.is_bound else HTTPStatus.OK
    return render(request, "invitations/accept.html", {"invitation": found, "form": form}, status=status)


def _join(request: PageRequest, found: Invitation) -> HttpResponse:
    if request.method != "POST":
        return render(request, "invitations/accept.html", {"invitation": found, "form": None})
    try:
        accounts.accept(found, signed_in(request), now=timezone.now())
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect("overview")
    return _welcome(request, found)


def _welcome(request: PageRequest, found: Invitation) -> HttpResponse:
    remember_team(request, found.team)
    messages.success(request, f"You joined {found.team} as {Role(found.role).with_article}.")
    return redirect("overview")
