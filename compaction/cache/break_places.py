"""Locates where in the prompt a cache broke: in tools and system prompt, at the first message, or later.

This needs no requests: a prefix can only be read up to where an earlier call marked its end. Before the end of the
first call's prompt, all such marks are in tools and system prompt.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from compaction.cache.breaks import Verdict
from compaction.timeline.calls import CONVERSATION_START, Call
from compaction.transcripts.entries import Usage

# Reads of one prefix differ by a few tokens between requests: 16,589 and 16,606.
SAME_PERCENT = 1


class BreakPlace(StrEnum):
    """Which part of the prompt was lost."""

    EVERYTHING = "everything"
    SYSTEM = "system"  # part of tools and system prompt was still read
    CONVERSATION = "conversation"  # tools and system prompt were still read
    LATER = "later"  # part of the conversation was still read


@dataclass(frozen=True, slots=True)
class BreakLocation:
    """Where one cache broke, and how many tokens before that place were still read."""

    place: BreakPlace
    read_tokens: int

    @property
    def sentence(self) -> str:
        return describe_place(self.place, self.read_tokens)


def describe_place(place: BreakPlace, read_tokens: int) -> str:
    """Return a sentence about the place."""
    match place:
        case BreakPlace.EVERYTHING:
            return "The whole prompt was lost, including tools and system prompt."
        case BreakPlace.SYSTEM:
            return f"Part of tools and system prompt was lost, with the conversation; {read_tokens:,} tokens stayed."
        case BreakPlace.CONVERSATION:
            return "The conversation was lost from its first message on; tools and system prompt stayed."
        case BreakPlace.LATER:
            return f"The first {read_tokens:,} tokens stayed; everything after them was lost."


def describe_place_briefly(place: BreakPlace, read_tokens: int) -> str:
    """Return the place in the few words of a table cell."""
    match place:
        case BreakPlace.EVERYTHING:
            return "broke at the start"
        case BreakPlace.SYSTEM:
            return "broke in tools or system prompt"
        case BreakPlace.CONVERSATION:
            return "broke at the first message"
        case BreakPlace.LATER:
            return f"broke after {read_tokens:,} tokens"


def locate_losses(calls: Mapping[str, Call], verdicts: Sequence[Verdict]) -> dict[str, BreakLocation]:
    """Return where each loss of a thread broke its cache, by call id; breaks and rebuilds alike."""
    judged = [verdict for verdict in verdicts if verdict.baseline and verdict.baseline.call_id == verdict.call_id]
    losses = {verdict.call_id: verdict.loss.read_tokens for verdict in judged if verdict.loss is not None}
    if not losses:
        return {}
    first = judged[0]
    begins_conversation = first.parent_call_id == CONVERSATION_START
    prefix = _find_system_tokens(
        calls[first.call_id].usage, list(losses.values()), begins_conversation=begins_conversation
    )
    return {
        call_id: BreakLocation(_find_place(read_tokens, prefix), read_tokens) for call_id, read_tokens in losses.items()
    }


def _find_system_tokens(usage: Usage, reads: list[int], *, begins_conversation: bool) -> int | None:
    """Return the size of tools and system prompt: the longest prefix shorter than the first prompt that was read
    repeatedly after losses, else at least once. In a thread that begins in the middle of a conversation, the shortest
    prefix that was read twice."""
    sizes = [tokens for tokens in (usage.cache_read_tokens, *reads) if tokens]
    repeated = [tokens for index, tokens in enumerate(sizes) if any(_is_same(tokens, other) for other in sizes[:index])]
    if not begins_conversation:
        return min(repeated, default=None)
    first_tokens = usage.cache_read_tokens + usage.cache_creation_tokens

    def find_longest(prefixes: list[int]) -> int | None:
        short = (tokens for tokens in prefixes if tokens < first_tokens and not _is_same(tokens, first_tokens))
        return max(short, default=None)

    return find_longest(repeated) or find_longest(sizes)


def _find_place(read_tokens: int, system_tokens: int | None) -> BreakPlace:
    if read_tokens == 0:
        return BreakPlace.EVERYTHING
    if system_tokens is None:
        return BreakPlace.LATER
    if _is_same(read_tokens, system_tokens):
        return BreakPlace.CONVERSATION
    return BreakPlace.SYSTEM if read_tokens < system_tokens else BreakPlace.LATER


def _is_same(tokens: int, other: int) -> bool:
    return abs(tokens - other) * 100 <= SAME_PERCENT * max(tokens, other)
