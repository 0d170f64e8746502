"""Transcript lines and entries for tests: real shapes with as little in them as a test needs."""

import json
from collections.abc import Iterable
from itertools import count

from compaction.timeline.build import build_timeline
from compaction.timeline.calls import Call
from compaction.timeline.read_entries import read_observation
from compaction.transcripts.entries import Entry
from compaction.transcripts.transcript import Transcript, read_transcript
from compaction.transcripts.writer import write_items

_numbers = count(1)


def make_line(line_type: str, **fields: object) -> bytes:
    """One line of JSON with its ending."""
    return json.dumps({"type": line_type, **fields}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"


def make_entry(line_type: str, **fields: object) -> Entry:
    """An entry as the reader makes it, with a uuid of its own."""
    fields.setdefault("uuid", f"u{next(_numbers)}")
    fields.setdefault("timestamp", "2026-05-01T10:00:00.000Z")
    return read_transcript(make_line(line_type, **fields)).entries[0]


def write_back(transcript: Transcript) -> bytes:
    """The whole file from what was read of it."""
    return b"".join(write_items(transcript.items)) + (transcript.tail.raw if transcript.tail else b"")


def list_calls(entries: Iterable[Entry]) -> tuple[Call, ...]:
    """The calls of these lines, thread by thread."""
    timeline = build_timeline(read_observation(entry) for entry in entries)
    return tuple(call for thread in timeline.threads for call in thread.calls)


def say(content: object, **fields: object) -> Entry:
    """A user entry."""
    return make_entry("user", message={"role": "user", "content": content}, **fields)


def answer(message_id: str | None, *blocks: object, usage: dict[str, object] | None = None, **fields: object) -> Entry:
    """One line of a response; `stop_reason` and `model` go into the message."""
    message: dict[str, object] = {
        "id": message_id,
        "role": "assistant",
        "model": fields.pop("model", "claude-opus-4-5-20251101"),
        "content": list(blocks),
        "stop_reason": fields.pop("stop_reason", None),
    }
    if usage is not None:
        message["usage"] = usage
    return make_entry("assistant", message=message, **fields)


def text(words: str) -> dict[str, object]:
    """A text block."""
    return {"type": "text", "text": words}


def thought(words: str, signature: str = "sig") -> dict[str, object]:
    """A thinking block."""
    return {"type": "thinking", "thinking": words, "signature": signature}


def request(use_id: str, name: str = "Read", **arguments: object) -> dict[str, object]:
    """A tool request block."""
    return {"type": "tool_use", "id": use_id, "name": name, "input": arguments}


def result(use_id: str, content: object = "done", **fields: object) -> dict[str, object]:
    """A tool result block."""
    return {"type": "tool_result", "tool_use_id": use_id, "content": content, **fields}


def use(tokens_in: int = 10, tokens_out: int = 5, **fields: object) -> dict[str, object]:
    """A usage object."""
    return {"input_tokens": tokens_in, "output_tokens": tokens_out, **fields}
