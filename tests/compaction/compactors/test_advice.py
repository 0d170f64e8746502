"""What an agent is told to do at each level."""

import pytest

from compaction.compactors.advice import Action, advise
from compaction.context.policy import Policy
from compaction.context.thresholds import draw_lines, read_level
from compaction.context.windows import ModelInUse

LINES = draw_lines(Policy.from_team_values({"preset": "early"}), ModelInUse("claude-opus-4-5"))


@pytest.mark.parametrize(
    ("used_tokens", "saved_tokens", "has_fresh_notes", "action", "offered"),
    [
        (0, None, False, Action.NONE, None),
        (126_999, None, False, Action.NONE, None),
        (127_000, 90_000, True, Action.WARN, None),
        (147_000, None, False, Action.WARN, None),
        (147_000, 19_999, False, Action.WARN, None),
        (147_000, 20_000, False, Action.MICRO, None),
        (167_000, 90_000, False, Action.FULL, None),
        (167_000, None, True, Action.SESSION_MEMORY, None),
        (177_000, None, True, Action.BLOCK, Action.FULL),
    ],
)
def test_action_follows_the_level(
    *, used_tokens: int, saved_tokens: int | None, has_fresh_notes: bool, action: Action, offered: Action | None
) -> None:
    told = advise(read_level(LINES, used_tokens), count_clearable=lambda: saved_tokens, has_fresh_notes=has_fresh_notes)
    assert (told.action, told.offered) == (action, offered)
    assert told.sentence.endswith(".")


def test_the_conversation_is_gone_through_only_where_it_decides() -> None:
    def refuse() -> int | None:
        raise AssertionError("asked without need")

    for used_tokens in (0, 127_000, 167_000, 177_000):
        advise(read_level(LINES, used_tokens), count_clearable=refuse)


def test_an_unknown_window_stops_nobody() -> None:
    assert advise(read_level(None, 900_000)).action is Action.NONE
