"""Files below watched folders: nothing is followed, replaced, half written or removed by mistake."""

import errno
import os
import stat
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from dashboard.runs.watched_places import (
    FileState,
    NotWatched,
    WatchedPlace,
    create_file,
    find_place,
    find_state,
    read_own_file,
    remove_unchanged,
)

DATA = b'{"type":"user"}\n' * 9


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / "project").mkdir(parents=True)
    return tmp_path / "root"


@pytest.fixture
def place(root: Path) -> WatchedPlace:
    return WatchedPlace(str(root), "project/new.jsonl")


def look(place: WatchedPlace, data: bytes = DATA) -> FileState:
    return find_state(place, digest=sha256(data).hexdigest(), size_bytes=len(data))


def remove(place: WatchedPlace, data: bytes = DATA) -> FileState:
    return remove_unchanged(place, digest=sha256(data).hexdigest(), size_bytes=len(data))


def test_a_new_file_is_whole_private_and_alone(root: Path, place: WatchedPlace) -> None:
    create_file(place, DATA)
    path = Path(place.path)
    assert path.read_bytes() == DATA
    status = path.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_nlink) == (0o600, 1)
    assert [each.name for each in (root / "project").iterdir()] == ["new.jsonl"]
    assert look(place) is FileState.UNCHANGED


@pytest.mark.parametrize("make", [lambda path: path.write_bytes(b"mine"), lambda path: path.symlink_to("/nowhere")])
def test_what_is_there_is_never_replaced(root: Path, place: WatchedPlace, make: Callable[[Path], object]) -> None:
    make(Path(place.path))
    before = os.lstat(place.path)
    with pytest.raises(FileExistsError):
        create_file(place, DATA)
    assert os.lstat(place.path) == before
    assert len(list((root / "project").iterdir())) == 1


def test_without_hard_links_it_is_still_whole_and_replaces_nothing(
    root: Path, place: WatchedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    create_file(place, DATA)
    assert Path(place.path).read_bytes() == DATA
    with pytest.raises(FileExistsError):
        create_file(place, b"other")
    assert Path(place.path).read_bytes() == DATA
    assert len(list((root / "project").iterdir())) == 1


def test_a_full_disk_leaves_nothing(root: Path, place: WatchedPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", fail)
    with pytest.raises(OSError, match="No space"):
        create_file(place, DATA)
    assert list((root / "project").iterdir()) == []


def test_only_an_unchanged_file_is_removed(place: WatchedPlace) -> None:
    path = Path(place.path)
    assert remove(place) is FileState.MISSING
    create_file(place, DATA)
    path.write_bytes(DATA + b"more\n")
    assert (look(place), remove(place)) == (FileState.CONTINUED, FileState.CONTINUED)
    path.write_bytes(DATA[:-1] + b"!")
    assert (look(place), remove(place)) == (FileState.CHANGED, FileState.CHANGED)
    path.write_bytes(b"")
    assert remove(place) is FileState.CHANGED
    path.write_bytes(DATA)
    assert remove(place) is FileState.UNCHANGED
    assert not path.exists()


def test_what_is_written_between_the_look_and_the_removal_comes_back(
    place: WatchedPlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_file(place, DATA)
    unlink = os.unlink

    def go_on_and_unlink(name: str, *, dir_fd: int) -> None:
        if name == "new.jsonl":
            with Path(place.path).open("ab") as file:
                file.write(b"more\n")
        unlink(name, dir_fd=dir_fd)

    monkeypatch.setattr(os, "unlink", go_on_and_unlink)
    assert remove(place) is FileState.CONTINUED
    assert Path(place.path).read_bytes() == DATA + b"more\n"


def test_a_second_name_of_a_file_is_not_read_nor_removed(tmp_path: Path, place: WatchedPlace) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(DATA)
    os.link(secret, place.path)
    for act in (lambda: read_own_file(place), lambda: look(place), lambda: remove(place)):
        with pytest.raises(NotWatched):
            act()
    assert secret.read_bytes() == DATA


def test_a_file_of_somebody_else_is_not_read(place: WatchedPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    create_file(place, DATA)
    monkeypatch.setattr(os, "geteuid", lambda: 65_534)
    with pytest.raises(NotWatched):
        read_own_file(place)
    with pytest.raises(NotWatched):
        create_file(place.beside("another.jsonl"), DATA)


def test_a_huge_file_is_not_read(place: WatchedPlace) -> None:
    create_file(place, DATA)
    with pytest.raises(NotWatched):
        read_own_file(place, limit_bytes=len(DATA) - 1)


def test_a_root_may_be_reached_through_a_link_but_nothing_below_it(tmp_path: Path, root: Path) -> None:
    (tmp_path / "home").symlink_to(root)
    (root / "project" / "a.jsonl").write_bytes(DATA)
    found = find_place(f"{root}/project/a.jsonl", (tmp_path / "home",))
    assert found == WatchedPlace(str(root), "project/a.jsonl")
    assert read_own_file(found).data == DATA
    (root / "linked").symlink_to(root / "project")
    linked = find_place(f"{root}/linked/a.jsonl", (root,))
    assert linked is not None
    with pytest.raises(NotWatched):
        read_own_file(linked)
    with pytest.raises(NotWatched):
        create_file(linked.beside("b.jsonl"), DATA)
    assert not (root / "project" / "b.jsonl").exists()
