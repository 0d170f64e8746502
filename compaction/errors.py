"""Named errors of the library. Each message is a sentence that can be shown to a user unchanged."""


class CompactionError(Exception):
    """Base of all errors of this library."""


class BadPolicy(CompactionError):
    """A team's values are invalid; `setting` names the field to mark."""

    def __init__(self, setting: str, sentence: str) -> None:
        super().__init__(sentence)
        self.setting = setting
        self.sentence = sentence


class TranscriptError(CompactionError):
    """A transcript, or a file beside it, cannot be used."""


class AgentMetaUnreadable(TranscriptError):
    """A sub-agent's meta file is not a JSON object."""

    def __init__(self) -> None:
        super().__init__("The sub-agent's meta file is not a JSON object, so its parent request is unknown.")


class LineNotKept(TranscriptError):
    """A line was too long to store, so the transcript cannot be written back unchanged."""

    def __init__(self, line_number: int, size_bytes: int) -> None:
        super().__init__(
            f"Line {line_number} has {size_bytes:,} bytes and was not kept; the transcript cannot be written back."
        )
        self.line_number = line_number
        self.size_bytes = size_bytes


class RunError(CompactionError):
    """A compaction ended without an outcome; `reason` is the code for the log."""

    reason = "error"


class NothingToCompact(RunError):
    """The conversation is empty, or has no new messages since the last compaction."""

    reason = "nothing_to_compact"

    def __init__(
        self, sentence: str = "There are no new messages since the last compaction, so there is nothing to compact."
    ) -> None:
        super().__init__(sentence)


class PivotNotFound(RunError):
    """The message chosen as the pivot of a partial compaction is not in the context."""

    reason = "pivot_not_found"

    def __init__(self) -> None:
        super().__init__("The chosen message is no longer part of the model's context. Choose another message.")


class BlockedByHook(RunError):
    """A PreCompact hook blocked the compaction."""

    reason = "blocked_by_hook"

    def __init__(self, block_reason: str | None = None) -> None:
        detail = block_reason.strip().rstrip(".") if block_reason else ""
        super().__init__(f"A PreCompact hook blocked the compaction{f': {detail}' if detail else ''}.")


class CompactionCancelled(RunError):
    """A run was cancelled, which does not count as a failure."""

    reason = "cancelled"

    def __init__(self) -> None:
        super().__init__("The compaction was cancelled. The conversation is unchanged.")


class SummarizerUnavailable(RunError):
    """The summariser did not answer: connection, overload, API error. `reason` is the code of which."""

    reason = "api_error"

    def __init__(self, detail: str, *, is_retryable: bool = True, reason: str = "api_error") -> None:
        super().__init__(f"The summary could not be made: {detail.strip().rstrip('.')}.")
        self.is_retryable = is_retryable
        self.reason = reason


class PromptTooLong(RunError):
    """The request does not fit the model's window. Both figures are None if the provider does not report them."""

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
        """Tokens over the limit, if known."""
        if self.prompt_tokens is None or self.maximum_tokens is None:
            return None
        return max(1, self.prompt_tokens - self.maximum_tokens)


class ConversationTooLong(RunError):
    """The request still does not fit after its range was shrunk."""

    reason = "prompt_too_long"

    def __init__(self) -> None:
        super().__init__(
            "The conversation is too long to be summarised, even in part, and is unchanged. "
            "Go back a few messages, or compact up to an earlier message, and try again."
        )


class BadSummary(RunError):
    """The summariser answered, but not with a usable summary."""

    reason = "no_summary"


class EmptySummary(BadSummary):
    """The answer has no text."""

    reason = "no_summary"

    def __init__(self) -> None:
        super().__init__("The summariser returned no text, so there is no summary.")


class SummaryIsApiError(BadSummary):
    """The text of the answer is an API error."""

    reason = "api_error"

    def __init__(self) -> None:
        super().__init__("The summariser returned an API error instead of a summary.")


class SummaryCutShort(BadSummary):
    """The summary reached the output limit or the window."""

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
    """The answer ended with an unknown stop reason or without one, as when a stream breaks off."""

    reason = "no_stop_reason"

    def __init__(self, stop_reason: str | None = None) -> None:
        ending = f'with "{stop_reason}"' if stop_reason else "without a stop reason"
        super().__init__(f"The answer ended {ending}, so the summary may be incomplete and was not used.")


class SummaryWithoutSections(BadSummary):
    """The text of the answer has neither the tags nor any of the sections."""

    reason = "no_summary"

    def __init__(self) -> None:
        super().__init__("The answer has none of the sections a summary must have, so it was not used.")


class BadNotesTemplate(CompactionError):
    """A team's template for session notes is invalid."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"The template for session notes cannot be used: {detail}")


class NotesNotUsable(RunError):
    """Session notes cannot replace the conversation. A full compaction is still possible."""

    reason = "notes_not_usable"


class NotesMissing(NotesNotUsable):
    """The session has no notes yet."""

    reason = "no_notes"

    def __init__(self) -> None:
        super().__init__("There are no session notes yet.")


class NotesEmpty(NotesNotUsable):
    """The notes are still the empty template."""

    reason = "empty_template"

    def __init__(self) -> None:
        super().__init__("The session notes are still the empty template.")


class NotesPositionLost(NotesNotUsable):
    """The last message covered by the notes is no longer in the conversation."""

    reason = "position_lost"

    def __init__(self) -> None:
        super().__init__("The last message that the session notes cover is no longer part of the conversation.")


class NotesBeingWritten(NotesNotUsable):
    """An extraction is running; the notes may be ready after `wait_seconds`."""

    reason = "extraction_under_way"

    def __init__(self, wait_seconds: float) -> None:
        super().__init__(f"The session notes are being written. They may be ready in {wait_seconds:.0f} seconds.")
        self.wait_seconds = wait_seconds


class NotesNotEnough(NotesNotUsable):
    """With the notes and the kept messages, the context would reach the auto-compact threshold again."""

    reason = "threshold_exceeded"

    def __init__(self, expected_tokens: int, threshold_tokens: int) -> None:
        super().__init__(
            f"Notes and kept messages take ~{expected_tokens:,} tokens, which reaches the auto-compact threshold of "
            f"{threshold_tokens:,} tokens again."
        )
        self.expected_tokens = expected_tokens
        self.threshold_tokens = threshold_tokens


class AutomaticRunsPaused(RunError):
    """The breaker is open: automatic runs of the thread are paused until a run succeeds."""

    reason = "breaker_open"

    def __init__(self, failures: int) -> None:
        super().__init__(
            f"Automatic compaction of this thread is paused after {failures} failures in a row. "
            "Start a compaction manually; if it succeeds, automatic compaction resumes."
        )
        self.failures = failures


class BodyUnreadable(CompactionError):
    """A raw request body is not a whole JSON object: telemetry truncates long ones unless it writes them to files."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(
            f"The raw request of {size_bytes:,} bytes is not a whole JSON object. Telemetry truncates long bodies. "
            "Configure it to write them to files, which keeps them whole."
        )
        self.size_bytes = size_bytes


class UnreasonedSection(CompactionError):
    """A section that is computed again every turn has no reason."""

    def __init__(self, name: str) -> None:
        super().__init__(f'The section "{name}" is computed again every turn, so it needs a written reason.')
        self.name = name


class SectionNameTaken(CompactionError):
    """Two sections have the same name: the second would return the cached text of the first."""

    def __init__(self, name: str) -> None:
        super().__init__(f'There is already a section "{name}".')
        self.name = name
