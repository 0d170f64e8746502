"""What the API's refusals mean: told apart by type first and status second, each with a code and a sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from compaction.compactors.summary.too_long import parse_prompt_too_long
from compaction.errors import PromptTooLong, RunError, SummarizerUnavailable

LONGEST_QUOTE = 200
_RETRYABLE_STATUSES = frozenset({408, 409, 429})
# Where a gateway answers without the API's own types, or with ones of its own.
_TYPES_BY_STATUS = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    408: "timeout_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_MEANINGS = {
    "authentication_error": ("authentication", "the API does not accept the key; an admin of the team can set another"),
    "billing_error": ("billing", "the account behind the key has no credit left"),
    "permission_error": ("permission", "the key may not be used for this"),
    "not_found_error": ("model_not_found", "the API has no model {model} for this key"),
    "rate_limit_error": ("rate_limited", "the key has used up what the API allows it for now"),
    "overloaded_error": ("overloaded", "the API is overloaded right now"),
    "timeout_error": ("timeout", "the API gave up before it had an answer"),
    "invalid_request_error": ("bad_request", "the API refused the request"),
}
# The API's own compaction tells more exactly what is wrong. The first passes; the others would be refused again.
_COMPACTION_UNAVAILABLE = "compaction_unavailable"
_COMPACTION_MEANINGS = {
    _COMPACTION_UNAVAILABLE: "the API cannot compact right now",
    "compaction_block_ambiguous": "the API cannot tell which of several compaction blocks counts",
    "compaction_block_misplaced": "a compaction block does not stand first in the conversation",
    "compaction_content_mismatch": "a compaction block was changed since the API made it",
    "compaction_incomplete_turn": "the conversation ends in the middle of a turn, with a tool call that has no result",
    "compaction_nothing_to_summarize": "the API finds nothing in the conversation to summarise",
    "compaction_signature_invalid": "the API does not accept the signature of a compaction block",
    "compaction_too_many_tool_references": "the conversation refers to more tools than the API compacts",
    "compaction_tool_changes_mismatch": "the tools of a compaction block are not those of the request",
}
# Words that are worth more than our own: what exactly may not be done, or is wrong.
_QUOTED = frozenset({"bad_request", "permission", "api_error"})


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """An error as the API told it. `status` is 200 for one that came in the middle of a stream."""

    status: int
    error_type: str
    message: str
    model: str
    size_bytes: int
    headers: Mapping[str, str]
    error_code: str = ""  # of `error.details`, where the API tells more than the type

    def name(self) -> RunError:
        """The named error for it; the sentence never holds what was sent."""
        if too_long := self._find_too_long():
            return too_long
        if told := _COMPACTION_MEANINGS.get(self.error_code):
            is_passing = self._is_retryable(self.error_code)
            return SummarizerUnavailable(told, is_retryable=is_passing, reason=self.error_code)
        known = self.error_type if self.error_type in _MEANINGS else _TYPES_BY_STATUS.get(self.status, "")
        code, words = _MEANINGS.get(known, ("api_error", f"the API failed ({self.status})"))
        what = words.format(model=self.model or "of that name")
        if code in _QUOTED and self.message:
            what += f": {_quote(self.message)}"
        return SummarizerUnavailable(what, is_retryable=self._is_retryable(code), reason=code)

    def _find_too_long(self) -> PromptTooLong | None:
        if self.error_type == "request_too_large" or self.status == 413:
            return RequestTooLarge(self.size_bytes)
        is_refused = self.status == 400 or self.error_type in ("invalid_request_error", "ValidationException")
        return parse_prompt_too_long(self.message) if is_refused else None

    def _is_retryable(self, code: str) -> bool:
        told = self.headers.get("x-should-retry")
        if told in ("true", "false"):
            return told == "true"
        is_passing = code in ("rate_limited", "overloaded", "timeout", _COMPACTION_UNAVAILABLE)
        # In the middle of a stream the status was 200: what is not the request's own fault may pass.
        return is_passing or self.status in _RETRYABLE_STATUSES or self.status >= 500 or self._is_midway(code)

    def _is_midway(self, code: str) -> bool:
        return self.status == 200 and code == "api_error"


class RequestTooLarge(PromptTooLong):
    """Too many bytes, whatever the tokens: a smaller range helps here as well."""

    reason = "too_large"

    def __init__(self, size_bytes: int) -> None:
        super().__init__()
        self.args = (f"The request for a summary has {size_bytes:,} bytes, which is more than the API accepts.",)


def read_wait_seconds(headers: Mapping[str, str], *, now: datetime) -> float | None:
    """How long the API asks to wait, in any of the ways it may say so; None where it does not."""
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            wait = float(headers.get(name, "")) * factor
        except ValueError:
            continue
        if 0 <= wait < float("inf"):
            return wait
    try:
        at = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, (at - now).total_seconds()) if at.tzinfo else None


def _quote(message: str) -> str:
    plain = " ".join("".join(sign if sign.isprintable() else " " for sign in message).split())
    return plain if len(plain) <= LONGEST_QUOTE else f"{plain[:LONGEST_QUOTE]}…"
