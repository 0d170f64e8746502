"""Explains why a call lost its cache: the causes that each source reports, ordered by grade, and their contradictions.

Grades, the best first: the API, the client, two recorded requests, what usage and time allow to infer.
"""

from collections.abc import Iterator, Mapping
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
    """One cause, its grade, and a line of detail without prompt text."""

    cause: Cause
    grade: Grade
    detail: str = ""

    @property
    def info(self) -> CauseInfo:
        return CAUSES[self.cause]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two grades whose causes cannot both be right. The better one takes precedence; both are shown."""

    better: Grade
    better_causes: tuple[Cause, ...]
    other: Grade
    other_causes: tuple[Cause, ...]

    @property
    def sentence(self) -> str:
        """Return the contradiction in words."""
        other = _join_titles(self.other_causes) or "nothing changed"
        return f"{_SOURCES[self.better]}: {_join_titles(self.better_causes)} {_SOURCES[self.other]}: {other}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """The primary cause, further ones, contradictions, and the predicted read compared with the actual one."""

    primary: Finding
    further: tuple[Finding, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    prediction: Prediction | None = None
    unproven: tuple[Condition, ...] = ()  # conditions before the call that are too rare or too weak to be causes

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return all findings, the primary cause first."""
        return (self.primary, *self.further)


_SOURCES = {
    Grade.API: "The API",
    Grade.CLIENT: "The client",
    Grade.REQUEST: "The two requests",
    Grade.INFERRED: "Time and usage",
    Grade.UNKNOWN: "No source",
}
_Findings = Mapping[Grade, tuple[Finding, ...]]


def explain_loss(previous: Baseline, call: Call) -> Explanation:
    """Return why this call read less than the previous one left in the cache."""
    changes = _compare_requests(previous, call)
    prediction = _predict(previous, call, changes)
    findings = {
        Grade.API: tuple(_read_api_reason(call)),
        Grade.CLIENT: tuple(_read_client_reasons(call)),
        Grade.REQUEST: tuple(Finding(change.cause, Grade.REQUEST, change.detail) for change in changes or ()),
        Grade.INFERRED: tuple(infer_causes(previous, call)),
    }
    if not any(findings.values()):
        findings[Grade.INFERRED] = tuple(_infer_from_conditions(call))
    ordered = _order_findings(findings, prediction)
    if not ordered:
        ordered = [choose_fallback(call, has_requests=changes is not None)]
    return Explanation(
        primary=ordered[0],
        further=_list_further(ordered),
        conflicts=tuple(_find_conflicts(findings, has_requests=changes is not None)),
        prediction=prediction,
        unproven=tuple(condition for condition in call.conditions if CONDITIONS[condition].cause is None),
    )


def compute_gap_seconds(previous: Baseline, call: Call) -> float:
    """Return the time between the starts of the two requests, which is how the lifetime is counted."""
    return (call.at - previous.at).total_seconds()


def _compare_requests(previous: Baseline, call: Call) -> tuple[RequestChange, ...] | None:
    """Return the changes between two recorded requests; None when one of them was not recorded."""
    if previous.fingerprint is None or call.fingerprint is None:
        return None
    return find_diff_causes(previous.fingerprint, call.fingerprint)


def _predict(previous: Baseline, call: Call, changes: tuple[RequestChange, ...] | None) -> Prediction | None:
    if changes is None or previous.fingerprint is None:
        return None
    reaches = (change.reach for change in changes)
    return predict_read(previous.fingerprint, reaches, previous.cached_tokens, call.usage.cache_read_tokens)


def _read_api_reason(call: Call) -> Iterator[Finding]:
    cause = API_REASONS.get(call.api_reason or "")
    if cause is not None:
        yield Finding(cause, Grade.API, call.api_reason or "")


def _read_client_reasons(call: Call) -> Iterator[Finding]:
    causes = {CLIENT_REASONS[name] for name in call.client_reasons if name in CLIENT_REASONS}
    for cause in sorted(causes, key=rank_cause):
        yield Finding(cause, Grade.CLIENT)


def infer_causes(previous: Baseline, call: Call) -> Iterator[Finding]:
    """Return the causes that times, models and versions show."""
    if call.model and previous.model and call.model != previous.model:
        yield Finding(Cause.MODEL_CHANGED, Grade.INFERRED, f"{previous.model} -> {call.model}")
    before, now = previous.speed or "standard", call.usage.speed or "standard"
    if before != now:
        yield Finding(Cause.SPEED_CHANGED, Grade.INFERRED, f"{before} -> {now}")
    gap_seconds = compute_gap_seconds(previous, call)
    expired = get_expired_ttl(previous.ttl, gap_seconds)
    if expired is not None:
        cause = Cause.TTL_EXPIRED_1H if expired is CacheTtl.ONE_HOUR else Cause.TTL_EXPIRED_5M
        yield Finding(cause, Grade.INFERRED, f"{gap_seconds / 60:,.1f} minutes after a {expired} write")
    if call.client_version and previous.client_version and call.client_version != previous.client_version:
        yield Finding(Cause.CLIENT_UPDATED, Grade.INFERRED, f"{previous.client_version} -> {call.client_version}")
    written = call.written_ttl
    if written is not None and previous.ttl is not None and written != previous.ttl:
        yield Finding(Cause.TTL_TIER_CHANGED, Grade.INFERRED, f"{previous.ttl} -> {written}")
    if call.starts_turn and previous.has_thinking and not keeps_thinking(call.model):
        yield Finding(Cause.THINKING_DROPPED, Grade.INFERRED, f"a new prompt to {call.model}")


def _infer_from_conditions(call: Call) -> Iterator[Finding]:
    """Return the causes of proven conditions, for losses that nothing else explains: their rates were counted there."""
    for condition in call.conditions:
        info = CONDITIONS[condition]
        if info.cause is not None:
            yield Finding(info.cause, Grade.INFERRED, info.rate_sentence)


def _order_findings(findings: _Findings, prediction: Prediction | None) -> list[Finding]:
    """Return the findings by grade. Request changes that do not explain the whole loss come after an expired
    lifetime."""
    ordered = [finding for grade in GRADES for finding in findings.get(grade, ())]
    if prediction is None or not prediction.reads_less:
        return ordered
    expired = [finding for finding in findings[Grade.INFERRED] if finding.info.family is Family.TIME]
    reported = [finding for finding in ordered if finding.grade in (Grade.API, Grade.CLIENT)]
    rest = [finding for finding in ordered if finding not in expired and finding not in reported]
    return [*reported, *expired, *rest] if expired else ordered


def choose_fallback(call: Call, *, has_requests: bool) -> Finding:
    """Return the finding for a loss that no source explains."""
    if call.api_reason in API_WITHOUT_REASON and not has_requests:
        return Finding(Cause.NO_REASON_GIVEN, Grade.API, call.api_reason or "")
    read_tokens = call.usage.cache_read_tokens
    detail = f"{read_tokens:,} tokens were still read" if read_tokens else "nothing was read"
    return Finding(Cause.LIKELY_SERVER_SIDE if has_requests else Cause.UNEXPLAINED, Grade.UNKNOWN, detail)


def _list_further(ordered: list[Finding]) -> tuple[Finding, ...]:
    """Return the findings after the primary one, each cause once."""
    causes = {ordered[0].cause}
    further = []
    for finding in ordered[1:]:
        if finding.cause not in causes:
            causes.add(finding.cause)
            further.append(finding)
    return tuple(further)


def _find_conflicts(findings: _Findings, *, has_requests: bool) -> Iterator[Conflict]:
    """Return pairs of grades that name no common family. Two recorded requests without a difference mean "nothing
    changed"; inferred causes never contradict, as a pause and a change can both be true."""
    sources = {grade: findings[grade] for grade in (Grade.API, Grade.CLIENT, Grade.REQUEST) if findings[grade]}
    if has_requests:
        sources.setdefault(Grade.REQUEST, ())
    for better, other in combinations(sorted(sources, key=GRADES.index), 2):
        if not _are_compatible(sources[better], sources[other]):
            yield Conflict(better, _list_causes(sources[better]), other, _list_causes(sources[other]))


def _are_compatible(better: tuple[Finding, ...], other: tuple[Finding, ...]) -> bool:
    families = {finding.info.family for finding in better}
    if not other:
        # A pause, or the server, changes no request: two requests with the same beginning are compatible with both.
        return families <= {Family.TIME, Family.SERVER}
    return bool(families & {finding.info.family for finding in other})


def _list_causes(findings: tuple[Finding, ...]) -> tuple[Cause, ...]:
    return tuple(finding.cause for finding in findings)


def _join_titles(causes: tuple[Cause, ...]) -> str:
    return " ".join(CAUSES[cause].title for cause in causes)
