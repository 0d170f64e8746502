"""What the fake Messages API can be told to answer: whole, broken off, refused, in every provider's words."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Ending(StrEnum):
    """How a stream ends."""

    WHOLE = "whole"
    CUT = "cut"  # the connection breaks
    CLEAN = "clean"  # the body ends in order, but without message_delta and message_stop
    STALL = "stall"  # no byte comes any more, the connection stays open
    SILENT = "silent"  # not even a status line comes
    ERROR = "error"  # an `error` event


@dataclass(frozen=True)
class Reply:
    """One answer. `text` None: a good summary made of the request, without the sections in `leaves_out`."""

    status: int = 200
    error_type: str = ""
    message: str = ""
    error_code: str = ""  # in the details of the error
    headers: Mapping[str, str] = field(default_factory=dict)
    text: str | None = None
    leaves_out: tuple[str, ...] = ()
    stop_reason: str | None = "end_turn"
    calls_tool: bool = False
    ending: Ending = Ending.WHOLE
    pieces: int = 8  # how many deltas the text comes in
    break_after: int = 3  # how many of them come before any other ending than WHOLE
    pause_seconds: float = 0.0  # before each delta
    pings: int = 0  # in each pause

    def write_error(self, request_id: str) -> bytes:
        """The body of a refusal."""
        error: dict[str, object] = {"type": self.error_type, "message": self.message}
        if self.error_code:
            error["details"] = {"error_code": self.error_code}
        return json.dumps({"type": "error", "error": error, "request_id": request_id}).encode()


GOOD = Reply()


def refuse(
    status: int, error_type: str, message: str, *, retry_after: str | None = None, error_code: str = ""
) -> Reply:
    """An HTTP error in the API's form."""
    headers = {} if retry_after is None else {"retry-after": retry_after}
    return Reply(status=status, error_type=error_type, message=message, error_code=error_code, headers=headers)


WRONG_KEY = refuse(401, "authentication_error", "invalid x-api-key")
NO_CREDIT = refuse(402, "billing_error", "Your credit balance is too low to access the Anthropic API.")
NOT_ALLOWED = refuse(403, "permission_error", "Your API key does not have permission to use the specified resource.")
NO_SUCH_MODEL = refuse(404, "not_found_error", "model: claude-nothing-1")
TOO_LARGE = refuse(413, "request_too_large", "Request exceeds the maximum size")
BAD_REQUEST = refuse(400, "invalid_request_error", "tools.0.name: Field required")
RATE_LIMITED = refuse(429, "rate_limit_error", "This request would exceed your organization's rate limit.")
BROKEN = refuse(500, "api_error", "Internal server error")
TIMED_OUT = refuse(504, "timeout_error", "The request timed out.")
OVERLOADED = refuse(529, "overloaded_error", "Overloaded")

# Status and message of a prompt that does not fit, by who says it.
TOO_LONG: Mapping[str, Reply] = {
    "first party": refuse(400, "invalid_request_error", "prompt is too long: 200251 tokens > 200000 maximum"),
    "first party, without figures": refuse(400, "invalid_request_error", "Prompt is too long"),
    "older models": refuse(
        400,
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 190251 + 20000 > 200000, decrease input length or "
        "`max_tokens` and try again",
    ),
    "bedrock": refuse(
        400,
        "ValidationException",
        "The model returned the following errors: prompt is too long: 200049 tokens > 200000 maximum",
    ),
    "bedrock, without figures": refuse(400, "ValidationException", "Input is too long for requested model."),
    "apps gateway": refuse(400, "invalid_request_error", "capability_rejected: prompt_too_long"),
}

STALLED = Reply(ending=Ending.STALL)
SILENT = Reply(ending=Ending.SILENT)
CUT = Reply(ending=Ending.CUT)
ENDED_EARLY = Reply(ending=Ending.CLEAN)
OVERLOADED_MIDWAY = Reply(ending=Ending.ERROR, error_type="overloaded_error", message="Overloaded")
REFUSED = Reply(stop_reason="refusal", text="I cannot help with that.")
CUT_AT_LIMIT = Reply(stop_reason="max_tokens")
WINDOW_FULL = Reply(stop_reason="model_context_window_exceeded")
TOOL_CALL = Reply(stop_reason="tool_use", calls_tool=True, text="Let me look at that first.")
EMPTY = Reply(text="")
NO_SECTIONS = Reply(text="All is well, carry on.")
NOT_COMPACTED = Reply(text="Here is what I would do next.")  # a native wish answered like any request
NULL_BLOCK = Reply(text="")  # the model called a tool instead of summarising
COMPACTION_UNAVAILABLE = refuse(529, "overloaded_error", "Compaction failed", error_code="compaction_unavailable")


def drip(*, pause_seconds: float, pings: int = 1, pieces: int = 8) -> Reply:
    """A good summary that comes slowly, with pings in between."""
    return Reply(pause_seconds=pause_seconds, pings=pings, pieces=pieces)


_SECTION = re.compile(r"^(\d)\. ([A-Z][A-Za-z ]+?)(?::.*)?$", re.MULTILINE)


def write_summary(body: Mapping[str, object], leaves_out: tuple[str, ...] = ()) -> str:
    """The sections that the prompt asks for, with the words of the user and the files of the conversation."""
    said = list_texts(body)
    prompt = said[-1] if said else ""
    wanted = dict.fromkeys((number, name) for number, name in _SECTION.findall(prompt))
    files = dict.fromkeys(re.findall(r"(?:/[\w.-]+){2,}", json.dumps(body.get("messages"))))
    written = []
    for number, name in wanted:
        if name in leaves_out:
            continue
        lines = {"All User Messages": said[:-1], "Files and Code Sections": list(files)}.get(name, [])
        told = "".join(f"\n   - {line}" for line in lines[:200]) or f"\n   What is known about {name.lower()}."
        written.append(f"{number}. {name}:{told}")
    return "<analysis>\nOldest to newest.\n</analysis>\n\n<summary>\n" + "\n\n".join(written) + "\n</summary>"


def list_texts(body: Mapping[str, object]) -> list[str]:
    """What the user said, text by text."""
    messages = body.get("messages")
    texts: list[str] = []
    for message in messages if isinstance(messages, list) else []:
        if message.get("role") != "user":
            continue
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts += [str(block["text"]) for block in blocks if block.get("type") == "text"]
    return texts
