"""The summary message as the model reads it: header, summary, path of the full transcript, how to continue."""

from compaction.compactors.outcome import Summary, Trigger
from compaction.transcripts.entries import Entry, Message, TextBlock

_OPENING = (
    "This conversation goes on from an earlier one that filled its context window. What came before is told below."
)
_FROM_OPENING = "Here a part of the conversation was taken out to make room. What happened in it is told below."
_LABEL = "Summary:"
_TRANSCRIPT = "Should exact code, error messages or earlier wording be needed, the full transcript is at: {path}"
_LEFT_OUT = "The {count} oldest messages did not fit and are not part of this summary."
_KEPT = "The newest messages follow below as they were."
_RESUME = (
    "Take the work up where it stopped, at once and without asking the user anything. Do not acknowledge this summary, "
    "do not recap it and do not announce that you are continuing: go on with the last task as though nothing had "
    "come between."
)
_AUTONOMOUS = (
    "You are working on your own, and this is not the start of your work: nobody is waiting to give you a task. "
    "Stay in your work loop and go on from the last step. Do not greet anyone and do not ask what to do."
)


def build_summary_text(
    summary: Summary,
    trigger: Trigger,
    *,
    transcript_path: str | None = None,
    has_kept_before: bool = False,
    has_kept_after: bool = False,
    left_out_messages: int = 0,
) -> str:
    """Return the text of the message. After a manual compaction the user writes next, so it omits how to continue."""
    label = f"{_LABEL} ({summary.label})" if summary.label else _LABEL
    parts = [_FROM_OPENING if has_kept_before else _OPENING, f"{label}\n{summary.text}"]
    if left_out_messages:
        parts.append(_LEFT_OUT.format(count=left_out_messages))
    if transcript_path:
        parts.append(_TRANSCRIPT.format(path=transcript_path))
    if has_kept_after:
        parts.append(_KEPT)
    if trigger is not Trigger.MANUAL:
        parts.append(_RESUME)
    if trigger is Trigger.AUTONOMOUS:
        parts.append(_AUTONOMOUS)
    return "\n\n".join(parts)


def build_summary_entry(text: str) -> Entry:
    """Return the transcript line of the summary, without uuid and parent."""
    message = Message("user", (TextBlock(text),), is_plain=True)
    return Entry("user", is_compact_summary=True, message=message, fields={"isVisibleInTranscriptOnly": True})
