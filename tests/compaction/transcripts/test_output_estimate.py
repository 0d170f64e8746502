"""The estimate of output where no stop reason was written, and how far it is proven."""

from pathlib import Path

import pytest

from bench.forecast import HALVES
from bench.output_estimate import KnownCall, list_known_calls
from compaction.context.tokens import measure_context
from compaction.llm.table import MODELS
from compaction.transcripts.output_estimate import describe_output_estimate
from tests.compaction.making import answer, list_calls, request, text, thought, use

MEASURED = Path(__file__).resolve().parents[3] / "../shared/data/measured"


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
    (call,) = list_calls(found)
    assert (call.usage.output_tokens, call.is_output_estimated) == (expected, expected > reported)
    assert measure_context(found).tokens == 10 + expected


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
