"""Reads usage as the API writes it: in the head of a line, decoded in one pass, or as the fields of any response."""

from collections.abc import Mapping
from typing import Annotated

import msgspec

from compaction.transcripts.entries import Iteration, Usage
from compaction.transcripts.json_fields import LARGEST_COUNT, get_count, get_fields, get_items, get_text

_Count = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_COUNT)]


# gc=False: the structs hold no cycles.
class CacheCreationHead(msgspec.Struct, gc=False):
    """Cache writes by lifetime."""

    ephemeral_5m_input_tokens: _Count | None = None
    ephemeral_1h_input_tokens: _Count | None = None


class ServerToolsHead(msgspec.Struct, gc=False):
    """Requests of the server's own tools."""

    web_search_requests: _Count | None = None
    web_fetch_requests: _Count | None = None


class OutputDetailsHead(msgspec.Struct, gc=False):
    """The parts of the output."""

    thinking_tokens: _Count | None = None


class TokensHead(msgspec.Struct, gc=False):
    """Figures of a response, or of one iteration of it."""

    input_tokens: _Count | None = None
    cache_creation_input_tokens: _Count | None = None
    cache_read_input_tokens: _Count | None = None
    output_tokens: _Count | None = None
    cache_creation: CacheCreationHead | None = None
    type: str | None = None
    model: str | None = None


class UsageHead(TokensHead, gc=False):
    """The usage of a line, as far as it is read."""

    service_tier: str | None = None
    inference_geo: str | None = None
    speed: str | None = None
    server_tool_use: ServerToolsHead | None = None
    output_tokens_details: OutputDetailsHead | None = None
    iterations: list[TokensHead] | None = None
    cache_deleted_input_tokens: _Count | None = None


def build_usage(head: UsageHead) -> Usage:
    """Return the usage of a line, from its head."""
    details, server = head.output_tokens_details, head.server_tool_use
    written, at_5m, at_1h = _split_head(head)
    return Usage(
        input_tokens=head.input_tokens or 0,
        output_tokens=head.output_tokens or 0,
        cache_creation_tokens=written,
        cache_creation_5m_tokens=at_5m,
        cache_creation_1h_tokens=at_1h,
        cache_read_tokens=head.cache_read_input_tokens or 0,
        thinking_tokens=details.thinking_tokens if details else None,
        web_search_requests=(server.web_search_requests or 0) if server else 0,
        web_fetch_requests=(server.web_fetch_requests or 0) if server else 0,
        iterations=tuple(_make_iteration(tokens) for tokens in head.iterations) if head.iterations else (),
        service_tier=head.service_tier,
        speed=head.speed,
        inference_geo=head.inference_geo,
        cache_deleted_tokens=head.cache_deleted_input_tokens or 0,
    )


def _make_iteration(tokens: TokensHead) -> Iteration:
    total, at_5m, at_1h = _split_head(tokens)
    return Iteration(
        type=tokens.type or "message",
        model=tokens.model,
        input_tokens=tokens.input_tokens or 0,
        output_tokens=tokens.output_tokens or 0,
        cache_creation_tokens=total,
        cache_creation_5m_tokens=at_5m,
        cache_creation_1h_tokens=at_1h,
        cache_read_tokens=tokens.cache_read_input_tokens or 0,
    )


def _split_head(tokens: TokensHead) -> tuple[int, int, int]:
    total, split = tokens.cache_creation_input_tokens or 0, tokens.cache_creation
    if split is None:
        return total, total, 0
    return _split_writes(total, split.ephemeral_5m_input_tokens, split.ephemeral_1h_input_tokens)


def _split_writes(total: int, at_5m: int | None, at_1h: int | None) -> tuple[int, int, int]:
    """Return cache writes in all, at 5 minutes and at 1 hour; without a split they all count as 5 minutes."""
    return (total, total, 0) if at_5m is None and at_1h is None else (total, at_5m or 0, at_1h or 0)


def read_usage(fields: Mapping[str, object]) -> Usage:
    """Return the usage of a response; a field of the wrong type counts as absent."""
    server = get_fields(fields, "server_tool_use")
    return Usage(
        **_read_tokens(fields),
        thinking_tokens=get_count(get_fields(fields, "output_tokens_details"), "thinking_tokens"),
        web_search_requests=get_count(server, "web_search_requests") or 0,
        web_fetch_requests=get_count(server, "web_fetch_requests") or 0,
        iterations=tuple(
            Iteration(type=get_text(item, "type") or "message", model=get_text(item, "model"), **_read_tokens(item))
            for item in get_items(fields, "iterations")
            if isinstance(item, Mapping)
        ),
        service_tier=get_text(fields, "service_tier"),
        speed=get_text(fields, "speed"),
        inference_geo=get_text(fields, "inference_geo"),
        cache_deleted_tokens=get_count(fields, "cache_deleted_input_tokens") or 0,
    )


def _read_tokens(fields: Mapping[str, object]) -> dict[str, int]:
    split = get_fields(fields, "cache_creation")
    by_ttl = (get_count(split, f"ephemeral_{name}_input_tokens") for name in ("5m", "1h"))
    total, at_5m, at_1h = _split_writes(get_count(fields, "cache_creation_input_tokens") or 0, *by_ttl)
    return {
        "input_tokens": get_count(fields, "input_tokens") or 0,
        "output_tokens": get_count(fields, "output_tokens") or 0,
        "cache_creation_tokens": total,
        "cache_creation_5m_tokens": at_5m,
        "cache_creation_1h_tokens": at_1h,
        "cache_read_tokens": get_count(fields, "cache_read_input_tokens") or 0,
    }
