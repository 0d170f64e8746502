"""The web server process before its first request."""

import gc
import resource
import socket

import pytest
import uvicorn

from dashboard.plain_http import PlainHttpProtocol
from dashboard.web_server import OPEN_FILES, raise_open_file_limit, serve


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


def test_a_web_process_may_open_more_files_than_most_systems_start_it_with() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, hard))
    try:
        raise_open_file_limit()
        raised, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert raised == (OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES))
