"""Converts messages of an API request to entries and back, for agents that keep no transcript.

A message that stays is written as it was read, with its markers, citations and all other fields.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby

from compaction.transcripts.blocks import read_blocks, write_block
from compaction.transcripts.entries import Block, Entry, Message, Usage
from compaction.transcripts.flatten import flatten
from compaction.transcripts.reader import encode_json

ApiMessage = Mapping[str, object]
_PREFIX = "message-"


def message_uuid(index: int) -> str:
    """Return the uuid of a message inside the engine; findings about it cite this uuid."""
    return f"{_PREFIX}{index}"


def parse_message_index(uuid: str | None) -> int | None:
    """Return the index of the message with this uuid; None for an entry that the engine made."""
    number = (uuid or "").removeprefix(_PREFIX)
    return int(number) if uuid != number and number.isdecimal() else None


def read_messages(
    messages: Sequence[ApiMessage], *, model: str | None = None, usage: Usage | None = None
) -> tuple[Entry, ...]:
    """Return one entry for each message, in a chain. `usage` is that of the last answer, from which sizes follow."""
    answers = [index for index, message in enumerate(messages) if message.get("role") == "assistant"]
    measured = answers[-1] if answers and usage is not None else None
    return tuple(
        Entry(
            "assistant" if message.get("role") == "assistant" else "user",
            uuid=message_uuid(index),
            parent_uuid=message_uuid(index - 1) if index else None,
            is_meta=message.get("role") == "system",
            message=Message(
                role="assistant" if message.get("role") == "assistant" else "user",
                content=read_blocks(message.get("content"), encode_json),
                id=message_uuid(index) if index == measured else None,
                model=model if message.get("role") == "assistant" else None,
                usage=usage if index == measured else None,
                is_plain=isinstance(message.get("content"), str),
            ),
        )
        for index, message in enumerate(messages)
    )


def write_messages(entries: Sequence[Entry], originals: Sequence[ApiMessage] = ()) -> list[dict[str, object]]:
    """Return the messages of these entries. `originals` are the messages that were read: unchanged ones are returned as
    they were; of a changed one only the changed blocks are written."""
    written: list[dict[str, object]] = []
    for is_original, group in groupby(entries, key=lambda entry: parse_message_index(entry.uuid) is not None):
        if is_original:
            written += [_write_original(entry, originals) for entry in group]
        else:
            written += [message.to_api() for message in flatten(group)]
    return written


def _write_original(entry: Entry, originals: Sequence[ApiMessage]) -> dict[str, object]:
    original = originals[parse_message_index(entry.uuid) or 0]
    blocks = entry.message.content if entry.message else ()
    content = original.get("content")
    if not isinstance(content, list) or len(content) != len(blocks):
        return dict(original)
    return {**original, "content": [_write_block(*pair) for pair in zip(content, blocks, strict=True)]}


def _write_block(original: object, block: Block) -> object:
    if read_blocks([original], encode_json) == (block,):
        return original
    fields = dict(original) if isinstance(original, Mapping) else {}
    return fields | write_block(block)


def list_content_blocks(message: ApiMessage) -> list[object]:
    """Return the content blocks of a message in a request body; a plain string becomes one text block."""
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, Sequence) else []
