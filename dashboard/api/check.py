"""Context level of an agent: threshold reached, tokens left, action to take."""

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone
from ninja import Field, Router, Schema
from pydantic import ConfigDict

from compaction.compactors.advice import AdvisedAction
from dashboard import access
from dashboard.access import Act, Actor
from dashboard.agents.checks import Check, OwnLines, check_question, check_session
from dashboard.api.agent_schemas import AgentIn, Model, Tokens
from dashboard.api.answers import answer_json
from dashboard.api.bodies import BODY_PROBLEMS
from dashboard.api.named_team import find_team
from dashboard.api.request import ApiRequest, BadQuestion
from dashboard.api.run_schemas import Line
from dashboard.api.schemas import Problem
from dashboard.models import AgentSession

router = Router(tags=["agents"])
# What goes with `session`: its size, model and words are those that are stored.
BESIDE_SESSION = frozenset({"session", "team", "policy", "window_tokens", "max_output_tokens"})


class CheckIn(AgentIn):
    """A stored session (`session`), or an agent's own data: `model` and one of `usage`, `messages` and `used_tokens`.
    `policy` and `window_tokens` work with both."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "claude-sonnet-5-5",
                    "usage": {"input_tokens": 12, "cache_read_input_tokens": 961_000, "output_tokens": 900},
                },
                {"session": "6f0c3a52-6d0b-4a57-9f0e-2a3f0c7c8a11"},
            ]
        }
    )

    session: Line | None = Field(None, description="The session's id, or its number in Plimsoll.")
    model: Model | None = Field(None, examples=["claude-sonnet-5-5"])
    used_tokens: Tokens | None = Field(None, description="The size of the context, if you know it.")


class FlagsOut(Schema):
    is_above_warning: bool
    is_above_error: bool
    is_above_auto: bool
    is_at_blocking: bool


class CheckLinesOut(Schema):
    window: int
    available: int
    warning: int
    error: int
    auto: int = Field(description="Applies only while automatic compaction is on.")
    blocking: int
    is_auto_on: bool


class CheckOut(Schema):
    """`action`: none, warn, micro (clear old tool results), session-memory, full (compact), block (do not call)."""

    model: str
    used_tokens: int
    used_origin: str = Field(description="measured: from `usage` only; estimated: partly counted by characters.")
    level: str
    percent_left: int | None = Field(description="Null if the model's window is unknown.")
    flags: FlagsOut
    lines: CheckLinesOut | None
    action: AdvisedAction
    offered: AdvisedAction | None = Field(description="How to resolve a block.")
    sentence: str
    policy_version: int


@router.post(
    "/check",
    summary="Check context level",
    response={200: CheckOut, 403: Problem, 404: Problem, 422: Problem, **BODY_PROBLEMS},
)
def check_agent(request: ApiRequest, body: CheckIn) -> HttpResponse:
    """Call this between model calls: it reads a few rows and stores nothing. Body: at most 32 MiB, plain or gzip."""
    now = timezone.now()
    if body.session:
        session = find_session(request.auth, body.session, team=body.team)
        return answer_json(describe_check(check_session(session, _read_own_lines(body), now=now)))
    if body.model is None or (body.usage is None and body.used_tokens is None and not body.messages):
        raise BadQuestion("Send `session`, or `model` with `usage`, `messages` or `used_tokens`.")
    team = find_team(request, body.team, Act.SEE, Act.RUN_OWN)  # a key that may only compact asks before it does
    question = body.to_question(body.model, used_tokens=body.used_tokens)
    return answer_json(describe_check(check_question(team, question, now=now)))


def describe_check(check: Check) -> dict[str, object]:
    reading, lines, advice = check.reading, check.lines, check.advice
    return {
        "model": check.model,
        "used_tokens": reading.used_tokens,
        "used_origin": check.used_origin,
        "level": reading.level.value,
        "percent_left": reading.percent_left,
        "flags": {name: getattr(reading, name) for name in FlagsOut.model_fields},
        "lines": lines
        and {
            **{name: getattr(lines, name).tokens for name in CheckLinesOut.model_fields if name != "is_auto_on"},
            "is_auto_on": lines.is_auto_on,
        },
        "action": advice.action,
        "offered": advice.offered,
        "sentence": advice.sentence,
        "policy_version": check.policy_version,
    }


def _read_own_lines(body: CheckIn) -> OwnLines:
    unused = sorted(body.model_fields_set - BESIDE_SESSION)
    if unused:
        raise BadQuestion(f"With `session`, its stored values are used. Remove `{'`, `'.join(unused)}`.")
    return OwnLines(policy=body.policy, window_tokens=body.window_tokens, max_output_tokens=body.max_output_tokens)


def find_session(actor: Actor, named: str, *, team: str | None = None) -> AgentSession:
    """By its own id or its number here, in one team where that is named. Raises BadQuestion where several are meant."""
    act = Act.SEE if actor.may_anywhere(Act.SEE) else Act.RUN_OWN
    access.require_anywhere(actor, act)
    sessions = access.sessions(actor, act).select_related("team")
    if team:
        sessions = sessions.filter(team__slug=team)
    found = list(sessions.filter(external_id=named)[:2])
    if len(found) > 1:
        raise BadQuestion(
            "session: several of your teams have a session with this id. Specify `team`, or use its number."
        )
    if found:
        return found[0]
    return get_object_or_404(sessions.filter(pk=int(named)) if named.isdecimal() else sessions.none())
