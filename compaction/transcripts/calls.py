"""The API calls of a transcript: one per message id, the last line wins, doubtful output is estimated."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from math import ceil

from compaction.llm.table import MODELS
from compaction.transcripts.entries import Block, Entry, Message, TextBlock, ThinkingBlock, ToolUseBlock, Usage

# Without a stop reason the reported output is where the stream began, not where it ended: the written characters say
# more. Both figures were fitted on one half of the recorded calls with a stop reason and no hidden thinking, and
# checked on 86 calls of other sessions (bench/output_estimate.py): estimate / truth 0.98 there in sum, 0.96 at the
# median (characters / 4: 0.76 and 0.71).
CHARACTERS_PER_OUTPUT_TOKEN = 3.4
# What the API's own form of a tool request adds to its name and input: about 52 tokens.
TOOL_REQUEST_CHARACTERS = 176

_PROVEN_FROM_CALLS = 50


@dataclass(frozen=True, slots=True)
class Call:
    """One API call. `usage` is as reported on the last line; `output_tokens` is the figure to count with."""

    message_id: str
    usage: Usage
    output_tokens: int
    is_output_estimated: bool
    model: str | None
    started_at: datetime | None
    ended_at: datetime | None
    line_count: int
    stop_reason: str | None = None
    cache_miss_reason: str | None = None
    request_id: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    is_sidechain: bool = False
    version: str | None = None

    @property
    def counted_usage(self) -> Usage:
        """The usage with the output to count with."""
        return self.usage.changed(output_tokens=self.output_tokens) if self.is_output_estimated else self.usage


def count_written_characters(blocks: Iterable[Block]) -> int:
    """Return how much the model wrote: text, thinking, and tool requests in the form they have for the model."""
    characters = 0
    for block in blocks:
        if isinstance(block, TextBlock):
            characters += len(block.text)
        elif isinstance(block, ThinkingBlock):
            characters += len(block.thinking)
        elif isinstance(block, ToolUseBlock):
            characters += TOOL_REQUEST_CHARACTERS + len(block.name) + len(block.input_json)
    return characters


def find_call_id(entry: Entry) -> str | None:
    """What makes lines one call: the message id, else the request id, else the line's own uuid; None for no call."""
    if not entry.is_response or entry.message is None:
        return None
    return entry.message.id or entry.request_id or entry.uuid


def settle_output(usage: Usage, stop_reason: str | None, written_characters: int) -> int:
    """The output to count with: as reported, or what the characters say where no stop reason vouches for the report."""
    if stop_reason is not None:
        return usage.output_tokens
    return max(usage.output_tokens, estimate_output(written_characters))


def estimate_output(written_characters: int) -> int:
    """Return the output tokens that so many characters come to; a lower bound where thinking is hidden."""
    return ceil(written_characters / CHARACTERS_PER_OUTPUT_TOKEN)


def describe_output_estimate(family: str) -> str:
    """Describe how an estimated output was found, and how far that is proven for a model family."""
    model = MODELS.get(family)
    checked_calls, ratio = (model and model.checked_output) or (0, 0)
    if checked_calls >= _PROVEN_FROM_CALLS:
        proof = f"On {checked_calls:,} recorded calls of this model the estimate was {ratio:.0%} of the actual total."
    elif checked_calls:
        proof = f"Not verified for this model: checked on only {checked_calls:,} calls."
    else:
        proof = "Not verified for this model."
    return (
        f"Estimated from the text received ({CHARACTERS_PER_OUTPUT_TOKEN} characters per token, "
        f"{TOOL_REQUEST_CHARACTERS} more for each tool call). {proof} A lower bound if thinking is hidden."
    )


def make_call(
    call_id: str, last: Entry, *, started_at: datetime | None, line_count: int, written_characters: int
) -> Call:
    """One call from its last line and what was gathered on the way to it."""
    message = last.message or Message("assistant")
    usage = message.usage or Usage()
    output_tokens = settle_output(usage, message.stop_reason, written_characters)
    return Call(
        message_id=call_id,
        usage=usage,
        output_tokens=output_tokens,
        is_output_estimated=output_tokens > usage.output_tokens,
        model=message.model,
        started_at=started_at,
        ended_at=last.at,
        line_count=line_count,
        stop_reason=message.stop_reason,
        cache_miss_reason=message.cache_miss_reason,
        request_id=last.request_id,
        session_id=last.session_id,
        agent_id=last.agent_id,
        is_sidechain=last.is_sidechain,
        version=last.version,
    )


def collect_calls(entries: Iterable[Entry]) -> tuple[Call, ...]:
    """Every call in the order of its first line. Nested sub-agent messages and synthetic answers are no calls."""
    lines: dict[str, list[Entry]] = {}
    for entry in entries:
        call_id = find_call_id(entry)
        if call_id is not None:
            lines.setdefault(call_id, []).append(entry)
    return tuple(
        make_call(
            call_id,
            found[-1],
            started_at=found[0].at,
            line_count=len(found),
            written_characters=_count_when_needed(found),
        )
        for call_id, found in lines.items()
    )


def _count_when_needed(lines: list[Entry]) -> int:
    """Characters on the lines without a stop reason, when the last is one of them."""
    last = lines[-1].message
    if last is None or last.stop_reason is not None:
        return 0
    open_messages = (line.message for line in lines if line.message and line.message.stop_reason is None)
    return sum(count_written_characters(message.content) for message in open_messages)
