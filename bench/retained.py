"""Does the retained percentage agree with what readers found? Real compactions, fact lists, damaged copies.

Run: python -m bench.retained FOLDER [--half checking], with the transcripts (*.jsonl, *.jsonl.gz) below FOLDER.

bench/retained/ holds a file for each compaction. Its 15 facts were written by a reader of the raw conversation before
any summary was seen; another reader judged which of them the client's summary and our extractive summary contain, and
on which lines of the client's summary each stands. Nothing is quoted: entries are named by uuid.

Damaged copies of the client's summary: its facts removed one by one (in several orders), lines without any fact
removed, all lines with facts replaced by a rewording. A percentage that is worth showing falls with the first and
keeps still with the others.

Across kinds: whether the client's summary and ours are in the order of their facts, and how many points ours has more
than the client's summary would have with as many facts, by the line through its damaged copies. Summaries that quote
have more: the percentage compares summaries of one kind only.
"""

import argparse
import gzip
import hashlib
import json
import random
import statistics
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from compaction.audit.audit import audit_compaction
from compaction.audit.score import AuditReport
from compaction.compactors.extractive.summarizer import build_extractive_summary
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry, Message, TextBlock
from compaction.transcripts.transcript import read_transcript

LISTS = Path(__file__).parent / "retained"
CREDITS = {"yes": 1.0, "partly": 0.5, "no": 0.0}
ORDERS = 8  # in which facts are removed
MOVES = 3.0  # points: a percentage that moves by no more keeps still


@dataclass(frozen=True)
class FactList:
    """What a continuing agent needs to know of one conversation, and where the client's summary says it."""

    name: str
    half: str
    session: str
    boundary: str
    facts: list[dict[str, object]]
    carried_by: dict[str, list[int]]  # fact -> lines of the client's summary
    verdicts: dict[str, dict[str, str]]  # summary -> fact -> verdict
    digests: dict[str, str]  # of the summaries that were judged
    unrelated: list[int]
    rewordings: dict[str, str]

    def count_facts(self, summary: str) -> float | None:
        """Return how many facts a summary contains; None where it was not judged."""
        verdicts = self.verdicts.get(summary)
        return None if verdicts is None else sum(CREDITS[verdict] for verdict in verdicts.values())


@dataclass(frozen=True)
class Kinds:
    """Facts and percentages of two summaries of one conversation, made in different ways."""

    half: str
    client: tuple[float, float]  # facts, percentage
    extractive: tuple[float, float]
    excess: float  # points that ours has more than the client's would have with as many facts

    @property
    def order(self) -> str:
        """Return whether the percentages are in the order of the facts."""
        facts, points = (self.extractive[part] - self.client[part] for part in (0, 1))
        return "tie" if not facts or not points else "same" if (facts > 0) == (points > 0) else "reversed"


@dataclass(frozen=True)
class Compaction:
    """One compaction with its conversation and both summaries."""

    facts: FactList
    before: tuple[Entry, ...]
    client: str
    extractive: str


@dataclass(frozen=True)
class Damage:
    """How the percentage follows damage of the client's summary."""

    half: str
    fewer_facts: list[tuple[float, float]]  # facts left, percentage
    ordered: int  # pairs of copies with different numbers of facts that the percentage orders rightly
    ties: int
    pairs: int
    drop: float  # from all facts to none
    moved_by_unrelated: float
    moved_by_rewording: float


def read_lists() -> list[FactList]:
    """Return all fact lists."""
    return [FactList(**json.loads(path.read_bytes())) for path in sorted(LISTS.glob("*.json"))]


def find_compactions(folder: Path, lists: Sequence[FactList]) -> Iterator[Compaction]:
    """Yield the compactions of the lists that are below the folder. Copies with masked words are passed over."""
    for facts in lists:
        found = (read_compaction(path, facts) for path in sorted(folder.rglob(f"{facts.session}.jsonl*")))
        compaction = next((one for one in found if digest(one.client) == facts.digests["client"]), None)
        if compaction is None:
            print(f"{facts.name}: no transcript")
        else:
            yield compaction


def read_compaction(path: Path, facts: FactList) -> Compaction:
    """Return the compaction as the transcript holds it, with a summary of our own."""
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    entries = read_transcript(data).entries
    place = next(index for index, entry in enumerate(entries) if entry.uuid == facts.boundary)
    end = next((index for index in range(place, len(entries)) if entries[index].is_response), len(entries))
    before = slice_context(follow_chain(entries[:place])).entries
    after = slice_context(follow_chain(entries[:end])).entries
    client = "\n".join(read_text(entry) for entry in after if entry.is_compact_summary)
    return Compaction(facts, before, client, build_extractive_summary(before))


def digest(text: str) -> str:
    """Return the digest by which a summary is recognised."""
    return hashlib.sha256(text.encode()).hexdigest()


def read_text(entry: Entry) -> str:
    """Return the text of a message."""
    blocks = entry.message.content if entry.message else ()
    return "".join(block.text for block in blocks if isinstance(block, TextBlock))


def audit_summary(before: Sequence[Entry], summary: str) -> AuditReport:
    """Audit a summary by itself, with nothing kept or restored beside it."""
    return audit_compaction(before, [Entry("user", message=Message("user", (TextBlock(summary),)))])


def score(compaction: Compaction, summary: str) -> float:
    """Return the percentage of a summary by itself."""
    return float(audit_summary(compaction.before, summary).retained or 0)


def measure_damage(compaction: Compaction, *, orders: int = ORDERS) -> Damage:
    """Audit damaged copies of the client's summary."""
    facts, lines = compaction.facts, compaction.client.splitlines()
    whole = score(compaction, compaction.client)
    series = [remove_facts(compaction, lines, seed) for seed in range(orders)]
    ordered = ties = pairs = 0
    for points in series:
        for (more, high), (fewer, low) in combinations(points, 2):
            if more > fewer:
                pairs, ordered, ties = pairs + 1, ordered + (high > low), ties + (high == low)
    unrelated = [line for number, line in enumerate(lines, 1) if number not in set(facts.unrelated)]
    reworded = [facts.rewordings.get(str(number), line) for number, line in enumerate(lines, 1)]
    return Damage(
        half=facts.half,
        fewer_facts=series[0],
        ordered=ordered,
        ties=ties,
        pairs=pairs,
        drop=statistics.mean(points[0][1] - points[-1][1] for points in series),
        moved_by_unrelated=score(compaction, "\n".join(unrelated)) - whole,
        moved_by_rewording=score(compaction, "\n".join(reworded)) - whole,
    )


def remove_facts(compaction: Compaction, lines: Sequence[str], seed: int) -> list[tuple[float, float]]:
    """Return facts left and percentage for copies with one fact fewer each. Facts that share a line go together."""
    facts = compaction.facts
    verdicts = facts.verdicts["client"]
    order = [number for number, carried in facts.carried_by.items() if carried]
    random.Random(seed).shuffle(order)
    removed: set[int] = set()
    points = []
    for number in [None, *order]:
        removed |= set(facts.carried_by[number]) if number else set()
        left = sum(
            CREDITS[verdicts[fact]] * sum(line not in removed for line in carried) / len(carried)
            for fact, carried in facts.carried_by.items()
            if carried
        )
        text = "\n".join(line for at, line in enumerate(lines, 1) if at not in removed)
        points.append((left, score(compaction, text)))
    return points


def compare_kinds(compaction: Compaction, damage: Damage) -> Kinds | None:
    """Compare the client's summary with ours; None where one of them was not judged."""
    counts = count_judged(compaction, "client"), count_judged(compaction, "extractive")
    if counts[0] is None or counts[1] is None:
        return None
    client, extractive = score(compaction, compaction.client), score(compaction, compaction.extractive)
    slope, _ = statistics.linear_regression(*zip(*damage.fewer_facts, strict=True))
    expected = client + slope * (counts[1] - counts[0])
    return Kinds(damage.half, (counts[0], client), (counts[1], extractive), extractive - expected)


def correlate(pairs: Sequence[tuple[float, float]]) -> float:
    """Return Spearman's rank correlation."""
    return statistics.correlation(rank([facts for facts, _ in pairs]), rank([percent for _, percent in pairs]))


def rank(values: Sequence[float]) -> list[float]:
    """Return the rank of each value; equal ones share the mean of theirs."""
    ordered = sorted(values)
    return [(bisect_left(ordered, value) + bisect_right(ordered, value) - 1) / 2 for value in values]


def main() -> None:
    """Print a row for each compaction, then the agreement over all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--half", choices=("tuning", "checking"), help="one half of the compactions only")
    arguments = parser.parse_args()
    lists = [facts for facts in read_lists() if arguments.half in (None, facts.half)]
    print(
        "                              facts of 15               retained %     client's summary, damaged: points\n"
        "                              client  before extract   client extract  pairs in order (ties)   drop  unrel."
        "  reworded"
    )
    damages, kinds = [], []
    for compaction in find_compactions(arguments.folder, lists):
        damage = measure_damage(compaction)
        damages.append(damage)
        kinds += [pair] if (pair := compare_kinds(compaction, damage)) else []
        print_row(compaction, damage)
    for half in ("tuning", "checking"):
        print_agreement(half, [damage for damage in damages if damage.half == half])
        print_kinds(half, [pair for pair in kinds if pair.half == half])
    summaries = [point for pair in kinds for point in (pair.client, pair.extractive)]
    copies = [point for damage in damages for point in damage.fewer_facts]
    ours = [pair.extractive for pair in kinds]
    if kinds:
        print(
            f"rank correlation of facts and percentage: {correlate(copies + ours):.2f} over all summaries and copies;"
            f" {correlate(copies):.2f} over the client's summaries and their copies; {correlate(summaries):.2f} over"
            f" {len(summaries)} whole summaries of both kinds"
        )


def print_row(compaction: Compaction, damage: Damage) -> None:
    """Print facts, percentages and the effect of damage of one compaction."""
    counts = [
        count_judged(compaction, "client"),
        compaction.facts.count_facts("extractive_before"),
        count_judged(compaction, "extractive"),
    ]
    percentages = [score(compaction, compaction.client), score(compaction, compaction.extractive)]
    print(
        f"{compaction.facts.name:<18} {compaction.facts.half:<9}"
        + "".join(f"{'-' if count is None else count:>8}" for count in counts)
        + "".join(f"{percentage:8.1f}" for percentage in percentages)
        + f"{damage.ordered:8}/{damage.pairs} = {damage.ordered / damage.pairs:4.0%} ({damage.ties})"
        + f"{-damage.drop:9.1f}{damage.moved_by_unrelated:8.1f}{damage.moved_by_rewording:9.1f}"
    )


def print_agreement(half: str, damages: Sequence[Damage]) -> None:
    """Print how the percentage follows damage, over the compactions of one half."""
    if not damages:
        return
    pairs = sum(damage.pairs for damage in damages)
    print(
        f"{half}: {sum(damage.ordered for damage in damages) / pairs:.1%} of {pairs:,} pairs in order; still within"
        f" {MOVES:.0f} points without unrelated lines {sum(abs(one.moved_by_unrelated) <= MOVES for one in damages)},"
        f" reworded {sum(abs(one.moved_by_rewording) <= MOVES for one in damages)} of {len(damages)}"
    )


def print_kinds(half: str, kinds: Sequence[Kinds]) -> None:
    """Print whether summaries of different kinds are in the order of their facts, over one half."""
    if not kinds:
        return
    orders = [pair.order for pair in kinds]
    excess = [pair.excess for pair in kinds]
    print(
        f"{half}, client and extractive: {orders.count('same')} of {len(kinds)} pairs in the order of their facts,"
        f" {orders.count('reversed')} reversed, {orders.count('tie')} with as many facts; with as many facts extractive"
        f" is {statistics.mean(excess):.1f} points higher ({min(excess):.1f} to {max(excess):.1f})"
    )


def count_judged(compaction: Compaction, name: str) -> float | None:
    """Return the facts in a summary; None where the summary is another one than the reader judged."""
    is_judged = compaction.facts.digests.get(name) == digest(getattr(compaction, name))
    return compaction.facts.count_facts(name) if is_judged else None


if __name__ == "__main__":
    main()
