from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.cache.prefix_diff import ChangeKind, PrefixDiff, diff_fingerprints, diff_requests
from compaction.cache.text_diff import DiffMark
from compaction.prompt.fingerprint import fingerprint_request
from compaction.prompt.request import PromptLevel, PromptMessage, PromptRequest, read_request
from tests.compaction.cache.builders import body, digest, text, tool


def _ask(*messages: str, **fields: Any) -> PromptRequest:
    return read_request(body(*messages, **fields))


def _list(diff: PrefixDiff) -> list[tuple[str, str, ChangeKind]]:
    return [(change.level.value, change.name, change.kind) for change in diff.changes]


TOOLS = body()["tools"]

CASES: list[tuple[str, PromptRequest, list[tuple[str, str, ChangeKind]]]] = [
    ("tool added", _ask(tools=[*TOOLS, tool("mcp__web__get")]), [("tools", "mcp__web__get", ChangeKind.ADDED)]),
    ("tool removed", _ask(tools=TOOLS[1:]), [("tools", "Bash", ChangeKind.REMOVED)]),
    ("tool changed", _ask(tools=[tool("Bash", "runs it"), *TOOLS[1:]]), [("tools", "Bash", ChangeKind.CHANGED)]),
    (
        "tools reordered", _ask(tools=[TOOLS[1], TOOLS[0], TOOLS[2]]),
        [("tools", "Read", ChangeKind.REORDERED), ("tools", "Bash", ChangeKind.REORDERED)],
    ),
    ("deferred tool", _ask(tools=[*TOOLS, tool("Late", defer_loading=True)]), []),
    (
        "system changed",
        _ask(system=[*body()["system"][:2], text("x", marked="5m")]),
        [("system", "text", ChangeKind.CHANGED)],
    ),
    ("system added", _ask(system=[*body()["system"], text("x")]), [("system", "text", ChangeKind.ADDED)]),
    ("message rewritten", _ask("first prompt", "X", "second prompt"), [("messages", "text", ChangeKind.CHANGED)]),
    ("message removed", _ask("first prompt", "first answer"), [("messages", "user", ChangeKind.REMOVED)]),
    ("appended", _ask("first prompt", "first answer", "second prompt", "more"), []),
]  # fmt: skip


@pytest.mark.parametrize(("why", "current", "expected"), CASES, ids=[case[0] for case in CASES])
def test_changed_blocks_are_named(
    why: str, current: PromptRequest, expected: list[tuple[str, str, ChangeKind]]
) -> None:
    diff = diff_requests(_ask(), current)
    assert _list(diff) == expected
    assert (diff.first is None) == (not expected)


def test_inserted_message_is_told_from_a_rewritten_one() -> None:
    messages = [{"role": "user", "content": word} for word in ("a", "b", "c", "d")]
    current = [*messages[:1], {"role": "user", "content": "new"}, *messages[1:], {"role": "user", "content": "end"}]
    diff = diff_requests(_ask(messages=messages), _ask(messages=current))
    assert [(change.path, change.kind) for change in diff.changes] == [(("messages", 1), ChangeKind.ADDED)]
    assert diff.appended_messages == 1


def test_first_divergence_names_block_and_character() -> None:
    messages = [
        {"role": "user", "content": [text("same"), text("the old word")]},
        {"role": "user", "content": "x" * 400},
    ]
    other = [{"role": "user", "content": [text("same"), text("the new word")]}, {"role": "user", "content": "x" * 400}]
    diff = diff_requests(_ask(messages=messages), _ask(messages=other), cached_tokens=10_000)
    assert diff.first is not None
    assert (diff.first.level, diff.first.path, diff.first.character) == (
        PromptLevel.MESSAGES, ("messages", 0, "content", 1), 4,
    )  # fmt: skip
    assert 0 < diff.lost_tokens < 1_000


def test_changed_tool_says_what_changed_and_whose_it_is() -> None:
    changed = [*TOOLS[:2], tool("mcp__mail__send", "sends it", input_schema={"type": "object"})]
    diff = diff_requests(_ask(), _ask(tools=changed), cached_tokens=10_000)
    (change,) = diff.changes
    assert (change.parts, change.server) == (("description", "schema"), "mail")
    assert diff.first is not None
    assert diff.first.level is PromptLevel.TOOLS
    assert diff.lost_tokens > 9_000
    other = diff_requests(_ask(), _ask(tools=[tool("Bash", strict=True), *TOOLS[1:]]))
    assert other.changes[0].parts == ("other fields",)


def test_line_and_word_diff_of_a_changed_block() -> None:
    old, new = (text(f"one\ntwo\nit is {hour} now\nlast") for hour in ("nine", "ten"))
    diff = diff_requests(_ask(system=[old]), _ask(system=[new]))
    lines = diff.changes[0].diff
    assert lines is not None
    assert lines.first_character == len("one\ntwo\nit is ")
    assert [(line.mark, line.text) for line in lines.lines] == [
        (DiffMark.SAME, "one"), (DiffMark.SAME, "two"), (DiffMark.REMOVED, "it is nine now"),
        (DiffMark.ADDED, "it is ten now"),
        (DiffMark.SAME, "last"),
    ]  # fmt: skip
    assert [word for mark, word in lines.lines[3].parts if mark is DiffMark.ADDED] == ["ten"]


def _result(content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": content}]}]


def _use(**arguments: Any) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Read", "input": arguments}]}]


SPELLED = [
    ("tool result", _result("one\ntwo"), _result("one\n2"), "2"),
    ("tool result in parts", _result([text("one"), text("two")]), _result([text("one"), text("2"), "x"]), "2"),
    ("tool request", _use(path="/a"), _use(path="/b"), '"input":{"path":"/b"}}'),
    ("thinking", [{"role": "assistant", "content": [{"type": "thinking", "thinking": "so"}]}],
     [{"role": "assistant", "content": [{"type": "thinking", "thinking": "no"}]}], "no"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "old", "new", "line"), SPELLED, ids=[case[0] for case in SPELLED])
def test_blocks_of_every_kind_are_spelled_for_a_reader(why: str, old: list[Any], new: list[Any], line: str) -> None:
    (change,) = diff_requests(_ask(messages=old), _ask(messages=new)).changes
    assert change.diff is not None
    assert line in [shown.text for shown in change.diff.lines if shown.mark is DiffMark.ADDED]


def test_only_the_changed_part_of_a_tool_is_shown() -> None:
    schema = {"type": "object", "properties": {"where": {"type": "string"}}}
    (change,) = diff_requests(_ask(), _ask(tools=[tool("Bash", input_schema=schema), *TOOLS[1:]])).changes
    assert change.parts == ("schema",)
    assert "does it" not in (change.after or "")
    assert "where" in (change.after or "")


def test_same_words_in_another_role_are_another_message() -> None:
    old, new = ([{"role": role, "content": "a"}, {"role": "user", "content": "b"}] for role in ("user", "assistant"))
    (change,) = diff_requests(_ask(messages=old), _ask(messages=new)).changes
    assert (change.path, change.name, change.kind) == (("messages", 0), "assistant", ChangeKind.CHANGED)


def test_marker_that_moves_is_no_change() -> None:
    messages = [{"role": "user", "content": [text("a", marked="5m")]}, {"role": "assistant", "content": [text("b")]}]
    moved = [{"role": "user", "content": "a"}, {"role": "assistant", "content": [text("b", marked="5m")]}]
    diff = diff_requests(_ask(messages=messages), _ask(messages=moved))
    assert (diff.changes, diff.settings) == ((), ())
    assert diff.moved_markers == ((("messages", 0, "content", 0), ("messages", 1, "content", 0)),)


def test_settings_that_differ_are_named() -> None:
    diff = diff_requests(_ask(), _ask(model="claude-opus-5", speed="fast", output_config={"effort": "low"}))
    assert diff.settings == ("model", "effort", "speed")


def test_withheld_text_leaves_names_sizes_and_positions() -> None:
    current = _ask("first prompt", "my secret", "second prompt", tools=[tool("Bash", "my secret"), *TOOLS[1:]])
    shown = diff_requests(_ask(), current, show_text=False)
    printed = diff_fingerprints(fingerprint_request(_ask(), digest), fingerprint_request(current, digest))
    for diff in (shown, printed):
        assert diff.is_text_withheld
        assert "secret" not in repr(diff)
        assert all(change.diff is None and change.before is None for change in diff.changes)
        assert diff.changes[0].parts == ("description",)
        assert diff.changes[0].after_characters == diff.changes[0].before_characters + 2
        assert [change.path[:2] for change in diff.changes] == [("tools", 0), ("messages", 1)]
    assert printed.first is not None
    assert printed.first.character is None


def test_opaque_messages_are_compared_by_their_hashes() -> None:
    before = PromptRequest("m", messages=tuple(PromptMessage("", opaque_hash=name) for name in "abc"))
    after = replace(before, messages=tuple(PromptMessage("", opaque_hash=name) for name in "aXcd"))
    diff = diff_requests(before, after)
    assert [(change.path, change.kind) for change in diff.changes] == [(("messages", 1), ChangeKind.CHANGED)]
    assert diff.changes[0].diff is None
    mixed = diff_requests(before, _ask())
    assert not mixed.are_messages_comparable
    assert not [change for change in mixed.changes if change.level is PromptLevel.MESSAGES]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from("abcd"), max_size=8), st.lists(st.sampled_from("abcd"), max_size=8))
def test_nothing_is_reported_for_equal_prefixes_and_something_for_all_others(old: list[str], new: list[str]) -> None:
    def ask(words: list[str]) -> PromptRequest:
        return _ask(messages=[{"role": "user", "content": word} for word in words])

    diff = diff_requests(ask(old), ask(new))
    is_prefix = new[: len(old)] == old
    assert (diff.first is None) == is_prefix
    assert (not diff.changes) == is_prefix
    if is_prefix:
        assert diff.appended_messages == len(new) - len(old)
