"""After a change of policy: every stored session of the team is levelled anew, in the background.

A session that is done carries the policy's version, so a run that was killed goes on where it stopped.
"""

from dataclasses import asdict

from django.db.models import F, QuerySet

from compaction.context.windows import ModelInUse
from dashboard.jobs.run import JobFailed, JobRun
from dashboard.models import AgentSession, Team
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.session_levels import SessionLevel, work_out_level

BATCH = 500
_LEVEL_FIELDS = ("window_tokens", "auto_line_tokens", "level", "level_rank", "percent_left")
_READ_FIELDS = ("model", "client_version", "reported_window_tokens", "context_tokens", "version", *_LEVEL_FIELDS)


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
    batch = list(_behind(team, target).select_for_update().order_by("policy_version", "id").only(*_READ_FIELDS)[:BATCH])
    if not batch:
        return None
    changed = [session for session in batch if _apply_level(session, settings)]
    AgentSession.objects.bulk_update(changed, [*_LEVEL_FIELDS, "version"])
    AgentSession.objects.filter(pk__in=[session.pk for session in batch]).update(policy_version=settings.version)
    return len(batch), len(changed)


def _apply_level(session: AgentSession, settings: TeamSettings) -> bool:
    """Whether the level or a figure of it is another one now."""
    level = work_out_level(settings.lines_policy, _model_in_use(session), session.context_tokens)
    if SessionLevel(**{name: getattr(session, name) for name in _LEVEL_FIELDS}) == level:
        return False
    for name, value in asdict(level).items():
        setattr(session, name, value)
    session.version = F("version") + 1
    return True


def _model_in_use(session: AgentSession) -> ModelInUse:
    # Every way in takes transcripts of Claude Code; how many responses there were moves no line.
    return ModelInUse(
        model=session.model,
        client_version=session.client_version or None,
        reported_window_tokens=session.reported_window_tokens,
    )
