"""The decoder of transcripts: bytes of lines in, observed sessions out, fingerprinted first and redacted then."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial
from operator import attrgetter
from typing import Protocol

import msgspec

from compaction.prompt.fingerprint import Digest, Fingerprint
from compaction.timeline.fast_lines import read_plain_observation
from compaction.timeline.observations import (
    READING_VERSION,
    LineKind,
    Observation,
    without_content,
)
from compaction.timeline.read_entries import fingerprint_shape, read_observation, read_problem
from compaction.transcripts.client_protocol import AGENT_PROGRESS
from compaction.transcripts.entries import Entry, Item, SkippedLine
from compaction.transcripts.lines import LinePosition, RawLine
from compaction.transcripts.reader import read_line
from compaction.transcripts.subagents import AgentMeta, parse_agent_id, write_nested_line
from compaction.transcripts.titles import cut_title
from compaction.transcripts.transcript import TranscriptReader
from dashboard.ingest.hostile_json import ENDLESS_BYTES, MOST_DIGITS, MOST_VALUES, holds_endless_number, holds_too_much
from dashboard.ingest.observed import (
    EARLIEST_YEAR,
    LATEST_YEAR,
    MOST_PROBLEMS,
    LineProblem,
    ObservedLine,
    ObservedSession,
    ObservedShape,
    Piece,
    Prepared,
    Rules,
)
from dashboard.ingest.redaction import Redactor

NO_SESSION = "line without a session"
TOO_LONG = "line too long to keep"
MANY_UNREADABLE = "unreadable line, one of very many"
MOST_UNREADABLE = 1_000  # kept of one piece

# So many characters are looked at of a text of which only the beginning is kept. The last of them are left out then:
# they may be the first half of a secret.
_LOOKED_AT = 64 * 1024
_UNSURE = 8 * 1024

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def is_session_id(text: str) -> bool:
    """Whether a client would name a session so."""
    return _UUID.fullmatch(text) is not None


def name_session(path: str) -> tuple[str | None, str | None]:
    """Session and sub-agent from a file's name and place; None where only the lines can tell."""
    folder, _, name = path.replace("\\", "/").rpartition("/")  # a path object takes ten times as long
    agent_id = parse_agent_id(name)
    if agent_id is None:
        session_id = name.rpartition(".")[0] or name
    else:
        above, _, last = folder.rpartition("/")
        session_id = above.rpartition("/")[2] if last == "subagents" else ""
    return (session_id if is_session_id(session_id) else None), agent_id


def prepare(piece: Piece, rules: Rules) -> Prepared:
    """Everything that can be done without a database. Never raises for what the bytes hold."""
    reader = TranscriptReader(LinePosition(line_count=piece.first_line_number - 1))
    desk = _Desk(piece, rules)
    desk.put_lines(reader.split(piece.data))
    last = piece.data[piece.data.rfind(b"\n") + 1 :]
    if holds_too_much(last):
        desk.put(_skip_full_line(RawLine(reader.position.line_count + 1, reader.position.offset, last, len(last))))
        return desk.clear()
    for item in reader.close():
        desk.put(item)
    if reader.tail is not None:
        tail = reader.tail
        desk.put(SkippedLine("malformed", tail.line_number, tail.offset, tail.raw, "The line ends in the middle."))
    return desk.clear()


def prepare_agent_meta(session_id: str, agent_id: str, meta: AgentMeta, rules: Rules) -> Prepared:
    """What a sub-agent's meta file says, as one fact of its session."""
    clean = find_redactor(rules).clean
    words = meta.description if rules.keeps_content else None
    agent_id = clean(agent_id)
    fact = Observation(
        id=f"agent-meta:{agent_id}",
        kind=LineKind.AGENT,
        type="agent-meta",
        agent_id=agent_id,
        is_sidechain=True,
        name=meta.agent_type,
        text=words,
        reading_version=READING_VERSION,
        redaction_version=rules.redaction_version,
    )
    return Prepared(agent_id, (ObservedSession(session_id, (ObservedLine(clean_fact(fact, clean)),)),))


@dataclass(slots=True)
class _Drawer:
    """What is gathered for one session."""

    facts: list[Observation] = field(default_factory=list)
    raws: list[bytes] = field(default_factory=list)
    shapes: dict[str, ObservedShape] = field(default_factory=dict)
    nested: Counter[str] = field(default_factory=Counter)  # ids of lines inside other lines, with how often they came


class Redaction:
    """Lines are joined for redaction: it is many times faster over long stretches."""

    def __init__(self, own_patterns: tuple[tuple[str, str], ...], disabled_rules: frozenset[str] = frozenset()) -> None:
        self._redactor = Redactor.with_usable(dict(own_patterns), disabled_rules)
        self.clean = lru_cache(maxsize=4096)(self._clean)

    def _clean(self, text: str) -> str:
        found = self._redactor.redact(text.encode("utf-8", "replace"))
        return found.data.decode("utf-8", "replace").replace("\x00", "")

    def clean_start(self, text: str, longest: int) -> str:
        """How a text begins. Cut only when secrets are out: half of one has no form that could be found."""
        if len(text) <= longest:
            return self.clean(text)[:longest]
        return self._clean_head(text)[:longest]

    def clean_title(self, text: str, longest: int) -> str:
        """The same on one line. Looked at again there: what stood on two lines may be a name and its secret on one."""
        return cut_title(self._clean(" ".join(self._clean_head(text).split())), longest)

    def _clean_head(self, text: str) -> str:
        if len(text) <= _LOOKED_AT:
            return self._clean(text)
        return self._clean(text[:_LOOKED_AT])[:-_UNSURE]

    def redact_one(self, line: bytes) -> tuple[bytes, Counter[str]]:
        found = self._redactor.redact(line)
        return found.data, Counter(found.counts)

    def redact_lines(self, lines: list[bytes]) -> tuple[list[bytes], Counter[str]]:
        found = self._redactor.redact(b"\n".join(lines))
        redacted = found.data.split(b"\n")
        if len(redacted) == len(lines) and not found.is_withheld:
            return redacted, Counter(found.counts)
        # A form that reached over a line end: line by line it cannot. Or one line is withheld, and the others need not.
        each = [self.redact_one(line) for line in lines]
        return [data for data, _ in each], sum((counts for _, counts in each), Counter[str]())


class RedactionRules(Protocol):
    """The part of a team's settings that decides what is redacted."""

    @property
    def own_patterns(self) -> Mapping[str, str]: ...

    @property
    def disabled_rules(self) -> frozenset[str]: ...


def find_redactor(rules: RedactionRules) -> Redaction:
    """Compiled once per process and set of rules."""
    return _make_redaction(tuple(rules.own_patterns.items()), rules.disabled_rules)


@lru_cache(maxsize=16)
def _make_redaction(own_patterns: tuple[tuple[str, str], ...], disabled_rules: frozenset[str]) -> Redaction:
    return Redaction(own_patterns, disabled_rules)


class _Desk:
    """Sorts the items of one piece into sessions."""

    def __init__(self, piece: Piece, rules: Rules) -> None:
        self._piece, self._rules = piece, rules
        self._digest: Digest = partial(digest_text, rules.digest_key)
        self._redaction = find_redactor(rules)
        self._drawers: dict[str, _Drawer] = {}
        self._waiting: list[tuple[Observation, bytes, bool]] = []  # lines that name no session, before one that does
        self._current = piece.session_id
        self._line_count = 0
        self._problems: list[LineProblem] = []  # the first of them
        self._problem_count = 0
        self._unreadable: set[tuple[str | None, bytes]] = set()
        self._drops: Counter[str] = Counter()

    def put_lines(self, lines: Iterable[RawLine]) -> None:
        """Nearly all are plain; the others are read the long way."""
        keeps_text, agent_id = self._rules.keeps_content, self._piece.agent_id
        drawer = None if self._piece.session_id is None else self._open_drawer(self._piece.session_id)
        for line in lines:
            raw = line.raw  # empty when the line is dropped, which is not plain either
            if len(raw) >= ENDLESS_BYTES and holds_too_much(raw):
                self.put(_skip_full_line(line))
                continue
            fact = read_plain_observation(raw, keeps_text=keeps_text)
            if fact is None:
                for item in read_line(line):
                    self.put(item)
            elif drawer is None or (agent_id is not None and not fact.is_sidechain):
                self._put_fact(fact, raw)
            else:  # the short way of the same
                self._line_count += 1
                drawer.facts.append(fact)
                drawer.raws.append(raw)

    def put(self, item: Item) -> None:
        if isinstance(item, SkippedLine):
            self._put_skipped(item)
            return
        fact = read_observation(item, self._digest, keeps_text=self._rules.keeps_content)
        drawer = self._put_fact(fact, item.raw or b"")
        if drawer is not None and fact.kind is LineKind.SHAPE:
            self._keep_shape(drawer, item)
        elif item.type == "progress" and item.raw is not None and AGENT_PROGRESS.encode() in item.raw:
            self._put_nested(item)

    def _put_nested(self, item: Entry) -> None:
        """Add a sub-agent's line that stands inside its parent's file. In the sub-agent's own file it has the same id,
        so whichever comes later is no second line."""
        raw = write_nested_line(item)
        if raw is None:
            return
        for nested in read_line(RawLine(item.line_number, 0, raw, len(raw))):
            if isinstance(nested, SkippedLine):
                self._put_skipped(nested, is_nested=True)
            else:
                fact = read_observation(nested, self._digest, keeps_text=self._rules.keeps_content)
                self._file(fact, raw, is_nested=True)

    def _put_fact(self, fact: Observation, raw: bytes) -> _Drawer | None:
        self._line_count += 1
        if self._piece.agent_id is not None and not fact.is_sidechain:
            fact = _as_sidechain(fact, self._piece.agent_id)
        self._current = self._piece.session_id or fact.session_id or self._current
        return self._file(fact, raw)

    def clear(self) -> Prepared:
        self._drops[NO_SESSION] += sum(not is_nested for _, _, is_nested in self._waiting)
        redactions: Counter[str] = Counter()
        sessions = []
        for name, drawer in self._drawers.items():
            if not drawer.facts:
                continue
            drawer.facts = _forget_odd_times(drawer.facts)
            lines, counts = self._finish(drawer)
            redactions += counts
            shapes, nested = tuple(drawer.shapes.values()), _find_nested(drawer)
            sessions.append(ObservedSession(name, lines, shapes, nested=nested))
        return Prepared(
            name=self._piece.name,
            sessions=tuple(sessions),
            line_count=self._line_count,
            problems=tuple(self._problems),
            more_problem_count=self._problem_count - len(self._problems),
            drops={reason: count for reason, count in self._drops.items() if count},
            redactions=dict(redactions),
        )

    def _put_skipped(self, line: SkippedLine, *, is_nested: bool = False) -> None:
        if not line.is_problem:
            return
        self._line_count += not is_nested
        self._problem_count += 1
        if len(self._problems) < MOST_PROBLEMS:
            self._problems.append(LineProblem(self._piece.name, line.line_number, line.reason))
        if line.kind == "too_long":
            self._drops[TOO_LONG] += 1
        elif (self._current, line.raw) not in self._unreadable:
            self._keep_unreadable(line, is_nested=is_nested)

    def _keep_unreadable(self, line: SkippedLine, *, is_nested: bool) -> None:
        """Once, however often it comes; of very many the first: what is no transcript must not make a session large."""
        if len(self._unreadable) >= MOST_UNREADABLE:
            self._drops[MANY_UNREADABLE] += 1
            return
        self._unreadable.add((self._current, line.raw))
        self._file(read_problem(line), line.raw, is_nested=is_nested)

    def _file(self, fact: Observation, raw: bytes, *, is_nested: bool = False) -> _Drawer | None:
        if self._current is None:
            self._waiting.append((fact, raw, is_nested))
            return None
        drawer = self._open_drawer(self._current)
        if self._waiting:
            drawer.facts += [waiting for waiting, _, _ in self._waiting]
            drawer.raws += [waiting for _, waiting, _ in self._waiting]
            drawer.nested.update(waiting.id for waiting, _, is_inside in self._waiting if is_inside)
            self._waiting.clear()
        if is_nested:
            drawer.nested[fact.id] += 1
        drawer.facts.append(fact)
        drawer.raws.append(raw)
        return drawer

    def _open_drawer(self, session_id: str) -> _Drawer:
        drawer = self._drawers.get(session_id)
        if drawer is None:
            drawer = self._drawers[session_id] = _Drawer()
        return drawer

    def _keep_shape(self, drawer: _Drawer, entry: Entry) -> None:
        printed = fingerprint_shape(entry, self._digest)
        if printed is None or printed[0] in drawer.shapes:
            return
        content, counts = None, Counter[str]()
        if self._rules.keeps_content and not self._is_too_old(drawer.facts[-1].at):
            content, counts = self._redaction.redact_one(strip_ending(entry.raw or b""))
        prints = change_names(printed[1], self._redaction.clean).to_fields()
        version = self._rules.redaction_version
        drawer.shapes[printed[0]] = ObservedShape(printed[0], prints, content, bool(counts), version)

    def _finish(self, drawer: _Drawer) -> tuple[tuple[ObservedLine, ...], Counter[str]]:
        clean = self._redaction.clean
        facts = drawer.facts
        if not _are_clean(facts, clean):
            facts = [clean_fact(fact, clean) for fact in facts]
        version = self._rules.redaction_version
        if version:
            facts = [msgspec.structs.replace(fact, redaction_version=version) for fact in facts]
        if not self._rules.keeps_content:
            return tuple(map(ObservedLine, facts)), Counter()
        raws = [strip_ending(raw) for raw in drawer.raws]
        redacted, counts = self._redaction.redact_lines(raws)
        lines = [
            ObservedLine(keep_line(fact, data, clean, is_redacted=data != raw), data)
            for fact, raw, data in zip(facts, raws, redacted, strict=True)
        ]
        return tuple(let_go_old(lines, self._rules.content_since)), counts

    def _is_too_old(self, at: datetime | None) -> bool:
        since = self._rules.content_since
        return since is not None and at is not None and at < since


def _find_nested(drawer: _Drawer) -> frozenset[str]:
    """Return the ids of the lines that stand only inside other lines."""
    if not drawer.nested:
        return frozenset()
    counts = Counter(fact.id for fact in drawer.facts)
    return frozenset(name for name, count in drawer.nested.items() if counts[name] == count)


def keep_line(fact: Observation, content: bytes, clean: Callable[[str], str], *, is_redacted: bool) -> Observation:
    """The fact of a line whose redacted content is kept. Its words are cut, so those of a line that held a secret are
    read once more from what is left: where the cut went through the secret, no form finds the half."""
    words = fact.text
    if is_redacted and words:
        words = clean(_read_words(content) or "") or None
    return msgspec.structs.replace(fact, has_content=True, is_redacted=is_redacted, text=words)


def _read_words(content: bytes) -> str | None:
    item = next(iter(read_line(RawLine(1, 0, content, len(content)))), None)
    return read_observation(item).text if isinstance(item, Entry) else None


def let_go_old(lines: Sequence[ObservedLine], since: datetime | None) -> Iterable[ObservedLine]:
    """Only what was said since then keeps its words. A line without a time is as old as the one before it, the first
    ones as old as the one behind them."""
    return lines if since is None else _let_go(lines, since)


def _let_go(lines: Sequence[ObservedLine], since: datetime) -> Iterator[ObservedLine]:
    at = next((line.fact.at for line in lines if line.fact.at), None)
    for line in lines:
        at = line.fact.at or at
        yield ObservedLine(without_content(line.fact)) if at is not None and at < since else line


def _skip_full_line(line: RawLine) -> SkippedLine:
    reason = f"The line holds more than {MOST_VALUES:,} values."
    if holds_endless_number(line.raw):
        reason = f"A number on this line has more than {MOST_DIGITS:,} digits."
    return SkippedLine("too_long", line.number, line.offset, b"", reason, line.size_bytes)


def digest_text(key: bytes, data: bytes) -> str:
    """Keyed: equal prompts of a team compare, nothing can be read back."""
    return hashlib.blake2b(data, digest_size=16, key=key).hexdigest()


def change_names(prints: Fingerprint, clean: Callable[[str], str]) -> Fingerprint:
    """Names of tools are the one text in prints that somebody else chose."""
    return replace(prints, tools=tuple(replace(tool, name=clean(tool.name)) for tool in prints.tools))


def strip_ending(raw: bytes) -> bytes:
    """One line is one line: endings and stray breaks inside a broken line must not make two of it."""
    return raw.strip(b"\r\n").replace(b"\n", b" ")


def _forget_odd_times(facts: Iterable[Observation]) -> list[Observation]:
    return [
        fact
        if (at := fact.at) is None or EARLIEST_YEAR <= at.year < LATEST_YEAR
        else msgspec.structs.replace(fact, at=None)
        for fact in facts
    ]


def _as_sidechain(fact: Observation, agent_id: str) -> Observation:
    return msgspec.structs.replace(fact, agent_id=fact.agent_id or agent_id, is_sidechain=True)


def _are_clean(facts: Sequence[Observation], clean: Callable[[str], str]) -> bool:
    """Whether redaction leaves the few texts of facts alone; most lines repeat those of the line before."""
    texts: set[str | None] = set()
    for *told, unanswered in set(map(_list_texts, facts)):
        texts.update(told, () if unanswered is None else (unanswered.reason,))
    return all(text is None or clean(text) == text for text in texts)


def clean_fact(fact: Observation, clean: Callable[[str], str]) -> Observation:
    """The few texts of a fact go through redaction too."""
    texts = {name: text for name in _TEXTS if (text := getattr(fact, name))}
    changes: dict[str, object] = {name: cleaned for name, text in texts.items() if (cleaned := clean(text)) != text}
    told = fact.failed_call
    if told is not None and told.reason and (reason := clean(told.reason)) != told.reason:
        changes["failed_call"] = msgspec.structs.replace(told, reason=reason)
    return msgspec.structs.replace(fact, **changes) if changes else fact


_TEXTS = ("cwd", "branch", "text", "name", "version", "agent_id", "permission_mode")
_list_texts = attrgetter(*_TEXTS, "failed_call")
