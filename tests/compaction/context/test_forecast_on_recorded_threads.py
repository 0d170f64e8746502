"""The forecast replayed over recorded threads: how often the truth lies inside the range it gave."""

import statistics
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from bench.forecast import HALVES, Tally, find_half, list_stretches, replay_auto_line
from bench.threads import split_threads
from compaction.context.forecast import CallPoint, Forecast, forecast_threshold, list_call_points
from compaction.transcripts.transcript import read_transcript

RECORDED = Path(__file__).resolve().parents[3] / "../shared/data/transcripts"
MEASURED = Path(__file__).resolve().parents[3] / "../shared/data/measured"
CALLS_AHEAD = range(20, 61)


def list_segments() -> Iterator[tuple[list[CallPoint], int]]:
    """Every recorded thread with the positions where a stretch between two compactions begins."""
    for path in sorted(RECORDED.glob("*.jsonl")):
        for thread in split_threads(read_transcript(path.read_bytes()).entries):
            points = [point for point in list_call_points(thread.entries) if point.context_tokens]
            starts = [0, *(index for index, point in enumerate(points) if point.is_first_after_compaction), len(points)]
            for start, end in pairwise(starts):
                yield points[:end], start


def list_cases() -> Iterator[tuple[int, Forecast]]:
    """For every new height of a thread, taken as the line: the forecasts made 20 to 60 calls before it."""
    for points, start in list_segments():
        highest = 0
        for reached in range(start, len(points)):
            line = points[reached].context_tokens
            if line <= highest:
                continue
            highest = line
            for ahead in CALLS_AHEAD:
                if reached - ahead < start:
                    break
                found = forecast_threshold(points[: reached - ahead + 1], line)
                if isinstance(found, Forecast):
                    yield ahead, found


@pytest.mark.recorded_data
@pytest.mark.skipif(not RECORDED.is_dir(), reason="the recorded transcripts are not beside this checkout")
def test_the_truth_lies_inside_the_range_in_at_least_70_percent_of_recorded_cases() -> None:
    cases = list(list_cases())
    assert len(cases) > 1_000
    inside = sum(found.calls.low <= ahead <= found.calls.high for ahead, found in cases)
    width = statistics.median(found.calls.high / found.calls.low for _, found in cases)
    assert inside / len(cases) >= 0.70, f"{inside} of {len(cases)}"
    # A range that says nothing would pass too: the latest may be at most six times the soonest in half of the cases.
    assert width <= 6, width


@pytest.mark.recorded_data
@pytest.mark.skipif(not MEASURED.is_dir(), reason="the measured transcripts are not beside this checkout")
def test_four_of_five_real_auto_lines_come_within_the_range_and_few_before_it() -> None:
    """On the half of the sessions that nothing was tuned on; `python -m bench.forecast` prints the whole table."""
    stretches = [stretch for stretch in list_stretches(MEASURED) if find_half(stretch.session_id) == HALVES[1]]
    cases = [case for stretch in stretches for case in replay_auto_line(stretch) if case and case.has_reached]
    tally = Tally.count(cases, "calls")
    assert tally.total >= 70
    assert 0.75 <= tally.inside / tally.total <= 0.85, str(tally)
    assert tally.sooner / tally.total <= 0.08, str(tally)
