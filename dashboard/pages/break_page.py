"""One cache break or expected rebuild with everything that explains it: numbers, evidence, both calls, the diff."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.db.models import Count, Q, Sum
from django.utils import timezone

from compaction.cache.causes import Avoidability, Cause, CauseInfo, Family, Grade
from compaction.cache.conditions import CONDITIONS
from compaction.timeline.preceding import Condition
from dashboard import access
from dashboard.access import Actor
from dashboard.models import AgentSession, ApiCall, CacheBreak, CompactionKind, LossKind
from dashboard.pages.calls_around import find_compaction_before
from dashboard.pages.content_state import ContentState, find_content_state
from dashboard.pages.ledger import GRADES, LossRow, find_cause_note, make_row, name_session
from dashboard.pages.prefix_view import PrefixView, view_difference
from dashboard.pages.recorded_requests import Missing, read_request_pair
from dashboard.pages.thread_names import name_by_id, name_threads

# Losses that a compaction announced, and its kind.
_KINDS = {
    Cause.COMPACTED.value: CompactionKind.FULL,
    Cause.MICRO_COMPACTED.value: CompactionKind.MICRO,
    Cause.DELETION_ANNOUNCED.value: CompactionKind.MICRO,
}
_WEEK, _JUST_AFTER = timedelta(days=7), timedelta(microseconds=1)
_BEYOND_REQUESTS = {
    Family.TIME: ", because the cache entry had expired",
    Family.SERVER: "; the loss was not caused by the request",
}


@dataclass(frozen=True)
class PrefixBar:
    """What should have been read, what was to be expected from the difference, and what was read, in percent."""

    expected_percent: float
    read_percent: float
    low_percent: float | None
    range_percent: float
    sentence: str


@dataclass(frozen=True)
class Further:
    """Another cause that was found beside the first."""

    title: str
    grade_words: str
    detail: str


@dataclass(frozen=True)
class Unproven:
    """Something that was seen just before a call whose cause is not known, and how often a loss follows it."""

    code: str
    words: str
    breaks: int
    calls: int
    rate_words: str


@dataclass(frozen=True)
class WeekTotal:
    """Breaks of one cause in a team over seven days; dollars are of those with a known price."""

    breaks: int
    lost_usd: Decimal
    avoidable_usd: Decimal  # net
    is_recent: bool  # the last seven days; else those up to the break


@dataclass(frozen=True)
class BreakPage:
    """All of one loss."""

    row: LossRow
    session: AgentSession
    note: CauseInfo
    bar: PrefixBar
    predicted: str
    week: "WeekTotal | None"  # of the same cause; None for expected rebuilds
    further: tuple[Further, ...]
    unproven: tuple[Unproven, ...]
    conflicts: tuple[str, ...]
    before: ApiCall | None
    after: ApiCall | None
    diff: PrefixView | None
    missing: Missing | None
    content_state: ContentState
    compaction_id: int | None  # the compaction that made the rebuild necessary

    @property
    def needs_requests(self) -> bool:
        """Whether the requests would tell what is not known now."""
        return self.row.is_break and self.note.avoidability is Avoidability.NOT_KNOWN and self.diff is None

    @property
    def transcript_of(self) -> int | None:
        """The session that findings link into, for those who may read it."""
        return self.session.pk if self.content_state is ContentState.SHOWN else None


def read_break(actor: Actor, loss: CacheBreak) -> BreakPage:
    """`loss` with its session and team; six queries at most."""
    session = loss.session
    state = find_content_state(actor, session)
    reads_content = state is not ContentState.NOT_GRANTED
    threads = name_threads(session.pk, reads_content=reads_content)
    before, after = _read_sides(loss)
    pair = read_request_pair(session, loss, with_text=reads_content)
    cached = before.read_tokens + before.write_5m_tokens + before.write_1h_tokens if before else None
    return BreakPage(
        row=make_row(
            loss,
            session_name=name_session(session, reads_content=reads_content),
            thread=threads.get(loss.agent_id) or name_by_id(loss.agent_id),
        ),
        session=session,
        note=find_cause_note(loss.cause),
        bar=_draw_bar(loss),
        predicted=_say_prediction(loss),
        week=sum_week(actor, loss) if loss.kind == LossKind.BREAK else None,
        further=_read_further(loss),
        unproven=_read_unproven(loss),
        conflicts=tuple(str(sentence) for sentence in loss.evidence.get("conflicts", ())),
        before=before,
        after=after,
        diff=None if isinstance(pair, Missing) else view_difference(pair, cached_tokens=cached),
        missing=pair if isinstance(pair, Missing) else None,
        content_state=state,
        compaction_id=_find_compaction(loss),
    )


def sum_week(actor: Actor, loss: CacheBreak) -> WeekTotal:
    """Return what breaks of this cause cost the team in a week. One query."""
    now = timezone.now()
    is_recent = loss.at > now - _WEEK
    until = now if is_recent else loss.at + _JUST_AFTER
    sums = (
        access.breaks(actor)
        .filter(team=loss.team_id, kind=LossKind.BREAK, is_counted=True, cause=loss.cause)
        .filter(at__gte=until - _WEEK, at__lt=until)
        .aggregate(breaks=Count("id"), lost=Sum("lost_usd"), net=Sum("avoidable_usd"))
    )
    return WeekTotal(sums["breaks"], sums["lost"] or Decimal(0), sums["net"] or Decimal(0), is_recent)


def _find_compaction(loss: CacheBreak) -> int | None:
    kind = _KINDS.get(loss.cause)
    if kind is None:
        return None
    return find_compaction_before(loss.session_id, loss.agent_id, loss.call_number, kind)


def _read_sides(loss: CacheBreak) -> tuple[ApiCall | None, ApiCall | None]:
    rows = ApiCall.objects.filter(
        Q(call_id=loss.call_id) | Q(call_id=loss.previous_call_id), session_id=loss.session_id
    )
    sides = {row.call_id: row for row in rows}
    return sides.get(loss.previous_call_id), sides.get(loss.call_id)


def _draw_bar(loss: CacheBreak) -> PrefixBar:
    told = loss.evidence.get("predicted") or {}
    low, high = told.get("low"), told.get("high")
    scale = max(loss.expected_tokens, loss.read_tokens, high or 0, 1)
    words = f"{loss.read_tokens:,} of {loss.expected_tokens:,} tokens were read from the cache."
    if low is not None and high is not None:
        words += f" Predicted from the request diff: {low:,} to {high:,}."

    def share(count: int) -> float:
        return round(100 * count / scale, 1)

    return PrefixBar(
        expected_percent=share(loss.expected_tokens),
        read_percent=share(loss.read_tokens),
        low_percent=None if low is None else share(low),
        range_percent=max(1.0, share((high or 0) - (low or 0))),
        sentence=words,
    )


def _say_prediction(loss: CacheBreak) -> str:
    told = loss.evidence.get("predicted")
    if not told:
        is_break = loss.kind == LossKind.BREAK
        return "Not available: both requests are needed." if is_break else "Not needed: the rebuild was expected."
    ends = f"{told['low']:,} to {told['high']:,} tokens" if told["low"] != told["high"] else f"{told['low']:,} tokens"
    return f"Predicted {ends} to survive; {told['observed']:,} did{_say_fit(loss)}."


def _say_fit(loss: CacheBreak) -> str:
    """Requests show neither a pause nor what a server drops: there less than predicted is no contradiction."""
    told = loss.evidence["predicted"]
    # Rows of an earlier projection do not hold the tolerance.
    tolerance = f" of {told['tolerance']:,} tokens" if "tolerance" in told else ""
    if told["agrees"]:
        return f" (within the tolerance{tolerance})"
    words = _BEYOND_REQUESTS.get(find_cause_note(loss.cause).family)
    return words if words is not None and told["observed"] < told["low"] else f" (outside the tolerance{tolerance})"


def _read_unproven(loss: CacheBreak) -> tuple[Unproven, ...]:
    """Where a cause is known, nothing else is guessed."""
    if loss.grade != Grade.UNKNOWN:
        return ()
    held = (Condition(code) for code in loss.evidence.get("unproven", ()) if code in set(Condition))
    notes = ((condition, CONDITIONS[condition]) for condition in held)
    return tuple(
        Unproven(code.value, note.text, note.rate.breaks, note.rate.calls, note.rate_sentence) for code, note in notes
    )


def _read_further(loss: CacheBreak) -> tuple[Further, ...]:
    words = {grade.value: told for grade, (told, _) in GRADES.items()}
    return tuple(
        Further(find_cause_note(cause).title, words.get(grade, grade), detail)
        for cause, grade, detail in loss.evidence.get("further", ())
    )
