"""The estimate of output held against recorded calls whose output is known, by model and half.

Run: python -m bench.output_estimate FOLDER [FOLDER ...] with transcripts (.jsonl, .jsonl.gz).

A call is known when its lines hold a stop reason: the output reported there is the truth. The estimate is what the
product would count had the reason not been written (compaction/transcripts/output_estimate.py). Calls with hidden
thinking are apart: what is hidden cannot be estimated. A call that stands in several files counts once.

Both figures of the estimate were fitted on the tuning half: the hash of bench/forecast.py, taken of the name of the
file. A session with a file in the tuning half belongs to it wholly, so nothing in the checking half was fitted on. The
checking half in sum is what `compaction/llm/table.py` holds as `checked_output`.
"""

import argparse
import gzip
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from bench.forecast import HALVES, find_half
from compaction.llm.names import read_model_name
from compaction.transcripts.entries import Block, Entry, ThinkingBlock
from compaction.transcripts.output_estimate import count_written_characters, estimate_output
from compaction.transcripts.transcript import read_transcript


@dataclass(frozen=True, slots=True)
class KnownCall:
    """A call whose output is known, beside what would have been estimated."""

    session_id: str
    family: str
    half: str
    has_hidden_thinking: bool
    estimate: int
    truth: int


def list_known_calls(folders: Iterable[Path]) -> list[KnownCall]:
    found: list[KnownCall] = []
    seen: set[str] = set()
    for path in sorted(path for folder in folders for path in (*folder.glob("*.jsonl"), *folder.glob("*.jsonl.gz"))):
        data = path.read_bytes()
        lines: dict[str, list[Entry]] = {}
        for entry in read_transcript(gzip.decompress(data) if path.suffix == ".gz" else data).entries:
            call_id = entry.call_id
            if call_id is not None and call_id not in seen:
                lines.setdefault(call_id, []).append(entry)
        seen |= lines.keys()
        half = find_half(path.name.partition(".")[0])
        found += [known for own in lines.values() if (known := _measure(own, path.name, half)) is not None]
    tuned = {call.session_id for call in found if call.half == HALVES[0]}
    return [replace(call, half=HALVES[0]) if call.session_id in tuned else call for call in found]


def _measure(lines: list[Entry], file_name: str, half: str) -> KnownCall | None:
    """Return what is known of a call from its lines; None without a stop reason, or without anything written."""
    messages = [line.message for line in lines if line.message]
    last = messages[-1]
    blocks = [block for message in messages for block in message.content]
    if last.stop_reason is None or last.usage is None or not last.usage.output_tokens or not blocks:
        return None
    return KnownCall(
        session_id=lines[0].session_id or file_name,
        family=read_model_name(last.model or "").base,
        half=half,
        has_hidden_thinking=any(is_hidden(block) for block in blocks),
        estimate=estimate_output(count_written_characters(blocks)),
        truth=last.usage.output_tokens,
    )


def is_hidden(block: Block) -> bool:
    """Return whether the model wrote something here that the transcript does not hold."""
    return isinstance(block, ThinkingBlock) and not block.thinking


def print_table(title: str, calls: list[KnownCall]) -> None:
    print(f"\n{title}")
    for family in sorted({call.family for call in calls}):
        print(f"  {family:24}", end="")
        for half in HALVES:
            chosen = [call for call in calls if call.family == family and call.half == half]
            print(f"  {half}: {_describe(chosen):52}", end="")
        print()
    for half in HALVES:
        print(f"  all, {half}: {_describe([call for call in calls if call.half == half])}")


def _describe(calls: list[KnownCall]) -> str:
    if not calls:
        return "no call"
    in_sum = sum(call.estimate for call in calls) / sum(call.truth for call in calls)
    median = statistics.median(call.estimate / call.truth for call in calls)
    sessions = len({call.session_id for call in calls})
    return f"{len(calls)} calls of {sessions} sessions, in sum {in_sum:.2f}, median {median:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("folders", nargs="+", type=Path, help="folders with transcripts")
    calls = list_known_calls(parser.parse_args().folders)
    print_table("Estimate / truth", [call for call in calls if not call.has_hidden_thinking])
    print_table("Estimate / truth where thinking is hidden", [call for call in calls if call.has_hidden_thinking])


if __name__ == "__main__":
    main()
