"""The prompt for a summary: nine sections, in three variants, and the second ask for sections that were missing."""

import re
from enum import IntEnum
from typing import Self

from compaction.ports import Variant


class Section(IntEnum):
    """The nine sections of a summary, with their numbers and titles in the client's prompt."""

    title: str

    REQUEST = 1, "Primary Request and Intent"
    CONCEPTS = 2, "Key Technical Concepts"
    FILES = 3, "Files and Code Sections"
    ERRORS = 4, "Errors and Fixes"
    PROBLEM_SOLVING = 5, "Problem Solving"
    MESSAGES = 6, "All User Messages"
    PENDING = 7, "Pending Tasks"
    CURRENT_WORK = 8, "Current Work"
    NEXT_STEP = 9, "Optional Next Step"

    def __new__(cls, number: int, title: str) -> Self:
        """Make the number the value."""
        section = int.__new__(cls, number)
        section._value_ = number
        section.title = title
        return section


SECTIONS = tuple(section.title for section in Section)
_UP_TO_TITLES = {
    Section.CURRENT_WORK: "Work Completed",
    Section.NEXT_STEP: "Context for Continuing Work",
}
UP_TO_SECTIONS = tuple(_UP_TO_TITLES.get(section, section.title) for section in Section)

SYSTEM_TEXT = "You write hand-over summaries of coding sessions, so that the work can go on without the conversation."

TEXT_ONLY_TEXT = (
    "Answer in plain text and nothing else. No tool is available for this answer: do not request Read, Bash, Edit or "
    "any other tool. A tool request is refused, there is no second turn, and the whole task counts as failed."
)

_TASKS = {
    Variant.FULL: (
        "Write a summary of the whole conversation above. Soon the conversation is gone and your summary is all that "
        "remains, so whoever continues must find in it everything that is needed to go on at once."
    ),
    Variant.FROM: (
        "Write a summary of the later part of the conversation above. The earlier messages stay in place word for "
        "word and are not to be summarised again; use them only to understand what follows them."
    ),
    Variant.UP_TO: (
        "Write a summary of the conversation above. It is the older part of a longer one: newer messages, which you "
        "do not see, follow your summary word for word. Prepare the ground for them and do not guess what they say."
    ),
}

_ANALYSIS_TEXT = """\
First think inside <analysis> tags. Go through the messages from the oldest to the newest and note for each stretch:
- what the user asked for, and what they meant by it;
- how it was approached, and which decisions were taken and why;
- names that matter: files, functions, commands, settings, versions, with the code that was read or written;
- what went wrong and what helped;
- every place where the user corrected the work, stated a preference or set a limit.
Then check the notes for gaps: the newest messages deserve the most care."""

_SECTION_TEXTS = (
    "Everything the user asked for, in detail, with the purpose behind it and every limit they set.",
    "Technologies, frameworks, patterns and design decisions that the work rests on.",
    "Each file that was examined, changed or created: its path, why it matters, what was changed, and the code that is "
    "needed to go on, in full.",
    "Each error with its message, its cause, how it was solved, and what the user said about it.",
    "What was worked out, what is still being looked into, and which ways led nowhere.",
    "Every message the user wrote (tool results are not theirs), word for word and in order.",
    "What the user explicitly asked for and is not done yet.",
    "Exactly what was being done when the conversation stops: file names, code, the last command and what it said.",
    "The one step that follows from the newest request, if there is one. Quote the words of the conversation that show "
    "what was asked and how far it got. After a finished task, name a next step only where the user asked for one.",
)
_UP_TO_TEXTS = (
    *_SECTION_TEXTS[: Section.PENDING],
    "What was finished by the end of this part, with file names and results.",
    "Decisions, state and open threads that the following messages take for granted.",
)

_SHAPE_TEXT = (
    "Then write the summary inside <summary> tags, with these nine numbered sections under exactly these names:"
)


_START_TAG = re.compile(r"<\s*+((?:/\s*+)?start)\s*+>", re.IGNORECASE)


def list_sections(variant: Variant) -> tuple[str, ...]:
    """The sections a summary of this variant must have, in order."""
    return UP_TO_SECTIONS if variant is Variant.UP_TO else SECTIONS


def build_prompt(variant: Variant, *, custom_instructions: str | None = None, starts_at: str | None = None) -> str:
    """Return the whole prompt. `starts_at` is the beginning of the first message that a "from" summary covers."""
    texts = _UP_TO_TEXTS if variant is Variant.UP_TO else _SECTION_TEXTS
    sections = "\n".join(
        f"{number}. {name}: {text}"
        for number, (name, text) in enumerate(zip(list_sections(variant), texts, strict=True), start=1)
    )
    parts = [TEXT_ONLY_TEXT, _TASKS[variant]]
    if starts_at:
        # The quotation is untrusted text: it must not close its own tag and continue as part of the prompt.
        quoted = _START_TAG.sub(r"< \1>", starts_at)
        parts.append(f"The part to summarise starts with the message that begins:\n<start>\n{quoted}\n</start>")
    parts += [_ANALYSIS_TEXT, f"{_SHAPE_TEXT}\n{sections}", "A section with nothing to report says so in one line."]
    if custom_instructions and custom_instructions.strip():
        parts.append(f"Additional Instructions:\n{custom_instructions.strip()}")
    parts.append(f"Once more: {TEXT_ONLY_TEXT} Write the <analysis> block, then the <summary> block.")
    return "\n\n".join(parts)


def build_second_prompt(missing: tuple[str, ...], variant: Variant) -> str:
    """Return the prompt that requests only the sections missing in an answer."""
    numbers = {name: number for number, name in enumerate(list_sections(variant), start=1)}
    wanted = "\n".join(f"{numbers[name]}. {name}" for name in missing)
    return (
        f"{TEXT_ONLY_TEXT}\n\nYour summary leaves out these sections:\n{wanted}\n\n"
        "Write only them, under the same numbers and names, inside <summary> tags. "
        "Leave out the analysis and the sections you have already written."
    )


def merge_instructions(user: str | None, hooks: tuple[str | None, ...]) -> str | None:
    """Return the user's instructions followed by those of the hooks; None without any."""
    parts = [part.strip() for part in (user, *hooks) if part and part.strip()]
    return "\n\n".join(parts) or None
