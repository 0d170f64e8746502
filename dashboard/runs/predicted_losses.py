"""What a run would lose, before it starts: the audit of its dry run, or the range of earlier runs of the same kind.

A run without a model is tried out and audited as a real one is. What a model will write cannot be known before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from statistics import median_low
from typing import Generic, TypeVar

from django.db.models import IntegerField, QuerySet
from django.db.models.fields.json import KT
from django.db.models.functions import Cast

from dashboard.ingest.audit_rows import AUDIT_VERSION, StoredLoss, audit_compaction, parse_audit, serialize_report
from dashboard.models import CompactionRun, RunKind, RunRevision, RunState, SummarizerName
from dashboard.runs.preview import DryRun

LEAST_RUNS = 5  # a range of fewer says little
MOST_RUNS = 100  # the newest ones: models and habits change
MOST_LOST = 3  # named losses; the count is of all
_Figure = TypeVar("_Figure", int, Decimal)
_TENTH = Decimal("0.1")


class PredictionSource(StrEnum):
    """Where a prediction comes from."""

    DRY_RUN = "dry_run"
    EARLIER_RUNS = "earlier_runs"
    NONE = "none"


@dataclass(frozen=True)
class FigureRange(Generic[_Figure]):
    """The lowest, the middle and the highest of a figure; the middle one was seen too."""

    low: _Figure
    median: _Figure
    high: _Figure


@dataclass(frozen=True, kw_only=True)
class PredictedLosses:
    """From a dry run `lost_count`, `retained_percent` and `lost` (the most important; content), from earlier runs
    their number and the two ranges. What does not belong to the source is None or empty."""

    source: PredictionSource
    lost_count: int | None = None
    retained_percent: Decimal | None = None
    lost: tuple[StoredLoss, ...] = ()
    run_count: int = 0
    lost_range: FigureRange[int] | None = None
    retained_range: FigureRange[Decimal] | None = None


def predict_losses(tried: DryRun, runs: QuerySet[CompactionRun]) -> PredictedLosses | None:
    """Return what the run would lose; None where it cannot be run. `runs`: those of the team, of every kind."""
    preview = tried.preview
    if preview.expected_after_tokens is None or tried.basis is None:
        return None
    if tried.entries is None:
        return summarise_earlier(runs, preview.choices.kind, preview.choices.summarizer)
    report = audit_compaction(tried.basis.context.entries, tried.entries)
    audit = parse_audit(serialize_report(report))
    return PredictedLosses(
        source=PredictionSource.DRY_RUN,
        lost_count=len(report.lost),
        retained_percent=report.retained,
        lost=audit.lost[:MOST_LOST] if audit else (),
    )


def summarise_earlier(runs: QuerySet[CompactionRun], kind: RunKind, summarizer: SummarizerName) -> PredictedLosses:
    """Return the ranges of the newest finished runs of this kind, audited by the rules of today, as first written."""
    alike = runs.filter(kind=kind, summarizer=summarizer, state=RunState.DONE, audit_version=AUDIT_VERSION)
    written = RunRevision.objects.filter(run__in=alike, number=1, retained_percent__isnull=False, audit__isnull=False)
    figures = written.order_by("-run_id").values_list(
        "retained_percent", Cast(KT("audit__lost_count"), IntegerField())
    )[:MOST_RUNS]
    found = [(retained.quantize(_TENTH), lost) for retained, lost in figures if retained is not None]
    if len(found) < LEAST_RUNS:
        return PredictedLosses(source=PredictionSource.NONE, run_count=len(found))
    return PredictedLosses(
        source=PredictionSource.EARLIER_RUNS,
        run_count=len(found),
        lost_range=_find_range([lost for _, lost in found]),
        retained_range=_find_range([retained for retained, _ in found]),
    )


def _find_range(figures: Sequence[_Figure]) -> FigureRange[_Figure]:
    return FigureRange(min(figures), median_low(figures), max(figures))
