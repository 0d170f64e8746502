"""What an import did: counted while it runs, told at the end as text or JSON."""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

from django.db.models import Count, Q, Sum

from dashboard.ingest.looks import FileLook
from dashboard.models import AgentSession
from dashboard.words import name_prices

if TYPE_CHECKING:  # loaded only when there is something to count
    from dashboard.ingest.decoding import Decoded
    from dashboard.ingest.intake import Taken
    from dashboard.ingest.observed import LineProblem
    from dashboard.ingest.record import Recorded

PROBLEMS_SHOWN = 20
_PKS_AT_ONCE = 500  # SQLite takes some thousand variables in one statement


@dataclass
class Tally:
    began_at: float = field(default_factory=time.monotonic)
    file_count: int = 0
    unchanged_count: int = 0
    byte_count: int = 0
    line_count: int = 0
    new_line_count: int = 0
    new_sessions: set[int] = field(default_factory=set)
    changed_sessions: set[int] = field(default_factory=set)
    call_count: int = 0
    break_count: int = 0
    problem_count: int = 0
    problems: "list[LineProblem]" = field(default_factory=list)  # the first of them
    cut_files: list[str] = field(default_factory=list)
    drops: Counter[str] = field(default_factory=Counter)
    redactions: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    is_interrupted: bool = False
    seconds: float = 0.0
    spent_usd: Decimal = Decimal(0)
    lost_usd: Decimal = Decimal(0)
    has_own_prices: bool = False

    def add(self, decoded: "Decoded", taken: "Taken") -> None:
        """What was stored of one piece of work."""
        self.byte_count += decoded.size_bytes
        self.line_count += taken.line_count
        self.add_sessions(taken.sessions)
        self.problem_count += taken.problem_count
        self.problems += taken.problems[: PROBLEMS_SHOWN - len(self.problems)]
        self.drops.update(taken.drops or {})
        self.redactions.update(decoded.prepared.redactions)

    def add_sessions(self, sessions: "Iterable[Recorded]") -> None:
        for session in sessions:
            self.new_line_count += session.new_line_count
            if session.is_new:
                self.new_sessions.add(session.session_pk)
            elif session.new_line_count and session.session_pk not in self.new_sessions:
                self.changed_sessions.add(session.session_pk)
            self.call_count += len(session.new_calls)
            self.break_count += len(session.new_breaks)

    def add_file(self, look: FileLook) -> None:
        """A transcript that was read to its end, or could not be."""
        if look.refusal:
            self.failures.append(look.refusal)
        elif not look.file.is_meta:
            self.file_count += 1
            self.cut_files += [look.file.path] if look.is_cut else []

    def close(self) -> None:
        pks = sorted(self.new_sessions | self.changed_sessions)
        for start in range(0, len(pks), _PKS_AT_ONCE):
            sums = AgentSession.objects.filter(pk__in=pks[start : start + _PKS_AT_ONCE]).aggregate(
                spent=Sum("spent_usd"), lost=Sum("lost_usd"), own=Count("pk", filter=Q(team__has_own_prices=True))
            )
            self.spent_usd += sums["spent"]
            self.lost_usd += sums["lost"]
            self.has_own_prices = self.has_own_prices or bool(sums["own"])
        self.seconds = time.monotonic() - self.began_at

    def to_fields(self) -> dict[str, object]:
        """For programs; the names stay."""
        return {
            "sessions_new": len(self.new_sessions),
            "sessions_changed": len(self.changed_sessions),
            "calls_new": self.call_count,
            "breaks_new": self.break_count,
            "spent_usd": float(round(self.spent_usd, 6)),
            "lost_usd": float(round(self.lost_usd, 6)),
            "price": "list",
            "files_read": self.file_count,
            "files_unchanged": self.unchanged_count,
            "bytes_read": self.byte_count,
            "lines_read": self.line_count,
            "lines_new": self.new_line_count,
            "malformed_lines": self.problem_count,
            "malformed": [
                {"file": problem.name, "line": problem.line_number, "reason": problem.reason}
                for problem in self.problems
            ],
            "files_cut": self.cut_files,
            "redactions": dict(sorted(self.redactions.items())),
            "drops": dict(sorted(self.drops.items())),
            "failures": self.failures,
            "interrupted": self.is_interrupted,
            "seconds": round(self.seconds, 3),
        }

    def describe(self) -> Iterator[str]:
        """For people, line by line."""
        if self.is_interrupted:
            yield "Stopped. Data imported so far is kept; run the same command again to import the rest."
        yield (
            f"{_count(len(self.new_sessions), 'new session')}, {len(self.changed_sessions):,} changed, "
            f"{_count(self.call_count, 'new call')}, {_count(self.break_count, 'new cache break')}."
        )
        if self.new_sessions or self.changed_sessions:
            yield (
                f"These sessions spent ${self.spent_usd:,.2f} at {name_prices(has_own=self.has_own_prices)}, "
                f"${self.lost_usd:,.2f} of it lost to cache breaks."
            )
        unchanged = f", {self.unchanged_count:,} unchanged since the last import" if self.unchanged_count else ""
        yield (
            f"{_count(self.line_count, 'line')} in {_count(self.file_count, 'file')} ({self.byte_count / 1e6:,.1f} MB) "
            f"read in {self.seconds:,.1f} s{unchanged}."
        )
        yield from self._describe_losses()

    def _describe_losses(self) -> Iterator[str]:
        if self.redactions:
            told = ", ".join(f"{form} {count:,}" for form, count in self.redactions.most_common())
            yield f"{_count(self.redactions.total(), 'secret')} redacted: {told}."
        if self.problem_count:
            yield f"{_count(self.problem_count, 'line')} could not be parsed:"
            for problem in self.problems:
                yield f"  {problem.name}, line {problem.line_number}: {problem.reason}"
            if self.problem_count > len(self.problems):
                yield f"  and {self.problem_count - len(self.problems):,} more."
        for path in self.cut_files:
            yield f"{path} ends in an incomplete line; the rest is imported once it is complete."
        for reason, count in self.drops.most_common():
            yield f"Dropped: {count:,} x {reason}."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
