"""Answers of the API as bytes: event streams or JSON, whole or cut, read for figures. No Django here."""

import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import brotli
import zstandard

from compaction.compactors.micro.api_context_editing import AppliedEdit, read_applied_edits
from compaction.prompt.request import write_json
from compaction.transcripts.entries import Usage
from compaction.transcripts.json_fields import get_count, get_fields, get_items, get_text
from compaction.transcripts.output_estimate import TOOL_REQUEST_CHARACTERS, compute_output_tokens
from compaction.transcripts.reader import load_json
from compaction.transcripts.usage import read_usage

LARGEST_BODY_BYTES = 32 * 1024 * 1024
MOST_MEMBERS = 100_000  # of one gzip body: a stream may be packed event by event
_STEP_BYTES = 1024 * 1024
_WINDOW_BYTES = 16 * 1024  # read at a time: deflate makes at most a thousand times as much of it
_GZIP_MARK = b"\x1f\x8b"
Fields = Mapping[str, object]


class NotReadable(Exception):
    """Bytes that say nothing; the message is a reason for the counter of drops."""


@dataclass
class Reply:
    """What an answer said, as far as it came."""

    message_id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    stop_reason: str | None = None
    miss_reason: str | None = None
    error_type: str | None = None
    counted_tokens: int | None = None  # of a call that only counts
    content: list[dict[str, object]] = field(default_factory=list)
    edits: tuple[AppliedEdit, ...] = ()
    is_whole: bool = False

    @property
    def has_thinking(self) -> bool:
        return any(block.get("type") in ("thinking", "redacted_thinking") for block in self.content)

    @property
    def written_characters(self) -> int:
        return sum(map(_count_characters, self.content))

    def settle_usage(self) -> Usage:
        """The usage to count with: an answer that was cut says what was read, but not what was written."""
        usage = self.usage or Usage()
        if self.is_whole:
            return usage
        return usage.changed(output_tokens=compute_output_tokens(usage, None, self.written_characters))


def _count_characters(block: Fields) -> int:
    words = sum(len(get_text(block, name) or "") for name in ("text", "thinking", "name"))
    words += TOOL_REQUEST_CHARACTERS if block.get("type") == "tool_use" else 0
    return words + (len(write_json(block["input"])) if block.get("input") else 0)


def unpack(data: bytes, encoding: str) -> bytes:
    """Undoes one content encoding; of a body that was cut, what can be undone. Raises NotReadable."""
    name = encoding.strip().lower()
    try:
        if name in ("", "identity"):
            return data
        if name in ("gzip", "x-gzip", "deflate"):
            return _join(_unpack_members(data, _find_wrapping(data, name)))
        if name == "br":
            return _join(_unpack_brotli(data))
        if name == "zstd":
            return _join(_unpack_zstd(data))
    except (zlib.error, brotli.error, zstandard.ZstdError) as error:
        raise NotReadable("encoding broken") from error
    raise NotReadable("encoding not known")


def _join(pieces: Iterable[bytes]) -> bytes:
    joined, size_bytes = [], 0
    for piece in pieces:
        joined.append(piece)
        size_bytes += len(piece)
        if size_bytes >= LARGEST_BODY_BYTES:
            raise NotReadable("unpacked body too large")
    return b"".join(joined)


def _find_wrapping(data: bytes, name: str) -> int:
    """zlib's word for what is around the packed bytes. "deflate" should be zlib's own (RFC 9110, 8.4.1.2), and is
    nothing at all with some servers; gzip and zlib are told by their marks, whatever they are called."""
    first = int.from_bytes(data[:2])
    is_zlib = first & 0x8F00 == 0x0800 and first % 31 == 0  # RFC 1950, 2.2
    is_bare = name == "deflate" and not is_zlib and not data.startswith(_GZIP_MARK)
    return -zlib.MAX_WBITS if is_bare else zlib.MAX_WBITS | 32


def _unpack_members(data: bytes, wrapping: int) -> Iterator[bytes]:
    """One gzip member after the other (RFC 1952, 2.2); what is no member behind the first is padding."""
    place = 0
    for _ in range(MOST_MEMBERS):
        unpacker = zlib.decompressobj(wrapping)
        while place < len(data) and not unpacker.eof:
            window = data[place : place + _WINDOW_BYTES]
            yield unpacker.decompress(window)
            place += len(window) - len(unpacker.unused_data)
        if not data.startswith(_GZIP_MARK, place):
            return
    raise NotReadable("too many pieces")


def _unpack_zstd(data: bytes) -> Iterator[bytes]:
    """One frame after the other (RFC 8878, 3.1)."""
    unpacker = zstandard.ZstdDecompressor(max_window_size=LARGEST_BODY_BYTES)
    with unpacker.stream_reader(data, read_across_frames=True) as reader:
        while piece := reader.read(_STEP_BYTES):
            yield piece


def _unpack_brotli(data: bytes) -> Iterator[bytes]:
    unpacker = brotli.Decompressor()
    piece: bytes = unpacker.process(data, output_buffer_limit=_STEP_BYTES)
    while piece:
        yield piece
        piece = b"" if unpacker.is_finished() else unpacker.process(b"", output_buffer_limit=_STEP_BYTES)


def read_reply(data: bytes, content_type: str) -> Reply:
    """Raises NotReadable where nothing of an answer is in it."""
    if content_type.lower().startswith("text/event-stream"):
        return _read_stream(data)
    try:
        fields = load_json(data)
    except (ValueError, RecursionError) as error:
        raise NotReadable("answer not readable") from error
    if not isinstance(fields, Mapping):
        raise NotReadable("answer not readable")
    reply = Reply()
    if get_text(fields, "type") == "error":
        reply.error_type = get_text(get_fields(fields, "error"), "type") or "error"
        return reply
    if "content" not in fields and "input_tokens" in fields:
        reply.counted_tokens = get_count(fields, "input_tokens")
        return reply
    _take_message(reply, fields)
    reply.content = [dict(block) for block in get_items(fields, "content") if isinstance(block, Mapping)]
    reply.edits = read_applied_edits(fields)
    reply.is_whole = reply.stop_reason is not None
    return reply


def _read_stream(data: bytes) -> Reply:
    reply = Reply()
    usage: dict[str, object] = {}
    for fields in _read_events(data):
        match get_text(fields, "type"):
            case "message_start":
                message = get_fields(fields, "message")
                _take_message(reply, message)
                usage.update(get_fields(message, "usage"))
            case "content_block_start":
                reply.content.append(dict(get_fields(fields, "content_block")))
            case "content_block_delta":
                _take_delta(reply, fields)
            case "message_delta":
                told = {name: value for name, value in get_fields(fields, "usage").items() if value is not None}
                usage.update(told)
                reply.stop_reason = get_text(get_fields(fields, "delta"), "stop_reason") or reply.stop_reason
                reply.edits = read_applied_edits(fields) or reply.edits
            case "message_stop":
                reply.is_whole = True
            case "error":
                reply.error_type = get_text(get_fields(fields, "error"), "type") or "error"
            case _:
                pass
    if usage:
        reply.usage = read_usage(usage)
    for block in reply.content:
        _close_block(block)
    reply.is_whole = reply.is_whole and reply.stop_reason is not None
    return reply


def _read_events(data: bytes) -> Iterator[Fields]:
    """Events whose data is a JSON object; others say nothing to us."""
    text = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data
    for event in text.split(b"\n\n"):
        lines = [line[5:] for line in event.split(b"\n") if line.startswith(b"data:")]
        if not lines:
            continue
        try:
            fields = load_json(b"\n".join(lines))
        except (ValueError, RecursionError):
            continue
        if isinstance(fields, Mapping):
            yield fields


def _take_message(reply: Reply, message: Fields) -> None:
    reply.message_id = get_text(message, "id")
    reply.model = get_text(message, "model")
    reply.stop_reason = get_text(message, "stop_reason")
    reason = get_fields(get_fields(message, "diagnostics"), "cache_miss_reason")
    reply.miss_reason = get_text(reason, "type")
    if "usage" in message:
        reply.usage = read_usage(get_fields(message, "usage"))


_DELTA_FIELDS = {
    "text_delta": ("text",),
    "thinking_delta": ("thinking",),
    "input_json_delta": ("partial_json",),
    "compaction_delta": ("content", "encrypted_content", "signature"),
}


def _take_delta(reply: Reply, fields: Fields) -> None:
    delta = get_fields(fields, "delta")
    index = get_count(fields, "index")
    if index is None or index >= len(reply.content):
        return
    block = reply.content[index]
    for name in _DELTA_FIELDS.get(get_text(delta, "type") or "", ()):
        if piece := get_text(delta, name):
            block[name] = str(block.get(name) or "") + piece


def _close_block(block: dict[str, object]) -> None:
    """The input of a tool comes in pieces of JSON text; one that was cut stays text."""
    spelt = block.pop("partial_json", None)
    if isinstance(spelt, str) and spelt:
        try:
            block["input"] = load_json(spelt.encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            block["input"] = {"cut": spelt}
