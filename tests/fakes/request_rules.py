"""What the Messages API refuses before any model is asked: missing and unknown fields, turns that do not fit."""

from collections.abc import Iterator, Mapping
from typing import Any

NEW_VERSION = "2026-10-21"
MOST_MARKERS = 4
_NEEDED = ("model", "messages", "max_tokens")
_SAMPLING = ("temperature", "top_p", "top_k")
_PROMPT = ("system", "tools", "tool_choice", "thinking", "cache_control", "context_management", "mcp_servers")
_SHAPE = ("stream", "stop_sequences", "output_config", "output_format", "compaction", "diagnostics", "metadata")
_PLACE = ("service_tier", "container", "inference_geo", "speed", "fallbacks")
_FIELDS = frozenset((*_NEEDED, *_SAMPLING, *_PROMPT, *_SHAPE, *_PLACE))


def find_fault(body: Mapping[str, object], *, version: str | None, is_count: bool) -> str | None:
    """The message of the 400, or None for a request that is in order."""
    if not version:
        return "anthropic-version: header is required"
    needed = _NEEDED[:2] if is_count else _NEEDED
    for name in needed:
        if body.get(name) is None:
            return f"{name}: Field required"
    unknown = sorted(set(body) - _FIELDS)
    if unknown:
        return f"{unknown[0]}: Extra inputs are not permitted"
    if version >= NEW_VERSION and (given := next((name for name in _SAMPLING if name in body), None)):
        return f"{given}: Extra inputs are not permitted"
    return next(_find_faults_of_messages(body.get("messages")), None) or _count_markers(body)


def _find_faults_of_messages(messages: object) -> Iterator[str]:
    if not isinstance(messages, list) or not messages:
        yield "messages: at least one message is required"
        return
    if messages[0].get("role") != "user" and not _opens_with_compaction(messages[0]):
        yield 'messages: first message must use the "user" role'
    asked: set[str] = set()
    for number, message in enumerate(messages):
        blocks = message.get("content")
        blocks = blocks if isinstance(blocks, list) else [{"type": "text", "text": blocks}]
        if any(block.get("type") == "text" and not block.get("text") for block in blocks):
            yield f"messages.{number}: text content blocks must be non-empty"
        answered = {block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"}
        if answered - asked:
            yield f"messages.{number}: unexpected `tool_use_id` found in `tool_result` blocks"
        if asked - answered:
            yield f"messages.{number - 1}: `tool_use` ids were found without `tool_result` blocks immediately after"
        asked = {block["id"] for block in blocks if block.get("type") == "tool_use"}
    if asked:
        yield f"messages.{len(messages) - 1}: `tool_use` ids were found without `tool_result` blocks immediately after"


def _opens_with_compaction(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and bool(content) and content[0].get("type") == "compaction"


def _count_markers(body: Mapping[str, object]) -> str | None:
    count = sum(_count_below(body.get(name)) for name in ("tools", "system", "messages"))
    if count > MOST_MARKERS:
        return f"A maximum of {MOST_MARKERS} blocks with cache_control may be provided. Found {count}."
    return None


def _count_below(value: object) -> int:
    if isinstance(value, list):
        return sum(_count_below(each) for each in value)
    if isinstance(value, dict):
        return (value.get("cache_control") is not None) + _count_below(value.get("content"))
    return 0
