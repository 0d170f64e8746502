"""Deliver again what the journals of dead web processes hold, and count the calls that were cut off.

Each message keeps its id, so a journal that is read twice changes nothing. It is removed once all of it is confirmed.
No Django here.
"""

import fcntl
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dashboard.proxy.inbox import Delivery
from dashboard.proxy.journal import LOCK_SUFFIX, NONCE_BYTES, RECORD_HEAD, SEGMENT_SUFFIX, Entry, EntryKind
from dashboard.proxy.wire import Lost, Message, read_message

LOOK_AGAIN_SECONDS = 1.0
MOST_BYTES_AT_ONCE = 8 * 1024 * 1024
KILLED = "cut off when Plimsoll was killed"
NOT_READABLE = "journal not readable"

log = logging.getLogger(__name__)
_DECODE_ENTRY = msgspec.msgpack.Decoder(Entry)


@dataclass(frozen=True)
class _StoredCall:
    """Where the encrypted content of a call is."""

    path: Path
    offset: int
    size_bytes: int
    entry_bytes: bytes
    entry: Entry


@dataclass
class _DeadJournal:
    name: str
    lock: int
    calls: "deque[_StoredCall]" = field(default_factory=deque)
    losses: "deque[Lost]" = field(default_factory=deque)
    unconfirmed: int = 0

    @property
    def is_read(self) -> bool:
        return not self.calls and not self.losses


class JournalReplay:
    """Use within one thread, of the only recorder of the folder."""

    def __init__(self, folder: Path, cipher: AESGCM) -> None:
        self._folder, self._cipher = folder, cipher
        self._journals: list[_DeadJournal] = []
        self._look_at = 0.0

    def take(self, *, most: int) -> list[Delivery]:
        """Return the next messages of dead processes; an empty list when there are none."""
        if time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + LOOK_AGAIN_SECONDS
            self._journals += self._open_dead_journals()
        deliveries: list[Delivery] = []
        size_bytes = 0
        for journal in list(self._journals):
            while len(deliveries) < most and size_bytes < MOST_BYTES_AT_ONCE and not journal.is_read:
                delivery = self._take_next(journal)
                deliveries.append(delivery)
                size_bytes += delivery.size_bytes
            self._remove_if_done(journal)
        return deliveries

    def close(self) -> None:
        """Leave what is not confirmed to the next recorder."""
        for journal in self._journals:
            os.close(journal.lock)
        self._journals.clear()

    def _take_next(self, journal: _DeadJournal) -> Delivery:
        size_bytes = 100
        message: Message
        if journal.calls:
            call = journal.calls.popleft()
            message, size_bytes = self._read_call(call), call.size_bytes
        else:
            message = journal.losses.popleft()
        journal.unconfirmed += 1

        def confirm() -> None:
            journal.unconfirmed -= 1
            self._remove_if_done(journal)

        return Delivery(message, size_bytes, confirm)

    def _read_call(self, call: _StoredCall) -> Message:
        """A call that cannot be read any more, as after a change of the secret key, is counted under its own id."""
        try:
            with call.path.open("rb") as file:
                file.seek(call.offset)
                data = file.read(call.size_bytes)
            content = self._cipher.decrypt(data[:NONCE_BYTES], data[NONCE_BYTES:], call.entry_bytes)
            return read_message(content)
        except (InvalidTag, ValueError, OSError) as error:
            log.error("a call in the journal cannot be read", extra={"error": type(error).__name__})
            return Lost(call.entry.id, call.entry.team_pk, NOT_READABLE, 1)

    def _remove_if_done(self, journal: _DeadJournal) -> None:
        if journal not in self._journals or journal.unconfirmed or not journal.is_read:
            return
        self._journals.remove(journal)
        for path in _list_segments(self._folder, journal.name):
            path.unlink(missing_ok=True)
        (self._folder / f"{journal.name}{LOCK_SUFFIX}").unlink(missing_ok=True)
        os.close(journal.lock)

    def _open_dead_journals(self) -> Iterator[_DeadJournal]:
        known = {journal.name for journal in self._journals}
        for path in sorted(self._folder.glob(f"*{LOCK_SUFFIX}")):
            if path.stem not in known and (lock := _lock_dead(path)) is not None:
                yield _read_journal(self._folder, path.stem, lock)


def _lock_dead(path: Path) -> int | None:
    """None where the process of the journal is alive, or has just removed it."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def _list_segments(folder: Path, name: str) -> list[Path]:
    return sorted(folder.glob(f"{name}.*{SEGMENT_SUFFIX}"))


def _read_journal(folder: Path, name: str, lock: int) -> _DeadJournal:
    """Entries alone; contents are read when their turn comes."""
    journal = _DeadJournal(name, lock)
    begun: dict[str, int] = {}
    settled: set[str] = set()
    losses: dict[str, Lost] = {}
    for path in _list_segments(folder, name):
        for call in _read_segment(path):
            entry = call.entry
            if entry.kind is EntryKind.BEGUN:
                begun[entry.id] = entry.team_pk
            elif entry.kind is EntryKind.ENDED:
                settled.add(entry.id)
                journal.calls.append(call)
            elif entry.kind is EntryKind.LOST:
                settled.add(entry.call_id)
                losses[entry.id] = Lost(entry.id, entry.team_pk, entry.reason, entry.count)
            else:
                settled.add(entry.id)
                losses.pop(entry.id, None)
    cut = Counter(team_pk for call_id, team_pk in begun.items() if call_id not in settled)
    journal.losses.extend(losses.values())
    journal.losses.extend(Lost(f"{name}-killed-{team_pk}", team_pk, KILLED, count) for team_pk, count in cut.items())
    log.log(
        logging.DEBUG if journal.is_read else logging.WARNING,
        "calls of a web process that ended are read from its journal",
        extra={"calls": len(journal.calls), "lost": sum(lost.count for lost in journal.losses)},
    )
    return journal


def _read_segment(path: Path) -> Iterator[_StoredCall]:
    """Up to the first record that is not whole: the process was killed while it wrote, or the disk was full."""
    size_bytes = path.stat().st_size
    with path.open("rb") as file:
        while len(head := file.read(RECORD_HEAD.size)) == RECORD_HEAD.size:
            entry_length, content_length = RECORD_HEAD.unpack(head)
            offset = file.tell() + entry_length
            if not entry_length or offset + content_length > size_bytes:
                return
            data = file.read(entry_length)
            try:
                entry = _DECODE_ENTRY.decode(data)
            except msgspec.DecodeError:
                return
            yield _StoredCall(path, offset, content_length, data, entry)
            file.seek(offset + content_length)
