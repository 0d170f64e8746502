"""Cache health: judging calls, fingerprinting requests, comparing two of them; against the goals, and how it grows.

`python -m bench.cache` from the checkout. Figures are CPU time of one process, the best of several rounds.
"""

import argparse
import gc
import hashlib
import math
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from compaction.cache.breaks import judge_thread
from compaction.cache.prefix_diff import diff_requests
from compaction.prompt.fingerprint import Fingerprint, fingerprint_request
from compaction.prompt.request import read_request
from compaction.timeline.calls import Call
from compaction.transcripts.entries import Usage

JUDGE_GOAL_US = 50
FINGERPRINT_GOAL_MS = 10
DIFF_GOAL_MS = 50
LINEAR = 1.15  # an exponent up to this counts as linear
BREAK_EVERY = 39  # calls, as measured over 448 public sessions
START = datetime(2026, 11, 16, tzinfo=UTC)
SENTENCE = "The cache is kept up to a marker, and whatever stands behind it is written again. "


def digest(data: bytes) -> str:
    """A keyed hash like a team's."""
    return hashlib.blake2b(data, key=b"bench", digest_size=16).hexdigest()


def make_body(size_bytes: int, tools: int = 20, *, tag: str = "") -> dict[str, Any]:
    """A request of this size as an agent sends it: small prompts, tool requests, long results."""
    definitions = [make_tool(number, tag) for number in range(tools)]
    messages: list[dict[str, Any]] = []
    written = tools * 900 + 20_000
    while written < size_bytes:
        number = len(messages)
        request = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"path": f"/src/file{number}.py"}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number} " + SENTENCE * 30}
        messages.append({"role": "assistant", "content": [{"type": "text", "text": SENTENCE}, request]})
        messages.append({"role": "user", "content": [result]})
        written += 2_800
    system = [{"type": "text", "text": SENTENCE * 240, "cache_control": {"type": "ephemeral"}}]
    return {"model": "claude-opus-5-5", "system": system, "tools": definitions, "messages": messages}


def make_tool(number: int, tag: str = "") -> dict[str, Any]:
    """A tool of about 900 bytes."""
    properties = {f"field{each}": {"type": "string", "description": "What to look for."} for each in range(6)}
    schema = {"type": "object", "properties": properties, "required": ["field0"]}
    description = f"Tool {number} {tag}. " + SENTENCE * 4
    return {"name": f"mcp__server{number % 9}__tool{number}", "description": description, "input_schema": schema}


def make_calls(count: int, prints: Sequence[Fingerprint] = ()) -> list[Call]:
    """A thread that breaks as often as real ones do."""
    calls = []
    cached = 30_000
    for number in range(count):
        is_broken = number % BREAK_EVERY == BREAK_EVERY - 1
        read, written = (16_000, cached - 16_000) if is_broken else (cached, 600)
        cached = 30_000 if cached > 160_000 else read + written
        calls.append(
            Call(
                call_id=f"m{number}",
                at=START + timedelta(seconds=20 * number),
                model="claude-opus-5-5",
                usage=Usage(3, 200, written, written, 0, read),
                position=number,
                fingerprint=prints[number % len(prints)] if prints else None,
            )
        )
    return calls


def measure_seconds(work: Callable[[], object], rounds: int) -> float:
    """CPU seconds of the best round, collector off: what the rounds keep for nobody would be walked again and again."""
    best = math.inf
    gc.collect()
    gc.disable()
    for _ in range(rounds):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    gc.enable()
    return best


def find_exponent(sizes: Sequence[int], seconds: Sequence[float]) -> float:
    """The slope of time over size on a double logarithmic scale; 1 is linear."""
    xs, ys = [math.log(size) for size in sizes], [math.log(second) for second in seconds]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / sum((x - mean_x) ** 2 for x in xs)


def report(name: str, figure: float, goal: float, unit: str) -> bool:
    """One line; whether the goal is met."""
    is_met = figure <= goal
    print(f"{name:<58}{figure:>9.2f} {unit:<3} goal {goal:>6.2f}  {'ok' if is_met else 'MISSED'}")
    return is_met


def report_growth(name: str, sizes: Sequence[int], seconds: Sequence[float]) -> bool:
    """One line on how time grows with size."""
    title = f"{name}: exponent from {sizes[0]:,} to {sizes[-1]:,}"
    return report(title, find_exponent(sizes, seconds), LINEAR, "")


def bench_judging(rounds: int) -> bool:
    """Microseconds a call, with usage alone and with two known requests of 300 messages."""
    prints = [fingerprint_request(read_request(make_body(400_000, tag=tag)), digest) for tag in ("a", "a", "b")]
    results = []
    for name, known in (("usage alone", ()), ("requests known, 270 messages", prints)):
        sizes = (1_000, 4_000, 16_000)
        seconds = []
        for size in sizes:
            calls = make_calls(size, known)
            judge_thread(calls[:100])
            seconds.append(measure_seconds(lambda calls=calls: judge_thread(calls), rounds))  # type: ignore[misc]
        results.append(report(f"judge a call, {name}", seconds[-1] / sizes[-1] * 1e6, JUDGE_GOAL_US, "us"))
        results.append(
            report(f"judge: exponent from {sizes[0]:,} to {sizes[-1]:,}", find_exponent(sizes, seconds), LINEAR, "")
        )
    return all(results)


def bench_fingerprints(rounds: int) -> bool:
    """Milliseconds for a decoded body of 500 KB, and how it grows."""
    sizes = (125_000, 500_000, 2_000_000)
    seconds = []
    for size in sizes:
        body = make_body(size)
        seconds.append(measure_seconds(lambda body=body: fingerprint_request(read_request(body), digest), rounds))  # type: ignore[misc]
    return all(
        (
            report("fingerprint of a 500 KB request", seconds[1] * 1e3, FINGERPRINT_GOAL_MS, "ms"),
            report(
                f"fingerprint: exponent from {sizes[0]:,} to {sizes[-1]:,}", find_exponent(sizes, seconds), LINEAR, ""
            ),
        )
    )


def bench_diffs(rounds: int) -> bool:
    """Milliseconds for 1 MB and 200 tools: one tool and one message changed with all text diffs; all tools changed."""
    before = read_request(make_body(1_000_000, 200))
    body = make_body(1_000_000, 200)
    body["tools"][17] = make_tool(17, "rewritten")
    body["messages"][101]["content"][0]["content"] += "\nrewritten"
    few, all_tools = read_request(body), read_request(make_body(1_000_000, 200, tag="new"))

    def compare(after: Any, *, with_text: bool) -> int:
        diff = diff_requests(before, after)
        return sum(len(change.diff.lines) for change in diff.changes if with_text and change.diff)

    return all(
        (
            report(
                "diff of 1 MB and 200 tools, 2 blocks changed, with text",
                measure_seconds(lambda: compare(few, with_text=True), rounds) * 1e3, DIFF_GOAL_MS, "ms",
            ),
            report(
                "the same, all 200 tools changed",
                measure_seconds(lambda: compare(all_tools, with_text=False), rounds) * 1e3, DIFF_GOAL_MS, "ms",
            ),
            report(
                "the same, with the text of all 200 diffs",
                measure_seconds(lambda: compare(all_tools, with_text=True), rounds) * 1e3, DIFF_GOAL_MS, "ms",
            ),
        )
    )  # fmt: skip


def main() -> int:
    """Run all three; the exit code is 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    met = [bench_judging(rounds), bench_fingerprints(rounds), bench_diffs(rounds)]
    return 0 if all(met) else 1


if __name__ == "__main__":
    raise SystemExit(main())
