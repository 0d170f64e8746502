"""A compaction of the client's that failed: what was kept, what it means for the session, what to do."""

import re
from dataclasses import dataclass

from django.db.models import Q, QuerySet

from compaction.context.thresholds import classify_usage
from dashboard.models import AgentSession, ApiCall, CompactionKind, ObservedCompaction
from dashboard.pages.gauge_bar import GaugeBar, draw_gauge
from dashboard.policies.in_force import find_policy
from dashboard.runs.client_commands import write_compact_command
from dashboard.words import say_tokens

_MANUAL = "manual"
# What clients and providers say, most telling first. The words are theirs, so only their gist is looked for.
_ADVICE: tuple[tuple[str, str], ...] = (
    (
        r"too[_ ]few",
        "Nearly all of the context is one long turn, which cannot be summarised in part. Let the turn end, then "
        "compact; or clear old tool results, which needs no summary.",
    ),
    (
        r"too[_ ]long|too[_ ]large|cut off|max_tokens|context (?:window|length|limit)",
        "Compact a smaller part: up to an earlier message, or after old tool results were cleared. "
        "A model with a larger window can summarise all of it.",
    ),
    (
        r"abort|cancel|interrupt|stopped by",
        "Nothing, if it was stopped on purpose. Else compact again before the context grows further.",
    ),
    (r"hook|blocked", "Look at the PreCompact hooks of the client: one of them can refuse a compaction."),
    (
        r"overload|rate.?limit|timed? ?out|timeout|connection|network|unavailable|\b(?:429|5\d\d)\b",
        "Wait a minute and compact again: the conversation was not the reason.",
    ),
    (
        r"authenti|permission|api key|credit|billing|\b40[123]\b",
        "Check the client's API key or subscription; the next call needs it as well.",
    ),
)
_DEFAULT_ADVICE = "Compact again. If it fails the same way, compact a smaller part, or start a new session."
_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE), advice) for pattern, advice in _ADVICE)


@dataclass(frozen=True)
class FailedCompaction:
    """`bar` is the context it was tried at, on the lines in force now; None where the client did not say."""

    kept: str
    meaning: str
    advice: str
    bar: GaugeBar | None
    command: str  # that makes the client try again; empty for whom it is of no use
    in_a_row: int  # failed attempts since the last compaction that worked, this one included
    solved_by: int | None  # the full compaction that came after it


def describe_failed(
    compaction: ObservedCompaction, after: ApiCall | None, *, reads_content: bool
) -> FailedCompaction | None:
    """None for one that did not fail. `after`: the next call of its conversation."""
    if compaction.kind != CompactionKind.FAILED:
        return None
    session = compaction.session
    solved_by = _find_next_full(compaction)
    in_a_row = _count_in_a_row(compaction)
    return FailedCompaction(
        kept=_say_kept(after),
        meaning=_say_meaning(compaction, in_a_row, is_solved=solved_by is not None),
        advice="Nothing more: a later compaction worked." if solved_by else find_advice(compaction.failure),
        bar=_draw_bar(session, compaction.before_tokens),
        command=_write_command(compaction) if reads_content and solved_by is None else "",
        in_a_row=in_a_row,
        solved_by=solved_by,
    )


def find_advice(failure: str) -> str:
    """By the words the client gave."""
    return next((advice for pattern, advice in _PATTERNS if pattern.search(failure)), _DEFAULT_ADVICE)


def _say_kept(after: ApiCall | None) -> str:
    words = "Everything: a compaction that fails changes nothing in the conversation."
    if after is None:
        return words
    sent = after.input_tokens + after.read_tokens + after.write_5m_tokens + after.write_1h_tokens
    return f"{words} The next call sent {say_tokens(sent)} tokens."


def _say_meaning(compaction: ObservedCompaction, in_a_row: int, *, is_solved: bool) -> str:
    if is_solved:
        return "The context stayed as full as it was until the next compaction."
    if compaction.trigger == _MANUAL:
        return "Nothing was freed: the context is as full as it was, and goes on growing with every call."
    words = (
        "Nothing was freed. The client tries again by itself and stops after three failures in a row; "
        "at the blocking threshold it accepts no further prompt."
    )
    return words if in_a_row == 1 else f"{words} This was failure {in_a_row} in a row."


def _find_next_full(compaction: ObservedCompaction) -> int | None:
    found = _list_thread(compaction).filter(kind=CompactionKind.FULL).filter(_after(compaction))
    return found.order_by("call_number", "at", "pk").values_list("pk", flat=True).first()


def _count_in_a_row(compaction: ObservedCompaction) -> int:
    thread = _list_thread(compaction)
    last = thread.filter(kind=CompactionKind.FULL).exclude(_after(compaction)).order_by("-call_number", "-at").first()
    failed = thread.filter(kind=CompactionKind.FAILED).exclude(_after(compaction))
    return failed.count() if last is None else failed.filter(_after(last)).count()


def _list_thread(compaction: ObservedCompaction) -> QuerySet[ObservedCompaction]:
    return ObservedCompaction.objects.filter(session_id=compaction.session_id, agent_id=compaction.agent_id)


def _after(compaction: ObservedCompaction) -> Q:
    """Later in its thread; between the same calls the clock decides."""
    later = Q(call_number__gt=compaction.call_number)
    if compaction.at is None:
        return later
    return later | Q(call_number=compaction.call_number, at__gt=compaction.at)


def _draw_bar(session: AgentSession, before_tokens: int | None) -> GaugeBar | None:
    if before_tokens is None:
        return None
    lines = find_policy(session.team).draw_session_lines(session)
    return draw_gauge(lines, classify_usage(lines, before_tokens))


def _write_command(compaction: ObservedCompaction) -> str:
    """Of the main conversation alone: a sub-agent cannot be asked."""
    session = compaction.session
    return "" if compaction.agent_id else write_compact_command(session.project_path, session.external_id, "")
