"""A real import in processes of its own: killed, stopped, and two at once."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.corpus import Truth, write_family
from tests.dashboard.running import PLIMSOLL, environment_for, is_running, wait_until


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    """Sessions with sub-agents and forks, large enough that all cores decode and several batches are written."""
    folder = tmp_path_factory.mktemp("corpus")
    truth = Truth()
    for index in range(150):
        truth.add(write_family(folder, 5, index))
    return folder, truth


def start_import(folder: Path, corpus: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [*PLIMSOLL, "import", str(corpus), "--json"],
        env=environment_for(folder),
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def open_database(folder: Path) -> "contextlib.closing[sqlite3.Connection]":
    database = folder / "data" / "plimsoll.sqlite3"
    return contextlib.closing(sqlite3.connect(database, timeout=20, isolation_level=None))


def query(folder: Path, statement: str) -> tuple[Any, ...]:
    with open_database(folder) as reader:
        row: tuple[Any, ...] = reader.execute(statement).fetchone()
        return row


def count_sessions(folder: Path) -> int:
    return int(query(folder, "select count(*) from dashboard_agentsession")[0])


@contextlib.contextmanager
def import_held_midway(folder: Path, corpus: Path) -> "Iterator[subprocess.Popen[str]]":
    """An import that wrote some sessions and waits for the database to write the next, however fast it is."""
    process = start_import(folder, corpus)
    with open_database(folder) as writer:

        def hold() -> bool:
            assert process.poll() is None, "it ended before it could be held"
            writer.execute("begin immediate")
            if writer.execute("select count(*) from dashboard_agentsession").fetchone()[0]:
                return True
            writer.execute("rollback")
            return False

        wait_until(hold, seconds=60, what="the first session")
        yield process


def check_against_truth(folder: Path, truth: Truth) -> None:
    counted = query(
        folder,
        "select count(*), sum(input_tokens), sum(write_5m_tokens), sum(write_1h_tokens), sum(read_tokens), "
        "sum(output_tokens), sum(cost_usd) from dashboard_apicall where is_counted",
    )
    assert counted[:6] == tuple(truth.totals.values())
    assert counted[6] == pytest.approx(truth.cost_usd, abs=0.001)
    assert count_sessions(folder) == truth.sessions
    # A fork that repeats one has it too.
    once = "select count(distinct entry_uuid) from dashboard_observedcompaction where kind = 'full'"
    assert query(folder, once)[0] == truth.compactions


def list_family(pid: int) -> list[int]:
    done = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True, check=False)
    return [int(child) for child in done.stdout.split()]


def finish_import(folder: Path, corpus: Path) -> dict[str, Any]:
    process = start_import(folder, corpus)
    told, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    summary: dict[str, Any] = json.loads(told)
    return summary


def test_killed_import_run_again_gives_the_truth_and_leaves_no_process(
    corpus: tuple[Path, Truth], prepared: Path
) -> None:
    folder, truth = corpus
    with import_held_midway(prepared, folder) as process:
        children = list_family(process.pid)
        process.kill()
        process.communicate()
    wait_until(lambda: not any(map(is_running, children)), seconds=10, what="the end of the decoding processes")
    assert bool(children) == ((os.cpu_count() or 1) > 1)
    assert 0 < count_sessions(prepared) < truth.sessions
    finish_import(prepared, folder)
    check_against_truth(prepared, truth)
    assert finish_import(prepared, folder)["files_read"] == 0


def test_two_imports_at_once_give_the_truth(corpus: tuple[Path, Truth], prepared: Path) -> None:
    folder, truth = corpus
    processes = [start_import(prepared, folder) for _ in range(2)]
    told = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert sum(each["sessions_new"] for each in told) == truth.sessions
    check_against_truth(prepared, truth)


def test_interrupted_import_tells_what_it_kept_and_can_go_on(corpus: tuple[Path, Truth], prepared: Path) -> None:
    folder, truth = corpus
    with import_held_midway(prepared, folder) as process:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to everyone in the foreground
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    first = json.loads(told)
    assert first["interrupted"]
    assert 0 < first["sessions_new"] == count_sessions(prepared) < truth.sessions
    second = finish_import(prepared, folder)
    assert second["files_unchanged"] == first["files_read"] > 0
    check_against_truth(prepared, truth)
