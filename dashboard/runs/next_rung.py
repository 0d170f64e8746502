"""An automatic run from notes that would not do is followed by one with a summary, as in the engine's chain."""

from compaction.errors import NotesNotUsable, NothingToCompact, RunError
from dashboard.jobs.post import post_job
from dashboard.models import CompactionRun, RunKind
from dashboard.runs.choices import AUTOMATIC


def has_next_rung(run: CompactionRun, error: RunError) -> bool:
    is_from_notes = run.source == AUTOMATIC and run.kind == RunKind.NOTES
    return is_from_notes and isinstance(error, NotesNotUsable | NothingToCompact)


def post_next_rung(run: CompactionRun) -> None:
    """To be called inside the transaction that ends the run; its crossing is answered once more, without the notes."""
    post_job(
        "answer_crossing",
        key=f"crossing behind run {run.pk}",
        team=run.team,
        payload={"session": run.session_id, "after_run": run.pk},
    )
