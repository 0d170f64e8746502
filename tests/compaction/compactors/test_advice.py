"""What an agent is told to do at each level."""

import pytest

from compaction.compactors.advice import AdvisedAction, advise
from compaction.context.policy import Policy
from compaction.context.thresholds import classify_usage, compute_thresholds
from compaction.context.windows import ModelInUse

LINES = compute_thresholds(Policy.from_team_values({"preset": "early"}), ModelInUse("claude-opus-4-5"))


@pytest.mark.parametrize(
    ("used_tokens", "saved_tokens", "has_fresh_notes", "action", "offered"),
    [
        (0, None, False, AdvisedAction.NONE, None),
        (126_999, None, False, AdvisedAction.NONE, None),
        (127_000, 90_000, True, AdvisedAction.WARN, None),
        (147_000, None, False, AdvisedAction.WARN, None),
        (147_000, 19_999, False, AdvisedAction.WARN, None),
        (147_000, 20_000, False, AdvisedAction.MICRO, None),
        (167_000, 90_000, False, AdvisedAction.FULL, None),
        (167_000, None, True, AdvisedAction.SESSION_MEMORY, None),
        (177_000, None, True, AdvisedAction.BLOCK, AdvisedAction.FULL),
    ],
)
def test_action_follows_the_level(
    *,
    used_tokens: int,
    saved_tokens: int | None,
    has_fresh_notes: bool,
    action: AdvisedAction,
    offered: AdvisedAction | None,
) -> None:
    told = advise(
        classify_usage(LINES, used_tokens), count_clearable=lambda: saved_tokens, has_fresh_notes=has_fresh_notes
    )
    assert (told.action, told.offered) == (action, offered)
    assert told.sentence.endswith(".")


def test_the_conversation_is_gone_through_only_where_it_decides() -> None:
    def refuse() -> int | None:
        raise AssertionError("asked without need")

    for used_tokens in (0, 127_000, 167_000, 177_000):
        advise(classify_usage(LINES, used_tokens), count_clearable=refuse)


def test_an_unknown_window_stops_nobody() -> None:
    assert advise(classify_usage(None, 900_000)).action is AdvisedAction.NONE
