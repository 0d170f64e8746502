from dataclasses import replace

import pytest

from compaction.cache.causes import Cause
from compaction.cache.diff_causes import find_diff_causes, find_reach
from compaction.llm.lookup import keeps_system_messages, keeps_thinking
from compaction.prompt.fingerprint import Fingerprint
from compaction.prompt.invalidation import predict_read
from compaction.prompt.request import PromptLevel
from tests.compaction.cache.builders import body, prints, text, tool

WORDS = [f"message {number} " * 300 for number in range(10)]
CACHED = 100_000

# The API's table: what a change keeps of tools, system and messages (at worst, at best).
KEPT = [
    (Cause.MODEL_CHANGED, PromptLevel.TOOLS, PromptLevel.TOOLS),
    (Cause.WEB_SEARCH_TOGGLED, PromptLevel.SYSTEM, PromptLevel.SYSTEM),
    (Cause.CITATIONS_TOGGLED, PromptLevel.SYSTEM, PromptLevel.SYSTEM),
    (Cause.SPEED_CHANGED, PromptLevel.SYSTEM, PromptLevel.SYSTEM),
    (Cause.TOOL_CHOICE_CHANGED, PromptLevel.MESSAGES, PromptLevel.MESSAGES),
    (Cause.IMAGES_CHANGED, PromptLevel.MESSAGES, PromptLevel.MESSAGES),
    (Cause.THINKING_CHANGED, PromptLevel.TOOLS, PromptLevel.MESSAGES),
    (Cause.EFFORT_CHANGED, PromptLevel.TOOLS, PromptLevel.MESSAGES),
    (Cause.BETAS_CHANGED, PromptLevel.TOOLS, None),
]


@pytest.mark.parametrize(("cause", "worst", "best"), KEPT)
def test_change_reaches_as_far_as_the_api_says(cause: Cause, worst: PromptLevel, best: PromptLevel | None) -> None:
    reach = find_reach(cause)
    assert (reach.worst.level, reach.best.level if reach.best else None) == (worst, best)


@pytest.mark.parametrize(
    ("model", "thinking", "system"),
    [
        ("claude-opus-4-1", False, False), ("claude-opus-4-5", True, False), ("claude-opus-4-8", True, True),
        ("claude-sonnet-4-5", False, False), ("claude-sonnet-4-6", True, False), ("claude-sonnet-5", True, False),
        ("claude-haiku-4-5", False, False), ("claude-fable-5", True, True), ("gpt-9", True, True),
    ],
)  # fmt: skip
def test_models_differ_in_what_they_keep(model: str, thinking: bool, system: bool) -> None:  # noqa: FBT001
    assert (keeps_thinking(model), keeps_system_messages(model)) == (thinking, system)


def _predict(current: Fingerprint, read_tokens: int, previous: Fingerprint | None = None) -> tuple[int, int, bool]:
    before = previous or prints(*WORDS)
    reaches = [change.reach for change in find_diff_causes(before, current)]
    prediction = predict_read(before, reaches, CACHED, read_tokens)
    return prediction.low_tokens, prediction.high_tokens, prediction.agrees


def test_unchanged_prefix_should_be_read_whole() -> None:
    assert _predict(prints(*WORDS, "more"), CACHED) == (CACHED, CACHED, True)
    assert _predict(prints(*WORDS, "more"), 0) == (CACHED, CACHED, False)


def test_changed_tool_leaves_nothing_without_a_marker_before_it() -> None:
    assert _predict(prints(*WORDS, tools=[tool("Bash")]), 0) == (0, 0, True)


def test_changed_system_block_leaves_what_a_marker_closed_before_it() -> None:
    current = prints(*WORDS, system=[*body()["system"][:2], text("Hurry.", marked="5m")])
    low, high, agrees = _predict(current, 1_000)
    assert 0 < low == high < CACHED // 10
    assert agrees


def test_rewritten_message_leaves_between_the_system_prompt_and_that_message() -> None:
    low, high, agrees = _predict(prints(*WORDS[:5], "other", *WORDS[6:]), 55_000)
    assert 0 < low < high
    assert CACHED * 4 // 10 < high < CACHED * 7 // 10
    assert agrees
    assert not _predict(prints(*WORDS[:5], "other", *WORDS[6:]), 0)[2]


def test_opaque_messages_still_say_that_nothing_changed() -> None:
    before = replace(prints(*WORDS), are_messages_opaque=True, message_sizes=(), message_blocks=())
    assert _predict(replace(before, messages=(*before.messages, "new")), CACHED, before) == (CACHED, CACHED, True)
    cut = replace(before, messages=(*before.messages[:4], "new"))
    low, high, _ = _predict(cut, 3_000, before)
    assert 0 < low <= high < CACHED
