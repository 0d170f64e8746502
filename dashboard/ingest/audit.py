"""The job that finds what each observed compaction lost, once its conversation is stored."""

from collections.abc import Sequence

from django.utils import timezone

from compaction.compactors.losses import LossReport, find_losses
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry
from dashboard.ingest.kept_losses import describe_losses
from dashboard.ingest.stored_entries import read_thread
from dashboard.jobs.run import JobRun
from dashboard.models import AgentSession, CompactionKind, ObservedCompaction, SessionChange


def audit_compactions(run: JobRun) -> None:
    """Repeatable: compactions that were audited are left alone."""
    session = AgentSession.objects.filter(pk=int(str(run.payload["session"]))).first()
    audited = 0
    # A boundary whose summary has not arrived yet says nothing: its row changes when it does, and the job comes again.
    seen = ObservedCompaction.objects.filter(session=session, kind=CompactionKind.FULL, summary_tokens__isnull=False)
    waiting = seen.filter(audited_at=None)
    for compaction in waiting.order_by("at") if session else ():
        run.check()
        report = audit(read_thread(session, compaction.agent_id).entries, compaction.entry_uuid) if session else None
        with run.writing():
            _keep(compaction, report)
            SessionChange.objects.note(compaction.team_id, [compaction.session_id])
        audited += 1
        run.report(done=audited)
    with run.finishing() as result:
        result["compactions"] = audited


def audit(entries: Sequence[Entry], boundary_uuid: str) -> LossReport | None:
    """What the model saw before a boundary against what it saw after it; None where the boundary is not stored."""
    place = next((index for index, entry in enumerate(entries) if entry.uuid == boundary_uuid), None)
    if place is None or place == 0:
        return None
    before = slice_context(follow_chain(entries[:place])).entries
    end = next((index for index in range(place, len(entries)) if entries[index].is_response), len(entries))
    after = slice_context(follow_chain(entries[:end])).entries
    return find_losses(before, after)


def _keep(compaction: ObservedCompaction, report: LossReport | None) -> None:
    compaction.audited_at = timezone.now()
    if report is not None:
        compaction.loss_score = report.score
        compaction.losses = describe_losses(report)
    compaction.save(update_fields=["audited_at", "loss_score", "losses"])
