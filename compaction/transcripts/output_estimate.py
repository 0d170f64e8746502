"""Estimates the output of a call from what the model wrote, for calls whose transcript has no stop reason.

Without a stop reason the reported output is where the stream began, not where it ended.
"""

from collections.abc import Iterable
from math import ceil

from compaction.llm.table import MODELS
from compaction.transcripts.entries import Block, TextBlock, ThinkingBlock, ToolUseBlock, Usage

# Both figures were fitted on one half of the recorded calls with a stop reason and no hidden thinking, and checked on
# 86 calls of other sessions (bench/output_estimate.py): estimate / truth 0.98 there in sum, 0.96 at the median
# (characters / 4: 0.76 and 0.71).
CHARACTERS_PER_OUTPUT_TOKEN = 3.4
# What the API's own form of a tool request adds to its name and input: about 52 tokens.
TOOL_REQUEST_CHARACTERS = 176

_PROVEN_FROM_CALLS = 50


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


def estimate_output(written_characters: int) -> int:
    """Return the output tokens that so many characters come to; a lower bound where thinking is hidden."""
    return ceil(written_characters / CHARACTERS_PER_OUTPUT_TOKEN)


def compute_output_tokens(usage: Usage, stop_reason: str | None, written_characters: int) -> int:
    """Return the reported output; without a stop reason the estimate, where that is more."""
    if stop_reason is not None:
        return usage.output_tokens
    return max(usage.output_tokens, estimate_output(written_characters))


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
