"""The timeline of a session as a figure: its calls with lines, compactions, breaks, and sub-agents apart."""

from collections import Counter
from collections.abc import Iterator, Sequence

from dashboard.chart_data import Timeline, TimelineAxis, TimelineBreak, TimelineCall, TimelineCompaction
from dashboard.charts import Chart
from dashboard.charts.threshold_marks import list_lines
from dashboard.charts.timeline import TimelineView, chart_timeline
from dashboard.charts.timeline_columns import Span
from dashboard.models import CompactionKind
from dashboard.pages.session_calls import CompactionAt, PlacedCall, SessionCalls, name_thread
from dashboard.pages.session_page import SessionHeader

CHART_ID = "timeline"
BESIDE = "outside the conversation"
# How far from the middle of a call's place others may stand below it, in calls.
_REACH = 0.45


def chart_session(
    header: SessionHeader,
    calls: SessionCalls,
    *,
    axis: TimelineAxis,
    zoom: Span | None = None,
    picked: int | None = None,
) -> Chart:
    """No queries. The table behind the figure is the page's own, with all calls. `picked`: the call that is marked."""
    timeline = _collect(header, calls)
    copies = {str(call.pk) for call in calls.calls if not call.is_counted}
    view = TimelineView(axis, zoom, None if picked is None else str(picked), copies)
    return chart_timeline(CHART_ID, timeline, view, has_table=False)


def _collect(header: SessionHeader, calls: SessionCalls) -> Timeline:
    shown = header.shown_thread
    own = shown.agent_id if shown else ""
    names = {thread.agent_id: name_thread(thread) for thread in header.threads}
    lanes = {agent_id: names.get(agent_id, agent_id) for agent_id in {call.agent_id for call in calls.calls}}
    drawn = tuple(
        TimelineCall(
            place,
            call.number,
            call.at,
            call.context_tokens,
            call.read_tokens,
            call.write_5m_tokens,
            call.write_1h_tokens,
            call.input_tokens,
            call.output_tokens,
            _find_lane(call, own, lanes),
            str(call.pk),
        )
        for place, call in zip(_place_calls(calls.calls, own), calls.calls, strict=True)
    )
    talk = {call.number: call for call in calls.calls if call.agent_id == own and not call.is_beside}
    return Timeline(
        calls=drawn,
        lines=list_lines(header.standing.lines),
        compactions=tuple(
            _place_compaction(one, talk)
            for one in calls.compactions
            if talk and one.agent_id == own and one.kind == CompactionKind.FULL
        ),
        breaks=tuple(_place_breaks(calls)),
    )


def _place_calls(calls: Sequence[PlacedCall], own: str) -> Iterator[float]:
    """A call of the conversation at its number; others side by side below the one they followed, or below the first."""
    slots, slot = [], next((call.number for call in calls if call.agent_id == own), 1)
    for call in calls:
        slot = call.number if call.agent_id == own else slot
        slots.append(slot)
    counts = Counter(slot for call, slot in zip(calls, slots, strict=True) if call.agent_id != own)
    seen: Counter[int] = Counter()
    for call, slot in zip(calls, slots, strict=True):
        if call.agent_id == own:
            yield call.number
        else:
            seen[slot] += 1
            yield round(slot - _REACH + 2 * _REACH * (seen[slot] - 0.5) / counts[slot], 4)


def _find_lane(call: PlacedCall, own: str, lanes: dict[str, str]) -> str | None:
    """None: the calls whose contexts are drawn. A call beside the conversation fills no window."""
    if call.agent_id != own:
        return lanes[call.agent_id]
    return BESIDE if call.is_beside else None


def _place_compaction(one: CompactionAt, talk: dict[int, PlacedCall]) -> TimelineCompaction:
    """`talk`: calls of the conversation by number. What the client did not write down is read off them."""
    before, after = one.before_tokens, one.after_tokens
    earlier = [number for number in talk if number <= one.call_number]
    later = [number for number in talk if number > one.call_number]
    if before is None:
        before = talk[max(earlier)].context_tokens if earlier else 0
    if after is None and later:
        after = talk[min(later)].context_tokens
    return TimelineCompaction(
        key=str(talk[min(later) if later else max(earlier)].pk),
        before_tokens=before,
        after_tokens=after,
        trigger=one.trigger or "trigger not recorded",
        is_behind=not later,
    )


def _place_breaks(calls: SessionCalls) -> list[TimelineBreak]:
    placed = []
    for call in calls.calls:
        loss = calls.losses.get(call.call_id)
        if loss is not None and loss.is_break:
            placed.append(TimelineBreak(str(call.pk), loss.lost_usd, loss.title.rstrip(".")))
    return placed
