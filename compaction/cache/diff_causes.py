"""Finds the causes that the difference of two requests shows: each with its reach in the prefix and a line of detail.

Details name tools, servers, positions and sizes; they never hold prompt text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from compaction.cache.causes import Cause, rank_cause
from compaction.cache.prefix_diff import ChangeKind, PrefixDiff, diff_fingerprints
from compaction.llm.lookup import keeps_system_messages
from compaction.prompt.blocks import DESCRIPTION, SCHEMA
from compaction.prompt.fingerprint import Fingerprint
from compaction.prompt.invalidation import PrefixPosition, Reach
from compaction.prompt.markers import LOOKBACK_BLOCKS
from compaction.prompt.request import PromptLevel, find_server

LONGEST_LIST = 5  # names shown before "and n more"

_SETTING_CAUSES = {
    "speed": Cause.SPEED_CHANGED,
    "effort": Cause.EFFORT_CHANGED,
    "thinking": Cause.THINKING_CHANGED,
    "strategy": Cause.STRATEGY_CHANGED,
    "auto_mode": Cause.AUTO_MODE_CHANGED,
    "overage": Cause.OVERAGE_CHANGED,
    "cached_micro": Cause.CACHED_MICRO_CHANGED,
    "betas": Cause.BETAS_CHANGED,
    "extra_body": Cause.EXTRA_BODY_CHANGED,
    "context_editing": Cause.CONTEXT_EDITING_CHANGED,
    "tool_choice": Cause.TOOL_CHOICE_CHANGED,
}
# Settings whose values are shown, and what is shown where they are not set.
_UNSET_SETTINGS = {
    "speed": "default",
    "effort": "default",
    "strategy": "default",
    "auto_mode": "off",
    "overage": "off",
}


_START = PrefixPosition(PromptLevel.TOOLS)
_SYSTEM = PrefixPosition(PromptLevel.SYSTEM)
_MESSAGES = PrefixPosition(PromptLevel.MESSAGES)
# Model-specific, or not documented: at worst everything.
_UNSURE = Reach(_START, None)
_REACHES: Mapping[Cause, Reach] = {
    Cause.MODEL_CHANGED: Reach(_START, _START),
    Cause.CACHING_OFF: Reach(_START, _START),
    Cause.WEB_SEARCH_TOGGLED: Reach(_SYSTEM, _SYSTEM),
    Cause.CITATIONS_TOGGLED: Reach(_SYSTEM, _SYSTEM),
    Cause.SPEED_CHANGED: Reach(_SYSTEM, _SYSTEM),
    Cause.EFFORT_CHANGED: Reach(_START, _MESSAGES),
    Cause.THINKING_CHANGED: Reach(_START, _MESSAGES),
    Cause.TOOL_CHOICE_CHANGED: Reach(_MESSAGES, _MESSAGES),
    Cause.IMAGES_CHANGED: Reach(_MESSAGES, _MESSAGES),
    Cause.SYSTEM_MESSAGE_ADDED: Reach(_SYSTEM, _MESSAGES),
    Cause.LOOKBACK_EXCEEDED: Reach(_MESSAGES, _MESSAGES),
}


def find_reach(cause: Cause) -> Reach:
    """Return how much of the prefix a change affects, where its kind alone decides."""
    return _REACHES.get(cause, _UNSURE)


@dataclass(frozen=True, slots=True)
class RequestChange:
    """One difference between two requests."""

    cause: Cause
    reach: Reach
    detail: str


@dataclass(frozen=True, slots=True)
class ToolChanges:
    """How two tool lists differ, by name, in the order of the newer list; deferred tools are left out."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    new_schema: tuple[str, ...] = ()
    new_description: tuple[str, ...] = ()
    otherwise_changed: tuple[str, ...] = ()
    is_reordered: bool = False
    added_servers: tuple[str, ...] = ()  # MCP servers that had no tool before
    removed_servers: tuple[str, ...] = ()  # MCP servers that have no tool any more

    @property
    def changed(self) -> tuple[str, ...]:
        """Tools of the same name with another definition."""
        return tuple(dict.fromkeys((*self.new_schema, *self.new_description, *self.otherwise_changed)))


def find_diff_causes(previous: Fingerprint, current: Fingerprint) -> tuple[RequestChange, ...]:
    """Return the differences that may have cost the cache; first what changes the prefix nearest to its start."""
    diff = diff_fingerprints(previous, current)
    changes = [
        *_compare_model(previous, current),
        *_compare_tools(previous, current, diff),
        *_compare_system(previous, current, diff),
        *_compare_settings(previous, current),
        *_compare_markers(previous, current),
        *_compare_messages(previous, current, diff),
    ]
    return tuple(sorted(changes, key=lambda change: rank_cause(change.cause)))


def _list_tool_changes(previous: Fingerprint, current: Fingerprint, diff: PrefixDiff) -> ToolChanges:
    tools = [change for change in diff.changes if change.level is PromptLevel.TOOLS]
    changed = [change for change in tools if change.kind is ChangeKind.CHANGED]
    before, after = ([tool.name for tool in each.tools if not tool.is_deferred] for each in (previous, current))
    servers_before, servers_after = _list_servers(before), _list_servers(after)
    return ToolChanges(
        added=tuple(change.name for change in tools if change.kind is ChangeKind.ADDED),
        removed=tuple(change.name for change in tools if change.kind is ChangeKind.REMOVED),
        new_schema=tuple(change.name for change in changed if SCHEMA in change.parts),
        new_description=tuple(change.name for change in changed if DESCRIPTION in change.parts),
        otherwise_changed=tuple(change.name for change in changed if not {SCHEMA, DESCRIPTION} & {*change.parts}),
        is_reordered=[name for name in before if name in after] != [name for name in after if name in before],
        added_servers=tuple(server for server in servers_after if server not in servers_before),
        removed_servers=tuple(server for server in servers_before if server not in servers_after),
    )


def _list_servers(names: Iterable[str]) -> dict[str, None]:
    """Return the MCP servers that these tools belong to, in order."""
    return dict.fromkeys(server for name in names if (server := find_server(name)) is not None)


def list_names(names: Sequence[str]) -> str:
    """Return the names as one text, only the first few of many."""
    shown = ", ".join(names[:LONGEST_LIST])
    return shown if len(names) <= LONGEST_LIST else f"{shown} and {len(names) - LONGEST_LIST} more"


def _compare_model(previous: Fingerprint, current: Fingerprint) -> Iterator[RequestChange]:
    if previous.model != current.model and previous.model and current.model:
        yield _change(Cause.MODEL_CHANGED, f"{previous.model} -> {current.model}")


def _compare_tools(previous: Fingerprint, current: Fingerprint, diff: PrefixDiff) -> Iterator[RequestChange]:
    first = diff.first
    if first is None or first.level is not PromptLevel.TOOLS:
        yield from _compare_deferred(previous, current)
        return
    tools = _list_tool_changes(previous, current, diff)
    switched = {tool.name for tool in (*previous.tools, *current.tools) if tool.is_web_search}
    if switched and not tools.changed and not tools.is_reordered and {*tools.added, *tools.removed} <= switched:
        yield _change(Cause.WEB_SEARCH_TOGGLED, "on" if tools.added else "off")
        return
    first_index = len(previous.tools) if first.is_addition else int(first.path[1])
    position = PrefixPosition(PromptLevel.TOOLS, first_index)
    if tools.added or tools.removed or tools.changed:
        yield RequestChange(Cause.TOOLS_CHANGED, Reach(position, position), describe_tools(tools))
    else:
        order = _describe_order(previous, current, first_index)
        yield RequestChange(Cause.TOOLS_REORDERED, Reach(position, position), order)


def _describe_order(previous: Fingerprint, current: Fingerprint, first_index: int) -> str:
    """Name the tool that replaced another one at its position. Both lists have the same tools."""
    rank = sum(not tool.is_deferred for tool in previous.tools[:first_index])
    now = [tool.name for tool in current.tools if not tool.is_deferred][rank]
    return f"from tools[{first_index}] on: {now} where {previous.tools[first_index].name} stood"


def _compare_deferred(previous: Fingerprint, current: Fingerprint) -> Iterator[RequestChange]:
    old, new = ({tool.name: tool.digest for tool in each.tools if tool.is_deferred} for each in (previous, current))
    if old != new:
        names = [name for name in {**new, **old} if old.get(name) != new.get(name)]
        yield _change(Cause.DEFERRED_TOOLS_CHANGED, list_names(names))


def describe_tools(tools: ToolChanges) -> str:
    """Return one line: how many tools were added and removed, their names and their MCP servers."""
    parts = [f"+{len(tools.added)}/-{len(tools.removed)} tools"]
    for title, names in (
        ("added", tools.added),
        ("removed", tools.removed),
        ("new schema", tools.new_schema),
        ("new description", tools.new_description),
        ("changed", tools.otherwise_changed),
    ):
        if names:
            parts.append(f"{title}: {list_names(names)}")
    if tools.is_reordered:
        parts.append("others reordered")
    changed = {*tools.added_servers, *tools.removed_servers}
    servers = _list_servers((*tools.added, *tools.removed, *tools.changed))
    for title, names in (
        (" added", tools.added_servers),
        (" removed", tools.removed_servers),
        ("", tuple(server for server in servers if server not in changed)),
    ):
        if names:
            parts.append(f"MCP {'server' if len(names) == 1 else 'servers'}{title}: {list_names(names)}")
    return "; ".join(parts)


def _compare_system(previous: Fingerprint, current: Fingerprint, diff: PrefixDiff) -> Iterator[RequestChange]:
    index = diff.find_first_index(PromptLevel.SYSTEM)
    if index is not None:
        growth = sum(block.size_characters for block in current.system)
        growth -= sum(block.size_characters for block in previous.system)
        position = PrefixPosition(PromptLevel.SYSTEM, index)
        detail = f"from system block {index} on, {growth:+,} characters"
        yield RequestChange(Cause.SYSTEM_CHANGED, Reach(position, position), detail)
    if previous.has_citations != current.has_citations:
        yield _change(Cause.CITATIONS_TOGGLED, "on" if current.has_citations else "off")


def _compare_settings(previous: Fingerprint, current: Fingerprint) -> Iterator[RequestChange]:
    before, after = dict(previous.settings), dict(current.settings)
    for name, cause in _SETTING_CAUSES.items():
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if name in _UNSET_SETTINGS:
            unset = _UNSET_SETTINGS[name]
            yield _change(cause, f"{old or unset} -> {new or unset}")
        elif name == "betas":
            yield _change(cause, _describe_betas(old or "", new or ""))
        elif name == "cached_micro":
            more, fewer = current.deletions - previous.deletions, previous.deletions - current.deletions
            yield _change(cause, f"+{len(more)}/-{len(fewer)} deleted results")
        else:
            yield _change(cause, "set" if old is None else "removed" if new is None else "another value")


def _describe_betas(previous: str, current: str) -> str:
    old, new = set(filter(None, previous.split(","))), set(filter(None, current.split(",")))
    return f"+{list_names(sorted(new - old)) or 'none'}; -{list_names(sorted(old - new)) or 'none'}"


def _compare_markers(previous: Fingerprint, current: Fingerprint) -> Iterator[RequestChange]:
    if not previous.markers:
        return
    if not current.markers:
        yield _change(Cause.CACHING_OFF, f"cache breakpoints: {len(previous.markers)} before, none now")
        return
    old, new = (
        {m.path: m for m in each.markers if m.level is not PromptLevel.MESSAGES} for each in (previous, current)
    )
    old_ttls, new_ttls = ({m.ttl for m in each.markers} for each in (previous, current))
    if old_ttls != new_ttls:
        yield _change(Cause.TTL_TIER_CHANGED, f"{'+'.join(sorted(old_ttls))} -> {'+'.join(sorted(new_ttls))}")
    if old.keys() != new.keys():
        yield _change(Cause.MARKERS_CHANGED, f"tools and system: {len(old)} cache breakpoints before, {len(new)} now")


def _compare_messages(previous: Fingerprint, current: Fingerprint, diff: PrefixDiff) -> Iterator[RequestChange]:
    if previous.image_count != current.image_count and diff.are_messages_comparable:
        yield _change(Cause.IMAGES_CHANGED, f"{previous.image_count} before, {current.image_count} now")
    index = diff.find_first_index(PromptLevel.MESSAGES)
    if index is not None:
        position = PrefixPosition(PromptLevel.MESSAGES, index)
        removed = len(previous.messages) - index
        detail = f"message {index} of {len(previous.messages)}"
        if index == len(current.messages):
            detail = f"{removed} {'message' if removed == 1 else 'messages'} removed from the end"
        yield RequestChange(Cause.MESSAGES_REWRITTEN, Reach(position, position), detail)
        return
    added = [index for index in current.system_messages if index >= len(previous.messages)]
    if added and diff.are_messages_comparable and not keeps_system_messages(current.model):
        yield _change(Cause.SYSTEM_MESSAGE_ADDED, f"message {added[0]}")
    distance = _measure_lookback(previous, current)
    if distance is not None and distance >= LOOKBACK_BLOCKS:
        yield _change(Cause.LOOKBACK_EXCEEDED, f"{distance} blocks after the last cache breakpoint")


def _measure_lookback(previous: Fingerprint, current: Fingerprint) -> int | None:
    """Return the blocks from the last marker of the previous request to the nearest later one; None when not known."""
    if not current.message_blocks or not previous.message_blocks:
        return None
    ends = list(accumulate(current.message_blocks, initial=0))
    before = [_get_block(marker.path, ends) for marker in previous.markers if marker.level is PromptLevel.MESSAGES]
    now = [_get_block(marker.path, ends) for marker in current.markers if marker.level is PromptLevel.MESSAGES]
    if not before or not now:
        return None
    return min((block - max(before) for block in now if block >= max(before)), default=None)


def _get_block(path: tuple[str | int, ...], ends: list[int]) -> int:
    message = path[1] if len(path) > 1 and isinstance(path[1], int) else 0
    block = path[3] if len(path) > 3 and isinstance(path[3], int) else 0
    return ends[min(message, len(ends) - 1)] + block


def _change(cause: Cause, detail: str) -> RequestChange:
    return RequestChange(cause, find_reach(cause), detail)
