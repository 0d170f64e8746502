"""What fills the context: tokens by category, tool and file, files read twice, the largest results."""

import json
from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from operator import itemgetter

from compaction.context.tokens import (
    ResultCache,
    add_margin,
    count_block_tokens,
    count_entry_tokens,
    count_text_tokens,
)
from compaction.transcripts.chain import ContextSlice, is_boundary
from compaction.transcripts.client_protocol import (
    CLEARED_RESULT,
    FILE_TOOLS,
    UNCHANGED_FILE,
    UNCHANGED_FILE_TYPE,
    ToolName,
)
from compaction.transcripts.entries import (
    Block,
    DocumentBlock,
    Entry,
    ImageBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from compaction.transcripts.json_fields import get_count, get_fields, get_text
from compaction.transcripts.payloads import ApiRequestShape, Attachment

LONGEST_STUB_TOKENS = 250  # the stub is one sentence: only results up to this size may be one
WHOLE_FILE_LINES = 10**9
UNKNOWN_TOOL = "unknown"
# Categories without entries. The last: what a transcript that begins in the middle of a conversation lacks, system and
# tools included, as they cannot be separated.
PREFIX, UNRECORDED, BEFORE_FILE = "system and tools", "restored, not recorded", "before this transcript"
# So much of what came before a transcript that begins in the middle may be system and tools: of 146 real sessions that
# begin at their start, half have 40,000 tokens of them, and 97% no more than this.
LARGEST_PREFIX_TOKENS = 44_000
_PATH_KEYS = ("file_path", "notebook_path", "path")


@dataclass(frozen=True, slots=True)
class Share:
    """One part of the context; `name` is the tool, the attachment type or the file where the category has them."""

    category: str
    tokens: int
    count: int
    name: str | None = None


@dataclass(frozen=True, slots=True)
class FileShare:
    """The tokens of one file in the share with this category and tool."""

    category: str
    tool: str
    path: str
    tokens: int


@dataclass(frozen=True, slots=True)
class DuplicateRead:
    """A file read again while an earlier reading of the same lines was still in the context; `entry_uuid` is the last
    such reading."""

    path: str
    read_count: int
    wasted_tokens: int
    entry_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class LargeResult:
    """One tool result by its size."""

    tool_use_id: str
    tool: str
    tokens: int
    path: str | None = None
    entry_uuid: str | None = None


@dataclass(frozen=True, slots=True)
class Composition:
    """All shares, largest first; their tokens are estimates with the margin, the prefix is measured where it can be."""

    shares: tuple[Share, ...]
    files: tuple[Share, ...]
    file_shares: tuple[FileShare, ...]
    duplicate_reads: tuple[DuplicateRead, ...]
    largest_results: tuple[LargeResult, ...]
    is_prefix_known: bool

    @property
    def tokens(self) -> int:
        """The sum of all shares."""
        return sum(share.tokens for share in self.shares)

    def sum_category(self, category: str) -> int:
        """Tokens of one category over all its names."""
        return sum(share.tokens for share in self.shares if share.category == category)


@dataclass(slots=True)
class _Tally:
    tokens: int = 0
    count: int = 0


@dataclass(slots=True)
class _Reading:
    """What was read of one file: line ranges in the context (sorted, disjoint), how often, and what was read twice."""

    ranges: list[tuple[int, int]] = field(default_factory=list)
    count: int = 0
    wasted_tokens: int = 0
    wasted_uuid: str | None = None


@dataclass(slots=True)
class _Count:
    """The counts while entries are added."""

    cache: ResultCache
    shares: dict[tuple[str, str | None], _Tally] = field(default_factory=dict)
    files: dict[str, _Tally] = field(default_factory=dict)
    file_tokens: dict[tuple[str, str, str], int] = field(default_factory=dict)  # by category, tool and path
    requests: dict[str, ToolUseBlock] = field(default_factory=dict)
    readings: dict[str, _Reading] = field(default_factory=dict)
    results: list[tuple[int, int, ToolResultBlock, Entry]] = field(default_factory=list)

    def add(self, category: str, tokens: int, name: str | None = None) -> None:
        tally = self.shares.get((category, name))
        if tally is None:
            tally = self.shares[(category, name)] = _Tally()
        tally.tokens += tokens
        tally.count += 1

    def add_file(self, path: str, tokens: int) -> None:
        tally = self.files.get(path)
        if tally is None:
            tally = self.files[path] = _Tally()
        tally.tokens += tokens
        tally.count += 1

    def add_file_share(self, category: str, tool: str, path: str, tokens: int) -> None:
        key = (category, tool, path)
        self.file_tokens[key] = self.file_tokens.get(key, 0) + tokens


def compute_composition(
    context: ContextSlice,
    *,
    shapes: Iterable[Entry] = (),
    opening: Sequence[Entry] = (),
    largest: int = 10,
    cache: ResultCache | None = None,
) -> Composition:
    """Return the composition of what the model sees. `shapes`: the transcript's `api-request-shape` lines, if any;
    `opening`: the entries of the thread from its first on."""
    count = _Count(cache or ResultCache())
    for entry in context.entries:
        _count_entry(entry, count)
    shares = [
        Share(category, add_margin(tally.tokens), tally.count, name) for (category, name), tally in count.shares.items()
    ]
    prefix = compute_prefix_tokens(context, shapes=shapes, opening=opening, cache=count.cache)
    if prefix is not None:
        shares.append(Share(PREFIX, prefix, 1))
        unrecorded = _count_unrecorded(context, prefix, count.cache)
        shares += [Share(UNRECORDED, unrecorded, 1)] if unrecorded else []
    before = _count_before_file(context, opening, prefix or 0, count.cache)
    shares += [Share(BEFORE_FILE, before, 1)] if before else []
    files = (Share("file", add_margin(tally.tokens), tally.count, path) for path, tally in count.files.items())
    return Composition(
        shares=_sort_shares(shares),
        files=_sort_shares(files),
        file_shares=_list_file_shares(count.file_tokens),
        duplicate_reads=_list_duplicates(count.readings),
        largest_results=_list_largest(count, largest),
        is_prefix_known=prefix is not None,
    )


def compute_prefix_tokens(
    context: ContextSlice,
    *,
    shapes: Iterable[Entry] = (),
    opening: Sequence[Entry] = (),
    cache: ResultCache | None = None,
) -> int | None:
    """Return the tokens of system and tools: of the last known request shape, else what the first call read beyond
    its messages. After a compaction that would include what the client restored without a line, so the first call of
    the context is used only where none is known before it. None where the transcript begins in the middle: its first
    call read the conversation before it too."""
    known = [entry for entry in shapes if isinstance(entry.payload, ApiRequestShape)]
    if known:
        shape = json.dumps(get_fields(known[-1].fields, "shape"), ensure_ascii=False, separators=(",", ":"))
        return add_margin(count_text_tokens(shape))
    here = _find_first_call(context.entries, context.kept_uuids)
    is_midway = begins_midway(opening)
    if is_midway and context.boundary is None:
        return None
    first = None if is_midway else _find_first_call(opening)
    if first is None:
        return here.measure_beyond(cache) if here else None
    # Less may be sent since then, as other tools are offered: never more than a whole prompt.
    prefix = first.measure_beyond(cache)
    return prefix if here is None else min(prefix, here.prompt_tokens)


def begins_midway(opening: Sequence[Entry]) -> bool:
    """Return whether the first message of a thread follows a line that is not in its transcript."""
    by_uuid = {entry.uuid: entry for entry in opening if entry.uuid is not None}
    entry = next((entry for entry in opening if entry.message is not None), None)
    seen = set()
    while entry is not None and entry.parent_uuid is not None and entry.uuid not in seen:
        seen.add(entry.uuid)
        if is_boundary(entry):
            return False
        if entry.parent_uuid not in by_uuid:
            return True
        entry = by_uuid[entry.parent_uuid]
    return False


def _count_before_file(context: ContextSlice, opening: Sequence[Entry], prefix_tokens: int, cache: ResultCache) -> int:
    if context.boundary is not None or not begins_midway(opening):
        return 0
    first = _find_first_call(opening)
    return max(0, first.measure_beyond(cache) - prefix_tokens) if first else 0


def _count_unrecorded(context: ContextSlice, prefix_tokens: int, cache: ResultCache) -> int:
    """Return what came back after a compaction without an entry: the measured rest of the first call."""
    if context.boundary is None:
        return 0
    first = _find_first_call(context.entries, context.kept_uuids)
    return max(0, first.measure_beyond(cache) - prefix_tokens) if first else 0


@dataclass(frozen=True, slots=True)
class _FirstCall:
    """What the first call among some entries sent, and the entries before it."""

    prompt_tokens: int
    before: tuple[Entry, ...]

    def measure_beyond(self, cache: ResultCache | None) -> int:
        return max(0, self.prompt_tokens - add_margin(sum(count_entry_tokens(entry, cache) for entry in self.before)))


def _find_first_call(entries: Sequence[Entry], kept_uuids: frozenset[str] = frozenset()) -> _FirstCall | None:
    for index, entry in enumerate(entries):
        usage = entry.message.usage if entry.message and entry.is_response else None
        if usage is not None and usage.prompt_tokens > 0 and entry.uuid not in kept_uuids:
            return _FirstCall(usage.prompt_tokens, tuple(entries[:index]))
    return None


def _sort_shares(shares: Iterable[Share]) -> tuple[Share, ...]:
    return tuple(sorted(shares, key=lambda share: (-share.tokens, share.category, share.name or "")))


def _list_file_shares(file_tokens: Mapping[tuple[str, str, str], int]) -> tuple[FileShare, ...]:
    shares = (FileShare(*key, add_margin(tokens)) for key, tokens in file_tokens.items() if tokens)
    return tuple(sorted(shares, key=lambda share: (-share.tokens, share.category, share.tool, share.path)))


def _count_entry(entry: Entry, count: _Count) -> None:
    if isinstance(entry.payload, Attachment):
        tokens = count_entry_tokens(entry)
        if tokens:
            count.add("attachments", tokens, entry.payload.kind)
        return
    if entry.message is None or entry.type not in ("user", "assistant"):
        return
    for block in entry.message.content:
        if isinstance(block, ToolResultBlock):
            _count_result(block, entry, count)
        elif isinstance(block, ToolUseBlock):
            _count_request(block, count)
        else:
            count.add(_find_category(block, entry), count_block_tokens(block))


def _count_request(request: ToolUseBlock, count: _Count) -> None:
    tokens = count_block_tokens(request)
    count.requests[request.id] = request
    count.add("tool requests", tokens, request.name)
    path = get_file_path(request)
    if path is not None:
        count.add_file(path, tokens)
        count.add_file_share("tool requests", request.name, path, tokens)


def _find_category(block: Block, entry: Entry) -> str:
    if entry.is_compact_summary:
        return "summary"
    match block:
        case TextBlock():
            return f"{entry.type} text"
        case ThinkingBlock():
            return "thinking"
        case ImageBlock() | DocumentBlock():
            return "images"
        case _:
            return "other"


def get_file_path(request: ToolUseBlock) -> str | None:
    """Return the file that a tool request names, for tools that work on one file."""
    if request.name not in FILE_TOOLS:
        return None
    for key in _PATH_KEYS:
        path = get_text(request.input, key)
        if path:
            return path
    return None


def _count_result(result: ToolResultBlock, entry: Entry, count: _Count) -> None:
    request = count.requests.get(result.tool_use_id)
    tokens = count.cache.count(result)
    media = 0 if result.is_plain else _count_media(result)
    if media:
        count.add("images", media)
    count.add("tool results", tokens - media, request.name if request else UNKNOWN_TOOL)
    count.results.append((tokens, -len(count.results), result, entry))
    path = get_file_path(request) if request else None
    if request is None or path is None:
        return
    count.add_file(path, tokens)
    count.add_file_share("tool results", request.name, path, tokens - media)
    if request.name == ToolName.READ and _is_reading(result, entry, tokens):
        _add_reading(count.readings.setdefault(path, _Reading()), request, entry, tokens)


def _count_media(result: ToolResultBlock) -> int:
    return sum(count_block_tokens(part) for part in result.parts if isinstance(part, ImageBlock | DocumentBlock))


def _is_reading(result: ToolResultBlock, entry: Entry, tokens: int) -> bool:
    """Return whether the result holds the file: not an error, not cleared, not the stub for an unchanged file."""
    if result.is_error or not result.parts:
        return False
    if tokens > LONGEST_STUB_TOKENS:
        return True
    if result.text == CLEARED_RESULT or result.text.startswith(UNCHANGED_FILE):
        return False
    return get_text(get_fields(entry.fields, "toolUseResult"), "type") != UNCHANGED_FILE_TYPE


def _list_largest(count: _Count, largest: int) -> tuple[LargeResult, ...]:
    found = []
    for tokens, _, result, entry in nlargest(largest, count.results, key=itemgetter(0, 1)):
        request = count.requests.get(result.tool_use_id)
        tool, path = (request.name, get_file_path(request)) if request else (UNKNOWN_TOOL, None)
        found.append(LargeResult(result.tool_use_id, tool, add_margin(tokens), path, entry.uuid))
    return tuple(found)


def _add_reading(reading: _Reading, request: ToolUseBlock, entry: Entry, tokens: int) -> None:
    start, stop = _find_range(request.input)
    reading.count += 1
    index = bisect_right(reading.ranges, (start, stop))
    is_free_before = index == 0 or reading.ranges[index - 1][1] <= start
    is_free_behind = index == len(reading.ranges) or stop <= reading.ranges[index][0]
    if is_free_before and is_free_behind:
        insort(reading.ranges, (start, stop))
    else:
        reading.wasted_tokens += tokens
        reading.wasted_uuid = entry.uuid


def _find_range(arguments: Mapping[str, object]) -> tuple[int, int]:
    start = get_count(arguments, "offset") or 1
    return start, start + (get_count(arguments, "limit") or WHOLE_FILE_LINES)


def _list_duplicates(readings: Mapping[str, _Reading]) -> tuple[DuplicateRead, ...]:
    found = [
        DuplicateRead(path, reading.count, add_margin(reading.wasted_tokens), reading.wasted_uuid)
        for path, reading in readings.items()
        if reading.wasted_tokens
    ]
    return tuple(sorted(found, key=lambda duplicate: (-duplicate.wasted_tokens, duplicate.path)))
