"""What a finished run left behind, for its page: what came back, what was cleared, every message's way."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from compaction.compactors.outcome import EntryFate
from compaction.compactors.restore.items import RestoredState
from compaction.transcripts.attachments import render_attachment
from compaction.transcripts.entries import Entry, ToolUseBlock
from dashboard.ingest.stored_entries import read_thread
from dashboard.models import CompactionRun
from dashboard.pages.compaction_messages import Fate, MessageFate, quote_entry, tell_fates
from dashboard.pages.restored_things import LONGEST_ATTACHMENT
from dashboard.runs.outcomes import StoredItem, StoredOutcome, read_outcome

_GONE = "not stored any more"


@dataclass(frozen=True)
class RunResult:
    """The outcome, and the conversation it was made of as far as it is still stored."""

    outcome: StoredOutcome
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class RestoredThing:
    """One thing that came back beside the summary, or did not. Name and text are content, a reason is not."""

    kind_words: str
    name: str
    state: str
    tokens: int
    reason: str
    text: str
    is_cut: bool

    @property
    def is_skipped(self) -> bool:
        return self.state == RestoredState.SKIPPED


@dataclass(frozen=True)
class ClearedView:
    """One tool result that a micro-compaction replaced by a line. What was asked of the tool is content."""

    tool: str
    tokens: int
    asked: str


def read_result(run: CompactionRun, revision_number: int | None) -> RunResult | None:
    """None where nothing is kept of it. The conversation is unpacked once."""
    if run.outcome is None or run.details is None:
        return None
    entries = read_thread(run.session, run.agent_id).entries if run.session.has_content else ()
    return RunResult(read_outcome(run, revision_number), entries)


def list_restored(result: RunResult, *, shows_content: bool) -> tuple[RestoredThing, ...]:
    """In the order in which it was put after the summary; skipped things with what they would have brought."""
    lines = {entry.uuid: entry for entry in result.outcome.entries} if shows_content else {}
    return tuple(_view_item(item, lines, shows_content=shows_content) for item in result.outcome.restored)


def _view_item(item: StoredItem, lines: Mapping[str | None, Entry], *, shows_content: bool) -> RestoredThing:
    entry = lines.get(item.entry_uuid) if item.entry_uuid else None
    text = render_attachment(entry) if entry is not None else ""
    return RestoredThing(
        kind_words=item.kind.replace("_", " "),
        name=item.name if shows_content else "",
        state=item.state,
        tokens=item.tokens,
        reason=item.reason,
        text=text[:LONGEST_ATTACHMENT],
        is_cut=len(text) > LONGEST_ATTACHMENT,
    )


def list_cleared(result: RunResult, *, shows_content: bool) -> tuple[ClearedView, ...]:
    asked = dict(_list_asked(result.entries)) if shows_content else {}
    return tuple(
        ClearedView(each.tool, each.tokens, asked.get(each.tool_use_id, "")) for each in result.outcome.cleared
    )


def _list_asked(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        for block in entry.message.content if entry.message else ():
            if isinstance(block, ToolUseBlock):
                yield block.id, quote_entry(entry)


def trace_fates(result: RunResult) -> tuple[MessageFate, ...]:
    """Every message of the conversation that was compacted, in order, with where it went."""
    told = {each.uuid: each for each in result.outcome.fates if each.fate is not EntryFate.ADDED}
    stored = {entry.uuid: entry for entry in result.entries if entry.uuid in told}
    found = [stored[uuid] for uuid in told if uuid in stored]
    rows = {row.entry_uuid: row for row in tell_fates(found, lambda entry: Fate(told[entry.uuid or ""].fate))}
    return tuple(
        MessageFate(
            number=number,
            entry_uuid=each.uuid,
            at=rows[each.uuid].at if each.uuid in rows else None,
            who=rows[each.uuid].who if each.uuid in rows else _GONE,
            tools=rows[each.uuid].tools if each.uuid in rows else (),
            tokens=each.tokens,
            words=rows[each.uuid].words if each.uuid in rows else "",
            fate=Fate(each.fate),
        )
        for number, each in enumerate(told.values(), 1)
    )
