"""Whole conversations arrive: larger than most bodies, in any script, plain or gzip. What is too large does not.

Through a real web process, as its outermost layer decides about sizes.
"""

import gzip
import http.client
import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dashboard.client.compaction_client import CompactionClient
from tests.dashboard.agents.documented_loop import Walk
from tests.dashboard.running import run_plimsoll, running_plimsoll
from tests.fakes.messages_api import MessagesApi

MIB = 1024 * 1024
MODEL = "claude-sonnet-5-5"


@dataclass(frozen=True)
class Place:
    port: int
    key: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def post(self, path: str, body: bytes, encoding: str = "identity") -> tuple[int, Any]:
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Content-Encoding": encoding,
        }
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            return response.status, json.load(response)
        finally:
            connection.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, migrated_folder: Path) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("large")
    shutil.copytree(migrated_folder, folder / "data")
    made = run_plimsoll(folder, "createowner", "ann", typed="harbour-chart-12\nharbour-chart-12\n")
    assert made.returncode == 0, made.stderr
    made = run_plimsoll(folder, "createkey", "--name", "agent", "--scope", "compact")
    with running_plimsoll(folder, "web") as running:
        yield Place(running.port, made.stdout.strip().splitlines()[-1])


def say(words: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": words}, {"role": "assistant", "content": "Read."}]


def test_a_conversation_of_six_million_bytes_is_checked_plain(place: Place) -> None:
    body = json.dumps({"model": MODEL, "messages": say("глубина " * 160_000)}).encode()  # each letter is six bytes
    assert len(body) > 6 * MIB
    status, told = place.post("/api/v1/check", body)
    assert (status, told["used_origin"]) == (200, "estimated")


def test_client_sends_a_large_conversation_in_any_script(place: Place) -> None:
    client = CompactionClient(place.url, place.key, timeout_seconds=120)
    words = "港の深さは十二メートルです。" * 150_000
    assert client.check(model=MODEL, messages=say(words)).used_tokens > 500_000
    done = client.compact(say("絶対に触らない。" + words), model=MODEL, kind="full")
    assert done.decision == "compacted in full"
    assert "絶対に触らない。" in str(done.messages)
    assert client.lint({"messages": say(words)})[0]["rule"] == "no cache breakpoint"


def test_what_is_too_large_or_no_gzip_is_refused_with_a_sentence(place: Place) -> None:
    bodies = {
        "larger than 32 MiB": (b'{"model": "' + b"m" * 33 * MIB + b'"}', "identity", 413),
        "larger than 32 MiB inside": (gzip.compress(b" " * 33 * MIB, compresslevel=1), "gzip", 413),
        "a million values": (gzip.compress(b'{"messages":[' + b"{}," * 1_000_000 + b"{}]}"), "gzip", 413),
        "cut off": (gzip.compress(b'{"model": "m"}')[:-6], "gzip", 400),
        "another encoding": (b"{}", "br", 415),
    }
    for name, (body, encoding, expected) in bodies.items():
        status, told = place.post("/api/v1/check", body, encoding)
        assert status == expected, name
        assert told["detail"].endswith("."), name


def test_loop_fills_a_window_of_a_million_tokens(
    place: Place, messages_api: MessagesApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages_api.window_tokens = 1_000_000
    walk = Walk(messages_api, place.url, place.key, turns=14, result_tokens=90_000, model=MODEL)
    messages = walk.walk(monkeypatch)
    assert walk.seen_tokens > 1_200_000
    assert len(walk.sizes) == walk.turns + 1
    assert 800_000 < max(walk.sizes) < 1_000_000
    assert any(after < before for before, after in pairwise(walk.sizes))
    assert "Never touch the harbour wall." in str(messages)
