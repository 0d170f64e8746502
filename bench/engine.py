"""The engine's own speed: reading and counting. Goal 5: a 2,000-message session counted within 20 ms, linear growth.

Run: python -m bench.engine [folder with .jsonl files]. Without a folder the lines are made here.
"""

import gc
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

from compaction.context.composition import compute_composition
from compaction.context.tokens import ResultCache, measure_context
from compaction.timeline.build import Timeline, build_timeline
from compaction.timeline.read_entries import read_observation
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry
from compaction.transcripts.flatten import flatten
from compaction.transcripts.reader import decode_head
from compaction.transcripts.rounds import group_rounds
from compaction.transcripts.transcript import TranscriptReader, read_transcript

GOAL_MESSAGES = 2_000
GOAL_MS = 20.0
SIZES = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000)
CHUNK_BYTES = 1024 * 1024
ROUNDS = 5


def make_session(messages: int) -> bytes:
    """A session of tool requests and results: half of the messages each, results of 3,000 characters."""
    lines = []
    parent = None
    for number in range(messages):
        uuid = f"00000000-0000-4000-8000-{number:012d}"
        common = {"parentUuid": parent, "isSidechain": False, "sessionId": "bench", "version": "2.1.112", "uuid": uuid}
        common["timestamp"] = "2026-05-01T10:00:00.000Z"
        lines.append(json.dumps({**common, **_make_message(number)}, separators=(",", ":")))
        parent = uuid
    return ("\n".join(lines) + "\n").encode()


def _make_message(number: int) -> dict[str, object]:
    if number % 2 == 0:
        content = [{"type": "tool_result", "tool_use_id": f"t{number - 1}", "content": "line of output\n" * 200}]
        content = content if number else [{"type": "text", "text": "Make it so."}]
        return {"type": "user", "message": {"role": "user", "content": content}}
    usage = {"input_tokens": 4, "cache_read_input_tokens": 900 * number, "output_tokens": 120}
    request = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"file_path": f"/src/{number % 50}.py"}}
    message = {"id": f"msg_{number}", "role": "assistant", "model": "claude-opus-4-5", "content": [request]}
    return {"type": "assistant", "message": {**message, "usage": usage, "stop_reason": "tool_use"}}


def time_ms(work: Callable[[], object], *, rounds: int = ROUNDS) -> float:
    """The median of some rounds."""
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def count_session(entries: tuple[Entry, ...]) -> int:
    """Token counting as a page asks for it: active chain, slice, context size and composition."""
    context = slice_context(follow_chain(entries))
    cache = ResultCache()
    return measure_context(context, cache).tokens + compute_composition(context, cache=cache).tokens


def build_session_timeline(entries: tuple[Entry, ...]) -> Timeline:
    """The calls of a session, from its entries."""
    return build_timeline(read_observation(entry) for entry in entries)


def print_counting() -> None:
    """Goal 5 and the growth exponents; the collector's walks over the session itself are kept out of the times."""
    works: dict[str, Callable[[tuple[Entry, ...]], object]] = {
        "count": count_session,
        "flatten": flatten,
        "rounds": group_rounds,
        "timeline": build_session_timeline,
    }
    table: dict[str, list[float]] = {name: [] for name in (*works, "decode")}
    for size in SIZES:
        data = make_session(size)
        table["decode"].append(time_ms(lambda data=data: _decode_all(data), rounds=3))  # type: ignore[misc]
        entries = _decode_all(data)
        gc.collect()
        gc.freeze()
        for name, work in works.items():
            table[name].append(time_ms(lambda work=work, entries=entries: work(entries), rounds=3))  # type: ignore[misc]
        gc.unfreeze()
    print("messages   " + "".join(f"{size:>9,}" for size in SIZES) + "   exponent")
    for name, times in table.items():
        print(f"{name:<8} ms" + "".join(f"{ms:9.2f}" for ms in times) + f"   {_find_exponent(times):8.2f}")
    goal = table["count"][SIZES.index(GOAL_MESSAGES)]
    print(f"goal 5: counting {GOAL_MESSAGES:,} messages takes {goal:.1f} ms (goal {GOAL_MS:.0f} ms)")


def _decode_all(data: bytes) -> tuple[Entry, ...]:
    entries = read_transcript(data).entries
    for entry in entries:
        if entry.message is not None:
            len(entry.message.content)
    return entries


def _find_exponent(times: list[float]) -> float:
    return math.log(times[-1] / times[0]) / math.log(SIZES[-1] / SIZES[0])


def print_reading(files: list[bytes]) -> None:
    """Read throughput, above the floor of a typed decode that keeps nothing."""
    megabytes = sum(map(len, files)) / 1e6
    lines = sum(data.count(b"\n") for data in files)
    print(f"{len(files)} files, {megabytes:.0f} MB, {lines:,} lines")
    works: dict[str, Callable[[bytes], object]] = {
        "floor: heads only": _decode_heads,
        "entries, lazy": _read,
        "entries, all decoded": _decode_all,
    }
    for name, work in works.items():
        seconds = time_ms(lambda work=work: [work(data) for data in files], rounds=3) / 1000  # type: ignore[misc]
        print(f"{name:<22}{megabytes / seconds:8.0f} MB/s {seconds / lines * 1e6:8.1f} us a line")


def _decode_heads(data: bytes) -> object:
    for line in BytesIO(data):
        decode_head(line)
    return None


def _read(data: bytes) -> object:
    reader = TranscriptReader()
    for start in range(0, len(data), CHUNK_BYTES):
        reader.feed(data[start : start + CHUNK_BYTES])
    return reader.position


def main() -> None:
    """Print both tables."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    files = [path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))] if folder else [make_session(20_000)]
    print_reading(files)
    print_counting()


if __name__ == "__main__":
    main()
