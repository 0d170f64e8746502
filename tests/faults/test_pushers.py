"""A laptop's pusher and its server, both killed again and again while sessions are being written."""

import http.client
import json
import random
import subprocess
import sys
import time
from pathlib import Path

from tests.dashboard.running import run_plimsoll, wait_until
from tests.faults.growing_sessions import SESSIONS, TURNS, append, describe, make_sessions, take_in_once
from tests.faults.installation import Installation
from tests.services import free_port

KILLS = 4


def test_killed_on_both_sides_while_sessions_grow(
    installation: Installation, migrated_folder: Path, tmp_path: Path
) -> None:
    """At the end every row is as if each file had been taken in once, in one piece, on the server itself."""
    chance = random.Random(11)
    port, key = free_port(), _make_key(installation)
    root = tmp_path / "projects"
    files = {root / name: data for name, data in make_sessions(chance).items()}
    web, pusher = _start_web(installation, port), _start_pusher(installation, port, key, root)
    for part in range(KILLS):
        for path, data in files.items():
            append(path, data[len(data) * part // (KILLS + 1) : len(data) * (part + 1) // (KILLS + 1)])
        wait_until(lambda: _serves(port), seconds=60, what="the server")
        time.sleep(chance.uniform(0.2, 1.0))
        if part % 2:
            web.kill()
            web.wait()
            web = _start_web(installation, port)
        if part % 3 != 1:
            pusher.kill()
            pusher.wait()
            pusher = _start_pusher(installation, port, key, root)
    for path, data in files.items():
        append(path, data[len(data) * KILLS // (KILLS + 1) :])
    wait_until(lambda: _serves(port), seconds=60, what="the server")
    pusher.terminate()
    assert pusher.wait(10) == 0
    assert _start_pusher(installation, port, key, root, "--once").wait(60) == 0
    reference = take_in_once(migrated_folder, tmp_path / "reference", root)
    assert _as_followed(describe(installation)) == reference
    assert len(reference["ApiCall"]) == (SESSIONS + 1) * TURNS


def _as_followed(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """The way in is the one thing that differs."""
    push, follow = (json.dumps({"sources": [name]})[1:-1] for name in ("push", "follow"))
    return {name: sorted(row.replace(push, follow) for row in each) for name, each in rows.items()}


def _make_key(installation: Installation) -> str:
    settings = installation.database.settings
    run_plimsoll(installation.folder, "signinlink", **settings)  # makes the local team
    key = run_plimsoll(installation.folder, "createkey", "--name", "laptop", "--scope", "ingest", **settings)
    assert key.returncode == 0, key.stderr
    return key.stdout.strip().splitlines()[-1]


def _start_web(installation: Installation, port: int) -> "subprocess.Popen[bytes]":
    return installation.start("web", PLIMSOLL_PORT=str(port))


def _start_pusher(installation: Installation, port: int, key: str, root: Path, *more: str) -> "subprocess.Popen[bytes]":
    environment = installation.environment(
        PLIMSOLL_KEY=key, PLIMSOLL_CLIENT_FOLDER=str(installation.folder / "client"), DJANGO_SETTINGS_MODULE=""
    )
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-P", "-m", "dashboard.console", "watch", "--server", url, "--root", str(root), *more]
    with (installation.folder / "pusher.log").open("ab") as log:
        process = subprocess.Popen(command, env=environment, cwd=installation.folder, stdout=log, stderr=log)
    installation.tend(process)
    return process


def _serves(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health/live")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
