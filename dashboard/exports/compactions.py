"""The page Compactions as a table, with the filters and rights of the page."""

from collections.abc import Iterator

from dashboard.access import Actor
from dashboard.exports.tables import Cell, ExportTable
from dashboard.pages.compaction_filters import CompactionFilters
from dashboard.pages.compaction_history import HistoryRow, Position, list_history
from dashboard.pages.compaction_totals import CompactionTotals

BATCH = 500
_COLUMNS = (
    "id", "by", "at", "kind", "state", "session_id", "external_id", "session", "project", "developer", "thread",
    "trigger", "is_mid_task", "before_tokens", "after_tokens", "retained_percent", "lost", "restored", "cost_usd",
    "took_seconds",
)  # fmt: skip


def export_history(actor: Actor, filters: CompactionFilters, totals: CompactionTotals) -> ExportTable:
    """Newest first."""

    def walk() -> Iterator[tuple[Cell, ...]]:
        before: Position | None = None
        while True:
            page = list_history(actor, filters, before=before, size=BATCH)
            yield from map(_list_row, page.rows)
            before = page.next
            if before is None:
                return

    sums: dict[str, Cell] = {"compactions": totals.total.count, "mean_retained_percent": totals.total.mean_percent}
    return ExportTable("compactions", _COLUMNS, walk(), sums)


def _list_row(row: HistoryRow) -> tuple[Cell, ...]:
    return (
        row.id, row.performer.value, row.at, row.kind, row.state, row.session_id, row.external_id, row.session_name,
        row.project, row.developer, row.thread, row.trigger, row.is_mid_task, row.before_tokens, row.after_tokens,
        row.retained_percent, row.lost_count, row.restored_count, row.cost_usd, row.duration_seconds,
    )  # fmt: skip
