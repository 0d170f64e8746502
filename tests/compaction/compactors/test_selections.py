"""Partial compaction: what is sent, what stays, in which order, and how it hangs together."""

from collections.abc import Callable

import pytest

from compaction.compactors.assembly import relink_entry
from compaction.compactors.outcome import CompactionOutcome, CompactorKind, EntryFate, Trigger
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_from, compact_up_to
from compaction.context.tokens import measure_context
from compaction.errors import NothingToCompact, PivotNotFound, PromptTooLong
from compaction.ports import Variant
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry
from compaction.transcripts.flatten import flatten
from compaction.transcripts.payloads import Boundary, PreservedSegment
from compaction.transcripts.transcript import read_transcript
from compaction.transcripts.writer import write_entry
from tests.compaction.compactors.checks import check_outcome, read_context
from tests.compaction.compactors.summarizers import Script, summarise_well
from tests.compaction.compactors.talks import NOW, Talk, make_talk
from tests.compaction.making import request as tool_request
from tests.compaction.making import result, text

REQUEST = CompactionRequest(trigger=Trigger.MANUAL, now=NOW)


def find_segment(outcome: CompactionOutcome) -> PreservedSegment | None:
    assert isinstance(outcome.boundary.payload, Boundary)
    return outcome.boundary.payload.preserved_segment


def list_types(entries: tuple[Entry, ...]) -> list[str]:
    return ["summary" if entry.is_compact_summary else entry.type for entry in entries]


def test_from_sends_everything_and_keeps_what_is_before_the_pivot_in_front() -> None:
    entries, script = make_talk(3), Script()
    outcome = compact_from(entries, entries[5].uuid or "", REQUEST, RunPorts(script))
    check_outcome(outcome, entries)
    assert script.requests[0].variant is Variant.FROM
    assert script.requests[0].entries == tuple(entries)
    assert outcome.kept == tuple(entries[:5])
    assert list_types(outcome.entries) == ["system", "user", "assistant", "user", "assistant", "user", "summary"]
    assert find_segment(outcome) == PreservedSegment("t-0000", "t-0004", outcome.boundary.uuid)
    assert outcome.list_uuids(EntryFate.SUMMARISED) == tuple(entry.uuid for entry in entries[5:])


def test_from_tells_the_model_where_its_part_begins() -> None:
    entries, script = make_talk(3), Script()
    compact_from(entries, entries[-1].uuid or "", REQUEST, RunPorts(script))
    assert "<start>\nNow add a test for it.\n</start>" in script.requests[0].prompt
    compact_from(entries, entries[5].uuid or "", REQUEST, RunPorts(script))
    assert '<start>\nRead {"path":"/src/tool2.py"}\n</start>' in script.requests[1].prompt


def test_up_to_sends_only_what_is_before_the_pivot_and_keeps_the_rest_behind() -> None:
    entries, script = make_talk(3), Script()
    outcome = compact_up_to(entries, entries[5].uuid or "", REQUEST, RunPorts(script))
    check_outcome(outcome, entries)
    assert outcome.kind is CompactorKind.UP_TO
    assert script.requests[0].entries == tuple(entries[:5])
    assert "Now add a test" not in str(script.requests[0].body)
    assert outcome.kept == tuple(entries[5:])
    assert list_types(outcome.entries) == ["system", "summary", "assistant", "user", "assistant", "user"]
    assert find_segment(outcome) == PreservedSegment("t-0005", "t-0008", outcome.summary_entry.uuid)
    assert "Work Completed" in outcome.summary.text
    assert "Context for Continuing Work" in outcome.summary.text


def test_a_pivot_inside_a_response_moves_back_to_its_first_line() -> None:
    talk = Talk()
    talk.say("look at both")
    talk.answer("m1", text("I will."))
    talk.answer("m1", tool_request("a"))
    talk.say([result("a")])
    talk.answer("m1", tool_request("b"))
    pivot = talk.say([result("b")])
    talk.answer("m2", text("Both are fine."))
    for compact in (compact_from, compact_up_to):
        outcome = compact(talk.entries, pivot.uuid or "", REQUEST, RunPorts(Script()))
        check_outcome(outcome, talk.entries)
        summarised = outcome.list_uuids(EntryFate.SUMMARISED)
        assert ("t-0000" in summarised) == (compact is compact_up_to)
        assert ("t-0001" in summarised) == (compact is compact_from)


def test_an_earlier_boundary_is_never_kept_but_its_summary_is() -> None:
    talk = Talk()
    talk.say("long ago")
    talk.bound()
    talk.say("go on")
    talk.answer("m1", text("I do."))
    pivot = talk.say("and this")
    outcome = compact_from(talk.entries, pivot.uuid or "", REQUEST, RunPorts(Script()))
    check_outcome(outcome, talk.entries)
    assert list_types(outcome.entries) == ["system", "summary", "user", "assistant", "summary"]
    assert outcome.summary_entry is outcome.entries[-1]


def test_what_an_earlier_compaction_kept_stays_on_the_chain() -> None:
    talk = Talk()
    talk.say("long ago")
    kept = talk.answer("m0", text("An old answer."))
    talk.bound(preservedSegment={"headUuid": kept.uuid, "tailUuid": kept.uuid, "anchorUuid": "t-0003"})
    talk.say("go on")
    pivot = talk.say("and this")
    outcome = compact_from(talk.entries, pivot.uuid or "", REQUEST, RunPorts(Script()))
    check_outcome(outcome, talk.entries)
    assert [message.role for message in flatten(outcome.entries)] == ["user", "assistant", "user"]


def test_relinking_touches_nothing_but_the_lines_own_parent() -> None:
    talk = Talk()
    talk.say("begin")
    quoted = talk.say('{"parentUuid":"t-0000"}')
    nested = talk.add("progress", data={"message": {"parentUuid": "t-0001"}})
    plain = relink_entry(quoted, "new")
    assert plain.raw == (quoted.raw or b"").replace(b'"parentUuid":"t-0000"', b'"parentUuid":"new"', 1)
    assert read_transcript(write_entry(plain)).entries[0].parent_uuid == "new"
    rewritten = read_transcript(write_entry(relink_entry(nested, "new"))).entries[0]
    assert rewritten.parent_uuid == "new"
    assert rewritten.fields["data"] == {"message": {"parentUuid": "t-0001"}}
    assert relink_entry(nested, None).parent_uuid is None


@pytest.mark.parametrize("compact", [compact_from, compact_up_to])
def test_a_pivot_that_the_model_does_not_see_is_refused(compact: object) -> None:
    talk = Talk()
    old = talk.say("long ago")
    talk.bound()
    talk.say("go on")
    for pivot in ("nowhere", old.uuid or ""):
        with pytest.raises(PivotNotFound):
            compact(talk.entries, pivot, REQUEST, RunPorts(Script()))  # type: ignore[operator]


def test_a_side_with_nothing_to_say_is_refused() -> None:
    talk = Talk()
    talk.say("long ago")
    talk.bound()
    first = talk.say("go on")
    last = talk.attach("todo_reminder", "1. tests")
    with pytest.raises(NothingToCompact, match="Before the chosen message"):
        compact_up_to(talk.entries, first.uuid or "", REQUEST, RunPorts(Script()))
    with pytest.raises(NothingToCompact, match="From the chosen message"):
        compact_from(talk.entries, last.uuid or "", REQUEST, RunPorts(Script()))


def test_too_long_from_leaves_kept_messages_out_of_the_request_and_loses_nothing() -> None:
    entries = make_talk(8)
    script = Script([PromptTooLong(200_200, 200_000), summarise_well])
    outcome = compact_from(entries, entries[-3].uuid or "", REQUEST, RunPorts(script))
    check_outcome(outcome, entries)
    assert len(script.requests[1].entries) < len(script.requests[0].entries)
    assert outcome.list_uuids(EntryFate.DROPPED) == ()
    assert "did not fit" not in str(outcome.summary_entry.message)
    assert outcome.kept == tuple(entries[: len(outcome.kept)])


def test_too_long_up_to_keeps_more_behind_the_summary() -> None:
    entries = make_talk(8)
    script = Script([PromptTooLong(200_050, 200_000), summarise_well])
    pivot = entries[-4].uuid or ""
    outcome = compact_up_to(entries, pivot, REQUEST, RunPorts(script))
    check_outcome(outcome, entries)
    assert outcome.kept == tuple(entries[-len(outcome.kept) :])
    assert len(outcome.kept) > 4


@pytest.mark.parametrize("compact", [compact_from, compact_up_to])
def test_a_written_and_reread_outcome_is_measured_without_the_old_usage_of_kept_lines(
    compact: Callable[..., CompactionOutcome],
) -> None:
    talk = Talk()
    talk.say("make the tool faster")
    for number in range(4):
        talk.answer(f"m{number}", tool_request(f"tool{number}"), tokens=150_000)
        talk.say([result(f"tool{number}")])
    outcome = compact(talk.entries, talk.entries[5].uuid or "", REQUEST, RunPorts(Script()))
    written = b"".join(write_entry(entry) for entry in outcome.entries)
    again = slice_context(follow_chain(read_transcript(written).entries))
    assert measure_context(again).tokens == measure_context(read_context(outcome)).tokens < 10_000
