"""A request as the cache sees it: tools, system blocks and messages with their markers set apart.

Made from a Messages API body of any client; request_lines makes the same from transcripts. Nothing is hashed here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from compaction.context.cache_ttl import DEFAULT_TTL
from compaction.transcripts.json_fields import get_fields, get_items, get_text

BlockPath = tuple[str | int, ...]
Fields = Mapping[str, object]

# The client's first system block: a version stamp that differs between prompts and is not part of the prefix.
BILLING_LINE = "x-anthropic-billing-header"

# Fields beside the prompt that never were part of a cache key: who asks, how much may be answered, how it is sent.
_OUTSIDE_KEY = frozenset(
    {
        "messages", "system", "tools", "model", "metadata", "stream", "max_tokens", "stop_sequences", "temperature",
        "top_p", "top_k", "service_tier", "diagnostics", "betas", "cache_control",
    }
)  # fmt: skip
# Said outright, these are what the API does anyway: the same prompt.
_DEFAULTS: Mapping[str, object] = {
    "thinking": {"type": "disabled"},
    "tool_choice": {"type": "auto"},
    "speed": "standard",
    "effort": "high",
    "auto_mode": "off",
    "overage": "off",
}


class PromptLevel(StrEnum):
    """The three levels of a prefix, in the order the server reads them."""

    TOOLS = "tools"
    SYSTEM = "system"
    MESSAGES = "messages"


LEVELS = tuple(PromptLevel)


@dataclass(frozen=True, slots=True)
class Marker:
    """One cache_control: where it stands (body paths without the billing block), its lifetime and scope."""

    path: BlockPath
    ttl: str = DEFAULT_TTL
    scope: str | None = None

    @property
    def level(self) -> PromptLevel:
        """Which part of the prefix it closes."""
        return PromptLevel(str(self.path[0]))

    @property
    def index(self) -> int:
        """The tool, system block or message it stands on."""
        place = self.path[1] if len(self.path) > 1 else -1
        return place if isinstance(place, int) else -1


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool definition without its marker; a deferred one is outside the prefix until it is searched for."""

    name: str
    fields: Fields
    is_deferred: bool = False

    @property
    def is_web_search(self) -> bool:
        """Whether this is the server's own web search."""
        return (get_text(self.fields, "type") or "").startswith("web_search")


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message without markers; `opaque_hash` stands for content that only the client could name."""

    role: str
    blocks: tuple[Fields, ...] = ()
    details: Fields | None = None
    opaque_hash: str | None = None


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """Everything a cache key is made of. `settings` are the fields beside the prompt, by the name of their cause."""

    model: str | None
    tools: tuple[Tool, ...] = ()
    system: tuple[Fields, ...] = ()
    messages: tuple[PromptMessage, ...] = ()
    markers: tuple[Marker, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    has_billing_line: bool = False
    are_messages_known: bool = True

    @property
    def are_messages_opaque(self) -> bool:
        """Whether messages are known by the client's own hashes only."""
        return any(message.opaque_hash is not None for message in self.messages)


def write_canonical(value: object) -> str:
    """One text for one value, keys in their order: the server compares bytes, so another order is another prompt.

    Long strings stand as they are behind their length instead of being escaped: most of a prompt is plain text.
    """
    parts: list[str] = []
    _write_value(value, parts, 0)
    return "".join(parts)


# Deeper than a part of a tool result there are only schemas and arguments: small, and best left to the JSON encoder.
_DEEPEST_WALK = 6
_SMALL_AND_DEEP = frozenset({"input", "input_schema"})
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
_TOO_DEEP = '"nested too deeply"'


def write_json(value: object) -> str:
    """Compact JSON, keys in their order. Nesting beyond what the encoder takes is not compared."""
    try:
        return _encoder.encode(value)
    except RecursionError:
        return _TOO_DEEP


def _write_value(value: object, parts: list[str], depth: int) -> None:
    if isinstance(value, str):
        parts.append(f"{len(value)}:{value}")
    elif value is None:
        parts.append("null")
    elif isinstance(value, dict) and depth < _DEEPEST_WALK:
        parts.append("{")
        for key, item in value.items():
            if isinstance(item, str):
                parts.append(f"{len(key)}.{key}={len(item)}:{item}")
            elif key in _SMALL_AND_DEEP:
                parts.append(f"{len(key)}.{key}={write_json(item)}")
            else:
                parts.append(f"{len(key)}.{key}=")
                _write_value(item, parts, depth + 1)
        parts.append("}")
    elif isinstance(value, list | tuple) and depth < _DEEPEST_WALK:
        parts.append("[")
        for item in value:
            _write_value(item, parts, depth + 1)
        parts.append("]")
    else:
        parts.append(write_json(value))


def find_server(tool_name: str) -> str | None:
    """The MCP server a tool belongs to, from `mcp__server__tool`."""
    if not tool_name.startswith("mcp__"):
        return None
    return tool_name.split("__", 2)[1] or None


def read_request(body: Fields, *, betas: Iterable[str] = (), client_state: Fields | None = None) -> PromptRequest:
    """A Messages API body, normalised. `betas` come from the header, as a list or as the header's own text;
    `client_state` is what only the client knows: strategy, auto_mode, overage, cached_micro (what is deleted from the
    cache, by name). Where the body itself shows strategy or deletions, the client need not tell."""
    markers: list[Marker] = []
    system, has_billing_line = _read_system(body.get("system"), markers)
    tools = _read_tools(get_items(body, "tools"), markers)
    edits: list[object] = []
    scopes = sorted({marker.scope for marker in markers if marker.scope})
    items = get_items(body, "messages")
    messages = tuple(_read_message(item, index, markers, edits) for index, item in enumerate(items))
    if isinstance(body.get("cache_control"), Mapping) and messages:
        path = (PromptLevel.MESSAGES.value, len(messages) - 1, "content", max(0, len(messages[-1].blocks) - 1))
        markers.append(_make_marker(path, get_fields(body, "cache_control")))
    header = [beta.strip() for beta in betas.split(",")] if isinstance(betas, str) else betas
    listed = [*header, *(beta for beta in get_items(body, "betas") if isinstance(beta, str))]
    told = {name: value for name, value in (client_state or {}).items() if value}
    state = {"strategy": "+".join(scopes), "cached_micro": serialize_deletions(_name_deletions(edits)), **told}
    return PromptRequest(
        model=get_text(body, "model"),
        tools=tools,
        system=system,
        messages=messages,
        markers=tuple(sorted(markers, key=_order_marker)),
        settings=read_settings(body, listed, state),
        has_billing_line=has_billing_line,
    )


def serialize_deletions(names: Iterable[str]) -> str:
    """What a request deletes from the cache as the setting `cached_micro`: a name a line, each once."""
    return "\n".join(sorted(set(names)))


def _name_deletions(edits: Iterable[object]) -> Iterator[str]:
    """The results that `cache_edits` blocks delete; an edit of another kind is its own name."""
    for block in edits:
        for edit in block if isinstance(block, list) else [block]:
            name = get_text(edit, "cache_reference") if isinstance(edit, Mapping) else None
            yield name or write_json(edit)


def read_settings(
    params: Fields, betas: Iterable[str], client_state: Fields | None = None
) -> tuple[tuple[str, str], ...]:
    """The fields beside the prompt that belong to the key, by name; what only repeats a default is left out."""
    output = get_fields(params, "output_config")
    found: dict[str, object] = {
        "betas": ",".join(sorted(set(betas))),
        "thinking": params.get("thinking"),
        "effort": output.get("effort"),
        "speed": params.get("speed"),
        "tool_choice": params.get("tool_choice"),
        "context_editing": params.get("context_management"),
        **(client_state or {}),
    }
    extra = {key: value for key, value in output.items() if key != "effort"}
    extra |= {key: value for key, value in params.items() if key not in _OUTSIDE_KEY | _READ_ABOVE}
    if extra:
        found["extra_body"] = {key: extra[key] for key in sorted(extra)}
    kept = {name: value for name, value in found.items() if value not in (None, "") and _DEFAULTS.get(name) != value}
    return tuple((name, _spell(value)) for name, value in sorted(kept.items()))


# Most messages and blocks have nothing else, and so no marker to look for.
_PLAIN_MESSAGE = ("role", "content")
_PLAIN_TEXT = ("type", "text")
_READ_ABOVE = frozenset({"thinking", "output_config", "speed", "tool_choice", "context_management"})


def _spell(value: object) -> str:
    return value if isinstance(value, str) else write_json(value)


def strip_billing_line(system: Sequence[object]) -> tuple[Sequence[object], bool]:
    """The system blocks without the client's version stamp, and whether there was one."""
    if system and isinstance(system[0], Mapping):
        text = get_text(system[0], "text") or ""
        if text.startswith(BILLING_LINE):
            return system[1:], True
    return system, False


def _read_system(system: object, markers: list[Marker]) -> tuple[tuple[Fields, ...], bool]:
    if isinstance(system, str):
        system = [{"type": "text", "text": system}] if system else []
    if not isinstance(system, list):
        return (), False
    kept, has_billing_line = strip_billing_line(system)
    blocks = tuple(
        _take_marker(_as_block(item), (PromptLevel.SYSTEM.value, index), markers) for index, item in enumerate(kept)
    )
    return blocks, has_billing_line


def _read_tools(items: Sequence[object], markers: list[Marker]) -> tuple[Tool, ...]:
    return tuple(
        build_tool(_take_marker(item, (PromptLevel.TOOLS.value, index), markers))
        for index, item in enumerate(items)
        if isinstance(item, Mapping)
    )


def build_tool(fields: Fields) -> Tool:
    """A tool from its definition without marker."""
    name = get_text(fields, "name") or get_text(fields, "type") or ""
    return Tool(name, fields, fields.get("defer_loading") is True)


def _read_message(item: object, index: int, markers: list[Marker], edits: list[object]) -> PromptMessage:
    if not isinstance(item, Mapping):
        return PromptMessage("", (_as_block(item),))
    content, role = item.get("content"), get_text(item, "role") or ""
    details = None
    if len(item) > len(_PLAIN_MESSAGE):
        details = {key: value for key, value in item.items() if key not in ("role", "content", "cache_control")} or None
    if isinstance(content, str):
        return PromptMessage(role, ({"type": "text", "text": content},), details)
    if not isinstance(content, list):
        return PromptMessage(role, (), details)
    blocks: list[Fields] = []
    for place, part in enumerate(content):
        block = _as_block(part)
        if block.get("type") == "cache_edits":
            edits.append(block.get("edits"))
            continue
        is_bare = len(block) == len(_PLAIN_TEXT) and "text" in block
        path = (PromptLevel.MESSAGES.value, index, "content", place)
        blocks.append(block if is_bare else _strip_block(block, path, markers))
    return PromptMessage(role, tuple(blocks), details)


def _strip_block(block: Fields, path: BlockPath, markers: list[Marker]) -> Fields:
    """A content block without markers, those inside a tool result included, and without references for deletions."""
    block = _take_marker(block, path, markers)
    if "cache_reference" in block:
        block = {key: value for key, value in block.items() if key != "cache_reference"}
    parts = block.get("content")
    if isinstance(parts, list) and any(isinstance(part, Mapping) and "cache_control" in part for part in parts):
        inner = [
            _take_marker(part, (*path, "content", place), markers) if isinstance(part, Mapping) else part
            for place, part in enumerate(parts)
        ]
        block = {**block, "content": inner}
    return block


def _as_block(item: object) -> Fields:
    if isinstance(item, Mapping):
        return item
    return {"type": "text", "text": item if isinstance(item, str) else write_json(item)}


def _take_marker(fields: Fields, path: BlockPath, markers: list[Marker]) -> Fields:
    if "cache_control" not in fields:
        return fields
    control = get_fields(fields, "cache_control")
    if control:
        markers.append(_make_marker(path, control))
    return {key: value for key, value in fields.items() if key != "cache_control"}


def _make_marker(path: BlockPath, control: Fields) -> Marker:
    return Marker(path, get_text(control, "ttl") or DEFAULT_TTL, get_text(control, "scope"))


def _order_marker(marker: Marker) -> tuple[int, tuple[int, ...]]:
    return LEVELS.index(marker.level), tuple(step for step in marker.path if isinstance(step, int))
