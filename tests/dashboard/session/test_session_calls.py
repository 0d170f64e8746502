"""The calls of a session: their order, pages of the table, one call in detail, the figure."""

from decimal import Decimal
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard import access
from dashboard.access import Actor
from dashboard.chart_data import TimelineAxis
from dashboard.models import AgentSession, ApiCall
from dashboard.pages.session_call import read_call, say_sources
from dashboard.pages.session_calls import PAGE_SIZE, PlacedCall, read_calls, read_page, weave_threads
from dashboard.pages.session_page import read_header, read_threads
from dashboard.pages.session_timeline import chart_session
from dashboard.templatetags.call_rows import call_rows
from tests.builders import make_session, make_team, make_user
from tests.session_builders import START, add_break, add_compaction, make_calls


@pytest.fixture
def session() -> AgentSession:
    return make_session(make_team("Harbour", owner="olga"), "s-1")


def viewer() -> Actor:
    return access.person(make_user("olga"))


# --- order -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.sampled_from(["", "a", "b"]), max_size=15), st.randoms())
def test_time_weaves_threads_and_each_keeps_its_order(agents: list[str], chance: Random) -> None:
    """`agents`: whose turn it is by the clock; the clock may have told the calls of one thread in any order."""
    straight = [
        PlacedCall(place, "", agent_id, agents[:place].count(agent_id), 0, 0, 0, 0, 0, 0, is_counted=True)
        for place, agent_id in enumerate(agents)
    ]
    assert weave_threads(straight) == tuple(straight)
    shuffled = {agent_id: [call for call in straight if call.agent_id == agent_id] for agent_id in agents}
    for own in shuffled.values():
        chance.shuffle(own)
    assert weave_threads([shuffled[agent_id].pop() for agent_id in agents]) == tuple(straight)


@pytest.mark.django_db
def test_calls_without_a_time_stay_in_their_thread(session: AgentSession) -> None:
    calls = make_calls(session, 4)
    make_calls(session, 2, agent_id="a", at=None)
    calls[2].at = None
    calls[2].save()
    found = read_calls(viewer(), session).calls
    assert [call.number for call in found if call.agent_id == ""] == [1, 2, 3, 4]
    assert [call.number for call in found if call.agent_id == "a"] == [1, 2]
    timed = read_calls(viewer(), session, is_timed=True).calls
    assert [call.pk for call in timed] == [call.pk for call in found]
    assert {call.at for call in found} == {None}
    assert next(call.at for call in timed if call.number == 4) == calls[3].at


# --- the table -------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("count", [0, 1, PAGE_SIZE, PAGE_SIZE + 1, 2 * PAGE_SIZE + 3])
def test_pages_hold_every_call_once(session: AgentSession, count: int) -> None:
    make_calls(session, count)
    calls, threads = read_calls(viewer(), session), read_threads(session)
    places: list[int] = []
    page = read_page(viewer(), calls, threads, before=None)
    while True:
        places += [row.call.number for row in page.rows]
        assert (page.first_row, page.last_row) == (len(places) - len(page.rows) + 1, len(places))
        if page.older_than is None:
            break
        page = read_page(viewer(), calls, threads, before=page.older_than)
        assert not page.is_newest
    assert places == list(range(count, 0, -1))


@pytest.mark.django_db
def test_rows_tell_what_happened(session: AgentSession) -> None:
    calls = make_calls(session, 6)
    add_break(calls[2])
    add_break(calls[4], kind="expected", cause="compacted", lost_usd=None)
    add_compaction(session, behind=4)
    calls[0].is_counted = False
    calls[0].save()
    page = read_page(viewer(), read_calls(viewer(), session), read_threads(session), before=None)
    events = {row.call.number: "; ".join(row.events) for row in page.rows}
    assert events[1] == "copy, not counted"
    assert events[3].startswith("cache break: ")
    assert events[3].endswith(", $0.06")
    assert events[5].startswith("compacted before this call: 167k → 51k; expected rebuild: ")
    assert events[5].endswith(", unknown")
    assert events[2] == events[4] == ""


@pytest.mark.django_db
def test_row_of_the_table_is_drawn_with_everything_and_no_markup_of_others(session: AgentSession) -> None:
    calls = make_calls(session, 2)
    make_calls(session, 1, agent_id="<b>", at=None)
    calls[1].is_counted, calls[1].is_output_estimated, calls[1].cost_usd = False, True, None
    calls[1].save()
    page = read_page(viewer(), read_calls(viewer(), session), read_threads(session), before=None)
    drawn = call_rows(page, "?x=time&call=")
    assert f'<a href="?x=time&amp;call={calls[1].pk}" hx-get="?x=time&amp;call={calls[1].pk}"' in drawn
    copy = drawn[: drawn.index("</tr>")]
    assert copy.startswith('<tr class="dim"><td class="num">')
    assert f'<td class="num">~{calls[1].output_tokens}</td><td class="num">unknown</td>' in copy
    assert copy.endswith("<td>copy, not counted</td>")
    assert '<td class="nowrap">unknown</td>' in drawn
    assert "<b>" not in drawn


# --- one call --------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_dollars_by_kind_add_up_and_what_is_beyond_them_is_said(session: AgentSession) -> None:
    calls = make_calls(session, 3, write_1h_tokens=1000, cost_usd=Decimal("0.5"))
    found = read_calls(viewer(), session)
    details = read_call(viewer(), found, read_threads(session), calls[1].pk)
    assert details is not None
    known = [kind.usd for kind in details.kinds]
    # Sonnet 4.5: $3 input, $15 output, $0.30 read, $3.75 and $6 written, per million.
    assert known == [
        20_500 * Decimal("0.3") / 10**6,
        460 * Decimal("3.75") / 10**6,
        1000 * Decimal(6) / 10**6,
        4 * Decimal(3) / 10**6,
        36 * Decimal(15) / 10**6,
    ]
    assert details.other_usd == Decimal("0.5") - sum(usd for usd in known if usd)
    assert details.hit_rate == 20_500 / (20_500 + 460 + 1000 + 4)


@pytest.mark.django_db
def test_neighbours_are_of_the_same_thread_and_only_the_last_call_foretells(session: AgentSession) -> None:
    main = make_calls(session, 3)
    make_calls(session, 3, agent_id="a")
    found, threads = read_calls(viewer(), session), read_threads(session)
    first, middle, last = (read_call(viewer(), found, threads, call.pk) for call in main)
    assert first
    assert middle
    assert last
    assert (first.previous_pk, first.next_pk) == (None, main[1].pk)
    assert (middle.previous_pk, middle.next_pk) == (main[0].pk, main[2].pk)
    assert last.is_last
    assert first.next_cost is middle.next_cost is None
    assert last.next_cost is not None
    assert last.next_cost.cold_usd > last.next_cost.warm_usd > 0
    assert [details.call.number for details in (first, middle, last)] == [1, 2, 3]


VERDICTS: dict[str, tuple[dict[str, Any], int, str, str]] = {
    "broke": ({}, 3, "break", "cache break"),
    "had to": ({}, 3, "expected", "expected rebuild"),
    "held": ({}, 3, "", "cache hit"),
    "first": ({}, 1, "", "first call"),
    "haiku": ({"model": "claude-haiku-4-5"}, 3, "", "not checked"),
    "side call": ({"query_source": "compact"}, 3, "", "not checked"),
    "empty": ({"read_tokens": 0, "write_5m_tokens": 0, "input_tokens": 0}, 3, "", "not checked"),
}


@pytest.mark.django_db
@pytest.mark.parametrize("case", VERDICTS)
def test_verdict_is_the_stored_one_or_says_why_there_is_none(session: AgentSession, case: str) -> None:
    columns, number, kind, expected = VERDICTS[case]
    calls = make_calls(session, 3, **columns)
    stored = add_break(calls[number - 1], kind=kind) if kind else None
    details = read_call(viewer(), read_calls(viewer(), session), read_threads(session), calls[number - 1].pk)
    assert details is not None
    assert details.verdict.kind.label == expected
    assert details.verdict.break_id == (stored.pk if stored else None)


SOURCES: dict[str, tuple[dict[str, str], str]] = {
    "lines": ({}, "the transcript"),
    "proxy": ({"usage": "proxy", "model": "proxy", "request_id": "proxy"}, "the proxy"),
    "own agent": ({"usage": "api", "model": "api"}, "the JSON API"),
    "both": (
        {"usage": "otlp", "duration_seconds": "otlp"},
        "duration and tokens: telemetry (OTLP); everything else: the transcript",
    ),
    "two reports": (
        {"usage": "proxy", "model": "proxy", "request_id": "otlp"},
        "model and tokens: the proxy; request: telemetry (OTLP)",
    ),
}


@pytest.mark.parametrize("case", SOURCES)
def test_call_says_who_told_of_it(case: str) -> None:
    provenance, words = SOURCES[case]
    assert say_sources(ApiCall(provenance=provenance, model="claude-opus-4-5")) == words


@pytest.mark.django_db
def test_call_leads_to_the_compactions_on_both_sides(session: AgentSession) -> None:
    """A call beside the conversation stands between the second one and the call that it follows."""
    calls = make_calls(session, 5)
    ApiCall.objects.filter(pk=calls[3].pk).update(query_source="generate_session_title")
    add_compaction(session, behind=1)
    add_compaction(session, behind=4)
    found, threads = read_calls(viewer(), session), read_threads(session)
    sides = []
    for call in calls:
        details = read_call(viewer(), found, threads, call.pk)
        assert details is not None
        sides.append(([one.call_number for one in details.compactions_before],
                      [one.call_number for one in details.compactions_after]))  # fmt: skip
    assert sides == [([], [1]), ([1], []), ([], [4]), ([], []), ([4], [])]


# --- the figure ------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
@pytest.mark.parametrize("axis", list(TimelineAxis))
def test_figure_places_all_threads_on_one_axis(session: AgentSession, axis: TimelineAxis) -> None:
    calls = make_calls(session, 6)
    make_calls(session, 2, agent_id="a")
    add_compaction(session, behind=3, before_tokens=None, after_tokens=None)
    add_compaction(session, behind=6, after_tokens=None)
    add_break(calls[4], lost_usd=None)
    session.refresh_from_db()
    header = read_header(viewer(), session, now=START)
    found = read_calls(viewer(), session, is_timed=True)
    chart = chart_session(header, found, axis=axis, picked=calls[1].pk)
    figure = chart.serialize_figure()
    traces = {trace["name"]: trace for trace in figure["data"]}
    rows, lanes, compacted = traces["calls"]["customdata"], traces["call of a sub-agent"], traces["compaction"]
    mark = figure["layout"]["shapes"][-1]
    assert (mark["name"], mark["x0"]) == ("picked", rows[1][-1])
    assert [row[0] for row in rows] == [str(call.pk) for call in calls]
    assert len(lanes["x"]) == 2
    if axis is TimelineAxis.CALL:
        # Both threads began together: one call of the agent followed each of the first two.
        assert [row[-1] for row in rows] == [1, 2, 3, 4, 5, 6]
        assert lanes["x"] == [1, 2]
    # No call has followed the newest one: it stands behind the last, and what it left is not known yet.
    newest = figure["layout"]["shapes"][-2]
    assert newest["x0"] == compacted["x"][1] >= rows[5][-1]
    assert newest["label"]["text"] == "167k → unknown"
    assert "compacted after call 6: 167k → unknown" in compacted["text"][1]
    assert compacted["customdata"] == [str(calls[3].pk), str(calls[5].pk)]
    assert traces["cache break"]["customdata"] == [str(calls[4].pk)]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("copies", "areas"), [([], []), ([1, 2, 3], [(0.5, 3.5)]), ([1, 2, 5], [(0.5, 2.5), (4.5, 5.5)])]
)
def test_copies_are_shaded_in_runs(session: AgentSession, copies: list[int], areas: list[tuple[float, float]]) -> None:
    for call in make_calls(session, 5):
        call.is_counted = call.number not in copies
        call.save()
    header = read_header(viewer(), session, now=START)
    chart = chart_session(header, read_calls(viewer(), session), axis=TimelineAxis.CALL)
    shapes = [shape for shape in chart.figure.layout.shapes if shape.type == "rect"]
    assert [(shape.x0, shape.x1) for shape in shapes] == areas
