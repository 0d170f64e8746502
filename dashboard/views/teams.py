"""A team's members and their roles."""

from http import HTTPStatus

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard import access
from dashboard.access import Act
from dashboard.accounts import members
from dashboard.accounts.refusals import Refused
from dashboard.accounts.teams import create_team, rename_team
from dashboard.models import Membership, Role
from dashboard.page_context import remember_team
from dashboard.page_request import PageRequest
from dashboard.pages.forms import RoleForm, TeamForm
from dashboard.views.team_page import signed_in, team_rights


@require_safe
def team(request: PageRequest, slug: str) -> HttpResponse:
    found = access.require_team(request.actor, slug, Act.SEE)
    remember_team(request, found)
    rows = [_row(request, membership) for membership in access.members(request.actor, slug)]
    return render(request, "team/page.html", {"team": found, "rows": rows, **team_rights(request, found)})


@require_http_methods(["GET", "HEAD", "POST"])
def new_team(request: PageRequest) -> HttpResponse:
    if not access.may_create_team(request.actor, local_mode=settings.LOCAL_MODE):
        raise PermissionDenied("Only team owners can create teams. Local installs have exactly one.")
    form = TeamForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        made = create_team(form.cleaned_data["name"], owner=signed_in(request))
        messages.success(request, f"Team {made.name} created.")
        return redirect("team", made.slug)
    return render(request, "team/new.html", {"form": form}, status=_status(form))


@require_http_methods(["GET", "HEAD", "POST"])
def team_settings(request: PageRequest, slug: str) -> HttpResponse:
    found = access.require_team(request.actor, slug, Act.MANAGE)
    form = TeamForm(request.POST or None, initial={"name": found.name})
    if request.method == "POST" and form.is_valid():
        rename_team(found, form.cleaned_data["name"], by=signed_in(request))
        messages.success(request, f"Team renamed to {found.name}.")
        return redirect("team_settings", slug)
    context = {"team": found, "form": form, **team_rights(request, found)}
    return render(request, "team/settings.html", context, status=_status(form))


@require_POST
def change_role(request: PageRequest, slug: str, member_id: int) -> HttpResponse:
    membership = get_object_or_404(access.members(request.actor, slug, Act.GOVERN), pk=member_id)
    form = RoleForm(request.POST, roles=access.roles_to_give(request.actor, membership.team))
    if not form.is_valid():
        messages.error(request, "Unknown role.")
        return _after_change(request, slug, membership)
    try:
        members.change_role(membership, Role(form.cleaned_data["role"]), by=signed_in(request))
        messages.success(request, f"{membership.user} is now {Role(form.cleaned_data['role']).with_article}.")
    except Refused as refusal:
        messages.error(request, str(refusal))
    return _after_change(request, slug, membership)


@require_POST
def change_content_grant(request: PageRequest, slug: str, member_id: int) -> HttpResponse:
    membership = get_object_or_404(access.members(request.actor, slug, Act.GOVERN), pk=member_id)
    granted = request.POST.get("granted") == "yes"
    members.set_content_grant(membership, granted=granted, by=signed_in(request))
    words = "can now read the content of the team's sessions" if granted else "now sees metrics only"
    messages.success(request, f"{membership.user} {words}.")
    return _after_change(request, slug, membership)


@require_POST
def remove_member(request: PageRequest, slug: str, member_id: int) -> HttpResponse:
    membership = get_object_or_404(access.members(request.actor, slug), pk=member_id)
    if not access.may_remove(request.actor, membership):
        raise PermissionDenied("Owners can remove anyone; admins can remove members and viewers.")
    try:
        members.remove_member(membership, by=signed_in(request))
    except Refused as refusal:
        messages.error(request, str(refusal))
        return redirect("team", slug)
    if membership.user_id == request.user.pk:
        messages.info(request, f"You left {membership.team}.")
        return redirect("overview")
    messages.success(
        request,
        f"{membership.user} removed from {membership.team}. Their API keys and open invitations are revoked.",
    )
    return redirect("team", slug)


def _row(request: PageRequest, membership: Membership) -> dict[str, object]:
    return {
        "membership": membership,
        "is_self": membership.user_id == request.user.pk,
        "may_remove": access.may_remove(request.actor, membership),
        "roles": access.roles_to_give(request.actor, membership.team),
    }


def _after_change(request: PageRequest, slug: str, membership: Membership) -> HttpResponse:
    """The changed row for htmx, the whole page for everybody else."""
    if not request.htmx:
        return redirect("team", slug)
    fresh = access.members(request.actor, slug).get(pk=membership.pk)
    context = {"team": fresh.team, "row": _row(request, fresh), **team_rights(request, fresh.team)}
    return render(request, "team/_member.html", context)


def _status(form: TeamForm) -> HTTPStatus:
    return HTTPStatus.UNPROCESSABLE_ENTITY if form.errors else HTTPStatus.OK
