"""Whose session it is: Claude Code's, or another agent's. Windows, lines and sentences depend on it."""

from collections.abc import Iterable

from compaction.timeline.observations import REPORT, Observation

# The ids of facts begin with who told them; these are heard from Claude Code alone.
_OF_CLAUDE_CODE = ("hook:", "status:", "otlp:")
_OF_ANY_AGENT = "otlp:span:"  # by the GenAI conventions; spans of Claude Code are named apart
_PROXIED = "proxied"
_UNNAMED = "proxy-"  # how dashboard.proxy.conversations calls a session whose client names none


def is_of_claude_code(facts: Iterable[Observation], external_id: str) -> bool:
    """Whether anything says so: what nobody says is another agent's. A transcript says it with its first lines."""
    is_named = not external_id.startswith(_UNNAMED)
    return any(_tells_claude_code(fact, is_named=is_named) for fact in facts)


def _tells_claude_code(fact: Observation, *, is_named: bool) -> bool:
    if fact.type != REPORT:
        # Lines that we write of what other agents tell have neither.
        return fact.version is not None or fact.cwd is not None
    if fact.id.startswith(_PROXIED):
        # The version is read from its user agent; and only Claude Code names its session, in a header or its user id.
        return fact.version is not None or is_named
    return fact.id.startswith(_OF_CLAUDE_CODE) and not fact.id.startswith(_OF_ANY_AGENT)
