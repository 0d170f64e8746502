"""Who am I, and what may I do."""

from ninja import Router

from dashboard.access import Standing
from dashboard.api.request import ApiRequest, acting_user
from dashboard.api.schemas import MeOut, TeamOut

router = Router(tags=["me"])


def team_out(standing: Standing) -> TeamOut:
    rights = sorted(act.value for act in standing.acts)
    return TeamOut(slug=standing.team.slug, name=standing.team.name, role=standing.role, rights=rights)


@router.get("/me", summary="Get current identity", response=MeOut)
def read_me(request: ApiRequest) -> MeOut:
    """The user or API key behind this request, with its teams and rights."""
    actor = request.auth
    teams = [team_out(standing) for standing in actor.standings.values()]
    return MeOut(name=acting_user(request).username, key=actor.key.prefix if actor.key else None, teams=teams)
