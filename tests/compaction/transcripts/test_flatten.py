"""Flattening gives a valid API conversation, whatever the entries are."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Block, Entry, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from compaction.transcripts.flatten import HEAD_TEXT, NO_RESULT_TEXT, ApiMessage, flatten
from tests.compaction.making import answer, make_entry, request, result, say, text, thought
from tests.compaction.recorded import each_recorded, read_recorded


def assert_valid(messages: tuple[ApiMessage, ...]) -> None:
    """The rules of the Messages API that flatten promises."""
    owed: list[str] = []
    for index, message in enumerate(messages):
        assert message.role == ("user" if index % 2 == 0 else "assistant")
        assert message.content
        results = [block.tool_use_id for block in message.content if isinstance(block, ToolResultBlock)]
        assert results == owed
        assert all(isinstance(block, ToolResultBlock) for block in message.content[: len(results)])
        owed = [block.id for block in message.content if isinstance(block, ToolUseBlock)]
        assert not owed or message.role == "assistant"
        for block in message.content:
            assert not isinstance(block, TextBlock) or block.text.strip()
            assert not isinstance(block, ThinkingBlock) or (message.role == "assistant" and block.signature)
    assert not owed
    uses = [block.id for message in messages for block in message.content if isinstance(block, ToolUseBlock)]
    assert len(uses) == len(set(uses))


ids = st.sampled_from(["t1", "t2", "t3"])
blocks = st.one_of(
    st.sampled_from(["", " ", "hello", "more"]).map(text),
    st.sampled_from(["sig", ""]).map(lambda signature: thought("hm", signature)),
    ids.map(request),
    ids.map(result),
    st.just({"type": "image", "source": {"type": "base64", "data": ""}}),
    st.just({"type": "server_tool_use", "id": "s"}),
    st.sampled_from([{}, {"type": "tool_use"}, 5, "bare"]),
)
contents = st.lists(blocks, max_size=4)
entries = st.one_of(
    st.builds(say, contents | st.sampled_from(["words", ""])),
    st.builds(lambda name, found: answer(name, *found), st.sampled_from(["m1", "m2", "m3", None]), contents),
    st.just(answer("e", text("error"), model="<synthetic>", isApiErrorMessage=True)),
    st.sampled_from(["", "note"]).map(lambda words: make_entry("attachment", attachment={"type": "x", "text": words})),
    st.sampled_from(["progress", "system", "summary"]).map(make_entry),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(entries, max_size=14))
def test_any_entries_make_a_valid_conversation(found: list[Entry]) -> None:
    assert_valid(flatten(found))


@settings(max_examples=200, deadline=None)
@given(st.lists(entries, max_size=14))
def test_no_recorded_pair_is_split_and_no_request_is_lost(found: list[Entry]) -> None:
    messages = flatten(found)
    said = [(e.type, block) for e in found if e.message and not e.is_api_error for block in e.message.content]
    asked = {block.id for role, block in said if role == "assistant" and isinstance(block, ToolUseBlock)}
    given_ids = {block.tool_use_id for role, block in said if role == "user" and isinstance(block, ToolResultBlock)}
    answers = [block for message in messages for block in message.content if isinstance(block, ToolResultBlock)]
    assert {block.tool_use_id for block in answers} == asked
    assert {block.tool_use_id for block in answers if block.text != NO_RESULT_TEXT} == asked & given_ids


@each_recorded()
@pytest.mark.recorded_data
def test_recorded_contexts_make_valid_conversations(path: Path) -> None:
    chain = follow_chain(read_recorded(path).entries)
    for found in (chain, slice_context(chain).entries):
        messages = flatten(found)
        assert messages
        assert_valid(messages)


def shown(*found: Entry) -> list[tuple[str, list[object]]]:
    return [(message.role, [_show(block) for block in message.content]) for message in flatten(found)]


def _show(block: Block) -> object:
    match block:
        case TextBlock():
            return block.text
        case ToolUseBlock():
            return f"use {block.id}"
        case ToolResultBlock():
            return f"result {block.tool_use_id}: {block.text}"
        case _:
            return block.type


def test_lines_of_one_response_become_one_message_across_their_results() -> None:
    conversation = shown(
        say("go"),
        answer("m1", thought("hm")),
        answer("m1", request("t1")),
        say([result("t1", "one")]),
        answer("m1", request("t2")),
        say([result("t2", "two")]),
        say("and now?", isMeta=True),
    )
    assert conversation == [
        ("user", ["go"]),
        ("assistant", ["thinking", "use t1", "use t2"]),
        ("user", ["result t1: one", "result t2: two", "and now?"]),
    ]


def test_meta_and_summary_messages_stay() -> None:
    summary = say("This session is continued.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    assert shown(summary, say("caveat", isMeta=True)) == [("user", ["This session is continued.", "caveat"])]


def test_only_trailing_thinking_goes() -> None:
    conversation = shown(
        say("a"), answer("m1", thought("x")), say("b"), answer("m2", text("c")), answer("m3", thought("y"))
    )
    assert conversation == [("user", ["a"]), ("assistant", ["thinking"]), ("user", ["b"]), ("assistant", ["c"])]


def test_synthetic_errors_progress_and_system_lines_go() -> None:
    error = answer("e", text("API Error"), model="<synthetic>", isApiErrorMessage=True)
    system = make_entry("system", subtype="local_command", content="x")
    assert shown(say("a"), error, system, make_entry("progress"), say("b")) == [("user", ["a", "b"])]


def test_an_orphan_result_goes_and_a_missing_one_is_said() -> None:
    conversation = shown(say([result("gone")]), answer("m1", request("t1")), answer("m2", text("on")))
    assert conversation == [
        ("user", [HEAD_TEXT]),
        ("assistant", ["use t1", "on"]),
        ("user", [f"result t1: {NO_RESULT_TEXT}"]),
    ]


def test_a_late_result_moves_behind_its_request() -> None:
    conversation = shown(
        say("a"), answer("m1", request("t1")), say("b"), answer("m2", text("c")), say([result("t1", "late"), text("d")])
    )
    assert conversation == [
        ("user", ["a"]),
        ("assistant", ["use t1"]),
        ("user", ["result t1: late", "b"]),
        ("assistant", ["c"]),
        ("user", ["d"]),
    ]


def test_attachments_speak_as_the_user_and_silent_ones_do_not() -> None:
    rendered = make_entry(
        "attachment", attachment={"type": "date"}, rendered=[{"content": "Today."}], renderedRole="system"
    )
    file = {"type": "file", "filename": "/a.py", "content": {"type": "text", "file": {"content": "print()"}}}
    conversation = shown(
        say("go"),
        rendered,
        make_entry("attachment", attachment=file),
        make_entry("attachment", attachment={"type": "prompt_snapshot", "systemPrompt": ["secret"]}),
        make_entry("attachment", attachment={"type": "hook_success", "content": "", "stdout": "log"}),
        make_entry("attachment", attachment={"type": "queued_command", "prompt": "also this"}),
        make_entry("attachment", attachment={"type": "hook_additional_context", "content": ["one", "two"]}),
    )
    assert conversation == [("user", ["go", "Today.", "/a.py\nprint()", "also this", "one\ntwo"])]


def test_the_api_form_has_only_what_the_api_takes() -> None:
    source = {"type": "base64", "data": "AA=="}
    found = flatten([
        say([text("see"), {"type": "image", "source": source}], slug="s"),
        answer("m1", thought("hm"), request("t1", "Bash", command="ls") | {"caller": {"type": "direct"}}),
        say([result("t1", [text("a"), {"type": "image", "source": source}], is_error=True)], toolUseResult={"x": 1}),
    ])  # fmt: skip
    assert [message.to_api() for message in found] == [
        {"role": "user", "content": [text("see"), {"type": "image", "source": source}]},
        {"role": "assistant", "content": [thought("hm"), request("t1", "Bash", command="ls")]},
        {"role": "user", "content": [result("t1", [text("a"), {"type": "image", "source": source}], is_error=True)]},
    ]
    assert flatten([]) == ()
