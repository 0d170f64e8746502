"""The lines of a resumed session: keys, links, times, and whose words they are."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest

from compaction.compactors.extractive.summarizer import ExtractiveSummarizer
from compaction.compactors.micro.by_idle import IdleSettings, clear_by_idle_time
from compaction.compactors.outcome import CompactionOutcome, EntryFate, Trigger
from compaction.compactors.restore.restorer import ContextRestorer
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_from, compact_full, compact_up_to
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry
from compaction.transcripts.flatten import flatten
from compaction.transcripts.transcript import read_transcript
from dashboard.runs.resumed_transcript import ResumedSession, make_transcript
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.runs.machine import SECRET, read_lines
from tests.dashboard.runs.world import write_talk

NEW_ID = "11111111-2222-4333-8444-555555555555"
NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
TALK = write_talk(turns=4)
COMMON = {
    "parentUuid",
    "isSidechain",
    "userType",
    "cwd",
    "sessionId",
    "version",
    "gitBranch",
    "type",
    "uuid",
    "timestamp",
}


def read_entries(data: bytes) -> tuple[Entry, ...]:
    return follow_chain(read_transcript(data).entries)


def find_turn(entries: tuple[Entry, ...], turn: int) -> str:
    return next(
        entry.uuid or ""
        for entry in entries
        if entry.message and entry.message.is_plain and f"Turn {turn}:" in str(entry.message.content)
    )


def run_engine(kind: str, data: bytes = TALK.data) -> CompactionOutcome:
    entries = read_entries(data)
    request = CompactionRequest(trigger=Trigger.MANUAL, now=NOW)
    outside = RunPorts(ExtractiveSummarizer(), restore=ContextRestorer())
    if kind == "full":
        return compact_full(entries, request, outside)
    return (compact_from if kind == "from" else compact_up_to)(entries, find_turn(entries, 2), request, outside)


def resume(outcome: CompactionOutcome, originals: tuple[Entry, ...] = ()) -> bytes:
    return make_transcript(
        ResumedSession(
            external_id=NEW_ID,
            entries=outcome.entries,
            added_uuids=frozenset(outcome.list_uuids(EntryFate.ADDED)),
            now=NOW,
            originals={entry.uuid: entry for entry in originals if entry.uuid},
        )
    )


@pytest.mark.parametrize("kind", ["full", "from", "up_to"])
def test_every_line_has_the_keys_of_the_client_and_hangs_under_one_before_it(kind: str) -> None:
    lines = read_lines(resume(run_engine(kind)))
    assert lines[0]["subtype"] == "compact_boundary"
    assert lines[0]["parentUuid"] is None
    assert lines[0].get("logicalParentUuid") is None
    seen: set[object] = set()
    for line in lines:
        assert line.keys() >= COMMON
        assert (line["sessionId"], line["isSidechain"]) == (NEW_ID, False)
        assert line["parentUuid"] in seen or line is lines[0]
        seen.add(line["uuid"])
    assert len(seen) == len(lines)


@pytest.mark.parametrize("kind", ["full", "from", "up_to"])
def test_the_model_sees_what_the_outcome_says(kind: str) -> None:
    outcome = run_engine(kind)
    written = slice_context(read_entries(resume(outcome))).entries
    expected = [message.to_api() for message in flatten(outcome.entries)]
    assert [message.to_api() for message in flatten(written)] == expected


def test_what_was_put_back_are_words_of_their_own_behind_the_summary() -> None:
    lines = read_lines(resume(run_engine("full")))
    assert [line["type"] for line in lines] == ["system"] + ["user"] * (len(lines) - 1)
    assert lines[1]["isCompactSummary"] is True
    assert len(lines) > 2
    for line in lines[2:]:
        assert line["isMeta"] is True
        assert "/home/ann/basin_" in line["message"]["content"]


def test_what_the_client_announces_itself_is_not_written() -> None:
    talk = Conversation("tools")
    talk.ask("Turn 0: go")
    talk.write("attachment", attachment={"type": "deferred_tools_delta", "addedNames": ["A"], "addedLines": ["A"]})
    talk.answer("m1", written=9)
    outcome = run_engine("full", talk.data)
    assert any(entry.type == "attachment" for entry in outcome.entries)
    lines = read_lines(resume(outcome))
    assert len(lines) == 2
    assert len(read_entries(resume(outcome))) == 2


def test_kept_lines_are_those_of_the_original_where_there_is_one() -> None:
    original = TALK.data.replace(b"Turn 3: never", f"Turn 3: with {SECRET} never".encode())
    outcome = run_engine("up_to", original.replace(SECRET.encode(), b"[redacted]"))
    assert SECRET.encode() not in resume(outcome)
    written = resume(outcome, read_entries(original))
    assert SECRET.encode() in written
    kept = {line["uuid"]: line for line in read_lines(original)}
    for line in read_lines(written):
        if line["uuid"] in kept:
            changed = {key for key, value in kept[line["uuid"]].items() if line[key] != value}
            assert changed <= {"sessionId", "parentUuid"}


def clear(data: bytes) -> tuple[Entry, ...]:
    seen = slice_context(read_entries(data)).entries
    outcome = clear_by_idle_time(
        seen, now=NOW, cache_ttl_seconds=0, settings=IdleSettings(gap_seconds=0, kept_results=2)
    )
    assert outcome is not None
    return (*outcome.entries, outcome.boundary)


def test_results_that_were_cleared_stay_cleared_beside_the_original() -> None:
    entries = clear(TALK.data)
    session = ResumedSession(
        external_id=NEW_ID,
        entries=entries,
        added_uuids=frozenset([entries[-1].uuid or ""]),
        now=NOW,
        originals={entry.uuid: entry for entry in read_entries(TALK.data) if entry.uuid},
    )
    lines = read_lines(make_transcript(session))
    assert lines[-1]["subtype"] == "microcompact_boundary"
    assert sum("[Old tool result content cleared]" in str(line) for line in lines) == 6
    assert len(lines) == len(entries)


def test_lines_that_hang_nowhere_are_put_one_under_the_other() -> None:
    """An earlier compaction of the client kept lines that stand before its boundary, under lines that are not here."""
    talk = write_talk("earlier", turns=3)
    talk.parent = None
    kept = read_lines(talk.data)[-3:]
    segment = {"headUuid": kept[0]["uuid"], "tailUuid": kept[-1]["uuid"], "anchorUuid": "summary"}
    told = {"trigger": "auto", "preservedSegment": segment}
    talk.write("system", subtype="compact_boundary", logicalParentUuid=kept[-1]["uuid"], compactMetadata=told)
    talk.write("user", uuid="summary", isCompactSummary=True, message={"role": "user", "content": "So far."})
    talk.parent = "summary"
    for line in read_lines(write_talk("later", turns=3).data):
        talk.add(line | {"parentUuid": line["parentUuid"] or "summary"})
    entries = clear(talk.data)
    session = ResumedSession(
        external_id=NEW_ID, entries=entries, added_uuids=frozenset([entries[-1].uuid or ""]), now=NOW
    )
    lines = read_lines(make_transcript(session))
    for above, line in pairwise(lines):
        assert line["parentUuid"] == above["uuid"]
    assert [line["uuid"] for line in lines[1:5]] == ["summary", *(line["uuid"] for line in kept)]


def test_a_line_without_a_time_gets_one() -> None:
    talk = Conversation("timeless")
    talk.ask("Turn 0: go")
    talk.answer("m1", written=9)
    talk.ask("Turn 2: on")
    talk.answer("m2", written=9)
    data = b"".join(
        line if b"Turn 2" not in line else line.replace(b'"timestamp"', b'"when"')
        for line in talk.data.splitlines(True)
    )
    lines = read_lines(resume(run_engine("up_to", data)))
    assert all(line["timestamp"].endswith("Z") for line in lines)


def test_a_sub_agent_goes_on_as_a_session_of_its_own() -> None:
    agent = Conversation("charting", agent_id="a1")
    for turn in range(3):
        agent.ask(f"Turn {turn}: look")
        agent.answer(f"m{turn}", written=9)
    lines = read_lines(resume(run_engine("up_to", agent.data)))
    assert all("agentId" not in line and line["isSidechain"] is False for line in lines)
