"""Named errors of the library. Each message is a sentence that can be shown to a person as it stands."""


class CompactionError(Exception):
    """Anything this library refuses, with a sentence for the person who asked."""


class BadPolicy(CompactionError):
    """A team's values make no lines that could be drawn; `setting` names the field to mark."""

    def __init__(self, setting: str, sentence: str) -> None:
        super().__init__(sentence)
        self.setting = setting
        self.sentence = sentence


class TranscriptError(CompactionError):
    """A transcript, or a file beside it, cannot be used as asked."""


class AgentMetaUnreadable(TranscriptError):
    """A sub-agent's meta file is not the JSON object it should be."""

    def __init__(self) -> None:
        super().__init__("The sub-agent's meta file is not a JSON object, so its parent request is not known.")


class LineNotKept(TranscriptError):
    """A line was too long to keep, so the transcript cannot be written back as it was."""

    def __init__(self, line_number: int, size_bytes: int) -> None:
        super().__init__(
            f"Line {line_number} has {size_bytes:,} bytes and was not kept; the transcript cannot be written back."
        )
        self.line_number = line_number
        self.size_bytes = size_bytes


class RunError(CompactionError):
    """A compaction ended without an outcome; `reason` is the code that goes into the log."""

    reason = "error"


class NothingToCompact(RunError):
    """The conversation is empty, or nothing was said since the last compaction."""

    reason = "nothing_to_compact"

    def __init__(
        self, sentence: str = "There are no new messages since the last compaction, so there is nothing to compact."
    ) -> None:
        super().__init__(sentence)


class PivotNotFound(RunError):
    """The message chosen as the point to compact from or up to is not in what the model sees."""

    reason = "pivot_not_found"

    def __init__(self) -> None:
        super().__init__("The chosen message is not part of the conversation as the model sees it now.")


class BlockedByHook(RunError):
    """A PreCompact hook said no."""

    reason = "blocked_by_hook"

    def __init__(self, why: str | None = None) -> None:
        said = why.strip().rstrip(".") if why else ""
        super().__init__(
            f"A PreCompact hook blocked the compaction: {said}."
            if said
            else "A PreCompact hook blocked the compaction."
        )


class CompactionCancelled(RunError):
    """Somebody stopped the run. Does not count as a failure."""

    reason = "cancelled"

    def __init__(self) -> None:
        super().__init__("The compaction was cancelled; the conversation is as it was.")


class SummarizerUnavailable(RunError):
    """No answer was had from the summariser: connection, overload, an API error. `reason` says which, for the log."""

    reason = "api_error"

    def __init__(self, what: str, *, is_retryable: bool = True, reason: str = "api_error") -> None:
        super().__init__(f"The summary could not be made: {what.strip().rstrip('.')}.")
        self.is_retryable = is_retryable
        self.reason = reason


class PromptTooLong(RunError):
    """The request does not fit the model's window. Both figures are None where the provider does not say."""

    reason = "prompt_too_long"

    def __init__(self, prompt_tokens: int | None = None, maximum_tokens: int | None = None) -> None:
        figures = (
            f": {prompt_tokens:,} tokens, {maximum_tokens:,} are allowed"
            if prompt_tokens is not None and maximum_tokens is not None
            else ""
        )
        super().__init__(f"The request for a summary is too long for the model{figures}.")
        self.prompt_tokens = prompt_tokens
        self.maximum_tokens = maximum_tokens

    @property
    def gap_tokens(self) -> int | None:
        """By how much it is too long, where that is known."""
        if self.prompt_tokens is None or self.maximum_tokens is None:
            return None
        return max(1, self.prompt_tokens - self.maximum_tokens)


class ConversationTooLong(RunError):
    """Shrinking the range did not make the request fit."""

    reason = "prompt_too_long"

    def __init__(self) -> None:
        super().__init__(
            "The conversation is too long to be summarised, even in part. "
            "Go back a few messages, or compact up to an earlier message, and try again."
        )


class BadSummary(RunError):
    """An answer came, but it is not a summary that could be used."""

    reason = "no_summary"


class EmptySummary(BadSummary):
    """No text came back."""

    reason = "no_summary"

    def __init__(self) -> None:
        super().__init__("The summariser answered without any text, so there is no summary.")


class SummaryIsApiError(BadSummary):
    """The text is an API error, not a summary."""

    reason = "api_error"

    def __init__(self) -> None:
        super().__init__("The summariser answered with an API error instead of a summary.")


class SummaryCutShort(BadSummary):
    """The summary ran into the output limit or the window."""

    reason = "max_tokens"

    def __init__(self) -> None:
        super().__init__("The summary was cut off at the output limit, so it was not used.")


class SummaryRefused(BadSummary):
    """The model declined to answer."""

    reason = "refusal"

    def __init__(self) -> None:
        super().__init__("The model refused to summarise this conversation.")


class SummaryCalledTools(BadSummary):
    """The model asked for a tool instead of writing."""

    reason = "tool_use"

    def __init__(self) -> None:
        super().__init__("The model called a tool instead of writing the summary.")


class SummaryUnfinished(BadSummary):
    """The answer ended without saying why: a stream that broke off."""

    reason = "no_stop_reason"

    def __init__(self, stop_reason: str | None = None) -> None:
        ending = f'with "{stop_reason}"' if stop_reason else "without a stop reason"
        super().__init__(f"The answer ended {ending}, so the summary may be incomplete and was not used.")


class SummaryWithoutSections(BadSummary):
    """Text came back that has neither the tags nor one of the sections."""

    reason = "no_summary"

    def __init__(self) -> None:
        super().__init__("The answer has none of the sections a summary must have, so it was not used.")


class BadNotesTemplate(CompactionError):
    """A team's template for session notes cannot be filled in."""

    def __init__(self, why: str) -> None:
        super().__init__(f"The template for session notes cannot be used: {why}")


class NotesNotUsable(RunError):
    """Session notes cannot stand for the conversation; a full compaction still can."""

    reason = "notes_not_usable"


class NotesMissing(NotesNotUsable):
    """No notes were taken yet."""

    reason = "no_notes"

    def __init__(self) -> None:
        super().__init__("There are no session notes yet.")


class NotesEmpty(NotesNotUsable):
    """The notes are the template and nothing else."""

    reason = "empty_template"

    def __init__(self) -> None:
        super().__init__("The session notes are still the empty template.")


class NotesPositionLost(NotesNotUsable):
    """It is not known up to where the notes reach."""

    reason = "position_lost"

    def __init__(self) -> None:
        super().__init__("The last message the session notes cover is not part of the conversation any more.")


class NotesBeingWritten(NotesNotUsable):
    """An extraction is under way; waiting so many seconds may help."""

    reason = "extraction_under_way"

    def __init__(self, wait_seconds: float) -> None:
        super().__init__(f"The session notes are being written; they may be ready in {wait_seconds:.0f} seconds.")
        self.wait_seconds = wait_seconds


class NotesNotEnough(NotesNotUsable):
    """With the notes and what has to be kept, the context would be at or above the line again."""

    reason = "threshold_exceeded"

    def __init__(self, expected_tokens: int, line_tokens: int) -> None:
        super().__init__(
            f"Notes and kept messages take {expected_tokens:,} tokens, which reaches the line at {line_tokens:,} again."
        )
        self.expected_tokens = expected_tokens
        self.line_tokens = line_tokens


class AutomaticRunsPaused(RunError):
    """The breaker is open: automatic runs of this thread stop until one succeeds."""

    reason = "breaker_open"

    def __init__(self, failures: int) -> None:
        super().__init__(
            f"Automatic compaction of this thread is paused after {failures} failures in a row. "
            "A compaction by hand may be tried, and a success lets automatic ones run again."
        )
        self.failures = failures


class BodyUnreadable(CompactionError):
    """A raw request body is no whole JSON object; telemetry cuts long ones unless told to write files."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(
            f"The raw request of {size_bytes:,} bytes is not a whole JSON object. "
            "Telemetry cuts long bodies; have it write them to files to keep them whole."
        )
        self.size_bytes = size_bytes


class UnreasonedSection(CompactionError):
    """A section that changes every turn needs a reason in writing."""

    def __init__(self, name: str) -> None:
        super().__init__(f'The section "{name}" is computed again every turn, so it needs a written reason.')
        self.name = name


class SectionNameTaken(CompactionError):
    """Two sections cannot have one name: the second would answer with the first one's kept text."""

    def __init__(self, name: str) -> None:
        super().__init__(f'There is already a section "{name}".')
        self.name = name
