"""Log events of Claude Code: calls, compactions, failures, prompts and tool results as facts."""

from collections.abc import Callable, Mapping
from datetime import datetime

from compaction.timeline.observations import CompactionRecord, FailedCall, LineKind, Response
from compaction.transcripts.entries import Usage
from compaction.transcripts.titles import LONGEST_TITLE
from compaction.transcripts.user_lines import extract_prompt_text
from dashboard.ingest.observed import Rules
from dashboard.ingest.otlp.attributes import (
    clean_name,
    find_clean_name,
    find_count,
    find_name,
    find_seconds,
    find_text,
    find_usd,
    hash_attributes,
    is_true,
)
from dashboard.ingest.otlp.prompt_bodies import read_request_body, read_response_body
from dashboard.ingest.otlp.telling import SOURCE, About, Dropped, Told, read_about
from dashboard.ingest.otlp.values import LogRecord, read_moment
from dashboard.ingest.transcripts import find_redactor

PREFIX = "claude_code."
REDACTED = "<REDACTED>"

# Known, and of no use for contexts, caches and compactions.
UNUSED_EVENTS = frozenset(
    {
        "api_refusal", "assistant_response", "at_mention", "auth", "feedback_survey", "hook_execution_complete",
        "hook_execution_start", "hook_plugin_metrics", "hook_registered", "internal_error", "managed_settings_resolved",
        "mcp_server_connection", "permission_mode_changed", "plugin_installed", "plugin_loaded", "retention_sweep",
        "safety_event", "skill_activated", "subagent_completed", "system_prompt", "tool", "tool_decision",
    }
)  # fmt: skip


def read_event(record: LogRecord, rules: Rules) -> Told | Dropped:
    """Never raises for what the record holds."""
    name = record.name.removeprefix(PREFIX)
    if name in UNUSED_EVENTS:
        return Dropped.UNUSED
    read = _READERS.get(name)
    if read is None:
        return Dropped.UNKNOWN
    about = read_about(record.attributes, record.resource, rules)
    if about is None:
        return Dropped.NO_SESSION
    return read(record, about, rules)


def find_key(record: LogRecord) -> str:
    """The client numbers its events anew with every start: the time belongs to the name."""
    sequence = find_count(record.attributes, "event.sequence")
    name = hash_attributes(record.attributes) if sequence is None else str(sequence)
    return f"{record.at_nanoseconds}-{name}"


def _find_time(record: LogRecord) -> datetime | None:
    return read_moment(record.at_nanoseconds)


def _read_call(record: LogRecord, about: About, rules: Rules) -> Told | Dropped:  # noqa: ARG001
    told = record.attributes
    usage = _read_usage(record)
    if usage is None:
        return Dropped.NO_FIGURES
    request_id = find_name(told, "request_id")
    answer = Response(
        call_id=request_id or f"{SOURCE}-{find_key(record)}",
        usage=usage,
        model=find_name(told, "model"),
        request_id=request_id,
        source=SOURCE,
        duration_seconds=find_seconds(told, "duration_ms"),
        ttft_seconds=find_seconds(told, "ttft_ms"),
        query_source=about.query_source,
    )
    fact = about.make_fact(
        LineKind.ANSWER, f"call:{answer.call_id}", _find_time(record), answer=answer, cost_usd=find_usd(told)
    )
    return Told(about.session_id, (fact,))


def _read_usage(record: LogRecord) -> Usage | None:
    told = record.attributes
    input_tokens, output_tokens = find_count(told, "input_tokens"), find_count(told, "output_tokens")
    if input_tokens is None and output_tokens is None:
        return None
    long = find_count(told, "cache_creation_1h_tokens") or 0
    short = find_count(told, "cache_creation_5m_tokens") or 0
    written = max(find_count(told, "cache_creation_tokens") or 0, long + short)
    return Usage(
        input_tokens=input_tokens or 0,
        output_tokens=output_tokens or 0,
        cache_creation_tokens=written,
        cache_creation_5m_tokens=written - long,
        cache_creation_1h_tokens=long,
        cache_read_tokens=find_count(told, "cache_read_tokens") or 0,
        speed=find_name(told, "speed"),
    )


def _read_compaction(record: LogRecord, about: About, rules: Rules) -> Told | Dropped:
    told = record.attributes
    failure = None if is_true(told.get("success")) else find_text(told, "error") or "no reason given"
    compacted = CompactionRecord(
        trigger=find_clean_name(told, rules, "trigger"),
        before_tokens=find_count(told, "pre_tokens"),
        after_tokens=None if failure else find_count(told, "post_tokens"),
        duration_seconds=find_seconds(told, "duration_ms"),
    )
    fact = about.make_fact(
        LineKind.COMPACTION_REPORT,
        f"compaction:{find_key(record)}",
        _find_time(record),
        compacted=compacted,
        name=clean_name(failure, rules) if failure else None,
    )
    return Told(about.session_id, (fact,))


def _read_failure(record: LogRecord, about: About, rules: Rules) -> Told | Dropped:
    error = find_text(record.attributes, "error") or record.name.removeprefix(PREFIX)
    name = clean_name(error, rules)
    told = record.attributes
    unanswered = FailedCall(
        status=find_count(told, "status_code"),
        reason=name,
        request_id=find_name(told, "request_id"),
        model=find_name(told, "model"),
        duration_seconds=find_seconds(told, "duration_ms"),
        attempt=find_count(told, "attempt"),
        source="otlp",
    )
    key = f"failure:{find_key(record)}"
    fact = about.make_fact(LineKind.FAILURE, key, _find_time(record), name=name, unanswered=unanswered)
    return Told(about.session_id, (fact,))


def _read_prompt(record: LogRecord, about: About, rules: Rules) -> Told | Dropped:
    """A turn begins. Its words, where the client sends them, make a title."""
    if find_text(record.attributes, "command_name"):
        return Dropped.UNUSED
    text = find_text(record.attributes, "prompt") if rules.keeps_content else None
    typed = extract_prompt_text(text) if text and text != REDACTED else ""
    words = find_redactor(rules).clean_title(typed, LONGEST_TITLE) or None
    key = f"prompt:{find_key(record)}"
    fact = about.make_fact(LineKind.PROMPT_REPORT, key, _find_time(record), has_words=True, words=words)
    return Told(about.session_id, (fact,))


def _read_result(record: LogRecord, about: About, rules: Rules) -> Told | Dropped:
    """That a tool was used and how much it gave back; what it said stays with the client."""
    fact = about.make_fact(
        LineKind.RESULT,
        f"result:{find_name(record.attributes, 'tool_use_id') or find_key(record)}",
        _find_time(record),
        name=find_clean_name(record.attributes, rules, "tool_name"),
        size_bytes=find_count(record.attributes, "tool_result_size_bytes") or 0,
    )
    return Told(about.session_id, (fact,))


def _read_request_body(record: LogRecord, about: About, rules: Rules) -> Told | Dropped:
    return read_request_body(record.attributes, about, rules, at=_find_time(record), key=find_key(record))


def _read_response_body(record: LogRecord, about: About, rules: Rules) -> Told | Dropped:  # noqa: ARG001
    return read_response_body(record.attributes, about, at=_find_time(record), key=find_key(record))


_READERS: Mapping[str, Callable[[LogRecord, About, Rules], Told | Dropped]] = {
    "api_request": _read_call,
    "compaction": _read_compaction,
    "api_error": _read_failure,
    "api_retries_exhausted": _read_failure,
    "user_prompt": _read_prompt,
    "tool_result": _read_result,
    "api_request_body": _read_request_body,
    "api_response_body": _read_response_body,
}
