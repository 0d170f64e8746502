"""What happens between two calls of a thread: events after which less of the cache is read, and conditions that are
often seen before a loss. `cache/` alone decides which of them are causes."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from compaction.prompt.markers import LOOKBACK_BLOCKS
from compaction.timeline.observations import LineKind, Observation, Response
from compaction.timeline.read_entries import INTERRUPTED, LEAVING, LOCAL_COMMAND, NO_ANSWER


class Event(StrEnum):
    """What took content out of the prompt before a call."""

    COMPACTED = "compacted"
    MICRO_COMPACTED = "micro_compacted"
    RESULTS_DELETED = "results_deleted"


class Condition(StrEnum):
    """What held right before a call. The order is that of the causes found in them."""

    CLIENT_RESTARTED = "client_restarted"
    TURN_WITHOUT_THINKING = "turn_without_thinking"
    COMMAND_STARTED = "command_started"
    LONG_TURN = "long_turn"
    TOOLS_SEARCHED = "tools_searched"
    CALL_FAILED = "call_failed"
    INTERRUPTED = "interrupted"
    PERMISSION_MODE_CHANGED = "permission_mode_changed"


NO_EVENTS: frozenset[Event] = frozenset()
_PROMPT = LineKind.PROMPT
_EVENTS: Mapping[LineKind, Event] = {
    LineKind.BOUNDARY: Event.COMPACTED,
    LineKind.OLDER_SUMMARY: Event.COMPACTED,
    LineKind.MICRO: Event.MICRO_COMPACTED,
    LineKind.DELETION: Event.RESULTS_DELETED,
}
_CONDITIONS: Mapping[LineKind, Condition] = {
    LineKind.COMMAND: Condition.COMMAND_STARTED,
    LineKind.RESTART: Condition.CLIENT_RESTARTED,
    LineKind.FAILURE: Condition.CALL_FAILED,
}
# By the names of lines. A client that continues after it was left, or answers by itself, was started again.
_CONDITIONS_BY_NAME: Mapping[str, Condition | None] = {
    LOCAL_COMMAND: None,
    LEAVING: Condition.CLIENT_RESTARTED,
    NO_ANSWER: Condition.CLIENT_RESTARTED,
    INTERRUPTED: Condition.INTERRUPTED,
}


class PrecedingTracker(msgspec.Struct, gc=False):
    """Collects what happened since the last call, and counts the blocks of the current turn."""

    events: frozenset[Event] = NO_EVENTS
    conditions: set[Condition] = set()
    is_prompted: bool = False
    turn_blocks: int = 0  # of responses and of tool results
    has_turn_thinking: bool = False
    has_thinking: bool = False
    permission_mode: str | None = None

    def add_line(self, line: Observation) -> None:
        """Take in a line that is not part of a response."""
        kind, name, mode = line.kind, line.name, line.permission_mode
        if kind is _PROMPT:
            self.is_prompted = True
        event = _EVENTS.get(kind)
        if event is not None:
            self.events = self.events | {event}
        condition = (
            _CONDITIONS_BY_NAME[name] if name is not None and name in _CONDITIONS_BY_NAME else _CONDITIONS.get(kind)
        )
        if condition is not None:
            self.conditions.add(condition)
        if mode is not None:
            if self.permission_mode is not None and mode != self.permission_mode:
                self.conditions.add(Condition.PERMISSION_MODE_CHANGED)
            self.permission_mode = mode

    def add_response(self, response: Response) -> None:
        """Take in a line of a response."""
        # Every tool request returns as a block with its result.
        self.turn_blocks += response.block_count + response.tool_use_count
        if response.has_thinking:
            self.has_turn_thinking = self.has_thinking = True
        if response.searches_tools:
            self.conditions.add(Condition.TOOLS_SEARCHED)

    def begin_call(self) -> tuple[frozenset[Event], tuple[Condition, ...]]:
        """Return what preceded a call and start collecting for the next one."""
        events, self.events = self.events, NO_EVENTS
        conditions = self.conditions
        if self.is_prompted:
            is_long = self.turn_blocks >= LOOKBACK_BLOCKS
            if self.turn_blocks and not self.has_turn_thinking and (is_long or not self.has_thinking):
                conditions.add(Condition.TURN_WITHOUT_THINKING)
            elif is_long:
                conditions.add(Condition.LONG_TURN)
            self.is_prompted, self.turn_blocks, self.has_turn_thinking = False, 0, False
        if not conditions:
            return events, ()
        self.conditions = set()
        return events, tuple(condition for condition in Condition if condition in conditions)
