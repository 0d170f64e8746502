"""What a page worked out, as tables: a comparison, what a compaction lost, what fills a context.

Rights are those of the page: what it withholds is empty here too.
"""

from dashboard.exports.tables import Cell, ExportTable
from dashboard.pages.compaction_page import LossView
from dashboard.pages.comparison import Comparison
from dashboard.pages.context_page import Inside

# The lists of the context page; the first is meant where none is named.
PARTS, FILES, READ_TWICE, LARGEST = "", "files", "twice", "largest"
_CONTEXT_LISTS = {
    PARTS: ("context", ("category", "tool", "pieces", "tokens", "share")),
    FILES: ("context-files", ("file", "pieces", "tokens", "share")),
    READ_TWICE: ("context-read-twice", ("file", "reads", "wasted_tokens", "entry")),
    LARGEST: ("context-largest-results", ("tool", "file", "tokens", "entry")),
}


def export_comparison(found: Comparison) -> ExportTable:
    columns = ("figure", "label", "first", "first_figure", "second", "second_figure", "difference", "change", "verdict")
    rows: list[tuple[Cell, ...]] = [
        (
            each.measure.name, each.measure.label, found.first.name, each.trend.before, found.second.name,
            each.trend.now, each.trend.difference, each.trend.change, each.verdict,
        )
        for each in found.figures
    ]  # fmt: skip
    return ExportTable("comparison", columns, rows)


def export_lost(losses: LossView | None) -> ExportTable:
    """As many as are kept of them; the totals count all."""
    columns = ("part", "quote", "entry")
    rows = [(each.part, each.quote, each.entry) for each in losses.lost] if losses else []
    return ExportTable("lost", columns, rows, {"lost": losses.lost_count if losses else 0})


def export_context(inside: Inside | None, part: str) -> ExportTable:
    """Empty where nothing is stored that could be counted."""
    name, columns = _CONTEXT_LISTS.get(part, _CONTEXT_LISTS[PARTS])
    return ExportTable(name, columns, _list_context(inside, part) if inside else [])


def _list_context(inside: Inside, part: str) -> list[tuple[Cell, ...]]:
    if part == FILES:
        return [(each.name, each.count, each.tokens, each.share) for each in inside.files]
    if part == READ_TWICE:
        return [(each.path, each.read_count, each.wasted_tokens, each.entry_uuid) for each in inside.duplicates]
    if part == LARGEST:
        return [(each.tool, each.path, each.tokens, each.entry_uuid) for each in inside.largest]
    return [(each.category, each.name, each.count, each.tokens, each.share) for each in inside.parts]
