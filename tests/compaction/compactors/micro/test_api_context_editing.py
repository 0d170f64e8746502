"""The API's own context editing: what is asked for, and what is read back."""

import pytest

from compaction.compactors.micro.api_context_editing import (
    AppliedEdit,
    build_context_management,
    count_fitting_uses,
    read_applied_edits,
)
from tests.compaction.compactors.talks import Talk, make_talk
from tests.compaction.making import request, result

TOOLS = ["Read", "Bash", "Edit", "Write", "Task"]


def list_edits(idle: float | None, *, has_thinking: bool = True, tools: list[str] = TOOLS) -> list[dict[str, object]]:
    built = build_context_management(make_talk(6, size=40_000), tools, idle_seconds=idle, has_thinking=has_thinking)
    edits = built["edits"] if built else []
    assert isinstance(edits, list)
    return edits


@pytest.mark.parametrize(
    ("idle", "keep"),
    [
        (None, "all"),
        (10, "all"),
        (3_600, "all"),
        (3_601, {"type": "thinking_turns", "value": 1}),
    ],
)
def test_thinking_comes_first_and_goes_only_after_an_idle_hour(idle: float | None, keep: object) -> None:
    assert list_edits(idle)[0] == {"type": "clear_thinking_20251015", "keep": keep}


def test_read_like_results_and_write_like_inputs_are_cleared_apart() -> None:
    reads, writes = list_edits(None)[1:]
    assert reads == {
        "type": "clear_tool_uses_20250919",
        "trigger": {"type": "input_tokens", "value": 180_000},
        "keep": {"type": "tool_uses", "value": 4},
        "clear_at_least": {"type": "input_tokens", "value": 140_000},
        "exclude_tools": ["Edit", "Task", "Write"],
    }
    assert writes["exclude_tools"] == ["Bash", "Read", "Task"]
    assert writes["clear_tool_inputs"] == ["Edit", "Write"]


def test_what_a_request_has_not_is_not_asked_for() -> None:
    assert list_edits(None, has_thinking=False, tools=["Task"]) == []
    assert [edit["type"] for edit in list_edits(None, has_thinking=False, tools=["Write"])] == [
        "clear_tool_uses_20250919"
    ]


@pytest.mark.parametrize(
    ("sizes", "count"), [([], 1), ([50_000], 1), ([10_000] * 9, 4), ([90_000, 39_999, 1], 2), ([90_000, 39_999, 2], 1)]
)
def test_the_token_target_becomes_a_number_of_newest_uses(sizes: list[int], count: int) -> None:
    assert count_fitting_uses(sizes, 40_000) == count


def test_writes_are_measured_by_what_is_sent() -> None:
    talk = Talk()
    talk.say("begin")
    for number in range(6):
        talk.answer(f"m{number}", request(f"w{number}", "Write", content="x" * 80_000))
        talk.say([result(f"w{number}", "ok")])
    built = build_context_management(talk.entries, ["Write"], idle_seconds=None, has_thinking=False)
    assert built is not None
    assert built["edits"][0]["keep"] == {"type": "tool_uses", "value": 1}  # type: ignore[index]


def test_applied_edits_are_read_back_and_nonsense_is_passed_over() -> None:
    response = {
        "context_management": {
            "applied_edits": [
                {"type": "clear_tool_uses_20250919", "cleared_input_tokens": 50_000, "cleared_tool_uses": 8},
                {"type": "clear_thinking_20251015", "cleared_input_tokens": 900, "cleared_thinking_turns": 3},
                {"cleared_input_tokens": 5},
                "words",
                {"type": "newer", "cleared_input_tokens": -1},
            ]
        }
    }
    assert read_applied_edits(response) == (
        AppliedEdit("clear_tool_uses_20250919", 50_000, 8, 0),
        AppliedEdit("clear_thinking_20251015", 900, 0, 3),
        AppliedEdit("newer"),
    )
    assert read_applied_edits({}) == ()
    assert read_applied_edits({"context_management": None}) == ()
