"""Which conditions hold before each call of a thread, followed from line to line."""

from collections.abc import Mapping

from compaction.cache.conditions import Condition
from compaction.prompt.invalidation import LOOKBACK_BLOCKS
from compaction.timeline.observations import Answer, LineFact, LineKind
from compaction.timeline.read_entries import INTERRUPTED, LEAVING, LOCAL_COMMAND, NO_ANSWER
from compaction.transcripts.frozen import Draft

_PROMPT = LineKind.PROMPT
_BY_KIND: Mapping[LineKind, Condition] = {
    LineKind.COMMAND: Condition.COMMAND_STARTED,
    LineKind.RESTART: Condition.CLIENT_RESTARTED,
    LineKind.FAILURE: Condition.CALL_FAILED,
}
# By the names of lines. A client that goes on after it was left, or answers by itself, was started again.
_BY_NAME: Mapping[str, Condition | None] = {
    LOCAL_COMMAND: None,
    LEAVING: Condition.CLIENT_RESTARTED,
    NO_ANSWER: Condition.CLIENT_RESTARTED,
    INTERRUPTED: Condition.INTERRUPTED,
}


class ConditionWatch(Draft):
    """What was seen since the last call, and of the turn so far. Blocks are those of answers and of tool results."""

    held: set[Condition] = set()
    is_prompted: bool = False
    turn_blocks: int = 0
    has_turn_thinking: bool = False
    has_thinking: bool = False
    permission_mode: str | None = None

    def see_line(self, fact: LineFact) -> None:
        """Follow a line that is no answer."""
        kind, name, mode = fact.kind, fact.name, fact.permission_mode
        if kind is _PROMPT:
            self.is_prompted = True
        condition = _BY_NAME[name] if name is not None and name in _BY_NAME else _BY_KIND.get(kind)
        if condition is not None:
            self.held.add(condition)
        if mode is not None:
            if self.permission_mode is not None and mode != self.permission_mode:
                self.held.add(Condition.PERMISSION_MODE_CHANGED)
            self.permission_mode = mode

    def see_answer(self, answer: Answer) -> None:
        """Follow a line of an answer."""
        # Every request for a tool comes back as a block with its result.
        self.turn_blocks += answer.block_count + answer.tool_use_count
        if answer.has_thinking:
            self.has_turn_thinking = self.has_thinking = True
        if answer.searches_tools:
            self.held.add(Condition.TOOLS_SEARCHED)

    def begin_call(self) -> tuple[Condition, ...]:
        """Return the conditions that hold before a call; what follows holds before the next one."""
        held = self.held
        if self.is_prompted:
            is_long = self.turn_blocks >= LOOKBACK_BLOCKS
            if self.turn_blocks and not self.has_turn_thinking and (is_long or not self.has_thinking):
                held.add(Condition.TURN_WITHOUT_THINKING)
            elif is_long:
                held.add(Condition.LONG_TURN)
            self.is_prompted, self.turn_blocks, self.has_turn_thinking = False, 0, False
        if not held:
            return ()
        self.held = set()
        return tuple(condition for condition in Condition if condition in held)
