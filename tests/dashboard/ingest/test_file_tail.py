"""Reading a growing file: whatever happens to it between two looks, whole lines come out, each at least once (R7)."""

import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dashboard.ingest.file_tail import MARK_BYTES, Limits, Place, read_half_line, take_look

HOUR_NS = 3600 * 10**9
LINES = [
    b'{"type":"user","text":"one"}\n',
    '{"type":"user","text":"zwölf Boxkämpfer 🥊 über den Sylter Deich"}\n'.encode(),
    b'{"type":"user","text":"carriage return"}\r\n',
    b"\n",
    b'{"type":"assistant"}{"type":"summary"}\n',
    b"not json at all\n",
    b'{"half a character": "\xf0\x9f"}\n',
    b'{"type":"user","text":"' + b"long " * 60 + b'"}\n',
]
WHOLE = b"".join(LINES)


class Tail:
    """Follows one path as the follower does, with a clock of its own."""

    def __init__(self, path: Path, **limits: int) -> None:
        self.path, self.limits = path, Limits(**limits)
        self.place = Place()
        self.data = b""
        self.again_count = 0
        self.line_numbers: list[tuple[int, bytes]] = []

    def look(self, *, settled: bool = True) -> bytes:
        """Until nothing is left; what came."""
        came = b""
        while True:
            with opened(self.path) as descriptor:
                now_ns = os.fstat(descriptor).st_mtime_ns + (HOUR_NS if settled else 1)
                look = take_look(descriptor, self.place, now_ns=now_ns, limits=self.limits)
            self.place = look.place
            self.again_count += look.is_again
            came += look.data
            numbers = range(look.first_line_number, look.place.line_count + 1)
            self.line_numbers += zip(numbers, look.data.splitlines(keepends=True), strict=False)
            if not look.has_more:
                self.data += came
                return came


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def ended(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


@pytest.fixture
def tail(tmp_path: Path) -> Tail:
    path = tmp_path / "session.jsonl"
    path.touch()
    return Tail(path)


def _append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_short_lines_come_in_pieces_of_so_many(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "session.jsonl", piece_lines=3)
    tail.path.write_bytes(WHOLE + b"half")
    with opened(tail.path) as descriptor:
        look = take_look(descriptor, Place(), now_ns=0, limits=tail.limits)
    assert (look.data, look.place.line_count, look.has_more) == (b"".join(LINES[:3]), 3, True)
    assert tail.look() == WHOLE
    assert tail.line_numbers == list(enumerate(LINES, 1))


def test_cut_at_every_byte(tmp_path: Path) -> None:
    for cut in range(len(WHOLE) + 1):
        tail = Tail(tmp_path / f"{cut}.jsonl")
        _append(tail.path, WHOLE[:cut])
        assert tail.look() == ended(WHOLE[:cut])
        _append(tail.path, WHOLE[cut:])
        tail.look()
        assert tail.data == WHOLE
        assert tail.again_count == 0
        assert tail.place.line_count == len(LINES)


def test_one_byte_at_a_time(tail: Tail) -> None:
    for at in range(len(WHOLE)):
        _append(tail.path, WHOLE[at : at + 1])
        tail.look(settled=False)
        assert tail.data == ended(WHOLE[: at + 1])
    assert tail.line_numbers == list(enumerate(LINES, 1))


def test_cut_at_five_hundred_places_and_around_every_line_end(tail: Tail) -> None:
    """Over a hundred kilobytes: far more than the bytes by which a file is known again."""
    chance = random.Random(7)
    many = [chance.choice(LINES) for _ in range(1500)]
    whole = b"".join(many)
    assert len(whole) > 20 * MARK_BYTES
    ends = [at + 1 for at, byte in enumerate(whole) if byte == 10]
    cuts = {place for end in chance.sample(ends, 200) for place in (end - 1, end, end + 1)}
    cuts |= {chance.randrange(len(whole)) for _ in range(500)}
    before = 0
    for cut in sorted(cuts - {0}):
        _append(tail.path, whole[before:cut])
        tail.look(settled=chance.random() < 0.5)
        before = cut
    _append(tail.path, whole[before:])
    tail.look()
    assert tail.data == whole
    assert tail.again_count == 0
    assert tail.line_numbers == list(enumerate(many, 1))


@pytest.mark.parametrize("piece_bytes", sorted({1, 2, 7, 64, 100, 5000, *(len(line) - 1 for line in LINES)} - {0}))
def test_pieces_end_with_lines_and_a_longer_line_stays_whole(tmp_path: Path, piece_bytes: int) -> None:
    tail = Tail(tmp_path / "session.jsonl", piece_bytes=piece_bytes)
    _append(tail.path, WHOLE[:-5])
    while True:
        with opened(tail.path) as descriptor:
            look = take_look(descriptor, tail.place, now_ns=0, limits=tail.limits)
        tail.place = look.place
        tail.data += look.data
        assert look.data.endswith(b"\n") or not look.data
        assert len(look.data) <= piece_bytes or look.data.count(b"\n") == 1
        if not look.has_more:
            break
    assert tail.data == ended(WHOLE[:-5])
    _append(tail.path, WHOLE[-5:])
    tail.look()
    assert tail.data == WHOLE


def test_line_that_no_reader_takes_is_stepped_over_and_told(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "session.jsonl", piece_bytes=16, line_bytes=100)
    _append(tail.path, b"first\n" + b"x" * 150)
    assert tail.look() == b"first\n"
    _append(tail.path, b"x" * 50 + b"\nlast\n")
    with opened(tail.path) as descriptor:
        look = take_look(descriptor, tail.place, now_ns=0, limits=tail.limits)
    assert (look.data, look.too_long_bytes, look.first_line_number, look.has_more) == (b"", 201, 2, True)
    assert tail.look() == b"last\n"
    assert tail.place.line_count == 3
    _append(tail.path, b"more\n")
    assert tail.look() == b"more\n"
    assert tail.again_count == 0


def _rewrite(path: Path, data: bytes) -> None:
    """In place, as an editor or a client that starts over does: same inode."""
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(data)


def _replace(path: Path, data: bytes) -> None:
    """A new file under the old name."""
    fresh = path.with_name("fresh")
    fresh.write_bytes(data)
    fresh.rename(path)


OLD = b"".join(b'{"old":%d}\n' % number for number in range(2000))
NEW = b"".join(b'{"new":%d}\n' % number for number in range(2000))
MIDDLE = len(OLD) // 2


@pytest.mark.parametrize("change", [_rewrite, _replace])
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(NEW, id="other content of the same size"),
        pytest.param(NEW + NEW, id="other content, longer"),
        pytest.param(NEW[:500], id="other content, shorter"),
        pytest.param(OLD[: OLD.index(b"\n", MIDDLE) + 1], id="truncated at a line end"),
        pytest.param(OLD[: OLD.index(b"\n", MIDDLE) + 1] + NEW, id="truncated, then written on"),
        pytest.param(OLD[: OLD.index(b"\n", MIDDLE) - 3], id="truncated in a line"),
        pytest.param(OLD[: OLD.index(b"\n", MIDDLE) - 3] + NEW, id="truncated in a line, then written on"),
        pytest.param(OLD[11:] + NEW, id="without its first line"),
        pytest.param(OLD[:MIDDLE].replace(b'{"old":700}\n', b"") + OLD[MIDDLE:] + NEW, id="without a line inside"),
        pytest.param(b'{"first":1}\n' + OLD, id="with a new first line"),
        pytest.param(OLD.replace(b'{"old":700}', b'{"odd":700}'), id="one word changed, same size"),
        pytest.param(b"", id="emptied"),
    ],
)
def test_other_content_is_read_from_its_start(
    tail: Tail, change: Callable[[Path, bytes], None], content: bytes
) -> None:
    tail.path.write_bytes(OLD)
    assert tail.look() == OLD
    os.utime(tail.path, ns=(0, 10**9))
    tail.look()
    before = tail.again_count
    change(tail.path, content)
    assert tail.look() == ended(content)
    assert tail.again_count == before + 1
    assert tail.place.line_count == content.count(b"\n")
    _append(tail.path, b"\nafter\n")
    assert (tail.look()).endswith(b"\nafter\n")
    assert tail.again_count == before + 1


def test_replaced_file_is_read_again_even_where_both_ends_agree(tail: Tail) -> None:
    tail.path.write_bytes(OLD)
    tail.look()
    other = OLD.replace(b'{"old":700}', b'{"odd":700}') + NEW
    _replace(tail.path, other)
    assert tail.look() == other


def test_time_that_moves_before_the_size_does_is_no_rewrite(tail: Tail) -> None:
    """A look may fall between the two; it must not read a long file again for it."""
    tail.path.write_bytes(OLD)
    tail.look()
    os.utime(tail.path, ns=(0, tail.path.stat().st_mtime_ns + 10**6))
    assert tail.look(settled=False) == b""
    _append(tail.path, b"more\n")
    assert tail.look(settled=False) == b"more\n"
    assert tail.again_count == 0


def test_half_a_line_that_is_replaced_is_read_as_it_stands_then(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "session.jsonl", piece_bytes=32)
    for half in (b"", b"kept\n"):
        _rewrite_half(tail, half)


def _rewrite_half(tail: Tail, before: bytes) -> None:
    tail.path.write_bytes(before + b"h" * 20)
    tail.look()
    tail.path.write_bytes(before + b"short\n" + b"g" * 25)
    tail.look()
    assert tail.data.endswith(b"short\n")


def test_half_line_can_be_read_without_moving(tail: Tail) -> None:
    whole = json.dumps({"type": "user"}).encode()
    tail.path.write_bytes(b"first\n" + whole)
    tail.look()
    with opened(tail.path) as descriptor:
        assert read_half_line(descriptor, tail.place) == whole
    _append(tail.path, b"\n")
    assert tail.look() == whole + b"\n"


def test_file_truncated_during_a_look_is_read_again(tmp_path: Path) -> None:
    tail = Tail(tmp_path / "session.jsonl", piece_bytes=4096)
    tail.path.write_bytes(OLD)
    with opened(tail.path) as descriptor:
        tail.place = take_look(descriptor, tail.place, now_ns=0, limits=tail.limits).place
    _rewrite(tail.path, NEW)
    assert tail.look() == NEW
    assert tail.again_count == 1


def test_gigabytes_are_read_in_pieces(tmp_path: Path) -> None:
    """A sparse file of 3 GB: beyond what a 32-bit offset and one read can hold."""
    path = tmp_path / "huge.jsonl"
    start = 3 * 1024**3
    with path.open("wb") as file:
        file.seek(start - 1)
        file.write(b"\n" + WHOLE)
    with opened(path) as descriptor:
        status = os.fstat(descriptor)
        known = Place(inode=status.st_ino, offset=start, line_count=1, mark=_mark_of(path, start))
        look = take_look(descriptor, known, now_ns=status.st_mtime_ns)
    assert look.data == WHOLE
    assert look.place.offset == start + len(WHOLE)


def _mark_of(path: Path, offset: int) -> str:
    from hashlib import sha256

    with path.open("rb") as file:
        head = file.read(MARK_BYTES)
        file.seek(offset - MARK_BYTES)
        ends = (head, file.read(MARK_BYTES))
    return "".join(sha256(end).hexdigest()[:32] for end in ends)
