"""Cache breaks as tables: one by one, and the groups of the ledger."""

from collections.abc import Iterator

from dashboard.access import Actor
from dashboard.exports.tables import Cell, ExportTable
from dashboard.pages.keyset import Place
from dashboard.pages.ledger import LossFilter, LossRow, list_losses
from dashboard.pages.ledger_totals import Ledger, LossSum

BATCH = 500
_COLUMNS = (
    "id", "at", "kind", "cause", "title", "detail", "evidence", "is_avoidable", "session_id", "external_id", "session",
    "project", "developer", "model", "thread", "call", "gap_seconds", "ttl", "expected_tokens", "read_tokens",
    "lost_tokens", "recreated_tokens", "lost_usd", "is_counted", "is_minor", "place",
    "avoidable_usd",
)  # fmt: skip
_SUMS = (
    "breaks", "avoidable_breaks", "avoidable_usd", "lost_usd", "lost_tokens", "recreated_tokens", "unpriced",
    "avoidable_gross_usd",
)  # fmt: skip


def export_losses(actor: Actor, wanted: LossFilter, *, total: LossSum | None = None) -> ExportTable:
    """Newest first."""

    def walk() -> Iterator[tuple[Cell, ...]]:
        before: Place | None = None
        while True:
            page = list_losses(actor, wanted, before=before, size=BATCH)
            yield from map(_list_row, page.rows)
            before = page.next
            if before is None:
                return

    return ExportTable("cache-breaks", _COLUMNS, walk(), _list_sums(total) if total else {})


def export_groups(found: Ledger) -> ExportTable:
    """All of them, in the order of the page."""
    columns = ("key", found.filters.by.value, *_SUMS, "lost_usd_before", "breaks_before", "evidence")
    rows: list[tuple[Cell, ...]] = [
        (
            group.key,
            group.name,
            *_list_sums(group.total).values(),
            group.before.lost_usd if group.before else None,
            group.before.breaks if group.before else None,
            group.evidence_words,
        )
        for group in found.groups
    ]
    return ExportTable(f"cache-breaks-by-{found.filters.by.value}", columns, rows, _list_sums(found.total))


def _list_row(row: LossRow) -> tuple[Cell, ...]:
    return (
        row.id, row.at, row.kind, row.cause, row.title, row.detail, row.grade_words, row.is_avoidable,
        row.session_id, row.external_id, row.session_name, row.project, row.developer, row.model, row.thread,
        row.call_number, row.gap_seconds, row.ttl, row.expected_tokens, row.read_tokens, row.lost_tokens,
        row.recreated_tokens, row.lost_usd, row.is_counted, row.is_minor, row.place,
        row.avoidable_usd,
    )  # fmt: skip


def _list_sums(total: LossSum) -> dict[str, Cell]:
    return {name: getattr(total, name) for name in _SUMS}
