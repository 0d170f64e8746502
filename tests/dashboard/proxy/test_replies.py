"""S2: answers of the API as bytes. Whatever comes is read or refused with one typed error, in bounded memory."""

import contextlib
import gzip
import json
import time
import tracemalloc
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.proxy.responses import LARGEST_BODY_BYTES, NotReadable, read_reply, unpack
from tests.fakes.native_compaction import list_block_events, sign_block

STREAM, JSON = "text/event-stream; charset=utf-8", "application/json"
EVENTS = (
    {
        "type": "message_start",
        "message": {"id": "msg_1", "model": "claude-opus-4-5", "usage": {"input_tokens": 5, "output_tokens": 1}},
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "Read"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": '{"a": 1}'}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}},
    {"type": "message_stop"},
)


def spell(*events: object) -> bytes:
    return b"".join(b"event: x\ndata: " + json.dumps(event).encode() + b"\n\n" for event in events)


def read(data: bytes, kind: str) -> None:
    """Everything that is asked of an answer afterwards, too."""
    try:
        reply = read_reply(data, kind)
    except NotReadable:
        return
    usage = reply.settle_usage()
    assert min(usage.input_tokens, usage.output_tokens) >= 0
    assert reply.has_thinking in (True, False)


def test_whole_stream_is_read() -> None:
    reply = read_reply(spell(*EVENTS), STREAM)
    assert (reply.message_id, reply.stop_reason, reply.is_whole) == ("msg_1", "end_turn", True)
    assert reply.content[0]["input"] == {"a": 1}


@pytest.mark.parametrize("content", ["We said hello.", None])
def test_what_the_api_compacted_is_read_from_a_stream_as_it_is_sent_back(content: str | None) -> None:
    block = sign_block(content)
    assert read_reply(spell(EVENTS[0], *list_block_events(block), *EVENTS[-2:]), STREAM).content == [block]


@settings(max_examples=300)
@given(data=st.binary(max_size=300), kind=st.sampled_from([STREAM, JSON]))
def test_any_bytes_are_read_or_refused(data: bytes, kind: str) -> None:
    read(data, kind)
    read(b"data: " + data + b"\n\n", kind)


@settings(max_examples=300)
@given(st.data())
def test_damaged_streams_are_read_or_refused(data: st.DataObject) -> None:
    body = bytearray(spell(*EVENTS))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(body) - 1))
        body[place : place + data.draw(st.integers(0, 40))] = data.draw(st.binary(max_size=4))
    read(bytes(body), STREAM)


_WORDS = ["type", "message", "id", "model", "usage", "index", "delta", "content_block", "error", "stop_reason", "text"]
_WORDS += ["partial_json", "input_tokens", "output_tokens", "cache_creation", "context_management", "applied_edits"]
_TEXTS = st.sampled_from(
    [event["type"] for event in EVENTS] + ["text_delta", "input_json_delta", "error", '{"a"', "\ud800"]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS | st.just(10**400),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_WORDS), inner, max_size=5),
    max_leaves=20,
)


@settings(max_examples=300)
@given(st.lists(st.dictionaries(st.sampled_from(_WORDS), _VALUES, max_size=5) | st.sampled_from(EVENTS), max_size=6))
def test_any_events_of_the_right_words_are_read_or_refused(events: list[object]) -> None:
    read(spell(*events), STREAM)
    for event in events:
        read(json.dumps(event).encode(), JSON)


@settings(max_examples=200)
@given(
    st.binary(max_size=200), st.sampled_from(["", "identity", "gzip", "deflate", "br", "zstd", "compress", "gzip, br"])
)
def test_any_bytes_are_unpacked_or_refused(data: bytes, encoding: str) -> None:
    try:
        unpack(data, encoding)
    except NotReadable:
        return


def pack_bare(data: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


def pack_small(data: bytes) -> bytes:
    packer = zlib.compressobj(1, zlib.DEFLATED, 9)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("pack", [zlib.compress, pack_small, pack_bare, gzip.compress])
def test_deflate_is_read_as_servers_write_it(pack: Callable[[bytes], bytes]) -> None:
    body = spell(*EVENTS)
    assert unpack(pack(body), "deflate") == body
    assert body.startswith(unpack(pack(body)[:-9], "deflate"))


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_every_piece_of_a_packed_answer_is_read(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    events = [spell(event) for event in EVENTS]
    packed = b"".join(pack(event) for event in [*events, b"", b"x" * 100_000])
    assert unpack(packed, encoding) == b"".join(events) + b"x" * 100_000
    assert unpack(pack(b"a") + pack(bytes(range(256)))[:-20], encoding).startswith(b"a")
    with pytest.raises(NotReadable, match="broken"):
        unpack(pack(b"a") + pack(b"b")[:4] + b"\xff" * 30, encoding)


def test_what_is_behind_a_gzip_body_is_padding() -> None:
    assert unpack(gzip.compress(b"a") + bytes(512), "gzip") == b"a"
    assert unpack(gzip.compress(b"a") + b"\x1f", "gzip") == b"a"


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_many_pieces_take_little_time_and_memory(encoding: str, pack: Callable[[bytes], bytes]) -> None:
    body = pack(b"") * 500_000
    tracemalloc.start()
    began = time.process_time()
    with contextlib.suppress(NotReadable):
        assert unpack(body, encoding) == b""
    used_seconds = time.process_time() - began
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert used_seconds < 5
    assert peak_bytes < 3_000_000
    with pytest.raises(NotReadable, match="too large"):
        unpack(pack(bytes(LARGEST_BODY_BYTES // 8)) * 9, encoding)


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, 1),
    "br": lambda data: brotli.compress(data, quality=1),
    "zstd": lambda data: zstandard.ZstdCompressor(level=1).compress(data),
}


@pytest.mark.parametrize("encoding", PACKERS)
def test_packed_answers_are_unpacked_and_bombs_stopped(encoding: str) -> None:
    body = spell(*EVENTS)
    packed = PACKERS[encoding](body)
    assert unpack(packed, encoding) == body
    assert body.startswith(unpack(packed[:-4], encoding))  # cut on its way
    bomb = PACKERS[encoding](bytes(4 * LARGEST_BODY_BYTES))
    tracemalloc.start()
    with pytest.raises(NotReadable):
        unpack(bomb, encoding)
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < 2.5 * LARGEST_BODY_BYTES
