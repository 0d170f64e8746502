"""The people of a team."""

from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from ninja import Router, Status

from dashboard import access
from dashboard.access import Act
from dashboard.accounts import members
from dashboard.api.request import ApiRequest, acting_user
from dashboard.api.schemas import PERSON_ONLY, MemberChange, MemberOut, Problem
from dashboard.models import Membership

router = Router(tags=["members"])


@router.get("/teams/{slug}/members", summary="List members", response={200: list[MemberOut], 404: Problem})
def list_members(request: ApiRequest, slug: str) -> QuerySet[Membership]:
    return access.members(request.auth, slug)


@router.patch(
    "/teams/{slug}/members/{int:member_id}",
    summary="Update member",
    response={200: MemberOut, 403: Problem, 404: Problem, 409: Problem},
    openapi_extra=PERSON_ONLY,
)
@transaction.atomic
def change_member(request: ApiRequest, slug: str, member_id: int, body: MemberChange) -> Membership:
    """Owners can change roles and content grants. If the role is rejected, the grant is unchanged too. A lower role
    revokes the person's open invitations."""
    membership = get_object_or_404(access.members(request.auth, slug, Act.GOVERN), pk=member_id)
    if body.role is not None:
        members.change_role(membership, body.role, by=acting_user(request))
    if body.content_grant is not None:
        members.set_content_grant(membership, granted=body.content_grant, by=acting_user(request))
    return access.members(request.auth, slug).get(pk=member_id)


@router.delete(
    "/teams/{slug}/members/{int:member_id}",
    summary="Remove member",
    response={204: None, 403: Problem, 404: Problem, 409: Problem},
    openapi_extra=PERSON_ONLY,
)
def remove_member(request: ApiRequest, slug: str, member_id: int) -> Status[None]:
    """Also revokes the person's API keys and open invitations in this team."""
    membership = get_object_or_404(access.members(request.auth, slug), pk=member_id)
    if not access.may_remove(request.auth, membership):
        raise PermissionDenied("Owners can remove anyone; admins can remove members and viewers.")
    members.remove_member(membership, by=acting_user(request))
    return Status(204, None)
