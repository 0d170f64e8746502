from typing import Any

import pytest

from compaction.llm.lookup import get_least_cached_tokens
from compaction.prompt.linter import LintRule, lint_request
from compaction.prompt.request import read_request
from compaction.prompt.volatile_text import Volatile, find_volatile_text
from tests.compaction.cache.builders import body, text, tool

LONG = "Work with care. " * 400


def _lint(**fields: Any) -> list[tuple[LintRule, str]]:
    return [(finding.rule, finding.cited) for finding in lint_request(read_request(body(**fields)))]


def _system(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    return [text(LONG, marked="5m"), *blocks]


THOUGHT = {"type": "thinking", "thinking": "hm", "cache_control": {"type": "ephemeral"}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": [text("x", marked="5m")]}

CASES: list[tuple[str, dict[str, Any], list[tuple[LintRule, str]]]] = [
    ("nothing wrong", {"system": _system()}, []),
    ("no markers", {"system": "x", "messages": []}, [(LintRule.NO_MARKERS, "")]),
    ("five markers", {"system": [text(LONG, marked="5m") for _ in range(4)]},
     [(LintRule.TOO_MANY_MARKERS, "messages[2].content[0]")]),
    ("5m before 1h", {"system": _system(text("later", marked="1h"))}, [(LintRule.SHORT_BEFORE_LONG, "system[1]")]),
    ("1h before 5m is fine", {"system": [text(LONG, marked="1h"), text("later", marked="5m")]}, []),
    ("too short", {"system": [text("Hi.", marked="5m"), text(LONG)], "tools": []},
     [(LintRule.BELOW_MINIMUM, "system[0]")]),
    ("thinking", {"system": _system(), "messages": [{"role": "assistant", "content": [THOUGHT]}]},
     [(LintRule.UNCACHEABLE_BLOCK, "messages[0].content[0]")]),
    ("empty text", {"system": _system(text("", marked="5m"))}, [(LintRule.UNCACHEABLE_BLOCK, "system[1]")]),
    ("inside a result", {"system": _system(), "messages": [{"role": "user", "content": [RESULT]}]},
     [(LintRule.UNCACHEABLE_BLOCK, "messages[0].content[0].content[0]")]),
    ("deferred tool", {
        "system": [text(LONG)], "messages": [],
        "tools": [tool("A", LONG), tool("B", defer_loading=True, cache_control={"type": "ephemeral"})],
    }, [(LintRule.UNCACHEABLE_BLOCK, "tools[1]")]),
    ("a time", {"system": [text(LONG + "It is 2026-11-16 09:14.", marked="5m")]},
     [(LintRule.VOLATILE_TEXT, "system[0]")]),
    ("volatile tool", {"system": _system(), "tools": [tool("A", "Session 0e9cf9ea-648a-4b58-8d93-ac26d1e3187a")]},
     [(LintRule.VOLATILE_TEXT, "tools[0]")]),
    ("behind the last marker", {"system": [*_system(), text("It is 09:14:33.")], "messages": []}, []),
    ("in a message", {"system": _system(), "messages": [{"role": "user", "content": [text("09:14:33", marked="5m")]}]},
     []),
]  # fmt: skip


@pytest.mark.parametrize(("why", "fields", "expected"), CASES, ids=[case[0] for case in CASES])
def test_finding_cites_its_block(why: str, fields: dict[str, Any], expected: list[tuple[LintRule, str]]) -> None:
    assert _lint(**fields) == expected


def test_version_stamp_counts_in_the_cited_path() -> None:
    stamp = text("x-anthropic-billing-header: cc_version=2.1.325.abc;")
    assert _lint(system=[stamp, text("Hi.", marked="5m"), text(LONG)], tools=[]) == [
        (LintRule.BELOW_MINIMUM, "system[1]")
    ]


def test_tools_that_change_places_are_found_against_earlier_requests() -> None:
    tools = [tool("A"), tool("B"), tool("C")]
    first, same, swapped = (
        read_request(body(system=_system(), tools=each))
        for each in (tools, [*tools, tool("D")], [tools[0], tools[2], tools[1]])
    )
    assert lint_request(same, [first]) == ()
    findings = lint_request(swapped, [first, same])
    assert [(finding.rule, finding.cited) for finding in findings] == [(LintRule.UNSTABLE_TOOLS, "tools[1]")]
    assert "C was in a different position" in findings[0].sentence


@pytest.mark.parametrize(
    ("model", "least"),
    [
        ("claude-opus-5-5", 512), ("claude-sonnet-4-5-20250929", 1024), ("claude-opus-4-7", 2048),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", 4096), ("claude-haiku-4-5", 4096), ("gpt-9", None), (None, None),
    ],
)  # fmt: skip
def test_least_tokens_by_model(model: str | None, least: int | None) -> None:
    assert get_least_cached_tokens(model) == least


VOLATILE = [
    ("Started 2026-11-16T01:38:15Z", [Volatile.TIME]),
    ("at 09:14:33 sharp", [Volatile.TIME]),
    ("Today's date is 2026-11-16.", [Volatile.DATE]),
    ("id 0E9CF9EA-648a-4b58-8d93-ac26d1e3187a", [Volatile.UUID]),
    ("gitStatus: clean", [Volatile.GIT_STATUS]),
    ("Changes:\n M app.py\n?? new.py\n", [Volatile.GIT_STATUS]),
    ("Tokens used: 12,345", [Volatile.COUNTER]),
    ("request number 17", [Volatile.COUNTER]),
    ("Version 4.5.6 reads up to 2,000 lines in step 3 of 12:30 talks", []),
    ("Run git status before a commit", []),
]


@pytest.mark.parametrize(("words", "kinds"), VOLATILE)
def test_volatile_text_is_recognised(words: str, kinds: list[Volatile]) -> None:
    assert [found.kind for found in find_volatile_text(words)] == kinds
