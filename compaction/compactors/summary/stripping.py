"""Stripping: what a summariser does not need is left out of a plain request. A fork sends everything as it was."""

from collections.abc import Iterable, Iterator
from operator import is_

from msgspec.structs import replace

from compaction.transcripts.client_protocol import SKILL_ATTACHMENTS
from compaction.transcripts.entries import (
    Block,
    DocumentBlock,
    Entry,
    ImageBlock,
    Message,
    ResultPart,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
)
from compaction.transcripts.payloads import Attachment

IMAGE_TEXT = "[image]"  # protocol constants: what stands where a picture or a document was
DOCUMENT_TEXT = "[document]"


def strip_entries(entries: Iterable[Entry]) -> Iterator[Entry]:
    """The entries without skill listings and thinking, with marks instead of images and documents."""
    for entry in entries:
        if isinstance(entry.payload, Attachment) and entry.payload.kind in SKILL_ATTACHMENTS:
            continue
        message = entry.message
        yield entry if message is None else _strip_message(entry, message)


def _strip_message(entry: Entry, message: Message) -> Entry:
    # Another model cannot check the signature of this one's thinking, and would refuse the request.
    blocks = tuple(_strip_block(block) for block in message.content if not isinstance(block, ThinkingBlock))
    if len(blocks) == len(message.content) and all(map(is_, blocks, message.content)):
        return entry
    return entry.changed(message=replace(message, content=blocks))


def _strip_block(block: Block) -> Block:
    if isinstance(block, ImageBlock | DocumentBlock):
        return _strip_part(block)
    if isinstance(block, ToolResultBlock) and any(isinstance(part, ImageBlock | DocumentBlock) for part in block.parts):
        return replace(block, parts=tuple(_strip_part(part) for part in block.parts))
    return block


def _strip_part(part: ResultPart) -> ResultPart:
    if isinstance(part, ImageBlock):
        return TextBlock(IMAGE_TEXT)
    return TextBlock(DOCUMENT_TEXT) if isinstance(part, DocumentBlock) else part
