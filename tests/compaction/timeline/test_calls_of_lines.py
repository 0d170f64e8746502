"""Calls from the lines of a transcript alone: one per message id, the last line wins."""

import json
from pathlib import Path

import pytest

from tests.compaction.making import answer, list_calls, make_entry, text, thought, use
from tests.compaction.recorded import each_recorded, read_recorded


def test_lines_of_one_message_are_one_call_and_the_last_wins() -> None:
    found = [
        answer("m1", thought("a"), usage=use(10, 1), timestamp="2026-05-01T10:00:00Z"),
        answer("m2", text("other"), usage=use(30, 7), stop_reason="end_turn"),
        answer("m1", text("b"), usage=use(10, 9), timestamp="2026-05-01T10:00:05Z", stop_reason="end_turn"),
    ]
    first, second = list_calls(found)
    assert (first.call_id, first.usage.output_tokens, first.line_count) == ("m1", 9, 2)
    assert first.started_at is not None
    assert first.ended_at is not None
    assert (first.ended_at - first.started_at).total_seconds() == 5
    assert (second.call_id, second.model) == ("m2", "claude-opus-4-5-20251101")


def test_synthetic_answers_and_nested_messages_are_no_calls() -> None:
    nested = {"type": "assistant", "message": {"id": "m9", "usage": use(), "content": []}}
    found = [
        answer("m0", text("error"), usage=use(0, 0), model="<synthetic>"),
        answer("m1", text("no usage")),
        make_entry("progress", data={"type": "agent_progress", "message": nested}),
        make_entry("user", message={"id": "m2", "usage": use()}),
    ]
    assert list_calls(found) == ()


def test_a_response_without_an_id_goes_by_its_request_and_then_by_its_line() -> None:
    found = [
        answer(None, usage=use(), requestId="r1"),
        answer(None, usage=use(), requestId="r1"),
        answer(None, usage=use(), uuid="u", timestamp="2026-05-01T10:00:05Z"),
    ]
    assert [call.call_id for call in list_calls(found)] == ["r1", "u"]


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
    calls = list_calls(read_recorded(path).entries)
    counted = count_independently(path.read_bytes())
    assert sorted(call.call_id for call in calls) == sorted(counted)
    for call in calls:
        usage, (*prompt, output_tokens) = call.usage, counted[call.call_id]
        assert [usage.input_tokens, usage.cache_creation_tokens, usage.cache_read_tokens] == prompt
        assert call.is_output_estimated == (usage.output_tokens > output_tokens)
        assert usage.output_tokens >= output_tokens
