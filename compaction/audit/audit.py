"""The audit of a compaction: searches for what mattered before it in all that the model sees afterwards."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from compaction.activity.tool_calls import read_activity
from compaction.audit.emphasis import Emphasis
from compaction.audit.error_texts import select_errors
from compaction.audit.passage_search import KEPT, MISSING, VERBATIM, PassageMatch, RetainedText
from compaction.audit.progress import select_background, select_progress
from compaction.audit.references import select_references
from compaction.audit.requirements import select_decisions, select_requirements
from compaction.audit.score import AuditFinding, AuditReport
from compaction.audit.statements import AuditPart, AuditStatement
from compaction.transcripts.attachments import render_attachment
from compaction.transcripts.client_protocol import FILE_ATTACHMENTS
from compaction.transcripts.entries import Entry, TextBlock, ToolResultBlock, ToolUseBlock
from compaction.transcripts.payloads import Attachment

_QUOTE_CHARACTERS = 240


def audit_compaction(before: Sequence[Entry], after: Iterable[Entry]) -> AuditReport:
    """Audit a compaction: `before` is what was summarised or kept, `after` all that the model sees now.

    Contents of restored files are not searched: most clients do not record which files they restored, and the text of
    a file is no record of the conversation.
    """
    visible = tuple(after)
    kept_uuids = frozenset(entry.uuid for entry in visible if entry.uuid)
    retained = RetainedText("\n".join(_list_texts(visible)))
    return AuditReport(
        tuple(
            AuditFinding(
                statement.part,
                statement.text[:_QUOTE_CHARACTERS],
                statement.entry_uuid,
                statement.weight,
                KEPT if statement.entry_uuid in kept_uuids else _search(retained, statement),
            )
            for statement in select_statements(before)
        )
    )


def select_statements(entries: Sequence[Entry]) -> list[AuditStatement]:
    """Return what a continuing agent needs to know, each text once."""
    activity = read_activity(entries)
    emphasis = Emphasis.read(entries, activity)
    chosen: dict[str, AuditStatement] = {}
    for statement in (
        *select_requirements(activity),
        *select_decisions(activity),
        *select_progress(entries, activity),
        *select_background(entries, activity),
        *select_errors(activity),
        *select_references(activity),
    ):
        weighed = replace(statement, weight=statement.weight * emphasis.weigh(statement))
        chosen.setdefault(statement.text.casefold(), weighed)
    return list(chosen.values())


def _search(retained: RetainedText, statement: AuditStatement) -> PassageMatch:
    if any(retained.has_name(name) for name in statement.names):
        return VERBATIM
    if not statement.terms:
        return MISSING
    is_binding = statement.part is AuditPart.REQUIREMENTS
    return retained.find_statement(statement.text, statement.terms, is_binding=is_binding)


def _list_texts(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        if entry.type == "attachment":
            if not (isinstance(entry.payload, Attachment) and entry.payload.kind in FILE_ATTACHMENTS):
                yield render_attachment(entry)
            continue
        for block in entry.message.content if entry.message else ():
            if isinstance(block, TextBlock | ToolResultBlock):
                yield block.text
            elif isinstance(block, ToolUseBlock):
                yield block.input_json
