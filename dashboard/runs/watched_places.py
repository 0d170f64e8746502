"""Files below watched folders, read, created and removed by descriptors: no link is followed, nothing is replaced.

Every path here was named by somebody else. What is not a plain file of this user inside a watched folder does not
exist for this module. No Django.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from dashboard.ingest.transcript_folders import NotPlain, opened_file, opened_folder, real_roots

LARGEST_BYTES = 512 * 1024 * 1024
_CHUNK_BYTES = 1024 * 1024
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class NotWatched(OSError):
    """The path leads to no plain file of ours inside a watched folder."""


class FileState(StrEnum):
    """What became of a file since it was written."""

    UNCHANGED = "unchanged"
    CONTINUED = "continued"  # what was written is there, and more behind it
    CHANGED = "changed"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class WatchedPlace:
    """A file or a name for one, inside a watched folder. `root` has no links in it."""

    root: str
    relative: str

    @property
    def path(self) -> str:
        return f"{self.root}/{self.relative}"

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    def beside(self, name: str) -> "WatchedPlace":
        """Another name in the same folder."""
        folder = self.relative.rpartition("/")[0]
        return WatchedPlace(self.root, f"{folder}/{name}" if folder else name)

    def climb(self, steps: int) -> "WatchedPlace":
        """The folder that many folders above the file, as a name; never above the root."""
        parts = self.relative.split("/")
        return WatchedPlace(self.root, "/".join(parts[: max(1, len(parts) - steps)]))


@dataclass(frozen=True, slots=True)
class ReadFile:
    inode: int
    data: bytes


def find_place(path: str, roots: tuple[Path, ...]) -> WatchedPlace | None:
    """By its words alone; whether links lead out of the folder shows when it is opened."""
    if "\x00" in path:
        return None
    for root in real_roots(roots):
        below = root.rstrip("/") + "/"
        if path.startswith(below):
            relative = path.removeprefix(below)
            is_plain = all(part not in ("", ".", "..") for part in relative.split("/"))
            return WatchedPlace(root, relative) if is_plain else None
    return None


def read_own_file(place: WatchedPlace, *, limit_bytes: int = LARGEST_BYTES) -> ReadFile:
    """All of it. Raises NotWatched for a link, pipe, device, somebody else's file, a second name of one, a huge one."""
    try:
        with opened_own_file(place, limit_bytes) as descriptor:
            return ReadFile(os.fstat(descriptor).st_ino, _read_all(descriptor, limit_bytes))
    except NotPlain as error:
        raise NotWatched from error


@contextlib.contextmanager
def opened_own_file(place: WatchedPlace, limit_bytes: int = LARGEST_BYTES) -> Iterator[int]:
    """Looked at before it is opened, and again when it is: it may be swapped in between."""
    with opened_folder(place.root, place.relative) as (folder, name):
        _check_own(os.stat(name, dir_fd=folder, follow_symlinks=False), limit_bytes)
    with opened_file(place.root, place.relative) as descriptor:
        _check_own(os.fstat(descriptor), limit_bytes)
        yield descriptor


def find_state(place: WatchedPlace, *, digest: str, size_bytes: int) -> FileState:
    """Raises NotWatched where something other than a plain file of ours stands under the name."""
    try:
        data = read_own_file(place).data
    except FileNotFoundError:
        return FileState.MISSING
    return _judge(data, digest, size_bytes)


def _judge(data: bytes, digest: str, size_bytes: int) -> FileState:
    if len(data) < size_bytes or sha256(data[:size_bytes]).hexdigest() != digest:
        return FileState.CHANGED
    return FileState.UNCHANGED if len(data) == size_bytes else FileState.CONTINUED


def create_file(place: WatchedPlace, data: bytes) -> None:
    """A new file, whole or not at all, 0600. Raises FileExistsError rather than touch what is there."""
    try:
        with opened_folder(place.root, place.relative) as (folder, name):
            if os.fstat(folder).st_uid != os.geteuid():
                raise NotWatched
            draft = name_draft(name)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(draft, dir_fd=folder)  # of a process that was killed here
            try:
                _write_draft(folder, draft, data)
                _give_name(folder, draft, name)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=folder)
            os.fsync(folder)
    except NotPlain as error:
        raise NotWatched from error


def require_writable_folder(place: WatchedPlace) -> None:
    """Raise OSError unless `create_file` may create a file in the folder of this place."""
    try:
        with opened_folder(place.root, place.relative) as (folder, _):
            if os.fstat(folder).st_uid != os.geteuid():
                raise NotWatched
            if not os.access(".", os.W_OK | os.X_OK, dir_fd=folder):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except NotPlain as error:
        raise NotWatched from error


def name_draft(name: str) -> str:
    """No follower reads it: it does not end like a transcript."""
    return f".plimsoll-{name}.part"


def drop_draft(place: WatchedPlace) -> None:
    """What a killed process left of a file it was writing."""
    with (
        contextlib.suppress(FileNotFoundError, NotPlain),
        opened_folder(place.root, place.relative) as (folder, name),
    ):
        os.unlink(name_draft(name), dir_fd=folder)


def remove_unchanged(place: WatchedPlace, *, digest: str, size_bytes: int) -> FileState:
    """Removes the file if it is as it was written, and tells how it was found. Anything else stays."""
    try:
        with opened_own_file(place) as descriptor:
            state = _judge(_read_all(descriptor, LARGEST_BYTES), digest, size_bytes)
            if state is FileState.UNCHANGED:
                _unlink_same(place, os.fstat(descriptor))
                state = _judge(_read_all(descriptor, LARGEST_BYTES), digest, size_bytes)
                if state is not FileState.UNCHANGED:  # written to between the look and the removal: it goes back
                    create_file(place, _read_all(descriptor, LARGEST_BYTES))
            return state
    except FileNotFoundError:
        return FileState.MISSING
    except NotPlain as error:
        raise NotWatched from error


def _unlink_same(place: WatchedPlace, status: os.stat_result) -> None:
    with opened_folder(place.root, place.relative) as (folder, name):
        now = os.stat(name, dir_fd=folder, follow_symlinks=False)
        if (now.st_dev, now.st_ino) != (status.st_dev, status.st_ino):
            raise NotWatched
        os.unlink(name, dir_fd=folder)
        os.fsync(folder)


def _check_own(status: os.stat_result, limit_bytes: int) -> None:
    is_own = stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and status.st_nlink == 1
    if not is_own or status.st_size > limit_bytes:
        raise NotWatched


def _read_all(descriptor: int, limit_bytes: int) -> bytes:
    parts: list[bytes] = []
    offset = 0
    while offset <= limit_bytes and (part := os.pread(descriptor, _CHUNK_BYTES, offset)):
        parts.append(part)
        offset += len(part)
    return b"".join(parts)


def _write_draft(folder: int, draft: str, data: bytes) -> None:
    descriptor = os.open(draft, _NEW, 0o600, dir_fd=folder)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _give_name(folder: int, draft: str, name: str) -> None:
    try:
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_HARD_LINKS:
            raise
        # No hard links on this file system: the name is taken first, so that only our own empty file is replaced.
        os.close(os.open(name, _NEW, 0o600, dir_fd=folder))
        os.rename(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
