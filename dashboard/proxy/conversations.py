"""Which conversation a request continues, for clients that do not say: found by how it begins. No Django here.

A conversation is named after its beginning: what was asked before the first answer, and that answer. Every later
request repeats both, so it finds its conversation without any memory, after a restart too. Memory settles the rest:
conversations that begin alike down to the first answer, and requests that have dropped their beginning.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from compaction.cache.request import Fields, PromptMessage, write_canonical
from compaction.transcripts.values import get_text

MOST_REMEMBERED = 20_000
# An answer of so many characters, or one that uses a tool, is not given twice by chance.
DISTINCTIVE_CHARACTERS = 80
_Value = TypeVar("_Value")


class Conversations:
    """`scope` keeps callers apart: nobody continues the conversation of another key."""

    def __init__(self, *, most_remembered: int = MOST_REMEMBERED) -> None:
        self._most = most_remembered
        self._names: OrderedDict[bytes, int] = OrderedDict()  # beginning -> conversations that share it
        self._tips: OrderedDict[bytes, list[str]] = OrderedDict()  # all said so far -> whose, newest last
        self._answers: OrderedDict[bytes, str] = OrderedDict()  # a distinctive answer -> whose

    def find(self, scope: str, messages: Sequence[PromptMessage], answer: Iterable[Fields]) -> str:
        """The conversation of a request that was answered."""
        answer_mark = mark_answer(answer)
        marks = [mark_message(message) for message in messages]
        session_id = self._find_known(scope, messages, marks)
        if session_id is None:
            session_id = self._name(scope, messages, marks, answer_mark)
        self._remember(scope, (*marks, answer_mark), session_id, answer)
        return session_id

    def recall(self, scope: str, messages: Sequence[PromptMessage]) -> str | None:
        """The conversation of a request that nobody answered: the client will ask again, so nothing is remembered.
        None where there is no answer in it yet that could tell it from others."""
        marks = [mark_message(message) for message in messages]
        known = self._find_known(scope, messages, marks, is_continued=False)
        has_answer = any(message.role == "assistant" for message in messages)
        return known or (self._name(scope, messages, marks, b"") if has_answer else None)

    def _find_known(
        self, scope: str, messages: Sequence[PromptMessage], marks: Sequence[bytes], *, is_continued: bool = True
    ) -> str | None:
        chain = chain_marks(scope, marks)
        for place in range(len(messages) - 1, -1, -1):
            if messages[place].role == "assistant" and (owners := self._tips.get(chain[place])):
                # Several say the same up to here: each is continued once, the oldest first.
                return owners.pop(0) if len(owners) > 1 and is_continued else owners[0]
        for message in reversed(messages):
            if message.role == "assistant" and is_distinctive(message.blocks):
                known = self._answers.get(_join(scope.encode(), mark_message(message)))
                if known is not None:
                    return known
        return None

    def _name(self, scope: str, messages: Sequence[PromptMessage], marks: Sequence[bytes], answer_mark: bytes) -> str:
        first = next((place for place, message in enumerate(messages) if message.role == "assistant"), None)
        begins = (*marks, answer_mark) if first is None else marks[: first + 1]
        beginning = chain_marks(scope, begins)[-1]
        if first is not None:  # it goes on from before our time
            return _spell(beginning, 0)
        number = self._names.get(beginning, -1) + 1
        _put(self._names, beginning, number, self._most)
        return _spell(beginning, number)

    def _remember(self, scope: str, marks: Sequence[bytes], session_id: str, answer: Iterable[Fields]) -> None:
        tip = chain_marks(scope, marks)[-1]
        owners = [owner for owner in self._tips.get(tip, ()) if owner != session_id]
        _put(self._tips, tip, [*owners, session_id], self._most)
        if is_distinctive(answer):
            _put(self._answers, _join(scope.encode(), marks[-1]), session_id, self._most)


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


def _say(block: Mapping[str, object]) -> str:
    if block.get("type") == "tool_use":
        return f"tool {get_text(block, 'id') or ''}"
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


def _spell(beginning: bytes, number: int) -> str:
    return f"proxy-{beginning.hex()}" + (f"-{number + 1}" if number else "")


def _put(memory: "OrderedDict[bytes, _Value]", name: bytes, value: _Value, most: int) -> None:
    memory[name] = value
    memory.move_to_end(name)
    if len(memory) > most:
        memory.popitem(last=False)
