"""Items of a restoration: what is restored after a compaction, what is not, and why.

A new restored kind starts here, gets a module that lists its items, and its place in restorer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from compaction.context.tokens import count_entry_tokens
from compaction.transcripts.entries import Entry
from compaction.transcripts.payloads import Attachment


class RestoredKind(StrEnum):
    """Kinds of restored items, in their order after the summary."""

    FILE = "file"
    TODOS = "todos"
    PLAN = "plan"
    PLAN_MODE = "plan_mode"
    SKILL = "skill"
    AGENT = "agent"
    TOOLS = "tools"
    AGENT_LISTING = "agent_listing"
    MCP_INSTRUCTIONS = "mcp_instructions"
    HOOK_RESULT = "hook_result"


class RestoredState(StrEnum):
    """Whether an item was restored whole, in part, or not at all."""

    RESTORED = "restored"
    TRUNCATED = "truncated"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredItem:
    """One item, restored or not. `tokens` is its size; for a skipped item the size it would have had.

    `entry` is the line to append, without uuid and parent, which assembly adds. `code` is the reason for the log,
    `reason` the same as a sentence for the page.
    """

    kind: RestoredKind
    name: str
    tokens: int
    state: RestoredState
    reason: str = ""
    code: str = ""
    entry: Entry | None = None


@dataclass(frozen=True, slots=True)
class RestoredContext:
    """All items that were considered, in order."""

    items: tuple[RestoredItem, ...] = ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The lines to append."""
        return tuple(item.entry for item in self.items if item.entry is not None)

    @property
    def tokens(self) -> int:
        """Total size of what was restored."""
        return sum(item.tokens for item in self.items if item.state is not RestoredState.SKIPPED)


class Restore(Protocol):
    """Selects what to restore. Budgets and the file source are bound beforehand."""

    def __call__(self, entries: Sequence[Entry], kept: Sequence[Entry], *, now: datetime) -> RestoredContext:
        """Return the items. `entries` is the whole thread before the compaction, `kept` what stays verbatim."""


def restore_nothing(entries: Sequence[Entry], kept: Sequence[Entry], *, now: datetime) -> RestoredContext:  # noqa: ARG001
    """Return no items: the Restore of a run that restores nothing."""
    return RestoredContext()


def build_restored_item(kind: RestoredKind, name: str, entry: Entry, *, cut: str = "") -> RestoredItem:
    """Return a restored item. `cut` is the sentence about what was left out of it."""
    return RestoredItem(
        kind=kind,
        name=clean_name(name),
        tokens=count_entry_tokens(entry),
        state=RestoredState.TRUNCATED if cut else RestoredState.RESTORED,
        reason=cut,
        code="cut_to_fit" if cut else "",
        entry=entry,
    )


def build_skipped_item(kind: RestoredKind, name: str, reason: str, *, code: str, tokens: int = 0) -> RestoredItem:
    """Return an item that is not restored."""
    return RestoredItem(
        kind=kind, name=clean_name(name), tokens=tokens, state=RestoredState.SKIPPED, reason=reason, code=code
    )


def build_attachment_entry(kind: str, text: str, attachment: Mapping[str, object]) -> Entry:
    """Return an attachment line that shows the model this text, without uuid and parent."""
    fields = {
        "attachment": {"type": kind, **attachment},
        "rendered": [{"content": text}],
        "renderedRole": "user",
    }
    return Entry("attachment", payload=Attachment(kind, (text,), "user"), fields=fields)


def clean_name(name: str) -> str:
    """Return a name from a transcript on one line, without control characters."""
    return "".join(character if character.isprintable() else " " for character in name)[:500]
