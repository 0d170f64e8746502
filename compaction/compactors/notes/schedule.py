"""Taking session notes: when an extraction is due, how long to wait for one, and the prompt for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from compaction.activity.tool_calls import read_activity
from compaction.compactors.notes.template import (
    ALL_NOTES_TOKENS,
    DEFAULT_TEMPLATE,
    SECTION_TOKENS,
    SessionNotes,
    cut_notes,
    list_long_sections,
    split_notes,
)
from compaction.context.tokens import count_text_tokens, measure_context
from compaction.errors import SummaryWithoutSections
from compaction.transcripts.chain import ContextSlice, slice_context
from compaction.transcripts.entries import Entry

WAIT_SECONDS = 15  # the client's limit for waiting on an extraction under way
STALE_SECONDS = 60  # after this the client takes an extraction for dead


@dataclass(frozen=True, slots=True)
class ExtractionSettings:
    """When notes are taken: our defaults, as the client's come from its server."""

    first_tokens: int = 10_000
    growth_tokens: int = 5_000
    tool_calls: int = 3


DEFAULT_EXTRACTION_SETTINGS = ExtractionSettings()


@dataclass(frozen=True, slots=True)
class ExtractionMark:
    """Where the last extraction stood: the last entry it covered, and the context size then."""

    entry_uuid: str
    context_tokens: int


@dataclass(frozen=True, slots=True)
class ExtractionNeed:
    """The figures the decision rests on, and the decision."""

    context_tokens: int
    growth_tokens: int
    tool_calls_since: int
    last_turn_tool_calls: int
    is_due: bool


def compute_extraction_need(
    entries: Sequence[Entry],
    last: ExtractionMark | None = None,
    *,
    settings: ExtractionSettings = DEFAULT_EXTRACTION_SETTINGS,
) -> ExtractionNeed:
    """Whether notes should be taken now. `entries` is the active branch of one thread."""
    context = slice_context(entries)
    tokens = measure_context(context).tokens
    work = read_activity(context.entries)
    in_last_turn = sum(1 for action in work.tool_calls if action.turn == work.last_turn)
    if last is None:
        calls = len(work.tool_calls)
        return ExtractionNeed(tokens, tokens, calls, in_last_turn, is_due=tokens >= settings.first_tokens)
    growth = compute_growth(tokens, last.context_tokens)
    since = _count_calls_since(context, last.entry_uuid)
    is_due = growth >= settings.growth_tokens and (since >= settings.tool_calls or in_last_turn == 0)
    return ExtractionNeed(tokens, growth, since, in_last_turn, is_due=is_due)


def compute_growth(tokens: int, last_tokens: int) -> int:
    """By how much the context grew. One that is smaller was compacted since: all of it is growth."""
    return tokens - last_tokens if tokens >= last_tokens else tokens


def find_wait_seconds(notes: SessionNotes, now: datetime, *, waited_seconds: float = 0) -> float:
    """How much longer to wait for an extraction under way: 0 when there is none, it is stale, or patience is over."""
    if notes.extraction_started_at is None:
        return 0
    running = (now - notes.extraction_started_at).total_seconds()
    if running >= STALE_SECONDS or running < 0:
        return 0
    return max(0.0, min(WAIT_SECONDS - waited_seconds, STALE_SECONDS - running))


def write_extraction_prompt(notes: str, *, template: str = DEFAULT_TEMPLATE, instructions: str | None = None) -> str:
    """The prompt that has the notes brought up to date; it names what has to be condensed."""
    current = notes if split_notes(notes) else template
    parts = [
        "This message comes from the program around the conversation, not from the user: it is no part of the work, "
        "and the notes must not mention it.",
        "Bring the session notes below up to date with the conversation above. Answer with the whole notes and nothing "
        "else; call no tool.",
        f"<notes>\n{current.strip()}\n</notes>",
        "How to write them:\n"
        "- Keep every heading, and the line in italics under it, exactly as they are; add no section and drop none.\n"
        "- Write below the line in italics. A section without news stays as it is; never fill one up with nothing.\n"
        "- Be specific: paths, names of functions, commands, error messages, exact values.\n"
        "- Leave out what the instruction files of the project already say.\n"
        "- Current State always tells how things are now; whoever goes on reads it first.\n"
        f"- At most {SECTION_TOKENS:,} tokens a section and {ALL_NOTES_TOKENS:,} in all: "
        "condense the oldest and least useful first.",
        *_list_limits(current),
    ]
    if instructions and instructions.strip():
        parts.append(f"Additional instructions:\n{instructions.strip()}")
    return "\n\n".join(parts)


def read_extraction(answer: str, notes: str, *, template: str = DEFAULT_TEMPLATE) -> str:
    """The notes that a model sent back, with every section that was there before, each within its limit.

    Raises SummaryWithoutSections where the answer has none of them.
    """
    told = {section.name.casefold(): section.body for section in split_notes(answer.replace("</notes>", ""))}
    sections = split_notes(notes) or split_notes(template)
    if not any(section.name.casefold() in told for section in sections):
        raise SummaryWithoutSections
    return cut_notes("\n\n".join(section.write(told.get(section.name.casefold())) for section in sections))


def _list_limits(notes: str) -> list[str]:
    """What has outgrown its limit, by name."""
    reminders = []
    total = count_text_tokens(notes)
    if total > ALL_NOTES_TOKENS:
        reminders.append(
            f"The notes have {total:,} tokens, {ALL_NOTES_TOKENS:,} are allowed. Shorten them hard now; keep Current "
            "State and Errors & Corrections the longest."
        )
    long = list_long_sections(notes)
    if long:
        names = "\n".join(f'- "{section.name}": {section.tokens:,} tokens' for section in long)
        reminders.append(f"These sections must be condensed to {SECTION_TOKENS:,} tokens each:\n{names}")
    return reminders


def _count_calls_since(context: ContextSlice, entry_uuid: str) -> int:
    """Tool requests after this entry; all of them when it is not here any more."""
    place = next((index for index, entry in enumerate(context.entries) if entry.uuid == entry_uuid), -1)
    return sum(1 for action in read_activity(context.entries[place + 1 :]).tool_calls if action.use.id)
