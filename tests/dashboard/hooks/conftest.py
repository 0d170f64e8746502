"""A resolver that says what a test wants, a record of every connection, and a receiver on the loopback."""

import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import Settings

from dashboard.environment import PrivateNetworks, read_networks
from tests.fakes.raw_upstream import RawUpstream

_records: list[list[Any]] = []


def _note_connect(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect":
        for record in _records:
            record.append(arguments[1])


sys.addaudithook(_note_connect)  # there is no way to take one away: it notes only while somebody records


@pytest.fixture
def connects() -> Iterator[list[Any]]:
    """The addresses of all connections that anything in this process tries."""
    record: list[Any] = []
    _records.append(record)
    yield record
    _records.remove(record)


class Resolver:
    """Every name has these addresses; a list of lists is answered one after the other, the last one for good."""

    def __init__(self) -> None:
        self.answers: list[list[str]] = [["93.184.215.14"]]
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, *_: object, **__: object) -> list[Any]:
        self.asked.append(host)
        found = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            (socket.AF_INET6 if ":" in each else socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port))
            for each in found
        ]


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> Resolver:
    """In place of the system's, but for numbers: those are connected to."""
    made, real = Resolver(), socket.getaddrinfo

    def look_up(host: str, port: int, *rest: Any, **named: Any) -> list[Any]:
        is_number = host.replace(".", "").isdigit() and host.count(".") == 3
        return real(host, port, *rest, **named) if is_number else made(host, port)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    return made


@pytest.fixture
def private_allowed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> PrivateNetworks:
    monkeypatch.setenv("PLIMSOLL_WEBHOOK_PRIVATE", "allow")
    networks = read_networks("PLIMSOLL_WEBHOOK_PRIVATE")
    settings.WEBHOOK_PRIVATE = networks
    return networks


@pytest.fixture
def receiver(private_allowed: PrivateNetworks) -> Iterator[RawUpstream]:
    assert private_allowed
    with RawUpstream() as upstream:
        yield upstream
