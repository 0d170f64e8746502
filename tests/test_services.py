"""The services of a test run start, answer, and leave nothing behind."""

import socket
from collections.abc import Callable
from contextlib import AbstractContextManager
from urllib.parse import urlsplit

import psycopg
import pytest

from tests.services import ServiceFailed, find_postgresql, find_redis, started_postgresql, started_redis


class Interrupted(BaseException):
    """Stands for Ctrl-C in the middle of the tests."""


def _is_listening(url: str) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", urlsplit(url).port or 0)) == 0


def _stops_when_interrupted(start: Callable[[], AbstractContextManager[str]]) -> None:
    seen = []

    def run_tests() -> None:
        with start() as url:
            seen.append(url)
            assert _is_listening(url)
            raise Interrupted

    with pytest.raises(Interrupted):
        run_tests()
    assert not _is_listening(seen[0])


@pytest.mark.skipif(find_postgresql() is None, reason="PostgreSQL is not installed")
def test_postgresql_stops_when_the_tests_are_interrupted() -> None:
    _stops_when_interrupted(started_postgresql)


@pytest.mark.skipif(find_redis() is None, reason="Redis is not installed")
def test_redis_stops_when_the_tests_are_interrupted() -> None:
    _stops_when_interrupted(started_redis)


@pytest.mark.skipif(find_postgresql() is None, reason="PostgreSQL is not installed")
def test_postgresql_refuses_a_wrong_password() -> None:
    with started_postgresql() as url:
        parts = urlsplit(url)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(url.replace(parts.password or "", "wrong"))


def test_absent_service_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.services.find_redis", lambda: None)
    with pytest.raises(ServiceFailed, match="Redis is not installed"), started_redis():
        pass
