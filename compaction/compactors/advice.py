"""Advises an agent at its level: continue, warn, clear results, compact, or stop."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from compaction.compactors.micro.by_size import DEFAULT_SIZE_SETTINGS, SizeSettings, clear_by_size
from compaction.context.thresholds import Level, LevelReading, Thresholds
from compaction.transcripts.entries import Entry


class AdvisedAction(StrEnum):
    """Actions in order of rising cost."""

    NONE = "none"
    WARN = "warn"
    MICRO = "micro"
    SESSION_MEMORY = "session-memory"
    FULL = "full"
    BLOCK = "block"


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do, also as a sentence. `offered` is the action that ends a block."""

    action: AdvisedAction
    sentence: str
    offered: AdvisedAction | None = None


def advise(
    reading: LevelReading, *, count_clearable: Callable[[], int | None] = lambda: None, has_fresh_notes: bool = False
) -> Advice:
    """Return the advice for a level.

    `count_clearable` returns the tokens a micro-compaction would save (None: unknown). It reads the whole conversation,
    so it is called only when the advice depends on it.
    """
    match reading.level:
        case Level.NOT_KNOWN:
            sentence = "The context window of this model is unknown, so there are no thresholds."
            return Advice(AdvisedAction.NONE, sentence)
        case Level.OK:
            return Advice(AdvisedAction.NONE, "Continue.")
        case Level.WARNING:
            return Advice(AdvisedAction.WARN, "The warning threshold is reached: a compaction is near.")
        case Level.ERROR:
            return _advise_at_error(count_clearable())
        case Level.AUTO_COMPACT:
            return _advise_at_auto(has_fresh_notes=has_fresh_notes)
        case Level.BLOCKING:
            sentence = "The next call may no longer fit. Run a full compaction before you continue."
            return Advice(AdvisedAction.BLOCK, sentence, AdvisedAction.FULL)


def _advise_at_error(saved_tokens: int | None) -> Advice:
    min_tokens = DEFAULT_SIZE_SETTINGS.min_saved_tokens
    if saved_tokens is None:
        sentence = "The error threshold is reached. Send the messages to see how much clearing would save."
        return Advice(AdvisedAction.WARN, sentence)
    if saved_tokens < min_tokens:
        sentence = f"The error threshold is reached, and clearing would save less than {min_tokens:,} tokens."
        return Advice(AdvisedAction.WARN, sentence)
    return Advice(AdvisedAction.MICRO, f"Clearing old tool results would save ~{saved_tokens:,} tokens.")


def _advise_at_auto(*, has_fresh_notes: bool) -> Advice:
    if has_fresh_notes:
        sentence = "Compact now from the session notes: they are up to date and need no model call."
        return Advice(AdvisedAction.SESSION_MEMORY, sentence)
    return Advice(AdvisedAction.FULL, "Compact now, before the window is full.")


def count_clearable_tokens(
    entries: Sequence[Entry],
    reading: LevelReading,
    thresholds: Thresholds,
    *,
    now: datetime,
    settings: SizeSettings = DEFAULT_SIZE_SETTINGS,
) -> int:
    """Return the tokens that clearing by size would save now; 0 when it is not worth it."""
    cleared = clear_by_size(
        entries,
        used_tokens=reading.used_tokens,
        warning_tokens=thresholds.warning.tokens,
        now=now,
        settings=settings,
    )
    return cleared.tokens_saved if cleared else 0
