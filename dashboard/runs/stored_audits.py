"""The recurring job that audits stored compactions again by the rules of today, after an upgrade that changed them."""

import json

from django.db.models import Q

from dashboard.ingest.audit_rows import AUDIT_VERSION, AuditReport, audit_compaction, serialize_report
from dashboard.ingest.segments import expand
from dashboard.jobs.post import BACKGROUND, post_job
from dashboard.jobs.run import JobRun
from dashboard.models import AgentSession, CompactionKind, CompactionRun, ObservedCompaction, RunRevision, RunState
from dashboard.runs.basis import read_basis
from dashboard.runs.change_notes import tell_pages
from dashboard.runs.choices import RunRefused
from dashboard.runs.outcome_rows import pack_details
from dashboard.runs.outcomes import read_outcome

_OUTDATED = Q(audit_version=None) | Q(audit_version__lt=AUDIT_VERSION)
# Where content was removed the lines are no longer whole: the audit that was made of them stays.
_WHOLE = Q(session__has_content=True, session__content_removed_at=None)


def audit_again(job: JobRun) -> None:
    """Repeatable: what was audited by the rules of today is left alone."""
    sessions = _post_outdated()
    outdated = CompactionRun.objects.filter(_OUTDATED, _WHOLE, state=RunState.DONE, content_removed_at=None)
    outdated = outdated.exclude(details=None).select_related("session")
    done = 0
    for pk in list(outdated.order_by("-pk").values_list("pk", flat=True)):
        job.check()
        run = outdated.filter(pk=pk).first()  # None: deleted, or its content was removed meanwhile
        if run is not None:
            _audit_run(job, run)
            done += 1
            job.report(done=done)
    with job.finishing() as result:
        result.update(sessions=sessions, runs=done)


def _post_outdated() -> int:
    """Post a job for each session with compactions by the client that earlier rules audited."""
    outdated = ObservedCompaction.objects.filter(
        _OUTDATED, _WHOLE, kind=CompactionKind.FULL, summary_tokens__isnull=False, audited_at__isnull=False
    )
    sessions = AgentSession.objects.filter(pk__in=outdated.values("session")).select_related("team")
    for session in sessions:
        post_job(
            "audit_compactions",
            key=f"audit compactions of session {session.pk} by rules {AUDIT_VERSION}",
            team=session.team,
            payload={"session": session.pk},
            priority=BACKGROUND,
        )
    return len(sessions)


def _audit_run(job: JobRun, run: CompactionRun) -> None:
    try:
        reports = _audit_results(run)
    except RunRefused:  # not enough of the conversation is stored: the audit stays as it is
        reports = {}
    with job.writing():
        for revision, report in reports.items():
            if revision is None:
                _replace_details(run, report)
            else:
                RunRevision.objects.filter(pk=revision).update(
                    retained_percent=report.retained, audit=serialize_report(report)
                )
        CompactionRun.objects.filter(pk=run.pk).update(audit_version=AUDIT_VERSION)
        tell_pages(run.pk)


def _audit_results(run: CompactionRun) -> dict[int | None, AuditReport]:
    """Return a report for each revision by its key, or for the result of a micro-compaction under None."""
    before = read_basis(run.session, run.agent_id, up_to_uuid=run.last_entry_uuid).context.entries
    numbers = dict(run.revisions.values_list("pk", "number"))
    if numbers:
        return {pk: audit_compaction(before, read_outcome(run, number).entries) for pk, number in numbers.items()}
    stored = read_outcome(run)
    return {None: audit_compaction(before, [entry for entry in stored.entries if entry is not stored.boundary])}


def _replace_details(run: CompactionRun, report: AuditReport) -> None:
    details = json.loads(expand(run.details or b""))
    for name in ("loss_score", "losses"):  # as earlier versions called them
        details.pop(name, None)
    details["retained_percent"] = None if report.retained is None else str(report.retained)
    details["audit"] = serialize_report(report)
    CompactionRun.objects.filter(pk=run.pk).update(details=pack_details(details))
