"""Redaction rules of a team and how often each of them left a mark in stored text. PUT /teams/{slug}/storage changes
patterns and switches rules."""

from datetime import date

from ninja import Field, Router, Schema

from dashboard import access
from dashboard.access import Act
from dashboard.api.request import ApiRequest
from dashboard.api.schemas import Problem
from dashboard.policies.in_force import find_policy
from dashboard.policies.redaction_rules import RuleKind, list_team_rules

router = Router(tags=["policy"])


class RedactionRuleOut(Schema):
    name: str = Field(description="As in the mark: `[redacted:github-token]`.")
    what: str = Field(description="What the rule finds.")
    kind: RuleKind = Field(description="A removed pattern is listed while stored text contains its marks.")
    is_on: bool
    is_always_on: bool = Field(description="It cannot be turned off.")
    problem: str = Field(description="Why a stored pattern cannot be used; otherwise empty.")
    mark_count: int = Field(description="Marks in currently stored text. Deleted text is not counted.")
    recent_mark_count: int = Field(description="Of them, in lines of the last 30 days.")
    last_day: date | None = Field(description="Day of the newest line with such a mark.")
    report_count: int = Field(description="Open reports of false redactions.")


class RedactionOut(Schema):
    version: int = Field(description="Policy version; 0 before the first change.")
    rules: list[RedactionRuleOut] = Field(description="Most frequent first.")


@router.get(
    "/teams/{slug}/redaction", summary="Get redaction rules", response={200: RedactionOut, 403: Problem, 404: Problem}
)
def read_redaction(request: ApiRequest, slug: str) -> dict[str, object]:
    """Redaction rules with the number of their marks in stored text: transcripts, system prompts, notes and edited
    summaries."""
    team = access.require_team(request.auth, slug, Act.SEE)
    settings = find_policy(team)
    counts, reports = access.redaction_counts(request.auth, slug), access.redaction_reports(request.auth, slug)
    return {"version": settings.version, "rules": list_team_rules(team, settings, counts, reports)}
