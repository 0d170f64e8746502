"""A streamed answer put together event by event: text, stop reason, ids, and the usage as far as it was told."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from compaction.transcripts.entries import Usage
from compaction.transcripts.flatten import COMPACTION_TYPE
from compaction.transcripts.json_fields import get_fields, get_text
from compaction.transcripts.output_estimate import compute_output_tokens, estimate_output
from compaction.transcripts.usage import read_usage

LARGEST_ANSWER_CHARACTERS = 1_000_000  # ten times the output cap of a summary; more is no summary


class StreamError(Exception):
    """An `error` event in the middle of an answer: its status line said 200 long ago."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.message = message


class AnswerTooLarge(Exception):
    """More text than any summary has."""


@dataclass(slots=True)
class AnswerStream:
    """What came so far. `last_sign_at` is the monotonic time of the last event, pings included."""

    text_parts: list[str] = field(default_factory=list)
    message_id: str = ""
    request_id: str = ""
    model: str = ""
    stop_reason: str | None = None
    compaction_block: dict[str, object] | None = None  # every field as it came: it goes back signed
    last_sign_at: float = field(default_factory=time.monotonic)
    _characters: int = 0
    _usage: dict[str, object] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return "".join(self.text_parts)

    @property
    def usage(self) -> Usage:
        """As reported. A stream that broke off told its output at the start: then what was written counts."""
        told = read_usage(self._usage)
        return told.changed(output_tokens=compute_output_tokens(told, self.stop_reason, self._characters))

    @property
    def written_tokens(self) -> int:
        """An estimate while the answer is being written."""
        return estimate_output(self._characters)

    def note_sign_of_life(self) -> None:
        self.last_sign_at = time.monotonic()

    def take(self, event: Mapping[str, object]) -> None:
        """One event of the stream; kinds that are not known are passed over. Raises StreamError and AnswerTooLarge."""
        match event.get("type"):
            case "message_start":
                self._open(get_fields(event, "message"))
            case "content_block_start":
                self._start_block(get_fields(event, "content_block"))
            case "content_block_delta":
                self._add(get_fields(event, "delta"))
            case "message_delta":
                self.stop_reason = get_text(get_fields(event, "delta"), "stop_reason") or self.stop_reason
                self._take_usage(get_fields(event, "usage"))
            case "error":
                error = get_fields(event, "error")
                raise StreamError(get_text(error, "type") or "api_error", get_text(error, "message") or "")

    def _open(self, message: Mapping[str, object]) -> None:
        self.message_id = get_text(message, "id") or ""
        self.model = get_text(message, "model") or ""
        self._take_usage(get_fields(message, "usage"))

    def _start_block(self, block: Mapping[str, object]) -> None:
        if block.get("type") == COMPACTION_TYPE:
            self.compaction_block = dict(block)

    def _add(self, delta: Mapping[str, object]) -> None:
        text = get_text(delta, "text") if delta.get("type") == "text_delta" else None
        if delta.get("type") == "compaction_delta":
            self._complete_block(delta)
        self._characters += len(text or get_text(delta, "thinking") or get_text(delta, "content") or "")
        if self._characters > LARGEST_ANSWER_CHARACTERS:
            raise AnswerTooLarge
        if text:
            self.text_parts.append(text)

    def _complete_block(self, delta: Mapping[str, object]) -> None:
        told = {name: value for name, value in delta.items() if name != "type" and value is not None}
        self.compaction_block = {"type": COMPACTION_TYPE, **(self.compaction_block or {}), **told}

    def _take_usage(self, usage: Mapping[str, object]) -> None:
        """Later figures stand for earlier ones; what the end leaves out, the start has said."""
        self._usage |= {name: value for name, value in usage.items() if value is not None}
