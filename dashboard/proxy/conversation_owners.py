"""Who said what stands at a place of a conversation, and which of several is meant. No Django here."""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from compaction.prompt.fingerprint import Fingerprint

MOST_ALIKE = 50  # conversations that are word for word the same; of more the newest are remembered
_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class Kin:
    """What an agent keeps from call to call beside its messages."""

    shape: str  # digest of system prompt and tools, as it is stored
    model: str | None = None
    system: bytes = b""
    tools: bytes = b""

    def count_alike(self, other: "Kin") -> int:
        return (self.model == other.model) + (self.system == other.system) + (self.tools == other.tools)


def take_kin(shape: str, prints: Fingerprint) -> Kin:
    return Kin(
        shape,
        prints.model,
        system=_join(block.digest for block in prints.system),
        tools=_join(tool.digest for tool in prints.tools),
    )


def _join(digests: Iterable[str]) -> bytes:
    return hashlib.blake2b("\n".join(digests).encode(), digest_size=8).digest()


@dataclass(slots=True, eq=False)
class Owner:
    """The conversation of one call that was seen."""

    session_id: str
    kin: Kin
    has_gone_on: bool = False  # a later call of it was seen


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A conversation that was written down, maybe before the recorder was started."""

    shapes: frozenset[str]
    has_call: bool  # the one that is being read: it is told again


LookUp = Callable[[int, Sequence[str], str], Mapping[str, StoredSession]]  # of a team, by names, with the call's id


class Owners:
    """By what was said. Bounded: what is forgotten makes a conversation two."""

    def __init__(self, most_remembered: int) -> None:
        self._most = most_remembered
        self._known: OrderedDict[bytes, list[Owner]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, said: bytes) -> Sequence[Owner]:
        return self._known.get(said, ())

    def add(self, said: bytes, owner: Owner) -> None:
        others = [each for each in self._known.get(said, ()) if each.session_id != owner.session_id]
        put(self._known, said, [*others, owner][-MOST_ALIKE:], self._most)


def put(memory: "OrderedDict[bytes, _Value]", name: bytes, value: _Value, most: int) -> None:
    memory[name] = value
    memory.move_to_end(name)
    if len(memory) > most:
        memory.popitem(last=False)


def choose_next(owners: Sequence[Owner], kin: Kin) -> Owner | None:
    """Whose next request this is, or whose step back. None where nobody can tell: a conversation cut in two costs
    less than two made one, which would show breaks that never were."""
    waiting = [each for each in owners if not each.has_gone_on]
    if alike := [each for each in waiting if each.kin == kin]:
        return alike[-1]  # whichever it was; one that was left alone is rather an old one
    if gone := [each for each in owners if each.has_gone_on and each.kin == kin]:
        return gone[0] if len(gone) == 1 else None
    return _choose_likest(waiting, kin)


def _choose_likest(waiting: Sequence[Owner], kin: Kin) -> Owner | None:
    """Somebody changed the system prompt, the tools or the model. Who changed all of them is somebody else."""
    most = max((each.kin.count_alike(kin) for each in waiting), default=0)
    likest = [each for each in waiting if each.kin.count_alike(kin) == most]
    return likest[0] if most and len(likest) == 1 else None


def choose_only(owners: Sequence[Owner], kin: Kin) -> Owner | None:
    """The one that could go on here, where less than all that was said is known."""
    alike = [each for each in owners if not each.has_gone_on and each.kin == kin]
    return alike[0] if len(alike) == 1 else None


def choose_stored(stored: Mapping[str, StoredSession], shape: str) -> str | None:
    if told := [name for name, session in stored.items() if session.has_call]:
        return told[0]
    alike = [name for name, session in stored.items() if shape in session.shapes]
    candidates = list(stored) if len(stored) == 1 else alike
    return candidates[0] if len(candidates) == 1 else None
