"""An upstream that writes exactly the bytes it is told, when it is told: for fidelity and for faults.

It speaks HTTP/1.1 from scratch on loopback, one thread a connection, and keeps what every request looked like.
"""

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import BinaryIO


@dataclass
class Seen:
    """One request as it arrived."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes = b""
    closed_at: float | None = None  # when the other side was seen to be gone
    is_chunked: bool = False

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@dataclass
class Connection:
    """What a script may do to the one who asked."""

    socket: socket.socket
    seen: Seen

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def send_head(self, status: str, *headers: tuple[str, str]) -> None:
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        self.send(f"HTTP/1.1 {status}\r\n{lines}\r\n".encode("latin-1"))

    def send_chunk(self, data: bytes) -> None:
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def end_chunks(self) -> None:
        self.send(b"0\r\n\r\n")

    def answer(self, body: bytes, *headers: tuple[str, str], status: str = "200 OK") -> None:
        self.send_head(status, *headers, ("content-length", str(len(body))))
        self.send(body)

    def stream(self, chunks: list[bytes], *headers: tuple[str, str]) -> None:
        self.send_head("200 OK", *headers, ("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))
        for chunk in chunks:
            self.send_chunk(chunk)
        self.end_chunks()

    def reset(self) -> None:
        """A RST, not a FIN."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        """At once: the reader of the request would keep the socket open."""
        os.close(self.socket.detach())

    def wait_until_gone(self, seconds: float) -> bool:
        """Whether the other side closed within so many seconds; when is kept with the request."""
        self.socket.settimeout(seconds)
        try:
            is_gone = self.socket.recv(1) == b""
        except TimeoutError:
            return False
        except OSError:
            is_gone = True
        if is_gone:
            self.seen.closed_at = time.monotonic()
        return is_gone


Script = Callable[[Connection], None]


def say_ok(connection: Connection) -> None:
    body = b'{"ok":true}' if connection.seen.method != "HEAD" else b""
    connection.answer(body, ("content-type", "application/json"))


@dataclass
class RawUpstream:
    """`script` answers every request; it may be replaced at any time."""

    script: Script = say_ok
    requests: list[Seen] = field(default_factory=list)

    def __enter__(self) -> "RawUpstream":
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._open: set[socket.socket] = set()
        self._is_closing = False
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing = True
        self._listening.close()
        for each in list(self._open):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.getsockname()[1]}"

    def wait_for_request(self, count: int = 1, seconds: float = 10.0) -> Seen:
        give_up_at = time.monotonic() + seconds
        while len(self.requests) < count:
            assert time.monotonic() < give_up_at, f"{len(self.requests)} of {count} requests arrived"
            time.sleep(0.005)
        return self.requests[count - 1]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self._is_closing:
                connected, _ = self._listening.accept()
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._open.add(connected)
                threading.Thread(target=self._serve, args=(connected,), daemon=True).start()

    def _serve(self, connected: socket.socket) -> None:
        with connected, contextlib.suppress(OSError, ValueError):
            file = connected.makefile("rb")
            while (seen := _read_head(file)) is not None:
                self.requests.append(seen)
                for part in _read_body(file, seen):
                    seen.body += part
                self.script(Connection(connected, seen))
                if connected.fileno() < 0:
                    return
        self._open.discard(connected)


def _read_head(file: BinaryIO) -> Seen | None:
    line = file.readline()
    if not line.strip():
        return None
    method, target, _ = line.decode("latin-1").split(" ", 2)
    headers = []
    while (line := file.readline()) not in (b"\r\n", b""):
        name, _, value = line.decode("latin-1").rstrip("\r\n").partition(":")
        headers.append((name, value.strip()))
    return Seen(method, target, headers)


def _read_body(file: BinaryIO, seen: Seen) -> Iterator[bytes]:
    if (seen.header("transfer-encoding") or "").lower() == "chunked":
        seen.is_chunked = True
        while size := int(file.readline(), 16):
            yield file.read(size)
            file.readline()
        file.readline()
    elif length := int(seen.header("content-length") or 0):
        yield file.read(length)
