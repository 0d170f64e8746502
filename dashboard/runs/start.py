"""Starting and cancelling runs: run, job and the money held back for it are written together or not at all."""

from dataclasses import dataclass
from datetime import datetime

from django.db import IntegrityError, transaction

from dashboard import access
from dashboard.access import Actor
from dashboard.jobs.control import cancel_job
from dashboard.jobs.post import URGENT, post_job
from dashboard.models import AgentSession, CompactionRun, RunState, User
from dashboard.runs.change_notes import tell_pages
from dashboard.runs.choices import AUTOMATIC, MESSAGES, RunChoices, RunRefused
from dashboard.runs.endings import close_run, close_stranded, list_stranded
from dashboard.runs.preview import Preview, preview_run
from dashboard.runs.spend import reserve
from dashboard.runs.team_settings import find_settings

JOB_KIND = "compact"
FROM_THE_TERMINAL = "terminal"


@dataclass(frozen=True)
class Starter:
    """Who or what started a run, and by which way: page, api, cli, auto, messages."""

    user: User | None
    name: str
    source: str


def start_run(
    actor: Actor,
    session: AgentSession,
    choices: RunChoices,
    *,
    source: str,
    now: datetime,
    again_of: CompactionRun | None = None,
) -> CompactionRun:
    """The run, waiting for a worker. Raises RunRefused with what is in the way; too low a role is PermissionDenied."""
    access.require_run(actor, session)
    return _start(session, choices, _name_starter(actor, source), now=now, again_of=again_of)


def start_previewed_run(actor: Actor, session: AgentSession, preview: Preview, *, now: datetime) -> CompactionRun:
    """The same for messages that were looked at before they were stored: size and line are those of `preview`."""
    access.require_run(actor, session)
    refuse_second(session)
    return _write_run(session, preview, _name_starter(actor, MESSAGES), now=now)


def _name_starter(actor: Actor, source: str) -> Starter:
    return Starter(actor.user, actor.user.username if actor.user else FROM_THE_TERMINAL, source)


def start_automatic_run(session: AgentSession, choices: RunChoices, *, now: datetime) -> CompactionRun:
    """As the team's admin has decided for all of its sessions: nobody's rights are asked. Raises RunRefused."""
    return _start(session, choices, Starter(None, "automatic mode", AUTOMATIC), now=now)


def _start(
    session: AgentSession,
    choices: RunChoices,
    starter: Starter,
    *,
    now: datetime,
    again_of: CompactionRun | None = None,
) -> CompactionRun:
    close_stranded(list_stranded().filter(session=session), now=now)
    refuse_second(session, choices.agent_id)
    return _write_run(session, preview_run(session, choices, now=now), starter, now=now, again_of=again_of)


def _write_run(
    session: AgentSession,
    preview: Preview,
    starter: Starter,
    *,
    now: datetime,
    again_of: CompactionRun | None = None,
) -> CompactionRun:
    preview.raise_refusal()
    cap_usd = find_settings(session.team).daily_cap_usd
    try:
        with transaction.atomic():
            run = _draft_run(session, preview, starter, now=now)
            run.again_of = again_of
            run.save()
            reserve(session.team, preview.reserved_usd, cap_usd, now=now)
            job = post_job(
                JOB_KIND, key=f"compact run {run.pk}", team=session.team, payload={"run": run.pk}, priority=URGENT
            )
            CompactionRun.objects.filter(pk=run.pk).update(job=job)
            tell_pages(run.pk)
    except IntegrityError:
        refuse_second(session, preview.choices.agent_id)  # somebody was quicker
        raise
    run.job = job
    return run


def refuse_second(session: AgentSession, agent_id: str = "") -> None:
    """Raises RunRefused while a run of the thread is open."""
    open_states = [state for state in RunState if state.is_open]
    other = CompactionRun.objects.filter(session=session, agent_id=agent_id, state__in=open_states).first()
    if other is None:
        return
    by = f", started by {other.started_by_name}" if other.started_by_name else ""
    raise RunRefused(
        "run_open",
        f"This conversation is being compacted already: run {other.pk}{by}. Wait for it to end, or cancel it.",
        run_id=other.pk,
    )


def _draft_run(session: AgentSession, preview: Preview, starter: Starter, *, now: datetime) -> CompactionRun:
    choices = preview.choices
    return CompactionRun(
        team=session.team,
        session=session,
        agent_id=choices.agent_id,
        kind=choices.kind,
        trigger=choices.trigger,
        summarizer=choices.summarizer,
        model=choices.model,
        pivot_uuid=choices.pivot_uuid,
        instructions=choices.instructions,
        started_by=starter.user,
        started_by_name=starter.name,
        source=starter.source,
        created_at=now,
        stage_at=now,
        session_version=session.version,
        before_tokens=preview.before_tokens,
        before_origin=preview.before_origin,
        prefix_tokens=preview.prefix_tokens,
        gap_count=preview.gap_count,
        found_tokens=preview.found_tokens,
        accepts_difference=choices.accept_difference,
        line_tokens=preview.line_tokens,
        fork_refusal=preview.fork_refusal[:300],
        reserved_usd=preview.reserved_usd,
    )


def cancel_run(actor: Actor, run: CompactionRun, *, now: datetime) -> bool:
    """A waiting run ends here, a running one within seconds. False when it had ended already."""
    access.require_run(actor, run.session)
    with transaction.atomic():
        # The job first, as everywhere: its row is the lock.
        if run.job is None or not cancel_job(run.job, now=now):
            close_stranded(list_stranded().filter(pk=run.pk), now=now)
            return False
        run.job.refresh_from_db()
        if run.job.finished_at is not None:
            close_run(run.pk, RunState.CANCELLED, now=now)
    return True
