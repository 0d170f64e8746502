"""The team a call is about: the one it names, or the only one there is."""

from dashboard import access
from dashboard.access import Act
from dashboard.api.request import ApiRequest, BadQuestion
from dashboard.models import Team


def find_team(request: ApiRequest, slug: str | None, *acts: Act) -> Team:
    """One in which the caller may do any of `acts`. Invented sessions are only meant where their team is named."""
    actor = request.auth
    if slug:
        act = next((act for act in acts if actor.may_anywhere(act)), acts[0])
        return access.require_team(actor, slug, act)
    teams = {team.pk: team for act in acts for team in access.teams(actor, act) if not team.is_demo}
    if len(teams) == 1:
        return next(iter(teams.values()))
    access.require_anywhere(actor, acts[-1])
    raise BadQuestion("team: required, because you are in several teams.")
