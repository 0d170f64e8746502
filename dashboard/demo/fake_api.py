"""An API that answers with figures: it remembers the last prompt of a conversation and counts what it could read back.

The rules are those of the Messages API as far as the demo needs them: tools, then system, then messages; what differs
empties itself and all behind it, and some settings empty the messages.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from compaction.prompt.markers import LOOKBACK_BLOCKS
from dashboard.demo.codebase import REPLIES, Project, say
from dashboard.demo.talks import name_id

CHARACTERS_PER_TOKEN = 3.6
DELETED_TOKENS = 1_500  # with each result that is deleted from the cache
_OF_SYSTEM = ("speed", "citations")
_OF_MESSAGES = (
    "thinking",
    "output_config",
    "tool_choice",
    "context_management",
    "betas",
    "image_count",
    "other",
)
_KNOWN = frozenset(
    {"model", "max_tokens", "stream", "system", "tools", "messages", "speed", "thinking", "output_config"}
    | {"tool_choice", "context_management", "metadata"}
)
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """A stream of events, as its bytes."""

    request_id: str
    body: bytes


class FakeApi:
    """The cache of one conversation, and what it is answered. Names and words are the same in every demo."""

    def __init__(self, name: str, project: Project) -> None:
        self._name, self._project = name, project
        self._random = Random(f"{name}/api")  # noqa: S311 (invented words)
        self._answer_count = 0
        self._kept: list[tuple[str, int]] = []  # of the last prompt: each part's text and its tokens
        self._keys: Json = {}
        self._closed_blocks = 0
        self._deleted_count = 0

    def forget(self) -> None:
        """What a server does at times, for reasons of its own."""
        self._kept = []

    def delete(self, count: int) -> None:
        """So many results are gone from the cache, and from all that is read back of it."""
        self._deleted_count += count

    def answer(self, data: bytes, headers: Mapping[str, str]) -> Answer:
        body = json.loads(data)
        self._answer_count += 1
        name = name_id(self._name, self._answer_count).replace("-", "")[:24]
        reply = say(REPLIES, self._project, self._random)
        usage = self.count(body, headers.get("anthropic-beta", "")) | {"output_tokens": 40 + len(reply) // 4}
        return Answer(f"req_{name}", _write_events(f"msg_{name}", body["model"], usage, reply))

    def count(self, body: Json, betas: str = "") -> Json:
        """The usage of a request."""
        parts, head_count, tools_count = _list_parts(body)
        keys = _find_keys(body, betas)
        total = sum(tokens for _, tokens in parts)
        lifetime = _find_lifetime(body)
        if lifetime is None:
            self._kept = []
            return {"input_tokens": total, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        shared = _count_shared(self._kept, parts)
        blocks = _count_blocks(body["messages"])
        if any(keys[name] != self._keys.get(name, keys[name]) for name in ("model", "lifetime", "marks")):
            shared = 0
        if any(keys[name] != self._keys.get(name, keys[name]) for name in _OF_SYSTEM):
            shared = min(shared, tools_count)
        before, now = self._keys.get("edits", frozenset()), keys["edits"]
        self.delete(len(now - before))
        if before - now:
            self._deleted_count, shared = 0, min(shared, head_count)
        is_far = self._kept and blocks - self._closed_blocks >= LOOKBACK_BLOCKS
        if is_far or any(keys[name] != self._keys.get(name, keys[name]) for name in _OF_MESSAGES):
            shared = min(shared, head_count)
        self._kept, self._keys, self._closed_blocks = parts, keys, blocks
        whole = sum(tokens for _, tokens in parts[:shared])
        read = max(0, whole - DELETED_TOKENS * self._deleted_count)
        return _spell_usage(read, total - whole, lifetime)


def _write_events(message_id: str, model: str, usage: Json, words: str) -> bytes:
    message = {"id": message_id, "type": "message", "role": "assistant", "model": model, "content": []}
    events: list[Json] = [
        {"type": "message_start", "message": message | {"usage": usage | {"output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": words}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": usage["output_tokens"]},
        },
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events)


def _spell_usage(read: int, written: int, lifetime: str) -> Json:
    at_1h = written if lifetime == "1h" else 0
    return {
        "input_tokens": 5,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "cache_creation": {"ephemeral_5m_input_tokens": written - at_1h, "ephemeral_1h_input_tokens": at_1h},
    }


def _list_parts(body: Json) -> tuple[list[tuple[str, int]], int, int]:
    tools = [tool for tool in body.get("tools", ()) if not tool.get("defer_loading")]
    parts = [_measure(part) for part in (*tools, *body.get("system", ()), *body["messages"])]
    return parts, len(tools) + len(body.get("system", ())), len(tools)


def _measure(part: Json) -> tuple[str, int]:
    text = json.dumps(_strip(part), separators=(",", ":"))
    return text, max(1, int(len(text) / CHARACTERS_PER_TOKEN))


def _strip(value: Any) -> Any:
    """Without markers: they move with every call."""
    if isinstance(value, Mapping):
        return {key: _strip(item) for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [_strip(item) for item in value]
    return value


def _find_keys(body: Json, betas: str) -> Json:
    blocks = [block for message in body["messages"] for block in _list_blocks(message)]
    searches = [tool for tool in body.get("tools", ()) if str(tool.get("type", "")).startswith("web_search")]
    return {
        "model": body["model"],
        "lifetime": _find_lifetime(body),
        "marks": [
            (index, block["cache_control"].get("scope"))
            for index, block in enumerate(body.get("system", ()))
            if "cache_control" in block
        ],
        "speed": (body.get("speed"), bool(searches)),
        "citations": any("citations" in block for block in blocks),
        "thinking": body.get("thinking"),
        "output_config": body.get("output_config"),
        "tool_choice": body.get("tool_choice"),
        "context_management": body.get("context_management"),
        "betas": betas,
        "image_count": sum(block.get("type") == "image" for block in blocks),
        "edits": frozenset(
            edit["cache_reference"] for block in blocks if block.get("type") == "cache_edits" for edit in block["edits"]
        ),
        "other": {name: value for name, value in body.items() if name not in _KNOWN},
    }


def _list_blocks(message: Json) -> Sequence[Json]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _count_blocks(messages: Sequence[Json]) -> int:
    return sum(len(_list_blocks(message)) for message in messages)


def _find_lifetime(body: Json) -> str | None:
    marked = [*body.get("system", ()), *(block for message in body["messages"] for block in _list_blocks(message))]
    found = [block["cache_control"].get("ttl", "5m") for block in marked if "cache_control" in block]
    return found[-1] if found else None


def _count_shared(before: Sequence[tuple[str, int]], now: Sequence[tuple[str, int]]) -> int:
    shared = 0
    for one, other in zip(before, now, strict=False):
        if one != other:
            break
        shared += 1
    return shared
