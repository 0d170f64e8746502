"""Compaction from notes: when it is refused, what is kept, and that the outcome is whole."""

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.compactors.notes.from_notes import (
    DEFAULT_KEEP_SETTINGS,
    KeepSettings,
    compact_from_notes,
    compute_kept_start,
)
from compaction.compactors.notes.template import DEFAULT_TEMPLATE, SessionNotes
from compaction.compactors.outcome import CompactionOutcome, CompactorKind, Trigger
from compaction.compactors.restore.restorer import ContextRestorer
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.context.tokens import estimate_tokens
from compaction.errors import (
    NotesBeingWritten,
    NotesEmpty,
    NotesMissing,
    NotesNotEnough,
    NotesNotUsable,
    NotesPositionLost,
    NothingToCompact,
)
from compaction.events import CompactionCompleted, ThresholdExceeded
from compaction.ports import HookResult
from compaction.transcripts.chain import slice_context
from compaction.transcripts.entries import Entry
from tests.compaction.compactors.checks import check_outcome
from tests.compaction.compactors.sessions import Session
from tests.compaction.compactors.summarizers import Script, ToldHooks, Watcher
from tests.compaction.compactors.talks import NOW, make_talk, talks

TEXT = DEFAULT_TEMPLATE.replace("# Worklog", "# Worklog\n- did things\n")
REQUEST = CompactionRequest(trigger=Trigger.AUTO, now=NOW, threshold_tokens=167_000)
LITTLE = KeepSettings(min_tokens=1, min_text_messages=1, max_tokens=100)


def note(entry: Entry, text: str = TEXT) -> SessionNotes:
    return SessionNotes(text, entry.uuid)


def compact(entries: list[Entry], notes: SessionNotes | None, settings: KeepSettings = LITTLE) -> CompactionOutcome:
    return compact_from_notes(entries, notes, REQUEST, RunPorts(Script()), settings=settings)


@pytest.mark.parametrize(
    ("notes", "error"),
    [
        (None, NotesMissing),
        (SessionNotes(" ", "t-0003"), NotesMissing),
        (SessionNotes(DEFAULT_TEMPLATE, "t-0003"), NotesEmpty),
        (SessionNotes(TEXT, "unknown"), NotesPositionLost),
        (SessionNotes(TEXT, None), NotesPositionLost),
        (SessionNotes(TEXT, "t-0003", extraction_started_at=NOW - timedelta(seconds=5)), NotesBeingWritten),
    ],
)
def test_notes_that_cannot_be_used_say_why(notes: SessionNotes | None, error: type[NotesNotUsable]) -> None:
    with pytest.raises(error) as caught:
        compact(make_talk(), notes)
    assert caught.value.reason == error.reason


def test_a_stale_extraction_does_not_hold_the_notes_back() -> None:
    entries = make_talk()
    notes = SessionNotes(TEXT, entries[4].uuid, extraction_started_at=NOW - timedelta(seconds=61))
    assert compact(entries, notes).kind is CompactorKind.SESSION_MEMORY


def test_a_result_at_or_above_the_line_is_refused_and_reported() -> None:
    entries = make_talk(size=4_000)
    watcher = Watcher()
    low = CompactionRequest(trigger=Trigger.AUTO, now=NOW, threshold_tokens=2_000)
    with pytest.raises(NotesNotEnough):
        compact_from_notes(entries, note(entries[0]), low, RunPorts(Script(), monitor=watcher), settings=LITTLE)
    assert [type(event) for event in watcher.events] == [ThresholdExceeded]


def test_notes_stand_for_what_they_cover_and_no_model_is_asked() -> None:
    entries = make_talk()
    script, watcher = Script(), Watcher()
    hooks = ToldHooks(results=[HookResult("reload", "instructions")])
    outcome = compact_from_notes(
        entries, note(entries[6]), REQUEST, RunPorts(script, hooks, ContextRestorer(), watcher), settings=LITTLE
    )
    check_outcome(outcome, entries)
    assert script.requests == []
    assert outcome.calls == ()
    assert [entry.uuid for entry in outcome.kept] == [entry.uuid for entry in entries[7:]]
    assert "- did things" in outcome.summary.text
    assert any(isinstance(event, CompactionCompleted) for event in watcher.events)
    assert [item.name for item in outcome.restored][-1:] == ["SessionStart: reload"]


def test_everything_after_the_last_covered_entry_is_kept_whatever_its_size() -> None:
    entries = make_talk(rounds=8, size=100_000)
    start = compute_kept_start(slice_context(entries), entries[2].uuid)
    assert start == 3


def test_going_back_stops_when_there_is_enough_of_both() -> None:
    session = Session()
    for number in range(30):
        session.say(f"message {number} " + "x" * 4_000)
        session.remark(f"answer {number}")
    last = session.entries[-1].uuid
    start = compute_kept_start(slice_context(session.entries), last)
    assert start is not None
    kept = session.entries[start:]
    assert estimate_tokens(kept) >= DEFAULT_KEEP_SETTINGS.min_tokens
    assert estimate_tokens(session.entries[start + 1 :]) < DEFAULT_KEEP_SETTINGS.min_tokens
    assert len(kept) >= DEFAULT_KEEP_SETTINGS.min_text_messages


def test_going_back_stops_before_the_most() -> None:
    session = Session()
    for number in range(6):
        session.say("x" * 45_000)
        session.remark(f"answer {number}")
    start = compute_kept_start(
        slice_context(session.entries), session.entries[-1].uuid, KeepSettings(10_000, 50, 40_000)
    )
    assert start is not None
    assert 10_000 <= estimate_tokens(session.entries[start:]) <= 40_000


def test_nothing_before_the_last_boundary_and_its_summary_is_kept() -> None:
    session = Session()
    session.say("long ago")
    session.bound()
    session.say("new")
    session.remark("yes")
    context = slice_context(session.entries)
    start = compute_kept_start(context, session.entries[-1].uuid)
    assert start == 2
    with pytest.raises(NothingToCompact):
        compact(session.entries[:3], note(session.entries[2]))


def test_what_would_all_have_to_be_kept_is_not_compacted() -> None:
    entries = make_talk(rounds=1, size=10)
    with pytest.raises(NothingToCompact, match="nothing would be saved"):
        compact(entries, note(entries[-1]), DEFAULT_KEEP_SETTINGS)


@settings(max_examples=100, deadline=None)
@given(talks(fewest_steps=3), st.data(), st.sampled_from([LITTLE, KeepSettings(300, 2, 600), DEFAULT_KEEP_SETTINGS]))
def test_every_outcome_from_notes_is_whole(entries: list[Entry], data: st.DataObject, keep: KeepSettings) -> None:
    covered = data.draw(st.sampled_from(entries))
    try:
        outcome = compact(entries, note(covered), keep)
    except (NothingToCompact, NotesNotUsable):
        return
    check_outcome(outcome, entries)
    after = {
        entry.uuid for entry in entries[entries.index(covered) + 1 :] if entry.message or entry.type == "attachment"
    }
    seen = {entry.uuid for entry in slice_context(entries).entries}
    assert after & seen <= {entry.uuid for entry in outcome.kept} | {e.uuid for e in entries if e.is_compact_summary}
    assert outcome == compact(entries, note(covered), keep)
