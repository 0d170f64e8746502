"""Facts: what a transcript line says apart from its words: who follows whom, tokens, requests, boundaries, sizes.

Everything the dashboard shows as a number is worked out from facts, so a team that stores no content loses none of it.
They are small, comparable and can be packed; how they are put in order lives in fact_order.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from compaction.transcripts.entries import Usage


class LineKind(StrEnum):
    """What a line is to the conversation."""

    ANSWER = "answer"  # part of an API response with usage
    PROMPT = "prompt"  # starts a turn
    RESULT = "result"  # tool results, or words beside them
    COMMAND = "command"  # a user line of the client's own making
    SUMMARY = "summary"  # stands for what a compaction took away
    BOUNDARY = "boundary"
    MICRO = "micro"
    DELETION = "deletion"  # results were deleted from the cache, and not from the conversation
    OLDER_SUMMARY = "older summary"  # a compaction by clients that write no boundary
    REQUEST = "request"
    SHAPE = "shape"
    ATTACHMENT = "attachment"
    RESTART = "restart"  # a hook for resumed sessions ran
    TITLE = "title"
    COST = "cost"
    TURN_END = "turn end"
    FAILURE = "failure"  # a call that no model answered; often it is tried again
    COUNT = "count"  # a call that only asked how many tokens a prompt has
    OTHER = "other"
    AGENT = "agent"  # what a sub-agent's own file says about it
    PROBLEM = "problem"  # could not be read
    COMPACTION_REPORT = "compaction report"  # told by telemetry; `name` is why it failed
    PROMPT_REPORT = "prompt report"  # a turn began, as telemetry tells it
    COUNTER = "counter"  # what the client says it used since the one before
    HOOK = "hook"  # the client ran a hook
    STATUS = "status"  # the client drew its status line


# Raised when lines of transcripts are read in another way: their files are read again, and the later reading wins.
# 2: user lines sorted by transcripts.user_lines, an estimate of tokens for each of them, sub-agents inside progress
# lines, how the client was told to ask for permission.
# 3: the hint after a task's notification is text of the client; redaction finds more forms and fewer false ones.
READING_VERSION = 3

REPORT = "report"  # the type of facts that no line of a transcript stands behind


class Response(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line of a response, or one report of a call by other telemetry (`source`)."""

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
    query_source: str | None = None  # what the client made the call for, where the report says so
    client_reasons: tuple[str, ...] = ()  # why the client thinks the cache was missed
    is_output_estimated: bool = False  # of a report: the answer was cut before its figures came
    added: tuple[str, ...] = ()  # what the proxy added to the request, by the team's wish
    cleared_tokens: int = 0  # what the API left out of the prompt by an edit of the context
    block_count: int = 0
    tool_use_count: int = 0
    searches_tools: bool = False  # loads tools on demand


class RecordedRequest(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A request line: its messages are those of `base` up to `keep`, then `tail`. Settings are printed, not spelt.

    Messages are the client's own hashes (opaque), or prints of ours (fingerprint.write_message_prints).
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
    """What a boundary, a micro-compaction or an older summary tells."""

    trigger: str | None = None
    before_tokens: int | None = None
    after_tokens: int | None = None
    saved_tokens: int | None = None
    duration_seconds: float | None = None
    summary_tokens: int | None = None
    kept_from: str | None = None  # the preserved segment: first and last old line that stays
    kept_to: str | None = None
    cleared_count: int = 0


WITHOUT_USAGE = "answer without usage"  # why a whole answer counts as no call
WITHOUT_ANSWER = "empty answer"


class FailedCall(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A call without an answer of a model: why, or what it counted."""

    status: int | None = None  # of HTTP; None: nobody says
    reason: str | None = None  # the API's word for the error, else how the call ended
    request_id: str | None = None
    model: str | None = None
    duration_seconds: float | None = None
    attempt: int | None = None  # which retry the client made it
    counted_tokens: int | None = None
    source: str = "transcript"
    added: tuple[str, ...] = ()  # what the proxy added to the request, by the team's wish


class ClientReport(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the client itself said in a hook (`event` is its name) or on its status line (`status`, `miss`)."""

    event: str
    detail: str | None = None  # why a session began or ended
    prompt_id: str | None = None
    model: str | None = None
    context_tokens: int | None = None
    window_tokens: int | None = None
    cache_expires_at: datetime | None = None
    is_cache_expired: bool | None = None
    rebuild_usd: str | None = None  # what the client expects a cold cache to cost
    reasons: tuple[str, ...] = ()  # why it thinks the cache was missed
    rate_limits: tuple[tuple[str, float, datetime | None], ...] = ()  # name, percent used, when it starts anew


class Observation(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One line. `id` is its uuid, or a hash of the line where it has none; `parent` is the line it hangs under."""

    id: str
    kind: LineKind
    type: str
    parent: str | None = None
    at: datetime | None = None
    agent_id: str | None = None
    is_sidechain: bool = False
    has_words: bool = False
    session_id: str | None = None
    version: str | None = None
    cwd: str | None = None
    branch: str | None = None
    size_bytes: int = 0
    answer: Response | None = None
    request: RecordedRequest | None = None
    compacted: CompactionRecord | None = None
    shape: tuple[str, str] | None = None  # the client's name for a shape, and its digest here
    tokens: int | None = None  # estimated, before the margin: what a line adds to the context, unless it is an answer
    words: str | None = None  # a title, the name of an attachment: absent where no content is stored
    # The kind of an attachment, the reason of a problem, a command of the client, or a name of fact_reading such as
    # "interrupted"
    name: str | None = None
    cost_usd: str | None = None
    has_content: bool = False  # the line itself is stored
    is_redacted: bool = False  # something in it was taken out
    client: ClientReport | None = None
    unanswered: FailedCall | None = None
    reading: int = 1  # by which version of the reader; what is no line of a transcript stays at the first
    permission_mode: str | None = None
    # By which version of the team's redaction rules; a change of the rules has lines read again. What is no line of a
    # transcript stays at the first.
    redaction: int = 0


_ENCODE = msgspec.msgpack.Encoder(decimal_format="string")
_DECODE = msgspec.msgpack.Decoder(list[Observation])


def pack_observations(facts: list[Observation]) -> bytes:
    """Facts as bytes; the same facts give the same bytes."""
    return _ENCODE.encode(facts)


def unpack_observations(data: bytes) -> list[Observation]:
    """Facts from `pack_observations`."""
    return _DECODE.decode(data)


def change_observation(fact: Observation, **values: object) -> Observation:
    """A copy with other values."""
    return msgspec.structs.replace(fact, **values)


def change_response(answer: Response, **values: object) -> Response:
    """A copy with other values."""
    return msgspec.structs.replace(answer, **values)


def change_compacted(told: CompactionRecord, **values: object) -> CompactionRecord:
    """A copy with other values."""
    return msgspec.structs.replace(told, **values)


def change_unanswered(told: FailedCall, **values: object) -> FailedCall:
    """A copy with other values."""
    return msgspec.structs.replace(told, **values)


def keep_stored_content(fact: Observation, stored: Observation) -> Observation:
    """A reading without content, of a line whose content is stored already."""
    return change_observation(
        fact,
        words=stored.words,
        has_content=True,
        is_redacted=stored.is_redacted,
        redaction=stored.redaction,
    )


def without_content(fact: Observation) -> Observation:
    """The fact as it is where no content is stored."""
    return change_observation(fact, words=None, has_content=False, is_redacted=False)


def choose_more_complete(one: Observation, other: Observation) -> Observation:
    """Of two readings of one line the later reader's, then that of the later redaction rules, then the fuller: a cut
    copy may come before or after the whole one. Of what the client tells again and again the latest."""
    return max(one, other, key=_weigh)


def _weigh(fact: Observation) -> tuple[int, int, float, int, bool, bool, int, bytes]:
    answer = fact.answer
    output_tokens = answer.usage.output_tokens if answer else 0
    is_stopped = answer is not None and answer.stop_reason is not None
    told_at = fact.at.timestamp() if fact.client is not None and fact.at is not None else 0.0
    fullness = output_tokens, is_stopped, fact.has_content, fact.size_bytes, _ENCODE.encode(fact)
    return fact.reading, fact.redaction, told_at, *fullness
