"""The types of a transcript: entries, messages, content blocks and usage.

Frozen structs, because the reader makes several for every line, without cycles (gc=False). No JSON is read here: the
reader passes lazily decoded content and fields, the compactors pass plain ones.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar, overload

import msgspec

from compaction.transcripts.payloads import Payload

SYNTHETIC_MODEL = "<synthetic>"  # the client's model name on messages it made itself, always with zero usage


class Iteration(msgspec.Struct, frozen=True, gc=False):
    """One sampling inside a response; `compaction` iterations are billed but absent from the top-level usage."""

    type: str
    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_creation_5m_tokens: int = 0
    cache_creation_1h_tokens: int = 0
    cache_read_tokens: int = 0

    @property
    def context_tokens(self) -> int:
        """The context after this sampling."""
        return self.input_tokens + self.cache_creation_tokens + self.cache_read_tokens + self.output_tokens


class Usage(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Tokens of one API call as reported. Creation without a 5m/1h split counts as 5m."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_creation_tokens: int = 0
    cache_creation_5m_tokens: int = 0
    cache_creation_1h_tokens: int = 0
    cache_read_tokens: int = 0
    thinking_tokens: int | None = None
    web_search_requests: int = 0
    web_fetch_requests: int = 0
    iterations: tuple[Iteration, ...] = ()
    service_tier: str | None = None
    speed: str | None = None
    inference_geo: str | None = None
    cache_deleted_tokens: int = 0  # all so far, by edits of the cache: not part of the prompt

    @property
    def prompt_tokens(self) -> int:
        """What was sent: plain input, cache writes and cache reads."""
        return self.input_tokens + self.cache_creation_tokens + self.cache_read_tokens

    @property
    def context_tokens(self) -> int:
        """The context after the response: after the last `message` iteration when there are iterations."""
        if self.iterations:
            for iteration in reversed(self.iterations):
                if iteration.type == "message":
                    return iteration.context_tokens
        return self.input_tokens + self.cache_creation_tokens + self.cache_read_tokens + self.output_tokens

    @property
    def billed(self) -> "Usage":
        """The billed tokens: with a compaction among the iterations their sum, as the top level omits it."""
        if not any(iteration.type == "compaction" for iteration in self.iterations):
            return self
        return self.changed(
            input_tokens=sum(one.input_tokens for one in self.iterations),
            output_tokens=sum(one.output_tokens for one in self.iterations),
            cache_creation_tokens=sum(one.cache_creation_tokens for one in self.iterations),
            cache_creation_5m_tokens=sum(one.cache_creation_5m_tokens for one in self.iterations),
            cache_creation_1h_tokens=sum(one.cache_creation_1h_tokens for one in self.iterations),
            cache_read_tokens=sum(one.cache_read_tokens for one in self.iterations),
        )

    def changed(self, **values: object) -> "Usage":
        """Return a copy with other values."""
        return msgspec.structs.replace(self, **values)


class TextBlock(msgspec.Struct, frozen=True, gc=False):
    """Plain text of either role."""

    text: str
    type: ClassVar[str] = "text"


class ThinkingBlock(msgspec.Struct, frozen=True, gc=False):
    """Reasoning with the signature the API wants back; `redacted` holds the data of a hidden one."""

    thinking: str
    signature: str | None = None
    redacted: str | None = None
    type: ClassVar[str] = "thinking"


class ToolUseBlock(msgspec.Struct, frozen=True, gc=False):
    """A tool request; `input_json` is the compact JSON of the input."""

    id: str
    name: str
    input: Mapping[str, object] = {}
    input_json: str = "{}"
    type: ClassVar[str] = "tool_use"


class ImageBlock(msgspec.Struct, frozen=True, gc=False):
    """An image; its source stays as it was read."""

    source: Mapping[str, object] = {}
    type: ClassVar[str] = "image"


class DocumentBlock(msgspec.Struct, frozen=True, gc=False):
    """A document; its source and the other keys stay as they were read."""

    source: Mapping[str, object] = {}
    details: Mapping[str, object] = {}
    type: ClassVar[str] = "document"


class OtherBlock(msgspec.Struct, frozen=True, gc=False):
    """Any other block, kept whole: server tools, references, types that this library does not know."""

    type: str
    fields: Mapping[str, object] = {}
    json: str = "{}"


ResultPart: TypeAlias = TextBlock | ImageBlock | DocumentBlock | OtherBlock


class ToolResultBlock(msgspec.Struct, frozen=True, gc=False):
    """The answer to a tool request; a string result is one text part with `is_plain` set."""

    tool_use_id: str
    parts: tuple[ResultPart, ...] = ()
    is_error: bool = False
    is_plain: bool = True
    type: ClassVar[str] = "tool_result"

    @property
    def text(self) -> str:
        """The text of all parts, one per line."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextBlock))


Block: TypeAlias = TextBlock | ThinkingBlock | ToolUseBlock | ToolResultBlock | ImageBlock | DocumentBlock | OtherBlock

_T = TypeVar("_T")
_S = TypeVar("_S")


class LazySequence(Sequence[_T], Generic[_T]):
    """A tuple that is made from its source at the first access, so that reading metrics decodes no content."""

    __slots__ = ("_items", "_make", "_source")

    def __init__(self, make: Callable[[_S], tuple[_T, ...]], source: _S) -> None:
        self._make: Callable[[Any], tuple[_T, ...]] | None = make
        self._source: object = source

    def _made(self) -> tuple[_T, ...]:
        if self._make is not None:
            self._items: tuple[_T, ...] = self._make(self._source)
            self._make = self._source = None
        return self._items

    @property
    def source(self) -> object:
        """The source of the tuple; None once it is made."""
        return self._source

    @overload
    def __getitem__(self, index: int) -> _T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[_T, ...]: ...
    def __getitem__(self, index: int | slice) -> _T | tuple[_T, ...]:
        return self._made()[index]

    def __len__(self) -> int:
        return len(self._made())

    def __iter__(self) -> Iterator[_T]:
        return iter(self._made())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LazySequence):
            return self._made() == other._made()
        return self._made() == other if isinstance(other, tuple) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._made())

    def __repr__(self) -> str:
        return repr(self._made())


class LazyFields(Mapping[str, object]):
    """The whole JSON object of a line, decoded at the first access."""

    __slots__ = ("_fields", "_make", "_raw")

    def __init__(self, make: Callable[[bytes], Mapping[str, object]], raw: bytes) -> None:
        self._make: Callable[[bytes], Mapping[str, object]] | None = make
        self._raw = raw

    def _made(self) -> Mapping[str, object]:
        if self._make is not None:
            self._fields: Mapping[str, object] = self._make(self._raw)
            self._make = None
        return self._fields

    def __getitem__(self, key: str) -> object:
        return self._made()[key]

    def __len__(self) -> int:
        return len(self._made())

    def __iter__(self) -> Iterator[str]:
        return iter(self._made())

    def __repr__(self) -> str:
        return repr(self._made())


class Message(msgspec.Struct, frozen=True, gc=False):
    """The message of one entry: part of an API response, or what was sent to the API."""

    role: str
    content: Sequence[Block] = ()
    id: str | None = None
    model: str | None = None
    usage: Usage | None = None
    stop_reason: str | None = None
    is_plain: bool = False
    cache_miss_reason: str | None = None

    @property
    def is_synthetic(self) -> bool:
        """Return whether the client itself made it (an error, a placeholder)."""
        return self.model == SYNTHETIC_MODEL


class Entry(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One line of a transcript. `raw` is the line as read, ending included; None once changed or made here."""

    type: str
    subtype: str | None = None
    uuid: str | None = None
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    at: datetime | None = None
    session_id: str | None = None
    agent_id: str | None = None
    is_sidechain: bool = False
    is_meta: bool = False
    is_compact_summary: bool = False
    is_api_error: bool = False
    version: str | None = None
    cwd: str | None = None
    git_branch: str | None = None
    request_id: str | None = None
    message: Message | None = None
    payload: Payload | None = None
    fields: Mapping[str, object] = {}
    raw: bytes | None = None
    line_number: int = 0

    @property
    def is_response(self) -> bool:
        """Return whether it is part of an API response with usage (synthetic zero usage does not count)."""
        message = self.message
        return (
            self.type == "assistant" and message is not None and message.usage is not None and not message.is_synthetic
        )

    @property
    def call_id(self) -> str | None:
        """Return what makes lines one call: the message id, else the request id, else the line's own uuid; None where
        the line is part of no call."""
        if not self.is_response or self.message is None:
            return None
        return self.message.id or self.request_id or self.uuid

    def changed(self, **values: object) -> "Entry":
        """Return a copy with other values and without the raw line, so that the writer serializes it."""
        return msgspec.structs.replace(self, raw=None, **values)

    def __eq__(self, other: object) -> bool:
        """Compare the typed content, without the other fields of the line and its line number."""
        return _read_compared(self) == _read_compared(other) if isinstance(other, Entry) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.type, self.uuid))

    def __repr__(self) -> str:
        return (
            f"Entry(type={self.type!r}, uuid={self.uuid!r}, line_number={self.line_number}, message={self.message!r})"
        )


_read_compared = attrgetter(*(name for name in Entry.__struct_fields__ if name not in ("fields", "line_number")))


class SkippedLine(msgspec.Struct, frozen=True, gc=False):
    """A line, or the rest of one, that is no entry: kept with the reason, so that a transcript can be written whole."""

    kind: Literal["blank", "comment", "malformed", "too_long"]
    line_number: int
    offset: int
    raw: bytes
    reason: str = ""
    size_bytes: int = 0

    @property
    def is_problem(self) -> bool:
        """Return whether content was lost."""
        return self.kind in ("malformed", "too_long")


Item: TypeAlias = Entry | SkippedLine
