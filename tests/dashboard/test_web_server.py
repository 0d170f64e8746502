"""The web server process before its first request."""

import gc
import socket

import pytest
import uvicorn

from dashboard.plain_http import PlainHttpProtocol
from dashboard.web_server import serve


def test_what_is_loaded_is_set_aside_before_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full collection would otherwise walk through all of it in the middle of somebody's page."""
    set_aside = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda *_, **__: set_aside.append(gc.get_freeze_count()))
    try:
        with socket.socket() as listening:
            serve(listening)
    finally:
        gc.unfreeze()
    assert set_aside[0] > 10_000


def test_requests_are_read_as_plain_http(monkeypatch: pytest.MonkeyPatch) -> None:
    protocols = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda server, **_: protocols.append(server.config.http))
    try:
        with socket.socket() as listening:
            serve(listening)
    finally:
        gc.unfreeze()
    assert protocols == [PlainHttpProtocol]
