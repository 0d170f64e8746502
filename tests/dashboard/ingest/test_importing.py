"""`plimsoll import`: what it finds, what it reads again, what it tells."""

import io
import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from bench.corpus import write_family
from compaction.context.policy import Policy
from dashboard.health import read_intake
from dashboard.ingest import importing
from dashboard.ingest.decoders import Decoders
from dashboard.ingest.file_tail import Place
from dashboard.ingest.import_paths import find_paths
from dashboard.ingest.import_progress import Progress, format_seconds
from dashboard.ingest.import_tally import Tally
from dashboard.ingest.importing import SHARED_BYTES, group_looks
from dashboard.ingest.looks import PIECE_BYTES, NextLook
from dashboard.ingest.observed import LineProblem, Piece, Prepared, Rules, merge_prepared
from dashboard.ingest.stream_pieces import cut_stream
from dashboard.ingest.transcript_folders import FoundFile
from dashboard.models import AgentSession, ApiCall, FollowedFile, Thread
from tests.builders import make_team, make_user
from tests.dashboard.ingest.importing import OTHER, SESSION, make_call, make_calls, run_import, write_home

RULES = Rules(keeps_content=False, digest_key=b"k" * 32)
BROKEN = b'{"type":"user","mess\n'


def read_state() -> list[tuple[object, ...]]:
    """Every row of every table an import writes, but for the keys that differ from database to database."""
    tables = ("apicall", "cachebreak", "observedcompaction", "thread", "sessionhour", "agentsession", "entrysegment")
    rows: list[tuple[object, ...]] = []
    with connection.cursor() as cursor:
        for table in tables:
            cursor.execute(f"select * from dashboard_{table} order by 1")
            rows += [(table, *row) for row in cursor.fetchall()]
    return rows


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return write_home(tmp_path / ".claude")


# What it finds


def test_home_gives_its_projects_and_not_its_history(home: Path) -> None:
    assert {Path(path).name for path in find_paths([str(home)]).files} == {
        f"{SESSION}.jsonl",
        "agent-abc.jsonl",
        "agent-abc.meta.json",
    }


def test_links_below_a_folder_are_left_aside_but_a_named_one_is_meant(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    link = folder / "link.jsonl"
    link.symlink_to(home / "projects" / "-home-dev-app" / f"{SESSION}.jsonl")
    assert find_paths([str(folder)]).files == {}
    assert [file.path for file in find_paths([str(link)]).transcripts] == [os.path.realpath(link)]


def test_newest_files_come_first_and_each_once(tmp_path: Path) -> None:
    for name, at_seconds in (("old", 1), ("new", 3), ("middle", 2)):
        (tmp_path / f"{name}.jsonl").write_bytes(b"{}\n")
        os.utime(tmp_path / f"{name}.jsonl", (100, at_seconds))
    found = find_paths([str(tmp_path), str(tmp_path / "old.jsonl"), f"{tmp_path}/"])
    assert [Path(file.path).stem for file in found.transcripts] == ["new", "middle", "old"]


def test_pipes_are_streams_and_missing_paths_are_told(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    found = find_paths(["-", str(tmp_path / "pipe"), str(tmp_path / "nothing")])
    assert found.streams == ["-", str(tmp_path / "pipe")]
    assert found.refusals == [f"{tmp_path / 'nothing'}: No such file or directory."]


# What it does


@pytest.mark.django_db
def test_import_of_a_home_tells_what_it_kept(home: Path) -> None:
    told = run_import(home)
    assert (told["sessions_new"], told["calls_new"], told["files_read"], told["lines_read"]) == (1, 5, 2, 5)
    assert told["spent_usd"] == pytest.approx(float(str(AgentSession.objects.get().spent_usd)), abs=1e-6)
    assert told["spent_usd"] > 0
    assert Thread.objects.get(agent_id="abc").agent_type == "Explore"
    session = AgentSession.objects.get()
    assert (session.external_id, session.sources, session.team.is_local) == (SESSION, ["import"], True)
    assert session.owner is not None


@pytest.mark.django_db
def test_second_import_reads_nothing_and_rereading_changes_nothing(home: Path) -> None:
    run_import(home)
    before = read_state()
    told = run_import(home)
    assert (told["files_read"], told["files_unchanged"], told["bytes_read"]) == (0, 2, 0)
    again = run_import(home, reread=True)
    assert (again["files_read"], again["lines_read"], again["lines_new"], again["sessions_changed"]) == (2, 5, 0, 0)
    assert read_state() == before


@pytest.mark.django_db
def test_grown_file_is_read_on_and_a_rewritten_one_again(home: Path) -> None:
    run_import(home)
    path = home / "projects" / "-home-dev-app" / f"{SESSION}.jsonl"
    with path.open("ab") as file:
        file.write(make_calls(6))
    told = run_import(home)
    assert (told["files_read"], told["lines_read"], told["calls_new"], told["sessions_changed"]) == (1, 1, 1, 1)
    path.write_bytes(make_calls(7, 1, 2, 3, 6))
    told = run_import(home)
    assert (told["lines_read"], told["calls_new"]) == (5, 1)
    assert ApiCall.objects.count() == 7


@pytest.mark.django_db
def test_malformed_lines_are_told_by_file_and_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(make_calls(1) + BROKEN * 25 + make_calls(2))
    told = run_import(path)
    assert told["malformed_lines"] == 25
    assert [(found["file"], found["line"]) for found in told["malformed"]] == [(str(path), n) for n in range(2, 22)]
    call_command("import", str(path), reread=True)
    printed = capsys.readouterr().out
    assert f"25 lines could not be parsed:\n  {path}, line 2: Not valid JSON" in printed
    assert "\n  and 5 more.\n" in printed


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("end", "calls", "cut"),
    [
        (make_call(2).rstrip(), 2, 0),
        (make_call(2)[:-20], 1, 1),
        (make_call(2)[: make_call(2).rindex(b"}}") + 1], 1, 1),
    ],
    ids=["whole without an ending", "half written", "half written up to a brace"],
)
def test_last_line_without_an_ending(tmp_path: Path, end: bytes, calls: int, cut: int) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(make_calls(1) + end)
    told = run_import(path)
    assert (told["calls_new"], len(told["files_cut"]), told["malformed_lines"]) == (calls, cut, 0)
    intake = read_intake(FollowedFile.objects.all())
    assert (intake.behind_bytes, intake.cut_file_count, intake.cut_bytes) == (0, cut, len(end) * cut)
    path.write_bytes(make_calls(1, 2))
    assert run_import(path)["calls_new"] == 2 - calls
    assert AgentSession.objects.get().problem_count == 0


@pytest.mark.django_db
def test_standard_input_sorts_lines_by_their_own_session(monkeypatch: pytest.MonkeyPatch) -> None:
    data = make_calls(1, 2) + BROKEN + make_calls(1, session=OTHER)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    monkeypatch.setattr("dashboard.management.import_run.count_processes", lambda _: 0)
    told = run_import("-")
    assert (told["sessions_new"], told["calls_new"]) == (2, 3)
    assert [(found["file"], found["line"]) for found in told["malformed"]] == [("-", 3)]


@pytest.mark.django_db
def test_missing_path_fails_after_the_others_were_read(home: Path, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"nothing: No such file or directory\.") as failure:
        call_command("import", str(tmp_path / "nothing"), str(home), quiet=True)
    assert failure.value.returncode == 1
    assert ApiCall.objects.count() == 5


@pytest.mark.django_db
def test_server_asks_for_a_team_and_takes_only_its_members(home: Path, settings: Any) -> None:
    settings.LOCAL_MODE = False
    team = make_team("Harbour", owner="alice", member="bob")
    make_user("mallory")
    for options, told in (
        ({}, "Specify a team"),
        ({"team": "nowhere"}, "Team nowhere not found"),
        ({"team": "harbour", "owner": "mallory"}, "mallory is not a member of Harbour"),
    ):
        with pytest.raises(CommandError, match=told):
            call_command("import", str(home), **options)
    run_import(home, team="harbour", owner="bob")
    session = AgentSession.objects.get()
    assert (session.team, session.developer, session.has_content) == (team, "bob", False)


@pytest.mark.sqlite_only  # it refuses writing by a pragma
@pytest.mark.django_db
def test_database_that_refuses_is_tried_again_then_told(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_import(home)
    with (home / "projects" / "-home-dev-app" / f"{SESSION}.jsonl").open("ab") as file:
        file.write(make_calls(8))
    before = read_state()
    monkeypatch.setattr(importing, "RETRY_AFTER_SECONDS", (0.0, 0.0))
    with connection.cursor() as cursor:
        cursor.execute("pragma query_only = on")
        with pytest.raises(CommandError, match=r"The database cannot be written \(attempt to write a readonly"):
            call_command("import", str(home), quiet=True)
        cursor.execute("pragma query_only = off")
    assert read_state() == before
    assert run_import(home)["calls_new"] == 1


# How it works


def make_found(path: str, size_bytes: int, modified_ns: int = 0) -> NextLook:
    return NextLook(FoundFile("/r", path, 1, size_bytes, modified_ns), Place())


def name_works(looks: list[NextLook]) -> list[list[str]]:
    return [[look.file.relative.rpartition("/")[2] for look in work] for work in group_looks(looks)]


def test_files_of_a_session_are_written_together_up_to_a_piece() -> None:
    looks = [
        make_found(f"p/{SESSION}.jsonl", SHARED_BYTES),
        make_found(f"p/{OTHER}.jsonl", SHARED_BYTES + 1),
        make_found(f"p/{SESSION}/subagents/agent-a.jsonl", 200),
        make_found(f"p/{SESSION}/subagents/agent-b.jsonl", PIECE_BYTES),
    ]
    assert name_works(looks) == [[f"{SESSION}.jsonl", "agent-a.jsonl"], ["agent-b.jsonl"], [f"{OTHER}.jsonl"]]


def test_what_was_written_to_long_ago_comes_first() -> None:
    large = SHARED_BYTES + 1
    looks = [
        make_found("fork.jsonl", large, 7),
        make_found(f"p/{SESSION}.jsonl", large, 9),
        make_found("origin.jsonl", large, 5),
        make_found(f"p/{SESSION}/subagents/agent-a.jsonl", 1, 3),
    ]
    assert name_works(looks) == [[f"{SESSION}.jsonl", "agent-a.jsonl"], ["origin.jsonl"], ["fork.jsonl"]]


def test_small_sessions_share_a_work_unless_they_go_on_with_a_known_one() -> None:
    known = make_found("known.jsonl", 100)
    looks = [
        make_found(f"p/{SESSION}.jsonl", 100),
        make_found("large.jsonl", SHARED_BYTES + 1),
        NextLook(known.file, Place(offset=10)),
        make_found("notes.jsonl", 5),
        make_found("agent-x.jsonl", SHARED_BYTES - 105),
        make_found("next.jsonl", 1),
    ]
    assert name_works(looks) == [
        [f"{SESSION}.jsonl", "notes.jsonl", "agent-x.jsonl"],
        ["large.jsonl"],
        ["known.jsonl"],
        ["next.jsonl"],
    ]


def test_merged_pieces_add_up() -> None:
    problem = LineProblem("a", 1, "broken")
    first = Prepared("a", (), 2, (problem,), {"too long": 1}, {"jwt": 2})
    assert merge_prepared([first, Prepared("b", (), 3, (), {"too long": 2}), first]) == Prepared(
        "a", (), 7, (problem, problem), {"too long": 4}, {"jwt": 4}
    )


@given(
    st.lists(st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"") + b"\n"), max_size=30).map(b"".join),
    st.lists(st.integers(1, 50), max_size=20),
)
def test_stream_is_cut_into_the_same_lines_wherever_chunks_end(data: bytes, sizes: list[int]) -> None:
    def chop() -> Iterable[bytes]:
        at = 0
        for size in sizes:
            yield data[at : at + size]
            at += size
        yield data[at:]

    pieces = list(cut_stream(chop(), "-"))
    assert all(isinstance(piece, Piece) for piece in pieces)
    assert b"".join(piece.data for piece in pieces if isinstance(piece, Piece)) == data


def test_stream_pieces_are_numbered_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.ingest.stream_pieces.PIECE_BYTES", 10)
    pieces = list(cut_stream([b"12345\n12345\n", b"1\n12345", b"678\n9\n"], "-"))
    told = [(piece.first_line_number, piece.data) for piece in pieces if isinstance(piece, Piece)]
    assert told == [(1, b"12345\n12345\n"), (3, b"1\n12345678\n"), (5, b"9\n")]


def test_stream_of_short_lines_is_cut_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.ingest.stream_pieces.PIECE_LINES", 2)
    pieces = list(cut_stream([b"1\n2\n3\n", b"4\n5\n"], "-"))
    told = [(piece.first_line_number, piece.data) for piece in pieces if isinstance(piece, Piece)]
    assert told == [(1, b"1\n2\n"), (3, b"3\n4\n"), (5, b"5\n")]


def test_processes_decode_as_this_one_does(tmp_path: Path) -> None:
    write_family(tmp_path, 3, 1)
    works = group_looks(NextLook(file, Place()) for file in find_paths([str(tmp_path)]).files.values())
    rules = replace(RULES, lines_policy=Policy())
    with Decoders(rules, processes=0) as here, Decoders(rules, processes=2) as there:
        asked = [there.read_on(work) for work in works]
        assert [underway.wait() for underway in asked] == [here.read_on(work).wait() for work in works]


def test_file_that_goes_away_is_told_and_the_rest_is_read(home: Path) -> None:
    looks = tuple(NextLook(file, Place()) for file in find_paths([str(home)]).files.values())
    (home / "projects" / "-home-dev-app" / SESSION / "subagents" / "agent-abc.jsonl").unlink()
    with Decoders(RULES, processes=0) as decoders:
        decoded = decoders.read_on(looks).wait()
    refusals = [look.refusal for look in decoded.looks if look.refusal]
    assert len(refusals) == 1
    assert refusals[0].endswith("agent-abc.jsonl: No such file or directory.")
    assert decoded.prepared.line_count == 3


# What it says


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "told"),
    [
        (Terminal(), "\r[############............] 1 of 2 files, 50 of 100 MB, 10 MB/s, 5 s left\x1b[K\r\x1b[K"),
        (io.StringIO(), "1 of 2 files, 50 of 100 MB, 10 MB/s, 5 s left\n"),
    ],
    ids=["terminal", "pipe"],
)
def test_progress_says_how_far_and_how_long(out: io.StringIO, told: str) -> None:
    now = [0.0]
    progress = Progress(out, 2, 100_000_000, clock=lambda: now[0])
    progress.add(files=1)
    now[0] = 5.0
    progress.add(size_bytes=50_000_000)
    progress.close()
    assert out.getvalue() == told


def test_progress_of_a_pipe_knows_no_end() -> None:
    now = [0.0]
    progress = Progress(None, 0, 0, clock=lambda: now[0])
    now[0] = 2.0
    progress.add(size_bytes=30_000_000)
    assert progress.describe() == "30 MB, 15 MB/s"


@pytest.mark.parametrize(
    ("seconds", "told"), [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "1 h 00 min"), (7500, "2 h 05 min")]
)
def test_durations_read_well(seconds: float, told: str) -> None:
    assert format_seconds(seconds) == told


def test_summary_counts_every_loss() -> None:
    tally = Tally(is_interrupted=True, line_count=1)
    tally.redactions.update({"jwt": 2})
    tally.drops.update({"line without a session": 3})
    tally.cut_files.append("a.jsonl")
    lines = list(tally.describe())
    assert lines[0] == "Stopped. Data imported so far is kept; run the same command again to import the rest."
    assert "0 new sessions, 0 changed, 0 new calls, 0 new cache breaks." in lines
    assert "2 secrets redacted: jwt 2." in lines
    assert "Dropped: 3 x line without a session." in lines
    assert "a.jsonl ends in an incomplete line; the rest is imported once it is complete." in lines
