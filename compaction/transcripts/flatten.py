"""Converts entries to the messages of an API request: filters, merges, pairs. The result is a valid conversation.

Meta and summary messages stay; thinking-only messages at the very end are removed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from compaction.transcripts.attachments import render_attachment
from compaction.transcripts.blocks import write_block
from compaction.transcripts.entries import (
    Block,
    DocumentBlock,
    Entry,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)

HEAD_TEXT = "[The conversation before this point is not part of this request.]"
COMPACTION_TYPE = "compaction"  # protocol constant: the block that replaces what the server has compacted
NO_RESULT_TEXT = "[No result was recorded for this tool request.]"


@dataclass(frozen=True, slots=True)
class ApiMessage:
    """One message of a request, with the uuids of the entries it was made of."""

    role: str
    content: tuple[Block, ...]
    entry_uuids: tuple[str, ...] = ()

    def to_api(self) -> dict[str, object]:
        """Return the message as the Messages API takes it."""
        return {"role": self.role, "content": [write_block(block) for block in self.content]}


@dataclass(slots=True)
class _Draft:
    role: str
    message_id: str | None
    blocks: list[Block] = field(default_factory=list)
    uuids: list[str] = field(default_factory=list)

    @property
    def is_thinking_only(self) -> bool:
        return self.role == "assistant" and all(isinstance(block, ThinkingBlock) for block in self.blocks)

    def absorb(self, other: "_Draft") -> None:
        self.blocks += other.blocks
        self.uuids += other.uuids


def flatten(entries: Iterable[Entry]) -> tuple[ApiMessage, ...]:
    """Return the conversation: roles alternate, a user begins, every tool request is followed by its result."""
    drafts = _merge_responses(_read_drafts(entries))
    while drafts and drafts[-1].is_thinking_only:
        drafts.pop()
    paired = _pair_results(_merge_roles(drafts))
    if paired and paired[0].role == "assistant" and not _opens_with_compaction(paired[0]):
        paired.insert(0, _Draft("user", None, [TextBlock(HEAD_TEXT)]))
    return tuple(ApiMessage(draft.role, tuple(draft.blocks), tuple(draft.uuids)) for draft in paired)


def _opens_with_compaction(draft: _Draft) -> bool:
    """Return whether an assistant message begins with the block that replaces the conversation before it."""
    return bool(draft.blocks) and draft.blocks[0].type == COMPACTION_TYPE


def _read_drafts(entries: Iterable[Entry]) -> Iterator[_Draft]:
    for entry in entries:
        uuids = [entry.uuid] if entry.uuid else []
        if entry.type == "attachment":
            text = render_attachment(entry)
            if text.strip():
                yield _Draft("user", None, [TextBlock(text)], uuids)
        elif entry.type in ("user", "assistant") and entry.message is not None and not is_synthetic_error(entry):
            blocks = [block for block in entry.message.content if _may_be_sent(block, entry.type)]
            if blocks:
                yield _Draft(entry.type, entry.message.id, blocks, uuids)


def is_synthetic_error(entry: Entry) -> bool:
    """Return whether the client wrote an API error as a message of the assistant."""
    return entry.is_api_error and entry.message is not None and entry.message.is_synthetic


def _may_be_sent(block: Block, role: str) -> bool:
    """Return whether the API takes this block from this role: no empty text, no unsigned thinking."""
    match block:
        case TextBlock():
            return bool(block.text.strip())
        case ThinkingBlock():
            return role == "assistant" and bool(block.signature or block.redacted)
        case ToolUseBlock():
            return role == "assistant"
        case ToolResultBlock() | ImageBlock() | DocumentBlock():
            return role == "user"
        case _:
            return bool(block.type) and block.type not in ("text", "thinking", "tool_use", "tool_result", "unreadable")


def _merge_responses(drafts: Iterable[_Draft]) -> list[_Draft]:
    """Merge lines of one response into one message even with tool results between them, and adjacent user messages."""
    merged: list[_Draft] = []
    response: _Draft | None = None
    for draft in drafts:
        if draft.role == "user":
            if merged and merged[-1].role == "user":
                merged[-1].absorb(draft)
                continue
        elif response is not None and draft.message_id is not None and draft.message_id == response.message_id:
            response.absorb(draft)
            continue
        else:
            response = draft
        merged.append(draft)
    return merged


def _merge_roles(drafts: Iterable[_Draft]) -> list[_Draft]:
    merged: list[_Draft] = []
    for draft in drafts:
        if merged and merged[-1].role == draft.role:
            merged[-1].absorb(draft)
        else:
            merged.append(draft)
    return merged


def _pair_results(drafts: Sequence[_Draft]) -> list[_Draft]:
    """Move every result to the start of the message after its request; remove results without request."""
    results = _find_results(drafts)
    paired: list[_Draft] = []
    seen: set[str] = set()
    due: list[ToolResultBlock] = []
    for draft in drafts:
        if draft.role == "user":
            draft.blocks = [*due, *(block for block in draft.blocks if not isinstance(block, ToolResultBlock))]
            due = []
        else:
            draft.blocks = [block for block in draft.blocks if _is_first(block, seen)]
            due = [_answer(block, results) for block in draft.blocks if isinstance(block, ToolUseBlock)]
        if draft.blocks:
            paired.append(draft)
    if due:
        paired.append(_Draft("user", None, list(due)))
    return _merge_roles(paired)


def _find_results(drafts: Iterable[_Draft]) -> dict[str, ToolResultBlock]:
    results: dict[str, ToolResultBlock] = {}
    for draft in drafts:
        for block in draft.blocks:
            if isinstance(block, ToolResultBlock):
                results.setdefault(block.tool_use_id, block)
    return results


def _is_first(block: Block, seen: set[str]) -> bool:
    """Return False for a tool request whose id was used before."""
    if not isinstance(block, ToolUseBlock):
        return True
    if block.id in seen:
        return False
    seen.add(block.id)
    return True


def _answer(request: ToolUseBlock, results: dict[str, ToolResultBlock]) -> ToolResultBlock:
    missing = ToolResultBlock(request.id, (TextBlock(NO_RESULT_TEXT),), is_error=True)
    return results.get(request.id, missing)
