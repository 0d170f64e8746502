"""Rows of compactions that a thread's facts show: before and after, trigger, drift, what was put back."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from compaction.context.thresholds import Thresholds, compute_drift
from compaction.context.windows import read_client_version
from compaction.timeline.calls import Call, belongs_to_conversation
from compaction.timeline.observations import CompactionRecord, LineKind, Observation
from dashboard.ingest.picture.columns import Row, fit, fit_id

# Attachments after a compaction are in the transcript from this version on.
FIRST_VERSION_WITH_RESTORED = (2, 1, 94)
_COMPACTIONS = frozenset({LineKind.BOUNDARY, LineKind.OLDER_SUMMARY, LineKind.MICRO, LineKind.DELETION})
_DRAWN = _COMPACTIONS | {LineKind.COMPACTION_REPORT}  # of reports only those that failed are left (fact_reports)
_KINDS = {
    LineKind.MICRO: "micro",
    LineKind.DELETION: "micro",
    LineKind.COMPACTION_REPORT: "failed",
}

# Model, client version, when -> the lines in force then. A compaction is held against the line it happened under: a
# later policy does not change what it was.
DrawLines = Callable[[str | None, str | None, datetime | None], Thresholds | None]


@dataclass(slots=True)
class _Walk:
    """What was seen on the way through a thread. A report may name its call otherwise than `calls` do."""

    calls: frozenset[str]
    call_number: int = 0
    turn: int = 0
    full_count: int = 0
    turn_of_last_full: int | None = None
    last: Observation | None = None  # that says where the turn stands
    seen_calls: set[str] = field(default_factory=set)


_PROMPT = LineKind.PROMPT
_TURN_KINDS = frozenset({LineKind.PROMPT, LineKind.RESULT, LineKind.ANSWER, LineKind.TURN_END})


def tell_compactions(facts: Iterable[Observation]) -> bool:
    """Whether there is anything to draw: in most threads nothing is."""
    return any(fact.kind in _DRAWN for fact in facts)


def draw_compactions(
    agent_id: str, facts: Sequence[Observation], calls: Sequence[Call], compute_thresholds: DrawLines
) -> dict[str, Row]:
    """By the id of the boundary or report, in order."""
    rows: dict[str, Row] = {}
    walk = _Walk(frozenset(call.call_id for call in calls))
    for position, fact in enumerate(facts):
        if fact.kind in _DRAWN and fact.compacted is not None:
            rest = _take_rest(facts, position)
            before = next((call for call in reversed(calls[: walk.call_number]) if not call.is_beside), None)
            after = next((call for call in calls[walk.call_number :] if not call.is_beside), None)
            row = _draw_compaction(fact, fact.compacted, rest, (before, after))
            if fact.kind not in _KINDS:
                row |= _draw_full(fact, walk, rest, before, compute_thresholds)
                row["kept_count"] = _count_kept(fact.compacted, facts)
                walk.full_count += 1
                walk.turn_of_last_full = walk.turn
            rows[fit_id(fact.id)] = row | {"agent_id": agent_id, "call_number": walk.call_number}
        _step(walk, fact)
    return rows


def _step(walk: _Walk, fact: Observation) -> None:
    walk.turn += fact.kind is _PROMPT
    if fact.kind in _TURN_KINDS and (fact.answer is None or belongs_to_conversation(fact)):
        walk.last = fact
    if fact.answer is not None and fact.answer.call_id not in walk.seen_calls and fact.answer.call_id in walk.calls:
        walk.seen_calls.add(fact.answer.call_id)
        walk.call_number = len(walk.seen_calls)


def _take_rest(facts: Sequence[Observation], position: int) -> list[Observation]:
    """The lines that follow a compaction, up to the first answer after it."""
    rest = []
    for fact in facts[position + 1 :]:
        if fact.kind in _COMPACTIONS:
            break
        rest.append(fact)
        if belongs_to_conversation(fact):
            break
    return rest


def _draw_compaction(
    fact: Observation, told: CompactionRecord, rest: Sequence[Observation], around: tuple[Call | None, Call | None]
) -> Row:
    before, after = around
    before_tokens = told.before_tokens
    if before_tokens is None and before is not None:
        before_tokens = before.usage.context_tokens
    after_tokens, origin = told.after_tokens, "client" if told.after_tokens is not None else ""
    has_failed = fact.kind is LineKind.COMPACTION_REPORT
    if after is not None and rest and belongs_to_conversation(rest[-1]) and not has_failed:
        after_tokens, origin = after.usage.prompt_tokens, "next call"
    saved = told.saved_tokens
    if saved is None and before_tokens is not None and after_tokens is not None:
        saved = max(0, before_tokens - after_tokens)
    return {
        "kind": _KINDS.get(fact.kind, "full"),
        "failure": fit(fact.name, 200) if has_failed else "",
        "at": fact.at,
        "trigger": fit(told.trigger, 20),
        "before_tokens": before_tokens,
        "after_tokens": after_tokens,
        "after_origin": origin,
        "saved_tokens": saved,
        "summary_tokens": told.summary_tokens,
        "duration_seconds": told.duration_seconds,
        "cleared_count": told.cleared_count,
        "summary_uuid": "",
        "turns_since_previous": None,
        "chain_number": 1,
        "is_mid_task": None,
        "line_tokens": None,
        "drift": "",
        "drift_sentence": "",
        "restored": None,
        "kept_count": 0,
    }


def _draw_full(
    fact: Observation, walk: _Walk, rest: Sequence[Observation], before: Call | None, compute_thresholds: DrawLines
) -> Row:
    summary = next((line for line in rest if line.kind is LineKind.SUMMARY), None)
    row: Row = {
        "summary_uuid": fit_id(summary.id) if summary else "",
        "chain_number": walk.full_count + 1,
        "turns_since_previous": None if walk.turn_of_last_full is None else walk.turn - walk.turn_of_last_full,
        "is_mid_task": _is_mid_task(fact, walk.last, rest),
        "restored": _list_restored(fact, rest),
    }
    if summary is not None and summary.tokens is not None:
        row["summary_tokens"] = summary.tokens
    return row | _compare_with_line(fact, before, compute_thresholds)


def _count_kept(told: CompactionRecord, facts: Sequence[Observation]) -> int:
    """Lines of the preserved segment, from its first to its last."""
    places = {fact.id: place for place, fact in enumerate(facts) if fact.id in (told.kept_from, told.kept_to)}
    first, last = places.get(told.kept_from or ""), places.get(told.kept_to or "")
    return 0 if first is None or last is None or last < first else last - first + 1


def _compare_with_line(fact: Observation, before: Call | None, compute_thresholds: DrawLines) -> Row:
    told = fact.compacted
    lines = (
        compute_thresholds(before.model, fact.version or before.client_version, fact.at) if before is not None else None
    )
    if lines is None or told is None:
        return {}
    drift = None
    if told.before_tokens is not None:
        drift = compute_drift(lines, told.before_tokens, trigger=told.trigger or "")
    return {
        "line_tokens": lines.auto.tokens if lines.is_auto_on else None,
        "drift": drift.kind.value if drift else "",
        "drift_sentence": drift.sentence if drift else "",
    }


def _is_mid_task(fact: Observation, last: Observation | None, rest: Sequence[Observation]) -> bool | None:
    """Whether the turn it interrupts had not ended; None where the lines do not tell."""
    if fact.compacted is not None and fact.compacted.trigger == "manual":
        return False
    if last is None:
        return None
    if last.kind is not LineKind.ANSWER:
        return last.kind is not LineKind.TURN_END
    if last.answer is not None and last.answer.stop_reason is not None:
        return last.answer.stop_reason in ("tool_use", "pause_turn", "max_tokens")
    following = next((line.kind for line in rest if line.kind in (LineKind.PROMPT, LineKind.ANSWER)), None)
    return None if following is None else following is LineKind.ANSWER


def _list_restored(fact: Observation, rest: Sequence[Observation]) -> list[Row] | None:
    """What the client put back; None where its version does not write that down."""
    found = [line for line in rest if line.kind is LineKind.ATTACHMENT]
    version = read_client_version(fact.version)
    if not found and (version is None or version < FIRST_VERSION_WITH_RESTORED):
        return None
    return [
        {"kind": fit(line.name, 80), "name": fit(line.words, 1000), "tokens": line.tokens or 0, "entry": line.id}
        for line in found
    ]
