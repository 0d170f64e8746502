"""Requests for a summary of their own (plain), and the second ask of either kind. Nothing is sent here."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from compaction.compactors.summary.prompt import SYSTEM_TEXT, write_second_ask
from compaction.compactors.summary.request_messages import add_prompt
from compaction.compactors.summary.stripping import strip_entries
from compaction.compactors.summary.too_long import SUMMARY_TOKENS
from compaction.context.tokens import estimate_tokens
from compaction.errors import NothingToCompact
from compaction.ports import SummaryRequest, SummaryRoute, Variant
from compaction.transcripts.entries import Entry, ToolUseBlock
from compaction.transcripts.flatten import ApiMessage, flatten

_TOOL_TEXT = "Used earlier in the conversation; not available for this answer."


@dataclass(frozen=True, slots=True)
class SummaryModels:
    """Which model writes a plain summary: the small one where its window holds the input, else the session's own."""

    session: str | None = None
    small: str | None = None
    small_window_tokens: int = 0
    session_window_tokens: int = 0

    def choose(self, input_tokens: int) -> str | None:
        """The model for an input of this size; None where none is known and the summariser decides."""
        if self.small is not None and input_tokens + SUMMARY_TOKENS <= self.small_window_tokens:
            return self.small
        return self.session or self.small

    def grow(self, refused: str | None) -> "SummaryModels | None":
        """The same choice without the small model, once that refused an input that the session's might hold."""
        is_wider = self.session_window_tokens > self.small_window_tokens
        return replace(self, small=None) if is_wider and refused is not None and refused == self.small else None


def prepare_plain(variant: Variant, sent: Sequence[Entry], prompt: str, models: SummaryModels) -> SummaryRequest:
    """A request of its own: images, documents, thinking and skill listings stripped, output capped, streamed."""
    stripped = tuple(strip_entries(sent))
    messages = flatten(stripped)
    if not messages:
        raise NothingToCompact("The conversation holds nothing that could be summarised.")
    body: dict[str, object] = {
        "max_tokens": SUMMARY_TOKENS,
        "system": [{"type": "text", "text": SYSTEM_TEXT}],
        "messages": add_prompt([message.to_api() for message in messages], prompt),
        "stream": True,
    }
    model = models.choose(estimate_tokens(stripped))
    if model is not None:
        body["model"] = model
    tools = name_tools(messages)
    if tools:
        body |= {"tools": tools, "tool_choice": {"type": "none"}}
    return SummaryRequest(variant=variant, path=SummaryRoute.PLAIN, entries=tuple(sent), prompt=prompt, body=body)


def name_tools(messages: Sequence[ApiMessage]) -> list[dict[str, object]]:
    """The tools that the messages mention: the API wants them defined wherever requests and results appear."""
    names = {block.name for message in messages for block in message.content if isinstance(block, ToolUseBlock)}
    return [{"name": name, "description": _TOOL_TEXT, "input_schema": {"type": "object"}} for name in sorted(names)]


def prepare_second_ask(request: SummaryRequest, answer_text: str, missing: tuple[str, ...]) -> SummaryRequest:
    """The same request, the answer to it, and the question for what the answer left out."""
    ask = write_second_ask(missing, request.variant)
    messages = request.body.get("messages")
    body = {
        **request.body,
        "messages": [
            *(messages if isinstance(messages, Sequence) else ()),
            {"role": "assistant", "content": [{"type": "text", "text": answer_text.rstrip()}]},
            {"role": "user", "content": [{"type": "text", "text": ask}]},
        ],
    }
    return SummaryRequest(
        variant=request.variant,
        path=request.path,
        entries=request.entries,
        prompt=ask,
        body=body,
        missing_sections=missing,
        instructions=request.instructions,
    )
