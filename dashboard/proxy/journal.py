"""Journal of the calls that one web process has passed on and the recorder has not confirmed yet.

A web process that is killed loses its memory; its journal lets the recorder write down the calls that had ended and
count those that had not. Each record is one `write` to the page cache, so the journal survives the end of processes,
not of the machine. Contents of calls are encrypted. A journal that cannot be written never stops a call.
No Django here.
"""

import errno
import fcntl
import logging
import os
import secrets
import struct
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dashboard.proxy.private_socket import create_private_folder
from dashboard.proxy.wire import Lost

SEGMENT_BYTES = 4 * 1024 * 1024
SEGMENT_SECONDS = 3.0  # confirmed calls are removed with their segment
MOST_FOLDER_BYTES = 512 * 1024 * 1024  # of all web processes, dead ones included
# Encrypting and writing 40 KB takes a seventh of the time of a call. Contents that come faster than this are left out,
# and their calls are counted as lost if the process is killed before they are recorded.
CONTENT_BYTES_PER_SECOND, MOST_CONTENT_BUDGET_BYTES = 4 * 1024 * 1024, 8 * 1024 * 1024
RETRY_SECONDS = 1.0  # after a write that failed
SLOW_WRITE_SECONDS, SLOW_RETRY_SECONDS = 0.25, 60.0  # calls wait while a write does
SEGMENT_SUFFIX, LOCK_SUFFIX = ".journal", ".lock"
RECORD_HEAD = struct.Struct("!II")  # lengths of the entry and of the encrypted content behind it
NONCE_BYTES = 12

log = logging.getLogger(__name__)


class EntryKind(IntEnum):
    BEGUN = 1  # a call that is passed on from now
    ENDED = 2  # the call as the recorder gets it, encrypted
    LOST = 3  # calls that will not be recorded: a count that replaces the earlier one of the same id
    CONFIRMED = 4  # a call without a record of its end, or a loss, that the recorder has written down


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """What is readable of a record; `id` is that of the call or of the loss."""

    kind: EntryKind
    id: str
    team_pk: int
    reason: str = ""
    count: int = 0
    call_id: str = ""  # the call that a loss was last raised for


_ENCODE_ENTRY = msgspec.msgpack.Encoder()


def make_cipher(secret_key: str) -> AESGCM:
    derive = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"plimsoll: journal of the proxy")
    return AESGCM(derive.derive(secret_key.encode()))


def find_journal_folder(data: Path) -> Path:
    return data / "proxy"


@dataclass(eq=False)
class _Segment:
    path: Path
    descriptor: int
    opened_at: float
    takes_content: bool
    size_bytes: int = 0
    unconfirmed: int = 0
    has_content: bool = False


class Journal:
    """Use within one thread. No method raises OSError: a call that could not be written is lost with the process."""

    def __init__(self, folder: Path, cipher: AESGCM) -> None:
        self._folder, self._cipher = folder, cipher
        self._name = secrets.token_hex(8)
        self._lock: int | None = None
        self._segments: deque[_Segment] = deque()
        self._segment_number = 0
        self._is_sealed = True  # nothing may be written behind a record that was cut
        self._begun: dict[str, int] = {}  # teams of calls that have no record of their end
        self._ended: dict[str, _Segment] = {}
        self._lost: dict[str, Lost] = {}
        self._content_budget_bytes, self._budget_at = float(MOST_CONTENT_BUDGET_BYTES), 0.0
        self._retry_at = 0.0
        self._is_failing = False

    def begin(self, call_id: str, team_pk: int) -> None:
        self._begun[call_id] = team_pk
        self._write(Entry(EntryKind.BEGUN, call_id, team_pk))

    def end(self, call_id: str, team_pk: int, content: bytes | memoryview) -> None:
        """A call whose end cannot be written stays begun, and is counted as lost when the process is killed."""
        entry = Entry(EntryKind.ENDED, call_id, team_pk)
        if self._write(entry, content):
            self._begun.pop(call_id, None)
            segment = self._segments[-1]
            self._ended[call_id] = segment
            segment.unconfirmed += 1

    def lose(self, lost: Lost, call_id: str) -> None:
        self._lost[lost.id] = lost
        self._write(_describe_loss(lost, call_id))
        self._begun.pop(call_id, None)

    def confirm(self, message_id: str) -> None:
        """Forget a call or a loss that the recorder has written down."""
        segment = self._ended.pop(message_id, None)
        if segment is not None:
            segment.unconfirmed -= 1
        else:
            team_pk = self._begun.pop(message_id, None)
            lost = self._lost.pop(message_id, None)
            if team_pk is not None or lost is not None:
                self._write(Entry(EntryKind.CONFIRMED, message_id, team_pk or 0))
        self._remove_confirmed()

    def close(self) -> None:
        """Remove the journal, or leave what is not confirmed to the recorder."""
        if self._lock is None:
            return
        is_done = not (self._begun or self._ended or self._lost)
        for segment in self._segments:
            if is_done:
                segment.path.unlink(missing_ok=True)
            os.close(segment.descriptor)
        if is_done:
            self._path(LOCK_SUFFIX).unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = None
        self._segments.clear()

    def _write(self, entry: Entry, content: bytes | memoryview = b"") -> bool:
        """Return whether the record was written."""
        now = time.monotonic()
        if now < self._retry_at or (content and not self._has_budget(now)):
            return False
        try:
            if self._is_sealed or self._is_due(now):
                self._start_segment(now)
            segment = self._segments[-1]
            if content and not segment.takes_content:
                return False
            self._append(segment, [entry], content)
            self._content_budget_bytes -= len(content)
        except OSError as error:
            self._note_failure(now + RETRY_SECONDS, error.strerror or str(error))
            return False
        if time.monotonic() - now > SLOW_WRITE_SECONDS:
            self._note_failure(now + SLOW_RETRY_SECONDS, "the disk is slow")
        else:
            self._is_failing = False
        return True

    def _has_budget(self, now: float) -> bool:
        """The budget may become negative: a large call is written while any is left, and later ones wait."""
        earned_bytes = (now - self._budget_at) * CONTENT_BYTES_PER_SECOND
        self._content_budget_bytes = min(MOST_CONTENT_BUDGET_BYTES, self._content_budget_bytes + earned_bytes)
        self._budget_at = now
        return self._content_budget_bytes > 0

    def _renew_segment(self) -> None:
        now = time.monotonic()
        if now < self._retry_at:
            return
        try:
            self._start_segment(now)
        except OSError as error:
            self._note_failure(now + RETRY_SECONDS, error.strerror or str(error))

    def _is_due(self, now: float) -> bool:
        segment = self._segments[-1]
        is_old = segment.has_content and now - segment.opened_at > SEGMENT_SECONDS
        return segment.size_bytes > SEGMENT_BYTES or is_old

    def _append(self, segment: _Segment, entries: Sequence[Entry], content: bytes | memoryview = b"") -> None:
        parts: list[bytes] = []
        for entry in entries:
            spelt = _ENCODE_ENTRY.encode(entry)
            sealed: tuple[bytes, ...] = ()
            if content:
                nonce = os.urandom(NONCE_BYTES)
                sealed = (nonce, self._cipher.encrypt(nonce, content, spelt))
            parts += (RECORD_HEAD.pack(len(spelt), sum(map(len, sealed))), spelt, *sealed)
        size_bytes = sum(map(len, parts))
        self._is_sealed = True  # until all of it is there
        if os.writev(segment.descriptor, parts) != size_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._is_sealed = False
        segment.size_bytes += size_bytes
        segment.has_content = segment.has_content or bool(content)

    def _start_segment(self, now: float) -> None:
        """Begin with all that is not confirmed and has no content, so that older segments are needed for contents
        alone."""
        if self._lock is None:
            self._lock = self._take_lock()
        self._segment_number += 1
        path = self._path(f".{self._segment_number:08d}{SEGMENT_SUFFIX}")
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        segment = _Segment(path, descriptor, now, takes_content=_measure(self._folder) < MOST_FOLDER_BYTES)
        entries = [Entry(EntryKind.BEGUN, call_id, team_pk) for call_id, team_pk in self._begun.items()]
        entries += [_describe_loss(lost, "") for lost in self._lost.values()]
        try:
            for first in range(0, len(entries), 256):  # a `writev` takes 1,024 parts
                self._append(segment, entries[first : first + 256])
        except OSError:
            os.close(descriptor)
            path.unlink(missing_ok=True)
            raise
        self._is_sealed = False
        self._segments.append(segment)
        self._remove_confirmed()

    def _take_lock(self) -> int:
        """Held by the kernel as long as this process lives. It gets its name only once it is locked: the recorder
        takes an unlocked one for that of a dead process."""
        create_private_folder(self._folder)
        path = self._path(LOCK_SUFFIX)
        fresh = path.with_suffix(".new")
        descriptor = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fresh.rename(path)
        except OSError:
            os.close(descriptor)
            fresh.unlink(missing_ok=True)
            raise
        return descriptor

    def _remove_confirmed(self) -> None:
        """The oldest first: the end of a call must not go before its beginning. The last one goes when nothing of it
        is needed, so that no prompt stays on disk while the proxy is idle."""
        is_all_confirmed = not (self._begun or self._ended or self._lost)
        while self._segments and not self._segments[0].unconfirmed:
            if len(self._segments) == 1 and not is_all_confirmed:
                if self._segments[0].has_content:
                    self._renew_segment()
                return
            segment = self._segments.popleft()
            self._is_sealed = self._is_sealed or not self._segments
            os.close(segment.descriptor)
            try:
                segment.path.unlink(missing_ok=True)
            except OSError as error:
                log.warning("a journal file of the proxy cannot be removed", extra={"error": error.strerror})

    def _note_failure(self, retry_at: float, reason: str) -> None:
        self._retry_at = retry_at
        self._is_sealed = True  # what is skipped meanwhile is in the beginning of the next segment
        if not self._is_failing:
            log.warning("the journal of the proxy cannot be written: %s", reason)
        self._is_failing = True

    def _path(self, ending: str) -> Path:
        return self._folder / f"{self._name}{ending}"


def _describe_loss(lost: Lost, call_id: str) -> Entry:
    return Entry(EntryKind.LOST, lost.id, lost.team_pk, lost.reason, lost.count, call_id)


def _measure(folder: Path) -> int:
    """Bytes in the journals of all processes."""
    total = 0
    for path in folder.glob(f"*{SEGMENT_SUFFIX}"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # removed by the recorder
            continue
    return total
