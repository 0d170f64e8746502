"""`plimsoll up` with real processes: started, killed, stopped, refused."""

import json
import os
import re
import signal
import socket
import sqlite3
import stat
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from dashboard.children import LONGEST_BACKOFF_SECONDS, Child, ChildSpec, describe_exit
from dashboard.data_folder import DataFolderInUse, hold_data_folder
from tests.dashboard.running import Running, is_running, run_plimsoll, running_plimsoll, wait_until
from tests.services import free_port


def test_up_serves_prints_a_sign_in_link_and_stops(tmp_path: Path) -> None:
    with running_plimsoll(tmp_path) as up:
        status, page = up.get("/sign-in/")
        assert status == 200, up.output
        assert b"Plimsoll" in page
        link = re.search(rf"http://127\.0\.0\.1:{up.port}(/sign-in/link/pls_[\w-]+/)", up.output)
        assert link, up.output
        assert up.get(link[1])[0] == 200
        assert str(tmp_path / "data") in up.output
        assert up.stop() < 15  # ten on a quiet machine; other tests run beside this one
        assert up.process.returncode == 0
        assert "Plimsoll has stopped." in up.output
        logged = up.output.split("web 1 started")[1]
        assert "/sign-in/link/pls_***/" in logged
        assert link[1] not in logged


def test_first_run_keeps_everything_private(tmp_path: Path) -> None:
    with running_plimsoll(tmp_path):
        data = tmp_path / "data"
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        for name in ("secret_key", "plimsoll.sqlite3", "in_use.lock"):
            assert stat.S_IMODE((data / name).stat().st_mode) == 0o600, name


def test_killed_web_process_is_replaced_and_no_connection_is_refused(prepared: Path) -> None:
    with running_plimsoll(prepared) as up:
        (web,) = up.children("web")
        os.kill(web, signal.SIGKILL)
        # Connects while nobody accepts: the supervisor's socket keeps the place in the queue.
        assert up.get("/health/live")[0] == 200
        (successor,) = up.children("web")
        assert successor != web
        assert "web 1 ended: SIGKILL" in up.output
        assert "web 1 restarts in 0.5 s" in up.output


def test_killed_supervisor_leaves_no_orphan_and_frees_port_and_folder(prepared: Path) -> None:
    with running_plimsoll(prepared, PLIMSOLL_WEB_PROCESSES="2") as up:
        children = up.children()
        assert [len(up.children(command)) for command in ("web", "worker", "sweeper")] == [2, 1, 1]
        up.process.kill()
        up.process.wait()
        wait_until(lambda: not any(map(is_running, children)), seconds=12, what="the children's end")
        with hold_data_folder(prepared / "data"), socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", up.port))


def test_follower_runs_where_there_is_something_to_follow(prepared: Path) -> None:
    with running_plimsoll(prepared) as up:
        assert up.children("follow") == []
    line = b'{"type":"user","uuid":"u1","sessionId":"s1","message":{"role":"user","content":"hello"}}\n'
    (prepared / "root").mkdir()
    with running_plimsoll(prepared, PLIMSOLL_FOLLOW=str(prepared / "root")) as up:
        (follower,) = up.children("follow")
        wait_until(lambda: _checks(up).get("follower", {}).get("ok") is True, seconds=30, what="the follower's beat")
        (prepared / "root" / "a.jsonl").write_bytes(line)
        wait_until(lambda: _session_count(prepared) == 1, seconds=30, what="the session")
        os.kill(follower, signal.SIGKILL)
        wait_until(lambda: up.children("follow") not in ([], [follower]), seconds=30, what="its successor")
        assert up.stop() < 15  # ten on a quiet machine; other tests run beside this one
        assert "is killed" not in up.output


def _checks(up: Running) -> dict[str, dict[str, object]]:
    checks: dict[str, dict[str, object]] = json.loads(up.get("/health/ready")[1])["checks"]
    return checks


def _session_count(folder: Path) -> int:
    with closing(sqlite3.connect(folder / "data" / "plimsoll.sqlite3")) as connection:
        return int(connection.execute("SELECT count(*) FROM dashboard_agentsession").fetchone()[0])


def test_request_in_flight_is_answered_after_sigterm(prepared: Path) -> None:
    with running_plimsoll(prepared) as up, socket.create_connection(("127.0.0.1", up.port), timeout=20) as client:
        head = f"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1:{up.port}\r\nContent-Length: 20\r\n"
        client.sendall(f"{head}Content-Type: application/x-www-form-urlencoded\r\n\r\nusername=a".encode())
        time.sleep(0.5)
        took: list[float] = []
        stopping = threading.Thread(target=lambda: took.append(up.stop()))
        stopping.start()
        time.sleep(1.5)
        client.sendall(b"&password=")
        assert client.recv(12).startswith(b"HTTP/1.1 ")
        stopping.join()
        assert took[0] < 15  # ten on a quiet machine; other tests run beside this one
        assert "is killed" not in up.output


def test_request_that_never_ends_is_cut_within_ten_seconds(prepared: Path) -> None:
    with running_plimsoll(prepared) as up, socket.create_connection(("127.0.0.1", up.port)) as client:
        client.sendall(f"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1:{up.port}\r\nContent-Length: 20\r\n\r\n".encode())
        time.sleep(0.3)
        children = up.children()
        assert up.stop() < 15  # ten on a quiet machine; other tests run beside this one
        assert not any(map(is_running, children))


def test_second_signal_stops_at_once(prepared: Path) -> None:
    with running_plimsoll(prepared) as up, socket.create_connection(("127.0.0.1", up.port)) as client:
        client.sendall(f"POST /sign-in/ HTTP/1.1\r\nHost: 127.0.0.1:{up.port}\r\nContent-Length: 20\r\n\r\n".encode())
        time.sleep(0.3)
        up.process.send_signal(signal.SIGINT)
        wait_until(lambda: "stopping: requests in flight" in up.output, seconds=3, what="the word that it stops")
        up.process.send_signal(signal.SIGINT)
        up.process.wait(8)  # ten without the second signal
        assert "web 1 is killed" in up.output


def test_taken_port_is_said_with_a_free_one(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = run_plimsoll(tmp_path, "up", PLIMSOLL_PORT=str(port))
    assert done.returncode == 1
    assert f"Port {port} on 127.0.0.1 is in use" in done.stderr
    assert re.search(r"PLIMSOLL_PORT=\d+ plimsoll up", done.stderr)
    assert "Traceback" not in done.stderr


def test_taken_data_folder_is_said_with_the_process(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    with hold_data_folder(tmp_path / "data"):
        done = run_plimsoll(tmp_path, "up", PLIMSOLL_PORT=str(free_port()))
    assert done.returncode == 1
    assert f"in use by another Plimsoll (process {os.getpid()})" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["up", "web"])
def test_other_bind_without_a_password_is_refused(tmp_path: Path, command: str) -> None:
    outside = {"PLIMSOLL_HOST": "0.0.0.0", "PLIMSOLL_PUBLIC_URL": "https://plimsoll.example"}
    assert run_plimsoll(tmp_path, "migrate", **outside).returncode == 0
    done = run_plimsoll(tmp_path, command, PLIMSOLL_PORT=str(free_port()), **outside)
    assert done.returncode == 1
    assert "plimsoll createowner NAME" in done.stderr
    assert "plimsoll resetpassword NAME" in done.stderr


def test_other_bind_starts_once_an_owner_has_a_password(tmp_path: Path) -> None:
    outside = {"PLIMSOLL_HOST": "0.0.0.0", "PLIMSOLL_PUBLIC_URL": "http://127.0.0.1"}
    made = run_plimsoll(tmp_path, "createowner", "alice", typed="a long walk home\n", **outside)
    assert made.returncode == 0, made.stderr
    with running_plimsoll(tmp_path, **outside) as up:
        assert up.get("/sign-in/")[0] == 200
        assert "pls_" not in up.output


def test_server_without_an_account_is_told_how_to_make_one(prepared: Path) -> None:
    with running_plimsoll(prepared, PLIMSOLL_PUBLIC_URL="https://plimsoll.example") as up:
        assert "No account yet. Create one with: plimsoll createowner NAME" in up.output


def test_web_runs_alone_and_shares_the_folder_with_its_like(prepared: Path) -> None:
    with running_plimsoll(prepared, "web") as first:
        assert first.get("/sign-in/")[0] == 200
        with running_plimsoll(prepared, "web") as second:
            assert second.get("/sign-in/")[0] == 200
        with pytest.raises(DataFolderInUse), hold_data_folder(prepared / "data"):
            pass
        assert first.stop() < 15  # ten on a quiet machine; other tests run beside this one


def test_unreadable_database_is_a_sentence(tmp_path: Path) -> None:
    done = run_plimsoll(
        tmp_path, "up", PLIMSOLL_PORT=str(free_port()), DATABASE_URL="postgresql://nobody:x@127.0.0.1:1/none"
    )
    assert done.returncode == 1
    assert "The database is unreachable" in done.stderr
    assert "Traceback" not in done.stderr


def test_backoff_doubles_to_half_a_minute_and_heals(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("dashboard.children.time.monotonic", lambda: now)
    child = Child(ChildSpec("web 1", ("web",)), alive_fd=0, socket_fd=0)
    child.started_at = now
    waits = []
    for _ in range(8):
        child.plan_restart()
        assert child.start_at is not None
        waits.append(child.start_at - now)
    assert waits == [0.5, 1, 2, 4, 8, 16, LONGEST_BACKOFF_SECONDS, LONGEST_BACKOFF_SECONDS]
    now += 61
    child.plan_restart()
    assert child.start_at == now + 0.5


def test_exit_is_named() -> None:
    assert describe_exit(3) == "exit code 3"
    assert describe_exit(-9) == "SIGKILL"
    assert describe_exit(-123) == "signal 123"


def test_child_does_not_import_from_where_the_person_stands(prepared: Path) -> None:
    (prepared / "dashboard").mkdir()
    (prepared / "dashboard" / "__init__.py").write_text("raise SystemExit('imported from the wrong place')\n")
    with running_plimsoll(prepared) as up:
        assert up.get("/health/live")[0] == 200
