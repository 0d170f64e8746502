"""Builds a request for a summary as a fork: the parent request repeated byte for byte, with the prompt appended.

Nothing is stripped and no parameter changes: any difference would miss the parent's cache.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.compactors.summary.plain_request import add_prompt
from compaction.context.cache_ttl import DEFAULT_TTL, CacheTtl
from compaction.ports import SummaryRequest, SummaryRoute, Variant
from compaction.prompt.markers import mark_messages
from compaction.transcripts.api_messages import list_content_blocks
from compaction.transcripts.entries import Entry, TextBlock, ToolResultBlock, ToolUseBlock
from compaction.transcripts.flatten import HEAD_TEXT, ApiMessage, flatten

_Messages = list[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class ParentRequest:
    """The body of the last known request of the thread, and the id of its response (None: not answered yet)."""

    body: Mapping[str, object]
    response_id: str | None = None


def build_fork_request(
    variant: Variant, parent: ParentRequest, sent: Sequence[Entry], *, kept_after: Sequence[Entry], prompt: str
) -> SummaryRequest | None:
    """Return the parent's request with the prompt after the messages to summarise; None where their end is unclear."""
    messages = _list_messages(parent, sent, kept_after)
    if not messages:
        return None
    marked = mark_messages(add_prompt(messages, prompt), _get_lifetime(messages), skips_write=True)
    body = {**parent.body, "messages": marked, "stream": True}
    return SummaryRequest(variant=variant, route=SummaryRoute.FORK, entries=tuple(sent), prompt=prompt, body=body)


def _list_messages(parent: ParentRequest, sent: Sequence[Entry], kept_after: Sequence[Entry]) -> _Messages | None:
    """Return the parent's messages up to the cut, and the messages of entries after the parent's request."""
    parent_messages = parent.body.get("messages")
    if not isinstance(parent_messages, Sequence) or not all(isinstance(item, Mapping) for item in parent_messages):
        return None
    messages: _Messages = list(parent_messages)
    if _has_response(parent, kept_after):
        return messages if _has_response(parent, kept_after[:1]) else _cut_before(messages, kept_after)
    if parent.response_id is None:
        return _cut_before(messages, kept_after) if kept_after else messages
    if not _has_response(parent, sent):
        return None
    later = flatten(_list_later(parent, sent))
    return messages + [message.to_api() for message in later if not _is_head(message)]


def _has_response(parent: ParentRequest, entries: Sequence[Entry]) -> bool:
    response_id = parent.response_id
    return response_id is not None and any(
        entry.message is not None and entry.message.id == response_id for entry in entries
    )


def _list_later(parent: ParentRequest, sent: Sequence[Entry]) -> Sequence[Entry]:
    for index, entry in enumerate(sent):
        if entry.message is not None and entry.message.id == parent.response_id:
            return sent[index:]
    return ()


def _is_head(message: ApiMessage) -> bool:
    """Return whether flatten added this message before one of the assistant."""
    return not message.entry_uuids and message.content == (TextBlock(HEAD_TEXT),)


def _cut_before(messages: _Messages, kept_after: Sequence[Entry]) -> _Messages | None:
    """Return the messages up to the block of the first kept entry; None when that block is not certain."""
    first_keys = next((keys for entry in kept_after if (keys := _list_block_keys(entry))), frozenset())
    matches = [
        (message_index, block_index)
        for message_index, message in enumerate(messages)
        for block_index, block in enumerate(list_content_blocks(message))
        if _read_block_key(block) in first_keys
    ]
    if not matches or len(matches) > len(first_keys):
        return None
    message_index, block_index = matches[0]
    message = messages[message_index]
    # A response is kept whole; earlier blocks of a user's message belong to the part to summarise.
    if not block_index or message.get("role") == "assistant":
        return messages[:message_index]
    return [*messages[:message_index], {**message, "content": list_content_blocks(message)[:block_index]}]


def _list_block_keys(entry: Entry) -> frozenset[tuple[str, str]]:
    """Return the keys that identify an entry's blocks in a request."""
    keys: set[tuple[str, str]] = set()
    for block in entry.message.content if entry.message else ():
        if isinstance(block, ToolUseBlock):
            keys.add(("tool_use", block.id))
        elif isinstance(block, ToolResultBlock):
            keys.add(("tool_result", block.tool_use_id))
        elif isinstance(block, TextBlock) and block.text.strip():
            keys.add(("text", block.text))
    return frozenset(keys)


def _read_block_key(block: object) -> tuple[object, object]:
    if not isinstance(block, Mapping):
        return ("", "")
    kind = block.get("type")
    field = {"tool_use": "id", "tool_result": "tool_use_id", "text": "text"}.get(str(kind), "")
    return (kind, block.get(field))


def _get_lifetime(messages: _Messages) -> CacheTtl:
    """Return the cache lifetime of the parent's last marker, so that the fork asks for the same."""
    for message in reversed(messages):
        for block in reversed(list_content_blocks(message)):
            marker = block.get("cache_control") if isinstance(block, Mapping) else None
            if isinstance(marker, Mapping):
                return CacheTtl.ONE_HOUR if marker.get("ttl") == CacheTtl.ONE_HOUR else DEFAULT_TTL
    return DEFAULT_TTL
