"""How a conversation is written: the lines of a coding agent's transcript, with the figures a prompt cache gives."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any
from uuid import UUID, uuid5

from dashboard.demo.codebase import (
    FOLLOW_UPS,
    REPLIES,
    THOUGHTS,
    Project,
    say,
    write_code,
    write_summary,
    write_test_run,
)

NAMES = UUID("5d0f1c3a-4b7e-4e0c-9a41-8f2a6c0d9e11")  # ids of the demo follow from it, so that two runs are alike
OPUS, SONNET, OLD_SONNET = "claude-opus-4-5-20251101", "claude-sonnet-5-5", "claude-sonnet-4-5-20250929"
LONG_OPUS, OLDER_SONNET = "claude-opus-5-5", "claude-sonnet-5"
VERSION = "2.1.126"
START_TOKENS = 21_000  # system prompt and tools


@dataclass(frozen=True, slots=True)
class Happened:
    """A prompt, a call or a compaction, as an event of the client's telemetry."""

    name: str
    at: datetime
    told: Mapping[str, object]


def name_id(*parts: object) -> str:
    return str(uuid5(NAMES, "/".join(map(str, parts))))


class Talk:
    """Writes one transcript. `cached_tokens` is what the next call can read back, `new_tokens` what it adds."""

    def __init__(
        self, name: str, project: Project, *, start: datetime, model: str = OPUS, agent_id: str | None = None
    ) -> None:
        self.name, self.project, self.model, self.agent_id = name, project, model, agent_id
        self.session_id = name_id(name)
        self.random = Random(f"{name}/{agent_id}")  # noqa: S311 (invented figures)
        self.now, self.ttl, self.version, self.speed = start, "5m", VERSION, ""
        self.cached_tokens, self.new_tokens = 0, START_TOKENS if agent_id is None else 9_000
        self.kept_share: float | None = None  # of the cache, at the next call; None: all of it
        self.miss_reason = ""
        self.thinks = False
        self.lines: list[bytes] = []
        self.asked: list[str] = []
        self.results: list[str] = []
        self.parent: str | None = None
        self.call_count = 0
        self.happened: list[Happened] = []  # for telemetry, which tells the same in its own way

    @property
    def data(self) -> bytes:
        return b"".join(self.lines)

    @property
    def context_tokens(self) -> int:
        return self.cached_tokens + self.new_tokens

    def wait(self, *, minutes: float = 0.0, seconds: float = 0.0) -> None:
        self.now += timedelta(minutes=minutes, seconds=seconds)

    def write(self, line_type: str, **fields: Any) -> str:
        uuid = name_id(self.name, self.agent_id, len(self.lines))
        self.wait(seconds=0.2 + self.random.random())
        line = {
            "parentUuid": self.parent,
            "isSidechain": self.agent_id is not None,
            "cwd": self.project.folder,
            "sessionId": self.session_id,
            "version": self.version,
            "gitBranch": self.project.branch,
            "type": line_type,
            "uuid": uuid,
            "timestamp": self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            **({"agentId": self.agent_id} if self.agent_id else {}),
            **fields,
        }
        self.add(line)
        self.parent = uuid
        return uuid

    def add(self, line: dict[str, Any]) -> None:
        self.lines.append(json.dumps(line, separators=(",", ":")).encode() + b"\n")

    def title(self, words: str) -> None:
        self.add({"type": "summary", "summary": words, "leafUuid": self.parent})

    # --- a turn ---

    def ask(self, words: str = "") -> str:
        self.wait(seconds=20 + 40 * self.random.random())
        words = words or say(FOLLOW_UPS, self.project, self.random)
        self.asked.append(words)
        self.new_tokens += len(words) // 4 + 8
        uuid = self.write("user", message={"role": "user", "content": words})
        self._note("user_prompt", prompt=words, prompt_length=len(words))
        return uuid

    def use(self, tool: str, told: dict[str, Any], result: str, *, tokens: int | None = None) -> None:
        """A call that asks for a tool, and what the tool gave back."""
        use_id = f"toolu_{name_id(self.name, self.agent_id, 'use', self.call_count)[:20]}"
        self.answer([{"type": "tool_use", "id": use_id, "name": tool, "input": told}], stop="tool_use")
        self.wait(seconds=1 + 4 * self.random.random())
        block = {"type": "tool_result", "tool_use_id": use_id, "content": result}
        self.write("user", message={"role": "user", "content": [block]}, toolUseResult={"stdout": ""})
        self.results.append(use_id)
        self.new_tokens += tokens if tokens is not None else int(len(result) / 3.6) + 20

    def read_file(self, tokens: int, file: str = "") -> None:
        path = self.project.get_path(file or self.random.choice(self.project.files))
        self.use("Read", {"file_path": path}, write_code(self.project, self.random, tokens), tokens=tokens)

    def run_tests(self, tokens: int = 1_500) -> None:
        text = write_test_run(self.project, self.random, tokens)
        self.use("Bash", {"command": "make test", "description": "Run the tests"}, text, tokens=tokens)

    def edit(self) -> None:
        path = self.project.get_path(self.random.choice(self.project.files))
        thing = self.random.choice(self.project.things)
        told = {"file_path": path, "old_string": f"round({thing}.cents)", "new_string": f"{thing}.cents"}
        self.use("Edit", told, f"The file {path} has been updated.")

    def reply(self, words: str = "") -> None:
        self.answer([{"type": "text", "text": words or say(REPLIES, self.project, self.random)}], stop="end_turn")
        self.write("system", subtype="turn_duration", durationMs=self.random.randrange(9_000, 90_000))

    def answer(self, blocks: list[dict[str, Any]], *, stop: str) -> None:
        self.wait(seconds=5 + 15 * self.random.random())
        self.call_count += 1
        output = 120 + self.random.randrange(500)
        if self.thinks:
            thought = say((THOUGHTS,), self.project, Random(self.call_count))  # noqa: S311 (invented words)
            blocks = [{"type": "thinking", "thinking": thought, "signature": "demo"}, *blocks]
        name = name_id(self.name, self.agent_id, "call", self.call_count).replace("-", "")[:24]
        message: dict[str, Any] = {
            "id": f"msg_{name}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": blocks,
            "stop_reason": stop,
            "usage": (usage := self._count(output)),
        }
        if self.miss_reason:
            message["diagnostics"] = {"cache_miss_reason": {"type": self.miss_reason}}
            self.miss_reason = ""
        self.write("assistant", message=message, requestId=f"req_{name}")
        self._note(
            "api_request",
            model=self.model,
            request_id=f"req_{name}",
            input_tokens=usage["input_tokens"],
            output_tokens=output,
            cache_read_tokens=usage["cache_read_input_tokens"],
            cache_creation_tokens=usage["cache_creation_input_tokens"],
            cache_creation_1h_tokens=usage["cache_creation"]["ephemeral_1h_input_tokens"],
            duration_ms=2_000 + self.random.randrange(6_000),
            ttft_ms=400 + self.random.randrange(900),
            query_source="repl_main_thread",
        )

    def _note(self, name: str, **told: object) -> None:
        self.happened.append(Happened(name, self.now, told))

    def _count(self, output: int) -> dict[str, Any]:
        read, prompt = self.cached_tokens, self.context_tokens
        if self.kept_share is not None:
            read, self.kept_share = int(read * self.kept_share), None
        written = prompt - read
        self.cached_tokens, self.new_tokens = prompt, output
        at_1h = written if self.ttl == "1h" else 0
        usage: dict[str, Any] = {
            "input_tokens": 4,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "cache_creation": {"ephemeral_5m_input_tokens": written - at_1h, "ephemeral_1h_input_tokens": at_1h},
            "output_tokens": output,
            "service_tier": "standard",
        }
        return usage | ({"speed": self.speed} if self.speed else {})

    # --- what happens between ---

    def lose(self, kept_share: float = 0.0, *, reason: str = "") -> None:
        """The next call reads only so much of what was cached."""
        self.kept_share, self.miss_reason = kept_share, reason

    def compact(self, trigger: str, *, before_tokens: int | None = None, after_tokens: int = 11_000) -> None:
        last, self.parent = self.parent, None
        after_tokens += self.random.randrange(6_000)
        seconds = self.random.randrange(28, 96)
        metadata = {
            "trigger": trigger,
            "preTokens": before_tokens or self.context_tokens,
            "durationMs": seconds * 1000,
        }
        self.wait(seconds=seconds)
        self.write(
            "system",
            subtype="compact_boundary",
            logicalParentUuid=last,
            content="Conversation compacted",
            compactMetadata=metadata,
        )
        self._note(
            "compaction",
            trigger=trigger,
            success="true",
            pre_tokens=metadata["preTokens"],
            post_tokens=START_TOKENS + after_tokens,
            duration_ms=seconds * 1000,
        )
        summary = write_summary(self.project, self.random, self.asked)
        self.write("user", isCompactSummary=True, message={"role": "user", "content": summary})
        for file in self.random.sample(self.project.files, 2):
            path = self.project.get_path(file)
            text = write_code(self.project, self.random, 1_500)
            attachment = {"type": "file", "filename": path, "displayPath": file, "content": text}
            self.write("attachment", attachment=attachment)
        self.cached_tokens, self.kept_share = START_TOKENS, None
        self.new_tokens = after_tokens

    def fail_to_compact(self) -> None:
        """Nothing is written of it but an event of telemetry."""
        self.wait(seconds=40)
        error = "The summary was cut off: the conversation is too long."
        self._note("compaction", trigger="auto", success="false", error=error, pre_tokens=self.context_tokens)

    def clear_results(self, count: int = 6) -> None:
        """A micro-compaction: old results of tools leave the prompt."""
        cleared, self.results = self.results[:count], self.results[count:]
        saved = int(self.cached_tokens * 0.3)
        metadata = {
            "trigger": "auto",
            "preTokens": self.context_tokens,
            "tokensSaved": saved,
            "compactedToolIds": cleared,
            "clearedAttachmentUUIDs": [],
        }
        self.write("system", subtype="microcompact_boundary", content="Cleared", microcompactMetadata=metadata)
        self._shorten_by(saved)

    def shorten(self) -> None:
        """The same by a client that writes nothing of it down."""
        self._shorten_by(int(self.cached_tokens * 0.3))

    def _shorten_by(self, saved_tokens: int) -> None:
        kept = int(self.cached_tokens * 0.25)
        self.new_tokens += self.cached_tokens - saved_tokens - kept
        self.cached_tokens = kept
