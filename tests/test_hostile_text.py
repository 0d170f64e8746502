"""Every regular expression of ours takes time in proportion to the text, up to a megabyte made to be hard for it."""

import os
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from compaction.activity.priorities import read_priorities
from compaction.compactors.summary.answer import _match_heading
from compaction.compactors.summary.prompt import SECTIONS
from dashboard.ingest.redaction import Redactor
from dashboard.ingest.redaction.own_patterns import MAX_LENGTH
from dashboard.pages.transcript_rows import _build_pattern
from tests.own_expressions import METHODS, Expression, list_expressions, list_inner_calls, make_hard_units

TINY, SMALL, MEDIUM, LARGE = 250, 2_000, 16_000, 125_000
LARGEST = 1_000_000
# Every text of every pattern takes minutes: each run tries some of them, PLIMSOLL_TEST_LONG=1 all.
IS_LONG = bool(os.environ.get("PLIMSOLL_TEST_LONG"))
MOST_UNITS = 1_000_000 if IS_LONG else 3
LARGEST_PASS = LARGEST if IS_LONG else MEDIUM  # of the whole redaction, once for each of its patterns
CHEAP_SECONDS = 1e-6  # a byte: below it nothing is compared, as a megabyte takes a second at most
EXPLOSION_SECONDS = 0.2  # for some tens of characters
HARDEST = 1  # texts of a pattern that are tried in full length
REDACTION = "dashboard.ingest.redaction."
# Expressions that functions build, and what they build. Those of `search` are kept by their module.
PRIORITIES = [
    read_priorities("keep the failing tests and `a a b`, aaa and aaab").pattern,
    read_priorities("保留数据库").pattern,
]
BUILT: dict[str, list["re.Pattern[str]"]] = {
    "compaction.activity.priorities:read_priorities": [pattern for pattern in PRIORITIES if pattern],
    "compaction.activity.priorities:list_matching_terms": [],  # the same, each term alone
    "compaction.compactors.summary.answer:_match_heading": [_match_heading(name) for name in SECTIONS],
    "dashboard.pages.transcript_rows:_build_pattern": [_build_pattern("a a b"), _build_pattern("+ (a+)+ b")],
    "dashboard.ingest.redaction.search:_tries_by_expression": [],
}
# Patterns that only ever run on a piece of text, with its longest length.
BOUNDED = {"dashboard.ingest.redaction.own_patterns._TOKEN": MAX_LENGTH}
EXPRESSIONS = [
    *list_expressions(),
    *(Expression(f"{place}[{n}]", pattern, METHODS) for place, all_ in BUILT.items() for n, pattern in enumerate(all_)),
]

Run = Callable[[Any], object]


def test_expressions_are_kept_by_modules() -> None:
    """One that a function compiles would not be found: it is made a constant, or listed above."""
    assert set(list_inner_calls()) == set(BUILT)
    assert len(EXPRESSIONS) > 150


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda expression: expression.place)
def test_time_grows_with_the_text(expression: Expression) -> None:
    units = make_hard_units(expression.pattern)
    units = units[:: max(1, len(units) // MOST_UNITS)]
    longest = BOUNDED.get(expression.place, LARGEST)
    if expression.place.startswith(REDACTION) and longest == LARGEST:
        # These run at places that a scan finds, and on pieces around them: what counts is the whole pass.
        require_linear(units, Redactor.default().redact, LARGEST_PASS, is_bytes=True)
    else:
        require_linear(units, choose_run(expression), longest, is_bytes=isinstance(expression.pattern.pattern, bytes))


@pytest.mark.parametrize("pattern", [r"\s*x\s*y", r"(a|aa)+b", r"<(.*?)>;"])
def test_quadratic_and_worse_patterns_are_found(pattern: str) -> None:
    compiled = re.compile(pattern)
    with pytest.raises(AssertionError, match="bytes take"):
        require_linear(
            make_hard_units(compiled), choose_run(Expression("planted", compiled, METHODS)), MEDIUM, is_bytes=False
        )


def choose_run(expression: Expression) -> Run:
    """All the matches of a text, or the one at its start where nothing else is asked for."""
    if expression.methods <= {"match", "fullmatch"}:
        methods = [getattr(expression.pattern, name) for name in sorted(expression.methods)]
        return lambda text: [method(text) for method in methods]
    return lambda text: sum(1 for _ in expression.pattern.finditer(text))


def require_linear(units: list[tuple[str, str]], run: Run, longest: int, *, is_bytes: bool) -> None:
    """Compare the time per byte of texts that grow eightfold, the hardest ones up to the longest."""
    hardest: list[tuple[float, tuple[str, str]]] = []
    for pair in units:
        require_no_explosion(run, pair, is_bytes=is_bytes)
        # Repeats up to some hundred times may grow here, which cubic time outgrows by far.
        shortest = measure(run, pair, min(TINY, longest), is_bytes=is_bytes)
        first = measure(run, pair, min(SMALL, longest), is_bytes=is_bytes)
        require_growth(run, pair, (TINY, shortest), (SMALL, first), 20, is_bytes=is_bytes)
        second = measure(run, pair, min(MEDIUM, longest), is_bytes=is_bytes)
        require_growth(run, pair, (SMALL, first), (MEDIUM, second), 4, is_bytes=is_bytes)
        hardest.append((second, pair))
    for second, pair in sorted(hardest, reverse=True)[:HARDEST] if longest >= LARGE else ():
        third = measure(run, pair, LARGE, is_bytes=is_bytes)
        require_growth(run, pair, (MEDIUM, second), (LARGE, third), 2, is_bytes=is_bytes)
        if longest < LARGEST:
            return
        fourth = measure(run, pair, LARGEST, is_bytes=is_bytes)
        require_growth(run, pair, (LARGE, third), (LARGEST, fourth), 2, is_bytes=is_bytes)


def require_no_explosion(run: Run, pair: tuple[str, str], *, is_bytes: bool) -> None:
    """Exponential time shows in the first characters already, and would never end in a longer text."""
    lead, unit = pair
    for size in range(len(lead) + 4, len(lead) + 48, 2):
        seconds = size * measure(run, pair, size, is_bytes=is_bytes)
        assert seconds < EXPLOSION_SECONDS, f"{size:,} bytes take {seconds:.1f} s: {lead!r} + {unit!r} * n"


def require_growth(
    run: Run, pair: tuple[str, str], small: tuple[int, float], large: tuple[int, float], factor: int, *, is_bytes: bool
) -> None:
    (_, before), (size, now) = small, large
    for _ in range(3):
        if now <= max(CHEAP_SECONDS, factor * before):
            return
        now = min(now, measure(run, pair, size, is_bytes=is_bytes))
    lead, unit = pair
    raise AssertionError(
        f"{size:,} bytes take {now * 1e6:.1f} µs a byte, {small[0]:,} take {before * 1e6:.1f}: {lead!r} + {unit!r} * n"
    )


def measure(run: Run, pair: tuple[str, str], size: int, *, is_bytes: bool) -> float:
    """Seconds a byte."""
    lead, unit = pair
    text = (lead + unit * (size // len(unit) + 1))[:size]
    data: Any = text.encode("latin-1") if is_bytes else text
    began = time.thread_time()
    run(data)
    return (time.thread_time() - began) / size
