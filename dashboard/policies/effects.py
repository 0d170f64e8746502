"""What another policy would have meant for the sessions of the last days: how many would have crossed which line.

Counted by the database in two queries, however many sessions there are.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import BigIntegerField, Case, Count, QuerySet, Value, When

from compaction.context.policy import Policy
from compaction.context.thresholds import draw_lines
from compaction.context.windows import ModelInUse
from dashboard.models import AgentSession, Team
from dashboard.policies.drawn_lines import STYLES, acting_lines
from dashboard.words import join_words

DAYS = 30
# Sessions alike in model, client and window have the same lines. More kinds than a team has in use; the rarest are
# left out, so that no amount of made-up model names makes the count slow.
MOST_KINDS = 200
_KIND = ("model", "client_version", "reported_window_tokens")

Kind = tuple[str, str, int | None]
Marks = dict[str, int]  # the lines that act, in tokens
BEFORE, AFTER = SIDES = (0, 1)  # the policy in force, the other one


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
    not_counted: int  # their model's window is not known, or they are of the rarest kinds
    lines: tuple[LineEffect, ...]

    @property
    def sentence(self) -> str:
        if not self.session_count:
            return f"No session was active in the last {DAYS} days, so there is nothing to compare with."
        told: dict[int, list[str]] = {}
        for effect in self.lines:
            if effect.change:
                told.setdefault(effect.change, []).append(effect.line)
        if not told:
            sessions = "session" if self.session_count == 1 else f"{self.session_count:,} sessions"
            return f"The {sessions} of the last {DAYS} days would have crossed the same lines."
        parts = [_say_change(change, lines, is_first=not at) for at, (change, lines) in enumerate(told.items())]
        return f"In the last {DAYS} days {', '.join(parts)}."


def count_effect(team: Team, current: Policy, draft: Policy, *, now: datetime) -> Effect:
    recent = AgentSession.objects.filter(team=team, last_at__gte=now - timedelta(days=DAYS))
    counts: dict[Kind, int] = {row[:3]: row[3] for row in recent.values_list(*_KIND).annotate(Count("id")).order_by()}
    marks = {
        kind: (_find_marks(current, kind), _find_marks(draft, kind))
        for kind in sorted(counts, key=counts.__getitem__, reverse=True)[:MOST_KINDS]
    }
    steps = sorted({tokens for pair in marks.values() for own in pair for tokens in own.values()})
    reached = {(line, side): 0 for line in STYLES for side in SIDES}
    for kind, peak, count in _count_peaks(recent, steps):
        for side in SIDES:
            for line, tokens in marks[kind][side].items() if kind in marks else ():
                reached[line, side] += count if peak >= tokens else 0
    total = sum(counts.values())
    return Effect(
        session_count=total,
        not_counted=total - sum(counts[kind] for kind, pair in marks.items() if any(pair)),
        lines=tuple(LineEffect(line, reached[line, BEFORE], reached[line, AFTER]) for line in STYLES),
    )


def _count_peaks(recent: QuerySet[AgentSession], steps: Sequence[int]) -> Iterator[tuple[Kind, int, int]]:
    """Kind, the highest of the steps a session reached at its fullest (-1: none), and how many sessions did."""
    if not steps:
        return
    cases = [When(peak_tokens__gte=tokens, then=Value(tokens)) for tokens in reversed(steps)]
    peak = Case(*cases, default=Value(-1), output_field=BigIntegerField())
    for *kind, reached, count in (
        recent.annotate(peak=peak).values_list(*_KIND, "peak").annotate(Count("id")).order_by()
    ):
        yield (kind[0], kind[1], kind[2]), reached, count


def _find_marks(policy: Policy, kind: Kind) -> Marks:
    model, version, reported = kind
    # Every way in takes transcripts of Claude Code.
    in_use = ModelInUse(model=model, client_version=version or None, reported_window_tokens=reported)
    return {name: line.tokens for name, line in acting_lines(draw_lines(policy, in_use)).items()}


def _say_change(change: int, lines: Sequence[str], *, is_first: bool) -> str:
    count = f"{abs(change):,} {'more' if change > 0 else 'fewer'}"
    if is_first:
        count += f" session{'' if abs(change) == 1 else 's'} would have crossed"
    return f"{count} the {join_words(lines)} line{'s' if lines[1:] else ''}"
