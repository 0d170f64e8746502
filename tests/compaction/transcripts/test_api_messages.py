"""Messages of a request through the engine and back: what did not change comes back as it was sent."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from compaction.compactors.micro.clearing import clear_results, list_clearable
from compaction.context.tokens import measure_context
from compaction.transcripts.api_messages import message_uuid, parse_message_index, read_messages, write_messages
from compaction.transcripts.client_protocol import CLEARED_RESULT
from compaction.transcripts.entries import Entry, Message, TextBlock, Usage

MARKED = {"type": "text", "text": "Look.", "cache_control": {"type": "ephemeral"}}
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": [MARKED]},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": "a.py"}}]},
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "x" * 400, "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "Go on."},
        ],
    },
    {"role": "assistant", "content": "Done."},
]

_TEXT = st.text(max_size=20)
_BLOCK = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, _TEXT),
    st.builds(lambda text: {"type": "tool_result", "tool_use_id": "t1", "content": text}, _TEXT),
    st.builds(lambda text: {"type": "tool_use", "id": "t1", "name": "Read", "input": {"path": text}}, _TEXT),
    st.builds(lambda text: {"type": "server_tool_use", "id": text, "odd": [1, None, {"a": text}]}, _TEXT),
    st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "s"}, _TEXT),
)
_MESSAGES = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system"]), "content": _TEXT | st.lists(_BLOCK, max_size=4)}
    ),
    max_size=8,
)


@given(_MESSAGES)
def test_unchanged_messages_come_back_as_they_were(messages: list[dict[str, Any]]) -> None:
    assert write_messages(read_messages(messages), messages) == messages


def test_only_a_cleared_result_changes() -> None:
    entries = read_messages(TALK)
    cleared = clear_results(entries, list_clearable(entries))
    written = write_messages(cleared, TALK)
    block = written[2]["content"][0]  # type: ignore[index]
    assert block["content"] == CLEARED_RESULT
    assert (block["tool_use_id"], block["cache_control"]) == ("t1", {"type": "ephemeral"})
    assert [written[0], written[1], written[3]] == [TALK[0], TALK[1], TALK[3]]
    assert TALK[2]["content"][0]["content"] == "x" * 400


def test_entries_of_the_engine_stand_among_them() -> None:
    summary = Entry("user", uuid="s", message=Message("user", (TextBlock("Summary"),)))
    written = write_messages([summary, *read_messages(TALK)[3:]], TALK)
    assert written == [{"role": "user", "content": [{"type": "text", "text": "Summary"}]}, TALK[3]]


def test_usage_of_the_last_answer_measures_what_stands_before_it() -> None:
    usage = Usage(input_tokens=900, output_tokens=100)
    size = measure_context(read_messages([*TALK, {"role": "user", "content": "y" * 40}], model="m", usage=usage))
    assert (size.measured_tokens, size.estimated_tokens) == (1_000, 14)


def test_names_of_messages_lead_back_to_them() -> None:
    assert parse_message_index(message_uuid(12)) == 12
    assert [parse_message_index(uuid) for uuid in ("12", "message-", "message-x", None, "")] == [None] * 5
