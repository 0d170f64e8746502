"""What an open page wants to be told, as it stands in the address it asks with."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

MOST_SESSIONS = 120  # more than any page shows
_SINCE = re.compile(r"([a-zA-Z0-9_-]{1,60}):([0-9]{1,18})", re.ASCII)
_SESSION = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class Wanted:
    """`since`: the count of changes that the page was drawn with, by the team's slug. `is_wide`: it also wants to know
    that anything of its teams changed, not only that one of its sessions did."""

    since: Mapping[str, int]
    sessions: frozenset[int] = frozenset()
    is_wide: bool = False

    @classmethod
    def read(cls, query: Mapping[str, str]) -> "Wanted":
        """What cannot be read is not wanted."""
        named = [_SINCE.fullmatch(part) for part in query.get("since", "")[:10_000].split(",")]
        return cls(
            since={found[1]: int(found[2]) for found in named if found},
            sessions=frozenset(read_ids(query.get("sessions", ""))),
            is_wide=query.get("wide") == "yes",
        )


def read_ids(text: str) -> list[int]:
    parts = text[: 20 * MOST_SESSIONS].split(",")[:MOST_SESSIONS]
    return [int(part) for part in parts if _SESSION.fullmatch(part)]


def spell_since(counts: Mapping[str, int]) -> str:
    return ",".join(f"{slug}:{number}" for slug, number in counts.items())
