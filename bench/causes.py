"""What holds right before cache losses: rates of every condition over real transcripts, each half of sessions apart.

Run: python -m bench.causes FOLDER, with transcripts (*.jsonl or *.jsonl.gz) below it. Sessions are split by a hash of
their id into a half to find conditions on and a half to check them on; the tables of compaction.cache.conditions hold
what this prints. With --list every break follows with its cause, where it broke, and the conditions that held.

What was looked at besides and is no condition: the same read as the call before describes the loss itself, a second
miss; so does a loss at the call before; a pause within the lifetime is no cause.
"""

import argparse
import gzip
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.threads import read_session_calls
from compaction.cache.breaks import CacheOutcome, Verdict, judge_thread
from compaction.cache.causes import Cause
from compaction.cache.conditions import BASE_CHECKING, CONDITIONS, ConditionInfo, Rate
from compaction.cache.diagnosis import infer_causes
from compaction.timeline.calls import Call
from compaction.timeline.preceding import Condition
from compaction.transcripts.entries import Entry
from compaction.transcripts.lines import RawLine
from compaction.transcripts.reader import read_line

HALVES = ("tuning", "checking")
# A condition is a cause when its rate is this many times the base rate on the sessions it was not found on, ...
NEEDED_RATIO = 10
# ... over at least as many calls, and breaks in as many sessions: fewer prove nothing.
NEEDED_CALLS, NEEDED_SESSIONS = 5, 3


@dataclass(frozen=True)
class JudgedCall:
    """One call after the first of its thread."""

    file: str
    session: str
    call: Call
    before: Call
    verdict: Verdict
    was_loss_before: bool
    is_quiet: bool  # nothing announced a rebuild, and no known cause holds

    @property
    def half(self) -> str:
        return HALVES[hashlib.sha256(self.session.encode()).digest()[-1] % 2]

    @property
    def is_break(self) -> bool:
        return self.verdict.outcome is CacheOutcome.BREAK

    @property
    def is_unexplained(self) -> bool:
        return self.is_break and self.verdict.cause is Cause.UNEXPLAINED


def read_entries(path: Path) -> list[Entry]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    lines = (RawLine(number, 0, raw, len(raw)) for number, raw in enumerate(data.splitlines(keepends=True), 1))
    return [entry for line in lines for entry in read_line(line) if isinstance(entry, Entry)]


def list_calls(paths: Iterable[Path]) -> Iterator[JudgedCall]:
    """Every judged call once; copies of a session's head in other files are left out."""
    seen: set[str] = set()
    for path in paths:
        entries = read_entries(path)
        session = next((entry.session_id for entry in entries if entry.session_id), path.name)
        for calls in read_session_calls(entries).values():
            yield from _judge(path, session, calls, seen)


def _judge(path: Path, session: str, calls: tuple[Call, ...], seen: set[str]) -> Iterator[JudgedCall]:
    before: Call | None = None
    baseline, was_loss = None, False
    by_id = {call.call_id: call for call in calls}
    for verdict in judge_thread(calls):
        call = by_id[verdict.call_id]
        is_judged = verdict.baseline is not None and verdict.baseline.call_id == call.call_id
        if is_judged and before is not None and baseline is not None and call.call_id not in seen:
            is_quiet = verdict.outcome is not CacheOutcome.EXPECTED and not call.events
            is_quiet = is_quiet and not any(infer_causes(baseline, call))
            yield JudgedCall(path.name, session, call, before, verdict, was_loss, is_quiet)
        seen.add(call.call_id)
        if is_judged:
            before, was_loss = call, verdict.loss is not None
        baseline = verdict.baseline


def count_rate(calls: Iterable[JudgedCall]) -> Rate:
    found = list(calls)
    breaks = [each for each in found if each.is_break]
    return Rate(len(breaks), len(found), len({each.session for each in breaks}))


LOSS_ITSELF, NO_CAUSE = "it describes the loss itself", "a pause within the lifetime is no cause"
# What was looked at besides, with the reason why it is no condition.
OTHERS: dict[str, tuple[Callable[[JudgedCall], bool], str]] = {
    "same read as the call before": (
        lambda each: each.call.usage.cache_read_tokens == each.before.usage.cache_read_tokens, LOSS_ITSELF
    ),
    "the call before lost its cache": (lambda each: each.was_loss_before, LOSS_ITSELF),
    "pause of 1 to 5 minutes": (lambda each: 60 <= measure_pause(each) < 300, NO_CAUSE),
    "pause of 5 to 20 minutes": (lambda each: 300 <= measure_pause(each) < 1200, NO_CAUSE),
}  # fmt: skip


def measure_pause(each: JudgedCall) -> float:
    """Return the seconds since the call before."""
    return (each.call.at - each.before.at).total_seconds()


def find_condition(each: JudgedCall, condition: Condition) -> bool:
    """Whether a condition holds, and none of those that are causes and stand before it: they are found first."""
    held = each.call.conditions
    return condition in held and not any(CONDITIONS[other].cause for other in held[: held.index(condition)])


def meets_rule(both: Rate, checking: Rate, base: Rate) -> bool:
    """Return whether a condition may be called a cause, by its rates over both halves and over the checking one."""
    is_enough = both.calls >= NEEDED_CALLS and both.sessions >= NEEDED_SESSIONS
    return is_enough and checking.share >= NEEDED_RATIO * base.share


def is_proven(note: ConditionInfo) -> bool:
    """Return whether a row of the table meets the rule."""
    return meets_rule(note.rate, note.checking, BASE_CHECKING)


def print_rates(calls: list[JudgedCall]) -> None:
    quiet = {half: [each for each in calls if each.half == half and each.is_quiet] for half in HALVES}
    base = {half: count_rate(quiet[half]) for half in HALVES}
    print("\nRates: breaks/calls in sessions, times the base rate. Base:", *(f"{half} {base[half]}" for half in HALVES))
    named: dict[str, Callable[[JudgedCall], bool]] = {
        condition.value: lambda each, condition=condition: find_condition(each, condition)  # type: ignore[misc]
        for condition in Condition
    }
    for name, holds in (named | {name: holds for name, (holds, _) in OTHERS.items()}).items():
        rates = {half: count_rate(each for each in quiet[half] if holds(each)) for half in HALVES}
        words = (
            f"{rate.breaks:3}/{rate.calls:<4} in {rate.sessions:2} {rate.share:6.1%} "
            f"x{rate.share / base[half].share if base[half].breaks else 0:5.1f}"
            for half, rate in rates.items()
        )
        both = rates["tuning"] + rates["checking"]
        is_cause = meets_rule(both, rates["checking"], base["checking"])
        judgement = "proven" if is_cause else "not proven"
        if name in OTHERS:
            judgement = f"not a condition: {OTHERS[name][1]}"
        print(f"{name:32}", " | ".join(words), f"| {judgement}")


def divide(part: int, whole: int) -> float:
    """Return the share; 0 of nothing."""
    return part / whole if whole else 0.0


def print_causes(calls: list[JudgedCall]) -> None:
    for half in HALVES:
        own = [each for each in calls if each.half == half]
        breaks = [each for each in own if each.is_break]
        loss_count = sum(each.verdict.loss is not None for each in own)
        unknown = sum(each.is_unexplained for each in breaks)
        print(
            f"{half}: {len(own):,} calls; without a known cause {unknown} of {len(breaks)} breaks "
            f"({divide(unknown, len(breaks)):.1%}), or of {loss_count} losses with expected rebuilds "
            f"({divide(unknown, loss_count):.1%})"
        )
        causes = Counter(each.verdict.cause.value for each in own if each.verdict.cause and each.verdict.loss)
        print("   ", ", ".join(f"{count} {cause}" for cause, count in causes.most_common()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="every break, one a line")
    asked = parser.parse_args()
    paths = sorted(path for path in asked.folder.rglob("*.jsonl*") if path.is_file())
    calls = list(list_calls(paths))
    print_causes(calls)
    print_rates(calls)
    for each in calls if asked.list else ():
        if each.verdict.loss is not None:
            loss, cause = each.verdict.loss, each.verdict.cause
            held = ", ".join(each.call.conditions)
            print(f"{each.half[:1]} {each.file[:12]} {each.call.call_id[-6:]} {cause} read {loss.read_tokens:,} of "
                  f"{loss.expected_tokens:,} [{held}]")  # fmt: skip


if __name__ == "__main__":
    main()
