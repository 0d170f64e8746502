"""R10: more telemetry than can be taken in is told to come again, at once and without growing; then all is well."""

import http.client
import sqlite3
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from tests.dashboard.ingest.conversation import make_conversation
from tests.dashboard.running import Running, run_plimsoll, running_plimsoll, wait_until

SENDING, REFUSED = 2, 40
REFUSED_WITHIN_SECONDS, GROWTH_BYTES, RECOVERY_SECONDS = 0.1, 100 * 2**20, 10
LARGE = b" " * (4 * 2**20)


@pytest.fixture
def web(prepared: Path) -> Iterator[Running]:
    with running_plimsoll(prepared, "web", PLIMSOLL_MAX_SENDING_IN_FLIGHT=str(SENDING)) as running:
        yield running


def _send(web: Running, body: bytes) -> tuple[int, str | None, float]:
    """Status, Retry-After, and seconds until the answer began. A server may answer before it has read all."""
    with closing(http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)) as connection:
        connection.putrequest("POST", "/v1/logs")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        began = time.perf_counter()
        connection.endheaders()
        answer = connection.getresponse() if len(body) > 1000 else _finish(connection, body)
        return answer.status, answer.headers["Retry-After"], time.perf_counter() - began


def _finish(connection: http.client.HTTPConnection, body: bytes) -> http.client.HTTPResponse:
    connection.send(body)
    return connection.getresponse()


def _send_transcript(web: Running, key: str, name: str) -> int:
    talk = make_conversation(name)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/x-ndjson"}
    with closing(http.client.HTTPConnection("127.0.0.1", web.port, timeout=60)) as connection:
        connection.request("POST", f"/api/v1/ingest/transcripts?session={talk.session_id}", talk.data, headers)
        return connection.getresponse().status


def _measure(web: Running) -> int:
    lines = Path(f"/proc/{web.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def test_senders_over_the_limit_are_refused_at_once_while_pages_are_served(web: Running) -> None:
    assert web.get("/sign-in/")[0] == 200
    assert _send(web, b"{}")[0] == 401  # let in; it has no key
    made = run_plimsoll(web.folder, "createowner", "ann", typed="harbour-chart-12\nharbour-chart-12\n")
    assert made.returncode == 0, made.stderr
    key = run_plimsoll(web.folder, "createkey", "--name", "sender", "--scope", "ingest").stdout.strip().splitlines()[-1]
    assert _send_transcript(web, key, "first") == 200
    database = sqlite3.connect(web.folder / "data" / "plimsoll.sqlite3", isolation_level=None)
    with closing(database), ThreadPoolExecutor(SENDING) as senders:
        database.execute("BEGIN IMMEDIATE")  # whoever writes waits
        sent = [senders.submit(_send_transcript, web, key, f"held-{number}") for number in range(SENDING)]
        wait_until(lambda: _send(web, b"{}")[0] == 503, seconds=5, what="a full house")
        before = _measure(web)
        answers = [_send(web, LARGE) for _ in range(REFUSED)]
        assert {answer[:2] for answer in answers} == {(503, "1")}
        assert statistics.median(seconds for _, _, seconds in answers) < REFUSED_WITHIN_SECONDS
        assert _measure(web) - before < GROWTH_BYTES
        assert web.get("/sign-in/")[0] == 200
        database.execute("ROLLBACK")
        wait_until(lambda: _send(web, b"{}")[0] == 401, seconds=RECOVERY_SECONDS, what="room for the next one")
        assert {sending.result() for sending in sent} <= {200, 503}
