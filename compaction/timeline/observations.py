"""Observations: what one transcript line or report contributes to figures, such as parents, times, tokens, boundaries.

Everything the dashboard shows as a number is computed from observations, so a team that stores no content loses none
of it. They are stored by position: fields are only added at the end, and values never change.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from compaction.transcripts.entries import Usage


class LineKind(StrEnum):
    """What a line is to the conversation. The values are stored."""

    RESPONSE = "answer"  # part of an API response with usage
    PROMPT = "prompt"  # starts a turn
    RESULT = "result"  # tool results, alone or with other content
    COMMAND = "command"  # a user line that the client wrote
    SUMMARY = "summary"  # replaces what a compaction removed
    BOUNDARY = "boundary"
    MICRO = "micro"
    DELETION = "deletion"  # results were deleted from the cache, but not from the conversation
    OLDER_SUMMARY = "older summary"  # a compaction by clients that write no boundary
    REQUEST = "request"
    SHAPE = "shape"
    ATTACHMENT = "attachment"
    RESTART = "restart"  # a hook for resumed sessions ran
    TITLE = "title"
    COST = "cost"
    TURN_END = "turn end"
    FAILURE = "failure"  # a call without a model's response; often it is retried
    COUNT = "count"  # a call that only asked how many tokens a prompt has
    OTHER = "other"
    AGENT = "agent"  # the description of a sub-agent in its own file
    PROBLEM = "problem"  # could not be read
    COMPACTION_REPORT = "compaction report"  # from telemetry; `name` is why it failed
    PROMPT_REPORT = "prompt report"  # telemetry reports that a turn began
    COUNTER = "counter"  # the client's usage since its previous counter
    HOOK = "hook"  # the client ran a hook
    STATUS = "status"  # the client updated its status line


# Increased when transcript lines are read differently: their files are read again, and the later reading wins.
# 2: user lines classified by transcripts.user_lines, an estimate of tokens for each of them, sub-agents inside progress
# lines, the client's permission mode.
# 3: the hint after a task's notification is text of the client; redaction finds more forms and fewer false ones.
READING_VERSION = 3

REPORT = "report"  # the type of observations that come from no transcript line


class Response(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of a response, or one report of a call from another source (`source`)."""

    call_id: str
    usage: Usage
    model: str | None = None
    stop_reason: str | None = None
    miss_reason: str | None = None
    request_id: str | None = None
    written_characters: int = 0
    has_thinking: bool = False
    request_ref: str | None = None
    requested_ttl: str | None = None
    source: str = "transcript"
    duration_seconds: float | None = None
    ttft_seconds: float | None = None
    query_source: str | None = None  # what the client made the call for, if the report names it
    client_reasons: tuple[str, ...] = ()  # why the cache was missed, according to the client
    is_output_estimated: bool = False  # of a report: the response was cut off before its figures arrived
    added: tuple[str, ...] = ()  # what the proxy added to the request because of the team's settings
    cleared_tokens: int = 0  # what the API left out of the prompt by context editing
    block_count: int = 0
    tool_use_count: int = 0
    searches_tools: bool = False  # loads tools on demand


class RecordedRequest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A request line. Its messages are the first `keep` of `base`, then `tail`; settings are fingerprints, not text.

    Messages are the client's own hashes (opaque), or fingerprints of ours (fingerprint.write_message_prints).
    """

    id: str
    query_source: str | None = None
    shape: str | None = None
    model: str | None = None
    base: str | None = None
    keep: int = 0
    tail: tuple[str, ...] = ()
    markers: tuple[tuple[tuple[str | int, ...], str], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    is_opaque: bool = True
    image_count: int = 0
    has_citations: bool = False
    starts_turn: bool = False


class CompactionRecord(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Figures of a boundary, a micro-compaction or an older summary."""

    trigger: str | None = None
    before_tokens: int | None = None
    after_tokens: int | None = None
    saved_tokens: int | None = None
    duration_seconds: float | None = None
    summary_tokens: int | None = None
    kept_from: str | None = None  # the preserved segment: its first and last line
    kept_to: str | None = None
    cleared_count: int = 0


WITHOUT_USAGE = "answer without usage"  # why a whole response counts as no call
WITHOUT_ANSWER = "empty answer"


class FailedCall(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A call without a model's response: why it failed, or how many tokens it counted."""

    status: int | None = None  # of HTTP, where known
    reason: str | None = None  # the API's error type, else how the call ended
    request_id: str | None = None
    model: str | None = None
    duration_seconds: float | None = None
    attempt: int | None = None  # the number of the client's retry
    counted_tokens: int | None = None
    source: str = "transcript"
    added: tuple[str, ...] = ()  # what the proxy added to the request because of the team's settings


class ClientReport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the client reported in a hook (`event` is its name) or on its status line (`status`, `miss`)."""

    event: str
    detail: str | None = None  # why a session began or ended
    prompt_id: str | None = None
    model: str | None = None
    context_tokens: int | None = None
    window_tokens: int | None = None
    cache_expires_at: datetime | None = None
    is_cache_expired: bool | None = None
    rebuild_usd: str | None = None  # the cost of a cold cache, according to the client
    reasons: tuple[str, ...] = ()  # why the cache was missed, according to the client
    rate_limits: tuple[tuple[str, float, datetime | None], ...] = ()  # name, percent used, when it is reset


class Observation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line or report. `id` is its uuid, or a hash of the line where it has none; `parent` is the id before it."""

    id: str
    kind: LineKind
    type: str
    parent: str | None = None
    at: datetime | None = None
    agent_id: str | None = None
    is_sidechain: bool = False
    has_user_content: bool = False  # a user line with more than tool results
    session_id: str | None = None
    version: str | None = None
    cwd: str | None = None
    branch: str | None = None
    size_bytes: int = 0
    response: Response | None = None
    request: RecordedRequest | None = None
    compaction: CompactionRecord | None = None
    shape: tuple[str, str] | None = None  # the client's name for a shape, and its digest here
    tokens: int | None = None  # estimated, before the margin: what a line adds to the context, except for a response
    text: str | None = None  # a title, the start of a prompt, the name of an attachment; None when no content is stored
    # The kind of an attachment, the reason of a problem, a command of the client, or a name of read_entries such as
    # "interrupted".
    name: str | None = None
    cost_usd: str | None = None
    has_content: bool = False  # the line itself is stored
    is_redacted: bool = False  # something in it was removed
    client_report: ClientReport | None = None
    failed_call: FailedCall | None = None
    reading_version: int = 1  # of the reader of transcript lines; other observations stay at the first
    permission_mode: str | None = None
    # Of the team's redaction rules: a change of the rules has lines read again. Observations of no transcript line stay
    # at the first.
    redaction_version: int = 0


ThreadKey = tuple[bool, str | None]


def thread_key(observation: Observation) -> ThreadKey:
    """Return the thread of an observation: the main conversation, or a sidechain by the id of its agent."""
    return observation.is_sidechain, observation.agent_id if observation.is_sidechain else None


_ENCODE = msgspec.msgpack.Encoder(decimal_format="string")
_DECODE = msgspec.msgpack.Decoder(list[Observation])


def pack_observations(observations: list[Observation]) -> bytes:
    """Return the stored form; the same observations give the same bytes."""
    return _ENCODE.encode(observations)


def unpack_observations(data: bytes) -> list[Observation]:
    """Return the observations of `pack_observations`."""
    return _DECODE.decode(data)


def with_stored_content(line: Observation, stored: Observation) -> Observation:
    """Return a reading without content, marked as that of a line whose content is already stored."""
    return msgspec.structs.replace(
        line,
        text=stored.text,
        has_content=True,
        is_redacted=stored.is_redacted,
        redaction_version=stored.redaction_version,
    )


def without_content(line: Observation) -> Observation:
    """Return the observation as it is where no content is stored."""
    return msgspec.structs.replace(line, text=None, has_content=False, is_redacted=False)
