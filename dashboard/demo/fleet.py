"""Which sessions the demo shows: who worked where and when, what went wrong, and by which way it is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from dashboard.demo.codebase import BOOKING, BOOKS, TIDES, Project
from dashboard.demo.talks import LONG_OPUS, OLD_SONNET, OLDER_SONNET, OPUS, SONNET
from dashboard.models import RunKind

TEAMS = ("Demo Booking", "Demo Harbour")
# The second team is warned earlier than clients warn.
THRESHOLDS: tuple[Mapping[str, object], ...] = ({}, {"warning_margin_tokens": 40_000})
DEVELOPERS = ("ines.demo", "tomas.demo", "yuki.demo")
INES, TOMAS, YUKI = range(3)
DESK, HARBOUR = range(2)


class Way(Enum):
    TRANSCRIPT = auto()
    TELEMETRY = auto()
    PROXY = auto()
    ITEMS = auto()  # of an agent of another kind


@dataclass(frozen=True, slots=True)
class Planned:
    """One session. `plan` names beats of stories, or steps of a proxied client."""

    name: str
    team: int
    developer: int
    project: Project
    hours_ago: float
    plan: tuple[str, ...]
    way: Way = Way.TRANSCRIPT
    model: str = OPUS
    ttl: str = "5m"
    agents: tuple[str, ...] = ()  # what sub-agents were asked for
    reasons: tuple[str, ...] = ()  # of the client, for the last call's miss
    is_open: bool = False  # it is still going on
    has_telemetry: bool = False  # beside its transcript
    own_run: RunKind | None = None  # a compaction of our own that its developer asks for
    has_notes: bool = False  # its developer asks for notes; a run from notes has them too


_GROW, _FILL = ("read much",), ("read everything",) * 3
_EXPLORE = ("Find every caller of the fare API.", "Look for tests that never fail.")

FLEET = (
    # today, and live
    Planned("tariff", DESK, INES, BOOKING, 0.005, ("work", *_GROW * 3, "coffee", "work"), is_open=True, has_notes=True),
    Planned("flicker", DESK, TOMAS, TIDES, 0.02, (*_GROW * 4, "work"), is_open=True, agents=_EXPLORE[1:]),
    Planned("night-board", HARBOUR, YUKI, TIDES, 0.03, ("read everything", "work"), model=LONG_OPUS, is_open=True),
    Planned("party-of-ten", DESK, INES, BOOKING, 1.4, (*_GROW, "coffee", "auto", "work", *_GROW * 3), agents=_EXPLORE),
    Planned("blocked-desk", DESK, YUKI, BOOKS, 2.2, (*_GROW * 3, "to the brim"), own_run=RunKind.FULL),
    Planned("day-close", HARBOUR, YUKI, BOOKS, 3.1, ("lunch", *_GROW * 4), ttl="1h", own_run=RunKind.MICRO_SIZE),
    Planned("deck-plan", HARBOUR, INES, TIDES, 3.6, ("work", "to the warning"), own_run=RunKind.MICRO_IDLE),
    Planned("seat-map", DESK, TOMAS, BOOKING, 4.6, ("server", "system", "effort"), Way.PROXY, SONNET),
    Planned("refund-twice", DESK, TOMAS, BOOKING, 6.0, (*_GROW * 3, "micro", "failed", "work"), has_telemetry=True),
    Planned("gauge-names", HARBOUR, INES, TIDES, 8.0, ("work", *_GROW * 3, "work"), own_run=RunKind.NOTES),
    # yesterday
    Planned("one-cent", HARBOUR, YUKI, BOOKS, 22, ("coffee", "work", "another model", "work", "another model")),
    Planned("fast-lane", DESK, INES, BOOKING, 25, ("work", "fast mode", "work", "fast mode"), model=LONG_OPUS),
    Planned("timetable", HARBOUR, TOMAS, TIDES, 27, ("order", "search", "fast", "sharing"), Way.PROXY, SONNET),
    Planned("own-agent", HARBOUR, YUKI, TIDES, 28, ("auto mode", "credits", "announced"), Way.ITEMS, SONNET),
    Planned("statement", HARBOUR, YUKI, BOOKS, 30, ("late", "work", "auto", "work"), agents=_EXPLORE[:1]),
    Planned("updates", DESK, TOMAS, BOOKING, 32, ("work", "update", "work", "restart", "work")),
    Planned("slow-lane", DESK, INES, BOOKING, 46, ("work", "coffee", "coffee"), has_telemetry=True),
    # this week
    Planned("auditors", HARBOUR, YUKI, BOOKS, 50, ("early", "work", "manual", *_GROW * 2), own_run=RunKind.FROM),
    Planned("snapshots", DESK, INES, BOOKING, 53, ("lifetime", "work", "skill", "no thinking")),
    Planned("older-hand", DESK, TOMAS, BOOKING, 56, ("thinking", "work"), model=OLD_SONNET),
    Planned("harbour-map", HARBOUR, TOMAS, TIDES, 70, ("thinking", "lifetime", "markers"), Way.PROXY, SONNET),
    Planned("riddles", HARBOUR, INES, TIDES, 74, ("riddle", "work", "no reason", "work", "tools came")),
    Planned("second-thoughts", DESK, INES, BOOKING, 77, ("work", "rewind", "work", "shorter")),
    Planned("queue", HARBOUR, YUKI, BOOKS, 80, ("work", "coffee", "work"), Way.TELEMETRY, SONNET),
    Planned("glossary", DESK, TOMAS, BOOKING, 96, ("auto", "work", "auto", "work", "auto", "work")),
    Planned("layers", HARBOUR, TOMAS, TIDES, 99, ("beta", "field", "clearing"), Way.PROXY, LONG_OPUS),
    Planned("delays", HARBOUR, INES, TIDES, 103, (*_GROW * 2, "server silent"), reasons=("likely_server_side",)),
    Planned("voucher-rules", DESK, INES, BOOKING, 120, ("work", "overloaded", "work")),
    Planned("whole-ledger", HARBOUR, YUKI, BOOKS, 124, _FILL, model=LONG_OPUS, own_run=RunKind.UP_TO),
    # the week before
    Planned("bundle", HARBOUR, TOMAS, TIDES, 145, ("choice", "rewrite", "picture"), Way.PROXY, SONNET),
    Planned("midnight", HARBOUR, INES, TIDES, 149, ("lunch", "work", "lunch"), ttl="1h"),
    Planned("reference", HARBOUR, YUKI, BOOKS, 168, ("work", "auto", "work"), Way.TELEMETRY),
    Planned("cancelled", DESK, TOMAS, BOOKING, 172, ("coffee", *_GROW * 2, "micro", "work")),
    Planned("berths", DESK, INES, BOOKING, 190, ("cite", "many", "deleted", "kept again"), Way.PROXY, SONNET),
    Planned("decks", DESK, TOMAS, BOOKING, 195, (*_GROW * 3, "manual", "work"), agents=_EXPLORE),
    Planned("reversals", HARBOUR, YUKI, BOOKS, 215, ("remind", "deferred", "server side"), Way.PROXY, OLDER_SONNET),
    Planned("polite", HARBOUR, INES, TIDES, 220, ("work", "talk", "work")),
    Planned("cents", DESK, INES, BOOKING, 240, ("another model", "work", "coffee")),
    Planned("retry", HARBOUR, YUKI, BOOKS, 244, ("pause", "no caching"), Way.PROXY, SONNET),
    Planned("exports", HARBOUR, TOMAS, BOOKS, 264, ("work", "coffee", "failed"), Way.TELEMETRY, SONNET),
    Planned("parties", DESK, INES, BOOKING, 288, ("late", "work", "early", "work")),
    Planned("effort", DESK, TOMAS, BOOKING, 292, ("work", "server silent"), reasons=("effort_changed",)),
    Planned("first-look", DESK, YUKI, BOOKING, 310, ("work", *_GROW)),
)  # fmt: skip


def find_wish(planned: Planned) -> str:
    """What the session begins with: each of a project with something else, as long as there is enough to wish for."""
    mates = [each.name for each in FLEET if each.project is planned.project]
    wishes = planned.project.wishes
    return wishes[mates.index(planned.name) % len(wishes)]
