"""The one shape of everything that arrives: a decoder makes these values, `record` writes them. No Django here."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

import msgspec

from compaction.context.policy import Policy
from compaction.llm.prices import Price
from compaction.timeline.observations import REPORT, LineKind, Observation

# What lies outside is not a time but a mistake, and no sum of times may leave what a date can be.
EARLIEST_YEAR, LATEST_YEAR = 2000, 2200
MOST_PROBLEMS = 100  # named one by one; the others are counted
_PARTS_OF_CALLS = (LineKind.REQUEST, LineKind.SHAPE)


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of one transcript, as a file, an upload or a push hands them over."""

    data: bytes
    name: str  # what people know it by, for reports
    session_id: str | None = None  # decided by name or place; None: each line's own decides
    agent_id: str | None = None  # a sub-agent's file
    first_line_number: int = 1


@dataclass(frozen=True, slots=True)
class Rules:
    """What a team decided about what is kept; picklable, so that other processes can decode."""

    keeps_content: bool
    digest_key: bytes
    own_patterns: Mapping[str, str] = field(default_factory=dict)
    disabled_rules: frozenset[str] = frozenset()
    redaction_version: int = 0  # of the team's policy that last changed patterns or rules
    content_since: datetime | None = None  # what is older is measured and let go; None: all of it is kept
    lines_policy: Policy | None = None  # None: sessions are not drawn before they are written
    past_policies: tuple[tuple[datetime, Policy], ...] = ()  # each with when it ended, the oldest first
    prices: Mapping[str, Price] = field(default_factory=dict)  # the team's own, by base names of models


class ObservedLine(msgspec.Struct, frozen=True, gc=False):
    """A fact and, where content is kept, its redacted line without the ending."""

    fact: Observation
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class ObservedShape:
    """System prompt and tools of requests; `content` is redacted JSON, None where it is not kept."""

    digest: str
    prints: Mapping[str, object]
    content: bytes | None = None
    is_redacted: bool = False
    redaction: int = 0  # by which version of the team's redaction rules


@dataclass(frozen=True, slots=True)
class ObservedSession:
    """What one piece says about one session."""

    external_id: str
    lines: tuple[ObservedLine, ...]
    shapes: tuple[ObservedShape, ...] = ()
    developer: str = ""  # as telemetry of a shared key names them: an e-mail address, an account id
    nested: frozenset[str] = frozenset()  # ids of lines that stand only inside other lines

    @property
    def item_count(self) -> int:
        """Lines of a transcript, or reported calls and events; a reported call's request is no item of its own, nor is
        a line inside another one."""
        items = (line for line in self.lines if line.fact.id not in self.nested)
        return sum(line.fact.type != REPORT or line.fact.kind not in _PARTS_OF_CALLS for line in items)

    def list_own_ids(self) -> set[str]:
        """Return the ids of the lines that stand for themselves."""
        return {line.fact.id for line in self.lines} - self.nested


@dataclass(frozen=True, slots=True)
class LineProblem:
    """A line that could not be read; its bytes are kept where content is."""

    name: str
    line_number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A decoded piece: nothing of it needs the piece any more."""

    name: str
    sessions: tuple[ObservedSession, ...]
    line_count: int = 0
    problems: tuple[LineProblem, ...] = ()  # the first of them
    drops: Mapping[str, int] = field(default_factory=dict)  # reason -> lines
    redactions: Mapping[str, int] = field(default_factory=dict)  # form -> how often
    more_problem_count: int = 0

    @property
    def problem_count(self) -> int:
        return len(self.problems) + self.more_problem_count


def merge_prepared(parts: Iterable[Prepared]) -> Prepared:
    """Sessions of the same id become one."""
    sessions: dict[str, ObservedSession] = {}
    problems: list[LineProblem] = []
    drops: Counter[str] = Counter()
    redactions: Counter[str] = Counter()
    line_count, problem_count, name = 0, 0, ""
    for part in parts:
        for session in part.sessions:
            known = sessions.get(session.external_id)
            sessions[session.external_id] = session if known is None else _join(known, session)
        problems += part.problems[: MOST_PROBLEMS - len(problems)]
        problem_count += part.problem_count
        drops.update(part.drops)
        redactions.update(part.redactions)
        line_count += part.line_count
        name = name or part.name
    return Prepared(
        name=name,
        sessions=tuple(sessions.values()),
        line_count=line_count,
        problems=tuple(problems),
        more_problem_count=problem_count - len(problems),
        drops=dict(drops),
        redactions=dict(redactions),
    )


def _join(first: ObservedSession, second: ObservedSession) -> ObservedSession:
    developer = first.developer or second.developer
    nested = first.nested | second.nested
    if nested:
        nested -= first.list_own_ids() | second.list_own_ids()
    lines, shapes = first.lines + second.lines, first.shapes + second.shapes
    return ObservedSession(first.external_id, lines, shapes, developer, nested)
