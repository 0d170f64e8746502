"""The two brokers a fault test can break: files in the data folder, and a Redis server of its own."""

import subprocess
from pathlib import Path
from typing import Protocol

import redis

from dashboard.celery import QUEUE
from tests.dashboard.running import wait_until
from tests.services import _answers_ping, find_redis, free_port


class Broker(Protocol):
    settings: dict[str, str]
    void: dict[str, str]  # settings of a sender whose messages nobody will ever see

    def waiting(self) -> int: ...
    def swallowed(self) -> int: ...
    def take_away(self) -> None: ...
    def bring_back(self) -> None: ...
    def close(self) -> None: ...


class FolderBroker:
    def __init__(self, data: Path) -> None:
        self.settings: dict[str, str] = {}
        self.void = {"PLIMSOLL_TEST_BROKER_FOLDER": "void"}
        self._data = data

    def waiting(self) -> int:
        return self._count("broker")

    def swallowed(self) -> int:
        return self._count("void")

    def _count(self, folder: str) -> int:
        return len(list((self._data / folder / "queue").glob("*.msg")))

    def take_away(self) -> None:
        """Renamed, because root may write where modes forbid it."""
        (self._data / "broker").rename(self._data / "away")

    def bring_back(self) -> None:
        (self._data / "away").rename(self._data / "broker")

    def close(self) -> None:
        """Goes with the test's folder."""


class RedisBroker:
    def __init__(self, folder: Path) -> None:
        self._folder, self._port = folder, free_port()
        self.settings = {"PLIMSOLL_BROKER_URL": f"redis://127.0.0.1:{self._port}/0"}
        self.void = {"PLIMSOLL_BROKER_URL": f"redis://127.0.0.1:{self._port}/1"}
        self.bring_back()

    def waiting(self) -> int:
        return self._count(0)

    def swallowed(self) -> int:
        return self._count(1)

    def _count(self, database: int) -> int:
        with redis.Redis(port=self._port, db=database) as client:
            return int(client.llen(QUEUE))

    def take_away(self) -> None:
        self._server.kill()
        self._server.wait()

    def bring_back(self) -> None:
        program = str(find_redis())
        options = ["--port", str(self._port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        quiet = subprocess.DEVNULL
        self._server = subprocess.Popen([program, *options], cwd=self._folder, stdout=quiet, stderr=quiet)
        wait_until(lambda: _answers_ping(self._port), seconds=20, what="an answer of Redis")

    def close(self) -> None:
        self.take_away()
