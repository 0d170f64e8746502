"""What a page worked out, as tables: a comparison, what a compaction lost, what fills a context.

Rights are those of the page: what it withholds is empty here too.
"""

from dashboard.exports.tables import Cell, ExportTable
from dashboard.pages.compaction_page import AuditView
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


def export_lost(audit: AuditView | None) -> ExportTable:
    """Export what a compaction lost, the most important first: as many as are stored; the total counts all."""
    columns = ("part", "text", "entry", "weight")
    rows = [(each.part, each.text, each.entry, each.weight) for each in audit.lost] if audit else []
    return ExportTable("lost", columns, rows, {"lost": audit.lost_count if audit else 0})


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
