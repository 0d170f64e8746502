"""Lines that `plimsoll watch` read, fingerprinted and redacted on a developer's machine, as they travel to a server.

Facts travel, not transcripts: what a team without content stores is all that such a team is sent. No Django here.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import msgspec

from compaction.timeline.observations import (
    READING_VERSION,
    REPORT,
    LineKind,
    Observation,
    change_observation,
    without_content,
)
from compaction.transcripts.json_fields import LARGEST_COUNT
from dashboard.ingest.observed import (
    EARLIEST_YEAR,
    LATEST_YEAR,
    ObservedLine,
    ObservedSession,
    ObservedShape,
    Prepared,
    Rules,
)
from dashboard.ingest.transcripts import clean_fact, find_redactor, keep_line, let_go_old, strip_ending

NOT_A_LINE = "pushed, but no line of a transcript"
TRANSCRIPT = "transcript"
FORMAT = 1
MSGPACK = "application/msgpack"
JSON = "application/json"
MOST_LINES = 200_000
_MOST_DROPS = 20
_LONGEST_ID = 200
_FROM_ELSEWHERE = frozenset(
    {
        *(LineKind.COMPACTION_REPORT, LineKind.PROMPT_REPORT, LineKind.COUNTER),
        *(LineKind.HOOK, LineKind.STATUS, LineKind.DELETION),
    }
)
_COMPACTED = frozenset({LineKind.BOUNDARY, LineKind.MICRO, LineKind.OLDER_SUMMARY})


class PushUnreadable(Exception):
    """Nothing of the body was kept; the message is for people."""


class PushedTool(msgspec.Struct, frozen=True, array_like=True):
    """As compaction.prompt.fingerprint.ToolPrint has it."""

    name: str
    digest: str
    description_digest: str
    schema_digest: str
    size_characters: int
    is_deferred: bool
    is_web_search: bool


class PushedMarker(msgspec.Struct, frozen=True, array_like=True):
    path: list[str | int]
    ttl: str
    scope: str | None = None


class PushedPrints(msgspec.Struct, frozen=True):
    """What Fingerprint.to_fields gives, with kinds that can be trusted."""

    model: str | None = None
    tools: list[PushedTool] = []
    system: list[tuple[str, int]] = []
    messages: list[str] = []
    message_sizes: list[int] = []
    message_blocks: list[int] = []
    system_messages: list[int] = []
    settings: list[tuple[str, str]] = []
    markers: list[PushedMarker] = []
    image_count: int = 0
    has_citations: bool = False
    are_messages_known: bool = True
    are_messages_opaque: bool = False


class PushedShape(msgspec.Struct, frozen=True):
    digest: str
    prints: PushedPrints
    content: bytes | None = None
    is_redacted: bool = False
    redaction: int = 0


class PushedLine(msgspec.Struct, frozen=True, array_like=True):
    fact: Observation
    content: bytes | None = None


class PushedSession(msgspec.Struct, frozen=True):
    session: str
    lines: list[PushedLine] = []
    shapes: list[PushedShape] = []


class Push(msgspec.Struct, frozen=True):
    """One batch."""

    format: int = FORMAT
    sessions: list[PushedSession] = []
    drops: dict[str, int] = {}

    @property
    def line_count(self) -> int:
        return sum(len(session.lines) for session in self.sessions)


_ENCODER = msgspec.msgpack.Encoder()
_DECODERS: Mapping[str, "msgspec.msgpack.Decoder[Push] | msgspec.json.Decoder[Push]"] = {
    MSGPACK: msgspec.msgpack.Decoder(Push),
    JSON: msgspec.json.Decoder(Push),
}


def write_push(push: Push) -> bytes:
    return _ENCODER.encode(push)


def make_push(prepared: Prepared) -> Push:
    """What was prepared, as it travels."""
    sessions = [
        PushedSession(
            observed.external_id,
            [PushedLine(line.fact, line.content) for line in observed.lines],
            [_push_shape(shape) for shape in observed.shapes],
        )
        for observed in prepared.sessions
    ]
    return Push(sessions=sessions, drops=dict(prepared.drops))


def _push_shape(shape: ObservedShape) -> PushedShape:
    prints = msgspec.convert(shape.prints, PushedPrints)
    return PushedShape(shape.digest, prints, shape.content, shape.is_redacted, shape.redaction)


def read_push(data: bytes, content_type: str = MSGPACK) -> Push:
    """Raises PushUnreadable."""
    try:
        push = _DECODERS[content_type].decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        reason = str(error)[:200] if isinstance(error, msgspec.ValidationError) else "it cannot be decoded"
        raise PushUnreadable(f"This is not a batch of `plimsoll watch`: {reason}.") from error
    if push.format != FORMAT:
        raise PushUnreadable(f"The batch has format {push.format}, this server reads {FORMAT}: update the older one.")
    if push.line_count > MOST_LINES:
        raise PushUnreadable(f"Send at most {MOST_LINES:,} lines at once.")
    if len(push.drops) > _MOST_DROPS or not _is_sound(push.drops):
        raise PushUnreadable("The counts of what was dropped cannot be used.")
    if not all(0 < len(session.session) <= _LONGEST_ID for session in push.sessions):
        raise PushUnreadable(f"A session's id has 1 to {_LONGEST_ID} characters.")
    return push


def settle_push(push: Push, rules: Rules) -> Prepared:
    """A batch as `prepare` would have made it here: the team's rules are the server's to keep, whoever sent it."""
    redactions: Counter[str] = Counter()
    drops = Counter(push.drops)
    sessions = []
    for session in push.sessions:
        lines = [line for line in session.lines if _could_be_a_line(line.fact)]
        shapes = [shape for shape in session.shapes if shape.digest and _is_sound(shape.prints)]
        drops[NOT_A_LINE] += len(session.lines) - len(lines) + len(session.shapes) - len(shapes)
        sessions.append(_settle_session(PushedSession(session.session, lines, shapes), rules, redactions))
    told = {reason: count for reason, count in drops.items() if count}
    return Prepared("push", tuple(sessions), push.line_count, drops=told, redactions=dict(redactions))


def _could_be_a_line(fact: Observation) -> bool:
    """Numbers, times and parts that a line can have; anything else may come as telemetry, under its own name."""
    answer = fact.answer
    return (
        bool(fact.id)
        and fact.kind not in _FROM_ELSEWHERE
        and fact.client is None
        and (answer is None or (fact.kind is LineKind.ANSWER and fact.type != REPORT and answer.source == TRANSCRIPT))
        and (fact.request is not None) == (fact.kind is LineKind.REQUEST)
        and (fact.compacted is not None) == (fact.kind in _COMPACTED)
        and _is_sound(fact)
    )


def _is_sound(value: object) -> bool:
    """Numbers within what a transcript can tell, times that can be compared."""
    if value is None or isinstance(value, str | bool | bytes):
        return True
    if isinstance(value, int):
        return 0 <= value <= LARGEST_COUNT
    if isinstance(value, float):
        return math.isfinite(value) and 0 <= value <= LARGEST_COUNT
    if isinstance(value, datetime):
        return value.tzinfo is not None and EARLIEST_YEAR <= value.year < LATEST_YEAR
    return all(map(_is_sound, _list_parts(value)))


def _list_parts(value: object) -> Iterable[object]:
    if isinstance(value, msgspec.Struct):
        return (getattr(value, name) for name in value.__struct_fields__)
    if isinstance(value, Mapping):
        return value.values()
    if isinstance(value, list | tuple):
        return value
    parts: dict[str, object] = msgspec.to_builtins(value)  # a dataclass: one sampling inside a response
    return parts.values()


def _settle_session(session: PushedSession, rules: Rules, redactions: Counter[str]) -> ObservedSession:
    redaction = find_redactor(rules)
    facts = [clean_fact(_cap_versions(line.fact, rules), redaction.clean) for line in session.lines]
    if not rules.keeps_content:
        lines = tuple(ObservedLine(without_content(fact)) for fact in facts)
        return ObservedSession(session.session, lines, tuple(_settle_shapes(session, rules, redactions)))
    raws = [strip_ending(line.content) for line in session.lines if line.content is not None]
    cleaned, counts = redaction.redact_lines(raws) if raws else ([], Counter[str]())
    redactions.update(counts)
    pairs = iter(zip(raws, cleaned, strict=True))
    kept = []
    for fact, line in zip(facts, session.lines, strict=True):
        if line.content is None:
            kept.append(ObservedLine(change_observation(fact, has_content=False, is_redacted=False)))
            continue
        raw, content = next(pairs)
        is_redacted = fact.is_redacted or raw != content
        line_fact = keep_line(fact, content, redaction.clean, is_redacted=is_redacted)
        if raw != content:  # the machine did not know the rules in force yet
            line_fact = change_observation(line_fact, redaction=rules.redaction_version)
        kept.append(ObservedLine(line_fact, content))
    lines = tuple(let_go_old(kept, rules.content_since))
    if not any(line.content is not None for line in lines):
        rules = replace(rules, keeps_content=False)  # a prompt is as old as the requests that came with it
    return ObservedSession(session.session, lines, tuple(_settle_shapes(session, rules, redactions)))


def _cap_versions(fact: Observation, rules: Rules) -> Observation:
    """A reading by a newer program than this server, or by rules the team does not have yet, must not outlast what
    comes later."""
    if fact.reading <= READING_VERSION and fact.redaction <= rules.redaction_version:
        return fact
    reading, redaction = min(fact.reading, READING_VERSION), min(fact.redaction, rules.redaction_version)
    return change_observation(fact, reading=reading, redaction=redaction)


def _settle_shapes(session: PushedSession, rules: Rules, redactions: Counter[str]) -> Iterator[ObservedShape]:
    redaction = find_redactor(rules)
    for shape in session.shapes:
        prints = msgspec.to_builtins(shape.prints)
        for tool in prints["tools"]:
            tool[0] = redaction.clean(tool[0])
        settled = ObservedShape(shape.digest, prints)
        if rules.keeps_content and shape.content is not None:
            content, counts = redaction.redact_one(shape.content)
            redactions.update(counts)
            version = rules.redaction_version if counts else min(shape.redaction, rules.redaction_version)
            is_redacted = shape.is_redacted or bool(counts)
            settled = replace(settled, content=content, is_redacted=is_redacted, redaction=version)
        yield settled


def cut_push(push: Push) -> list[Push]:
    """Smaller batches that say the same: two halves, or a single line without its words. Empty: it cannot be less."""
    lines = [(session.session, line) for session in push.sessions for line in session.lines]
    shapes = {session.session: session.shapes for session in push.sessions if session.shapes}
    if len(lines) > 1:
        half = len(lines) // 2
        return [_gather(lines[:half], shapes, push.drops), _gather(lines[half:], {}, {})]
    if any(line.content is not None for _, line in lines) or any(s.content for each in shapes.values() for s in each):
        bare = [(name, PushedLine(line.fact)) for name, line in lines]
        without = {name: [PushedShape(s.digest, s.prints) for s in each] for name, each in shapes.items()}
        return [_gather(bare, without, push.drops)]
    return []


def _gather(
    lines: Iterable[tuple[str, PushedLine]], shapes: Mapping[str, list[PushedShape]], drops: dict[str, int]
) -> Push:
    found: dict[str, list[PushedLine]] = {name: [] for name in shapes}
    for name, line in lines:
        found.setdefault(name, []).append(line)
    return Push(sessions=[PushedSession(name, each, shapes.get(name, [])) for name, each in found.items()], drops=drops)
