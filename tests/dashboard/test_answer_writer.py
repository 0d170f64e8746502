"""When the head of an answer leaves: with its body where there is one, alone where nothing follows at once."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from dashboard.answer_writer import AnswerWriter


class Wire(asyncio.Transport):
    """Keeps what is written, piece by piece."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.is_shut = False

    def write(self, data: "bytes | bytearray | memoryview[int]") -> None:
        assert not self.is_shut, "uvloop raises here"
        self.pieces.append(bytes(data))

    def close(self) -> None:
        self.is_shut = True

    def is_closing(self) -> bool:
        return self.is_shut


async def write_at_once(writer: AnswerWriter, wire: Wire) -> None:
    for piece in (b"head", b"body", b"more"):
        writer.write(piece)
    assert wire.pieces == [b"headbody", b"more"]


async def write_later(writer: AnswerWriter, wire: Wire) -> None:
    writer.write(b"head")
    await asyncio.sleep(0)
    assert wire.pieces == [b"head"]
    writer.write(b"body")


async def write_no_body(writer: AnswerWriter, wire: Wire) -> None:
    writer.write(b"head")
    writer.close()
    assert wire.pieces == [b"head"]


async def write_nothing(writer: AnswerWriter, wire: Wire) -> None:
    writer.close()
    assert wire.is_shut


async def be_left(writer: AnswerWriter, wire: Wire) -> None:
    writer.write(b"head")
    wire.close()


@pytest.mark.parametrize(
    ("write", "left"),
    [
        (write_at_once, [b"headbody", b"more"]),
        (write_later, [b"head", b"body"]),
        (write_no_body, [b"head"]),
        (write_nothing, []),
        (be_left, []),
    ],
)
def test_head_leaves_once_and_first(write: Callable[[AnswerWriter, Wire], Awaitable[None]], left: list[bytes]) -> None:
    async def run() -> None:
        wire = Wire()
        writer = AnswerWriter(wire, asyncio.get_running_loop())
        await write(writer, wire)
        await asyncio.sleep(0)
        assert wire.pieces == left
        assert writer.is_closing() == wire.is_shut

    asyncio.run(run())
