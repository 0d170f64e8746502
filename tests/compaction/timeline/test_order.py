"""The order of lines: the short way for those that stand in it already gives what the long one gives."""

from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.timeline import order as order_module
from compaction.timeline.observations import LineKind, Observation
from compaction.timeline.order import order_observations

START = datetime(2026, 11, 1, tzinfo=UTC)
Told = tuple[str, str | None, int | None]  # id, parent, second


def make(told: Told) -> Observation:
    name, parent, second = told
    at = None if second is None else START + timedelta(seconds=second)
    return Observation(id=name, kind=LineKind.OTHER, type="user", parent=parent, at=at)


def order(*told: Told) -> str:
    return "".join(fact.id for fact in order_observations(map(make, told)))


@pytest.mark.parametrize(
    ("told", "ordered"),
    [
        ([("a", None, 0), ("b", "a", 0), ("c", "b", 1)], "abc"),
        ([("a", "gone", 0), ("b", "a", 1)], "ab"),
        ([("a", None, 0), ("b", "a", 2), ("c", "a", 1)], "acb"),
        ([("a", None, 0), ("x", None, 0), ("b", "a", 0)], "axb"),
        ([("a", None, 0), ("b", "c", 1), ("c", "a", 2)], "acb"),  # not before its parent, whatever its time
        ([("a", None, 5), ("b", "a", 1), ("c", "b", 2)], "abc"),
        ([("a", None, 0), ("b", "b", 1)], "ab"),
        ([("a", "b", 0), ("b", "a", 1)], "ba"),
        ([("a", None, None), ("b", "a", 1)], "ab"),
        ([("a", None, 1), ("b", None, None)], "ba"),
        ([("a", None, 5), ("b", "a", 1), ("c", None, 2)], "cab"),
        ([("a", "b", 1), ("b", None, None)], "ba"),
        ([("a", "b", 1), ("b", "a", 1)], "ba"),
    ],
)
def test_lines_come_no_earlier_than_their_parents(told: list[Told], ordered: str) -> None:
    assert order(*told) == ordered


def test_files_as_they_are_written_go_the_short_way() -> None:
    told: list[Told] = [("a", None, 0), ("b", "a", 0), ("s", None, 1), ("c", "b", 2)]
    assert order_module._are_ordered({fact.id: fact for fact in map(make, told)})


_NAMES = st.sampled_from("abcdefgh")
_LINES = st.tuples(_NAMES, st.none() | _NAMES | st.just("gone"), st.none() | st.integers(0, 4))
# Nearly in order, as files are: most lines behind their parents, a step later or none.
_STEPS = st.tuples(st.integers(-1, 8), st.sampled_from([0, 0, 1, 1, 2, -2]))


@st.composite
def nearly_ordered(draw: st.DrawFn) -> list[Told]:
    told: list[Told] = []
    second = 0
    for number, (back, step) in enumerate(draw(st.lists(_STEPS, max_size=9))):
        second += step
        above = number - 1 if back > 2 else number - 1 - back
        told.append((chr(ord("a") + number), chr(ord("a") + above) if above >= 0 else None, second))
    return told


@given(st.lists(_LINES, max_size=8) | nearly_ordered())
def test_the_short_way_gives_what_the_long_one_gives(told: list[Told]) -> None:
    short = order(*told)
    with patch.object(order_module, "_are_ordered", return_value=False):
        assert short == order(*told)
