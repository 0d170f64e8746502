"""What an agent should do at its level: go on, warn, clear results, compact, or stop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from compaction.compactors.micro.by_size import DEFAULT_SIZE_SETTINGS, SizeSettings, clear_by_size
from compaction.context.thresholds import Level, LevelReading, Thresholds
from compaction.transcripts.entries import Entry


class AdvisedAction(StrEnum):
    """In rising order of what it costs."""

    NONE = "none"
    WARN = "warn"
    MICRO = "micro"
    SESSION_MEMORY = "session-memory"
    FULL = "full"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do, said as a sentence too. `offered` is the way out of a block."""

    action: AdvisedAction
    sentence: str
    offered: AdvisedAction | None = None


def advise(
    reading: LevelReading, *, count_clearable: Callable[[], int | None] = lambda: None, has_fresh_notes: bool = False
) -> Advice:
    """`count_clearable` says how many tokens a micro-compaction would save (None: not known); asked only where the
    answer depends on it, as it means going through the conversation."""
    match reading.level:
        case Level.NOT_KNOWN:
            return Advice(AdvisedAction.NONE, "The window of this model is not known, so no line can be drawn.")
        case Level.OK:
            return Advice(AdvisedAction.NONE, "Go on.")
        case Level.WARNING:
            return Advice(AdvisedAction.WARN, "The warning line is crossed: a compaction is near.")
        case Level.ERROR:
            return _advise_at_error(count_clearable())
        case Level.AUTO_COMPACT:
            return _advise_at_auto(has_fresh_notes=has_fresh_notes)
        case Level.BLOCKING:
            sentence = "Another call may not fit any more. Compact in full before going on."
            return Advice(AdvisedAction.BLOCK, sentence, AdvisedAction.FULL)


def _advise_at_error(saved_tokens: int | None) -> Advice:
    least_tokens = DEFAULT_SIZE_SETTINGS.least_saved_tokens
    if saved_tokens is None:
        return Advice(
            AdvisedAction.WARN, "The error line is crossed. Send the messages to learn what clearing would save."
        )
    if saved_tokens < least_tokens:
        return Advice(
            AdvisedAction.WARN, f"The error line is crossed, and clearing would save less than {least_tokens:,} tokens."
        )
    return Advice(AdvisedAction.MICRO, f"Clearing old tool results would save about {saved_tokens:,} tokens.")


def _advise_at_auto(*, has_fresh_notes: bool) -> Advice:
    if has_fresh_notes:
        return Advice(AdvisedAction.SESSION_MEMORY, "Compact now; the session's notes are fresh and need no model.")
    return Advice(AdvisedAction.FULL, "Compact now, before the window is full.")


def count_clearable_tokens(
    entries: Sequence[Entry],
    reading: LevelReading,
    lines: Thresholds,
    *,
    now: datetime,
    settings: SizeSettings = DEFAULT_SIZE_SETTINGS,
) -> int:
    """What a micro-compaction by size would save now; 0 when it is not worth it."""
    cleared = clear_by_size(
        entries,
        used_tokens=reading.used_tokens,
        warning_tokens=lines.warning.tokens,
        now=now,
        settings=settings,
    )
    return cleared.tokens_saved if cleared else 0
