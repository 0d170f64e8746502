"""The difference of two prefixes as a page shows it: equal parts folded, first divergence marked, a table of tools."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from compaction.cache.prefix_diff import (
    BlockChange,
    ChangeKind,
    Divergence,
    PrefixDiff,
    diff_fingerprints,
    diff_requests,
)
from compaction.cache.text_diff import DiffLine, DiffMark, DiffRow, pair_lines
from compaction.prompt.blocks import list_fingerprint_blocks
from compaction.prompt.fingerprint import Fingerprint, ToolPrint
from compaction.prompt.request import LEVELS, BlockPath, PromptLevel, find_server
from dashboard.pages.recorded_requests import RequestPair

MOST_CHANGES = 40  # with text, of one level; the rest is counted
_NOUNS = {PromptLevel.TOOLS: "tool", PromptLevel.SYSTEM: "system block", PromptLevel.MESSAGES: "message"}
_TITLES = {PromptLevel.TOOLS: "Tools", PromptLevel.SYSTEM: "System prompt", PromptLevel.MESSAGES: "Messages"}
_SETTING_WORDS = {
    "strategy": "cache sharing",
    "auto_mode": "auto mode",
    "overage": "usage credits",
    "cached_micro": "results deleted from the cache",
    "context_editing": "context_management",
    "extra_body": "other fields",
}
_STYLES = {
    ChangeKind.ADDED: "add",
    ChangeKind.REMOVED: "del",
    ChangeKind.CHANGED: "change",
    ChangeKind.REORDERED: "change",
}


@dataclass(frozen=True)
class Fold:
    """Equal parts, put away."""

    words: str
    names: tuple[str, ...] = ()
    is_fold: bool = True


@dataclass(frozen=True)
class Change:
    """One part that is not as it was, or several messages of which only hashes are known."""

    words: str
    how: str
    style: str
    sizes: str
    is_first: bool
    lines: tuple[DiffLine, ...] = ()
    is_cut: bool = False
    is_fold: bool = False
    places: str = ""

    @property
    def rows(self) -> tuple[DiffRow, ...]:
        """For two columns."""
        return tuple(pair_lines(self.lines))

    @property
    def is_one_sided(self) -> bool:
        """Nothing stands beside what was added or removed as a whole."""
        return len({line.mark for line in self.lines}) == 1


@dataclass(frozen=True)
class LevelView:
    """One of the three levels of a prefix."""

    name: str
    title: str
    note: str
    blocks: tuple[Fold | Change, ...]


@dataclass(frozen=True)
class ToolChange:
    """A row of the tools table; a tool loaded on demand stands outside the cached prefix."""

    name: str
    server: str | None
    how: str
    parts: tuple[str, ...]
    is_deferred: bool
    before_characters: int | None
    after_characters: int | None
    before_place: int | None = None
    after_place: int | None = None

    @property
    def place_words(self) -> str:
        return _say_places(self.before_place, self.after_place)

    @property
    def before_words(self) -> str:
        return _say_count(self.before_characters)

    @property
    def after_words(self) -> str:
        return _say_count(self.after_characters)


@dataclass(frozen=True)
class PrefixView:
    """All a page tells about two requests."""

    sentence: str
    first: Divergence | None
    levels: tuple[LevelView, ...]
    tools: tuple[ToolChange, ...]
    settings: tuple[str, ...]
    appended_messages: int
    moved_marker_count: int
    is_text_shown: bool
    changes: tuple[BlockChange, ...]

    @property
    def setting_words(self) -> str:
        """Fields of the request by their names, what only a client knows in words."""
        return ", ".join(_SETTING_WORDS.get(name, name) for name in self.settings)


def view_difference(pair: RequestPair, *, cached_tokens: int | None) -> PrefixView:
    """With text where the pair has it on both sides."""
    if pair.before_text is not None and pair.after_text is not None:
        diff = diff_requests(pair.before_text, pair.after_text, cached_tokens=cached_tokens)
    else:
        diff = diff_fingerprints(pair.before, pair.after, cached_tokens=cached_tokens)
    first = _find_first_change(diff)
    return PrefixView(
        sentence=_say_divergence(diff, first),
        first=diff.first,
        levels=tuple(_view_level(level, diff, pair, first) for level in LEVELS),
        tools=(*_list_tools(diff.changes), *_list_deferred(pair.before, pair.after)),
        settings=diff.settings,
        appended_messages=diff.appended_messages,
        moved_marker_count=len(diff.moved_markers),
        is_text_shown=not diff.is_text_withheld,
        changes=diff.changes,
    )


def spell_path(path: BlockPath) -> str:
    """("messages", 3, "content", 0) -> messages[3].content[0]."""
    spelt = ""
    for step in path:
        spelt += f"[{step}]" if isinstance(step, int) else f".{step}" if spelt else step
    return spelt


def _find_first_change(diff: PrefixDiff) -> BlockChange | None:
    """The change at the divergence: the one that sentence and mark name. Of several at one place that of the block
    that stood there, else the first."""
    if diff.first is None:
        return None
    there = [change for change in diff.changes if change.level is diff.first.level and _is_at(change, diff.first)]
    named = (change for change in there if change.name == diff.first.name and change.kind is not ChangeKind.REORDERED)
    return next(named, next(iter(there), None))


def _is_at(change: BlockChange, first: Divergence) -> bool:
    return change.path[:2] == first.path[:2]


def _say_divergence(diff: PrefixDiff, change: BlockChange | None) -> str:
    if diff.first is None:
        if not diff.are_messages_comparable:
            return "Tools and system prompt begin the same; the messages of the two requests cannot be compared."
        return "The previous request is an unchanged prefix of this one."
    place = f"First divergence: {spell_path(diff.first.path)}"
    if diff.first.level is PromptLevel.TOOLS:
        place += f" ({_name_tool(diff.first, change)})"
    if diff.first.character is not None:
        place += f", character {diff.first.character:,}"
    return f"{place}. {diff.first.kept_characters:,} characters before it are identical."


def _name_tool(first: Divergence, change: BlockChange | None) -> str:
    """Read, or Grep where Read stood."""
    return first.name if change is None or change.name == first.name else f"{change.name} replaces {first.name}"


def _view_level(level: PromptLevel, diff: PrefixDiff, pair: RequestPair, first: BlockChange | None) -> LevelView:
    pieces = list_fingerprint_blocks(pair.after, level)
    is_comparable = level is not PromptLevel.MESSAGES or diff.are_messages_comparable
    if not is_comparable:
        return LevelView(level.value, _TITLES[level], "cannot be compared", ())
    changes = [change for change in diff.changes if change.level is level]
    appended = diff.appended_messages if level is PromptLevel.MESSAGES else 0
    same = len(pieces) - appended - len({change.path[1] for change in changes if change.kind is not ChangeKind.REMOVED})
    blocks = tuple(_list_blocks(level, changes, [piece.name for piece in pieces[: len(pieces) - appended]], first))
    if appended:
        blocks = (*blocks, Fold(f"{_count(appended, 'new message')} at the end, as expected"))
    return LevelView(level.value, _TITLES[level], _note_level(level, diff, same), blocks)


def _note_level(level: PromptLevel, diff: PrefixDiff, same: int) -> str:
    if diff.first is None or LEVELS.index(level) < LEVELS.index(diff.first.level):
        return "unchanged"
    if level is diff.first.level:
        return "first divergence"
    words = "after the divergence, so it could not be read from the cache"
    return words if same <= 0 else f"{words}, though {_count(same, _NOUNS[level])} did not change"


def _list_blocks(
    level: PromptLevel, changes: Sequence[BlockChange], names: Sequence[str], first: BlockChange | None
) -> Iterator[Fold | Change]:
    """Changes in their places and equal parts folded between them; what was removed stands where it stood."""
    places = sorted(changes, key=lambda change: (_index(change), change.kind is not ChangeKind.REMOVED))
    changed = {_index(change) for change in changes if change.kind is not ChangeKind.REMOVED}
    shown, upto = 0, 0
    for is_grouped, group in groupby(places, key=_is_hash):
        for each in _group(group) if is_grouped else ([change] for change in group):
            if shown == MOST_CHANGES:
                break
            start = min(_index(each[0]), len(names))
            yield from _fold(level, names, [index for index in range(upto, start) if index not in changed])
            upto = max(upto, start)
            shown += 1
            yield _view_changes(level, each, first)
    if len(places) > shown >= MOST_CHANGES:
        yield Fold(f"{_count(len(places) - shown, 'more change')} not shown")
        return
    yield from _fold(level, names, [index for index in range(upto, len(names)) if index not in changed])


def _is_hash(change: BlockChange) -> bool:
    return change.level is PromptLevel.MESSAGES and change.before is None and change.after is None


def _group(changes: Iterable[BlockChange]) -> Iterator[list[BlockChange]]:
    """Neighbours to which the same happened."""
    run: list[BlockChange] = []
    for change in changes:
        if run and (change.kind is not run[-1].kind or _index(change) != _index(run[-1]) + 1):
            yield run
            run = []
        run.append(change)
    if run:
        yield run


def _fold(level: PromptLevel, names: Sequence[str], indexes: Sequence[int]) -> Iterator[Fold]:
    if indexes:
        told = tuple(names[index] for index in indexes) if level is PromptLevel.TOOLS else ()
        yield Fold(f"{_count(len(indexes), _NOUNS[level])} unchanged", told)


def _view_changes(level: PromptLevel, changes: Sequence[BlockChange], first: BlockChange | None) -> Change:
    change = changes[0]
    is_first = any(each is first for each in changes)
    name = change.name if level is PromptLevel.TOOLS else spell_path(change.path)
    if len(changes) > 1:
        name = f"{_count(len(changes), _NOUNS[level])}, {spell_path(change.path)} to [{_index(changes[-1])}]"
    diff = change.diff if len(changes) == 1 else None
    parts = f" {', '.join(change.parts)}" if change.parts else ""
    return Change(
        words=f"{name}{parts}",
        how=change.kind.value,
        style=_STYLES[change.kind],
        sizes="" if _is_hash(change) else _say_sizes(change),
        is_first=is_first,
        lines=tuple(line for line in diff.lines if line.text or line.mark is not DiffMark.SAME) if diff else (),
        is_cut=diff.is_cut if diff else False,
        places=_say_places(change.old_index, change.new_index) if change.kind is ChangeKind.REORDERED else "",
    )


def _say_sizes(change: BlockChange) -> str:
    if change.kind is ChangeKind.ADDED:
        return f"{change.after_characters:,} characters"
    if change.kind in (ChangeKind.REMOVED, ChangeKind.REORDERED):
        return f"{change.before_characters:,} characters"
    return f"{change.before_characters:,} to {change.after_characters:,} characters"


def _list_tools(changes: Iterable[BlockChange]) -> Iterator[ToolChange]:
    for change in changes:
        if change.level is PromptLevel.TOOLS:
            yield ToolChange(
                name=change.name,
                server=change.server,
                how=change.kind.value,
                parts=change.parts,
                is_deferred=False,
                before_characters=None if change.kind is ChangeKind.ADDED else change.before_characters,
                after_characters=None if change.kind is ChangeKind.REMOVED else change.after_characters,
                before_place=None if change.kind is ChangeKind.ADDED else change.old_index,
                after_place=change.new_index,
            )


def _list_deferred(before: Fingerprint, after: Fingerprint) -> Iterator[ToolChange]:
    """Tools on demand are no part of the prefix, but their coming and going is what some breaks go with."""
    old, new = _pick_deferred(before), _pick_deferred(after)
    for name in (*old, *(name for name in new if name not in old)):
        was, now = old.get(name), new.get(name)
        if was is not None and now is not None and was.digest == now.digest:
            continue
        how = ChangeKind.CHANGED if was and now else ChangeKind.ADDED if now else ChangeKind.REMOVED
        yield ToolChange(
            name=name,
            server=find_server(name),
            how=how.value,
            parts=(),
            is_deferred=True,
            before_characters=was.size_characters if was else None,
            after_characters=now.size_characters if now else None,
        )


def _pick_deferred(prints: Fingerprint) -> dict[str, ToolPrint]:
    return {tool.name: tool for tool in prints.tools if tool.is_deferred}


def _index(change: BlockChange) -> int:
    place = change.path[1]
    return place if isinstance(place, int) else 0


def _say_places(before: int | None, after: int | None) -> str:
    """[3] → [0]; one side alone where there is no other, or where it is the same."""
    if before == after:
        return "" if after is None else f"[{after}]"
    return " ".join(
        word
        for word in (f"[{before}]" if before is not None else "", "→", f"[{after}]" if after is not None else "")
        if word
    )


def _say_count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"  # noqa: RUF001 (as tables say that there is nothing)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
