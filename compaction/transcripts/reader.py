"""Reads lines of bytes as entries, leniently; content is decoded at the first access. The only file that parses JSON.

Every line is kept: what cannot be read becomes a skipped line with number and reason.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Annotated, Literal, TypeVar

import msgspec
import orjson

from compaction.transcripts.blocks import read_blocks
from compaction.transcripts.entries import (
    Block,
    Entry,
    Item,
    LazyFields,
    LazySequence,
    Message,
    OtherBlock,
    SkippedLine,
    TextBlock,
)
from compaction.transcripts.json_fields import get_fields, get_items, get_time
from compaction.transcripts.lines import RawLine
from compaction.transcripts.output_estimate import TOOL_REQUEST_CHARACTERS
from compaction.transcripts.payloads import Attachment, Payload, Progress, has_payload, read_payload
from compaction.transcripts.usage import (
    CacheCreationHead,
    OutputDetailsHead,
    ServerToolsHead,
    TokensHead,
    UsageHead,
    build_usage,
)

Time = Annotated[datetime, msgspec.Meta(tz=True)]
_NO_JSON = msgspec.Raw(b"")
_SPACE = re.compile(r"[ \t\r\n\x00\ufeff]*")  # JSON's own, plus the NULs of an interrupted write and a byte order mark
_UNREADABLE = "unreadable"
_T = TypeVar("_T")
_SomeStruct = TypeVar("_SomeStruct", bound=msgspec.Struct)


class _NoJsonNumber(ValueError):
    """NaN and Infinity, which Python would read, but other readers of the stored text would not."""


def _refuse_constant(name: str) -> object:
    raise _NoJsonNumber(f"JSON has no number {name}.")


_LENIENT = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)


# gc=False: the structs below hold no cycles.
def name_in_json(name: str) -> str:
    first, *rest = name.split("_")
    return (first + "".join(word.title() for word in rest)).replace("UseId", "UseID")


class _Kind(msgspec.Struct, rename="camel", gc=False):
    type: str = ""
    agent_id: str | None = None


class _Diagnostics(msgspec.Struct, gc=False):
    cache_miss_reason: _Kind | None = None


class MessageHead(msgspec.Struct, gc=False):
    """A message apart from its content."""

    model: str | None = None
    id: str | None = None
    type: str | None = None
    role: str | None = None
    stop_reason: str | None = None
    usage: UsageHead | None = None
    diagnostics: _Diagnostics | None = None

    @property
    def miss_reason(self) -> str | None:
        """Why the cache was missed, according to the API."""
        reason = self.diagnostics.cache_miss_reason if self.diagnostics else None
        return reason.type if reason else None


class _Message(MessageHead, gc=False):
    content: msgspec.Raw = _NO_JSON


class Written(msgspec.Struct, gc=False):
    """The fields of a block that determine how much the model wrote."""

    type: str = ""
    text: str = ""
    thinking: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = _NO_JSON


class LineHead(msgspec.Struct, rename=name_in_json, gc=False):
    """The part of a line that metrics need; content stays undecoded."""

    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    is_sidechain: bool | None = None
    cwd: str | None = None
    session_id: str | None = None
    version: str | None = None
    git_branch: str | None = None
    agent_id: str | None = None
    type: str = ""
    subtype: str | None = None
    message: _Message | None = None
    attachment: _Kind | None = None
    rendered_role: str | None = None
    data: _Kind | None = None
    tool_use_id: str | None = None
    parent_tool_use_id: str | None = None
    request_id: str | None = None
    uuid: str | None = None
    timestamp: Time | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    shape_hash: str | None = None
    hash: str | None = None
    message_id: str | None = None
    is_snapshot_update: bool | None = None


_HEAD = msgspec.json.Decoder(LineHead)
_NESTED: dict[str, type[msgspec.Struct]] = {
    "message": _Message,
    "attachment": _Kind,
    "data": _Kind,
    "usage": UsageHead,
    "diagnostics": _Diagnostics,
    "cache_miss_reason": _Kind,
    "cache_creation": CacheCreationHead,
    "server_tool_use": ServerToolsHead,
    "output_tokens_details": OutputDetailsHead,
}
# Large lines whose payload the head already holds; the others with a payload are small.
_LIGHT_PAYLOADS = {"api-request-shape", "api-request-blob", "file-history-snapshot"}


def read_line(line: RawLine) -> Sequence[Item]:
    """Return the entries of one line (two objects may share it), or the line itself as skipped, with the reason."""
    if line.is_dropped:
        reason = f"The line has {line.size_bytes:,} bytes, more than is kept of one line."
        return (SkippedLine("too_long", line.number, line.offset, b"", reason, line.size_bytes),)
    head = decode_head(line.raw)
    return tuple(_read_leniently(line)) if head is None else (make_entry(head, line),)


def decode_head(raw: bytes) -> LineHead | None:
    """Return the head of a line that holds exactly one well-formed object; None for every other line."""
    try:
        return _HEAD.decode(raw)
    except (ValueError, RecursionError):
        return None


def count_block_characters(block: Written) -> int:
    """Return how many characters of the model one block holds."""
    if block.type == "tool_use" and block.id and block.name:
        data = memoryview(block.input)
        size = len(encode_json(load_json(data)) if data else "{}")
        return TOOL_REQUEST_CHARACTERS + len(block.name) + size
    return len(block.text) if block.type == "text" else len(block.thinking) if block.type == "thinking" else 0


def make_entry(head: LineHead, line: RawLine, fields: Mapping[str, object] | None = None) -> Entry:
    if fields is None:
        fields = LazyFields(_decode_fields, line.raw)
    message = None
    if head.message is not None and head.type in ("user", "assistant"):
        message = _make_message(head.message, head.type, fields)
    return Entry(
        type=head.type,
        subtype=head.subtype,
        uuid=head.uuid,
        parent_uuid=head.parent_uuid,
        logical_parent_uuid=head.logical_parent_uuid,
        at=head.timestamp,
        session_id=head.session_id,
        agent_id=head.agent_id,
        is_sidechain=head.is_sidechain is True,
        is_meta=head.is_meta is True,
        is_compact_summary=head.is_compact_summary is True,
        is_api_error=head.is_api_error_message is True,
        version=head.version,
        cwd=head.cwd,
        git_branch=head.git_branch,
        request_id=head.request_id,
        message=message,
        payload=None if message is not None else _make_payload(head, fields),
        fields=fields,
        raw=line.raw,
        line_number=line.number,
    )


def _make_message(head: _Message, line_type: str, fields: Mapping[str, object]) -> Message:
    content: LazySequence[Block]
    if head.content is _NO_JSON:
        content = LazySequence(_read_known_blocks, fields)
        is_plain = isinstance(get_fields(fields, "message").get("content"), str)
    else:
        content = LazySequence(_decode_blocks, head.content)
        is_plain = memoryview(head.content)[0] == ord('"')
    return Message(
        role=head.role or line_type,
        content=content,
        id=head.id,
        model=head.model,
        usage=build_usage(head.usage) if head.usage is not None else None,
        stop_reason=head.stop_reason,
        is_plain=is_plain,
        cache_miss_reason=head.miss_reason,
    )


def _make_payload(head: LineHead, fields: Mapping[str, object]) -> Payload | None:
    if head.type == "progress":
        data = head.data or _Kind()
        return Progress(data.type, head.tool_use_id, head.parent_tool_use_id, data.agent_id)
    if head.type == "attachment":
        kind = head.attachment.type if head.attachment else ""
        return Attachment(kind, LazySequence(_read_rendered, fields), head.rendered_role)
    if head.type in _LIGHT_PAYLOADS:
        hashes = {"shapeHash": head.shape_hash, "hash": head.hash, "messageId": head.message_id}
        return read_payload(head.type, None, {**hashes, "isSnapshotUpdate": head.is_snapshot_update})
    subtype = head.subtype if head.type == "system" else None
    return read_payload(head.type, subtype, fields) if has_payload(head.type, subtype) else None


def _read_rendered(fields: Mapping[str, object]) -> tuple[str, ...]:
    texts: list[str] = []
    for item in get_items(fields, "rendered"):
        content = item.get("content") if isinstance(item, Mapping) else item
        texts.extend(block.text for block in read_blocks(content, encode_json) if isinstance(block, TextBlock))
    return tuple(texts)


def _read_known_blocks(fields: Mapping[str, object]) -> tuple[Block, ...]:
    return read_blocks(get_fields(fields, "message").get("content"), encode_json)


def _decode_blocks(raw: msgspec.Raw) -> tuple[Block, ...]:
    try:
        return read_blocks(load_json(memoryview(raw)), encode_json)
    except (ValueError, RecursionError):
        return (OtherBlock(_UNREADABLE, {}, bytes(raw).decode("utf-8", "replace")),)


def _decode_fields(raw: bytes) -> Mapping[str, object]:
    try:
        fields = load_json(raw)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, Mapping) else {}


def load_json(data: bytes | memoryview) -> object:
    """Return the value of a JSON text; surrogate halves and control characters are accepted. Raise ValueError."""
    try:
        return orjson.loads(data)
    except ValueError:
        return _scrub(_LENIENT.decode(bytes(data).decode("utf-8", "surrogateescape")))


def _scrub(value: _T) -> _T:
    """Return the value with '?' for surrogate halves, which no later step could encode."""
    scrubbed: _T = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return scrubbed


def encode_json(value: object) -> str:
    """Return the value as compact JSON text."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # whole numbers beyond 64 bits, nesting beyond its limit
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _read_leniently(line: RawLine) -> Iterator[Item]:
    """Yield the items of a line that the fast decoder refuses: several objects, comments, odd values, broken JSON."""
    text = line.raw.decode("utf-8", "surrogateescape")
    start, offset = 0, line.offset
    at = _skip_space(text, 0)
    if at == len(text) or text.startswith("//", at):
        kind: Literal["blank", "comment"] = "blank" if at == len(text) else "comment"
        yield SkippedLine(kind, line.number, offset, line.raw, size_bytes=len(line.raw))
        return
    while at < len(text):
        fields, end, reason = _decode_object(text, at)
        following = _skip_space(text, end)
        stop = following if following == len(text) else end
        raw = text[start:stop].encode("utf-8", "surrogateescape")
        if reason:
            yield SkippedLine("malformed", line.number, offset, raw, reason, len(raw))
        else:
            yield make_lenient_entry(fields, RawLine(line.number, offset, raw, len(raw)))
        start, at, offset = stop, following, offset + len(raw)


def _skip_space(text: str, start: int) -> int:
    match = _SPACE.match(text, start)
    return match.end() if match else start


def _decode_object(text: str, start: int) -> tuple[Mapping[str, object], int, str]:
    """Return the object that starts here, its end and no reason; or no object, the end of the line and the reason."""
    try:
        value, end = _LENIENT.raw_decode(text, start)
        if isinstance(value, dict):
            return _scrub(value) if value else {}, end, ""
        reason = "The line holds JSON, but not an object."
    except json.JSONDecodeError as error:
        reason = f"Not valid JSON at character {error.pos + 1}: {error.msg}."
    except _NoJsonNumber as error:
        reason = str(error)
    except ValueError:
        reason = "A number on this line is too long to read."
    except RecursionError:
        reason = "The line is nested too deeply to read."
    return {}, len(text), reason


def make_lenient_entry(fields: Mapping[str, object], line: RawLine) -> Entry:
    """Return an entry from decoded fields; a value of the wrong type counts as absent."""
    head = decode_head(line.raw)
    if head is not None:
        return make_entry(head, line)
    head = _convert_leniently(fields, LineHead)
    head.timestamp = get_time(fields, "timestamp")
    return make_entry(head, line, fields)


_list_fields = cache(msgspec.structs.fields)


def _convert_leniently(fields: Mapping[str, object], kind: type[_SomeStruct]) -> _SomeStruct:
    values: dict[str, object] = {}
    for field in _list_fields(kind):
        value = fields.get(field.encode_name)
        nested = _NESTED.get(field.name)
        if field.name == "iterations" and isinstance(value, list):
            values[field.name] = [_convert_leniently(item, TokensHead) for item in value if isinstance(item, Mapping)]
        elif nested is not None and isinstance(value, Mapping):
            values[field.name] = _convert_leniently(value, nested)
        elif value is not None and _is_simple(value, field.type):
            values[field.name] = value
    return kind(**values)


def _is_simple(value: object, kind: object) -> bool:
    """Return whether a plain value fits its field; raw JSON and times are not plain."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return isinstance(value, str | bool | int) and kind is not msgspec.Raw
