"""Blocks of a prompt: one type by which two requests are compared, from a request or from its fingerprint."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.prompt.fingerprint import Fingerprint, ToolPrint
from compaction.prompt.request import (
    BlockPath,
    Fields,
    PromptLevel,
    PromptMessage,
    PromptRequest,
    Tool,
    write_canonical,
    write_json,
)
from compaction.transcripts.json_fields import get_items, get_text

DESCRIPTION, SCHEMA = "description", "schema"
_TEXT_KEYS = ("text", "thinking")


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """A tool, system block, message or message block; `identity` is its canonical text or its hash."""

    level: PromptLevel
    path: BlockPath
    name: str
    identity: str
    size_characters: int
    source: Tool | PromptMessage | Fields | None = None
    fingerprint: ToolPrint | None = None

    def list_parts(self) -> "Sequence[PromptBlock]":
        """Return the blocks of a message; nothing else has parts."""
        if not isinstance(self.source, PromptMessage):
            return ()
        return tuple(
            _build_block(block, (*self.path, "content", index)) for index, block in enumerate(self.source.blocks)
        )

    def render(self, parts: tuple[str, ...] = ()) -> str | None:
        """Return the text for people, one field per line; None where it is not known. `parts`: those that
        `list_changed_parts` returns, to leave out what did not change."""
        if self.source is None or (isinstance(self.source, PromptMessage) and self.source.opaque_hash is not None):
            return None
        if isinstance(self.source, Tool):
            return _render_tool(self.source.fields, parts)
        if isinstance(self.source, PromptMessage):
            return "\n".join(_render_block(block) for block in self.source.blocks)
        return _render_block(self.source)

    def list_changed_parts(self, other: "PromptBlock") -> tuple[str, ...]:
        """Return what of a tool changed: its description, its schema, or other fields."""
        if self.fingerprint is not None and other.fingerprint is not None:
            same = {
                DESCRIPTION: self.fingerprint.description_digest == other.fingerprint.description_digest,
                SCHEMA: self.fingerprint.schema_digest == other.fingerprint.schema_digest,
            }
        elif isinstance(self.source, Tool) and isinstance(other.source, Tool):
            old, new = self.source.fields, other.source.fields
            same = {
                DESCRIPTION: old.get("description") == new.get("description"),
                SCHEMA: write_json(old.get("input_schema")) == write_json(new.get("input_schema")),
            }
        else:
            return ()
        return tuple(part for part, is_same in same.items() if not is_same) or ("other fields",)


def list_request_blocks(request: PromptRequest, level: PromptLevel) -> Sequence[PromptBlock]:
    """Return the blocks of one level of a request, without deferred tools, which are outside the prefix."""
    if level is PromptLevel.TOOLS:
        return [_build_tool_block(tool, index) for index, tool in enumerate(request.tools) if not tool.is_deferred]
    if level is PromptLevel.SYSTEM:
        return [_build_block(block, (level.value, index)) for index, block in enumerate(request.system)]
    return [_build_message_block(message, index) for index, message in enumerate(request.messages)]


def list_fingerprint_blocks(
    fingerprint: Fingerprint, level: PromptLevel, *, first_message: int = 0
) -> Sequence[PromptBlock]:
    """Return the blocks of one level of a fingerprint, messages from this one on."""
    if level is PromptLevel.TOOLS:
        return [
            PromptBlock(level, (level.value, index), tool.name, tool.digest, tool.size_characters, fingerprint=tool)
            for index, tool in enumerate(fingerprint.tools)
            if not tool.is_deferred
        ]
    if level is PromptLevel.SYSTEM:
        return [
            PromptBlock(level, (level.value, index), "text", block.digest, block.size_characters)
            for index, block in enumerate(fingerprint.system)
        ]
    sizes = fingerprint.message_sizes or (0,) * len(fingerprint.messages)
    pairs = zip(fingerprint.messages[first_message:], sizes[first_message:], strict=True)
    return [
        PromptBlock(level, (level.value, index), "message", digest, size)
        for index, (digest, size) in enumerate(pairs, first_message)
    ]


def _build_tool_block(tool: Tool, index: int) -> PromptBlock:
    text = write_canonical(tool.fields)
    return PromptBlock(PromptLevel.TOOLS, (PromptLevel.TOOLS.value, index), tool.name, text, len(text), tool)


def _build_block(block: Fields, path: BlockPath) -> PromptBlock:
    text = write_canonical(block)
    return PromptBlock(PromptLevel(str(path[0])), path, get_text(block, "type") or "", text, len(text), block)


def _build_message_block(message: PromptMessage, index: int) -> PromptBlock:
    path = (PromptLevel.MESSAGES.value, index)
    if message.opaque_hash is not None:
        return PromptBlock(PromptLevel.MESSAGES, path, "message", message.opaque_hash, 0, message)
    text = write_canonical((message.role, message.blocks, message.details))
    return PromptBlock(PromptLevel.MESSAGES, path, message.role, text, len(text), message)


def _render_tool(fields: Fields, parts: tuple[str, ...]) -> str:
    description = get_text(fields, "description") or ""
    if parts == (DESCRIPTION,):
        return description
    if parts == (SCHEMA,):
        return _render_json(fields.get("input_schema"))
    rest = {key: value for key, value in fields.items() if key not in ("name", "description")}
    return f"{description}\n{_render_json(rest)}"


def _render_block(block: Fields) -> str:
    for key in _TEXT_KEYS:
        text = get_text(block, key)
        if text is not None:
            return text
    if block.get("type") == "tool_result":
        content = block.get("content")
        if isinstance(content, str):
            return content
        parts = get_items(block, "content")
        return "\n".join(_render_block(part) if isinstance(part, Mapping) else str(part) for part in parts)
    return _render_json(block)


def _render_json(value: object) -> str:
    """Return JSON with one key a line: enough for a line diff, at a tenth of the cost of indenting."""
    return write_json(value).replace(',"', ',\n"')
