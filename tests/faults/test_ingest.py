"""Telemetry under attack: web processes killed while transcripts arrive, many writers at once."""

import http.client
import json
import random
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from functools import partial

from tests.dashboard.ingest.conversation import make_conversation
from tests.dashboard.running import run_plimsoll, wait_until
from tests.faults.figures import IS_LONG
from tests.faults.installation import Installation
from tests.live_load import answers
from tests.services import free_port

KILLS = {"SQLite, files": 50 if IS_LONG else 12, "PostgreSQL, Redis": 50 if IS_LONG else 6}
WEBS = 3
SENDERS = 3
PAUSE_SECONDS = 0.05  # leaves the processor to the web processes that start again
WRITERS, READERS, SECONDS = 8, 2, 20 if IS_LONG else 4
MOST_SECONDS = 1.0  # 99 of 100 rounds


@dataclass
class Sender:
    """Sends one session after the other, a piece at a time, until each piece is acknowledged."""

    name: str
    key: str
    ports: list[int]
    stopping: threading.Event
    acknowledged: dict[str, int] = field(default_factory=dict)  # session -> lines
    refused: list[int] = field(default_factory=list)
    retries: int = 0

    def run(self) -> None:
        number = 0
        while not self.stopping.is_set():
            talk = make_conversation(f"{self.name}-{number}")
            lines = talk.data.splitlines(keepends=True)
            for start in range(0, len(lines), 5):
                piece = lines[start : start + 5]
                while not self._send(talk.session_id, b"".join(piece)):
                    self.retries += 1
                    if self.stopping.wait(0.05):
                        return
                self.acknowledged[talk.session_id] = self.acknowledged.get(talk.session_id, 0) + len(piece)
                time.sleep(PAUSE_SECONDS)
            number += 1

    def _send(self, session_id: str, data: bytes) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", random.choice(self.ports), timeout=20)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/x-ndjson"}
        try:
            connection.request("POST", f"/api/v1/ingest/transcripts?session={session_id}", data, headers)
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if status not in (200, 503):
            self.refused.append(status)
        return status == 200


def test_acknowledged_lines_survive_kills_of_web_processes(installation: Installation) -> None:
    key = _make_key(installation)
    ports = [free_port() for _ in range(WEBS)]
    webs = [installation.start_web(port) for port in ports]
    for port in ports:
        wait_until(partial(answers, port), seconds=60, what="the first answer")
    stopping = threading.Event()
    senders = [Sender(f"sender{number}", key, ports, stopping) for number in range(SENDERS)]
    threads = [threading.Thread(target=sender.run) for sender in senders]
    for thread in threads:
        thread.start()
    for kill in range(KILLS[installation.name]):
        place = kill % WEBS
        wait_until(partial(answers, ports[place]), seconds=60, what="a web process to kill")
        webs[place].kill()
        webs[place].wait()
        webs[place] = installation.start_web(ports[place])
    stopping.set()
    for thread in threads:
        thread.join()
    _check_nothing_missing(installation, senders)


def _check_nothing_missing(installation: Installation, senders: list[Sender]) -> None:
    assert not [status for sender in senders for status in sender.refused]
    assert sum(sender.retries for sender in senders), "no kill hit a request"
    acknowledged = {session: lines for sender in senders for session, lines in sender.acknowledged.items()}
    stored = dict(
        installation.database.rows(
            "SELECT s.external_id, SUM(g.entry_count) FROM dashboard_agentsession s "
            "JOIN dashboard_entrysegment g ON g.session_id = s.id GROUP BY s.external_id"
        )
    )
    missing = {session: lines for session, lines in acknowledged.items() if int(stored.get(session, 0)) < lines}
    assert not missing
    whole = len(make_conversation("whole").lines)
    finished = [session for session, lines in acknowledged.items() if lines == whole]
    assert all(int(stored[session]) == whole for session in finished), "a line was stored twice"
    calls = dict(installation.database.rows("SELECT session_id, COUNT(*) FROM dashboard_apicall GROUP BY session_id"))
    counts = dict(installation.database.rows("SELECT id, call_count FROM dashboard_agentsession"))
    assert {pk: calls.get(pk, 0) for pk in counts} == counts


def test_many_writers_and_readers_meet_no_lock(installation: Installation) -> None:
    def start(what: str, number: int) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "tests.faults.writer", what, f"{what}{number}", str(SECONDS)],
            env=installation.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )

    run_plimsoll(installation.folder, "signinlink", **installation.database.settings)  # makes the local team once
    processes = [start("write", number) for number in range(WRITERS)] + [
        start("read", number) for number in range(READERS)
    ]
    told = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    assert not [error for each in told for error in each["errors"]]
    took = sorted(seconds for each in told[:WRITERS] for seconds in each["took_seconds"])
    if IS_LONG:  # short runs stand beside other tests
        assert took[int(len(took) * 0.99)] <= MOST_SECONDS
    written = len(took)
    assert written > WRITERS
    assert installation.database.rows("SELECT COUNT(*) FROM dashboard_agentsession") == [(written,)]


def _make_key(installation: Installation) -> str:
    settings = installation.database.settings
    made = run_plimsoll(
        installation.folder, "createowner", "ann", typed="harbour-chart-12\nharbour-chart-12\n", **settings
    )
    assert made.returncode == 0, made.stderr
    key = run_plimsoll(installation.folder, "createkey", "--name", "sender", "--scope", "ingest", **settings)
    assert key.returncode == 0, key.stderr
    return key.stdout.strip().splitlines()[-1]
