"""Finding and opening transcripts: never through a link, never anything but a plain file (S9)."""

import os
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dashboard.ingest import transcript_folders
from dashboard.ingest.transcript_folders import DEEPEST, NotPlain, find_file, opened_file, walk_folders

SECRET = "outside the folder"
_opened: list[str] = []
_is_recording = False


def _record(event: str, arguments: tuple[object, ...]) -> None:
    if _is_recording and event in ("open", "os.scandir", "os.listdir"):
        place = arguments[0]
        _opened.append(str(Path(f"/proc/self/fd/{place}").readlink() if isinstance(place, int) else place))


sys.addaudithook(_record)  # cannot be taken away again; it does nothing while nobody records


@pytest.fixture
def root(tmp_path: Path) -> Path:
    project = tmp_path / "root" / "-home-me-work"
    (project / "session" / "subagents").mkdir(parents=True)
    (project / "session.jsonl").write_text("{}\n")
    (project / "session" / "subagents" / "agent-a1.jsonl").write_text("{}\n")
    (project / "session" / "subagents" / "agent-a1.meta.json").write_text("{}")
    (project / "session" / "notes.txt").write_text(SECRET)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "other.jsonl").write_text(SECRET)
    return tmp_path / "root"


def _found(*roots: Path) -> set[str]:
    return {found.relative for found in walk_folders(roots).files.values()}


PLAIN = {
    "-home-me-work/session.jsonl",
    "-home-me-work/session/subagents/agent-a1.jsonl",
    "-home-me-work/session/subagents/agent-a1.meta.json",
}


def test_transcripts_and_descriptions_of_sub_agents_are_found(root: Path) -> None:
    findings = walk_folders((root,))
    assert {found.relative for found in findings.files.values()} == PLAIN
    assert findings.folders == {str(path) for path in (root, *root.rglob("*")) if path.is_dir()}
    for path, found in findings.files.items():
        assert path == found.path == str(root / found.relative)
        assert find_file(found.root, found.relative) == found


def test_root_may_be_missing_a_file_or_a_link_and_named_twice(root: Path, tmp_path: Path) -> None:
    assert _found(tmp_path / "missing", tmp_path / "outside" / "other.jsonl") == set()
    (tmp_path / "link").symlink_to(root)
    assert _found(tmp_path / "link", root) == PLAIN
    assert len(walk_folders((tmp_path / "link", root)).files) == len(PLAIN)


def _make_pipe(path: Path) -> None:
    os.mkfifo(path)


def _make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        here = Path.cwd()
        os.chdir(path.parent)  # a socket's path may have 107 bytes
        try:
            one.bind(path.name)
        finally:
            os.chdir(here)


HOSTILE: dict[str, tuple[str, Callable[[Path], None]]] = {
    "link to a file outside": ("x.jsonl", lambda path: path.symlink_to(path.parents[1] / "outside" / "other.jsonl")),
    "relative link upwards": ("x.jsonl", lambda path: path.symlink_to("../outside/other.jsonl")),
    "link to a folder outside": ("x", lambda path: path.symlink_to(path.parents[1] / "outside")),
    "link to the folder above": ("x", lambda path: path.symlink_to("..")),
    "link to itself": ("x.jsonl", lambda path: path.symlink_to(path)),
    "link to nothing": ("x.jsonl", lambda path: path.symlink_to("nothing.jsonl")),
    "link to a device": ("x.jsonl", lambda path: path.symlink_to("/dev/zero")),
    "pipe": ("x.jsonl", _make_pipe),
    "socket": ("x.jsonl", _make_socket),
    "folder with a file's name": ("x.jsonl", Path.mkdir),
    "link in place of a description": (
        "agent-b.meta.json",
        lambda path: path.symlink_to(path.parents[1] / "outside" / "other.jsonl"),
    ),
}


@contextmanager
def recorded_opens() -> Iterator[list[str]]:
    global _is_recording  # noqa: PLW0603 (an audit hook has no other way to be told)
    _opened.clear()
    _is_recording = True
    try:
        yield _opened
    finally:
        _is_recording = False


@pytest.mark.parametrize("case", HOSTILE)
def test_nothing_but_plain_files_is_found_or_opened(root: Path, case: str) -> None:
    name, make = HOSTILE[case]
    make(root / name)
    with recorded_opens() as opened:
        assert _found(root) == PLAIN
        for relative in (name, f"{name}/other.jsonl", f"{name}/x.jsonl"):
            with pytest.raises(OSError), opened_file(str(root), relative):  # noqa: PT011 (which one depends on the case)
                pass
    assert [place for place in opened if place.startswith("/") and not place.startswith(str(root))] == []


@pytest.mark.parametrize("case", ["pipe", "socket", "link to a device", "link to a file outside"])
def test_what_is_no_plain_file_is_not_even_tried(root: Path, case: str) -> None:
    """A pipe's writer would notice, and a device may act on being opened."""
    name, make = HOSTILE[case]
    make(root / name)
    with recorded_opens() as opened, pytest.raises(NotPlain), opened_file(str(root), name):
        pass
    assert opened == [str(root)]


@pytest.mark.parametrize(
    "relative", ["../outside/other.jsonl", "/etc/passwd", "-home-me-work/../../outside/other.jsonl", "", ".", "a//b"]
)
def test_path_that_leaves_the_folder_is_refused(root: Path, relative: str) -> None:
    with pytest.raises(NotPlain), opened_file(str(root), relative):
        pass


def test_folder_swapped_for_a_link_is_not_gone_through(root: Path, tmp_path: Path) -> None:
    (root / "project").mkdir()
    (root / "project" / "other.jsonl").write_text("{}\n")
    with opened_file(str(root), "project/other.jsonl") as descriptor:
        assert stat.S_ISREG(os.fstat(descriptor).st_mode)
    (root / "project").rename(root / "moved")
    (root / "project").symlink_to(tmp_path / "outside")
    with pytest.raises(NotPlain), opened_file(str(root), "project/other.jsonl"):
        pass


def test_names_that_are_no_characters_are_found(root: Path) -> None:
    name = os.fsdecode(b"caf\xe9.jsonl")
    (root / name).write_text("{}\n")
    assert name in _found(root)
    with opened_file(str(root), name) as descriptor:
        assert os.read(descriptor, 9) == b"{}\n"


def test_folders_are_gone_down_so_far_and_no_further(root: Path) -> None:
    place = root
    for depth in range(DEEPEST + 3):
        (place / f"{depth}.jsonl").write_text("{}\n")
        place /= "inner"
        place.mkdir()
    assert len(_found(root) - PLAIN) == DEEPEST


def test_second_name_of_a_file_of_another_account_is_not_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "x.jsonl").hardlink_to(root.parent / "outside" / "other.jsonl")
    with opened_file(str(root), "x.jsonl"):
        pass  # our own: people keep copies of their transcripts so
    monkeypatch.setattr(transcript_folders, "_list_owners", lambda _: (os.geteuid() + 1, os.geteuid() + 1))
    with pytest.raises(PermissionError, match="another account"), opened_file(str(root), "x.jsonl"):
        pass
    with opened_file(str(root), "-home-me-work/session.jsonl"):
        pass  # its only name: whoever owns it put it there
