"""What another policy would have meant for the sessions of the last days: how many would have crossed which line."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from compaction.context.policy import Policy
from compaction.context.thresholds import compute_thresholds
from dashboard.models import AgentSession, Team
from dashboard.policies.drawn_lines import STYLES, acting_lines
from dashboard.session_levels import USE_COLUMNS, describe_use
from dashboard.words import join_words

DAYS = 30
# A preview is drawn at every pause of typing. Read row by row: grouping by model and client in the database took twice
# as long, and more sessions than these tell nothing new about a line.
MOST_SESSIONS = 10_000
BEFORE, AFTER = SIDES = (0, 1)  # the policy in force, the other one

Kind = tuple[Any, ...]  # the columns that lines depend on: sessions alike in these have the same lines


@dataclass(frozen=True)
class LineEffect:
    """How many sessions reached a line at their fullest, with the policy in force and with the other one."""

    line: str
    before: int
    after: int

    @property
    def change(self) -> int:
        return self.after - self.before


@dataclass(frozen=True)
class Effect:
    session_count: int
    not_counted: int  # the window of their model is not known
    lines: tuple[LineEffect, ...]
    is_cut: bool = False  # there are more sessions than were looked at

    @property
    def span(self) -> str:
        """Which sessions these are."""
        newest = f"newest {self.session_count:,} sessions of the " if self.is_cut else ""
        return f"{newest}last {DAYS} days"

    @property
    def sentence(self) -> str:
        if not self.session_count:
            return f"No session was active in the {self.span}, so there is nothing to compare."
        told: dict[int, list[str]] = {}
        for effect in self.lines:
            if effect.change:
                told.setdefault(effect.change, []).append(effect.line)
        if not told:
            return f"In the {self.span} the same thresholds would have been crossed."
        parts = [_say_change(change, lines, is_first=not at) for at, (change, lines) in enumerate(told.items())]
        return f"In the {self.span} {', '.join(parts)}."


def count_effect(team: Team, current: Policy, draft: Policy, *, now: datetime) -> Effect:
    """One query, bounded."""
    recent = AgentSession.objects.filter(team=team, last_at__gte=now - timedelta(days=DAYS)).order_by("-last_at", "-id")
    rows = list(recent.values_list(*USE_COLUMNS, "peak_tokens")[: MOST_SESSIONS + 1])
    peaks: dict[Kind, list[int]] = {}
    for *use, peak in rows[:MOST_SESSIONS]:
        peaks.setdefault(tuple(use), []).append(peak)
    reached: Counter[tuple[str, int]] = Counter()
    known = 0
    for kind, held in peaks.items():
        marks = [_find_marks(policy, kind) for policy in (current, draft)]
        known += len(held) if any(marks) else 0
        for side in SIDES:
            for line, tokens in marks[side].items():
                reached[line, side] += sum(peak >= tokens for peak in held)
    count = min(len(rows), MOST_SESSIONS)
    return Effect(
        session_count=count,
        not_counted=count - known,
        lines=tuple(LineEffect(line, reached[line, BEFORE], reached[line, AFTER]) for line in STYLES),
        is_cut=len(rows) > MOST_SESSIONS,
    )


def _find_marks(policy: Policy, kind: Kind) -> dict[str, int]:
    lines = compute_thresholds(policy, describe_use(*kind))
    return {name: line.tokens for name, line in acting_lines(lines).items()}


def _say_change(change: int, lines: Sequence[str], *, is_first: bool) -> str:
    count = f"{abs(change):,} {'more' if change > 0 else 'fewer'}"
    if is_first:
        count += f" session{'' if abs(change) == 1 else 's'} would have crossed"
    return f"{count} the {join_words(lines)} threshold{'s' if lines[1:] else ''}"
