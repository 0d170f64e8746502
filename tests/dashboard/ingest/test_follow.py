"""The follower over real folders and a real database, with a delivery that remembers what it was handed."""

import json
import os
import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from django.db import OperationalError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compaction.transcripts.subagents import AgentMeta
from dashboard.health import read_intake
from dashboard.ingest.folder_watch import FolderWatch
from dashboard.ingest.follow import Follower
from dashboard.ingest.intake import Origin
from dashboard.ingest.record import TooBusy
from dashboard.models import Drop, FollowedFile
from tests.builders import make_team
from tests.dashboard.running import wait_until

pytestmark = pytest.mark.django_db
LONG_AGO = 1_700_000_000


class Remembering:
    """Keeps what it is handed, by name; refuses when it is told to."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = defaultdict(bytes)
        self.names: list[str] = []
        self.first_lines: list[int] = []
        self.metas: dict[str, AgentMeta] = {}
        self.refusals: dict[str, list[Exception]] = defaultdict(list)

    def take_lines(self, name: str, data: bytes, *, first_line_number: int) -> int:
        if self.refusals[name]:
            raise self.refusals[name].pop()
        assert data.endswith(b"\n")
        self.data[name] += data
        self.names.append(name)
        self.first_lines.append(first_line_number)
        return data.count(b"broken\n")

    def take_agent_meta(self, name: str, meta: AgentMeta) -> None:
        self.metas[name] = meta


class Following:
    """A folder, and a follower that can be started anew."""

    def __init__(self, root: Path, origin: Origin) -> None:
        self.root, self.origin = root, origin
        self.delivery = Remembering()
        self.clock = LONG_AGO
        self.restart()

    def restart(self) -> None:
        self.follower = Follower(self.origin, (self.root,), self.delivery, watch=FolderWatch(is_polling=True))

    def catch_up(self) -> Remembering:
        self.follower.work(wait_seconds=0)
        while self.follower.waiting_count:
            self.follower.work(wait_seconds=0)
        return self.delivery

    def write(self, name: str, data: bytes, *, append: bool = False) -> Path:
        """Each time at a later moment, all of them long ago: nothing is young."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab" if append else "wb") as file:
            file.write(data)
        self.age(path)
        return path

    def age(self, path: Path) -> None:
        self.clock += 1
        os.utime(path, (self.clock, self.clock))

    def row(self, name: str) -> FollowedFile:
        return FollowedFile.objects.get(path=str(self.root / name))


@pytest.fixture(autouse=True)
def _walk_at_every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.ingest.follow.POLL_EVERY_SECONDS", 0.0)
    monkeypatch.setattr("dashboard.ingest.follow.REST_PER_WALK", 0)


@pytest.fixture
def origin() -> Origin:
    return Origin(make_team("Harbour", owner="alice"), None, "follow")


@pytest.fixture
def following(tmp_path: Path, origin: Origin) -> Following:
    return Following(tmp_path / "root", origin)


def test_new_lines_come_once_also_over_restarts(following: Following) -> None:
    following.catch_up()  # the folder does not exist yet
    following.write("p/a.jsonl", b"one\ntwo\nbroken\nha")
    following.catch_up()
    assert following.delivery.data == {"p/a.jsonl": b"one\ntwo\nbroken\n"}
    following.restart()
    following.catch_up()
    following.write("p/a.jsonl", b"lf\nfour\n", append=True)
    following.catch_up()
    following.restart()
    following.catch_up()
    assert following.delivery.data == {"p/a.jsonl": b"one\ntwo\nbroken\nhalf\nfour\n"}
    assert following.delivery.first_lines == [1, 4]
    row = following.row("p/a.jsonl")
    assert (row.offset, row.size_bytes, row.line_count, row.problem_count, row.gone_at) == (25, 25, 5, 1, None)


def test_file_of_which_the_row_was_taken_away_is_read_again(following: Following) -> None:
    """By a policy that stores content from now on, or an admin who allows a deleted session again."""
    following.write("a.jsonl", b"one\ntwo\n")
    following.write("b.jsonl", b"three\n")
    meta = b'{"agentType":"Explore"}'
    following.write("s/subagents/agent-c.meta.json", meta)
    following.catch_up()
    following.delivery.metas.clear()
    FollowedFile.objects.exclude(path__endswith="b.jsonl").delete()
    following.catch_up()
    assert following.delivery.data == {"a.jsonl": b"one\ntwo\n" * 2, "b.jsonl": b"three\n"}
    assert list(following.delivery.metas) == ["s/subagents/agent-c.meta.json"]
    assert following.row("a.jsonl").offset == 8


def test_file_that_grew_before_its_row_was_missed_is_read_again(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    following.write("a.jsonl", b"one\ntwo\n")
    following.catch_up()
    FollowedFile.objects.all().delete()
    following.write("a.jsonl", b"three\n", append=True)
    with monkeypatch.context() as patched:
        patched.setattr(Follower, "_notice_forgotten", lambda _: None)
        following.catch_up()
    assert following.delivery.data == {"a.jsonl": b"one\ntwo\nthree\none\ntwo\nthree\n"}
    assert following.row("a.jsonl").offset == 14


def test_file_written_to_last_comes_first(following: Following) -> None:
    for number in (3, 1, 4, 0, 2):
        following.write(f"{number}.jsonl", b"line\n")
        os.utime(following.root / f"{number}.jsonl", (LONG_AGO + number, LONG_AGO + number))
    following.catch_up()
    assert following.delivery.names == [f"{number}.jsonl" for number in (4, 3, 2, 1, 0)]


def test_live_session_does_not_wait_for_a_huge_old_file(following: Following) -> None:
    line = b"x" * 1023 + b"\n"
    following.write("old.jsonl", line * (20 * 1024))
    following.follower.work(wait_seconds=0)
    assert 0 < len(following.delivery.data["old.jsonl"]) <= 8 * 1024**2
    following.write("live.jsonl", b"line\n")
    following.catch_up()
    assert following.delivery.names == ["old.jsonl", "live.jsonl", "old.jsonl", "old.jsonl"]
    assert following.delivery.data["old.jsonl"] == line * (20 * 1024)


def test_last_line_without_an_ending_is_read_when_it_is_whole(following: Following) -> None:
    whole = json.dumps({"type": "user", "uuid": "u"}).encode()
    following.write("a.jsonl", b"one\n" + whole[:-3])
    following.catch_up()
    assert following.delivery.data["a.jsonl"] == b"one\n"
    following.write("a.jsonl", whole[-3:], append=True)
    following.catch_up()
    following.catch_up()
    assert following.delivery.data["a.jsonl"] == b"one\n" + whole + b"\n"
    assert following.row("a.jsonl").offset == 4
    following.write("a.jsonl", b'{"type":"summary"}\n', append=True)
    following.catch_up()
    assert following.delivery.data["a.jsonl"] == b"one\n" + whole + b"\n" + whole + b'{"type":"summary"}\n'
    assert following.delivery.first_lines == [1, 2, 2]


def test_last_line_that_may_still_grow_is_waited_for(following: Following) -> None:
    following.write("a.jsonl", b'{"type":"user"}')
    os.utime(following.root / "a.jsonl")
    following.catch_up()
    assert following.delivery.names == []
    wait_until(lambda: bool(following.catch_up().names), seconds=10, what="the quiet line")
    assert following.delivery.data["a.jsonl"] == b'{"type":"user"}\n'


def test_rewrite_that_shows_in_neither_size_nor_time_is_found_soon(following: Following) -> None:
    """Two writes within one tick of the file system's clock."""
    path = following.write("a.jsonl", b"old\n")
    os.utime(path)
    times = path.stat()
    following.catch_up()
    path.write_bytes(b"new\n")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    wait_until(lambda: b"new" in following.catch_up().data["a.jsonl"], seconds=10, what="the new line")


def test_deleted_file_is_marked_and_taken_up_again_when_it_comes_back(following: Following) -> None:
    path = following.write("a.jsonl", b"one\n")
    following.write("b.jsonl", b"one\n")
    following.catch_up()
    path.rename(following.root / "aside")
    following.catch_up()
    assert following.row("a.jsonl").gone_at is not None
    assert following.row("b.jsonl").gone_at is None
    (following.root / "aside").rename(path)
    following.catch_up()
    assert following.row("a.jsonl").gone_at is None
    following.write("a.jsonl", b"two\n", append=True)
    following.catch_up()
    assert following.delivery.data["a.jsonl"] == b"one\ntwo\n"


def test_file_deleted_while_nobody_followed_is_marked(following: Following, tmp_path: Path) -> None:
    following.write("p/a.jsonl", b"one\n").parent.chmod(0o700)
    following.write("b.jsonl", b"one\n")
    following.catch_up()
    (following.root / "p" / "a.jsonl").unlink()
    following.root.rename(tmp_path / "away")
    following.restart()
    following.catch_up()
    assert following.row("p/a.jsonl").gone_at is None, "a folder that is not there tells nothing"
    (tmp_path / "away").rename(following.root)
    following.restart()
    following.catch_up()
    assert following.row("p/a.jsonl").gone_at is not None
    assert following.row("b.jsonl").gone_at is None


def test_new_file_under_an_old_name_is_read_whole(following: Following) -> None:
    path = following.write("a.jsonl", b"one\ntwo\n")
    following.catch_up()
    path.rename(following.root / "a.jsonl.1")
    following.write("a.jsonl", b"one\ntwo\nthree\n")
    following.catch_up()
    assert following.delivery.data["a.jsonl"] == b"one\ntwo\none\ntwo\nthree\n"
    assert following.row("a.jsonl").line_count == 3


@pytest.mark.parametrize("trouble", [OperationalError("database is locked"), OperationalError("disk is full")])
def test_nothing_is_lost_while_the_database_refuses(following: Following, trouble: OperationalError) -> None:
    following.write("a.jsonl", b"one\n")
    following.delivery.refusals["a.jsonl"] = [trouble, trouble]
    for _ in range(2):
        with pytest.raises(OperationalError):
            following.follower.work(wait_seconds=0)
    assert not FollowedFile.objects.exists()
    following.catch_up()
    assert following.delivery.data == {"a.jsonl": b"one\n"}
    assert following.row("a.jsonl").offset == 4


def test_session_that_is_fought_over_is_tried_again(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.ingest.follow.BUSY_AGAIN_SECONDS", 0.0)
    following.write("a.jsonl", b"one\n")
    following.delivery.refusals["a.jsonl"] = [TooBusy("a")]
    following.catch_up()
    following.catch_up()
    assert following.delivery.data == {"a.jsonl": b"one\n"}
    assert not Drop.objects.exists()


def test_odd_file_does_not_keep_others_from_being_read(following: Following, monkeypatch: pytest.MonkeyPatch) -> None:
    following.write("other.jsonl", b"one\n")
    following.write("odd.jsonl", b"one\n")
    following.delivery.refusals["odd.jsonl"] = [ZeroDivisionError(), ZeroDivisionError()]
    following.catch_up()
    following.catch_up()
    assert following.delivery.data == {"other.jsonl": b"one\n"}
    assert len(following.delivery.refusals["odd.jsonl"]) == 1, "it rests before the next try"
    drop = Drop.objects.get()
    assert (drop.source, drop.reason, drop.count, drop.last_detail) == (
        "follow",
        "not imported: ZeroDivisionError",
        1,
        "odd.jsonl",
    )
    following.delivery.refusals.clear()
    following.restart()
    following.catch_up()
    assert following.delivery.data["odd.jsonl"] == b"one\n"


def test_file_that_may_not_be_read_is_counted_once_and_tried_again(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever runs the tests may be allowed everything, so the refusal is the system call's."""
    true_open = os.open

    def refuse(path: str, *arguments: object, **options: object) -> int:
        if path == "closed.jsonl":
            raise PermissionError(13, "Permission denied")
        return true_open(path, *arguments, **options)  # type: ignore[arg-type]

    following.write("closed.jsonl", b"one\n")
    following.write("open.jsonl", b"one\n")
    with monkeypatch.context() as patching:
        patching.setattr(os, "open", refuse)
        patching.setattr("dashboard.ingest.follow.REFUSED_AGAIN_SECONDS", 0.0)
        for _ in range(3):
            following.catch_up()
    assert following.delivery.data == {"open.jsonl": b"one\n"}
    drop = Drop.objects.get()
    assert (drop.reason, drop.count, drop.last_detail) == ("cannot be read: Permission denied", 1, "closed.jsonl")
    following.catch_up()
    assert following.delivery.data["closed.jsonl"] == b"one\n"


def test_links_pipes_and_folders_are_passed_over(following: Following, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "other.jsonl").write_bytes(b"secret\n")
    following.write("plain.jsonl", b"one\n")
    (following.root / "link.jsonl").symlink_to(tmp_path / "outside" / "other.jsonl")
    (following.root / "folder").symlink_to(tmp_path / "outside")
    (following.root / "folder.jsonl").mkdir()
    os.mkfifo(following.root / "pipe.jsonl")
    following.catch_up()
    assert following.delivery.data == {"plain.jsonl": b"one\n"}
    assert not Drop.objects.exists()
    (following.root / "plain.jsonl").unlink()
    (following.root / "plain.jsonl").symlink_to(tmp_path / "outside" / "other.jsonl")
    following.catch_up()
    assert following.delivery.data == {"plain.jsonl": b"one\n"}
    assert following.row("plain.jsonl").gone_at is not None


def test_name_that_is_no_text_is_followed(following: Following) -> None:
    following.write(os.fsdecode(b"caf\xe9.jsonl"), b"one\n")
    following.catch_up()
    following.restart()
    following.catch_up()
    assert following.delivery.data == {"caf\\xe9.jsonl": b"one\n"}


def test_description_of_a_sub_agent_is_read_whenever_it_changes(following: Following) -> None:
    name = "p/s/subagents/agent-a1.meta.json"
    following.write(name, b'{"agentType":"Explore"}')
    following.catch_up()
    assert following.delivery.metas[name].agent_type == "Explore"
    following.delivery.metas.clear()
    following.restart()
    following.catch_up()
    assert following.delivery.metas == {}
    following.write(name, b'{"agentType":"Explore","finished":true}')
    following.catch_up()
    assert following.delivery.metas[name].is_finished


def test_health_counts_a_complete_last_line_without_a_line_end_as_read(following: Following) -> None:
    following.write("p/a.jsonl", b'one\n{"type": "user"}')
    following.catch_up()
    intake = read_intake(FollowedFile.objects.all())
    assert (intake.behind_bytes, intake.cut_file_count, intake.cut_bytes) == (0, 0, 0)
    following.restart()
    following.catch_up()
    assert read_intake(FollowedFile.objects.all()) == intake


def test_health_counts_an_incomplete_last_line_apart(following: Following) -> None:
    following.write("p/a.jsonl", b'one\n{"type": "us')
    following.catch_up()
    intake = read_intake(FollowedFile.objects.all())
    assert (intake.behind_bytes, intake.cut_file_count, intake.cut_bytes) == (0, 1, 12)
    following.write("p/a.jsonl", b'er"}', append=True)
    following.catch_up()
    assert read_intake(FollowedFile.objects.all()).cut_file_count == 0  # complete, though without a line end
    following.write("p/a.jsonl", b"\n{", append=True)
    following.catch_up()
    intake = read_intake(FollowedFile.objects.all())
    assert (intake.behind_bytes, intake.cut_file_count, intake.cut_bytes) == (0, 1, 1)


def test_the_state_of_an_open_line_is_stored_once(following: Following) -> None:
    following.write("p/a.jsonl", b'one\n{"type": "us')
    following.catch_up()
    row = following.row("p/a.jsonl")
    FollowedFile.objects.filter(pk=row.pk).update(open_line_bytes=99)
    following.catch_up()
    assert following.row("p/a.jsonl").open_line_bytes == 99  # nothing changed in the file, so nothing was written


def test_half_a_description_is_waited_for_and_a_broken_one_counted(following: Following) -> None:
    path = following.write("agent-a1.meta.json", b'{"agentTy')
    os.utime(path)
    following.catch_up()
    assert not Drop.objects.exists()
    following.write("agent-a1.meta.json", b'{"agentTy')
    following.catch_up()
    following.catch_up()
    assert [(drop.reason, drop.count) for drop in Drop.objects.all()] == [("sub-agent description unreadable", 1)]


def test_changes_are_heard_also_in_new_folders(tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the walk too rare to help, whatever comes was told by the kernel."""
    monkeypatch.setattr("dashboard.ingest.follow.WALK_EVERY_SECONDS", 3600.0)
    root = tmp_path / "root"
    root.mkdir()
    delivery, watch = Remembering(), FolderWatch(is_polling=False)
    follower = Follower(origin, (root,), delivery, watch=watch)

    def comes(name: str, data: bytes) -> None:
        def came() -> bool:
            follower.work(wait_seconds=0.2)
            return delivery.data[name] == data

        wait_until(came, seconds=20, what=f"{data!r} of {name}")

    try:
        follower.work(wait_seconds=0)
        follower.work(wait_seconds=0)
        assert watch.is_hearing
        (root / "a.jsonl").write_bytes(b"one\n")
        comes("a.jsonl", b"one\n")
        with (root / "a.jsonl").open("ab") as file:
            file.write(b"two\n")
        comes("a.jsonl", b"one\ntwo\n")
        inner = root / "p" / "s" / "subagents"
        inner.mkdir(parents=True)
        (inner / "agent-a1.jsonl").write_bytes(b"one\n")
        comes("p/s/subagents/agent-a1.jsonl", b"one\n")
        with (inner / "agent-a1.jsonl").open("ab") as file:
            file.write(b"two\n")
        comes("p/s/subagents/agent-a1.jsonl", b"one\ntwo\n")
        (root / "a.jsonl").unlink()

        def is_gone() -> bool:
            follower.work(wait_seconds=0.2)
            return FollowedFile.objects.exclude(gone_at=None).exists()

        wait_until(is_gone, seconds=20, what="the deleted file")
    finally:
        watch.close()


@pytest.mark.parametrize("trouble", [OSError(28, "inotify watch limit reached"), RuntimeError("no such call")])
def test_folders_that_cannot_be_watched_are_looked_at_often(
    tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch, trouble: Exception
) -> None:
    def fail(*_folders: str, **_options: object) -> None:
        raise trouble

    monkeypatch.setattr("dashboard.ingest.folder_watch.watch", fail)
    following = Following(tmp_path, origin)
    watch = FolderWatch(is_polling=False)
    following.follower = Follower(origin, (tmp_path,), following.delivery, watch=watch)
    for line in (b"one\n", b"two\n"):
        following.write("a.jsonl", line, append=True)
        following.catch_up()
    assert not watch.is_hearing
    assert following.delivery.data == {"a.jsonl": b"one\ntwo\n"}


NAMES = st.sampled_from(["a.jsonl", "b.jsonl", "p/c.jsonl"])
TEXTS = st.text("xyé\r 🥊", max_size=30).map(str.encode)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "append", "half", "truncate", "rotate", "rewrite", "edit", "delete", "restart"]),
        NAMES,
        TEXTS,
        st.integers(0, 60),
    ),
    min_size=3,
    max_size=25,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, looks=st.integers(0, 2**25 - 1))
def test_every_line_that_stood_during_a_look_is_delivered(
    origin: Origin, steps: list[tuple[str, str, bytes, int]], looks: int
) -> None:
    """And nothing is delivered that never stood there."""
    with tempfile.TemporaryDirectory() as folder:
        following = Following(Path(folder) / "root", origin)
        stood: dict[str, set[bytes]] = defaultdict(set)
        ever: dict[str, set[bytes]] = defaultdict(set)
        for number, (act, name, text, place) in enumerate(steps):
            _do(following, act, name, b"%d %b" % (number, text), place)
            for path in following.root.rglob("*.jsonl"):
                ever[str(path.relative_to(following.root))] |= _lines(path)
            if looks >> number & 1:
                following.catch_up()
                for path in following.root.rglob("*.jsonl"):
                    stood[str(path.relative_to(following.root))] |= _lines(path)
        for name, lines in stood.items():
            delivered = set(following.delivery.data[name].split(b"\n")[:-1])
            assert lines <= delivered
            assert delivered <= ever[name]


def _lines(path: Path) -> set[bytes]:
    return set(path.read_bytes().split(b"\n")[:-1])


def _do(following: Following, act: str, name: str, text: bytes, place: int) -> None:
    path = following.root / name
    if act == "restart":
        following.restart()
    elif act in ("append", "half") or not path.exists():
        following.write(name, text + (b"" if act == "half" else b"\n"), append=True)
    elif act == "delete":
        path.unlink()
    elif act == "rotate":
        path.rename(path.with_suffix(".old"))
        following.write(name, text + b"\n")
    elif act == "rewrite":
        following.write(name, text * 2 + b"\n")
    elif act == "truncate":
        os.truncate(path, min(place, path.stat().st_size))
        following.age(path)
    elif act == "edit":
        data = bytearray(path.read_bytes())
        data[place : place + 1] = b"Q" if place < len(data) else b""
        following.write(name, bytes(data))
