"""The API's own compaction in both of its forms: what is sent for it, and what is in the way of it.

Two betas, known from the SDK and its documentation; nothing here was tried against the real API (docs/native.md).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from compaction.compactors.summary.plain_request import remove_prompt
from compaction.llm.lookup import get_model_row
from compaction.llm.names import read_model_name
from compaction.ports import SummaryRequest
from dashboard.models import NativeForm, RunKind

# Protocol constants: the betas, the edit of the threshold form, and the lowest threshold it takes.
BETAS = {NativeForm.ON_DEMAND: "compact-2026-09-04", NativeForm.THRESHOLD: "compact-2026-01-12"}
THRESHOLD_EDIT = "compact_20260112"
LEAST_TRIGGER_TOKENS = 50_000
# The threshold form is an ordinary request, and those end with the user.
_LAST_WORD = "[Nothing was said after this.]"


@dataclass(frozen=True, kw_only=True)
class NativeTerms:
    """`has_instructions`: a person gave some. They replace the server's own prompt, so ours goes with them."""

    form: NativeForm
    has_instructions: bool = False

    @property
    def headers(self) -> dict[str, str]:
        return {"anthropic-beta": BETAS[self.form]}

    def shape_body(self, request: SummaryRequest) -> dict[str, object]:
        """The conversation without our prompt and our system text, and the wish to have it compacted."""
        messages = request.body.get("messages")
        told = remove_prompt(messages) if isinstance(messages, list) else []
        body = {name: value for name, value in request.body.items() if name != "system"} | {"messages": told}
        asked: dict[str, object] = {"instructions": request.prompt} if self.has_instructions else {}
        if self.form is NativeForm.ON_DEMAND:
            return body | {"compaction": {"type": "summarize", **asked}}
        trigger = {"type": "input_tokens", "value": LEAST_TRIGGER_TOKENS}
        edit = {"type": THRESHOLD_EDIT, "trigger": trigger, "pause_after_compaction": True, **asked}
        return body | {"messages": _end_with_user(told), "context_management": {"edits": [edit]}}


def _end_with_user(messages: list[Mapping[str, object]]) -> list[Mapping[str, object]]:
    if messages and messages[-1].get("role") == "user":
        return messages
    return [*messages, {"role": "user", "content": [{"type": "text", "text": _LAST_WORD}]}]


def find_obstacles(form: NativeForm, kind: RunKind, *, model: str, sent_tokens: int) -> Iterator[tuple[str, str]]:
    """What would be refused, each with a code and a sentence."""
    if form is NativeForm.OFF:
        yield "native_off", "This team has not switched the API's own compaction on. An admin can do so."
        return
    if kind is RunKind.FROM:
        yield (
            "native_kind",
            "The API's block stands first in a conversation, so nothing can stay before it: "
            "compact in full or up to a message.",
        )
    if model and not _can_compact(model):
        yield "native_model", f"The API does not compact conversations of {model} itself."
    if form is NativeForm.THRESHOLD and sent_tokens < LEAST_TRIGGER_TOKENS:
        yield (
            "native_too_small",
            f"The threshold form compacts from {LEAST_TRIGGER_TOKENS:,} tokens on; this conversation has about "
            f"{sent_tokens:,}.",
        )


def _can_compact(model: str) -> bool:
    found = get_model_row(read_model_name(model))
    return found is not None and found.has_api_compaction
