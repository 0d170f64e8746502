"""Exact sizes of a conversation, from the API that is asked for the summary anyway; elsewhere an estimate stands.

A conversation is never sent for the sake of a count alone: where no model writes, none counts.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from compaction.compactors.summary.plain_request import build_tool_definitions
from compaction.errors import CompactionCancelled, RunError
from compaction.ports import Monitor, Summarizer
from compaction.transcripts.entries import Entry
from compaction.transcripts.flatten import flatten
from dashboard.runs.costs import spell_model


@runtime_checkable
class TokenCounter(Protocol):
    """A summariser that can also count."""

    def count_tokens(self, body: Mapping[str, object], monitor: Monitor) -> int | None:
        """The tokens of a prompt; None where they cannot be had."""


def count_entries(
    summarizer: Summarizer, entries: Sequence[Entry], *, model: str, prefix_tokens: int, monitor: Monitor
) -> int | None:
    """Messages as counted, with system and tools as they are known. A failed count is no reason to lose a summary."""
    messages = flatten(entries)
    if not isinstance(summarizer, TokenCounter) or not model or not messages:
        return None
    body: dict[str, object] = {"model": spell_model(model), "messages": [message.to_api() for message in messages]}
    if tools := build_tool_definitions(messages):
        body["tools"] = tools
    try:
        counted = summarizer.count_tokens(body, monitor)
    except CompactionCancelled:
        raise
    except RunError:
        return None  # told as an attempt, with its reason
    return None if counted is None else counted + prefix_tokens
