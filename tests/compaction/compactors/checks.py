"""What must hold of every outcome, whatever it was made from."""

from collections.abc import Sequence

from compaction.compactors.outcome import CompactionOutcome
from compaction.transcripts.chain import ContextSlice, follow_chain, slice_context
from compaction.transcripts.entries import Entry, ToolResultBlock, ToolUseBlock
from compaction.transcripts.flatten import flatten
from compaction.transcripts.transcript import read_transcript
from compaction.transcripts.writer import write_entry


def check_outcome(outcome: CompactionOutcome, before: Sequence[Entry]) -> None:
    """Every promise an outcome makes."""
    check_chain(outcome.entries)
    check_kept(outcome, before)
    check_nothing_parted(outcome, before)
    check_conversation(outcome.entries)
    check_written(outcome.entries)


def check_chain(entries: Sequence[Entry]) -> None:
    """One root, every parent among the entries and before its child, no uuid twice."""
    uuids = [entry.uuid for entry in entries]
    assert None not in uuids
    assert len(set(uuids)) == len(uuids)
    assert [entry for entry in entries if entry.parent_uuid is None] == [entries[0]]
    for index, entry in enumerate(entries[1:], start=1):
        assert entry.parent_uuid in uuids[:index]
    assert all(entry.at is not None for entry in entries)


def check_kept(outcome: CompactionOutcome, before: Sequence[Entry]) -> None:
    """Kept entries are the ones that came in; where they stand now only the parent's uuid differs."""
    old = {entry.uuid: entry for entry in before}
    new = {entry.uuid: entry for entry in outcome.entries}
    for entry in outcome.kept:
        assert entry is old[entry.uuid]
        copy = new[entry.uuid]
        assert copy.message is entry.message
        assert copy.payload is entry.payload
        assert entry.raw is not None
        assert copy.raw is not None
        old_parent, new_parent = (_quote(each.parent_uuid) for each in (entry, copy))
        assert copy.raw == entry.raw.replace(b'"parentUuid":' + old_parent, b'"parentUuid":' + new_parent)


def _quote(uuid: str | None) -> bytes:
    return b"null" if uuid is None else f'"{uuid}"'.encode()


def check_nothing_parted(outcome: CompactionOutcome, before: Sequence[Entry]) -> None:
    """No tool pair and no response stands on both sides of the cut."""
    kept = {entry.uuid for entry in outcome.kept}
    sides: dict[tuple[str, str], set[bool]] = {}
    for entry in slice_context(before).entries:
        for tie in _list_ties(entry):
            sides.setdefault(tie, set()).add(entry.uuid in kept)
    assert all(len(found) == 1 for found in sides.values())


def _list_ties(entry: Entry) -> list[tuple[str, str]]:
    blocks = entry.message.content if entry.message else ()
    ties = [("tool", block.id) for block in blocks if isinstance(block, ToolUseBlock)]
    ties += [("tool", block.tool_use_id) for block in blocks if isinstance(block, ToolResultBlock)]
    if entry.message is not None and entry.message.id is not None:
        ties.append(("response", entry.message.id))
    return ties


def check_conversation(entries: Sequence[Entry]) -> None:
    """Roles alternate from a user on, and every tool request is answered in the next message."""
    messages = flatten(entries)
    assert messages
    assert [message.role for message in messages] == [("user", "assistant")[at % 2] for at in range(len(messages))]
    for message, following in zip(messages, (*messages[1:], None), strict=True):
        wanted = [block.id for block in message.content if isinstance(block, ToolUseBlock)]
        found = [b.tool_use_id for b in following.content if isinstance(b, ToolResultBlock)] if following else []
        assert wanted == found


def check_written(entries: Sequence[Entry]) -> None:
    """Written and read again, the same conversation stands behind the boundary, in the same order."""
    again = read_transcript(b"".join(write_entry(entry) for entry in entries)).entries
    chain = slice_context(follow_chain(again)).entries
    assert [message.content for message in flatten(chain)] == [message.content for message in flatten(entries)]


def read_context(outcome: CompactionOutcome) -> ContextSlice:
    """Return what the model sees, with the kept entries marked: their old usage measures nothing any more."""
    kept_uuids = frozenset(entry.uuid for entry in outcome.kept if entry.uuid)
    return ContextSlice(outcome.entries, outcome.boundary, kept_uuids)
