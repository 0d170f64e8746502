"""May this agent go on? Its level under the team's lines, and what to do about it, in a few milliseconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial

import orjson

from compaction.compactors.advice import Advice, advise, count_clearable_tokens
from compaction.compactors.micro.by_size import DEFAULT_SIZE_SETTINGS
from compaction.compactors.micro.clearing import apply_boundaries
from compaction.context.policy import Policy
from compaction.context.thresholds import Level, LevelReading, Thresholds, classify_usage, compute_thresholds
from compaction.context.tokens import measure_context
from compaction.context.windows import ModelInUse
from compaction.transcripts.api_messages import ApiMessage, read_messages
from compaction.transcripts.chain import follow_chain, slice_context
from compaction.transcripts.entries import Entry, Usage
from dashboard.ingest.stored_entries import read_thread
from dashboard.models import AgentSession, Team
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.runs.session_notes import has_notes_of_context
from dashboard.session_levels import find_model_in_use

MEASURED, ESTIMATED = "measured", "estimated"


@dataclass(frozen=True, kw_only=True)
class Question:
    """What an agent tells of itself. `usage` is that of its last answer, `messages` its conversation as it would be
    sent next; one of both, or `used_tokens`, is enough. `policy` goes over the team's values."""

    model: str
    usage: Usage | None = None
    used_tokens: int | None = None
    messages: Sequence[ApiMessage] = ()
    policy: Mapping[str, object] = field(default_factory=dict)
    window_tokens: int | None = None
    max_output_tokens: int | None = None
    prefix_tokens: int = 0  # of system prompt and tools; counts only where no usage tells the whole
    clearable_tools: frozenset[str] | None = DEFAULT_SIZE_SETTINGS.tools


@dataclass(frozen=True)
class Check:
    model: str
    reading: LevelReading
    lines: Thresholds | None
    advice: Advice
    used_origin: str
    policy_version: int


@dataclass(frozen=True, kw_only=True)
class OwnLines:
    """What goes over the team's values and the session's figures, where lines are drawn for a stored session."""

    policy: Mapping[str, object] = field(default_factory=dict)
    window_tokens: int | None = None
    max_output_tokens: int | None = None


NO_OWN_LINES = OwnLines()


def check_session(session: AgentSession, own: OwnLines = NO_OWN_LINES, *, now: datetime) -> Check:
    """A session that is known here, by its stored size. Its words are read only where the answer depends on them.
    Raises BadPolicy where the values over the team's make no lines."""
    policy = find_policy(session.team)
    lines = draw_session_lines(policy, session, own)
    reading = classify_usage(lines, session.context_tokens)

    def count_clearable() -> int | None:
        if lines is None or not session.has_content:
            return None
        entries = slice_context(follow_chain(apply_boundaries(read_thread(session, "").entries))).entries
        return count_clearable_tokens(entries, reading, lines, now=now)

    is_notes_time = reading.level is Level.AUTO_COMPACT
    has_fresh_notes = is_notes_time and session.has_content and has_notes_of_context(session, now=now)
    advice = advise(reading, count_clearable=count_clearable, has_fresh_notes=has_fresh_notes)
    origin = ESTIMATED if session.pending_tokens else MEASURED
    return Check(session.model, reading, lines, advice, origin, policy.version)


def draw_session_lines(settings: TeamSettings, session: AgentSession, own: OwnLines) -> Thresholds | None:
    if not session.model:
        return None
    known = find_model_in_use(session)
    in_use = replace(
        known,
        reported_window_tokens=own.window_tokens or known.reported_window_tokens,
        reported_max_output_tokens=own.max_output_tokens,
    )
    return _draw_lines(orjson.dumps([settings.thresholds, own.policy]), in_use)[0]


def check_question(team: Team, question: Question, *, now: datetime) -> Check:
    """Any agent, by what it tells. Raises BadPolicy where the values it sends make no lines."""
    policy = find_policy(team)
    lines, _ = draw_question_lines(policy, question)
    entries = read_messages(question.messages, model=question.model, usage=question.usage)
    used_tokens, origin = measure_question(question, entries)
    reading = classify_usage(lines, used_tokens)
    settings = replace(DEFAULT_SIZE_SETTINGS, tools=question.clearable_tools)
    count = partial(count_clearable_tokens, entries, reading, lines, now=now, settings=settings) if lines else None
    advice = advise(reading, count_clearable=count) if count and entries else advise(reading)
    return Check(question.model, reading, lines, advice, origin, policy.version)


def draw_question_lines(settings: TeamSettings, question: Question) -> tuple[Thresholds | None, Policy]:
    """The team's lines for this agent and its model, with its own values over them, and the policy they come from."""
    in_use = ModelInUse(
        question.model,
        is_claude_code=False,
        reported_window_tokens=question.window_tokens,
        reported_max_output_tokens=question.max_output_tokens,
    )
    return _draw_lines(orjson.dumps([settings.thresholds, question.policy]), in_use)


@lru_cache(maxsize=1024)
def _draw_lines(values: bytes, in_use: ModelInUse) -> tuple[Thresholds | None, Policy]:
    """Takes longer than everything else here, and agents ask about the same model under the same values again."""
    thresholds, own = orjson.loads(values)
    policy = Policy.from_team_values(thresholds | own).for_model(in_use.model)
    return compute_thresholds(policy, in_use), policy


def measure_question(question: Question, entries: Sequence[Entry]) -> tuple[int, str]:
    """How full the window is, and whether that was measured or partly counted by characters."""
    if question.used_tokens is not None:
        return question.used_tokens, MEASURED
    size = measure_context(entries)
    if size.is_measured:
        return size.tokens, ESTIMATED if size.estimated_tokens else MEASURED
    if question.usage is not None:
        return question.usage.context_tokens + size.tokens, ESTIMATED if size.tokens else MEASURED
    return size.tokens + question.prefix_tokens, ESTIMATED
