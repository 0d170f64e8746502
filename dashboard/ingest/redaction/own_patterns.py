"""A team's own patterns: checked so that none can stall an import."""

import re


class BadPattern(ValueError):
    """A pattern that cannot be used; the text says why."""


_PARTS = re.compile(
    rb"(?P<escape>\\(?P<letter>.))|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<many>[*+]|\{\d*,\})"
    rb"|\{(?P<low>\d*),?(?P<high>\d*)\}|(?P<other>.)",
    re.DOTALL,
)
_MOST_PATHS = 1000


def compile_own(name: str, pattern: str) -> "re.Pattern[bytes]":
    """A team's pattern may not stall the import: repeats are bounded and the ways to match at one place are few."""
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,39}", name):
        raise BadPattern(f"The name {name!r} is not lower-case letters, digits and hyphens.")
    if not pattern.isascii():
        raise BadPattern(f"The pattern {name} holds characters outside ASCII.")
    try:
        compiled = re.compile(pattern.encode())
    except re.error as error:
        raise BadPattern(f"The pattern {name} is not a regular expression: {error}.") from error
    if compiled.match(b"") or compiled.search(b"\n"):
        raise BadPattern(f"The pattern {name} matches the empty text.")
    if _ways(name, pattern.encode()) > _MOST_PATHS:
        raise BadPattern(f"The pattern {name} has too many ways to match: narrow its repeats.")
    return compiled


def _ways(name: str, pattern: bytes) -> int:
    """How many ways a pattern has to match at one place, at most."""
    ways, after_group = 1, False
    for part in _PARTS.finditer(pattern):
        if part["letter"] and part["letter"].isdigit():
            raise BadPattern(f"The pattern {name} refers back to a group.")
        if part["many"]:
            raise BadPattern(f"The pattern {name} repeats without end: write {{1,100}} instead of + or *.")
        if after_group and part["low"] is not None:
            raise BadPattern(f"The pattern {name} repeats a group: only ? may follow a group.")
        if part["low"] is not None and part["high"]:
            ways *= max(1, int(part["high"]) - int(part["low"] or 0) + 1)
        if part["other"] in (b"|", b"?"):
            ways *= 2
        after_group = part["other"] == b")"
    return ways
