"""What a finished run left behind, read back: what came back beside the summary, what was cleared, every message's
way."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.transcripts.attachments import render_attachment
from compaction.transcripts.entries import Entry, ToolUseBlock
from compaction.transcripts.transcript import read_transcript
from dashboard.compaction_messages import Fate, MessageFate, quote_entry, tell_fates
from dashboard.compaction_page import LONGEST_ATTACHMENT
from dashboard.ingest.segments import expand
from dashboard.ingest.stored_entries import read_thread
from dashboard.models import CompactionRun

_GONE = "not stored any more"


@dataclass(frozen=True)
class RunResult:
    """`details` as perform wrote them, the lines of the outcome and of the conversation it was made of."""

    details: Mapping[str, Any]
    outcome: tuple[Entry, ...]
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class RestoredThing:
    """One thing that came back beside the summary, or did not. Name and text are content, a reason is not."""

    kind: str
    name: str
    state: str
    tokens: int
    reason: str
    text: str
    is_cut: bool


@dataclass(frozen=True)
class ClearedResult:
    """One tool result that a micro-compaction replaced by a line. What was asked of the tool is content."""

    tool: str
    tokens: int
    asked: str


def read_result(run: CompactionRun) -> RunResult | None:
    """None where nothing is kept of it. The conversation is unpacked once."""
    if run.details is None:
        return None
    outcome = read_transcript(expand(run.outcome)).entries if run.outcome is not None else ()
    entries = read_thread(run.session, run.agent_id).entries if run.session.has_content else ()
    return RunResult(json.loads(expand(run.details)), outcome, entries)


def list_restored(result: RunResult, *, shows_content: bool) -> tuple[RestoredThing, ...]:
    """In the order in which it was put after the summary; skipped things with what they would have brought."""
    lines = {entry.uuid: entry for entry in result.outcome}
    return tuple(_view_restored(told, lines, shows_content=shows_content) for told in result.details["restored"])


def _view_restored(
    told: Mapping[str, Any], lines: Mapping[str | None, Entry], *, shows_content: bool
) -> RestoredThing:
    entry = lines.get(told["entry"]) if told["entry"] and shows_content else None
    text = render_attachment(entry) if entry is not None else ""
    return RestoredThing(
        kind=told["kind"],
        name=told["name"] if shows_content else "",
        state=told["state"],
        tokens=told["tokens"],
        reason=told["reason"],
        text=text[:LONGEST_ATTACHMENT],
        is_cut=len(text) > LONGEST_ATTACHMENT,
    )


def list_cleared(result: RunResult, *, shows_content: bool) -> tuple[ClearedResult, ...]:
    asked = dict(_list_asked(result.entries)) if shows_content else {}
    return tuple(
        ClearedResult(tool, tokens, asked.get(tool_use_id, "")) for tool_use_id, tool, tokens in result.details["cleared"]
    )


def _list_asked(entries: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    for entry in entries:
        for block in entry.message.content if entry.message else ():
            if isinstance(block, ToolUseBlock):
                yield block.id, quote_entry(entry)


def trace_fates(result: RunResult) -> tuple[MessageFate, ...]:
    """Every message of the conversation that was compacted, in order, with where it went."""
    told = {uuid: (Fate(fate), tokens) for uuid, fate, tokens in result.details.get("fates", ()) if fate != "added"}
    found = {entry.uuid: entry for entry in result.entries if entry.uuid in told}
    kept = [found[uuid] for uuid in told if uuid in found]
    rows = {row.entry_uuid: row for row in tell_fates(kept, lambda entry: told[entry.uuid or ""][0])}
    return tuple(
        MessageFate(
            number=number,
            entry_uuid=uuid,
            at=rows[uuid].at if uuid in rows else None,
            who=rows[uuid].who if uuid in rows else _GONE,
            tools=rows[uuid].tools if uuid in rows else (),
            tokens=tokens,
            words=rows[uuid].words if uuid in rows else "",
            fate=fate,
        )
        for number, (uuid, (fate, tokens)) in enumerate(told.items(), 1)
    )
