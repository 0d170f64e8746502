from typing import Any

import pytest

from compaction.cache.causes import CAUSES, Cause, Grade
from compaction.cache.diff_causes import find_diff_causes
from compaction.cache.prefix_diff import diff_fingerprints
from compaction.prompt.fingerprint import Fingerprint
from compaction.prompt.request import PromptLevel
from tests.compaction.cache.builders import body, prints, text, tool

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}


def _marked_system(ttl: str = "5m", **fields: Any) -> list[dict[str, Any]]:
    block = text("Work with care. " * 400, marked=ttl)
    block["cache_control"].update(fields)
    return [text("You are an agent.", marked=ttl), block]


def _documents(*, cited: bool) -> list[dict[str, Any]]:
    document = {"type": "document", "source": {"type": "text", "data": "d"}, "citations": {"enabled": cited}}
    return [{"role": "user", "content": [document, text("go", marked="5m")]}]


_BLOCKS = [text(f"part {number}") for number in range(25)]
_LONG = [
    {"role": "user", "content": "first prompt"},
    {"role": "assistant", "content": "first answer"},
    {"role": "user", "content": "second prompt"},
    {"role": "user", "content": [*_BLOCKS, text("end", marked="5m")]},
]
_WITH_SYSTEM = [*body()["messages"], {"role": "system", "content": "mind the time"}]

CASES: list[tuple[Cause, Fingerprint, Fingerprint, str]] = [
    (Cause.MODEL_CHANGED, prints(), prints(model="claude-sonnet-5-5"), "claude-opus-5-5 -> claude-sonnet-5-5"),
    (Cause.TOOLS_CHANGED, prints(), prints(tools=[*body()["tools"], tool("mcp__web__get")]), "MCP server added: web"),
    (Cause.TOOLS_CHANGED, prints(), prints(tools=body()["tools"][:2]), "+0/-1 tools"),
    (
        Cause.TOOLS_CHANGED, prints(), prints(tools=[tool("Bash", "runs it"), *body()["tools"][1:]]),
        "new description: Bash",
    ),
    (
        Cause.TOOLS_CHANGED, prints(), prints(tools=[tool("Bash", input_schema={}), *body()["tools"][1:]]),
        "new schema: Bash",
    ),
    (Cause.TOOLS_REORDERED, prints(), prints(tools=body()["tools"][::-1]), "mcp__mail__send where Bash stood"),
    (Cause.SYSTEM_CHANGED, prints(), prints(system=[*body()["system"][:2], text("Hurry.", marked="5m")]), "block 1"),
    (Cause.WEB_SEARCH_TOGGLED, prints(), prints(tools=[*body()["tools"], SEARCH]), "on"),
    (
        Cause.CITATIONS_TOGGLED, prints(messages=_documents(cited=False)), prints(messages=_documents(cited=True)),
        "on",
    ),
    (Cause.SPEED_CHANGED, prints(), prints(speed="fast"), "default -> fast"),
    (Cause.CACHING_OFF, prints(), prints(system="You are.", messages=[{"role": "user", "content": "x"}]), "none now"),
    (Cause.EFFORT_CHANGED, prints(), prints(output_config={"effort": "low"}), "medium -> low"),
    (Cause.THINKING_CHANGED, prints(), prints(thinking={"type": "enabled", "budget_tokens": 9}), "another value"),
    (
        Cause.TTL_TIER_CHANGED, prints(), prints(system=_marked_system("1h")), "5m -> 1h+5m",
    ),
    (
        Cause.MARKERS_CHANGED, prints(), prints(system=[text("You are an agent."), _marked_system()[1]]),
        "2 cache breakpoints before, 1",
    ),
    (Cause.STRATEGY_CHANGED, prints(), prints(system=_marked_system(scope="global")), "default -> global"),
    (Cause.STRATEGY_CHANGED, prints(), prints(state={"strategy": "tool_based"}), "default -> tool_based"),
    (Cause.AUTO_MODE_CHANGED, prints(), prints(state={"auto_mode": "on"}), "off -> on"),
    (Cause.OVERAGE_CHANGED, prints(), prints(state={"overage": "on"}), "off -> on"),
    (Cause.CACHED_MICRO_CHANGED, prints(), prints(state={"cached_micro": "toolu_1"}), "+1/-0"),
    (
        Cause.CACHED_MICRO_CHANGED, prints(state={"cached_micro": "toolu_1\ntoolu_2"}),
        prints(state={"cached_micro": "toolu_2\ntoolu_3\ntoolu_4"}), "+2/-1 deleted results",
    ),
    (Cause.BETAS_CHANGED, prints(betas=("a",)), prints(betas=("b",)), "+b; -a"),
    (Cause.EXTRA_BODY_CHANGED, prints(), prints(safeguards={"on": True}), "set"),
    (
        Cause.CONTEXT_EDITING_CHANGED, prints(), prints(context_management={"edits": [{"type": "clear_thinking"}]}),
        "set",
    ),
    (Cause.TOOL_CHOICE_CHANGED, prints(), prints(tool_choice={"type": "any"}), "set"),
    (Cause.MESSAGES_REWRITTEN, prints("a", "b", "c"), prints("a", "X", "c", "d"), "message 1 of 3"),
    (Cause.MESSAGES_REWRITTEN, prints("a", "b", "c"), prints("a", "b"), "1 message removed from the end"),
    (Cause.IMAGES_CHANGED, prints(), prints(messages=[*body()["messages"], {"role": "user", "content": [IMAGE]}]), "1"),
    (
        Cause.SYSTEM_MESSAGE_ADDED, prints(model="claude-sonnet-5"),
        prints(model="claude-sonnet-5", messages=_WITH_SYSTEM), "message 3",
    ),
    (Cause.LOOKBACK_EXCEEDED, prints(), prints(messages=_LONG), "26 blocks"),
    (
        Cause.DEFERRED_TOOLS_CHANGED, prints(), prints(tools=[*body()["tools"], tool("Fetch", defer_loading=True)]),
        "Fetch",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "previous", "current", "detail"), CASES, ids=lambda value: str(value)[:40])
def test_change_between_two_requests_is_named(
    cause: Cause, previous: Fingerprint, current: Fingerprint, detail: str
) -> None:
    found = {change.cause: change for change in find_diff_causes(previous, current)}
    assert cause in found
    assert detail in found[cause].detail
    assert Grade.REQUEST in CAUSES[cause].grades


def test_every_cause_that_requests_can_show_is_in_the_table() -> None:
    shown = {cause for cause, note in CAUSES.items() if Grade.REQUEST in note.grades}
    assert shown == {case[0] for case in CASES}


SAME = [
    ("appended messages", prints("a", "b", "c"), prints("a", "b", "c", "d", "e")),
    ("string against block list", prints("a", "b"), prints(messages=[
        {"role": "user", "content": [text("a")]}, {"role": "assistant", "content": [text("b", marked="5m")]}])),
    ("another version stamp", prints(), prints(system=[
        text("x-anthropic-billing-header: cc_version=2.1.326.fff;"), *body()["system"][1:]])),
    ("switches said to be off", prints(), prints(state={"auto_mode": "off", "overage": "off", "strategy": None})),
    ("default said outright", prints(output_config={}), prints(output_config={"effort": "high"}, speed="standard")),
    ("automatic tool choice said outright", prints(), prints(tool_choice={"type": "auto"})),
    ("other people and limits", prints(), prints(metadata={"user_id": "u"}, max_tokens=1, stream=True)),
    ("order of beta headers", prints(betas=("a", "b")), prints(betas=("b", "a"))),
    ("a system message where the model keeps its cache", prints(), prints(messages=_WITH_SYSTEM)),
]  # fmt: skip


@pytest.mark.parametrize(("why", "previous", "current"), SAME, ids=[case[0] for case in SAME])
def test_what_leaves_the_prefix_alone_is_no_change(why: str, previous: Fingerprint, current: Fingerprint) -> None:
    assert find_diff_causes(previous, current) == ()


def test_order_of_keys_is_part_of_the_prompt() -> None:
    swapped = {"input_schema": tool("Bash")["input_schema"], "name": "Bash", "description": "does it"}
    causes = [change.cause for change in find_diff_causes(prints(), prints(tools=[swapped, *body()["tools"][1:]]))]
    assert causes == [Cause.TOOLS_CHANGED]


def test_several_changes_come_in_the_order_of_the_prefix() -> None:
    changes = find_diff_causes(prints("a", "b"), prints("X", "b", model="claude-opus-5", tools=[], speed="fast"))
    assert [change.cause for change in changes] == [
        Cause.MODEL_CHANGED, Cause.TOOLS_CHANGED, Cause.SPEED_CHANGED, Cause.MESSAGES_REWRITTEN,
    ]  # fmt: skip
    assert changes[1].reach.worst.level is PromptLevel.TOOLS


def test_first_divergent_message_is_found_only_where_lists_can_be_compared() -> None:
    assert diff_fingerprints(prints("a", "b", "c"), prints("a", "b", "X")).find_first_index(PromptLevel.MESSAGES) == 2
    assert diff_fingerprints(prints("a", "b"), prints("a", "b", "c")).find_first_index(PromptLevel.MESSAGES) is None
