"""The two transcripts that 0005_first_reading.sqlite3.gz was imported from, by a version whose reader took the output
of commands for prompts, estimated nothing and passed over sub-agents inside progress lines."""

from pathlib import Path

from tests.dashboard.ingest.conversation import Conversation


def write_transcripts(folder: Path) -> None:
    for name in ("still-there", "gone"):
        talk = _make_talk(name)
        (folder / f"{name}.jsonl").write_bytes(talk.data)


def _make_talk(name: str) -> Conversation:
    talk = Conversation(name)
    talk.ask()
    talk.answer(f"msg_{name}_1", written=30_000)
    talk.write("progress", toolUseID="t1", data={"type": "agent_progress", "agentId": "a1", "message": _answer(talk)})
    talk.ask("<local-command-stderr>No such command.</local-command-stderr>")
    talk.ask("[Request interrupted by user]")
    talk.ask("And now a table.")
    talk.answer(f"msg_{name}_2", read=30_000, written=500)
    talk.result("x" * 12_000)
    return talk


def _answer(talk: Conversation) -> dict[str, object]:
    """A sub-agent's line as it stands inside a progress line."""
    usage = {"input_tokens": 4, "cache_creation_input_tokens": 9_000, "cache_read_input_tokens": 0, "output_tokens": 20}
    message = {
        "id": f"msg_agent_of_{talk.session_id}",
        "role": "assistant",
        "model": "claude-haiku-4-5-20251001",
        "content": [{"type": "text", "text": "Found."}],
        "stop_reason": "end_turn",
        "usage": usage,
    }
    time = talk.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"type": "assistant", "message": message, "uuid": f"nested-{talk.session_id}", "timestamp": time}
