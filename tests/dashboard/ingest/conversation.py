"""Sessions as lines of JSON for the tests of ingest: small, but with every kind of line that matters to a number."""

import json
from datetime import UTC, datetime, timedelta
from uuid import NAMESPACE_URL, uuid5

START = datetime(2026, 5, 1, 10, 0, tzinfo=UTC)
MODEL = "claude-opus-4-5-20251101"


class Conversation:
    """Writes one transcript. Ids follow from the session's name and the line's number, so that two runs are alike."""

    def __init__(self, name: str = "harbour", *, agent_id: str | None = None) -> None:
        self.session_id = str(uuid5(NAMESPACE_URL, name))
        self.agent_id = agent_id
        self.lines: list[bytes] = []
        self.now = START
        self.parent: str | None = None
        self._seed = f"{name}/{agent_id or ''}"

    @property
    def data(self) -> bytes:
        return b"".join(self.lines)

    def wait(self, seconds: float) -> "Conversation":
        self.now += timedelta(seconds=seconds)
        return self

    def write(self, line_type: str, **fields: object) -> str:
        """A chained line; returns its uuid."""
        uuid = str(uuid5(NAMESPACE_URL, f"{self._seed}/{len(self.lines)}"))
        self.wait(1)
        line: dict[str, object] = {
            "parentUuid": self.parent,
            "isSidechain": self.agent_id is not None,
            "cwd": "/home/ann/harbour",
            "sessionId": self.session_id,
            "version": "2.1.126",
            "gitBranch": "main",
            "type": line_type,
            "uuid": uuid,
            "timestamp": self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        if self.agent_id:
            line["agentId"] = self.agent_id
        self.add(line | fields)
        self.parent = uuid
        return uuid

    def read_lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.lines]

    def add(self, line: dict[str, object]) -> None:
        self.lines.append(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def ask(self, words: str = "Draw the chart.") -> str:
        return self.write("user", message={"role": "user", "content": words})

    def result(self, words: str = "done") -> str:
        block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": words}
        return self.write("user", message={"role": "user", "content": [block]})

    def answer(
        self,
        message_id: str,
        *,
        read: int = 0,
        written: int = 0,
        output: int = 50,
        lines: int = 2,
        model: str = MODEL,
        stop: str | None = "end_turn",
        words: str = "Well.",
    ) -> None:
        """One response on several lines: the output grows, only the last line says why it stopped."""
        for number in range(1, lines + 1):
            usage = {
                "input_tokens": 3,
                "cache_read_input_tokens": read,
                "cache_creation_input_tokens": written,
                "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
                "output_tokens": output * number // lines,
            }
            message = {
                "id": message_id,
                "role": "assistant",
                "model": model,
                "content": [{"type": "text", "text": words}],
                "stop_reason": stop if number == lines else None,
                "usage": usage,
            }
            self.write("assistant", message=message, requestId=f"req_{message_id}")

    def compact(
        self, before: int = 167_000, *, summary: str = "What happened so far.", after: int | None = None
    ) -> str:
        last = self.parent
        told = {"trigger": "auto", "preTokens": before} | ({} if after is None else {"postTokens": after})
        self.parent = None
        boundary = self.write(
            "system",
            subtype="compact_boundary",
            logicalParentUuid=last,
            content="Conversation compacted",
            compactMetadata=told,
        )
        self.write("user", isCompactSummary=True, message={"role": "user", "content": summary})
        self.write("attachment", attachment={"type": "file", "filename": "/home/ann/harbour/chart.py", "content": "x"})
        return boundary

    def note(self, line_type: str, **fields: object) -> None:
        """A line without uuid, parent and time, as clients write them between."""
        self.add({"type": line_type, "sessionId": self.session_id, **fields})


def make_conversation(name: str = "harbour") -> Conversation:
    """Two turns, a break after five idle minutes, a compaction, a small model's call and a broken line."""
    talk = Conversation(name)
    talk.note("summary", summary="Charts of the harbour", leafUuid="none")
    talk.ask()
    talk.answer(f"msg_{name}_1", written=50_000, stop="tool_use")
    talk.result("depth 12 m")
    talk.answer(f"msg_{name}_2", read=50_000, written=2_000)
    talk.wait(400).ask("And now?")
    talk.answer(f"msg_{name}_3", read=10_000, written=45_000)
    talk.answer(f"msg_{name}_4", read=0, written=0, model="claude-haiku-4-5-20251001", lines=1)
    talk.lines.append(b'{"type":"assistant","message":{"id":"cut\n')
    talk.compact()
    talk.ask("Go on.")
    talk.answer(f"msg_{name}_5", read=10_000, written=20_000, stop=None, words="Long words. " * 40)
    return talk


def make_agent(name: str = "harbour", agent_id: str = "a1b2c3") -> Conversation:
    """A sub-agent's own file of the same session."""
    agent = Conversation(name, agent_id=agent_id)
    agent.wait(60).ask("Look at the tides.")
    agent.answer(f"msg_{name}_{agent_id}", written=8_000)
    return agent
