"""What the forwarder tells the recorder, and how: numbered frames over a Unix socket, answered by their numbers.

Only named headers are carried: credentials never leave the forwarder. No Django here.
"""

import struct
from enum import StrEnum
from pathlib import Path

import msgspec

FRAME_HEAD = struct.Struct("!IQ")  # length, number
LARGEST_FRAME = 256 * 1024 * 1024
ACK = struct.Struct("!Q")


class Ending(StrEnum):
    """How a call ended."""

    WHOLE = "whole"
    CLIENT_LEFT = "client left"
    UPSTREAM_FAILED = "upstream failed"
    SILENT = "silent"  # one of the two, for too long
    STOPPED = "stopped"  # Plimsoll itself


class Exchange(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """One call as the forwarder saw it. Bodies are as they were sent, encodings included."""

    id: str
    team_pk: int
    owner_pk: int | None
    key_pk: int | None
    started_at: float  # seconds since 1970
    first_byte_seconds: float | None
    duration_seconds: float
    status: int  # 0: the upstream did not answer
    ending: Ending
    request_headers: dict[str, str]
    response_headers: dict[str, str]
    request_body: bytes
    response_body: bytes
    added: tuple[str, ...] = ()  # what was added to the request behind the caller's own bytes


class Lost(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Calls that passed but could not be kept."""

    id: str
    team_pk: int
    reason: str
    count: int


Message = Exchange | Lost
_ENCODE = msgspec.msgpack.Encoder()
_DECODE = msgspec.msgpack.Decoder(Message)


def write_frame(number: int, message: Message) -> bytes:
    body = _ENCODE.encode(message)
    return FRAME_HEAD.pack(len(body), number) + body


def read_message(body: bytes) -> Message:
    """Raises msgspec.DecodeError."""
    message: Message = _DECODE.decode(body)
    return message


def find_socket_path(data: Path) -> Path:
    """Return where the recorder of a data folder listens."""
    return data / "proxy" / "recorder.sock"
