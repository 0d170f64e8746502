"""Micro-compaction by size and by idle time: what goes, what stays, what is told, and that it can be undone."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from compaction.compactors.micro.by_idle import IdleSettings, clear_by_idle_time
from compaction.compactors.micro.by_size import SizeSettings, clear_by_size
from compaction.compactors.micro.clearing import (
    MicroOutcome,
    MicroTracker,
    apply_boundaries,
    list_clearable,
)
from compaction.context.tokens import estimate_tokens
from compaction.transcripts.client_protocol import CLEARED_RESULT
from compaction.transcripts.entries import Entry, TextBlock, ToolResultBlock
from compaction.transcripts.flatten import flatten
from compaction.transcripts.payloads import MicroBoundary
from compaction.transcripts.transcript import read_transcript
from compaction.transcripts.writer import write_entry
from tests.compaction.compactors.checks import check_conversation
from tests.compaction.compactors.talks import IMAGE, NOW, Talk, make_talk, talks
from tests.compaction.making import request, result, text

LATER = NOW + timedelta(hours=2)


def make_results(*tokens: int, name: str = "Read") -> list[Entry]:
    talk = Talk()
    talk.say("begin")
    for number, count in enumerate(tokens):
        talk.use_tool(f"m{number}", f"tool{number}", "x" * (count * 4), name=name)
    return talk.entries


def clear(entries: list[Entry], *, used: int = 150_000, **settings: int) -> MicroOutcome | None:
    chosen = SizeSettings(**settings)  # type: ignore[arg-type]
    return clear_by_size(entries, used_tokens=used, warning_tokens=147_000, now=NOW, settings=chosen)


@pytest.mark.parametrize(
    ("tokens", "cleared"),
    [
        ((30_000, 10_000, 10_000, 5_000, 5_000), 1),
        ((10_000, 10_000, 10_000, 20_000, 10_000, 10_000), 3),
        ((15_000, 4_999, 10_000, 10_000, 10_000), None),
        ((15_000, 5_000, 14_000, 14_000, 14_000), 2),
        ((90_000, 90_000, 90_000), None),
        ((90_000, 90_000), None),
        ((40_000,), None),
        ((25_000, 5_000, 5_000, 5_000), None),
        ((25_001, 5_000, 5_000, 5_000), 1),
        ((), None),
    ],
)
def test_oldest_go_while_the_rest_exceeds_the_target_if_it_is_worth_it(
    tokens: tuple[int, ...], cleared: int | None
) -> None:
    outcome = clear(make_results(*tokens))
    assert (outcome and len(outcome.cleared_tool_ids)) == cleared
    if outcome is not None:
        assert outcome.cleared_tool_ids == tuple(f"tool{number}" for number in range(cleared or 0))
        assert outcome.tokens_saved == sum(tokens[:cleared])


def test_below_the_warning_line_nothing_happens_and_at_it_it_does() -> None:
    entries = make_results(30_000, 30_000, 5_000, 5_000, 5_000)
    assert clear(entries, used=146_999) is None
    assert clear(entries, used=147_000) is not None


@pytest.mark.parametrize("name", ["Task", "TodoWrite", "AskUserQuestion", "NotebookEdit", "mcp__db__query"])
def test_results_that_cannot_be_had_again_stay(name: str) -> None:
    assert clear(make_results(*[30_000] * 6, name=name)) is None


@pytest.mark.parametrize("name", ["Read", "Bash", "Grep", "Glob", "WebSearch", "WebFetch", "Edit", "Write"])
def test_results_of_these_tools_may_go(name: str) -> None:
    assert clear(make_results(*[30_000] * 6, name=name)) is not None


def test_a_cleared_result_reads_as_the_client_writes_it_and_its_request_stays() -> None:
    entries = make_results(30_000, 20_000, 5_000, 5_000, 5_000)
    outcome = clear(entries)
    assert outcome is not None
    check_conversation(outcome.entries)
    line = read_transcript(write_entry(outcome.entries[2])).entries[0]
    assert line.message is not None
    block = line.message.content[0]
    assert isinstance(block, ToolResultBlock)
    assert block.text == CLEARED_RESULT == "[Old tool result content cleared]"
    assert outcome.entries[1] is entries[1]
    assert all(new is old for new, old in zip(outcome.entries[4:], entries[4:], strict=True))


def test_of_a_cleared_line_only_the_result_changes() -> None:
    talk = Talk()
    talk.say("begin")
    for number in range(2):
        talk.answer(f"m{number}", request("a" + str(number), "Bash"), request("b" + str(number), "Bash"))
        results = [result("a" + str(number), "x" * 100_000, is_error=True), result("b" + str(number), "x" * 100_000)]
        talk.say([*results, text("and a word")], toolUseResult={"stdout": "x"})
    outcome = clear(talk.entries, kept_results=1)
    assert outcome is not None
    assert outcome.cleared_tool_ids == ("a0", "b0", "a1")
    for old, new in zip(talk.entries, outcome.entries, strict=True):
        assert old.message is not None
        assert new == replace(old, message=new.message, raw=new.raw)
        assert new.fields is old.fields
        assert new.message == replace(old.message, content=new.message.content if new.message else ())
    line = read_transcript(write_entry(outcome.entries[-1])).entries[0]
    assert line.message is not None
    first, second, word = line.message.content
    assert isinstance(first, ToolResultBlock)
    assert first.is_error
    assert (first.text, word) == (CLEARED_RESULT, TextBlock("and a word"))
    assert isinstance(second, ToolResultBlock)
    assert len(second.text) == 100_000


def test_images_count_and_are_cleared_too() -> None:
    talk = Talk()
    talk.say("begin")
    for number in range(40):
        talk.use_tool(f"m{number}", f"tool{number}", [text("a screen"), IMAGE])
    outcome = clear(talk.entries)
    assert outcome is not None
    assert outcome.tokens_saved == len(outcome.cleared_tool_ids) * 2_002 == 21 * 2_002
    assert "base64" not in str(flatten(outcome.entries)[2].content)


def test_clearing_again_clears_nothing_more_and_undoing_gives_the_same_entries() -> None:
    entries = make_results(*[30_000] * 8)
    outcome = clear(entries)
    assert outcome is not None
    assert clear(list(outcome.entries)) is None
    assert outcome.undo() == tuple(entries)
    assert all(new is old for new, old in zip(outcome.undo(), entries, strict=True))


def test_the_boundary_line_names_what_went_and_applying_it_gives_the_same_view() -> None:
    entries = make_results(*[30_000] * 8)
    outcome = clear(entries)
    assert outcome is not None
    boundary = read_transcript(write_entry(outcome.boundary)).entries[0]
    assert boundary.parent_uuid == entries[-1].uuid
    assert boundary.payload == MicroBoundary(
        trigger="auto",
        pre_tokens=150_000,
        tokens_saved=outcome.tokens_saved,
        compacted_tool_ids=outcome.cleared_tool_ids,
    )
    view = apply_boundaries([*entries, boundary])
    assert flatten(view) == flatten(outcome.entries)
    assert apply_boundaries(entries) == tuple(entries)


def test_old_memory_attachments_go_with_the_results_behind_them() -> None:
    talk = Talk()
    talk.say("begin")
    old = talk.attach("nested_memory", "an old rule " * 50)
    other = talk.attach("todo_reminder", "1. tests")
    for number in range(6):
        talk.use_tool(f"m{number}", f"tool{number}", "x" * 100_000)
    new = talk.attach("nested_memory", "a new rule")
    outcome = clear(talk.entries)
    assert outcome is not None
    assert outcome.cleared_attachment_uuids == (old.uuid,)
    words = str([message.content for message in flatten(outcome.entries)])
    assert "an old rule" not in words
    assert "a new rule" in words
    assert "1. tests" in words
    written = b"".join(write_entry(entry) for entry in outcome.entries)
    assert b"an old rule" not in written
    assert other in outcome.entries
    assert new in outcome.entries
    boundary = outcome.boundary
    assert flatten(apply_boundaries([*talk.entries, boundary])) == flatten(outcome.entries)


@pytest.mark.parametrize(
    ("minutes", "ttl", "happens"),
    [(60, 300, False), (61, 300, True), (61, 3_600, True), (90, 7_200, False), (121, 7_200, True), (-5, 300, False)],
)
def test_idle_clears_only_once_the_cache_is_cold(minutes: int, ttl: int, *, happens: bool) -> None:
    talk = Talk(started_at=NOW)
    talk.say("begin")
    for number in range(7):
        talk.use_tool(f"m{number}", f"tool{number}", "x")
    last = next(entry.at for entry in reversed(talk.entries) if entry.type == "assistant")
    assert last is not None
    outcome = clear_by_idle_time(talk.entries, now=last + timedelta(minutes=minutes), cache_ttl_seconds=ttl)
    assert (outcome is not None) == happens
    if outcome is not None:
        assert outcome.cleared_tool_ids == ("tool0", "tool1")


def test_idle_needs_a_response_and_more_than_it_keeps() -> None:
    talk = Talk()
    talk.say("begin")
    assert clear_by_idle_time(talk.entries, now=LATER, cache_ttl_seconds=300) is None
    assert clear_by_idle_time(make_talk(5), now=LATER, cache_ttl_seconds=300) is None
    settings = IdleSettings(kept_results=0)
    assert clear_by_idle_time(make_talk(5), now=LATER, cache_ttl_seconds=300, settings=settings) is not None


def test_events_hold_the_figures() -> None:
    outcome = clear(make_results(*[30_000] * 6))
    assert outcome is not None
    assert outcome.event.to_fields() == {
        "event": "microcompact",
        "session_id": "s-1",
        "kind": "size",
        "tools_compacted": 3,
        "attachments_cleared": 0,
        "total_uncompacted_tokens": 180_000,
        "tokens_after": 90_000,
    }


def test_listeners_hear_of_it_until_they_leave_and_the_flag_can_be_reset() -> None:
    tracker = MicroTracker()
    heard: list[MicroOutcome] = []
    leave = tracker.subscribe(heard.append)
    outcome = clear(make_results(*[30_000] * 6))
    assert outcome is not None
    assert not tracker.has_occurred
    tracker.record(outcome)
    assert tracker.has_occurred
    leave()
    leave()
    tracker.record(outcome)
    assert heard == [outcome]
    tracker.reset()
    assert not tracker.has_occurred


@settings(max_examples=100, deadline=None)
@given(talks(), st.integers(0, 4), st.integers(0, 300))
def test_clearing_keeps_the_conversation_valid_and_never_makes_it_larger(
    entries: list[Entry], kept: int, target: int
) -> None:
    chosen = SizeSettings(kept_results=kept, target_tokens=target, min_saved_tokens=1)
    outcome = clear_by_size(entries, used_tokens=1, warning_tokens=0, now=NOW, settings=chosen)
    if outcome is None:
        return
    check_conversation(outcome.entries)
    assert len(outcome.entries) == len(entries)
    assert outcome.undo() == tuple(entries)
    assert estimate_tokens(outcome.entries) <= estimate_tokens(entries) + 11 * len(outcome.cleared_tool_ids)
    left = {result.tool_use_id for result in list_clearable(outcome.entries)}
    assert left.isdisjoint(outcome.cleared_tool_ids)
    before = [result.tool_use_id for result in list_clearable(entries)]
    assert not kept or set(before[-kept:]) <= left
