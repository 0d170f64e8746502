"""The job that audits each observed compaction once its conversation is stored: what it retained and what it lost."""

from collections.abc import Sequence

from django.db.models import Q
from django.utils import timezone

from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry
from dashboard.ingest.audit_rows import AUDIT_VERSION, AuditReport, audit_compaction, serialize_report
from dashboard.ingest.stored_entries import read_thread
from dashboard.jobs.run import JobRun
from dashboard.models import AgentSession, CompactionKind, ObservedCompaction, SessionChange


def audit_compactions(run: JobRun) -> None:
    """Repeatable: compactions that were audited by the rules of today are left alone."""
    session = AgentSession.objects.filter(pk=int(str(run.payload["session"]))).first()
    audited = _audit_session(run, session) if session else 0
    with run.finishing() as result:
        result["compactions"] = audited


def _audit_session(run: JobRun, session: AgentSession) -> int:
    # A boundary whose summary has not arrived yet is left out: its row changes when it does, and the job comes again.
    waiting = ObservedCompaction.objects.filter(
        _find_waiting(session), session=session, kind=CompactionKind.FULL, summary_tokens__isnull=False
    )
    threads: dict[str, tuple[Entry, ...]] = {}  # a thread is unpacked once, however many compactions it has
    audited = 0
    for pk in waiting.order_by("agent_id", "at").values_list("pk", flat=True):
        run.check()
        compaction = waiting.filter(pk=pk).first()
        if compaction is None:  # audited meanwhile by a job of an earlier import of the session
            continue
        if compaction.agent_id not in threads:
            threads = {compaction.agent_id: read_thread(session, compaction.agent_id).entries}
        report = audit(threads[compaction.agent_id], compaction.entry_uuid)
        with run.writing():
            _keep(compaction, report)
            SessionChange.objects.note(compaction.team_id, [compaction.session_id])
        audited += 1
        run.report(done=audited)
    return audited


def _find_waiting(session: AgentSession) -> Q:
    """Those never audited, and those that earlier rules audited while the whole conversation is stored."""
    is_whole = session.has_content and session.content_removed_at is None
    outdated = Q(audit_version=None) | Q(audit_version__lt=AUDIT_VERSION)
    return Q(audited_at=None) | outdated if is_whole else Q(audited_at=None)


def audit(entries: Sequence[Entry], boundary_uuid: str) -> AuditReport | None:
    """What the model saw before a boundary against what it saw after it; None where the boundary is not stored."""
    place = next((index for index, entry in enumerate(entries) if entry.uuid == boundary_uuid), None)
    if place is None or place == 0:
        return None
    before = slice_context(follow_chain(entries[:place])).entries
    end = next((index for index in range(place, len(entries)) if entries[index].is_response), len(entries))
    after = slice_context(follow_chain(entries[:end])).entries
    return audit_compaction(before, after)


def _keep(compaction: ObservedCompaction, report: AuditReport | None) -> None:
    compaction.audited_at, compaction.audit_version = timezone.now(), AUDIT_VERSION
    if report is not None:
        compaction.retained_percent = report.retained
        compaction.audit = serialize_report(report)
    compaction.save(update_fields=["audited_at", "audit_version", "retained_percent", "audit"])
