"""Fingerprints: what identifies a request for the cache, as keyed hashes, names, sizes and positions. No prompt text.

The hash is a parameter (bytes to text), so that only fingerprints with the key of one team can be compared.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from compaction.prompt.request import Fields, Marker, PromptMessage, PromptRequest, Tool, write_canonical, write_json
from compaction.transcripts.json_fields import get_count, get_fields, get_items, get_text

Digest = Callable[[bytes], str]

# Settings with a closed vocabulary are stored as they are; all others as a hash.
_PLAIN_SETTINGS = frozenset({"betas", "effort", "speed", "strategy", "auto_mode", "overage"})
# Each line of a list has its own hash, so that added and removed lines can be compared.
_LISTED_SETTINGS = frozenset({"cached_micro"})
_LISTED_DIGITS = 12
_MEDIA = frozenset({"image"})


@dataclass(frozen=True, slots=True)
class BlockPrint:
    """One system block: its hash and its size."""

    digest: str
    size_characters: int


@dataclass(frozen=True, slots=True)
class ToolPrint:
    """One tool: its name, and hashes of the whole, of its description and of its schema."""

    name: str
    digest: str
    description_digest: str
    schema_digest: str
    size_characters: int
    is_deferred: bool = False
    is_web_search: bool = False


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """All parts of a cache key. Message sizes and block counts are empty where the client's hashes are opaque."""

    model: str | None
    tools: tuple[ToolPrint, ...]
    system: tuple[BlockPrint, ...]
    messages: tuple[str, ...]
    message_sizes: tuple[int, ...]
    message_blocks: tuple[int, ...]
    system_messages: tuple[int, ...]
    settings: tuple[tuple[str, str], ...]
    markers: tuple[Marker, ...]
    image_count: int = 0
    has_citations: bool = False
    are_messages_known: bool = True
    are_messages_opaque: bool = False

    @property
    def deletions(self) -> frozenset[str]:
        """The hashes of what the request deletes from the cache."""
        return frozenset(dict(self.settings).get("cached_micro", "").split())

    def to_fields(self) -> dict[str, object]:
        """Return plain values for a JSON column."""
        return {
            "model": self.model,
            "tools": [[getattr(tool, name) for name in ToolPrint.__slots__] for tool in self.tools],
            "system": [[block.digest, block.size_characters] for block in self.system],
            "messages": list(self.messages),
            "message_sizes": list(self.message_sizes),
            "message_blocks": list(self.message_blocks),
            "system_messages": list(self.system_messages),
            "settings": [list(pair) for pair in self.settings],
            "markers": [[list(marker.path), marker.ttl, marker.scope] for marker in self.markers],
            "image_count": self.image_count,
            "has_citations": self.has_citations,
            "are_messages_known": self.are_messages_known,
            "are_messages_opaque": self.are_messages_opaque,
        }


def fingerprint_request(request: PromptRequest, digest: Digest) -> Fingerprint:
    """Return the fingerprint of a request, in time linear in its size."""
    texts = [_write_message(message) for message in request.messages]
    is_opaque = request.are_messages_opaque
    image_count, has_citations = _count_media(request.messages)
    return Fingerprint(
        model=request.model,
        tools=tuple(_fingerprint_tool(tool, digest) for tool in request.tools),
        system=tuple(_fingerprint_block(block, digest) for block in request.system),
        messages=tuple(
            message.opaque_hash if message.opaque_hash is not None else digest(_encode(text))
            for message, text in zip(request.messages, texts, strict=True)
        ),
        message_sizes=() if is_opaque else tuple(map(len, texts)),
        message_blocks=() if is_opaque else tuple(len(message.blocks) for message in request.messages),
        system_messages=tuple(i for i, message in enumerate(request.messages) if message.role == "system"),
        settings=tuple((name, _fingerprint_setting(name, value, digest)) for name, value in request.settings),
        markers=request.markers,
        image_count=image_count,
        has_citations=has_citations,
        are_messages_known=request.are_messages_known,
        are_messages_opaque=is_opaque,
    )


@dataclass(frozen=True, slots=True)
class MessagePrint:
    """One message of a stored request; many requests share it, so it is stored as one short text."""

    digest: str
    size_characters: int = 0
    block_count: int = 0
    is_system: bool = False


def write_message_prints(fingerprint: Fingerprint) -> tuple[str, ...]:
    """Return the messages of a fingerprint as texts that can be compared and parsed."""
    system = set(fingerprint.system_messages)
    rows = zip(fingerprint.messages, fingerprint.message_sizes, fingerprint.message_blocks, strict=True)
    return tuple(
        f"{digest}:{size}:{blocks}:{'s' if index in system else ''}"
        for index, (digest, size, blocks) in enumerate(rows)
    )


def read_message_print(text: str) -> MessagePrint:
    """Return a message of `write_message_prints`; any other text is a digest as a whole."""
    digest, _, rest = text.partition(":")
    size, _, rest = rest.partition(":")
    blocks, _, mark = rest.partition(":")
    if not (size.isdecimal() and blocks.isdecimal()):
        return MessagePrint(text)
    return MessagePrint(digest, int(size), int(blocks), mark == "s")


def _write_message(message: PromptMessage) -> str:
    if message.opaque_hash is not None:
        return ""
    return write_canonical((message.role, message.blocks, message.details))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _fingerprint_setting(name: str, value: str, digest: Digest) -> str:
    if name in _PLAIN_SETTINGS:
        return value
    if name in _LISTED_SETTINGS:
        return " ".join(sorted(digest(_encode(line))[:_LISTED_DIGITS] for line in value.split("\n")))
    return digest(_encode(value))


def _fingerprint_block(block: Fields, digest: Digest) -> BlockPrint:
    text = write_canonical(block)
    return BlockPrint(digest(_encode(text)), len(text))


def _fingerprint_tool(tool: Tool, digest: Digest) -> ToolPrint:
    text = write_canonical(tool.fields)
    description = get_text(tool.fields, "description") or ""
    schema = write_json(tool.fields.get("input_schema"))
    return ToolPrint(
        name=tool.name,
        digest=digest(_encode(text)),
        description_digest=digest(_encode(description)),
        schema_digest=digest(_encode(schema)),
        size_characters=len(text),
        is_deferred=tool.is_deferred,
        is_web_search=tool.is_web_search,
    )


def _count_media(messages: tuple[PromptMessage, ...]) -> tuple[int, bool]:
    images, has_citations = 0, False
    for message in messages:
        for block in message.blocks:
            kind = block.get("type")
            if kind == "text":
                continue
            if kind in _MEDIA:
                images += 1
            elif kind == "document":
                has_citations = has_citations or get_fields(block, "citations").get("enabled") is True
            elif kind == "tool_result":
                parts = get_items(block, "content")
                images += sum(isinstance(part, Mapping) and part.get("type") in _MEDIA for part in parts)
    return images, has_citations


def read_fingerprint(fields: Fields) -> Fingerprint:
    """Return a fingerprint from `to_fields`."""
    return Fingerprint(
        model=get_text(fields, "model"),
        tools=tuple(ToolPrint(*row) for row in _rows(fields, "tools", len(ToolPrint.__slots__))),
        system=tuple(BlockPrint(*row) for row in _rows(fields, "system", len(BlockPrint.__slots__))),
        messages=tuple(str(item) for item in get_items(fields, "messages")),
        message_sizes=_numbers(fields, "message_sizes"),
        message_blocks=_numbers(fields, "message_blocks"),
        system_messages=_numbers(fields, "system_messages"),
        settings=tuple((str(row[0]), str(row[1])) for row in _rows(fields, "settings", 2)),
        markers=tuple(Marker(tuple(row[0]), row[1], row[2]) for row in _rows(fields, "markers", 3)),
        image_count=get_count(fields, "image_count") or 0,
        has_citations=fields.get("has_citations") is True,
        are_messages_known=fields.get("are_messages_known") is not False,
        are_messages_opaque=fields.get("are_messages_opaque") is True,
    )


def _rows(fields: Fields, key: str, width: int) -> list[list[Any]]:
    return [item for item in get_items(fields, key) if isinstance(item, list) and len(item) == width]


def _numbers(fields: Fields, key: str) -> tuple[int, ...]:
    return tuple(item for item in get_items(fields, key) if isinstance(item, int))
