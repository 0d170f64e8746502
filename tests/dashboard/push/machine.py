"""A developer's machine in this process: a folder of transcripts, and a pusher before the product's own views."""

from collections.abc import Callable
from dataclasses import dataclass, field
from gzip import decompress
from pathlib import Path
from typing import Any

import httpx2
from django.test import Client

from dashboard.ingest.folder_watch import FolderWatch
from dashboard.push.growing_files import GrowingFiles
from dashboard.push.outbox import Outbox
from dashboard.push.pusher import Pusher
from dashboard.push.server import Server
from tests.dashboard.ingest.conversation import Conversation

URL = "http://127.0.0.1:1"
Refusal = Callable[[httpx2.Request], httpx2.Response | None]


def let_pass(_request: httpx2.Request) -> httpx2.Response | None:
    return None


def answer_with(status: int, **options: Any) -> Refusal:
    return lambda _request: httpx2.Response(status, **options)


@dataclass
class Wire:
    """Between pusher and server: notes every batch that was acknowledged, refuses what it is told to refuse."""

    client: Client = field(default_factory=Client)
    refuse: Refusal = let_pass
    bodies: list[bytes] = field(default_factory=list)  # unpacked, of batches that were taken
    statuses: list[int] = field(default_factory=list)

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        response = self.refuse(request) or self._ask(request)
        if request.method == "POST":
            self.statuses.append(response.status_code)
            if response.status_code == 200:
                self.bodies.append(decompress(request.content))
        return response

    def _ask(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name.title(): value for name, value in request.headers.items() if name != "content-length"}
        answer = self.client.generic(
            request.method,
            request.url.raw_path.decode(),
            request.content,
            content_type=headers.pop("Content-Type", ""),
            headers=headers,
        )
        return httpx2.Response(answer.status_code, headers=dict(answer.items()), content=answer.content)


class Machine:
    def __init__(self, folder: Path, key: str, *, is_metrics_only: bool = False) -> None:
        self.root = folder / "projects"
        self.wire = Wire()
        self.told: list[str] = []
        self._outbox_path = folder / "outbox.sqlite3"
        self._key, self._is_metrics_only = key, is_metrics_only
        self.start()

    def start(self) -> None:
        """As after a restart: nothing is remembered but what is on disk."""
        transport = httpx2.MockTransport(self.wire.handle)
        self.server = Server(URL, self._key, is_metrics_only=self._is_metrics_only, transport=transport)
        self.outbox = Outbox(self._outbox_path)
        told = self.server.ask_rules()
        self.outbox.aim_at(told.store)
        self.outbox.use_redaction(told.rules.redaction_version)
        files = GrowingFiles((self.root,), self.outbox.load_files(), FolderWatch(is_polling=True))
        self.pusher = Pusher(self.server, self.outbox, files, told, tell=self.told.append)
        self.files = files

    def restart(self) -> None:
        self.stop()
        self.start()

    def stop(self) -> None:
        self.server.close()
        self.outbox.close()

    def write(self, talk: Conversation, *, start: int = 0, end: int | None = None) -> Path:
        """Lines `start` to `end` of a conversation at the end of its file."""
        below = f"-work/{talk.session_id}"
        relative = f"{below}/subagents/agent-{talk.agent_id}.jsonl" if talk.agent_id else f"{below}.jsonl"
        path = self.root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.writelines(talk.lines[start:end])
        return path

    def push(self, steps: int = 20) -> None:
        """Until nothing is left to do, or so many steps were in vain."""
        self.files._walk_at = 0.0
        for _ in range(steps):
            self.pusher.step(wait_seconds=0.0)
            if self.pusher.is_done:
                return
