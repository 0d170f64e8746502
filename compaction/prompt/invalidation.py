"""Invalidation: how far into the prefix a change reaches, and so how much of it should still have been cached.

The rules are those of the Messages API: tools, then system, then messages; a change invalidates its position and all
after it. How far the server looks back from a marker is in markers.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from compaction.prompt.fingerprint import Fingerprint
from compaction.prompt.request import LEVELS, Marker, PromptLevel

CHARACTERS_PER_TOKEN = 4  # used only where no call shows how many tokens the characters are

# Prediction and actual reading may differ by this much, because sizes are characters, not tokens.
TOLERANCE_SHARE_PERCENT = 10
TOLERANCE_TOKENS = 2_000


@dataclass(frozen=True, slots=True)
class PrefixPosition:
    """A position in a prefix: before this tool, system block or message."""

    level: PromptLevel
    index: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """The sort key from the start of the prefix on."""
        return LEVELS.index(self.level), self.index


@dataclass(frozen=True, slots=True)
class Reach:
    """From where on a change invalidates the prefix: at worst, and at best; None is not at all."""

    worst: PrefixPosition
    best: PrefixPosition | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """How many tokens of the previous prefix should have been read from the cache, and how many were."""

    low_tokens: int
    high_tokens: int
    observed_tokens: int
    tolerance_tokens: int

    @property
    def agrees(self) -> bool:
        """Return whether the changes explain what was read."""
        return not self.reads_less and self.observed_tokens <= self.high_tokens + self.tolerance_tokens

    @property
    def reads_less(self) -> bool:
        """Return whether less was read than the changes explain."""
        return self.observed_tokens < self.low_tokens - self.tolerance_tokens


def predict_read(previous: Fingerprint, reaches: Iterable[Reach], cached_tokens: int, read_tokens: int) -> Prediction:
    """Return what should have been read of a previous prefix of `cached_tokens`, given how far the changes reach."""
    ruler = _Ruler(previous, cached_tokens)
    low = high = cached_tokens
    for reach in reaches:
        low = min(low, ruler.measure_kept(reach.worst, lenient=False))
        if reach.best is not None:
            high = min(high, ruler.measure_kept(reach.best, lenient=True))
    tolerance = max(TOLERANCE_TOKENS, cached_tokens * TOLERANCE_SHARE_PERCENT // 100)
    return Prediction(low, max(low, high), read_tokens, tolerance)


class _Ruler:
    """Converts positions of a prefix to tokens, by the tokens its last call counted for all of its characters."""

    def __init__(self, fingerprint: Fingerprint, cached_tokens: int) -> None:
        self._fingerprint = fingerprint
        self._cached_tokens = cached_tokens
        self._tools = sum(tool.size_characters for tool in fingerprint.tools if not tool.is_deferred)
        self._system = sum(block.size_characters for block in fingerprint.system)
        self._messages = sum(fingerprint.message_sizes)

    def measure_kept(self, position: PrefixPosition, *, lenient: bool) -> int:
        """Return the tokens before a position that a marker ended. Earlier calls ended entries between messages too:
        `lenient` counts them all, otherwise only those of this request count."""
        if position.level is PromptLevel.MESSAGES and position.index > 0 and lenient:
            return self._measure_before(position)
        closed = [
            self._measure_before(_find_end(marker))
            for marker in self._fingerprint.markers
            if _find_end(marker).order <= position.order
        ]
        if not self._fingerprint.markers:
            return self._measure_before(position) if lenient else 0
        return max(closed, default=0)

    def _measure_before(self, position: PrefixPosition) -> int:
        fingerprint = self._fingerprint
        if position.level is PromptLevel.TOOLS:
            tools = (tool for tool in fingerprint.tools[: position.index] if not tool.is_deferred)
            characters = sum(tool.size_characters for tool in tools)
        elif position.level is PromptLevel.SYSTEM:
            characters = self._tools + sum(block.size_characters for block in fingerprint.system[: position.index])
        elif not fingerprint.message_sizes:
            if position.index >= len(fingerprint.messages):
                return self._cached_tokens
            # Sizes of messages are not known: only what is before the first of them is certain.
            return min(self._cached_tokens, (self._tools + self._system) // CHARACTERS_PER_TOKEN)
        else:
            characters = self._tools + self._system + sum(fingerprint.message_sizes[: position.index])
        return self._convert(characters)

    def _convert(self, characters: int) -> int:
        total = self._tools + self._system + self._messages
        if not self._fingerprint.message_sizes or total == 0:
            return min(self._cached_tokens, characters // CHARACTERS_PER_TOKEN)
        return self._cached_tokens * characters // total


def _find_end(marker: Marker) -> PrefixPosition:
    return PrefixPosition(marker.level, marker.index + 1)
