"""Invalidation: how far into the prefix a change reaches, and so how much of it should have survived.

The rules are those of the Messages API: tools, then system, then messages; a change empties its place and all after it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from compaction.prompt.fingerprint import Fingerprint
from compaction.prompt.request import LEVELS, Marker, PromptLevel

CHARACTERS_PER_TOKEN = 4  # used only where no call tells how many tokens the characters came to

# Prediction and reading may differ by this much before they count as disagreeing: sizes are characters, not tokens.
TOLERANCE_SHARE_PERCENT = 10
TOLERANCE_TOKENS = 2_000


@dataclass(frozen=True, slots=True)
class PrefixPosition:
    """A place in a prefix: before this tool, system block or message."""

    level: PromptLevel
    index: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """Sorts places from the start of the prefix on."""
        return LEVELS.index(self.level), self.index


@dataclass(frozen=True, slots=True)
class Reach:
    """From where on a change empties the prefix: at worst, and at best; None is not at all."""

    worst: PrefixPosition
    best: PrefixPosition | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """How many tokens of the previous prefix should have been read, against how many were."""

    low_tokens: int
    high_tokens: int
    observed_tokens: int
    tolerance_tokens: int

    @property
    def agrees(self) -> bool:
        """Whether what changed explains what was read."""
        return not self.reads_less and self.observed_tokens <= self.high_tokens + self.tolerance_tokens

    @property
    def reads_less(self) -> bool:
        """Whether even less was read than the changes explain."""
        return self.observed_tokens < self.low_tokens - self.tolerance_tokens


def predict_read(previous: Fingerprint, reaches: Iterable[Reach], cached_tokens: int, read_tokens: int) -> Prediction:
    """What should have been read of a previous prefix of `cached_tokens`, given how far the changes reach into it."""
    ruler = _Ruler(previous, cached_tokens)
    low = high = cached_tokens
    for reach in reaches:
        low = min(low, ruler.measure_kept(reach.worst, lenient=False))
        if reach.best is not None:
            high = min(high, ruler.measure_kept(reach.best, lenient=True))
    tolerance = max(TOLERANCE_TOKENS, cached_tokens * TOLERANCE_SHARE_PERCENT // 100)
    return Prediction(low, max(low, high), read_tokens, tolerance)


class _Ruler:
    """Turns places of a prefix into tokens, by the tokens its last call counted for all of its characters."""

    def __init__(self, fingerprint: Fingerprint, cached_tokens: int) -> None:
        self._fingerprint = fingerprint
        self._cached_tokens = cached_tokens
        self._tools = sum(tool.size_characters for tool in fingerprint.tools if not tool.is_deferred)
        self._system = sum(block.size_characters for block in fingerprint.system)
        self._messages = sum(fingerprint.message_sizes)

    def measure_kept(self, place: PrefixPosition, *, lenient: bool) -> int:
        """Tokens before a place that a marker closed. Earlier calls closed entries between messages too: the lenient
        reading grants them all, the other only those of this request."""
        if place.level is PromptLevel.MESSAGES and place.index > 0 and lenient:
            return self._measure_before(place)
        closed = [
            self._measure_before(_find_end(marker))
            for marker in self._fingerprint.markers
            if _find_end(marker).order <= place.order
        ]
        if not self._fingerprint.markers:
            return self._measure_before(place) if lenient else 0
        return max(closed, default=0)

    def _measure_before(self, place: PrefixPosition) -> int:
        prints = self._fingerprint
        if place.level is PromptLevel.TOOLS:
            tools = (tool for tool in prints.tools[: place.index] if not tool.is_deferred)
            characters = sum(tool.size_characters for tool in tools)
        elif place.level is PromptLevel.SYSTEM:
            characters = self._tools + sum(block.size_characters for block in prints.system[: place.index])
        elif not prints.message_sizes:
            if place.index >= len(prints.messages):
                return self._cached_tokens
            # Sizes of messages are not known: what stands before the first of them is all that is certain.
            return min(self._cached_tokens, (self._tools + self._system) // CHARACTERS_PER_TOKEN)
        else:
            characters = self._tools + self._system + sum(prints.message_sizes[: place.index])
        return self._convert(characters)

    def _convert(self, characters: int) -> int:
        total = self._tools + self._system + self._messages
        if not self._fingerprint.message_sizes or total == 0:
            return min(self._cached_tokens, characters // CHARACTERS_PER_TOKEN)
        return self._cached_tokens * characters // total


def _find_end(marker: Marker) -> PrefixPosition:
    return PrefixPosition(marker.level, marker.index + 1)
