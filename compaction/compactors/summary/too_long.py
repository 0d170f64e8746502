"""When a request for a summary is too long: newest rounds are kept word for word, then oldest rounds are left out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction.context.policy import AUTO_MARGIN_TOKENS
from compaction.context.tokens import count_entry_tokens, estimate_tokens
from compaction.errors import PromptTooLong
from compaction.llm.table import SHORT_WINDOW_TOKENS
from compaction.transcripts.entries import Entry, Message, TextBlock
from compaction.transcripts.rounds import compute_split_points, group_rounds

LARGEST_SHRINK_RETRIES = 3  # the client's limit for one compaction, both ways together
BLIND_SHRINK_PERCENT = 20  # of the rounds, where the provider does not say by how much it is too long
SUMMARY_TOKENS = 20_000  # the client's output cap for a summary (p99.99 of summaries is about 17k)
LEFT_OUT_TEXT = "[Older messages were left out here so that the request for a summary fits the window.]"

# First party and Bedrock say the first (figures optional), older models the second, gateways and older Bedrock the
# third.
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
    """What is sent to be summarised, what is kept behind the summary instead, and what neither is."""

    sent: tuple[Entry, ...]
    kept_after: tuple[Entry, ...] = ()
    left_out: tuple[Entry, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """How much may stand behind a summary: the auto line, and the tokens that are there in any case."""

    line_tokens: int | None
    other_tokens: int = 0

    def holds(self, kept: Sequence[Entry], maximum_tokens: int | None) -> bool:
        """Whether a summary and these entries stay below the line; without one, below that of the window named."""
        line = self.line_tokens
        if line is None:
            line = (maximum_tokens or SHORT_WINDOW_TOKENS) - SUMMARY_TOKENS - AUTO_MARGIN_TOKENS
        return SUMMARY_TOKENS + self.other_tokens + estimate_tokens(kept) < line


def read_prompt_too_long(text: str) -> PromptTooLong | None:
    """The named error that a provider's words amount to, with figures where they give them; None for other words."""
    exact, with_output, vague = (pattern.search(text) for pattern in _WORDINGS)
    if with_output:
        prompt, output, maximum = (int(figure) for figure in with_output.groups())
        return PromptTooLong(prompt + output, maximum)
    if exact and exact.group(1):
        return PromptTooLong(int(exact.group(1)), int(exact.group(2)))
    return PromptTooLong() if exact or vague else None


def shrink_range(
    span: SummaryRange, error: PromptTooLong, room: TokenBudget, *, may_keep_newest: bool
) -> SummaryRange | None:
    """A smaller range, or None when nothing would be left to summarise."""
    head, body = _strip_mark(span.sent)
    starts = _list_starts(body)
    if may_keep_newest:
        shorter = _keep_newest(replace(span, sent=body), starts, error, room)
        if shorter is not None:
            return replace(shorter, sent=head + shorter.sent)
    return _leave_out_oldest(replace(span, sent=body), starts, error)


def _strip_mark(entries: tuple[Entry, ...]) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """Our own mark apart from the rest: as a round of its own it would be all that a retry leaves out."""
    if entries and entries[0].is_meta and _read_text(entries[0]) == LEFT_OUT_TEXT:
        return entries[:1], entries[1:]
    return (), entries


def _read_text(entry: Entry) -> str:
    blocks = entry.message.content if entry.message else ()
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))


def _list_starts(entries: Sequence[Entry]) -> list[int]:
    """Where rounds start, the first one at 0, wherever nothing is parted."""
    cuts = compute_split_points(entries)
    starts, place = [], 0
    for found in group_rounds(entries):
        if cuts[place]:
            starts.append(place)
        place += len(found.entries)
    return starts


def _count_rounds(sizes: Sequence[int], error: PromptTooLong) -> int:
    """How many rounds to take away, in the order given, to make up for the gap."""
    gap = error.gap_tokens
    if gap is None:
        return max(1, len(sizes) * BLIND_SHRINK_PERCENT // 100)
    taken = 0
    for number, size in enumerate(sizes, start=1):
        taken += size
        if taken >= gap:
            return number
    return len(sizes)


def _measure_rounds(entries: Sequence[Entry], starts: Sequence[int]) -> list[int]:
    ends = [*starts[1:], len(entries)]
    return [
        sum(count_entry_tokens(entry) for entry in entries[start:end]) for start, end in zip(starts, ends, strict=True)
    ]


def _keep_newest(span: SummaryRange, starts: list[int], error: PromptTooLong, room: TokenBudget) -> SummaryRange | None:
    sizes = _measure_rounds(span.sent, starts)
    count = _count_rounds(sizes[::-1], error)
    if count >= len(starts):
        return None
    place = starts[-count]
    kept = span.sent[place:] + span.kept_after
    if not any(entry.message for entry in span.sent[:place]) or not room.holds(kept, error.maximum_tokens):
        return None
    return replace(span, sent=span.sent[:place], kept_after=kept)


def _leave_out_oldest(span: SummaryRange, starts: list[int], error: PromptTooLong) -> SummaryRange | None:
    count = _count_rounds(_measure_rounds(span.sent, starts), error)
    if count >= len(starts):
        return None
    left_out, sent = span.sent[: starts[count]], span.sent[starts[count] :]
    first = next((entry for entry in sent if entry.message is not None), None)
    if first is None:
        return None
    if first.type == "assistant":
        sent = (make_left_out_mark(), *sent)
    return replace(span, sent=sent, left_out=span.left_out + left_out)


def make_left_out_mark() -> Entry:
    """The message that stands first when an assistant's would."""
    return Entry("user", is_meta=True, message=Message("user", (TextBlock(LEFT_OUT_TEXT),), is_plain=True))
