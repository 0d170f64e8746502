"""A damaged SQLite file: the start is refused with the way back, a running server answers 503 and says why."""

import os
import shutil
import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dashboard import sqlite_damage
from dashboard.health import Check, _check_database
from dashboard.sqlite_damage import DAMAGED, is_damage, was_damage_found
from tests.dashboard.running import Running, run_plimsoll, running_plimsoll, wait_until
from tests.live_load import request, sign_in
from tests.services import free_port

PAGE_BYTES = 4096


def overwrite_middle(file: Path) -> None:
    size = file.stat().st_size
    with file.open("r+b") as opened:
        opened.seek(PAGE_BYTES * 2)
        opened.write(b"\xff" * (size - PAGE_BYTES * 4))


def cut_in_half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def overwrite_header(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.write(b"not a database" * 10)


DAMAGES = [overwrite_middle, cut_in_half, overwrite_header]


@pytest.mark.parametrize(("command", "damage"), [("web", overwrite_middle), *(("up", damage) for damage in DAMAGES)])
def test_start_is_refused_with_the_command_that_restores(
    prepared: Path, command: str, damage: Callable[[Path], None]
) -> None:
    backup = prepared / "data" / "backups" / "plimsoll-2026-11-17.sqlite3"
    backup.parent.mkdir()
    shutil.copy(prepared / "data" / "plimsoll.sqlite3", backup)
    damage(prepared / "data" / "plimsoll.sqlite3")
    done = run_plimsoll(prepared, command, PLIMSOLL_PORT=str(free_port()))
    assert done.returncode == 1
    assert "is damaged" in done.stderr
    assert f"`plimsoll restore {backup}`" in done.stderr
    assert "Traceback" not in done.stderr
    restored = run_plimsoll(prepared, "restore", str(backup))
    assert restored.returncode == 0, restored.stderr
    assert run_plimsoll(prepared, "signinlink").returncode == 0


def test_commands_name_the_damage(prepared: Path) -> None:
    overwrite_header(prepared / "data" / "plimsoll.sqlite3")
    done = run_plimsoll(prepared, "signinlink")
    assert done.returncode == 1
    assert "is damaged" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("damage", DAMAGES)
def test_running_server_answers_503(prepared: Path, damage: Callable[[Path], None]) -> None:
    scopes = ("--scope", "ingest", "--scope", "read")
    link = run_plimsoll(prepared, "signinlink").stdout.split()[-1]
    key = run_plimsoll(prepared, "createkey", "--name", "sender", *scopes).stdout.split()[-1]
    with running_plimsoll(prepared) as running:
        cookie = sign_in(running.port, link).cookie
        damage_and_restart_web(running, damage)
        bearer = f"Bearer {key}"
        answers = {
            "readiness": request(running.port, "/health/ready"),
            "page": request(running.port, "/sessions/", Cookie=cookie),
            "API": request(running.port, "/api/v1/sessions", Authorization=bearer),
            "ingest": post(running, "/api/v1/ingest/transcripts?session=s", b"{}\n", bearer),
            "OTLP": post(running, "/v1/logs", b'{"resourceLogs": []}', bearer),
        }
        assert {name: status for name, (status, _, _) in answers.items()} == dict.fromkeys(answers, 503)
        assert not [name for name, (_, headers, _) in answers.items() if "retry-after" not in dict(headers)]
        bodies = {name: body.decode() for name, (_, _, body) in answers.items()}
        assert "damaged; restore a backup" in bodies.pop("readiness")
        for name in ("ingest", "OTLP"):  # refused before the body is read, while keys cannot be checked
            assert "Keys cannot be checked" in bodies.pop(name)
        assert not [name for name, body in bodies.items() if DAMAGED not in body]
        assert request(running.port, "/health/live")[0] == 200


def test_damage_that_one_request_met_makes_the_process_unready(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later queries may touch sound pages only."""
    monkeypatch.setattr(sqlite_damage, "_damage_found", threading.Event())
    error = sqlite3.DatabaseError("database disk image is malformed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    assert not was_damage_found()
    assert is_damage(error)
    assert _check_database() == Check("database", is_ok=False, finding="damaged; restore a backup")


def post(running: Running, path: str, body: bytes, bearer: str) -> tuple[int, list[tuple[str, str]], bytes]:
    headers = {"Authorization": bearer, "Content-Type": "application/json"}
    return request(running.port, path, method="POST", body=body, **headers)


def damage_and_restart_web(running: Running, damage: Callable[[Path], None]) -> None:
    """The processes that would write meanwhile are stopped; a new web process has nothing of the file in memory."""
    file = running.folder / "data" / "plimsoll.sqlite3"
    (old,) = running.children("web")
    os.kill(running.process.pid, signal.SIGSTOP)
    for pid in running.children():
        os.kill(pid, signal.SIGKILL)
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    damage(file)
    os.kill(running.process.pid, signal.SIGCONT)
    wait_until(lambda: old not in running.children("web") and running.serves(), seconds=30, what="a new web process")
