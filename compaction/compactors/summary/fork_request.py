"""Forks: a request for a summary that repeats the parent request byte for byte, so that only the prompt is new.

Nothing is stripped and no parameter changes: any difference would miss the parent's cache.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.compactors.summary.request_messages import add_prompt, list_blocks
from compaction.context.cache_ttl import DEFAULT_TTL, CacheTtl
from compaction.ports import SummaryRequest, SummaryRoute, Variant
from compaction.prompt.markers import mark_messages
from compaction.transcripts.entries import Entry, TextBlock, ToolResultBlock, ToolUseBlock
from compaction.transcripts.flatten import HEAD_TEXT, ApiMessage, flatten

_Messages = list[Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class ParentRequest:
    """The body of the last known request of the thread, and the id of the response it got (None: not answered yet)."""

    body: Mapping[str, object]
    response_id: str | None = None


def prepare_fork(
    variant: Variant, parent: ParentRequest, sent: Sequence[Entry], *, kept_after: Sequence[Entry], prompt: str
) -> SummaryRequest | None:
    """The parent's request with the prompt behind what is to be summarised; None where that cannot be told apart."""
    messages = _find_messages(parent, sent, kept_after)
    if not messages:
        return None
    marked = mark_messages(add_prompt(messages, prompt), _find_lifetime(messages), skips_write=True)
    body = {**parent.body, "messages": marked, "stream": True}
    return SummaryRequest(variant=variant, path=SummaryRoute.FORK, entries=tuple(sent), prompt=prompt, body=body)


def _find_messages(parent: ParentRequest, sent: Sequence[Entry], kept_after: Sequence[Entry]) -> _Messages | None:
    """The parent's messages up to the cut, and those of the entries that came after the parent's request."""
    known = parent.body.get("messages")
    if not isinstance(known, Sequence) or not all(isinstance(message, Mapping) for message in known):
        return None
    messages: _Messages = list(known)
    if _has_response(parent, kept_after):
        return messages if _has_response(parent, kept_after[:1]) else _cut_before(messages, kept_after)
    if parent.response_id is None:
        return _cut_before(messages, kept_after) if kept_after else messages
    if not _has_response(parent, sent):
        return None
    later = flatten(_list_later(parent, sent))
    return messages + [message.to_api() for message in later if not _is_head(message)]


def _has_response(parent: ParentRequest, entries: Sequence[Entry]) -> bool:
    wanted = parent.response_id
    return wanted is not None and any(entry.message is not None and entry.message.id == wanted for entry in entries)


def _list_later(parent: ParentRequest, sent: Sequence[Entry]) -> Sequence[Entry]:
    for index, entry in enumerate(sent):
        if entry.message is not None and entry.message.id == parent.response_id:
            return sent[index:]
    return ()


def _is_head(message: ApiMessage) -> bool:
    """The message that flatten puts in front of an assistant's."""
    return not message.entry_uuids and message.content == (TextBlock(HEAD_TEXT),)


def _cut_before(messages: _Messages, kept_after: Sequence[Entry]) -> _Messages | None:
    """The messages up to the block in which the first kept entry is found again; None when that is not certain."""
    wanted = next((signs for entry in kept_after if (signs := _list_signs(entry))), frozenset())
    places = [
        (index, number)
        for index, message in enumerate(messages)
        for number, block in enumerate(list_blocks(message))
        if _read_sign(block) in wanted
    ]
    if not places or len(places) > len(wanted):
        return None
    index, number = places[0]
    # A response is kept whole; what came before in a user's message belongs to what is summarised.
    if not number or messages[index].get("role") == "assistant":
        return messages[:index]
    return [*messages[:index], {**messages[index], "content": list_blocks(messages[index])[:number]}]


def _list_signs(entry: Entry) -> frozenset[tuple[str, str]]:
    """What an entry's blocks are known by in a request."""
    signs: set[tuple[str, str]] = set()
    for block in entry.message.content if entry.message else ():
        if isinstance(block, ToolUseBlock):
            signs.add(("tool_use", block.id))
        elif isinstance(block, ToolResultBlock):
            signs.add(("tool_result", block.tool_use_id))
        elif isinstance(block, TextBlock) and block.text.strip():
            signs.add(("text", block.text))
    return frozenset(signs)


def _read_sign(block: object) -> tuple[object, object]:
    if not isinstance(block, Mapping):
        return ("", "")
    kind = block.get("type")
    key = {"tool_use": "id", "tool_result": "tool_use_id", "text": "text"}.get(str(kind), "")
    return (kind, block.get(key))


def _find_lifetime(messages: _Messages) -> CacheTtl:
    """What the parent's own last marker asks for, so that it stays the same."""
    for message in reversed(messages):
        for block in reversed(list_blocks(message)):
            marker = block.get("cache_control") if isinstance(block, Mapping) else None
            if isinstance(marker, Mapping):
                return CacheTtl.ONE_HOUR if marker.get("ttl") == CacheTtl.ONE_HOUR else DEFAULT_TTL
    return DEFAULT_TTL
