"""After a change of policy: every stored session of the team is levelled anew, in the background.

A session that is done carries the policy's version, so a run that was killed goes on where it stopped.
"""

from dataclasses import fields
from functools import cache, partial
from typing import Any

from django.db import connection
from django.db.models import QuerySet

from compaction.context.policy import Policy
from compaction.context.thresholds import Lines, draw_lines
from dashboard.jobs.run import JobFailed, JobRun
from dashboard.models import AgentSession, SessionChange, Team
from dashboard.policies.in_force import find_policy
from dashboard.session_levels import USE_COLUMNS, SessionLevel, describe_use, place_on_lines

BATCH = 250
_LEVEL = tuple(field.name for field in fields(SessionLevel))
_READ = ("pk", "context_tokens", *USE_COLUMNS, *_LEVEL)
# One statement for many rows: the ORM's bulk_update builds an expression for every row and column, and would keep
# everybody else from writing for a second a batch. A forecast to a line that moved is none; the next call makes one.
_WRITE = (
    f"UPDATE dashboard_agentsession SET {', '.join(f'{name} = %s' for name in _LEVEL)}, "  # noqa: S608 (own columns)
    "forecast = CASE WHEN auto_line_tokens = %s THEN forecast END, version = version + 1 WHERE id = %s"
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
    for pk, context_tokens, *columns in batch:
        use, figures = columns[: len(USE_COLUMNS)], columns[len(USE_COLUMNS) :]
        level = place_on_lines(draw(*use), context_tokens)
        wanted = [getattr(level, name) for name in _LEVEL]
        if figures != wanted:
            changed.append((*wanted, level.auto_line_tokens, pk))
    with connection.cursor() as cursor:
        cursor.executemany(_WRITE, changed)
    AgentSession.objects.filter(pk__in=[row[0] for row in batch]).update(policy_version=settings.version)
    SessionChange.objects.note(team.pk, [row[-1] for row in changed])
    return len(batch), len(changed)


def _draw(policy: Policy, *use: Any) -> Lines | None:
    # How many responses there were moves no line.
    return draw_lines(policy, describe_use(*use))
