"""Handles a request for a summary that is too long: keeps the newest rounds verbatim, else leaves out the oldest.

Also the wordings of "prompt is too long" that providers use.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction.context.margins import AUTO_MARGIN_TOKENS, MAX_SUMMARY_TOKENS
from compaction.context.tokens import count_entry_tokens, estimate_tokens
from compaction.errors import PromptTooLong
from compaction.llm.table import SHORT_WINDOW_TOKENS
from compaction.transcripts.entries import Entry, Message, TextBlock
from compaction.transcripts.rounds import compute_split_points, group_rounds

MAX_SHRINK_RETRIES = 3  # the client's limit for one compaction, for both ways together
BLIND_SHRINK_PERCENT = 20  # of the rounds, when the provider does not report the excess
LEFT_OUT_TEXT = "[Older messages were left out here so that the request for a summary fits the window.]"

# First party and Bedrock use the first wording (figures optional), older models the second, gateways and older Bedrock
# the third.
_WORDINGS = (
    re.compile(r"prompt is too long(?:: (\d+) tokens > (\d+) maximum)?", re.IGNORECASE),
    re.compile(r"input length and `?max_tokens`? exceed context limit: (\d+) \+ (\d+) > (\d+)", re.IGNORECASE),
    re.compile(
        r"prompt_too_long|request_too_large|exceeds? the (?:maximum )?context (?:window|length)"
        r"|input is too long for requested model",
        re.IGNORECASE,
    ),
)


@dataclass(frozen=True, slots=True)
class SummaryRange:
    """Entries to summarise, entries kept verbatim after the summary, and entries that are neither."""

    sent: tuple[Entry, ...]
    kept_after: tuple[Entry, ...] = ()
    left_out: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """The auto-compact threshold, and the tokens that every request takes besides the messages."""

    threshold_tokens: int | None
    other_tokens: int = 0

    def has_room_for(self, kept: Sequence[Entry], maximum_tokens: int | None) -> bool:
        """Return whether a summary and these entries stay below the threshold.

        If the threshold is unknown, it is computed for a window of `maximum_tokens`.
        """
        threshold = self.threshold_tokens
        if threshold is None:
            threshold = (maximum_tokens or SHORT_WINDOW_TOKENS) - MAX_SUMMARY_TOKENS - AUTO_MARGIN_TOKENS
        return MAX_SUMMARY_TOKENS + self.other_tokens + estimate_tokens(kept) < threshold


def parse_prompt_too_long(text: str) -> PromptTooLong | None:
    """Return the error for a provider's message, with its figures if it has any; None for other messages."""
    exact, with_output, vague = (pattern.search(text) for pattern in _WORDINGS)
    if with_output:
        prompt, output, maximum = (int(figure) for figure in with_output.groups())
        return PromptTooLong(prompt + output, maximum)
    if exact and exact.group(1):
        return PromptTooLong(int(exact.group(1)), int(exact.group(2)))
    return PromptTooLong() if exact or vague else None


def shrink_range(
    span: SummaryRange, error: PromptTooLong, budget: TokenBudget, *, may_keep_newest: bool
) -> SummaryRange | None:
    """Return a smaller range, or None when nothing would be left to summarise."""
    head, body = _strip_mark(span.sent)
    starts = _list_starts(body)
    if may_keep_newest:
        shorter = _keep_newest(replace(span, sent=body), starts, error, budget)
        if shorter is not None:
            return replace(shorter, sent=head + shorter.sent)
    return _leave_out_oldest(replace(span, sent=body), starts, error)


def _strip_mark(entries: tuple[Entry, ...]) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Return the mark of an earlier retry and the rest: as a round, the mark would be all that a retry leaves out."""
    if entries and entries[0].is_meta and _get_text(entries[0]) == LEFT_OUT_TEXT:
        return entries[:1], entries[1:]
    return (), entries


def _get_text(entry: Entry) -> str:
    blocks = entry.message.content if entry.message else ()
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))


def _list_starts(entries: Sequence[Entry]) -> list[int]:
    """Return the indexes at which rounds start, as far as they are split points. The first one is 0."""
    split_points = compute_split_points(entries)
    starts, index = [], 0
    for item in group_rounds(entries):
        if split_points[index]:
            starts.append(index)
        index += len(item.entries)
    return starts


def _count_rounds(sizes: Sequence[int], error: PromptTooLong) -> int:
    """Return how many rounds to remove, in the given order, to close the gap."""
    gap = error.gap_tokens
    if gap is None:
        return max(1, len(sizes) * BLIND_SHRINK_PERCENT // 100)
    removed_tokens = 0
    for number, size in enumerate(sizes, start=1):
        removed_tokens += size
        if removed_tokens >= gap:
            return number
    return len(sizes)


def _measure_rounds(entries: Sequence[Entry], starts: Sequence[int]) -> list[int]:
    ends = [*starts[1:], len(entries)]
    return [
        sum(count_entry_tokens(entry) for entry in entries[start:end]) for start, end in zip(starts, ends, strict=True)
    ]


def _keep_newest(
    span: SummaryRange, starts: list[int], error: PromptTooLong, budget: TokenBudget
) -> SummaryRange | None:
    sizes = _measure_rounds(span.sent, starts)
    count = _count_rounds(sizes[::-1], error)
    if count >= len(starts):
        return None
    cut = starts[-count]
    kept = span.sent[cut:] + span.kept_after
    if not any(entry.message for entry in span.sent[:cut]) or not budget.has_room_for(kept, error.maximum_tokens):
        return None
    return replace(span, sent=span.sent[:cut], kept_after=kept)


def _leave_out_oldest(span: SummaryRange, starts: list[int], error: PromptTooLong) -> SummaryRange | None:
    count = _count_rounds(_measure_rounds(span.sent, starts), error)
    if count >= len(starts):
        return None
    left_out, sent = span.sent[: starts[count]], span.sent[starts[count] :]
    first = next((entry for entry in sent if entry.message is not None), None)
    if first is None:
        return None
    if first.type == "assistant":
        sent = (build_left_out_mark(), *sent)
    return replace(span, sent=sent, left_out=span.left_out + left_out)


def build_left_out_mark() -> Entry:
    """Return the user message that precedes an assistant's, since a request must begin with the user."""
    return Entry("user", is_meta=True, message=Message("user", (TextBlock(LEFT_OUT_TEXT),), is_plain=True))
