"""Sessions that grow on disk while somebody is killed: made from chance, the same for the same seed."""

import json
import random
import shutil
from datetime import datetime, timedelta
from pathlib import Path

from tests.compaction.making import make_line
from tests.faults.brokers import FolderBroker
from tests.faults.databases import SqliteDatabase
from tests.faults.installation import Installation

SESSIONS = 4
TURNS = 60
START = datetime(2026, 5, 1, 10)  # noqa: DTZ001 (spelt with its Z)


def make_sessions(chance: random.Random, turns: int = TURNS) -> dict[str, bytes]:
    """By path below the root; each has a compaction, one of them a sub-agent with a file of its own."""
    made = {}
    for number in range(SESSIONS):
        session = f"00000000-0000-4000-8000-{number:012}"
        made[f"-work-{number % 2}/{session}.jsonl"] = _make_transcript(session, "", chance, turns)
    inner = f"-work-0/{session}/subagents/agent-a1"
    made[f"{inner}.jsonl"] = _make_transcript(session, "a1", chance, turns)
    made[f"{inner}.meta.json"] = json.dumps({"agentType": "Explore", "description": "looks"}).encode()
    return made


def _make_transcript(session: str, agent: str, chance: random.Random, turns: int) -> bytes:
    lines, parent, context = [], None, 20_000
    for turn in range(turns):
        name = f"{session[-4:]}{agent}-{turn}"
        told: dict[str, object] = {
            "sessionId": session,
            "timestamp": f"{START + timedelta(minutes=turn):%Y-%m-%dT%H:%M:%S}.000Z",
            "isSidechain": bool(agent),
            **({"agentId": agent} if agent else {}),
        }
        spoken = {"role": "user", "content": f"Größe {turn} 🥊 " + "word " * chance.randrange(200)}
        lines.append(make_line("user", uuid=f"u{name}", parentUuid=parent, message=spoken, **told))
        usage = {"input_tokens": 5, "cache_read_input_tokens": context, "output_tokens": 7}
        for block in range(2):
            parent = f"a{name}-{block}"
            said: dict[str, object] = {
                "id": f"m{name}",
                "role": "assistant",
                "model": "claude-opus-4-5",
                "usage": usage,
            }
            said |= {"content": [{"type": "text", "text": f"block {block}"}], "stop_reason": "end_turn"}
            before = f"a{name}-{block - 1}" if block else f"u{name}"
            lines.append(make_line("assistant", uuid=parent, parentUuid=before, message=said, **told))
        context += 1000
        if turn == turns // 2:
            metadata = {"trigger": "auto", "preTokens": context}
            boundary = {"subtype": "compact_boundary", "compactMetadata": metadata, "logicalParentUuid": parent}
            lines.append(make_line("system", uuid=f"b{name}", parentUuid=None, **boundary, **told))
            parent, context = f"b{name}", 9_000
    return b"".join(lines)


def append(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)


def take_in_once(migrated: Path, folder: Path, root: Path) -> dict[str, list[str]]:
    shutil.copytree(migrated, folder / "data")
    database = SqliteDatabase(folder / "data" / "plimsoll.sqlite3")
    return describe(Installation("reference", folder, database, FolderBroker(folder / "data")), str(root))


def describe(installation: Installation, *folders: str) -> dict[str, list[str]]:
    described: dict[str, list[str]] = json.loads(installation.run_module("tests.faults.session_rows", *folders))
    return described
