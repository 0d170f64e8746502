"""Calls: one per message id, the last line wins, output estimated where no stop reason was written."""

import json
from pathlib import Path

import pytest

from bench.forecast import HALVES
from bench.output_estimate import KnownCall, list_known_calls
from compaction.llm.table import MODELS
from compaction.transcripts.calls import collect_calls, describe_output_estimate
from tests.compaction.making import answer, make_entry, request, text, thought, use
from tests.compaction.recorded import each_recorded, read_recorded

MEASURED = Path(__file__).resolve().parents[3] / "../shared/data/measured"


def test_lines_of_one_message_are_one_call_and_the_last_wins() -> None:
    found = [
        answer("m1", thought("a"), usage=use(10, 1), timestamp="2026-05-01T10:00:00Z"),
        answer("m2", text("other"), usage=use(30, 7), stop_reason="end_turn"),
        answer("m1", text("b"), usage=use(10, 9), timestamp="2026-05-01T10:00:05Z", stop_reason="end_turn"),
    ]
    first, second = collect_calls(found)
    assert (first.message_id, first.usage.output_tokens, first.line_count) == ("m1", 9, 2)
    assert first.started_at is not None
    assert first.ended_at is not None
    assert (first.ended_at - first.started_at).total_seconds() == 5
    assert (second.message_id, second.model) == ("m2", "claude-opus-4-5-20251101")


@pytest.mark.parametrize(
    ("stop_reason", "reported", "expected"),
    [
        (None, 1, 116),  # 100 + 100 + 4 ("Bash") + 13 ({"command":1}) characters, and 176 for the request: / 3.4
        (None, 116, 116),
        (None, 400, 400),
        ("end_turn", 1, 1),
    ],
)
def test_output_without_a_stop_reason_is_at_least_what_was_written(
    stop_reason: str | None, reported: int, expected: int
) -> None:
    found = [
        answer("m1", thought("x" * 100), usage=use(10, 1)),
        answer(
            "m1", text("y" * 100), request("t", "Bash", command=1), usage=use(10, reported), stop_reason=stop_reason
        ),
    ]
    (call,) = collect_calls(found)
    assert (call.output_tokens, call.is_output_estimated) == (expected, expected > reported)
    assert call.counted_usage.output_tokens == expected
    assert call.usage.output_tokens == reported


@pytest.mark.parametrize(
    ("family", "words"),
    [
        ("claude-opus-4-5", "On 71 recorded calls of this model the estimate was 97% of the actual total."),
        ("claude-sonnet-4-5", "Not verified for this model: checked on only 4 calls."),
        ("claude-opus-5-5", "Not verified for this model."),
        ("no model on record", "Not verified for this model."),
    ],
)
def test_an_estimate_says_how_far_it_is_proven(family: str, words: str) -> None:
    sentence = describe_output_estimate(family)
    assert words in sentence
    assert sentence.endswith("A lower bound if thinking is hidden.")


@pytest.mark.recorded_data
@pytest.mark.skipif(not MEASURED.is_dir(), reason="the measured transcripts are not beside this checkout")
def test_table_holds_what_the_checking_half_of_recorded_calls_gives() -> None:
    calls = [call for call in list_known_calls([MEASURED]) if not call.has_hidden_thinking]
    sessions = {half: {call.session_id for call in calls if call.half == half} for half in HALVES}
    assert not sessions[HALVES[0]] & sessions[HALVES[1]]
    measured: dict[str, list[KnownCall]] = {}
    for call in calls:
        if call.half == HALVES[1]:
            measured.setdefault(call.family, []).append(call)
    in_table = {name: model.checked_output for name, model in MODELS.items() if model.checked_output}
    assert in_table == {
        family: (len(found), round(sum(call.estimate for call in found) / sum(call.truth for call in found), 2))
        for family, found in measured.items()
    }


def test_synthetic_answers_and_nested_messages_are_no_calls() -> None:
    nested = {"type": "assistant", "message": {"id": "m9", "usage": use(), "content": []}}
    found = [
        answer("m0", text("error"), usage=use(0, 0), model="<synthetic>"),
        answer("m1", text("no usage")),
        make_entry("progress", data={"type": "agent_progress", "message": nested}),
        make_entry("user", message={"id": "m2", "usage": use()}),
    ]
    assert collect_calls(found) == ()


def test_a_response_without_an_id_goes_by_its_request_and_then_by_its_line() -> None:
    found = [
        answer(None, usage=use(), requestId="r1"),
        answer(None, usage=use(), requestId="r1"),
        answer(None, usage=use(), uuid="u"),
    ]
    assert [call.message_id for call in collect_calls(found)] == ["r1", "u"]


def count_independently(data: bytes) -> dict[str, tuple[int, ...]]:
    """Another way to the same numbers: plain json over lines, a later line overwrites an earlier one."""
    counted: dict[str, tuple[int, ...]] = {}
    for line in data.splitlines():
        fields = json.loads(line)
        if fields["type"] != "assistant" or fields["message"]["model"] == "<synthetic>":
            continue
        usage = fields["message"]["usage"]
        names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
        counted[fields["message"]["id"]] = tuple(usage[name] for name in names)
    return counted


@each_recorded()
@pytest.mark.recorded_data
def test_recorded_calls_agree_with_an_independent_count(path: Path) -> None:
    calls = collect_calls(read_recorded(path).entries)
    found = {
        call.message_id: (
            call.usage.input_tokens,
            call.usage.cache_creation_tokens,
            call.usage.cache_read_tokens,
            call.usage.output_tokens,
        )
        for call in calls
    }
    assert found == count_independently(path.read_bytes())
    assert len(calls) == len(found)
