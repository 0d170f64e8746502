"""S14: a PostgreSQL or Redis that accepts connections and never answers. Requests get 200 or 503 within seconds."""

import http.client
import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.dashboard.running import Running, environment_for, run_plimsoll, running_plimsoll, wait_until
from tests.faults.brokers import RedisBroker
from tests.faults.conftest import TEMPLATE
from tests.faults.databases import PostgresqlDatabase, database_url
from tests.faults.relay import Relay, relaying
from tests.live_load import Talker, sign_in
from tests.services import find_redis

ANSWER_SECONDS = 8.0  # promised are 5 on a quiet machine
RECOVERY_SECONDS = 10.0
CLIENT_PATIENCE_SECONDS = 60.0
CROWD = 80  # more than a web process has threads


@dataclass(frozen=True)
class Answer:
    status: int
    retry_after: str | None
    seconds: float
    body: bytes


@dataclass
class Site:
    """A running Plimsoll on PostgreSQL and Redis behind relays, with a signed-in person, a key and a stored session."""

    running: Running
    database: Relay
    broker: Relay
    cookie: str
    key: str
    session_pk: int

    def ask(self, path: str, headers: Mapping[str, str] | None = None, *, body: bytes | None = None) -> Answer:
        port = self.running.port
        with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=CLIENT_PATIENCE_SECONDS)) as connection:
            began = time.perf_counter()
            connection.request("GET" if body is None else "POST", path, body, headers or {})
            answer = connection.getresponse()
            head_seconds = time.perf_counter() - began
            is_stream = answer.headers["Content-Type"] == "text/event-stream"
            return Answer(
                answer.status, answer.headers["Retry-After"], head_seconds, b"" if is_stream else answer.read()
            )

    def kinds(self) -> dict[str, Callable[[], Answer]]:
        person = {"Cookie": self.cookie}
        program = {"Authorization": f"Bearer {self.key}"}
        sends = {**program, "Content-Type": "application/json"}
        lines = json.dumps({"type": "user", "uuid": "u", "message": {"role": "user", "content": "hello"}}).encode()
        return {
            "page": lambda: self.ask("/sessions/", person),
            "API": lambda: self.ask("/api/v1/sessions", program),
            "ingest": lambda: self.ask("/api/v1/ingest/transcripts?session=s", program, body=lines),
            "OTLP": lambda: self.ask("/v1/logs", sends, body=b'{"resourceLogs": []}'),
            "live stream": lambda: self.ask("/live/stream?since=", person),
            "live changes": lambda: self.ask("/live/changes?since=", person),
            "readiness": lambda: self.ask("/health/ready"),
        }

    def start_run(self) -> Answer:
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        return self.ask(f"/api/v1/sessions/{self.session_pk}/runs", headers, body=b"{}")

    def is_well(self) -> bool:
        return all(ask().status == 200 for ask in self.kinds().values())


@pytest.fixture
def site(shared_site: Site) -> Iterator[Site]:
    yield shared_site
    shared_site.database.resume()
    shared_site.broker.resume()
    wait_until(shared_site.is_well, seconds=RECOVERY_SECONDS, what="answers after the services are back")


@pytest.fixture(scope="module")
def shared_site(migrated_postgresql: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("silence")
    if find_redis() is None:
        pytest.skip("Redis is not installed")
    stored = PostgresqlDatabase(migrated_postgresql, f"plimsoll_{secrets.token_hex(6)}", template=TEMPLATE)
    redis = RedisBroker(folder)
    address = urlsplit(stored.settings["DATABASE_URL"])
    redis_address = urlsplit(redis.settings["PLIMSOLL_BROKER_URL"])
    assert address.port
    assert redis_address.port
    try:
        with relaying(address.port) as database, relaying(redis_address.port) as broker:
            settings = {
                "DATABASE_URL": address._replace(netloc=address.netloc.replace(str(address.port), str(database.port))),
                "PLIMSOLL_BROKER_URL": redis_address._replace(netloc=f"127.0.0.1:{broker.port}"),
            }
            urls = {name: parts.geturl() for name, parts in settings.items()}
            with running_plimsoll(folder, "up", PLIMSOLL_LOG_LEVEL="WARNING", **urls) as running:
                yield open_site(running, database, broker, urls, stored)
            print(running.output[-6000:])  # noqa: T201 (pytest shows it where a test failed)
    finally:
        stored.drop()
        redis.close()


def open_site(
    running: Running, database: Relay, broker: Relay, urls: dict[str, str], stored: PostgresqlDatabase
) -> Site:
    link = run_plimsoll(running.folder, "signinlink", **urls).stdout.split()[-1]
    scopes = [part for scope in ("ingest", "read", "compact") for part in ("--scope", scope)]
    key = run_plimsoll(running.folder, "createkey", "--name", "tester", *scopes, **urls).stdout.split()[-1]
    web = sign_in(running.port, link)
    Talker(running.port, key).go_on()
    ((session_pk,),) = stored.rows("SELECT id FROM dashboard_agentsession")
    site = Site(running, database, broker, web.cookie, key, session_pk)
    wait_until(site.is_well, seconds=30, what="an installation that answers everything with 200")
    return site


def ask_all(site: Site) -> dict[str, Answer]:
    kinds = site.kinds()
    with ThreadPoolExecutor(len(kinds)) as threads:
        asked = {name: threads.submit(ask) for name, ask in kinds.items()}
        return {name: answer.result() for name, answer in asked.items()}


def assert_refused_soon(answers: dict[str, Answer]) -> None:
    slow = {name: answer.seconds for name, answer in answers.items() if answer.seconds > ANSWER_SECONDS}
    assert not slow
    assert {name: answer.status for name, answer in answers.items()} == dict.fromkeys(answers, 503)
    assert not [name for name, answer in answers.items() if not answer.retry_after]


def test_silent_postgresql_is_answered_with_503_and_recovers(site: Site) -> None:
    site.database.silence()
    time.sleep(4)  # open pages remember for three seconds who is signed in
    assert_refused_soon(ask_all(site))  # over connections that were open
    assert_refused_soon(ask_all(site))  # over connections that cannot be opened
    site.database.resume()
    wait_until(site.is_well, seconds=RECOVERY_SECONDS, what="answers after PostgreSQL is back")


def test_probes_answer_while_more_pages_than_threads_wait_for_silent_postgresql(site: Site) -> None:
    site.database.silence()
    with ThreadPoolExecutor(CROWD) as threads:
        pages = [threads.submit(site.kinds()["page"]) for _ in range(CROWD)]
        time.sleep(1)  # by now every thread of the web process has a page
        assert site.ask("/health/live").status == 200
        answers = {"readiness": site.ask("/health/ready")}
        answers |= {f"page {number}": page.result() for number, page in enumerate(pages)}
    assert_refused_soon(answers)


def test_silent_redis_delays_no_request_and_the_run_is_performed(site: Site) -> None:
    site.broker.silence()
    started = site.start_run()
    answers = {"run": started, **ask_all(site)}
    assert {name: answer.status for name, answer in answers.items()} == {**dict.fromkeys(answers, 200), "run": 201}
    assert max(answer.seconds for answer in answers.values()) < ANSWER_SECONDS
    run_path = f"/api/v1/runs/{json.loads(started.body)['id']}"

    def is_performed() -> bool:
        run = site.ask(run_path, {"Authorization": f"Bearer {site.key}"})
        return run.status == 200 and json.loads(run.body)["state"] in ("done", "failed")

    wait_until(is_performed, seconds=30, what="a run that a worker found without being woken")


STATEMENTS = """
import django, sys, time
django.setup()
from django.db import OperationalError, connection
from dashboard.postgresql import bound_statements

if "bounded" in sys.argv:
    bound_statements()
try:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(3)")
except OperationalError as error:
    print("cancelled:", error)
with connection.cursor() as cursor:
    cursor.execute("SELECT 1")
    print("usable")
"""


@pytest.mark.parametrize("is_web", [True, False])
def test_long_statements_are_cancelled_in_web_processes_alone(
    migrated_postgresql: str, tmp_path: Path, *, is_web: bool
) -> None:
    settings = {
        "DATABASE_URL": database_url(migrated_postgresql, "postgres"),
        "PLIMSOLL_DATABASE_STATEMENT_SECONDS": "1",
        "DJANGO_SETTINGS_MODULE": "dashboard.settings",
    }
    command = [sys.executable, "-P", "-c", STATEMENTS, *(["bounded"] if is_web else [])]
    environment = environment_for(tmp_path, **settings)
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ("cancelled: canceling statement due to statement timeout" in done.stdout) == is_web
    assert "usable" in done.stdout
