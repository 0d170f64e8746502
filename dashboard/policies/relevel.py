"""After a change of policy: every stored session of the team is levelled anew, in the background.

A session that is done carries the policy's version, so a run that was killed goes on where it stopped.
"""

from dataclasses import fields
from functools import cache, partial
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from compaction.context.forecast import MEMORY_POINTS, NotEnoughData, Pace, measure_pace
from compaction.context.policy import Policy
from compaction.context.thresholds import Thresholds, compute_thresholds
from dashboard.jobs.run import JobFailed, JobRun
from dashboard.models import (
    AgentSession,
    ApiCall,
    CompactionKind,
    ObservedCompaction,
    SessionChange,
    Team,
    Thread,
)
from dashboard.models.api_call import OF_CONVERSATION
from dashboard.policies.in_force import find_policy
from dashboard.session_forecasts import (
    LEAST_CALLS,
    POINT_COLUMNS,
    SessionForecast,
    build_points,
    parse_pace,
    serialize_forecast,
)
from dashboard.session_levels import USE_COLUMNS, SessionLevel, describe_use, place_on_lines

BATCH = 250
_LEVEL = tuple(field.name for field in fields(SessionLevel))
_FIGURES = (*_LEVEL, *SessionForecast._fields)
_READ = ("pk", "context_tokens", "call_count", *USE_COLUMNS, *_FIGURES)
# One statement for many rows: the ORM's bulk_update builds an expression for every row and column, and would keep
# everybody else from writing for a second a batch.
_WRITE = (
    f"UPDATE dashboard_agentsession SET {', '.join(f'{name} = %s' for name in _FIGURES)}, "  # noqa: S608 (own columns)
    "version = version + 1 WHERE id = %s"
)


def relevel_sessions(run: JobRun) -> None:
    team, target = run.claim.job.team, run.payload.get("version")
    if team is None or not isinstance(target, int):
        raise JobFailed("The job does not say which team's policy changed.")
    done, changed = 0, 0
    total = _behind(team, target).count()
    while True:
        run.check()
        with run.writing():
            levelled = _relevel_batch(team, target)
        if levelled is None:
            break
        done, changed = done + levelled[0], changed + levelled[1]
        run.report(done=done, total=max(total, done))
    with run.finishing() as result:
        result.update(sessions=done, changed=changed)


def _behind(team: Team, target: int) -> QuerySet[AgentSession]:
    return AgentSession.objects.filter(team=team, policy_version__lt=target)


def _relevel_batch(team: Team, target: int) -> tuple[int, int] | None:
    """How many sessions were looked at and how many changed; None when none is left.

    The policy is read with every batch: one that changed meanwhile holds for the rest. Rows stay locked until they are
    written, so that a batch of calls recorded in between is not levelled with the tokens from before it.
    """
    settings = find_policy(team)
    behind = _behind(team, target).select_for_update().order_by("policy_version", "id")
    batch = list(behind.values_list(*_READ)[:BATCH])
    if not batch:
        return None
    draw = cache(partial(_draw, settings.lines_policy))
    changed = []
    for pk, context_tokens, call_count, *columns in batch:
        use, figures = columns[: len(USE_COLUMNS)], columns[len(USE_COLUMNS) :]
        level = place_on_lines(draw(*use), context_tokens)
        stored = SessionForecast(*figures[len(_LEVEL) :])
        pace = _find_pace(pk, stored.forecast, call_count)
        later = serialize_forecast(pace, level.auto_line_tokens, context_tokens)
        wanted = [getattr(level, name) for name in _LEVEL]
        if figures != [*wanted, *later]:
            changed.append((*wanted, *later._replace(forecast=_adapt_json(later.forecast)), pk))
    with connection.cursor() as cursor:
        cursor.executemany(_WRITE, changed)
    AgentSession.objects.filter(pk__in=[row[0] for row in batch]).update(policy_version=settings.version)
    SessionChange.objects.note(team.pk, [row[-1] for row in changed])
    return len(batch), len(changed)


def _find_pace(pk: int, forecast: dict[str, Any] | None, call_count: int) -> Pace | NotEnoughData:
    """Return the stored pace; that of sessions stored before there was one is read from their last calls."""
    if (pace := parse_pace(forecast)) is not None:
        return pace
    return _load_pace(pk) if call_count >= LEAST_CALLS else measure_pace(())


def _load_pace(session_id: int) -> Pace | NotEnoughData:
    """Return the pace of a session from its stored calls: three queries."""
    counts = Thread.objects.filter(session_id=session_id, call_count__gt=0).values_list("agent_id", "call_count")
    threads = dict(counts)
    # As find_shown_thread: the main conversation, else the longest sub-agent.
    agent_id = "" if "" in threads or not threads else max(sorted(threads), key=lambda name: threads[name])
    own = {"session_id": session_id, "agent_id": agent_id}
    calls = ApiCall.objects.filter(OF_CONVERSATION, **own).order_by("-number").values_list(*POINT_COLUMNS)
    full = ObservedCompaction.objects.filter(kind=CompactionKind.FULL, **own).order_by("call_number")
    ends = list(full.values_list("call_number", flat=True))
    return measure_pace(build_points(list(calls[:MEMORY_POINTS])[::-1], ends))


def _adapt_json(value: dict[str, Any] | None) -> Any:
    return None if value is None else connection.ops.adapt_json_value(value, None)


def _draw(policy: Policy, *use: Any) -> Thresholds | None:
    # How many responses there were moves no line.
    return compute_thresholds(policy, describe_use(*use))
