"""The client for agents tells refusals from silence, waits as it is told, and packs what is large."""

import gzip
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from dashboard.client.compaction_client import CheckAnswer, CompactionClient, PlimsollAway, PlimsollRefused

CHECKED = {"action": "none", "level": "ok", "used_tokens": 0, "percent_left": 100, "sentence": "Go on.", "lines": None}


class Answering:
    """A server that answers what it was given, the last for good, and keeps what it was sent."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes, dict[str, str]]] = [(200, json.dumps(CHECKED).encode(), {})]
        self.sent: list[tuple[dict[str, str], bytes]] = []
        answering = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answering.sent.append((dict(self.headers), body))
                waiting = answering.answers
                status, data, headers = waiting.pop(0) if len(waiting) > 1 else waiting[0]
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def answer(self, status: int, data: bytes = b"{}", **headers: str) -> None:
        self.answers.insert(-1, (status, data, {name.replace("_", "-"): value for name, value in headers.items()}))

    def read_last(self) -> Any:
        headers, body = self.sent[-1]
        return json.loads(gzip.decompress(body) if headers.get("Content-Encoding") == "gzip" else body)


@pytest.fixture
def answering() -> Iterator[Answering]:
    made = Answering()
    yield made
    made.server.shutdown()
    made.server.server_close()


def open_client(answering: Answering, waits: list[float] | None = None) -> CompactionClient:
    sleep = (lambda _: None) if waits is None else waits.append
    return CompactionClient(f"http://127.0.0.1:{answering.server.server_address[1]}", "plk_x", sleep=sleep)


def test_a_figure_of_nothing_is_sent_and_what_is_not_told_is_left_out(answering: Answering) -> None:
    open_client(answering).check(model="m", used_tokens=0, window_tokens=None)
    assert answering.read_last() == {"model": "m", "used_tokens": 0}


def test_large_bodies_are_packed_and_half_a_character_does_no_harm(answering: Answering) -> None:
    client = open_client(answering)
    client.check(model="m", messages=[{"role": "user", "content": "depth \ud800"}])
    assert answering.read_last()["messages"][0]["content"] == "depth ?"
    assert "Content-Encoding" not in answering.sent[-1][0]
    client.check(model="m", messages=[{"role": "user", "content": "深さ" * 100_000}])
    headers, body = answering.sent[-1]
    assert headers["Content-Encoding"] == "gzip"
    assert len(body) < 100_000
    assert answering.read_last()["messages"][0]["content"] == "深さ" * 100_000


@pytest.mark.parametrize("body", [b"[]", b'"no"', b"null", b"<html>", b""])
def test_a_refusal_in_another_shape_is_told_by_its_status(answering: Answering, body: bytes) -> None:
    answering.answer(404, body)
    with pytest.raises(PlimsollRefused, match=r"Plimsoll responded with HTTP 404\.") as refused:
        open_client(answering).check(model="m", used_tokens=1)
    assert (refused.value.status, refused.value.code) == (404, "")


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
def test_what_may_end_well_another_time_is_no_refusal(answering: Answering, status: int) -> None:
    answering.answer(status, b"[]")
    with pytest.raises(PlimsollAway, match=f"Plimsoll responded with HTTP {status}."):
        open_client(answering).check(model="m", used_tokens=1)


def test_an_answer_that_is_no_object_is_not_plimsoll(answering: Answering) -> None:
    answering.answer(200, b"[1]")
    with pytest.raises(PlimsollAway, match="is not Plimsoll"):
        open_client(answering).check(model="m", used_tokens=1)


def test_a_server_that_says_when_is_asked_again_then(answering: Answering) -> None:
    answering.answer(503, b'{"detail": "Later."}', Retry_After="2")
    answering.answer(429, b'{"detail": "Later."}', Retry_After="1")
    waits: list[float] = []
    assert open_client(answering, waits).check(model="m", used_tokens=1).level == "ok"
    assert waits == [2.0, 1.0]
    answering.answer(429, b'{"detail": "Much later."}', Retry_After="600")
    with pytest.raises(PlimsollAway, match=r"Much later\.") as away:
        open_client(answering, waits).check(model="m", used_tokens=1)
    assert away.value.retry_after_seconds == 600


@pytest.mark.parametrize(
    ("action", "lines", "kind"),
    [
        ("block", {"is_auto_on": False}, "full"),
        ("block", {"is_auto_on": True}, "auto"),
        ("full", {"is_auto_on": True}, "auto"),
        ("none", None, "auto"),
    ],
)
def test_what_to_ask_for_follows_the_check(action: str, lines: dict[str, bool] | None, kind: str) -> None:
    assert CheckAnswer(action, "", 0, None, "", lines, {}).compact_kind == kind
