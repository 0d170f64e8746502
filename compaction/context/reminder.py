"""The context reminder: titled context as one meta user message in front of the conversation."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from compaction.context.tokens import CHARACTERS_PER_TOKEN, count_text_tokens
from compaction.transcripts.client_protocol import SYSTEM_REMINDER
from compaction.transcripts.entries import Entry, Message, TextBlock

INSTRUCTION_TOKENS = 40_000  # the client's limit for all instruction files together
INSTRUCTIONS_TITLE = "Project instructions"
CUT_MARK = "\n[cut here: the instruction files together are longer than the limit]"
_OPENING = f"<{SYSTEM_REMINDER}>\nContext for the work ahead:\n"
_CLOSING = f"\nUse what bears on the task and pass over the rest without comment.\n</{SYSTEM_REMINDER}>"


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """One instruction file, such as CLAUDE.md."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class ContextSection:
    """Titled context: IDE selection, recent files, todos, plan."""

    title: str
    content: str


def build_instruction_section(
    files: Iterable[InstructionFile], *, limit_tokens: int = INSTRUCTION_TOKENS
) -> ContextSection | None:
    """Return all instruction files in their order, within the limit; the one that exceeds it is cut with a mark."""
    parts: list[str] = []
    left_tokens = limit_tokens
    for file in files:
        text = f"## {file.path}\n{file.content}"
        tokens = count_text_tokens(text)
        if tokens > left_tokens:
            room = left_tokens * CHARACTERS_PER_TOKEN - len(CUT_MARK) - 1
            if room > 0:
                parts.append(text[:room] + CUT_MARK)
            break
        parts.append(text)
        left_tokens -= tokens
    return ContextSection(INSTRUCTIONS_TITLE, "\n".join(parts)) if parts else None


def build_context_reminder(sections: Sequence[ContextSection], *, at: datetime | None = None) -> Entry | None:
    """Return the reminder as an entry to put before the first one; None without content."""
    filled = [section for section in sections if section.content.strip()]
    if not filled:
        return None
    body = "\n".join(f"# {section.title}\n{section.content}" for section in filled)
    message = Message("user", (TextBlock(f"{_OPENING}{body}\n{_CLOSING}"),), is_plain=True)
    return Entry("user", at=at, is_meta=True, message=message)
