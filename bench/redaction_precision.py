"""What the redactor finds in any folder of text files: hits by rule with context, and precision from judgements.

`python bench/redaction_precision.py FOLDER [--wrap json] [--judged FILE] [--list FILE]`. The list is a table with one
line for each distinct hit: key, rule, count, file, text before, value, text after. A judgements file is a table whose
lines start with such a key and `secret` or `false`; hits without a judgement are counted apart.
"""

import argparse
import csv
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from dashboard.ingest.redaction.marks import join_overlapping
from dashboard.ingest.redaction.search import find_known

BEFORE, AFTER, LONGEST = 60, 30, 160  # bytes of context and of the value that are listed
KEYED = 24  # characters before the value that tell one hit from another
ESCAPES = re.compile(r"\\+u00[01][0-9a-f]|\\+[nrt]|[\x00-\x20\\\ufffd]")
LINE_START = re.compile(r".*(?:[\r\n]|\\[rn]|\u2192|\\u2192)", re.DOTALL)


@dataclass(frozen=True)
class Hit:
    rule: str
    before: str
    value: str
    after: str

    @property
    def key(self) -> str:
        """The same for one value in one context, plain, in JSON or with line numbers."""
        context = ESCAPES.sub("", LINE_START.sub("", self.before))[-KEYED:]
        return hashlib.sha256(f"{context}|{ESCAPES.sub('', self.value)}".encode()).hexdigest()[:12]


def wrap_as_tool_result(data: bytes) -> bytes:
    """The file as a line of a transcript holds it."""
    content = [{"type": "tool_result", "content": data.decode()}]
    return json.dumps({"type": "user", "message": {"role": "user", "content": content}}).encode()


def number_lines(data: bytes) -> bytes:
    """The file as an agent's file reading tool prints it, in a line of a transcript."""
    lines = data.decode().split("\n")
    return wrap_as_tool_result("\n".join(f"{n:6}\u2192{line}" for n, line in enumerate(lines, 1)).encode())


WRAPS: dict[str, Callable[[bytes], bytes]] = {"none": bytes, "json": wrap_as_tool_result, "numbered": number_lines}


def find_hits(data: bytes) -> Iterator[Hit]:
    spans = find_known(data)
    for start, end, rule in join_overlapping(spans) if spans else ():
        yield Hit(
            rule,
            data[max(0, start - BEFORE) : start].decode(errors="replace"),
            data[start:end].decode(errors="replace"),
            data[end : end + AFTER].decode(errors="replace"),
        )


def read_judgements(path: Path | None) -> dict[str, bool]:
    if path is None:
        return {}
    with path.open(newline="") as table:
        return {row[0]: row[1] == "secret" for row in csv.reader(table, delimiter="\t") if len(row) > 1}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--wrap", choices=WRAPS, default="none", help="how each file is presented to the redactor")
    parser.add_argument("--judged", type=Path, help="table of judgements: key, secret or false")
    parser.add_argument("--list", type=Path, help="where to write the table of distinct hits")
    options = parser.parse_args()
    counts, first, size = Counter[str](), dict[str, tuple[Hit, Path]](), 0
    for path in sorted(options.folder.rglob("*")):
        if not path.is_file():
            continue
        try:
            data = WRAPS[options.wrap](path.read_bytes())
        except UnicodeDecodeError:
            continue
        size += len(data)
        for hit in find_hits(data):
            counts[hit.key] += 1
            first.setdefault(hit.key, (hit, path))
    if options.list:
        write_list(options.list, counts, first)
    report(size, counts, {key: hit.rule for key, (hit, _) in first.items()}, read_judgements(options.judged))


def write_list(path: Path, counts: Counter[str], first: dict[str, tuple[Hit, Path]]) -> None:
    with path.open("w", newline="") as table:
        writer = csv.writer(table, delimiter="\t")
        for key, (hit, file) in sorted(first.items(), key=lambda item: (item[1][0].rule, item[1][0].before[-20:])):
            fields = (hit.before, hit.value[:LONGEST], hit.after)
            shown = [field.encode("unicode_escape").decode() for field in fields]
            writer.writerow([key, hit.rule, counts[key], file, *shown])


def report(size: int, counts: Counter[str], rules: dict[str, str], judged: dict[str, bool]) -> None:
    """One line for each rule and one for all: hits, distinct hits, and how many of each are secrets."""
    print(f"{size / 1e6:.1f} MB")
    print(f"{'rule':<26}{'hits':>8}{'distinct':>10}{'secrets':>9}{'of distinct':>13}{'not judged':>12}")
    for rule in [*sorted(set(rules.values())), "all"]:
        keys = [key for key in counts if rule in (rules[key], "all")]
        known = [key for key in keys if key in judged]
        secrets = [key for key in known if judged[key]]
        hits, right = sum(counts[key] for key in known), sum(counts[key] for key in secrets)
        shares = [f"{a / b:.1%}" if b else "-" for a, b in ((right, hits), (len(secrets), len(known)))]
        print(
            f"{rule:<26}{sum(counts[key] for key in keys):>8}{len(keys):>10}{shares[0]:>9}{shares[1]:>13}"
            f"{len(keys) - len(known):>12}"
        )


if __name__ == "__main__":
    main()
