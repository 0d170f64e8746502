"""Transcripts below a folder: found and opened without ever going through a link. No Django.

The folder itself may be reached through links: people keep ~/.claude elsewhere. Nothing below it may.
"""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TRANSCRIPT_ENDING = ".jsonl"
META_ENDING = ".meta.json"
DEEPEST = 8  # <project>/<session>/subagents/agent-<id>.jsonl is four deep
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class NotPlain(OSError):
    """A link, pipe, device or folder stands where a file was expected."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    root: str
    relative: str
    inode: int
    size_bytes: int
    modified_ns: int

    @property
    def path(self) -> str:
        return os.path.join(self.root, self.relative)  # noqa: PTH118 (thousands a second; a Path is ten times slower)

    @property
    def is_meta(self) -> bool:
        return self.relative.endswith(META_ENDING)


@dataclass
class Findings:
    """Of one walk through all folders."""

    files: dict[str, FoundFile] = field(default_factory=dict)  # by path
    folders: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)  # folders that cannot be read, and why


def is_followed(name: str) -> bool:
    return name.endswith((TRANSCRIPT_ENDING, META_ENDING))


def real_roots(roots: tuple[Path, ...]) -> list[str]:
    return list(dict.fromkeys(os.path.realpath(root) for root in roots))


def walk_folders(roots: tuple[Path, ...]) -> Findings:
    """A root that does not exist (yet) gives nothing."""
    findings = Findings()
    for root in real_roots(roots):
        try:
            descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            findings.refused[root] = error.strerror or type(error).__name__
            continue
        _walk(descriptor, root, "", findings)
    return findings


def _walk(descriptor: int, root: str, below: str, findings: Findings) -> None:
    """Goes down by descriptors: a folder swapped for a link meanwhile is refused by the kernel. Closes what it gets."""
    here = f"{root}/{below}" if below else root
    folders: list[str] = []
    try:
        with os.scandir(descriptor) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
                elif is_followed(entry.name):
                    _note_file(entry, root, below, findings)
        findings.folders.add(here)
        for name in folders if below.count("/") + 2 < DEEPEST else ():
            _descend(descriptor, name, root, f"{below}/{name}" if below else name, findings)
    except OSError as error:
        findings.refused[here] = error.strerror or type(error).__name__
    finally:
        os.close(descriptor)


def _descend(descriptor: int, name: str, root: str, below: str, findings: Findings) -> None:
    try:
        inner = os.open(name, _LOOK | os.O_DIRECTORY, dir_fd=descriptor)
    except FileNotFoundError:
        return
    except OSError as error:
        findings.refused[f"{root}/{below}"] = error.strerror or type(error).__name__
        return
    _walk(inner, root, below, findings)


def _note_file(entry: "os.DirEntry[str]", root: str, below: str, findings: Findings) -> None:
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return
    if stat.S_ISREG(status.st_mode):
        relative = f"{below}/{entry.name}" if below else entry.name
        found = FoundFile(root, relative, status.st_ino, status.st_size, status.st_mtime_ns)
        findings.files[found.path] = found


def find_file(root: str, relative: str) -> FoundFile:
    """One file, as a walk would find it; raises OSError."""
    with opened_folder(root, relative) as (folder, name):
        status = _check_plain(folder, name)
    return FoundFile(root, relative, status.st_ino, status.st_size, status.st_mtime_ns)


def _list_owners(root: str) -> tuple[int, int]:
    return os.geteuid(), os.stat(root).st_uid  # noqa: PTH116 (once per file)


@contextmanager
def opened_file(root: str, relative: str) -> Iterator[int]:
    """A descriptor of a plain file; raises NotPlain or another OSError."""
    with opened_folder(root, relative) as (folder, name):
        _check_plain(folder, name)  # before it is opened: a pipe's writer would notice, a device might act
        descriptor = os.open(name, _LOOK, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise NotPlain
        # Who may write here can give a second name to a file that only its owner, and we, may read.
        if status.st_nlink > 1 and status.st_uid not in _list_owners(root):
            raise PermissionError(errno.EACCES, "a second name of a file of another account")
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def opened_folder(root: str, relative: str) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder a file is in, and the file's name there; raises NotPlain or another OSError."""
    *folders, name = relative.split("/")
    if any(part in ("", ".", "..") for part in (*folders, name)):
        raise NotPlain
    descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            inner = _open_inner(folder, descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor, name
    finally:
        os.close(descriptor)


def _open_inner(folder: str, descriptor: int) -> int:
    try:
        return os.open(folder, _LOOK | os.O_DIRECTORY, dir_fd=descriptor)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):  # systems differ in what they call a link
            raise NotPlain from None
        raise


def _check_plain(folder: int, name: str) -> os.stat_result:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not stat.S_ISREG(status.st_mode):
        raise NotPlain
    return status
