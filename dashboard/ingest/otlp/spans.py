"""Spans of model calls: those of Claude Code, of the Anthropic SDK, and of any agent by the GenAI conventions.

In the conventions `gen_ai.usage.input_tokens` includes what came from the cache and went into it; here it does not.
"""

from datetime import datetime, timedelta

from compaction.timeline.observations import LineKind, Response
from compaction.transcripts.entries import Usage
from dashboard.ingest.observed import Rules
from dashboard.ingest.otlp.attributes import clean_name, find_clean_name, find_count, find_name, find_seconds
from dashboard.ingest.otlp.telling import SOURCE, About, Dropped, Told, read_about
from dashboard.ingest.otlp.values import Attributes, Span, read_moment

_Times = tuple[datetime | None, datetime | None]  # start and end

_CLAUDE_CODE = "claude_code."
_LLM_REQUEST = "claude_code.llm_request"
_SERVICE = "claude-code"
# Operations that are one call of a model; others (agents, workflows) add up the calls below them.
_CALLS = frozenset({None, "chat", "text_completion", "generate_content", "message", "messages"})
_LONGEST_SECONDS = 86_400.0  # of one call; what claims more says nothing of when it ended
_LONGEST_FINISH = 60
_READ = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.input_tokens.cached",
)
_WRITTEN = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_write.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
)


def read_span(span: Span, rules: Rules) -> Told | Dropped:
    """Never raises for what the span holds."""
    if span.name.startswith(_CLAUDE_CODE):
        return _read_claude_code(span, rules) if span.name == _LLM_REQUEST else Dropped.UNUSED
    return _read_semantic(span, rules)


def _read_claude_code(span: Span, rules: Rules) -> Told | Dropped:
    told = span.attributes
    about = read_about(told, span.resource, rules)
    if about is None:
        return Dropped.NO_SESSION
    input_tokens, output_tokens = find_count(told, "input_tokens"), find_count(told, "output_tokens")
    if input_tokens is None or output_tokens is None:
        return Dropped.NO_FIGURES  # it failed: the log event says so
    written = find_count(told, "cache_creation_tokens") or 0
    usage = Usage(
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        cache_creation_tokens=written,
        cache_creation_5m_tokens=written,
        cache_read_tokens=find_count(told, "cache_read_tokens") or 0,
    )
    request_id = find_name(told, "request_id")
    answer = Response(
        call_id=request_id or f"{SOURCE}-{span.span_id}",
        usage=usage,
        model=find_name(told, "model", "gen_ai.request.model"),
        stop_reason=find_clean_name(told, rules, "stop_reason"),
        request_id=request_id,
        source=SOURCE,
        duration_seconds=find_seconds(told, "duration_ms"),
        ttft_seconds=find_seconds(told, "ttft_ms"),
        query_source=about.query_source,
    )
    return _tell(span, about, answer, _find_times(span))


def _read_semantic(span: Span, rules: Rules) -> Told | Dropped:
    told = span.attributes
    operation = find_name(told, "gen_ai.operation.name")
    usage = read_semantic_usage(told)
    if usage is None or operation not in _CALLS:
        is_known = any(name.startswith("gen_ai.") for name in told)
        return Dropped.UNUSED if is_known else Dropped.UNKNOWN
    trace = f"trace-{span.trace_id}" if span.trace_id else None
    about = read_about(told, span.resource, rules) or read_about(told, span.resource, rules, session_id=trace)
    if about is None:
        return Dropped.NO_SESSION
    message_id = find_name(told, "gen_ai.response.id")
    started_at, ended_at = _find_times(span)
    answer = Response(
        call_id=message_id or f"{SOURCE}-{span.trace_id}-{span.span_id}",
        usage=usage,
        model=find_name(told, "gen_ai.response.model", "gen_ai.request.model"),
        stop_reason=find_clean_name(told, rules, "anthropic.message.stop_reason") or _find_finish(told, rules),
        request_id=find_name(told, "anthropic.request.id"),
        source=SOURCE,
        duration_seconds=(ended_at - started_at).total_seconds() if started_at and ended_at else None,
        ttft_seconds=_find_first_chunk(told),
        query_source=about.query_source,
    )
    return _tell(span, about, answer, (started_at, ended_at))


def read_semantic_usage(told: Attributes) -> Usage | None:
    """None where the span has no figures of a call."""
    whole = find_count(told, "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
    output_tokens = find_count(told, "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
    if whole is None or output_tokens is None:
        return None
    read, written = find_count(told, *_READ) or 0, find_count(told, *_WRITTEN) or 0
    long = min(find_count(told, "anthropic.usage.cache_creation.ephemeral_1h_input_tokens") or 0, written)
    # Some libraries leave the cache out of the input, against the conventions: then it is the smaller number.
    plain = whole - read - written if whole >= read + written else whole
    return Usage(
        input_tokens=plain,
        output_tokens=output_tokens,
        cache_creation_tokens=written,
        cache_creation_5m_tokens=written - long,
        cache_creation_1h_tokens=long,
        cache_read_tokens=read,
    )


def _tell(span: Span, about: About, answer: Response, times: _Times) -> Told:
    started_at, ended_at = times
    if started_at is not None and ended_at is None and 0 < (answer.duration_seconds or 0) < _LONGEST_SECONDS:
        ended_at = started_at + timedelta(seconds=answer.duration_seconds or 0)
    # Named so that it stands behind the log event of the same call, which knows more; and after who speaks, as that
    # decides whose session it is (dashboard.ingest.picture.tellers).
    is_claude_code = span.name.startswith(_CLAUDE_CODE) or find_name(span.resource, "service.name") == _SERVICE
    teller = "span-of-claude-code" if is_claude_code else "span"
    key = f"{teller}:{span.trace_id}-{span.span_id}" if span.span_id else f"{teller}:{answer.call_id}"
    return Told(about.session_id, (about.make_fact(LineKind.RESPONSE, key, ended_at or started_at, response=answer),))


def _find_times(span: Span) -> _Times:
    started_at, ended_at = read_moment(span.started_nanoseconds), read_moment(span.ended_nanoseconds)
    if started_at and ended_at and ended_at < started_at:
        return started_at, None
    return started_at, ended_at


def _find_finish(told: Attributes, rules: Rules) -> str | None:
    reasons = told.get("gen_ai.response.finish_reasons")
    first = reasons[0] if isinstance(reasons, list) and reasons else reasons
    return clean_name(first, rules, _LONGEST_FINISH) if isinstance(first, str) else None


def _find_first_chunk(told: Attributes) -> float | None:
    value = told.get("gen_ai.response.time_to_first_chunk")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e6 else None
