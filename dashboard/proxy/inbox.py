"""The recorder's side of the socket: one reader a web process, a bounded store of messages. No Django here."""

import contextlib
import logging
import socket
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from dashboard.proxy.private_socket import NotPrivate, connect_privately, create_private_folder, listen_privately
from dashboard.proxy.wire import ACK, FRAME_HEAD, LARGEST_FRAME, Message, read_message

MOST_WAITING_BYTES = 64 * 1024 * 1024

log = logging.getLogger(__name__)


class InUse(Exception):
    """Another recorder listens already; the message is for people."""


@dataclass(frozen=True)
class Delivery:
    """A message, and how to say that it is written down."""

    message: Message
    size_bytes: int
    confirm: Callable[[], None]


class Inbox:
    """Senders wait while it is full; they keep what they could not send."""

    def __init__(self, path: Path, *, most_waiting_bytes: int = MOST_WAITING_BYTES) -> None:
        self._most_bytes = most_waiting_bytes
        self._waiting: deque[Delivery] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._senders: set[socket.socket] = set()
        self._is_closed = False
        self._path = path
        self._listening = _listen(path)
        threading.Thread(target=self._accept, name="inbox", daemon=True).start()

    @property
    def has_senders(self) -> bool:
        return bool(self._senders)

    def take(self, *, wait_seconds: float, most: int) -> list[Delivery]:
        """What has arrived, in order; an empty list when nothing came in time."""
        with self._changed:
            if not self._waiting:
                self._changed.wait(wait_seconds)
            taken = [self._waiting.popleft() for _ in range(min(most, len(self._waiting)))]
            self._waiting_bytes -= sum(delivery.size_bytes for delivery in taken)
            self._changed.notify_all()
        return taken

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            senders = list(self._senders)
        # Closing alone would not wake who waits there for a sender, and it would take in one more.
        for each in (self._listening, *senders):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._path.unlink(missing_ok=True)

    def _accept(self) -> None:
        while True:
            try:
                sender, _ = self._listening.accept()
            except OSError:  # closed
                return
            with self._changed:
                if self._is_closed:
                    sender.close()
                    return
                self._senders.add(sender)
            threading.Thread(target=self._read, args=(sender,), name="sender", daemon=True).start()

    def _read(self, sender: socket.socket) -> None:
        with sender, contextlib.suppress(OSError):
            while head := _read_exactly(sender, FRAME_HEAD.size):
                size_bytes, number = FRAME_HEAD.unpack(head)
                if size_bytes > LARGEST_FRAME:
                    break
                body = _read_exactly(sender, size_bytes)
                if body is None:
                    break
                self._put(sender, number, body)
        self._senders.discard(sender)

    def _put(self, sender: socket.socket, number: int, body: bytes) -> None:
        def confirm() -> None:
            with contextlib.suppress(OSError):  # gone: it tells the new recorder again, or nobody
                sender.sendall(ACK.pack(number))

        try:
            message = read_message(body)
        except msgspec.DecodeError:
            log.error("a message of another version was left out")
            confirm()
            return
        with self._changed:
            while self._waiting and self._waiting_bytes + len(body) > self._most_bytes:
                self._changed.wait()
            self._waiting.append(Delivery(message, len(body), confirm))
            self._waiting_bytes += len(body)
            self._changed.notify_all()


def _read_exactly(sender: socket.socket, size_bytes: int) -> bytes | None:
    """None at the end of the connection."""
    data = bytearray(size_bytes)
    view = memoryview(data)
    while view:
        count = sender.recv_into(view)
        if not count:
            return None
        view = view[count:]
    return bytes(data)


def _listen(path: Path) -> socket.socket:
    """For this user alone. A socket file that nobody answers at was left behind by a recorder that was killed."""
    try:
        create_private_folder(path.parent)
        if _is_answered(path):
            raise InUse("Another recorder runs already for this data folder.")
    except NotPrivate as error:
        raise InUse(f"Calls that pass the proxy cannot be recorded: {error}") from None
    path.unlink(missing_ok=True)
    return listen_privately(path)


def _is_answered(path: Path) -> bool:
    """Raises NotPrivate: what another account put there may be listened to by others."""
    try:
        connect_privately(path).close()
    except NotPrivate:
        raise
    except BlockingIOError:  # its backlog is full
        return True
    except OSError:
        return False
    return True
