"""Files to import, and the import itself, for the tests of both."""

import io
import json
from pathlib import Path
from typing import Any

from django.core.management import call_command

from tests.compaction.making import make_line, text, use

SESSION = "11111111-2222-4333-8444-555555555555"
OTHER = "99999999-2222-4333-8444-555555555555"


def make_call(number: int, *, session: str = SESSION, **fields: object) -> bytes:
    usage = use(10, 5, cache_read_input_tokens=1000 * number)
    message: dict[str, object] = {"id": f"msg_{session[:4]}_{number}", "model": "claude-opus-4-5", "role": "assistant"}
    message |= {"content": [text("done")], "usage": usage, "stop_reason": "end_turn"}
    at = f"2026-11-01T10:{number // 60:02}:{number % 60:02}.000Z"
    uuid = f"{session[:8]}-0000-4000-8000-{number:012}"
    return make_line("assistant", uuid=uuid, sessionId=session, timestamp=at, message=message, **fields)


def make_calls(*numbers: int, **fields: Any) -> bytes:
    return b"".join(make_call(number, **fields) for number in numbers)


def run_import(*paths: object, **options: Any) -> dict[str, Any]:
    out = io.StringIO()
    call_command("import", *map(str, paths), json=True, stdout=out, **options)
    told: dict[str, Any] = json.loads(out.getvalue())
    return told


def write_home(folder: Path) -> Path:
    """A `.claude` home with a session, its sub-agent, and files that are no transcripts."""
    project = folder / "projects" / "-home-dev-app"
    agents = project / SESSION / "subagents"
    agents.mkdir(parents=True)
    (folder / "history.jsonl").write_bytes(b'{"display":"hello"}\n')
    (project / f"{SESSION}.jsonl").write_bytes(make_calls(1, 2, 3))
    (agents / "agent-abc.jsonl").write_bytes(make_calls(4, 5, agentId="abc", isSidechain=True))
    (agents / "agent-abc.meta.json").write_bytes(b'{"agentType":"Explore","description":"Look around"}')
    return folder
