"""The marks that stand where secrets stood: [redacted:github-token]."""

import re
from collections import Counter
from collections.abc import Iterator

MARK = b"[redacted:%s]"
MARK_START = b"[redacted:"
MARKS = re.compile(rb"\[redacted:[a-z][a-z0-9-]{0,39}\]")
Span = tuple[int, int, str]  # start, end, name of the form


def put_marks(data: bytes, spans: list[Span]) -> tuple[bytes, Counter[str]]:
    pieces, counts, done = [], Counter[str](), 0
    for start, end, name in join_overlapping(spans):
        pieces += [data[done:start], MARK % name.encode()]
        counts[name] += 1
        done = end
    pieces.append(data[done:])
    return b"".join(pieces), counts


def join_overlapping(spans: list[Span]) -> Iterator[Span]:
    """In order; where two overlap they become one under the name of the one that starts first (the longer of two)."""
    ordered = sorted(spans, key=lambda span: (span[0], -span[1]))
    start, end, name = ordered[0]
    for next_start, next_end, next_name in ordered[1:]:
        if next_start < end:
            end = max(end, next_end)
        else:
            yield start, end, name
            start, end, name = next_start, next_end, next_name
    yield start, end, name
