"""What a run's row keeps of its hooks: who was asked, and what came of it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum

from dashboard.models import CompactionRun


class NoteState(StrEnum):
    ANSWERED = "answered"
    BLOCKED = "blocked"
    FAILED = "failed"


@dataclass(frozen=True)
class HookNote:
    """One hook asked once. `told` is our sentence, `words` are what it said."""

    event: str
    hook: str
    state: NoteState
    told: str
    words: str = ""


def write_notes(notes: Iterable[HookNote]) -> list[dict[str, str]]:
    return [asdict(note) for note in notes]


def read_notes(run: CompactionRun, *, shows_words: bool) -> tuple[HookNote, ...]:
    notes = (HookNote(**{**each, "state": NoteState(each["state"])}) for each in run.hook_notes)
    return tuple(note if shows_words else replace(note, words="") for note in notes)
