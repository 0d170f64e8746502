"""The forecast replayed on recorded sessions: how often what happened lies in the range that was shown.

Run: python -m bench.forecast FOLDER [FOLDER ...] with transcripts (.jsonl, .jsonl.gz).

Every stretch of a main conversation that reached the auto line (a call beyond the line of its client version, or an
automatic compaction behind its last call) is cut after the call at 30, 45, 60, 75, 85 and 93% of the line; a stretch
begins with the session or with a compaction. The truth in calls is how many followed until the call that crossed the
line, or until the compaction; in turns, how many prompts (transcripts.user_lines) came between them; in minutes, the
time between them without pauses longer than five minutes. A stretch that ended before the line says only that the line
was not reached within its calls: it contradicts a range that ended earlier, and is reported apart.

Sessions are split in two halves by a hash of their id: figures of the engine are tuned on one and checked on the other.
Goal on the checking half: the range in calls holds in 80% +- 5 of the cases, and at most 8% come sooner than the range.
Few sessions reach the line, so a second table takes each height that a session reached for its line. Its cases are
many, but they overlap: count the sessions.
"""

import argparse
import gzip
import hashlib
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Self

from bench.threads import split_threads
from compaction.context.forecast import (
    LONGEST_PAUSE_SECONDS,
    CallPoint,
    Forecast,
    Range,
    forecast_threshold,
    list_call_points,
)
from compaction.context.policy import Policy
from compaction.context.thresholds import compute_thresholds
from compaction.context.windows import ModelInUse
from compaction.transcripts.chain import is_boundary
from compaction.transcripts.entries import Entry
from compaction.transcripts.payloads import Boundary
from compaction.transcripts.transcript import read_transcript

CUT_PERCENTS = (30, 45, 60, 75, 85, 93)
HEIGHTS = range(50_000, 150_001, 10_000)
UNITS = ("calls", "turns", "minutes")
HALVES = ("tuning half", "checking half")


@dataclass(frozen=True, slots=True)
class Stretch:
    """The calls of a conversation from its beginning or a compaction (`start`) to the next compaction or the end."""

    session_id: str
    points: tuple[CallPoint, ...]  # with those of the stretches before it
    start: int
    line_tokens: int | None
    is_compacted: bool  # by the client itself


@dataclass(frozen=True, slots=True)
class Case:
    """One forecast beside what happened."""

    session_id: str
    percent: int
    found: Forecast
    truth: dict[str, int]
    has_reached: bool


@dataclass(slots=True)
class Tally:
    """How the truth lies to the range in one unit."""

    inside: int = 0
    sooner: int = 0
    later: int = 0
    widths: list[float] = field(default_factory=list)
    sessions: set[str] = field(default_factory=set)

    @classmethod
    def count(cls, cases: Iterable[Case], unit: str) -> Self:
        tally = cls()
        for case in cases:
            expected: Range | None = getattr(case.found, unit)
            if expected is None:
                continue
            truth = case.truth[unit]
            tally.sooner += truth < expected.low
            tally.later += truth > expected.high
            tally.inside += expected.low <= truth <= expected.high
            tally.widths.append(expected.high / max(1, expected.low))
            tally.sessions.add(case.session_id)
        return tally

    @property
    def total(self) -> int:
        return self.inside + self.sooner + self.later

    def __str__(self) -> str:
        if not self.total:
            return "no case"
        shares = [f"{share / self.total:4.0%}" for share in (self.inside, self.sooner, self.later)]
        return (
            f"in range {shares[0]}   sooner {shares[1]}   later {shares[2]}   "
            f"width x{statistics.median(self.widths):4.1f}   {self.total} cases, {len(self.sessions)} sessions"
        )


def list_stretches(folder: Path) -> Iterator[Stretch]:
    for path in sorted((*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz"))):
        data = path.read_bytes()
        entries = read_transcript(gzip.decompress(data) if path.suffix == ".gz" else data).entries
        session_id = next((entry.session_id for entry in entries if entry.session_id), path.name)
        yield from _split_conversation(split_threads(entries)[0].entries, session_id)


def _split_conversation(entries: tuple[Entry, ...], session_id: str) -> Iterator[Stretch]:
    start = 0
    ends = [index for index, entry in enumerate(entries) if is_boundary(entry)]
    for end in (*ends, len(entries)):
        before = entries[:end]
        points = tuple(point for point in list_call_points(before) if point.context_tokens)
        if len(points) > start:
            boundary = entries[end].payload if end < len(entries) else None
            is_compacted = isinstance(boundary, Boundary) and boundary.trigger != "manual"
            yield Stretch(session_id, points, start, _find_line(before), is_compacted)
        start = len(points)


def _find_line(entries: tuple[Entry, ...]) -> int | None:
    """The auto line that was in force at the last call."""
    last = next((entry for entry in reversed(entries) if entry.is_response and entry.message), None)
    if last is None or last.message is None or not last.message.model:
        return None
    lines = compute_thresholds(Policy(), ModelInUse(last.message.model, client_version=last.version))
    return lines.auto.tokens if lines and lines.is_auto_on else None


def replay_auto_line(stretch: Stretch) -> Iterator[Case | None]:
    if stretch.line_tokens is not None:
        yield from _replay(stretch, stretch.line_tokens, is_end_reached=stretch.is_compacted)


def replay_heights(stretch: Stretch) -> Iterator[Case | None]:
    for height in HEIGHTS:
        yield from _replay(stretch, height, is_end_reached=False)


def _replay(stretch: Stretch, line: int, *, is_end_reached: bool) -> Iterator[Case | None]:
    """Yield a case for each cut; None for one that reached the line and gave no forecast."""
    points, start = stretch.points, stretch.start
    crossing = next((i for i in range(start, len(points)) if points[i].context_tokens >= line), None)
    end = len(points) - 1 if crossing is None else crossing
    has_reached = is_end_reached or crossing is not None
    for percent, limit in zip(CUT_PERCENTS, (*CUT_PERCENTS[1:], 100), strict=True):
        cut = next((i for i in range(start, end + 1) if points[i].context_tokens * 100 >= percent * line), None)
        # One call may jump over several cuts: it counts for the last of them.
        if cut is None or points[cut].context_tokens * 100 >= limit * line:
            continue
        found = forecast_threshold(points[: cut + 1], line)
        if isinstance(found, Forecast):
            truth = {
                "calls": end - cut,
                "turns": (points[end].turn or 0) - (points[cut].turn or 0),
                "minutes": round(_count_minutes(points[cut : end + 1])),
            }
            yield Case(stretch.session_id, percent, found, truth, has_reached)
        elif has_reached:
            yield None


def _count_minutes(points: tuple[CallPoint, ...]) -> float:
    times = [point.at for point in points if point.at is not None]
    steps = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    return sum(step for step in steps if 0 <= step <= LONGEST_PAUSE_SECONDS) / 60


def find_half(session_id: str) -> str:
    return HALVES[hashlib.sha256(session_id.encode()).digest()[-1] % 2]


def print_table(title: str, stretches: list[Stretch], replay: Callable[[Stretch], Iterator[Case | None]]) -> None:
    cases = [case for stretch in stretches for case in replay(stretch)]
    made = [case for case in cases if case is not None]
    reached = [case for case in made if case.has_reached]
    print(f"\n{title}: {len(reached)} cases with a forecast, {len(cases) - len(made)} without")
    for unit in UNITS:
        print(f"  {unit:8}      {Tally.count(reached, unit)}")
        for percent in CUT_PERCENTS:
            at_cut = Tally.count((case for case in reached if case.percent == percent), unit)
            if at_cut.total:
                print(f"    at {percent}% {'':4} {at_cut}")
    open_ended = [case for case in made if not case.has_reached]
    refuted = sum(case.truth["calls"] > case.found.calls.high for case in open_ended)
    print(f"  ended before the line: {len(open_ended)} cases, {refuted} of them later than the range already")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with transcripts")
    stretches = [stretch for folder in parser.parse_args().folders for stretch in list_stretches(folder)]
    for half in HALVES:
        chosen = [stretch for stretch in stretches if find_half(stretch.session_id) == half]
        print_table(f"Auto line, {half}", chosen, replay_auto_line)
        print_table(f"Each height reached, {half}", chosen, replay_heights)
    print_table("Auto line, both halves", stretches, replay_auto_line)


if __name__ == "__main__":
    main()
