"""What Plimsoll does about a session right now: open runs, paused automatic ones, and what the person may do."""

from dataclasses import dataclass
from datetime import datetime

from dashboard import access
from dashboard.access import Act, Actor
from dashboard.models import (
    AgentSession,
    CompactionKind,
    CompactionRun,
    ObservedCompaction,
    RunState,
    ThreadBreaker,
)
from dashboard.pages.thread_names import name_by_id


@dataclass(frozen=True)
class OpenRun:
    id: int
    state: str
    stage: str
    thread: str


@dataclass(frozen=True)
class OpenBreaker:
    """Automatic runs of a thread that failed too often and wait for somebody."""

    agent_id: str
    thread: str
    failures: int
    opened_at: datetime | None
    last_failure_code: str


@dataclass(frozen=True)
class SessionRuns:
    """`run_count` and `failed_count`: what the compactions tab lists beside the client's full and micro ones.
    `compaction_note` says of what kinds and by whom the compactions are; empty where their number says it all."""

    may_run: bool
    may_reset: bool
    run_count: int
    failed_count: int
    compaction_note: str
    open_runs: tuple[OpenRun, ...]
    breakers: tuple[OpenBreaker, ...]


def look_at_runs(actor: Actor, session: AgentSession) -> SessionRuns:
    """Three queries, all by an index of the session."""
    runs = list(access.runs(actor).filter(session=session).order_by("id").only("state", "stage", "agent_id"))
    failed = ObservedCompaction.objects.filter(session=session, kind=CompactionKind.FAILED)
    paused = ThreadBreaker.objects.filter(session=session, opened_at__isnull=False).order_by("agent_id")
    failed_count = failed.count()
    return SessionRuns(
        may_run=access.may_run(actor, session),
        may_reset=actor.may(Act.TUNE, session.team),
        run_count=len(runs),
        failed_count=failed_count,
        compaction_note=_describe_compactions(session, failed_count, len(runs)),
        open_runs=tuple(_make_open(run) for run in runs if RunState(run.state).is_open),
        breakers=tuple(
            OpenBreaker(each.agent_id, name_by_id(each.agent_id), each.failures, each.opened_at, each.last_failure_code)
            for each in paused
        ),
    )


def _describe_compactions(session: AgentSession, failed_count: int, run_count: int) -> str:
    counts = {"mid-task": session.mid_task_count, "micro": session.micro_count, "failed": failed_count}
    kinds = [f"{count:,} {kind}" for kind, count in counts.items() if count]
    if run_count == 0:
        return ", ".join(kinds)
    return f"{', '.join(('by the client', *kinds))}; {run_count:,} by Plimsoll"


def _make_open(run: CompactionRun) -> OpenRun:
    return OpenRun(run.pk, run.state, run.stage, name_by_id(run.agent_id))
