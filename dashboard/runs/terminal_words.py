"""Previews and runs in words and as plain values, for the terminal. The pages have their own."""

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from dashboard.ingest.audit_rows import parse_audit
from dashboard.models import CompactionRun, RunKind, RunRevision, RunState
from dashboard.runs.kinds import KIND_WORDS
from dashboard.runs.predicted_losses import PredictedLosses, PredictionSource
from dashboard.runs.preview import GROWTH_ADVICE, Preview
from dashboard.words import format_lost_count, format_retained, saves_nothing

_SAME = (
    "id", "kind", "summarizer", "model", "state", "stage", "before_tokens", "before_origin", "after_tokens",
    "after_origin", "kept_count", "summarised_count", "dropped_count", "cleared_count", "spent_usd", "failure_code",
    "failure_sentence", "created_at", "finished_at",
)  # fmt: skip


def describe_run(run: CompactionRun) -> dict[str, Any]:
    """Words of the summary included: who types the command may read the database anyway."""
    revision = run.revisions.order_by("-number").first()
    audit = parse_audit(revision.audit) if revision else None
    return {name: getattr(run, name) for name in _SAME} | {
        "session": run.session.external_id,
        "summary": revision.text if revision else None,
        "retained_percent": revision.retained_percent if revision else None,
        "audit": asdict(audit) if audit else None,
    }


def tell_run(run: CompactionRun) -> str:
    title = f"Run {run.pk}, {KIND_WORDS[RunKind(run.kind)]} of {run.session.external_id}: {run.state}."
    if run.state != RunState.DONE:
        return title
    lines = [title, f"{run.before_tokens or 0:,} -> {run.after_tokens or 0:,} tokens ({run.after_origin})."]
    if saves_nothing(run.before_tokens, run.after_tokens):
        lines.append(f"Nothing saved: the result is not smaller. {GROWTH_ADVICE}")
    if run.cleared_count:
        lines.append(f"{run.cleared_count} old tool results and attachments cleared, everything else kept.")
    else:
        lines.append(f"{run.summarised_count} messages summarised, {run.kept_count} kept, {run.dropped_count} dropped.")
    revision = run.revisions.order_by("-number").first()
    if revision is not None:
        lines += [f"{_format_audit(revision)} Spent: ${run.spent_usd:.4f}.", "", revision.text]
    return "\n".join(lines)


def _format_audit(revision: RunRevision) -> str:
    lost_count = audit.lost_count if (audit := parse_audit(revision.audit)) else 0
    lost = f"{lost_count} lost item{'' if lost_count == 1 else 's'}"
    if revision.retained_percent is None:
        return f"Retained: unknown, nothing to compare; {lost}."
    return f"Retained: {format_retained(revision.retained_percent)} (estimated); {lost}."


def describe_preview(preview: Preview, losses: PredictedLosses | None) -> dict[str, Any]:
    return asdict(preview) | {"losses": asdict(losses) if losses else None}


def tell_preview(preview: Preview, losses: PredictedLosses | None) -> str:
    lines = [f"{KIND_WORDS[preview.choices.kind].capitalize()} with {preview.choices.summarizer.value}:"]
    if preview.before_tokens:
        lines.append(f"  now            {preview.before_tokens:,} tokens ({preview.before_origin})")
    if preview.expected_after_tokens:
        low, high = preview.expected_after_tokens
        lines.append(
            f"  expected after {low:,} tokens" if low == high else f"  expected after {low:,} to {high:,} tokens"
        )
    if preview.cleared_count:
        lines.append(f"  cleared        {preview.cleared_count} results, {preview.cleared_tokens:,} tokens")
    elif preview.summarised_count:
        lines.append(
            f"  messages       {preview.summarised_count} summarised, {preview.kept_count} kept, "
            f"{preview.dropped_count} dropped"
        )
    if preview.path:
        lines.append(
            f"  sent           {preview.messages_sent} messages, {preview.sent_tokens:,} tokens ({preview.path})"
        )
    elif preview.expected_after_tokens:
        lines.append("  sent           nothing, no model is used")
    lines += [f"  {cost.model:<14} {_tell_cost(cost.miss_usd, cost.most_usd)}" for cost in preview.costs]
    if losses is not None:
        lines += [f"  losses         {_tell_losses(losses)}", *(f"    lost: {each.text}" for each in losses.lost)]
    lines += [f"  note: {notice.sentence}" for notice in preview.warnings]
    return "\n".join(lines)


def _tell_losses(losses: PredictedLosses) -> str:
    if losses.source is PredictionSource.DRY_RUN:
        retained = f"retained {format_retained(losses.retained_percent)}, exact for this preview"
        return f"{format_lost_count(losses.lost_count)}, {retained}"
    if losses.lost_range is None or losses.retained_range is None:
        return "no earlier compactions to predict from"
    lost, retained_range = losses.lost_range, losses.retained_range
    ends = f"{format_retained(retained_range.low)} to {format_retained(retained_range.high)}"
    return (
        f"{lost.low} to {lost.high} things lost (median {lost.median}), retained {ends}, "
        f"seen in {losses.run_count} earlier compactions"
    )


def _tell_cost(expected_usd: Decimal | None, most_usd: Decimal | None) -> str:
    if expected_usd is None or most_usd is None:
        return "price unknown"
    return f"about ${expected_usd:.4f}, at most ${most_usd:.4f} a request"
