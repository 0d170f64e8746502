"""What any agent may tell of its sessions, one item at a time. No Django here.

Ids are the caller's own: an item that comes again under its id changes nothing, or replaces what it said before.
"""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from compaction.transcripts.reader import encode_json, load_json
from compaction.transcripts.usage import UsageHead
from dashboard.ingest.hostile_json import MOST_DIGITS, MOST_VALUES, holds_endless_number, holds_too_much
from dashboard.ingest.observed import EARLIEST_YEAR, LATEST_YEAR

MOST_ITEMS = 1_000
MOST_DELETED = 1_000

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]
Words = Annotated[str, msgspec.Meta(max_length=300)]
Path = Annotated[str, msgspec.Meta(max_length=1000)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
Setting = Annotated[str, msgspec.Meta(min_length=1, max_length=60, pattern=r"^[\w.:+-]+$")]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=10_000_000)]
At = Annotated[datetime, msgspec.Meta(tz=True, description="ISO 8601, with a time zone.")]
Described = msgspec.Meta


class ItemRefused(Exception):
    """Nothing of the item was kept; the sentence is for the caller."""


class _Item(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    session: Annotated[Id, Described(description="Your own id of the session.")]


class SessionItem(_Item, frozen=True, kw_only=True, tag="session"):
    """What a session is called, where it works, that it is over. A later one goes before an earlier one."""

    at: At
    title: Words | None = None
    folder: Path | None = None
    branch: Words | None = None
    version: Annotated[Words | None, Described(description="Version of the agent.")] = None
    ended_at: At | None = None


class PromptItem(_Item, frozen=True, kw_only=True, tag="prompt"):
    """System prompt and tools that many requests share: fingerprinted, and kept only where content is."""

    id: Id
    system: str | list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] = []


class ClientState(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a client knows beside the request and what may change its prompt. Where one of it differs from the last
    request, a lost cache has its cause; what is left out is off, or as usual."""

    strategy: Annotated[Setting | None, Described(description="How the cache is shared: `global`, `org`, …")] = None
    auto_mode: bool = False
    overage: Annotated[bool, Described(description="A subscription that is now billed by usage.")] = False
    cached_micro: Annotated[
        list[Id],
        Described(
            max_length=MOST_DELETED,
            description="Ids of tool results that this request deletes from the cache, including earlier deletions. "
            "With more than last time, less is expected to be read. Also read from `cache_edits` blocks of `request`.",
        ),
    ] = []


class CallItem(_Item, frozen=True, kw_only=True, tag="call"):
    """One answer of the model. `usage` as the Messages API gives it; other providers' figures under the same names."""

    id: Annotated[Id, Described(description="Unique in the session.")]
    at: Annotated[At, Described(description="When the response arrived.")]
    model: Id
    usage: UsageHead
    message_id: Annotated[Id | None, Described(description="`msg_…`: matches it with other sources of the call.")] = (
        None
    )
    request_id: Annotated[Id | None, Described(description="`req_…`: likewise.")] = None
    agent: Annotated[Id | None, Described(description="The sub-agent that made the call.")] = None
    stop_reason: Words | None = None
    duration_seconds: Seconds | None = None
    ttft_seconds: Seconds | None = None
    purpose: Annotated[Words | None, Described(description="Only for calls outside the conversation.")] = None
    request: Annotated[
        dict[str, Any] | None,
        Described(description="The body as sent. Cache breaks are diagnosed by comparing it with the previous one."),
    ] = None
    base: Annotated[Id | None, Described(description="A call whose first `keep` messages precede these.")] = None
    keep: Count = 0
    prompt: Annotated[Id | None, Described(description="A prompt item with this request's system and tools.")] = None
    message_hashes: Annotated[
        list[Id] | None, Described(description="Your own hashes instead of `request.messages`.")
    ] = None
    client_state: Annotated[
        ClientState | None, Described(description="Additional facts; only together with a request.")
    ] = None


class MessageItem(_Item, frozen=True, kw_only=True, tag="message"):
    """One message of the conversation. A team that stores no content keeps its kind and its size."""

    id: Id
    at: At
    role: Literal["user", "assistant"]
    content: str | list[dict[str, Any]]
    parent: Annotated[Id | None, Described(description="The previous message or compaction.")] = None
    agent: Id | None = None


class CompactionItem(_Item, frozen=True, kw_only=True, tag="compaction"):
    """The conversation was replaced by a summary (full), or old tool results were cleared (micro), or deleted from the
    cache alone (deletion), or that failed. The next call may read less from the cache."""

    id: Id
    at: At
    kind: Literal["full", "micro", "deletion"] = "full"
    trigger: Literal["auto", "manual"] = "auto"
    before_tokens: Count | None = None
    after_tokens: Count | None = None
    saved_tokens: Count | None = None
    cleared_count: Count = 0
    duration_seconds: Seconds | None = None
    summary: str | None = None
    parent: Annotated[Id | None, Described(description="The last message before it.")] = None
    failure: Annotated[Words | None, Described(description="Why it failed; omit if it succeeded.")] = None
    agent: Id | None = None


RawItem = msgspec.Raw
Item = SessionItem | PromptItem | CallItem | MessageItem | CompactionItem


class Batch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    items: list[RawItem]


_BATCH = msgspec.json.Decoder(Batch)
_ITEM = msgspec.json.Decoder(Item)


def read_batch(data: bytes) -> list[RawItem]:
    """The items, not looked at yet. Raises ItemRefused where there is no list of them."""
    if holds_endless_number(data):
        raise ItemRefused(f"A number in it has more than {MOST_DIGITS:,} digits.")
    try:
        items = _decode_batch(data)
    except (ValueError, RecursionError) as error:
        raise ItemRefused(f'Send {{"items": […]}}: {str(error).rstrip(".")}.') from error
    if len(items) > MOST_ITEMS:
        raise ItemRefused(f"Send at most {MOST_ITEMS:,} items per request.")
    if any(holds_too_much(bytes(item)) for item in items):
        raise ItemRefused(f"An item has more than {MOST_VALUES:,} values.")
    return items


def _decode_batch(data: bytes) -> list[RawItem]:
    try:
        return _BATCH.decode(data).items
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Halves of characters, which many agents write, are forgiven here as everywhere.
        return _BATCH.decode(encode_json(load_json(data)).encode()).items


def read_item(raw: RawItem) -> Item:
    """Raises ItemRefused with a sentence."""
    try:
        item: Item = _ITEM.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ItemRefused(f"{error}.") from error
    times = [getattr(item, name, None) for name in ("at", "ended_at")]
    if any(at is not None and not EARLIEST_YEAR <= at.year < LATEST_YEAR for at in times):
        raise ItemRefused(f"A time lies outside the years {EARLIEST_YEAR} to {LATEST_YEAR}.")
    return item


def describe_batch() -> dict[str, Any]:
    """The body's JSON schema, every type spelt out in place."""
    schemas, named = msgspec.json.schema_components([Item], ref_template="{name}")
    return {
        "type": "object",
        "required": ["items"],
        "properties": {
            "items": {
                "type": "array",
                "maxItems": MOST_ITEMS,
                "description": "Distinguished by `type`: session, prompt, call, message, compaction.",
                "items": {"type": "object", "oneOf": [_spell_out(each, named) for each in schemas[0]["anyOf"]]},
            }
        },
    }


def _spell_out(schema: Any, named: dict[str, Any]) -> Any:
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _spell_out(named[schema["$ref"]], named)
        return {key: _spell_out(value, named) for key, value in schema.items()}
    return [_spell_out(each, named) for each in schema] if isinstance(schema, list) else schema
