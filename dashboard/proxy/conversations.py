"""Which conversation a request continues, for clients that do not say: found by what it repeats. No Django here.

A request goes on from what was said before it: the messages and the answer of an earlier call, which memory knows. One
that no memory knows is named after itself and its answer. Its later requests repeat both, so their conversation is
found by name among what is stored, after a restart too. System prompt, tools and model tell those apart that were told
the same; a conversation may change them where no other could be meant.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compaction.prompt.request import Fields, PromptMessage, write_canonical
from compaction.transcripts.flatten import COMPACTION_TYPE
from compaction.transcripts.json_fields import get_text
from dashboard.proxy.conversation_owners import (
    Kin,
    LookUp,
    Owner,
    Owners,
    StoredSession,
    choose_next,
    choose_only,
    choose_stored,
    put,
)

MOST_REMEMBERED = 20_000
# An answer of so many characters, or one that uses a tool, is not given twice by chance.
DISTINCTIVE_CHARACTERS = 80
UNIQUE_ID_CHARACTERS = 16  # gateways that count their tool calls write shorter ones
# The very same request after an answer that was cut is the same one asked again, for so long. A caller that left may be
# noticed a moment after it has come back.
AGAIN_SECONDS, SLACK_SECONDS = 600, 1
MOST_NAMES = 100  # asked for at once, from either end of a conversation
MOST_NUMBERS = 20


@dataclass(frozen=True, slots=True)
class Asked:
    """A request whose conversation is looked for. `scope` keeps callers apart: nobody continues the conversation of
    another key."""

    scope: str
    messages: Sequence[PromptMessage]
    kin: Kin
    team_pk: int = 0
    call_id: str = ""
    started_at: float = 0.0  # seconds since 1970
    ended_at: float = 0.0
    is_whole: bool = True  # answered to the end
    is_step: bool = True  # of the conversation, not beside it


class _Trail:
    """The places of a request: `links` name all that was said up to each."""

    def __init__(self, asked: Asked) -> None:
        messages = asked.messages
        self.links = chain_marks(asked.scope, [mark_message(message) for message in messages])
        self.end = self.links[-1] if self.links else asked.scope.encode()
        self.answers = [place for place, message in enumerate(messages) if message.role == "assistant"]
        questions = [place for place, message in enumerate(messages) if message.role != "assistant"]
        self._last_question = questions[-1] if questions else -1
        self.question = self.links[self._last_question] if questions else self.end
        before = [place for place in self.answers if place < self._last_question]
        asked_before = [place for place in questions if before and place < before[-1]]
        self.question_before = self.links[asked_before[-1]] if asked_before else None

    def answer_with(self, answer: Iterable[Fields]) -> bytes:
        return _join(self.end, mark_answer(answer))

    def is_last_answer(self, place: int) -> bool:
        """Whether only questions follow. Behind the last of them there may be the beginning of the next answer."""
        return not any(place < other < self._last_question for other in self.answers)


class Conversations:
    """`look_up` finds what is stored by name; what it raises is raised before anything is remembered."""

    def __init__(self, look_up: LookUp = lambda *_: {}, *, most_remembered: int = MOST_REMEMBERED) -> None:
        self._look_up = look_up
        self._most = most_remembered
        self._numbers: OrderedDict[bytes, int] = OrderedDict()  # beginning -> the last of those that share it
        self._said = Owners(most_remembered)  # all up to an answer
        self._asked = Owners(most_remembered)  # all up to a question, whatever was answered
        self._answers = Owners(most_remembered)  # a distinctive answer alone
        self._cut: OrderedDict[bytes, tuple[Owner, float]] = OrderedDict()  # a request -> whose, ended when

    def find(self, asked: Asked, answer: Sequence[Fields]) -> str:
        """The conversation of a request that was answered."""
        trail = _Trail(asked)
        owner = self._find(asked, trail)
        session_id = owner.session_id if owner else self._name(asked, trail.answer_with(answer))
        if owner is not None and asked.is_step:
            owner.has_gone_on = True
        self._remember(asked, trail, answer, Owner(session_id, asked.kin))
        return session_id

    def recall(self, asked: Asked) -> str | None:
        """The conversation of a request that nobody answered: the client will ask again, so it has not gone on. None
        where it goes on from nothing that is known."""
        owner = self._find(asked, _Trail(asked))
        return owner.session_id if owner else None

    def _find(self, asked: Asked, trail: _Trail) -> Owner | None:
        """The stronger signs first: a name that is stored says more than parts of what was said."""
        if again := self._find_cut(asked, trail):
            return again
        place = self._find_place(trail)
        owners = self._said.get(trail.links[place]) if place >= 0 else ()
        is_next = bool(owners) and trail.is_last_answer(place)
        if is_next and (owner := choose_next(owners, asked.kin)):
            return owner if owner.kin == asked.kin else self._ask_rivals(asked, trail.links[place], owner)
        if stored := self._find_stored(asked, trail, place):
            return stored
        return None if is_next else self._find_by_parts(asked, trail, owners)

    def _find_cut(self, asked: Asked, trail: _Trail) -> Owner | None:
        owner, ended_at = self._cut.get(_name_request(asked, trail), (None, 0.0))
        return owner if -SLACK_SECONDS <= asked.started_at - ended_at <= AGAIN_SECONDS else None

    def _find_place(self, trail: _Trail) -> int:
        return next((place for place in reversed(trail.answers) if self._said.get(trail.links[place])), -1)

    def _find_stored(self, asked: Asked, trail: _Trail, known: int) -> Owner | None:
        """By a name that an answer in the request could have given, behind the place that memory knows. There it knows
        better, if of the same agent."""
        is_ours = known >= 0 and any(each.kin == asked.kin for each in self._said.get(trail.links[known]))
        places = [place for place in trail.answers if place > known or (place == known and not is_ours)]
        names = {_spell(trail.links[place]): place for place in [*places[:MOST_NAMES], *places[-MOST_NAMES:]]}
        place = max((names[name] for name in self._ask_stored(asked, list(names))), default=None)
        if place is None:
            return None
        beginning = trail.links[place]
        return self._take_stored(asked, beginning, self._list_stored(asked, beginning))

    def _ask_rivals(self, asked: Asked, beginning: bytes, owner: Owner) -> Owner | None:
        """The owner has changed its ways, unless one that memory has forgotten began alike."""
        stored = self._list_stored(asked, beginning)
        shapes = {each.session_id: frozenset({each.kin.shape}) for each in self._said.get(beginning)}
        if stored.keys() <= shapes.keys():
            return owner
        known = {name: StoredSession(shape, has_call=False) for name, shape in shapes.items()}
        return self._take_stored(asked, beginning, known | dict(stored))

    def _take_stored(self, asked: Asked, beginning: bytes, stored: Mapping[str, StoredSession]) -> Owner | None:
        session_id = choose_stored(stored, asked.kin.shape)
        if session_id is None:
            return None
        owner = Owner(session_id, asked.kin)
        self._said.add(beginning, owner)
        return owner

    def _list_stored(self, asked: Asked, beginning: bytes) -> Mapping[str, StoredSession]:
        return self._ask_stored(asked, [_spell(beginning, number) for number in range(MOST_NUMBERS)])

    def _ask_stored(self, asked: Asked, names: Sequence[str]) -> Mapping[str, StoredSession]:
        return self._look_up(asked.team_pk, names, asked.call_id) if names else {}

    def _name(self, asked: Asked, beginning: bytes) -> str:
        """Nobody else's name: of those that begin alike down to the first answer each has a number."""
        last = self._numbers.get(beginning, -1)
        start = 0 if last < MOST_NUMBERS else last + 1  # the first ones again: a call may be told again
        while True:
            names = {_spell(beginning, number): number for number in range(start, start + MOST_NUMBERS)}
            stored = self._ask_stored(asked, list(names))
            told = next((name for name, session in stored.items() if session.has_call), None)
            free = next((name for name, number in names.items() if number > last and name not in stored), None)
            if name := told or free:
                put(self._numbers, beginning, max(last, names[name]), self._most)
                return name
            start += MOST_NUMBERS

    def _find_by_parts(self, asked: Asked, trail: _Trail, owners: Sequence[Owner]) -> Owner | None:
        """Clients may change the answer that they send back, put in answers of their own, or drop the beginning."""
        questioned = self._asked.get(trail.question_before) if trail.question_before else ()
        return choose_only(questioned, asked.kin) or choose_only(owners, asked.kin) or self._find_by_answers(asked)

    def _find_by_answers(self, asked: Asked) -> Owner | None:
        """Words alone may be handed on to another agent or stand as examples: they count for the same agent, if its
        conversation stands there or two of its answers are repeated."""
        met: set[str] = set()
        for message in reversed(asked.messages):
            for mark, is_unique in _list_distinctive(message.blocks, is_answer=message.role == "assistant"):
                owners = self._answers.get(_join(asked.scope.encode(), mark))
                meant = [each for each in owners if is_unique or each.kin == asked.kin]
                if len(meant) != 1:
                    continue
                if is_unique or not meant[0].has_gone_on or meant[0].session_id in met:
                    return meant[0]
                met.add(meant[0].session_id)
        return None

    def _remember(self, asked: Asked, trail: _Trail, answer: Sequence[Fields], owner: Owner) -> None:
        self._said.add(trail.answer_with(answer), owner)
        if asked.is_step:
            self._asked.add(trail.question, owner)
        for mark, _ in _list_distinctive(answer):
            self._answers.add(_join(asked.scope.encode(), mark), owner)
        name = _name_request(asked, trail)
        self._cut.pop(name, None)
        if not asked.is_whole:
            put(self._cut, name, (owner, asked.ended_at), self._most)


def mark_message(message: PromptMessage) -> bytes:
    """What a message is known by. Of answers only words and tool calls: clients send thinking back or not."""
    if message.role == "assistant":
        return mark_answer(message.blocks)
    return hashlib.blake2b(
        write_canonical((message.role, message.blocks)).encode("utf-8", "surrogatepass"), digest_size=16
    ).digest()


def mark_answer(blocks: Iterable[Fields]) -> bytes:
    parts = [_say(block) for block in blocks]
    return hashlib.blake2b("\n".join(filter(None, parts)).encode("utf-8", "surrogatepass"), digest_size=16).digest()


def is_distinctive(blocks: Iterable[Fields]) -> bool:
    listed = list(blocks)
    uses_tool = any(block.get("type") == "tool_use" and get_text(block, "id") for block in listed)
    return uses_tool or sum(len(_say(block)) for block in listed) >= DISTINCTIVE_CHARACTERS


def _list_distinctive(blocks: Sequence[Fields], *, is_answer: bool = True) -> Iterator[tuple[bytes, bool]]:
    """Marks that hardly two conversations have, and whether they are unique by nature. What the API has compacted
    counts by itself: later requests begin with it, beside whatever else was answered."""
    for block in blocks:
        if block.get("type") == COMPACTION_TYPE and _say(block):
            yield mark_answer([block]), True
    if is_answer and is_distinctive(blocks):
        ids = [get_text(block, "id") or "" for block in blocks if block.get("type") == "tool_use"]
        yield mark_answer(blocks), any(len(each) >= UNIQUE_ID_CHARACTERS for each in ids)


def _say(block: Mapping[str, object]) -> str:
    if block.get("type") == "tool_use":
        return f"tool {get_text(block, 'id') or ''}"
    if block.get("type") == COMPACTION_TYPE:  # with neither it failed, and says nothing
        told = get_text(block, "content") or get_text(block, "encrypted_content")
        return f"compaction {told}" if told else ""
    return (get_text(block, "text") or "").strip() if block.get("type") == "text" else ""


def chain_marks(scope: str, marks: Sequence[bytes]) -> list[bytes]:
    """For every message a name of 16 bytes for all that was said up to it."""
    links, link = [], scope.encode()
    for mark in marks:
        link = _join(link, mark)
        links.append(link)
    return links


def _join(before: bytes, mark: bytes) -> bytes:
    return hashlib.blake2b(before + mark, digest_size=16).digest()


def _name_request(asked: Asked, trail: _Trail) -> bytes:
    return _join(trail.end, f"{asked.kin.shape} {asked.kin.model}".encode())


def _spell(beginning: bytes, number: int = 0) -> str:
    return f"proxy-{beginning.hex()}" + (f"-{number + 1}" if number else "")
