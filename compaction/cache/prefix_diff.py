"""Compares two requests block by block: the first divergent block and character, and all changes.

Works on whole requests, or on fingerprints when text is withheld; those have names, sizes and positions only.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import zip_longest

from compaction.cache.text_diff import TextDiff, diff_text, find_first_difference
from compaction.prompt.blocks import PromptBlock, list_fingerprint_blocks, list_request_blocks
from compaction.prompt.fingerprint import Fingerprint
from compaction.prompt.invalidation import CHARACTERS_PER_TOKEN
from compaction.prompt.request import LEVELS, BlockPath, Marker, PromptLevel, PromptRequest, find_server


class ChangeKind(StrEnum):
    """What happened to a block."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    REORDERED = "reordered"


@dataclass(frozen=True, slots=True)
class BlockChange:
    """One tool, system block or message block that changed. `parts` are the changed parts of a tool; the indexes are
    those in its level, None on the side without the block."""

    level: PromptLevel
    path: BlockPath
    name: str
    kind: ChangeKind
    parts: tuple[str, ...] = ()
    before_characters: int = 0
    after_characters: int = 0
    old_index: int | None = None
    new_index: int | None = None
    old: PromptBlock | None = field(default=None, repr=False)
    new: PromptBlock | None = field(default=None, repr=False)

    @property
    def before(self) -> str | None:
        """Return the older text; None where there was none or it is withheld."""
        return self.old.render(self.parts) if self.old else None

    @property
    def after(self) -> str | None:
        """Return the newer text; None where there is none or it is withheld."""
        return self.new.render(self.parts) if self.new else None

    @property
    def server(self) -> str | None:
        """Return the MCP server of a tool."""
        return find_server(self.name) if self.level is PromptLevel.TOOLS else None

    @property
    def diff(self) -> TextDiff | None:
        """Return the lines and words that changed, computed at each use; None where text is withheld."""
        before, after = self.before, self.after
        return None if before is None and after is None else diff_text(before or "", after or "")


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where two prefixes diverge: the block of the older request, and the character inside it where known."""

    level: PromptLevel
    path: BlockPath
    name: str
    character: int | None
    kept_characters: int
    is_addition: bool = False  # nothing of the older request changed at this level; `path` is of the newer one


@dataclass(frozen=True, slots=True)
class PrefixDiff:
    """All differences. `lost_tokens` is what came after the divergence, by the previous call's count where given."""

    first: Divergence | None
    changes: tuple[BlockChange, ...]
    moved_markers: tuple[tuple[BlockPath, BlockPath], ...]
    settings: tuple[str, ...]
    appended_messages: int
    lost_tokens: int
    is_text_withheld: bool
    are_messages_comparable: bool = True

    def find_first_index(self, level: PromptLevel) -> int | None:
        """Return the index of the first change of a level, in the older request; None when nothing changed."""
        change = next((change for change in self.changes if change.level is level), None)
        if change is None:
            return None
        return change.new_index if change.old_index is None else change.old_index


def diff_requests(
    previous: PromptRequest, current: PromptRequest, *, cached_tokens: int | None = None, show_text: bool = True
) -> PrefixDiff:
    """Compare two whole requests. `cached_tokens` is what the previous call read and wrote."""
    sides = _Sides(
        {level: list_request_blocks(previous, level) for level in LEVELS},
        {level: list_request_blocks(current, level) for level in LEVELS},
        show_text=show_text,
        are_messages_comparable=_are_messages_comparable(previous, current),
    )
    settings = _compare_settings(previous, current)
    return _build_diff(sides, settings, (previous.markers, current.markers), cached_tokens)


def diff_fingerprints(previous: Fingerprint, current: Fingerprint, *, cached_tokens: int | None = None) -> PrefixDiff:
    """Compare the fingerprints of two requests whose text is withheld."""
    shared = _count_shared_messages(previous, current)
    sides = _Sides(
        {level: list_fingerprint_blocks(previous, level, first_message=shared) for level in LEVELS},
        {level: list_fingerprint_blocks(current, level, first_message=shared) for level in LEVELS},
        show_text=False,
        are_messages_comparable=_are_messages_comparable(previous, current),
        shared_messages=shared,
        shared_message_characters=sum(previous.message_sizes[:shared]),
    )
    settings = _compare_settings(previous, current)
    return _build_diff(sides, settings, (previous.markers, current.markers), cached_tokens)


def _are_messages_comparable(previous: PromptRequest | Fingerprint, current: PromptRequest | Fingerprint) -> bool:
    """Return whether both lists are known and made by the same hash: a client's hashes cannot be compared with ours."""
    are_known = previous.are_messages_known and current.are_messages_known
    return are_known and previous.are_messages_opaque == current.are_messages_opaque


def _count_shared_messages(previous: Fingerprint, current: Fingerprint) -> int:
    """Return how many messages at the beginning are the same; nearly always all of the previous request."""
    length = min(len(previous.messages), len(current.messages))
    if previous.messages[:length] == current.messages[:length]:
        return length
    pairs = zip(previous.messages, current.messages, strict=False)
    return next(index for index, (old, new) in enumerate(pairs) if old != new)


@dataclass(frozen=True, slots=True)
class _Sides:
    """The blocks of both requests by level, without the messages at the beginning that are known to be the same."""

    before: dict[PromptLevel, Sequence[PromptBlock]]
    after: dict[PromptLevel, Sequence[PromptBlock]]
    show_text: bool
    are_messages_comparable: bool
    shared_messages: int = 0
    shared_message_characters: int = 0


def _build_diff(
    sides: _Sides,
    settings: tuple[str, ...],
    markers: tuple[Sequence[Marker], Sequence[Marker]],
    cached_tokens: int | None,
) -> PrefixDiff:
    messages: list[BlockChange] = []
    appended = 0
    if sides.are_messages_comparable:
        messages, appended = _compare_messages(sides)
    first = _find_divergence(sides)
    return PrefixDiff(
        first=first,
        changes=(*_compare_tools(sides), *_compare_system(sides), *messages),
        moved_markers=_find_moved_markers(*markers),
        settings=settings,
        appended_messages=appended,
        lost_tokens=_count_lost(sides, first, cached_tokens),
        is_text_withheld=not sides.show_text,
        are_messages_comparable=sides.are_messages_comparable,
    )


def _find_divergence(sides: _Sides) -> Divergence | None:
    shared_characters = 0
    for level in LEVELS:
        if level is PromptLevel.MESSAGES and not sides.are_messages_comparable:
            return None
        before, after = sides.before[level], sides.after[level]
        if level is PromptLevel.MESSAGES:
            shared_characters += sides.shared_message_characters
        for index, old in enumerate(before):
            new = after[index] if index < len(after) else None
            if new is None or old.identity != new.identity:
                path, character = _find_character(old, new, show_text=sides.show_text)
                return Divergence(level, path, old.name, character, shared_characters)
            shared_characters += old.size_characters
        if level is not PromptLevel.MESSAGES and len(after) > len(before):
            added = after[len(before)]
            return Divergence(level, added.path, added.name, 0, shared_characters, is_addition=True)
    return None


def _find_character(old: PromptBlock, new: PromptBlock | None, *, show_text: bool) -> tuple[BlockPath, int | None]:
    """Return the block inside a message, and the character inside the block, for which both texts are needed."""
    if new is None:
        return old.path, 0 if show_text else None
    inner_old, inner_new = old.list_parts(), new.list_parts()
    for index, part in enumerate(inner_old):
        other = inner_new[index] if index < len(inner_new) else None
        if other is None or part.identity != other.identity:
            return _find_character(part, other, show_text=show_text)
    before, after = old.render(), new.render()
    if before is None or after is None:
        return old.path, None
    if before == after:
        before, after = old.identity, new.identity
    return old.path, find_first_difference(before, after)


def _count_lost(sides: _Sides, first: Divergence | None, cached_tokens: int | None) -> int:
    if first is None:
        return 0
    total = sum(block.size_characters for level in LEVELS for block in sides.before[level])
    total += sides.shared_message_characters
    lost = total - first.kept_characters
    if cached_tokens is None or total == 0:
        return lost // CHARACTERS_PER_TOKEN
    return cached_tokens * lost // total


def _compare_settings(previous: PromptRequest | Fingerprint, current: PromptRequest | Fingerprint) -> tuple[str, ...]:
    before, after = dict(previous.settings), dict(current.settings)
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return (*(["model"] if previous.model != current.model else []), *sorted(names))


def _compare_tools(sides: _Sides) -> Iterator[BlockChange]:
    before = {tool.name: tool for tool in sides.before[PromptLevel.TOOLS]}
    after = {tool.name: tool for tool in sides.after[PromptLevel.TOOLS]}
    for name, tool in before.items():
        if name not in after:
            yield _build_change(ChangeKind.REMOVED, tool, tool, sides)
    shared = [name for name in after if name in before]
    old_ranks = {name: rank for rank, name in enumerate(name for name in before if name in after)}
    for rank, name in enumerate(shared):
        old, new = before[name], after[name]
        if old.identity != new.identity:
            yield _build_change(ChangeKind.CHANGED, old, new, sides)
        elif old_ranks[name] != rank:
            yield _build_change(ChangeKind.REORDERED, old, new, sides)
    for name, tool in after.items():
        if name not in before:
            yield _build_change(ChangeKind.ADDED, None, tool, sides)


def _compare_system(sides: _Sides) -> Iterator[BlockChange]:
    for old, new in _align(sides.before[PromptLevel.SYSTEM], sides.after[PromptLevel.SYSTEM]):
        yield from _build_pair_change(old, new, sides)


def _compare_messages(sides: _Sides) -> tuple[list[BlockChange], int]:
    """Return the changes in messages, and how many messages were appended after the last one that both have."""
    changes: list[BlockChange] = []
    pairs = list(_align(sides.before[PromptLevel.MESSAGES], sides.after[PromptLevel.MESSAGES]))
    appended = 0
    message_count = sides.shared_messages + len(sides.after[PromptLevel.MESSAGES])
    while pairs and pairs[-1][0] is None:
        last = pairs[-1][1]
        if last is None or last.path[1] != message_count - 1 - appended:
            break
        pairs.pop()
        appended += 1
    for old, new in pairs:
        changes.extend(_compare_inside(old, new, sides))
    return changes, appended


def _compare_inside(old: PromptBlock | None, new: PromptBlock | None, sides: _Sides) -> Iterator[BlockChange]:
    parts_before = old.list_parts() if old is not None else ()
    parts_after = new.list_parts() if new is not None else ()
    if old is None or new is None or not parts_before or not parts_after:
        yield from _build_pair_change(old, new, sides)
        return
    pairs = list(_align(parts_before, parts_after))
    # Without pairs, the same blocks have another role or other details.
    for part_before, part_after in pairs or [(old, new)]:
        yield from _build_pair_change(part_before, part_after, sides)


def _build_pair_change(old: PromptBlock | None, new: PromptBlock | None, sides: _Sides) -> Iterator[BlockChange]:
    if new is not None:
        yield _build_change(ChangeKind.ADDED if old is None else ChangeKind.CHANGED, old, new, sides)
    elif old is not None:
        yield _build_change(ChangeKind.REMOVED, old, old, sides)


def _build_change(kind: ChangeKind, old: PromptBlock | None, block: PromptBlock, sides: _Sides) -> BlockChange:
    """Return the change of `block`, which is the newer side, or the older one of a removed block."""
    new = None if kind is ChangeKind.REMOVED else block
    has_text = sides.show_text and kind is not ChangeKind.REORDERED
    return BlockChange(
        level=block.level,
        path=block.path,
        name=block.name,
        kind=kind,
        parts=old.list_changed_parts(block) if old is not None and kind is ChangeKind.CHANGED else (),
        before_characters=old.size_characters if old else 0,
        after_characters=new.size_characters if new else 0,
        old_index=_get_index(old),
        new_index=_get_index(new),
        old=old if has_text else None,
        new=new if has_text else None,
    )


def _get_index(block: PromptBlock | None) -> int | None:
    index = block.path[1] if block is not None and len(block.path) > 1 else None
    return index if isinstance(index, int) else None


def _align(
    before: Sequence[PromptBlock], after: Sequence[PromptBlock]
) -> Iterator[tuple[PromptBlock | None, PromptBlock | None]]:
    """Return the pairs that differ: rewritten, removed (no newer side) or inserted (no older side). Linear: each step
    jumps to the nearer position at which one side's next block is on the other side."""
    indexes_after, indexes_before = _index_blocks(after), _index_blocks(before)
    old, new = 0, 0
    while old < len(before) and new < len(after):
        if before[old].identity == after[new].identity:
            old, new = old + 1, new + 1
            continue
        inserted = _find_next(indexes_after.get(before[old].identity, ()), new) - new
        removed = _find_next(indexes_before.get(after[new].identity, ()), old) - old
        if inserted > 0 and (removed <= 0 or inserted <= removed):
            yield from ((None, block) for block in after[new : new + inserted])
            new += inserted
        elif removed > 0:
            yield from ((block, None) for block in before[old : old + removed])
            old += removed
        else:
            yield before[old], after[new]
            old, new = old + 1, new + 1
    yield from ((block, None) for block in before[old:])
    yield from ((None, block) for block in after[new:])


def _index_blocks(blocks: Sequence[PromptBlock]) -> dict[str, list[int]]:
    indexes: dict[str, list[int]] = {}
    for index, block in enumerate(blocks):
        indexes.setdefault(block.identity, []).append(index)
    return indexes


def _find_next(indexes: Sequence[int], start: int) -> int:
    """Return the first index from `start` on; -1 when there is none."""
    position = bisect_left(indexes, start)
    return indexes[position] if position < len(indexes) else -1


def _find_moved_markers(before: Sequence[Marker], after: Sequence[Marker]) -> tuple[tuple[BlockPath, BlockPath], ...]:
    """Return pairs of old and new paths of moved markers by level; the missing side of a pair is an empty path."""
    moved: list[tuple[BlockPath, BlockPath]] = []
    for level in LEVELS:
        old = [marker.path for marker in before if marker.level is level]
        new = [marker.path for marker in after if marker.level is level]
        removed, added = [path for path in old if path not in new], [path for path in new if path not in old]
        moved.extend(zip_longest(removed, added, fillvalue=()))
    return tuple(moved)
