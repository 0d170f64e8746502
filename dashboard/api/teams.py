"""Teams the caller belongs to."""

from django.conf import settings
from django.core.exceptions import PermissionDenied
from ninja import Router, Status

from dashboard import access
from dashboard.access import Act
from dashboard.accounts.teams import create_team, rename_team
from dashboard.api.me import team_out
from dashboard.api.request import ApiRequest, acting_user
from dashboard.api.schemas import PERSON_ONLY, Problem, TeamIn, TeamOut

router = Router(tags=["teams"])


@router.get("/teams", summary="List teams", response=list[TeamOut])
def list_teams(request: ApiRequest) -> list[TeamOut]:
    visible = {team.slug for team in access.teams(request.auth)}
    return [team_out(standing) for slug, standing in request.auth.standings.items() if slug in visible]


@router.post("/teams", summary="Create team", response={201: TeamOut, 403: Problem}, openapi_extra=PERSON_ONLY)
def found_team(request: ApiRequest, body: TeamIn) -> Status[TeamOut]:
    """Owners can create more teams. Local installs have exactly one."""
    if not access.may_create_team(request.auth, local_mode=settings.LOCAL_MODE):
        raise PermissionDenied("Only team owners can create teams, and a local install has exactly one team.")
    user = acting_user(request)
    team = create_team(body.name, owner=user)
    return Status(201, team_out(access.person(user).standings[team.slug]))


@router.get("/teams/{slug}", summary="Get team", response={200: TeamOut, 404: Problem})
def read_team(request: ApiRequest, slug: str) -> TeamOut:
    access.require_team(request.auth, slug, Act.SEE)
    return team_out(request.auth.standings[slug])


@router.patch(
    "/teams/{slug}",
    summary="Rename team",
    response={200: TeamOut, 403: Problem, 404: Problem},
    openapi_extra=PERSON_ONLY,
)
def change_team(request: ApiRequest, slug: str, body: TeamIn) -> TeamOut:
    team = access.require_team(request.auth, slug, Act.MANAGE)
    rename_team(team, body.name, by=acting_user(request))
    return team_out(request.auth.standings[slug])
