"""Calls, requests and fingerprints for the cache tests, with as little in them as a test needs."""

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from compaction.cache.baseline import Baseline
from compaction.prompt.fingerprint import Fingerprint, fingerprint_request
from compaction.prompt.request import read_request
from compaction.timeline.calls import Call
from compaction.transcripts.entries import Usage

START = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
MODEL = "claude-opus-5-5"


def digest(data: bytes) -> str:
    """The team's keyed hash."""
    return hashlib.blake2b(data, key=b"team", digest_size=12).hexdigest()


def use(read: int = 0, written: int = 0, *, hour: int = 0, plain: int = 10, **fields: Any) -> Usage:
    """Usage with `written` tokens of which `hour` with the 1-hour lifetime."""
    return Usage(
        input_tokens=plain,
        output_tokens=fields.pop("output", 5),
        cache_creation_tokens=written,
        cache_creation_5m_tokens=written - hour,
        cache_creation_1h_tokens=hour,
        cache_read_tokens=read,
        **fields,
    )


def call(call_id: str, read: int = 0, written: int = 0, *, minutes: float = 0, **fields: Any) -> Call:
    """A call some minutes after the start; `hour` tokens of the writes live an hour."""
    usage = fields.pop("usage", None) or use(
        read, written, hour=fields.pop("hour", 0), **fields.pop("usage_fields", {})
    )
    return Call(
        call_id=call_id,
        at=START + timedelta(minutes=minutes),
        model=fields.pop("model", MODEL),
        usage=usage,
        **fields,
    )


def baseline(read: int = 50_000, written: int = 1_000, **fields: Any) -> Baseline:
    """The state after a call at the start."""
    return Baseline(
        call_id=fields.pop("call_id", "before"),
        at=START,
        model=fields.pop("model", MODEL),
        read_tokens=read,
        written_tokens=written,
        ttl=fields.pop("ttl", "5m"),
        **fields,
    )


def tool(name: str, description: str = "does it", **fields: Any) -> dict[str, Any]:
    """A tool definition."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    return {"name": name, "description": description, "input_schema": schema, **fields}


def text(words: str, *, marked: str | None = None) -> dict[str, Any]:
    """A text block, with a marker of this lifetime."""
    block: dict[str, Any] = {"type": "text", "text": words}
    if marked is not None:
        block["cache_control"] = {"type": "ephemeral", **({"ttl": marked} if marked == "1h" else {})}
    return block


def body(*messages: str, **fields: Any) -> dict[str, Any]:
    """A request body like the client's: two marked system blocks, the last message marked."""
    words = list(messages or ("first prompt", "first answer", "second prompt"))
    written: list[dict[str, Any]] = [
        {"role": "assistant" if index % 2 else "user", "content": each} for index, each in enumerate(words)
    ]
    written[-1]["content"] = [text(words[-1], marked="5m")]
    return {
        "model": MODEL,
        "system": [
            text("x-anthropic-billing-header: cc_version=2.1.325.a1b;"),
            text("You are an agent.", marked="5m"),
            text("Work with care. " * 400, marked="5m"),
        ],
        "tools": [tool("Bash"), tool("Read"), tool("mcp__mail__send")],
        "messages": written,
        "max_tokens": 32_000,
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "medium"},
        **fields,
    }


def prints(
    *messages: str, betas: tuple[str, ...] = (), state: dict[str, Any] | None = None, **fields: Any
) -> Fingerprint:
    """The fingerprint of such a body."""
    return fingerprint_request(read_request(body(*messages, **fields), betas=betas, client_state=state), digest)
