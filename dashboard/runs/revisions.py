"""Editing a summary: every save is a new revision, with an audit and a size of its own."""

from datetime import datetime

from django.db import IntegrityError, transaction

from compaction.compactors.summary.answer import collapse_blank_lines, list_missing_sections
from compaction.context.tokens import add_margin, count_text_tokens, estimate_tokens
from compaction.ports import Variant
from dashboard.ingest.audit_rows import audit_compaction, serialize_report
from dashboard.ingest.redaction_counts import count_revision
from dashboard.models import CompactionRun, RunKind, RunRevision, SummarizerName, User
from dashboard.runs.basis import read_basis
from dashboard.runs.choices import RunRefused
from dashboard.runs.outcomes import read_outcome, replace_summary
from dashboard.runs.texts import redact_text

LONGEST_SUMMARY = 200_000  # characters: twice what the output limit of a model allows
MOST_REVISIONS = 100


def revise_summary(
    run: CompactionRun, text: str, *, by: User | None, now: datetime, base_number: int | None = None
) -> RunRevision:
    """The next revision. `base_number` is the one that was edited: a newer one is not overwritten unseen.

    Raises RunRefused where there is no summary, nothing is left of it, or somebody else was quicker.
    """
    newest = run.revisions.order_by("-number").first()
    if newest is None:
        raise RunRefused("no_summary", "This run has no summary that could be edited.")
    if base_number is not None and base_number != newest.number:
        raise _tell_of_newer(newest)
    cleaned, redactions = redact_text(run.team, text)
    cleaned = _check_text(cleaned, newest)
    draft = _draft_revision(run, newest.number + 1, cleaned)
    draft.edited_by, draft.edited_by_name, draft.created_at = by, by.username if by else "terminal", now
    try:
        with transaction.atomic():
            draft.save()
            count_revision(draft, redactions)
    except IntegrityError:
        raise _tell_of_newer(run.revisions.order_by("-number")[0]) from None
    return draft


def _check_text(text: str, newest: RunRevision) -> str:
    text = collapse_blank_lines(text.replace("\r\n", "\n"))
    if not text:
        raise RunRefused("empty_summary", "A summary without a word would lose everything. Nothing was saved.")
    if len(text) > LONGEST_SUMMARY:
        raise RunRefused(
            "summary_too_long", f"The summary has {len(text):,} characters; {LONGEST_SUMMARY:,} are allowed."
        )
    if text == newest.text:
        raise RunRefused("no_change", f"Revision {newest.number} is identical. Nothing was saved.")
    if newest.number >= MOST_REVISIONS:
        raise RunRefused("too_many_revisions", f"A run keeps {MOST_REVISIONS} revisions of its summary, not more.")
    return text


def _tell_of_newer(newest: RunRevision) -> RunRefused:
    by = newest.edited_by_name or "somebody"
    return RunRefused(
        "revised_meanwhile",
        f"{by} saved revision {newest.number} meanwhile. Look at it first; nothing was overwritten.",
        number=newest.number,
    )


def _draft_revision(run: CompactionRun, number: int, text: str) -> RunRevision:
    stored = read_outcome(run, 1)
    if stored.revision is None or stored.summary_uuid is None:
        raise RunRefused("no_summary", "This run has no summary that could be edited.")
    entries = replace_summary(stored.entries, stored.summary_uuid, stored.revision.text, text)
    before = read_basis(run.session, run.agent_id, up_to_uuid=run.last_entry_uuid).context.entries
    report = audit_compaction(before, entries)
    variant = Variant.UP_TO if run.kind == RunKind.UP_TO else Variant.FULL
    return RunRevision(
        run=run,
        number=number,
        text=text,
        # What the API wrote has other sections than ours, or none.
        missing_sections=[] if run.summarizer == SummarizerName.NATIVE else list(list_missing_sections(text, variant)),
        summary_tokens=add_margin(count_text_tokens(text)),
        after_tokens=estimate_tokens(entries) + run.prefix_tokens,
        retained_percent=report.retained,
        audit=serialize_report(report),
    )
