"""The real client in a home and a working folder of its own, talking to a scripted API or to the proxy before one."""

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from tests.real_client.conftest import CLIENT
from tests.real_client.scripted_api import Block, ScriptedApi

TURNS = 8
SECRET = "sk-ant-api03-" + "A1b2C3d4E5" * 9 + "-AAAAAAAA"  # a form that redaction takes out of stored lines


class HasAddress(Protocol):
    @property
    def url(self) -> str: ...


@dataclass(frozen=True)
class Client:
    home: Path
    work: Path

    @property
    def projects(self) -> Path:
        return self.home / ".claude" / "projects"

    def find_file(self, session_id: str) -> Path:
        (found,) = self.projects.glob(f"*/{session_id}.jsonl")
        return found

    def say(self, api: HasAddress, words: str, *arguments: str, **settings: str) -> None:
        environment = {
            **settings,
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "ANTHROPIC_API_KEY": "dummy",
            "ANTHROPIC_BASE_URL": api.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        done = subprocess.run(
            [CLIENT, "-p", words, *arguments, "--output-format", "json"],
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, (done.stdout[-2000:], done.stderr[-2000:])


def make_client(folder: Path) -> Client:
    client = Client(folder / "home", folder / "work")
    client.home.mkdir()
    client.work.mkdir()
    return client


def hold_session(client: Client, *, first_turn: int = 0, session_id: str = "") -> str:
    """Turns that read a file each; returns the session's id. The second prompt holds a secret."""
    script = [answer for turn in range(first_turn, first_turn + TURNS) for answer in _answer_turn(client, turn)]
    with ScriptedApi(script) as api:
        for turn in range(first_turn, first_turn + TURNS):
            (client.work / f"file{turn}.txt").write_text(f"CONTENT-{turn} of a file\n" * 60)
            words = f"PROMPT-{turn}: read file{turn}.txt"
            if turn == first_turn + TURNS - 2:
                words += f" with {SECRET}"
            if session_id:
                client.say(api, words, "--resume", session_id)
            else:
                session_id = str(uuid4())
                client.say(api, words, "--session-id", session_id)
    return session_id


def _answer_turn(client: Client, turn: int) -> list[list[Block]]:
    path = str(client.work / f"file{turn}.txt")
    use = {"type": "tool_use", "id": f"toolu_{turn:04d}", "name": "Read", "input": {"file_path": path}}
    return [[{"type": "text", "text": f"READING-{turn}"}, use], [{"type": "text", "text": f"ANSWER-{turn}"}]]


def list_texts(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and text of every block of a request, in order; of a tool request its input, of a result its content."""
    texts = []
    for message in body["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts += [(message["role"], _read_text(block)) for block in blocks]
    return texts


def _read_text(block: Block) -> str:
    match block["type"]:
        case "text":
            return str(block["text"])
        case "tool_use":
            return f"tool_use {block['id']} {block['input']}"
        case "tool_result":
            return f"tool_result {block['tool_use_id']} {block['content']}"
        case kind:
            return str(kind)
