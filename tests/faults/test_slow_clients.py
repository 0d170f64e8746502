"""S14: clients that send byte by byte, or not at all, take nothing away from others; a slow honest one is served."""

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.dashboard.running import PATIENCE, Running, run_plimsoll, running_plimsoll, wait_until
from tests.fakes.raw_upstream import RawUpstream

ANSWERED_WITHIN_SECONDS = 5.0
SETTLED_SECONDS = 4.0  # after that the sockets are slow, and whatever they hold they hold


@dataclass(frozen=True)
class Server:
    running: Running
    key: str
    upstream: RawUpstream

    @property
    def key_line(self) -> str:
        return f"Authorization: Bearer {self.key}\r\n"

    def ask(self, method: str, path: str, body: bytes | None = None) -> int:
        """The status of an answer that came in time."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"} if body else {}
        began = time.monotonic()
        with closing(http.client.HTTPConnection("127.0.0.1", self.running.port, timeout=60)) as connection:
            connection.request(method, path, body, headers)
            status = connection.getresponse().status
        assert time.monotonic() - began < ANSWERED_WITHIN_SECONDS, path
        return status

    def ask_all(self) -> dict[str, int]:
        return {
            "live": self.ask("GET", "/health/live"),
            "ready": self.ask("GET", "/health/ready"),
            "page": self.ask("GET", "/sign-in/"),
            "telemetry": self.ask("POST", "/v1/logs", b"{}"),
            "hooks": self.ask("POST", "/api/v1/ingest/hooks", b"{}"),
            "proxy": self.ask("POST", "/proxy/v1/messages", b"{}"),
        }


SERVED = {"live": 200, "ready": 200, "page": 200, "telemetry": 200, "hooks": 204, "proxy": 200}


@pytest.fixture(scope="module")
def server(migrated_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("slow-clients")
    with RawUpstream() as upstream, running_plimsoll(folder, "up", PLIMSOLL_UPSTREAM=upstream.url) as running:
        made = run_plimsoll(folder, "createkey", "--name", "sender", "--scope", "ingest")
        found = Server(running, made.stdout.strip().splitlines()[-1], upstream)
        wait_until(lambda: found.ask_all() == SERVED, seconds=40, what="a server that is ready")
        yield found


def write_head(path: str, fields: str = "", *, size: int = 100_000) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {size}\r\n{fields}\r\n"
    ).encode()


@dataclass
class Trickle:
    """Sockets that have sent a head, and one byte of a body every half second."""

    sockets: list[socket.socket]
    is_over: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.is_over.wait(0.5):
            for each in self.sockets:
                try:
                    each.send(b" ")
                except OSError:
                    continue  # closed by the server


@contextmanager
def trickling(server: Server, heads: list[bytes], count: int) -> Iterator[None]:
    trickle = Trickle([])
    for number in range(count):
        trickle.sockets.append(socket.create_connection(("127.0.0.1", server.running.port), timeout=10))
        trickle.sockets[-1].sendall(heads[number % len(heads)])
    thread = threading.Thread(target=trickle.run, daemon=True)
    thread.start()
    try:
        time.sleep(SETTLED_SECONDS)
        yield
    finally:
        trickle.is_over.set()
        thread.join(20)
        for each in trickle.sockets:
            each.close()


@pytest.mark.parametrize(
    ("paths", "count"),
    [
        (["/v1/logs"], 33),
        (["/v1/logs with key"], 33),
        (["/sign-in/"], 257),
        (["/sign-in/", "/v1/logs", "/v1/logs with key", "/api/v1/ingest/lines with key", "/health/ready"], 300),
        (["/proxy/v1/messages"], 520),
    ],
)
def test_trickling_bodies_take_nothing_from_others(server: Server, paths: list[str], count: int) -> None:
    named = [path.partition(" with ") for path in paths]
    heads = [write_head(path, server.key_line if with_key else "") for path, _, with_key in named]
    with trickling(server, heads, count):
        assert server.ask_all() == SERVED


def test_wrong_key_is_refused_before_its_body_arrives(server: Server) -> None:
    for path in ("/v1/logs", "/ingest/otlp/v1/logs", "/api/v1/ingest/lines", "/api/v1/ingest/hooks", "/api/v1/check"):
        for fields in ("", f"Authorization: Bearer plk_{'x' * 43}\r\n"):
            with socket.create_connection(("127.0.0.1", server.running.port), timeout=20) as connection:
                connection.sendall(write_head(path, fields))
                head, _, body = connection.recv(65536).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 401 "), path
            assert b"www-authenticate: Bearer" in head
            assert "key" in str(json.loads(body)).lower()


def read_until_closed(connection: socket.socket, seconds: float) -> tuple[bytes, float]:
    """What came, and after how long the other end closed."""
    began, received = time.monotonic(), b""
    connection.settimeout(seconds * PATIENCE)
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionError:
        pass
    return received, time.monotonic() - began


def test_half_heads_and_dead_bodies_are_closed(server: Server) -> None:
    half_head = socket.create_connection(("127.0.0.1", server.running.port))
    silent = socket.create_connection(("127.0.0.1", server.running.port))
    dead_body = socket.create_connection(("127.0.0.1", server.running.port))
    with half_head, silent, dead_body:
        half_head.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: ")
        dead_body.sendall(write_head("/v1/logs", server.key_line))
        assert read_until_closed(half_head, 12)[0].startswith(b"HTTP/1.1 408 ")
        assert read_until_closed(silent, 12)[0] == b""
        received, seconds = read_until_closed(dead_body, 45)
        assert received.startswith(b"HTTP/1.1 408 ")
        assert seconds > 10  # a pause is no reason to give up


def test_slow_honest_client_is_served(server: Server) -> None:
    body = b" " * (2**20 - 2) + b"{}"
    with socket.create_connection(("127.0.0.1", server.running.port), timeout=60) as connection:
        connection.sendall(write_head("/v1/logs", server.key_line, size=len(body)))
        for start in range(0, len(body), 5000):  # 50 kB a second
            connection.sendall(body[start : start + 5000])
            time.sleep(0.1)
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 ")
