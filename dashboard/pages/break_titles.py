"""Title of a cache break or expected rebuild: names what changed, as far as it is known.

"MCP server jira added (1 tool)", "Idle 19 min, cache lived 5 min"; without details the title of the cause.
"""

import re
from collections.abc import Callable, Mapping

from compaction.cache.causes import CAUSES, Cause
from dashboard.words import say_model, say_seconds

_CHANGE = re.compile(r"(?P<before>\S+) -> (?P<now>\S+)")
_TOOL_COUNTS = re.compile(r"\+(?P<added>\d+)/-(?P<removed>\d+) tools(?:; |$)")
_SERVERS = re.compile(r"MCP servers? (?P<change>added|removed): (?P<names>[^;]+)")
_SYSTEM = re.compile(r"from system block (?P<block>\d+) on, (?P<grown>[+-][\d,]+) characters")
_LIFETIMES: Mapping[str, str] = {"5m": "5 min", "1h": "1 h"}
_LONGEST_PART = 80  # characters of a name that the client chose


def title_break(cause: str, detail: str, gap_seconds: float | None) -> str:
    """Return what changed, from the stored cause and detail; the general title of the cause where they do not say."""
    known = Cause(cause) if cause in CAUSES else Cause.UNEXPLAINED
    build = _BUILDERS.get(known)
    special = build(detail, gap_seconds) if build else None
    return special or CAUSES[known].title.removesuffix(".")


def _title_model(detail: str, _gap_seconds: float | None) -> str | None:
    change = _CHANGE.fullmatch(detail)
    return f"Model changed from {say_model(change['before'])} to {say_model(change['now'])}" if change else None


def _title_speed(detail: str, _gap_seconds: float | None) -> str | None:
    change = _CHANGE.fullmatch(detail)
    if change is None or "fast" not in change.group("before", "now"):
        return None
    return f"Fast mode turned {'on' if change['now'] == 'fast' else 'off'}"


def _title_switch(name: str) -> Callable[[str, float | None], str | None]:
    return lambda detail, _gap_seconds: f"{name} turned {detail}" if detail in {"on", "off"} else None


def _title_change(name: str) -> Callable[[str, float | None], str | None]:
    def build(detail: str, _gap_seconds: float | None) -> str | None:
        change = _CHANGE.fullmatch(detail)
        if change is None:
            return None
        before, now = (_LIFETIMES.get(value, value)[:_LONGEST_PART] for value in change.group("before", "now"))
        return f"{name} from {before} to {now}"

    return build


def _title_expired(lifetime: str) -> Callable[[str, float | None], str | None]:
    def build(_detail: str, gap_seconds: float | None) -> str | None:
        return None if gap_seconds is None else f"Idle {_format_pause(gap_seconds)}, cache lived {lifetime}"

    return build


def _format_pause(seconds: float) -> str:
    """Return minutes without seconds from ten minutes on: 19 min, 2 h 5 min."""
    return say_seconds(seconds // 60 * 60 if seconds >= 600 else seconds)


def _title_tools(detail: str, _gap_seconds: float | None) -> str | None:
    """Name the MCP servers that were added or removed, else count the tools."""
    counts = _TOOL_COUNTS.match(detail)
    if counts is None:
        return None
    added, removed = int(counts["added"]), int(counts["removed"])
    servers = {found["change"]: found["names"] for found in _SERVERS.finditer(detail)}
    parts = [
        _count_tools(count, change, servers.get(change, ""))
        for change, count in (("added", added), ("removed", removed))
        if count
    ]
    return ", ".join(parts)[:1].upper() + ", ".join(parts)[1:] if parts else "Tool definitions changed"


def _count_tools(count: int, change: str, servers: str) -> str:
    tools = f"{count} {'tool' if count == 1 else 'tools'}"
    if not servers:
        return f"{tools} {change}"
    return f"MCP {'servers' if ', ' in servers else 'server'} {servers[:_LONGEST_PART]} {change} ({tools})"


def _title_system(detail: str, _gap_seconds: float | None) -> str | None:
    change = _SYSTEM.fullmatch(detail)
    if change is None:
        return None
    return f"System prompt changed at block {change['block']} ({change['grown']} characters)"


def _title_messages(detail: str, _gap_seconds: float | None) -> str | None:
    if detail.startswith("message "):
        return f"{detail.capitalize()} rewritten"
    return detail if detail.endswith(" removed from the end") else None


_BUILDERS: Mapping[Cause, Callable[[str, float | None], str | None]] = {
    Cause.MODEL_CHANGED: _title_model,
    Cause.TOOLS_CHANGED: _title_tools,
    Cause.SYSTEM_CHANGED: _title_system,
    Cause.WEB_SEARCH_TOGGLED: _title_switch("Web search"),
    Cause.CITATIONS_TOGGLED: _title_switch("Citations"),
    Cause.SPEED_CHANGED: _title_speed,
    Cause.EFFORT_CHANGED: _title_change("Effort changed"),
    Cause.TTL_EXPIRED_5M: _title_expired("5 min"),
    Cause.TTL_EXPIRED_1H: _title_expired("1 h"),
    Cause.CLIENT_UPDATED: _title_change("Client updated"),
    Cause.TTL_TIER_CHANGED: _title_change("Cache lifetime changed"),
    Cause.MESSAGES_REWRITTEN: _title_messages,
}
