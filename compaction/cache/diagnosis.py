"""Evidence: who says why a call lost its cache, whom to believe, and where they contradict each other.

Grades: the API, then the client, then two known requests, then what usage and time allow to infer.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from compaction.cache.baseline import Baseline
from compaction.cache.causes import (
    API_REASONS,
    API_WITHOUT_REASON,
    CAUSES,
    CLIENT_REASONS,
    GRADES,
    Cause,
    CauseInfo,
    Family,
    Grade,
    rank_cause,
)
from compaction.cache.conditions import CONDITIONS
from compaction.cache.diff_causes import RequestChange, find_diff_causes
from compaction.context.cache_ttl import CacheTtl, get_expired_ttl
from compaction.llm.lookup import keeps_thinking
from compaction.prompt.invalidation import Prediction, predict_read
from compaction.timeline.calls import Call
from compaction.timeline.preceding import Condition


@dataclass(frozen=True, slots=True)
class Finding:
    """One cause, who says so, and a line of detail without prompt text."""

    cause: Cause
    grade: Grade
    detail: str = ""

    @property
    def note(self) -> CauseInfo:
        """What to tell a person about it."""
        return CAUSES[self.cause]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two grades that cannot both be right; the better one is believed, both are shown."""

    believed: Grade
    believed_causes: tuple[Cause, ...]
    other: Grade
    other_causes: tuple[Cause, ...]

    @property
    def sentence(self) -> str:
        """The contradiction in words."""
        other = _join_titles(self.other_causes) or "nothing changed"
        return f"{_SPEAKERS[self.believed]}: {_join_titles(self.believed_causes)} {_SPEAKERS[self.other]}: {other}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """One primary cause, further ones, contradictions, and what the changes predicted against what was read."""

    primary: Finding
    further: tuple[Finding, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    prediction: Prediction | None = None
    unproven: tuple[Condition, ...] = ()  # what held right before, too rarely seen or too weak for a cause

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The primary cause first."""
        return (self.primary, *self.further)


_SPEAKERS = {
    Grade.API: "The API",
    Grade.CLIENT: "The client",
    Grade.REQUEST: "The two requests",
    Grade.INFERRED: "Time and usage",
    Grade.UNKNOWN: "No source",
}


def explain_loss(previous: Baseline, call: Call) -> Explanation:
    """Why this call read less than the previous one left for it."""
    changes = _compare_requests(previous, call)
    prediction = _predict(previous, call, changes)
    spoken = {
        Grade.API: tuple(_hear_api(call)),
        Grade.CLIENT: tuple(_hear_client(call)),
        Grade.REQUEST: tuple(Finding(change.cause, Grade.REQUEST, change.detail) for change in changes or ()),
        Grade.INFERRED: tuple(infer_causes(previous, call)),
    }
    if not any(spoken.values()):
        spoken[Grade.INFERRED] = tuple(_infer_from_conditions(call))
    ordered = _order_findings(spoken, prediction)
    if not ordered:
        ordered = [_give_up(call, knows_requests=changes is not None)]
    return Explanation(
        primary=ordered[0],
        further=_drop_repeated(ordered),
        conflicts=tuple(_find_conflicts(spoken, knows_requests=changes is not None)),
        prediction=prediction,
        unproven=tuple(condition for condition in call.conditions if CONDITIONS[condition].cause is None),
    )


def find_gap_seconds(previous: Baseline, call: Call) -> float:
    """From the start of one request to the start of the next: that is how the lifetime is counted."""
    return (call.at - previous.at).total_seconds()


def _compare_requests(previous: Baseline, call: Call) -> tuple[RequestChange, ...] | None:
    """The changes between two known requests; None when one of them is not known."""
    if previous.fingerprint is None or call.fingerprint is None:
        return None
    return find_diff_causes(previous.fingerprint, call.fingerprint)


def _predict(previous: Baseline, call: Call, changes: tuple[RequestChange, ...] | None) -> Prediction | None:
    if changes is None or previous.fingerprint is None:
        return None
    reaches = (change.reach for change in changes)
    return predict_read(previous.fingerprint, reaches, previous.cached_tokens, call.usage.cache_read_tokens)


def _hear_api(call: Call) -> Iterator[Finding]:
    cause = API_REASONS.get(call.api_reason or "")
    if cause is not None:
        yield Finding(cause, Grade.API, call.api_reason or "")


def _hear_client(call: Call) -> Iterator[Finding]:
    causes = {CLIENT_REASONS[name] for name in call.client_reasons if name in CLIENT_REASONS}
    for cause in sorted(causes, key=rank_cause):
        yield Finding(cause, Grade.CLIENT)


def infer_causes(previous: Baseline, call: Call) -> Iterator[Finding]:
    """Causes that times, models and versions show."""
    if call.model and previous.model and call.model != previous.model:
        yield Finding(Cause.MODEL_CHANGED, Grade.INFERRED, f"{previous.model} -> {call.model}")
    before, now = previous.speed or "standard", call.usage.speed or "standard"
    if before != now:
        yield Finding(Cause.SPEED_CHANGED, Grade.INFERRED, f"{before} -> {now}")
    expired = get_expired_ttl(previous.ttl, find_gap_seconds(previous, call))
    if expired is not None:
        cause = Cause.TTL_EXPIRED_1H if expired is CacheTtl.ONE_HOUR else Cause.TTL_EXPIRED_5M
        minutes = find_gap_seconds(previous, call) / 60
        yield Finding(cause, Grade.INFERRED, f"{minutes:,.1f} minutes after a {expired} write")
    if call.client_version and previous.client_version and call.client_version != previous.client_version:
        yield Finding(Cause.CLIENT_UPDATED, Grade.INFERRED, f"{previous.client_version} -> {call.client_version}")
    written = call.written_ttl
    if written is not None and previous.ttl is not None and written != previous.ttl:
        yield Finding(Cause.TTL_TIER_CHANGED, Grade.INFERRED, f"{previous.ttl} -> {written}")
    if call.starts_turn and previous.has_thinking and not keeps_thinking(call.model):
        yield Finding(Cause.THINKING_DROPPED, Grade.INFERRED, f"a new prompt to {call.model}")


def _infer_from_conditions(call: Call) -> Iterator[Finding]:
    """Where nothing else explains a loss, as there the rates were counted."""
    for condition in call.conditions:
        known = CONDITIONS[condition]
        if known.cause is not None:
            yield Finding(known.cause, Grade.INFERRED, known.rate_words)


def _order_findings(spoken: dict[Grade, tuple[Finding, ...]], prediction: Prediction | None) -> list[Finding]:
    """Best grade first. Changes that leave part of the loss open stand behind a lifetime that ran out."""
    ordered = [finding for grade in GRADES for finding in spoken.get(grade, ())]
    if prediction is None or not prediction.reads_less:
        return ordered
    late = [finding for finding in spoken[Grade.INFERRED] if finding.note.family is Family.TIME]
    told = [finding for finding in ordered if finding.grade in (Grade.API, Grade.CLIENT)]
    rest = [finding for finding in ordered if finding not in late and finding not in told]
    return [*told, *late, *rest] if late else ordered


def _give_up(call: Call, *, knows_requests: bool) -> Finding:
    read_tokens = call.usage.cache_read_tokens
    still_read = f"{read_tokens:,} tokens were still read" if read_tokens else "nothing was read"
    if call.api_reason in API_WITHOUT_REASON and not knows_requests:
        return Finding(Cause.NO_REASON_GIVEN, Grade.API, call.api_reason or "")
    if knows_requests:
        return Finding(Cause.LIKELY_SERVER_SIDE, Grade.UNKNOWN, still_read)
    return Finding(Cause.UNEXPLAINED, Grade.UNKNOWN, still_read)


def _drop_repeated(ordered: list[Finding]) -> tuple[Finding, ...]:
    """Further causes: what is neither said already nor only a consequence seen from another side."""
    seen = {ordered[0].cause}
    further = []
    for finding in ordered[1:]:
        if finding.cause not in seen:
            seen.add(finding.cause)
            further.append(finding)
    return tuple(further)


def _find_conflicts(spoken: dict[Grade, tuple[Finding, ...]], *, knows_requests: bool) -> Iterator[Conflict]:
    """Pairs of grades that name no common family. Two known requests without a difference say "nothing changed";
    what is inferred never contradicts, as a pause and a change can both be true."""
    voices = {grade: spoken[grade] for grade in (Grade.API, Grade.CLIENT, Grade.REQUEST) if spoken[grade]}
    if knows_requests:
        voices.setdefault(Grade.REQUEST, ())
    for better, other in combinations(sorted(voices, key=GRADES.index), 2):
        if not _can_both_hold(voices[better], voices[other]):
            yield Conflict(better, _list_causes(voices[better]), other, _list_causes(voices[other]))


def _can_both_hold(better: tuple[Finding, ...], other: tuple[Finding, ...]) -> bool:
    # A pause, or the server, changes no request: two requests that begin the same agree with both.
    named = {finding.note.family for finding in better} - {Family.TIME, Family.SERVER}
    if not other:
        return not named
    return bool({finding.note.family for finding in better} & {finding.note.family for finding in other})


def _list_causes(findings: tuple[Finding, ...]) -> tuple[Cause, ...]:
    return tuple(finding.cause for finding in findings)


def _join_titles(causes: tuple[Cause, ...]) -> str:
    return " ".join(CAUSES[cause].title for cause in causes)
