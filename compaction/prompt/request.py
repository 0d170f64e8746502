"""A request as the cache sees it: tools, system blocks and messages, with their markers apart. Nothing is hashed here.

Read from a Messages API body, from the raw body in telemetry, or in parts from the `api-request*` lines of a
transcript, which timeline/recorded_requests.py puts together.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from compaction.context.cache_ttl import DEFAULT_TTL
from compaction.errors import BodyUnreadable
from compaction.transcripts.json_fields import get_fields, get_items, get_text
from compaction.transcripts.payloads import CacheMarker
from compaction.transcripts.reader import load_json

BlockPath = tuple[str | int, ...]
Fields = Mapping[str, object]

# The client's first system block: a version stamp that differs between prompts and is not part of the prefix.
BILLING_LINE = "x-anthropic-billing-header"

# Fields beside the prompt that are not part of a cache key: who calls, the limits of the answer, how it is sent.
_OUTSIDE_KEY = frozenset(
    {
        "messages", "system", "tools", "model", "metadata", "stream", "max_tokens", "stop_sequences", "temperature",
        "top_p", "top_k", "service_tier", "diagnostics", "betas", "cache_control",
    }
)  # fmt: skip
# The API's defaults: written out they make the same prompt.
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
    """One cache_control: its position (path in the body without the billing line), its lifetime and scope."""

    path: BlockPath
    ttl: str = DEFAULT_TTL
    scope: str | None = None

    @property
    def level(self) -> PromptLevel:
        """The part of the prefix that it ends."""
        return PromptLevel(str(self.path[0]))

    @property
    def index(self) -> int:
        """The index of its tool, system block or message."""
        index = self.path[1] if len(self.path) > 1 else -1
        return index if isinstance(index, int) else -1


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool definition without its marker. A deferred tool is outside the prefix until a search loads it."""

    name: str
    fields: Fields
    is_deferred: bool = False

    @property
    def is_web_search(self) -> bool:
        """Return whether this is the web search of the API's own server."""
        return (get_text(self.fields, "type") or "").startswith("web_search")


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message without markers. `opaque_hash`: the client's hash, where the content is not known."""

    role: str
    blocks: tuple[Fields, ...] = ()
    details: Fields | None = None
    opaque_hash: str | None = None


@dataclass(frozen=True, slots=True)
class PromptRequest:
    """Everything that determines a cache key. `settings`: the fields beside the prompt, by the name of their cause."""

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
        """Return whether some messages are known by the client's hashes only."""
        return any(message.opaque_hash is not None for message in self.messages)


@dataclass(frozen=True, slots=True)
class RequestShape:
    """The part that many requests share: system prompt and tools, without markers and billing line."""

    system: tuple[Fields, ...]
    tools: tuple[Tool, ...]


def write_canonical(value: object) -> str:
    """Return one text for one value, keys in their order: the server compares bytes, so another order is a new prompt.

    Strings are written with their length instead of being escaped, because most of a prompt is plain text.
    """
    parts: list[str] = []
    _write_value(value, parts, 0)
    return "".join(parts)


# Below a part of a tool result there are only schemas and arguments: small, and fastest in the JSON encoder.
_DEEPEST_WALK = 6
_SMALL_AND_DEEP = frozenset({"input", "input_schema"})
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
_TOO_DEEP = '"nested too deeply"'


def write_json(value: object) -> str:
    """Return compact JSON, keys in their order; one constant for values nested too deeply to encode."""
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
    """Return the MCP server of a tool, from `mcp__server__tool`."""
    if not tool_name.startswith("mcp__"):
        return None
    return tool_name.split("__", 2)[1] or None


def read_request(body: Fields, *, betas: Iterable[str] = (), client_state: Fields | None = None) -> PromptRequest:
    """Return a Messages API body, normalised. `betas`: those of the header, as a list or as its text. `client_state`:
    what only the client knows (strategy, auto_mode, overage, cached_micro: the names of what is deleted from the
    cache). Without it, strategy and deletions are read from the body."""
    markers: list[Marker] = []
    system, has_billing_line = _read_system(body.get("system"), markers)
    tools = _read_tools(get_items(body, "tools"), markers)
    edits: list[object] = []
    scopes = sorted({marker.scope for marker in markers if marker.scope})
    items = get_items(body, "messages")
    messages = tuple(_read_message(item, index, markers, edits) for index, item in enumerate(items))
    if isinstance(body.get("cache_control"), Mapping) and messages:
        path = (PromptLevel.MESSAGES.value, len(messages) - 1, "content", max(0, len(messages[-1].blocks) - 1))
        markers.append(_build_marker(path, get_fields(body, "cache_control")))
    header = [beta.strip() for beta in betas.split(",")] if isinstance(betas, str) else betas
    listed = [*header, *(beta for beta in get_items(body, "betas") if isinstance(beta, str))]
    overrides = {name: value for name, value in (client_state or {}).items() if value}
    state = {"strategy": "+".join(scopes), "cached_micro": serialize_deletions(_list_deletions(edits)), **overrides}
    return PromptRequest(
        model=get_text(body, "model"),
        tools=tools,
        system=system,
        messages=messages,
        markers=tuple(sorted(markers, key=_order_marker)),
        settings=read_settings(body, listed, state),
        has_billing_line=has_billing_line,
    )


def read_raw_body(body: bytes | str, *, betas: Iterable[str] = ()) -> PromptRequest:
    """Return the request of a raw body, such as telemetry carries. Raise BodyUnreadable when it was cut."""
    data = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    try:
        fields = load_json(data)
    except (ValueError, RecursionError) as error:
        raise BodyUnreadable(len(data)) from error
    if not isinstance(fields, Mapping):
        raise BodyUnreadable(len(data))
    return read_request(fields, betas=betas)


def serialize_deletions(names: Iterable[str]) -> str:
    """Return the names of what a request deletes from the cache as its setting `cached_micro`: sorted, one a line."""
    return "\n".join(sorted(set(names)))


def _list_deletions(edits: Iterable[object]) -> Iterator[str]:
    """Yield the results that `cache_edits` blocks delete; an edit of another kind is its own name."""
    for block in edits:
        for edit in block if isinstance(block, list) else [block]:
            name = get_text(edit, "cache_reference") if isinstance(edit, Mapping) else None
            yield name or write_json(edit)


def read_settings(
    params: Fields, betas: Iterable[str], client_state: Fields | None = None
) -> tuple[tuple[str, str], ...]:
    """Return the fields beside the prompt that belong to the key, by name, without those that equal a default."""
    output = get_fields(params, "output_config")
    settings: dict[str, object] = {
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
        settings["extra_body"] = {key: extra[key] for key in sorted(extra)}
    return tuple(
        (name, value if isinstance(value, str) else write_json(value))
        for name, value in sorted(settings.items())
        if value not in (None, "") and _DEFAULTS.get(name) != value
    )


# Most messages and blocks have nothing else, and so no marker to look for.
_PLAIN_MESSAGE = ("role", "content")
_PLAIN_TEXT = ("type", "text")
_READ_ABOVE = frozenset({"thinking", "output_config", "speed", "tool_choice", "context_management"})


def strip_billing_line(system: Sequence[object]) -> tuple[Sequence[object], bool]:
    """Return the system blocks without the client's version stamp, and whether there was one."""
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
        _pop_marker(_as_block(item), (PromptLevel.SYSTEM.value, index), markers) for index, item in enumerate(kept)
    )
    return blocks, has_billing_line


def _read_tools(items: Sequence[object], markers: list[Marker]) -> tuple[Tool, ...]:
    return tuple(
        build_tool(_pop_marker(item, (PromptLevel.TOOLS.value, index), markers))
        for index, item in enumerate(items)
        if isinstance(item, Mapping)
    )


def build_tool(fields: Fields) -> Tool:
    """Return a tool from its definition without marker."""
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
    for position, part in enumerate(content):
        block = _as_block(part)
        if block.get("type") == "cache_edits":
            edits.append(block.get("edits"))
            continue
        is_bare = len(block) == len(_PLAIN_TEXT) and "text" in block
        path = (PromptLevel.MESSAGES.value, index, "content", position)
        blocks.append(block if is_bare else _strip_block(block, path, markers))
    return PromptMessage(role, tuple(blocks), details)


def _strip_block(block: Fields, path: BlockPath, markers: list[Marker]) -> Fields:
    """Return a content block without markers, inside a tool result too, and without references for deletions."""
    block = _pop_marker(block, path, markers)
    if "cache_reference" in block:
        block = {key: value for key, value in block.items() if key != "cache_reference"}
    parts = block.get("content")
    if isinstance(parts, list) and any(isinstance(part, Mapping) and "cache_control" in part for part in parts):
        inner = [
            _pop_marker(part, (*path, "content", position), markers) if isinstance(part, Mapping) else part
            for position, part in enumerate(parts)
        ]
        block = {**block, "content": inner}
    return block


def _as_block(item: object) -> Fields:
    if isinstance(item, Mapping):
        return item
    return {"type": "text", "text": item if isinstance(item, str) else write_json(item)}


def _pop_marker(fields: Fields, path: BlockPath, markers: list[Marker]) -> Fields:
    if "cache_control" not in fields:
        return fields
    control = get_fields(fields, "cache_control")
    if control:
        markers.append(_build_marker(path, control))
    return {key: value for key, value in fields.items() if key != "cache_control"}


def _build_marker(path: BlockPath, control: Fields) -> Marker:
    return Marker(path, get_text(control, "ttl") or DEFAULT_TTL, get_text(control, "scope"))


def _order_marker(marker: Marker) -> tuple[int, tuple[int, ...]]:
    return LEVELS.index(marker.level), tuple(step for step in marker.path if isinstance(step, int))


def read_shape(shape: Fields) -> RequestShape:
    """Return the shape from the field `shape` of an `api-request-shape` line."""
    system, _ = strip_billing_line(get_items(shape, "system"))
    tools = get_items(shape, "tools")
    return RequestShape(
        system=tuple(
            _without_marker(item) if isinstance(item, Mapping) else {"type": "text", "text": str(item)}
            for item in system
        ),
        tools=tuple(build_tool(_without_marker(item)) for item in tools if isinstance(item, Mapping)),
    )


def _without_marker(fields: Fields) -> Fields:
    return {key: value for key, value in fields.items() if key != "cache_control"}


def parse_marker(marker: CacheMarker) -> Marker | None:
    """Return a marker of an `api-request` line; None where it is on nothing of the prompt."""
    if not marker.path or marker.path[0] not in ("tools", "system", "messages"):
        return None
    return Marker(marker.path, marker.ttl or DEFAULT_TTL)
