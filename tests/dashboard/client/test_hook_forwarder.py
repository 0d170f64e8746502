"""`plimsoll hook`: nothing is lost while the server is away, nothing is sent twice, and the client never notices."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.client import spool, spool_sender
from dashboard.client.client_folder import read_connection
from dashboard.client.hook_forwarder import EVENTS, pick_fields
from dashboard.client.spool import LARGEST_EVENT_BYTES, TooLarge, count_dropped, list_events, put_event
from dashboard.client.spool_sender import DROPPED_HEADER, send_waiting
from tests.dashboard.running import environment_for, wait_until

CONSOLE = [sys.executable, "-P", "-m", "dashboard.console"]
STOP = {"session_id": "s1", "hook_event_name": "Stop", "last_assistant_message": "private words"}


class Listener:
    """A server that notes what it is sent and answers with `status`."""

    def __init__(self) -> None:
        self.status = 204
        self.events: list[dict[str, object]] = []
        self.headers: list[dict[str, str]] = []
        self.requests = 0
        self.delay_seconds = 0.0
        listener = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                listener.requests += 1
                time.sleep(listener.delay_seconds)
                if listener.status < 300:
                    listener.events += [json.loads(line) | {"path": self.path} for line in body.splitlines()]
                    listener.headers.append(dict(self.headers))
                self.send_response(listener.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    made.thread.start()
    yield made
    made.server.shutdown()
    made.thread.join()
    made.server.server_close()


@pytest.fixture
def folder(tmp_path: Path, listener: Listener, monkeypatch: pytest.MonkeyPatch) -> str:
    """A client's folder that is connected with the listener."""
    for name in ("PLIMSOLL_URL", "PLIMSOLL_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(spool_sender, "WAITS_SECONDS", ())
    connect(tmp_path, listener.url)
    return str(tmp_path)


def connect(folder: Path, url: str) -> None:
    (folder / "connection.json").write_text(json.dumps({"url": url, "key": "plk_secret"}))


def run_hook(folder: str, data: bytes, command: str = "hook") -> "subprocess.CompletedProcess[bytes]":
    environment = environment_for(Path(folder), PLIMSOLL_CLIENT_FOLDER=folder)
    return subprocess.run(
        [*CONSOLE, command], env=environment, input=data, capture_output=True, timeout=30, check=False
    )


def put(folder: str, *numbers: int) -> None:
    for number in numbers:
        put_event(folder, f"{number:020d}-1.hooks", json.dumps(STOP | {"number": number}).encode())


def test_hook_reaches_the_server_with_nothing_it_does_not_need(folder: str, listener: Listener) -> None:
    done = run_hook(folder, json.dumps(STOP).encode())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    wait_until(lambda: len(listener.events) == 1, seconds=20, what="the event")
    (event,) = listener.events
    assert (event["path"], event["session_id"]) == ("/api/v1/ingest/hooks", "s1")
    assert "private words" not in json.dumps(event)
    assert listener.headers[0]["Authorization"] == "Bearer plk_secret"
    wait_until(lambda: not list_events(folder), seconds=20, what="an empty spool")


def test_events_wait_on_disk_until_the_server_is_back_and_arrive_once(folder: str, listener: Listener) -> None:
    connect(Path(folder), "http://127.0.0.1:9")  # nobody listens there
    put(folder, 1, 2)
    send_waiting(folder)
    assert len(list_events(folder)) == 2
    assert "not sent" in Path(folder, "problems.log").read_text()
    connect(Path(folder), listener.url)
    put(folder, 3)
    send_waiting(folder)
    assert [event["number"] for event in listener.events] == [1, 2, 3]
    send_waiting(folder)
    assert (listener.requests, list_events(folder)) == (1, [])
    for path in Path(folder).rglob("*"):
        wanted = 0o700 if path.is_dir() else 0o600
        if path.name != "connection.json":
            assert stat.S_IMODE(path.stat().st_mode) == wanted, path


@pytest.mark.parametrize("status", [401, 404, 429, 500, 503])
def test_refusal_for_now_keeps_the_events(folder: str, listener: Listener, status: int) -> None:
    listener.status = status
    put(folder, 1)
    send_waiting(folder)
    assert len(list_events(folder)) == 1
    listener.status = 204
    send_waiting(folder)
    assert [event["number"] for event in listener.events] == [1]


def test_refusal_for_good_drops_and_counts(folder: str, listener: Listener) -> None:
    listener.status = 422
    put(folder, 1)
    send_waiting(folder)
    assert (list_events(folder), count_dropped(folder)) == ([], 1)
    listener.status = 204
    put(folder, 2)
    send_waiting(folder)
    assert listener.headers[0][DROPPED_HEADER] == "1"
    assert count_dropped(folder) == 0


def test_killed_sender_loses_nothing(folder: str, listener: Listener) -> None:
    listener.delay_seconds = 30
    put(folder, 1, 2)
    code = "import sys; from dashboard.client.spool_sender import send_waiting; send_waiting(sys.argv[1])"
    sender = subprocess.Popen([sys.executable, "-P", "-c", code, folder])
    wait_until(lambda: listener.requests == 1, seconds=20, what="a request under way")
    send_waiting(folder)  # another holds the lock: not a second request
    assert listener.requests == 1
    sender.send_signal(signal.SIGKILL)
    sender.wait()
    listener.delay_seconds = 0
    listener.events.clear()
    send_waiting(folder)
    assert [event["number"] for event in listener.events] == [1, 2]


def test_spool_is_bounded_and_drops_the_oldest(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "LARGEST_COUNT", 5)
    monkeypatch.setattr(spool, "_SURELY_SMALL", 3)
    for number in range(8):
        put(folder, number)
        os.utime(list_events(folder)[-1].path, ns=(number, number))
    assert [json.loads(spool.read_event(event))["number"] for event in list_events(folder)] == [3, 4, 5, 6, 7]
    monkeypatch.setattr(spool, "LARGEST_SPOOL_BYTES", 150)
    put(folder, 9)
    assert sum(event.size_bytes for event in list_events(folder)) <= 150
    assert len(list_events(folder)) + count_dropped(folder) == 9
    with pytest.raises(TooLarge):
        put_event(folder, "1.hooks", b"x" * (LARGEST_EVENT_BYTES + 1))


def test_status_put_again_replaces_what_waits_but_not_what_is_being_sent(folder: str) -> None:
    put_event(folder, "a-1.status", b"{}")
    put_event(folder, "a-1.status", b'{"a":1}')
    (waiting,) = list_events(folder)
    taken = spool.take_event(waiting)
    put_event(folder, "a-1.status", b'{"a":2}')
    assert taken is not None
    assert spool.read_event(taken) == b'{"a":1}'
    spool.remove_event(taken)
    assert [spool.read_event(event) for event in list_events(folder)] == [b'{"a":2}']


def test_summary_too_large_to_keep_is_left_out(folder: str, listener: Listener) -> None:
    told = {"session_id": "s1", "hook_event_name": "PostCompact", "trigger": "auto", "compact_summary": "x" * 300_000}
    assert run_hook(folder, json.dumps(told).encode()).returncode == 0
    wait_until(lambda: len(listener.events) == 1, seconds=20, what="the event")
    assert (listener.events[0]["trigger"], "compact_summary" in listener.events[0]) == ("auto", False)


@pytest.mark.parametrize("command", ["hook", "statusline"])
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b"[" * 100_000, b'{"session_id":7}'])
def test_bad_input_ends_well_and_says_nothing(folder: str, command: str, data: bytes) -> None:
    done = run_hook(folder, data, command)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, b"", b"")


def test_hook_ends_well_where_nothing_can_be_written(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    environment = environment_for(
        tmp_path, PLIMSOLL_CLIENT_FOLDER=str(blocked / "x"), PLIMSOLL_URL="http://127.0.0.1:9"
    )
    environment["PLIMSOLL_KEY"] = "plk_x"
    done = subprocess.run(
        [*CONSOLE, "hook"], env=environment, input=json.dumps(STOP).encode(), capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_without_a_server_nothing_is_kept(tmp_path: Path) -> None:
    assert run_hook(str(tmp_path), json.dumps(STOP).encode()).returncode == 0
    assert not (tmp_path / "spool").exists()


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["session_id", "hook_event_name", "prompt", "tool_input", "trigger", "cwd"]),
        st.recursive(
            st.none() | st.integers() | st.text() | st.sampled_from(sorted(EVENTS)),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
            max_leaves=6,
        ),
    )
)
def test_whatever_a_hook_holds_only_named_fields_leave(told: dict[str, object]) -> None:
    kept = pick_fields(told)
    if kept is not None:
        assert kept.keys() <= told.keys() - {"prompt", "tool_input"}
        assert kept["hook_event_name"] in EVENTS


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
def test_any_connection_file_is_read_without_failing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "connection.json").write_bytes(data)
    assert read_connection(str(tmp_path)) is None


def test_programs_of_the_client_load_little(tmp_path: Path) -> None:
    code = """
import sys
from dashboard.client import hook_forwarder, statusline
heavy = {"django", "msgspec", "orjson", "http.client", "ssl", "dataclasses", "pathlib", "compaction", "subprocess"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
