"""What recorded sessions hold, counted with nothing but `json`: the other side of the comparison with the database.

A call is one message id: its last line's usage, and the written characters where no stop reason vouches for the output.
Lines of sub-agents inside progress lines count as if they stood in the sub-agent's own file.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class CountedCall:
    input_tokens: int = 0
    read_tokens: int = 0
    write_5m_tokens: int = 0
    write_1h_tokens: int = 0
    reported_output_tokens: int = 0
    model: str = ""
    stop_reason: str | None = None
    open_characters: int = 0  # written on lines without a stop reason

    @property
    def output_tokens(self) -> int:
        if self.stop_reason is not None:
            return self.reported_output_tokens
        return max(self.reported_output_tokens, -(-self.open_characters * 10 // 34))


@dataclass
class CountedSession:
    calls: dict[str, CountedCall] = field(default_factory=dict)
    compactions: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    uuids: set[str] = field(default_factory=set)
    malformed_lines: list[tuple[str, int]] = field(default_factory=list)

    def total(self, name: str) -> int:
        return sum(getattr(call, name) for call in self.calls.values())


def count_folder(folder: Path) -> dict[str, CountedSession]:
    """By session id. A file's lines belong to the one session that it names on its lines."""
    sessions: dict[str, CountedSession] = {}
    for path in sorted(folder.rglob("*.jsonl")):
        lines = [read_objects(line) for line in path.read_bytes().split(b"\n")]
        entries = [entry for objects, _ in lines for entry in objects]
        named = {entry["sessionId"] for entry in entries if entry.get("sessionId")}
        assert len(named) == 1, f"{path.name} names the sessions {named}"
        session = sessions.setdefault(named.pop(), CountedSession())
        session.malformed_lines += [
            (path.name, number) for number, (_, is_whole) in enumerate(lines, 1) if not is_whole
        ]
        count_entries(session, entries)
    return sessions


def read_objects(line: bytes) -> tuple[list[dict[str, Any]], bool]:
    """The objects on a line (two may stand on one), and whether all of it could be read. Comments are no loss."""
    text = line.decode("utf-8", "replace").strip()
    found: list[dict[str, Any]] = []
    while text and not text.startswith("//"):
        try:
            value, end = json.JSONDecoder().raw_decode(text)
        except ValueError:
            return found, False
        if not isinstance(value, dict):
            return found, False
        found.append(value)
        text = text[end:].strip()
    return found, True


def count_entries(session: CountedSession, entries: Iterable[dict[str, Any]]) -> None:
    for entry in entries:
        if entry.get("uuid") in session.uuids:
            continue
        if entry.get("uuid"):
            session.uuids.add(entry["uuid"])
        if entry.get("agentId"):
            session.agents.add(entry["agentId"])
        if entry.get("subtype") == "compact_boundary":
            session.compactions.add(entry["uuid"])
        if entry["type"] == "assistant" and entry["message"].get("model") != "<synthetic>":
            count_answer(session.calls.setdefault(entry["message"]["id"], CountedCall()), entry["message"])
        nested = entry["data"].get("message") if entry["type"] == "progress" else None
        if isinstance(nested, dict):
            count_entries(session, [nested | {"agentId": entry["data"]["agentId"]}])


def count_answer(call: CountedCall, message: dict[str, Any]) -> None:
    usage = message["usage"]
    call.model = message["model"]
    written = usage.get("cache_creation_input_tokens", 0)
    split = usage.get("cache_creation") or {}
    call.input_tokens = usage["input_tokens"]
    call.read_tokens = usage.get("cache_read_input_tokens", 0)
    call.write_1h_tokens = split.get("ephemeral_1h_input_tokens", 0)
    call.write_5m_tokens = written - call.write_1h_tokens
    call.reported_output_tokens = usage["output_tokens"]
    call.stop_reason = message["stop_reason"]
    if call.stop_reason is None:
        call.open_characters += sum(count_characters(message["content"]))


def count_characters(blocks: list[dict[str, Any]]) -> Iterator[int]:
    for block in blocks:
        if block["type"] == "tool_use":
            yield 176 + len(block["name"])
            yield len(json.dumps(block["input"], separators=(",", ":"), ensure_ascii=False))
        else:
            yield len(block.get("text", block.get("thinking", "")))
