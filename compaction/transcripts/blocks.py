"""Reads content blocks from decoded JSON and writes them as the Messages API takes them."""

from collections.abc import Callable, Mapping, Sequence

from compaction.transcripts.entries import (
    Block,
    DocumentBlock,
    ImageBlock,
    OtherBlock,
    ResultPart,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from compaction.transcripts.json_fields import get_fields, get_text

EncodeJson = Callable[[object], str]
Fields = Mapping[str, object]


def read_blocks(content: object, encode: EncodeJson) -> tuple[Block, ...]:
    """Return the blocks of a message; a string is one text block, other values that are no list are kept whole."""
    if isinstance(content, str):
        return (TextBlock(content),)
    if content is None:
        return ()
    if not isinstance(content, list):
        return (_keep_whole(content, encode),)
    return tuple(_read_block(item, encode) for item in content)


def _read_block(item: object, encode: EncodeJson) -> Block:
    if not isinstance(item, Mapping):
        return _read_part(item, encode)
    match item.get("type"):
        case "tool_use":
            return _read_tool_use(item, encode)
        case "tool_result":
            return _read_tool_result(item, encode)
        case "thinking" if isinstance(item.get("thinking"), str):
            return ThinkingBlock(str(item["thinking"]), get_text(item, "signature"))
        case "redacted_thinking":
            return ThinkingBlock("", None, get_text(item, "data") or "")
        case _:
            return _read_part(item, encode)


def _read_part(item: object, encode: EncodeJson) -> ResultPart:
    if isinstance(item, str):
        return TextBlock(item)
    if not isinstance(item, Mapping):
        return _keep_whole(item, encode)
    kind = item.get("type")
    if kind == "text" and isinstance(item.get("text"), str):
        return TextBlock(str(item["text"]))
    if kind == "image":
        return ImageBlock(get_fields(item, "source"))
    if kind == "document":
        details = {key: value for key, value in item.items() if key not in ("type", "source")}
        return DocumentBlock(get_fields(item, "source"), details)
    return _keep_whole(item, encode)


def _read_tool_use(item: Fields, encode: EncodeJson) -> Block:
    use_id, name = get_text(item, "id"), get_text(item, "name")
    if not use_id or not name:
        return _keep_whole(item, encode)
    arguments = item.get("input")
    if not isinstance(arguments, Mapping):
        return ToolUseBlock(use_id, name, {}, "{}" if arguments is None else encode(arguments))
    return ToolUseBlock(use_id, name, arguments, encode(arguments))


def _read_tool_result(item: Fields, encode: EncodeJson) -> Block:
    use_id = get_text(item, "tool_use_id")
    if not use_id:
        return _keep_whole(item, encode)
    content = item.get("content")
    is_error = item.get("is_error") is True
    if isinstance(content, list):
        parts = tuple(_read_part(part, encode) for part in content)
        return ToolResultBlock(use_id, parts, is_error, is_plain=False)
    if content is None:
        return ToolResultBlock(use_id, (), is_error)
    return ToolResultBlock(use_id, (_read_part(content, encode),), is_error)


def _keep_whole(item: object, encode: EncodeJson) -> OtherBlock:
    if isinstance(item, Mapping):
        return OtherBlock(get_text(item, "type") or "", item, encode(item))
    return OtherBlock("", {"value": item}, encode(item))


def write_block(block: Block) -> dict[str, object]:
    """Return the block as the Messages API takes it."""
    match block:
        case ThinkingBlock():
            return _write_thinking(block)
        case ToolUseBlock():
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.input)}
        case ToolResultBlock():
            return _write_tool_result(block)
        case _:
            return _write_part(block)


def _write_part(part: ResultPart) -> dict[str, object]:
    match part:
        case TextBlock():
            return {"type": "text", "text": part.text}
        case ImageBlock():
            return {"type": "image", "source": dict(part.source)}
        case DocumentBlock():
            return {"type": "document", "source": dict(part.source), **part.details}
        case OtherBlock():
            return dict(part.fields)


def _write_thinking(block: ThinkingBlock) -> dict[str, object]:
    if block.redacted is not None:
        return {"type": "redacted_thinking", "data": block.redacted}
    signature = {} if block.signature is None else {"signature": block.signature}
    return {"type": "thinking", "thinking": block.thinking, **signature}


def _write_tool_result(block: ToolResultBlock) -> dict[str, object]:
    content: object = [_write_part(part) for part in block.parts]
    if block.is_plain and not block.parts:
        content = ""
    elif block.is_plain and len(block.parts) == 1 and isinstance(block.parts[0], TextBlock):
        content = block.parts[0].text
    error = {"is_error": True} if block.is_error else {}
    return {"tool_use_id": block.tool_use_id, "type": "tool_result", "content": content, **error}


def write_content(content: Sequence[Block], *, is_plain: bool) -> str | list[dict[str, object]]:
    """Return the content of a message: a string where it was one and still is a single text."""
    if is_plain and len(content) == 1 and isinstance(content[0], TextBlock):
        return content[0].text
    return [write_block(block) for block in content]
