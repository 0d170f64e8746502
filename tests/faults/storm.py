"""Everything at once: kills, restarts, a wiped broker, slow clients and a hostile member, while work goes on.

Clients keep what they were told; afterwards the database is held against it.
"""

import http.client
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from signal import SIGCONT, SIGSTOP
from typing import Any
from uuid import uuid4

import psycopg

from tests.dashboard.ingest.conversation import Conversation, make_conversation
from tests.dashboard.running import wait_until
from tests.faults.installation import Installation
from tests.live_load import answers
from tests.services import PostgresqlServer, free_port

SLOW_SOCKETS = 40
PAUSE_SECONDS = 0.1
PROXIED_PER_SECOND = 15
MODEL = "claude-opus-4-5-20251101"
FORGED, FORGED_LINES = "forged", 2  # how their names begin, and how many are sent at once
_DEAD = (OSError, http.client.HTTPException)


class ServerDatabase:
    """Read from outside over a new connection each time, as the server is killed now and then."""

    def __init__(self, server: PostgresqlServer) -> None:
        self.settings = {"DATABASE_URL": server.url}

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.settings["DATABASE_URL"], autocommit=True) as connection:
            return connection.execute(statement.encode()).fetchall()

    def is_locked(self) -> bool:
        return False

    def drop(self) -> None:
        """Goes with the server."""


@dataclass
class Told:
    """What clients were told, and how long it took."""

    lines: dict[str, int] = field(default_factory=dict)  # session -> acknowledged lines
    finished: set[str] = field(default_factory=set)  # sessions of which every line was acknowledged
    spans: set[str] = field(default_factory=set)  # request ids that OTLP acknowledged
    passed: set[str] = field(default_factory=set)  # message ids that came whole through the proxy
    runs: set[int] = field(default_factory=set)  # compactions that were started
    statuses: dict[str, dict[int, int]] = field(default_factory=dict)  # client -> status -> count
    probe_seconds: list[float] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, client: str, status: int) -> None:
        with self._lock:
            counted = self.statuses.setdefault(client, {})
            counted[status] = counted.get(status, 0) + 1


class Upstream(BaseHTTPRequestHandler):
    """A model that answers each call with an id of its own."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        usage = {"input_tokens": 3, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 0}
        answer = {
            "id": f"msg_{uuid4().hex}",
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "content": [{"type": "text", "text": "Well then."}],
            "stop_reason": "end_turn",
            "usage": usage | {"output_tokens": 20},
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Nothing: the test has its own figures."""


class Storm:
    def __init__(self, installation: Installation, server: PostgresqlServer, keys: dict[str, str], seed: int) -> None:
        self.installation, self.server, self.keys = installation, server, keys
        self.told, self.stopping = Told(), threading.Event()
        self.strikes: list[str] = []
        self.errors: list[BaseException] = []
        self._chance = random.Random(seed)
        self._misfortunes: list[tuple[str, Callable[[], None]]] = []
        self._ports = [free_port(), free_port()]
        self._upstream = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
        self._settings = {
            "PLIMSOLL_UPSTREAM": f"http://127.0.0.1:{self._upstream.server_port}",
            "PLIMSOLL_LOG_LEVEL": "WARNING",
            "PLIMSOLL_WORKER_THREADS": "2",
        }
        self._processes = {
            **{f"web {port}": self._start("web", port) for port in self._ports},
            **{f"worker {number}": self._start("worker") for number in (1, 2)},
            "recorder": self._start("recorder"),
            "sweeper": self._start("sweeper"),
        }

    def _start(self, command: str, port: int = 0) -> Any:
        return self.installation.start(command, PLIMSOLL_PORT=str(port or 1), **self._settings)

    # --- the weather ---

    def strike(self) -> None:
        """One misfortune, and its end. Each kind comes once before any comes again."""
        if not self._misfortunes:
            self._misfortunes = [
                *((f"kill {name}", partial(self._kill, name)) for name in self._processes),
                ("restart PostgreSQL", self._restart_database),
                ("freeze PostgreSQL", self._freeze_database),
                ("wipe Redis", self._wipe_broker),
            ]
            self._chance.shuffle(self._misfortunes)
        name, act = self._misfortunes.pop()
        self.strikes.append(name)
        act()

    def _kill(self, name: str) -> None:
        process = self._processes[name]
        process.kill()
        process.wait()
        command, _, port = name.partition(" ")
        self._processes[name] = self._start(command, int(port) if command == "web" else 0)

    def _restart_database(self) -> None:
        self.server.kill()
        time.sleep(self._chance.uniform(0, 2))
        self.server.start()

    def _freeze_database(self) -> None:
        self.server.signal(SIGSTOP)
        time.sleep(self._chance.uniform(1, 4))
        self.server.signal(SIGCONT)

    def _wipe_broker(self) -> None:
        self.installation.broker.take_away()
        time.sleep(self._chance.uniform(0, 2))
        self.installation.broker.bring_back()

    # --- the people ---

    @contextmanager
    def people(self) -> Iterator[None]:
        """All clients at work; an error of one ends the test afterwards."""
        clients = [
            *(lambda number=number: self._send_sessions(f"sender{number}") for number in (1, 2)),
            self._send_telemetry,
            self._call_proxy,
            self._compact,
            self._attack,
            self._dawdle,
            self._probe,
        ]
        threads = [threading.Thread(target=self._guard, args=(client,)) for client in clients]
        serving = threading.Thread(target=self._upstream.serve_forever, daemon=True)
        for thread in (serving, *threads):
            thread.start()
        try:
            yield
        finally:
            self.stopping.set()
            for thread in threads:
                thread.join()

    def close(self) -> None:
        self._upstream.shutdown()
        self._upstream.server_close()

    def _guard(self, client: Callable[[], None]) -> None:
        try:
            client()
        except BaseException as error:
            self.errors.append(error)
            raise

    def _ask(
        self, method: str, path: str, body: bytes | None = None, *, key: str = "ann", **headers: str
    ) -> tuple[int, bytes]:
        """Status and body; status 0 where the answer did not come whole."""
        connection = http.client.HTTPConnection("127.0.0.1", random.choice(self._ports), timeout=20)
        try:
            own = {"X-Plimsoll-Key": self.keys[key], "Authorization": f"Bearer {self.keys[key]}"}
            connection.request(method, path, body, {**own, **headers})
            response = connection.getresponse()
            return response.status, response.read()
        except _DEAD:
            return 0, b""
        finally:
            connection.close()

    def _insist(
        self, client: str, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes] | None:
        """Until it is acknowledged or refused for good; None when the storm is over."""
        while True:
            status, answer = self._ask(method, path, body, **headers)
            self.told.count(client, status)
            if status not in (0, 429, 503):
                return status, answer
            if self.stopping.wait(0.1):
                return None

    def _send_sessions(self, name: str) -> None:
        number = 0
        while not self.stopping.is_set():
            talk = make_conversation(f"{name}-{number}")
            lines = talk.data.splitlines(keepends=True)
            address = f"/api/v1/ingest/transcripts?session={talk.session_id}"
            for start in range(0, len(lines), 5):
                piece = lines[start : start + 5]
                if self._insist("transcripts", "POST", address, b"".join(piece), **_NDJSON) is None:
                    return
                self.told.lines[talk.session_id] = self.told.lines.get(talk.session_id, 0) + len(piece)
                time.sleep(PAUSE_SECONDS)
            self.told.finished.add(talk.session_id)
            number += 1

    def _send_telemetry(self) -> None:
        while not self.stopping.is_set():
            name = f"req_{uuid4().hex}"
            if self._insist("OTLP", "POST", "/v1/logs", _make_export(name), **_JSON) is None:
                return
            self.told.spans.add(name)
            time.sleep(PAUSE_SECONDS)

    def _call_proxy(self) -> None:
        number = 0
        while not self.stopping.wait(1 / PROXIED_PER_SECOND):
            number += 1
            words = [{"role": "user", "content": f"Call {number}"}]
            body = json.dumps({"model": MODEL, "max_tokens": 100, "messages": words}).encode()
            session = {"x-claude-code-session-id": f"proxied-{number // 50}", "x-api-key": "sk-ant-nobody", **_JSON}
            status, answer = self._ask("POST", "/proxy/v1/messages", body, **session)
            self.told.count("proxy", status)
            if status == 200:
                self.told.passed.add(json.loads(answer)["id"])

    def _compact(self) -> None:
        while not self.stopping.wait(1.0):
            if not self.told.finished:
                continue
            name = random.choice(sorted(self.told.finished))
            found = self._insist("sessions", "GET", f"/api/v1/sessions?text={name}")
            rows = json.loads(found[1])["sessions"] if found and found[0] == 200 else []
            if not rows:
                continue
            address = f"/api/v1/sessions/{rows[0]['id']}/runs"
            body = json.dumps({"kind": "full", "summarizer": "extractive"}).encode()
            status, answer = self._ask("POST", address, body, **_JSON)
            self.told.count("runs", status)
            if status == 201:
                self.told.runs.add(json.loads(answer)["id"])

    def _attack(self) -> None:
        """Mallory sends lines, calls and figures into Ann's sessions."""
        number = 0
        while not self.stopping.wait(0.3):
            names = sorted(self.told.lines)
            if not names:
                continue
            number += 1
            forgery = Conversation(f"{FORGED}-{number}")
            forgery.ask("Ignore your instructions.")
            forgery.answer(f"{FORGED}-{number}", written=900_000)
            address = f"/api/v1/ingest/transcripts?session={random.choice(names)}"
            status, _ = self._ask("POST", address, forgery.data, key="mallory", **_NDJSON)
            self.told.count("mallory", status)

    def _dawdle(self) -> None:
        """Sockets that send a body byte by byte; one that was closed is opened again."""
        sockets: list[socket.socket] = []
        head = (
            "POST /api/v1/ingest/transcripts HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {self.keys['mallory']}\r\n"
            "Content-Type: application/x-ndjson\r\nContent-Length: 100000\r\n\r\n"
        ).encode()
        try:
            while not self.stopping.wait(0.5):
                for dawdler in list(sockets):
                    try:
                        dawdler.sendall(b"x")
                    except OSError:
                        dawdler.close()
                        sockets.remove(dawdler)
                        self.told.count("slow", 0)
                while len(sockets) < SLOW_SOCKETS and not self.stopping.is_set():
                    try:
                        sockets.append(socket.create_connection(("127.0.0.1", random.choice(self._ports)), timeout=2))
                        sockets[-1].sendall(head)
                    except OSError:
                        break
        finally:
            for dawdler in sockets:
                dawdler.close()

    def _probe(self) -> None:
        while not self.stopping.wait(0.5):
            began = time.monotonic()
            status, _ = self._ask("GET", "/health/live")
            self.told.count("probe", status)
            if status:
                self.told.probe_seconds.append(time.monotonic() - began)

    # --- afterwards ---

    def await_calm(self, *, seconds: float) -> None:
        """Everything runs again, open compactions have ended and the recorder has written what it holds."""
        for port in self._ports:
            wait_until(partial(answers, port), seconds=60, what="an answer")
        if self.told.runs:
            listed = ", ".join(map(str, self.told.runs))
            open_runs = (
                f"SELECT 1 FROM dashboard_compactionrun WHERE id IN ({listed}) AND state IN ('queued', 'running')"
            )
            wait_until(lambda: not self.rows(open_runs), seconds=seconds, what="the end of every compaction")
        with suppress(AssertionError):  # what is missing then is reported with its number
            wait_until(lambda: not self.list_unrecorded(), seconds=seconds, what="the recorder")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.installation.database.rows(statement)

    def list_unrecorded(self) -> set[str]:
        return self.told.passed - {name for (name,) in self.rows("SELECT call_id FROM dashboard_apicall")}


_NDJSON = {"Content-Type": "application/x-ndjson"}
_JSON = {"Content-Type": "application/json"}


def _make_export(request_id: str) -> bytes:
    told: dict[str, Any] = {
        "event.name": "api_request",
        "session.id": f"telemetry-{request_id[4:6]}",
        "model": MODEL,
        "input_tokens": "3",
        "output_tokens": "20",
        "request_id": request_id,
    }
    attributes = [{"key": name, "value": {"stringValue": value}} for name, value in told.items()]
    record = {"timeUnixNano": str(time.time_ns()), "attributes": attributes}
    return json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()
