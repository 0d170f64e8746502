"""Builds a request for a summary that stands alone: what is stripped, which model, how many output tokens.

The request that reuses the parent's cached prefix is in fork_request. Both get their prompt and their second question
for missing sections from here. Nothing is sent.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import is_

from msgspec import structs

from compaction.compactors.summary.prompt import SYSTEM_TEXT, build_second_prompt
from compaction.context.margins import MAX_SUMMARY_TOKENS
from compaction.context.tokens import estimate_tokens
from compaction.errors import NothingToCompact
from compaction.ports import SummaryRequest, SummaryRoute, Variant
from compaction.transcripts.api_messages import list_content_blocks
from compaction.transcripts.client_protocol import SKILL_ATTACHMENTS
from compaction.transcripts.entries import (
    Block,
    DocumentBlock,
    Entry,
    ImageBlock,
    Message,
    ResultPart,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from compaction.transcripts.flatten import ApiMessage, flatten
from compaction.transcripts.payloads import Attachment

IMAGE_TEXT = "[image]"  # protocol constants: the texts that replace an image and a document
DOCUMENT_TEXT = "[document]"
_TOOL_TEXT = "Used earlier in the conversation; not available for this answer."


@dataclass(frozen=True, slots=True)
class SummaryModels:
    """Models for a plain summary: the small one where its window holds the input, else the session's own."""

    session: str | None = None
    small: str | None = None
    small_window_tokens: int = 0
    session_window_tokens: int = 0

    def choose(self, input_tokens: int) -> str | None:
        """Return the model for an input of this size; None leaves the choice to the summariser."""
        if self.small is not None and input_tokens + MAX_SUMMARY_TOKENS <= self.small_window_tokens:
            return self.small
        return self.session or self.small

    def widen(self, refused_model: str | None) -> "SummaryModels | None":
        """Return the models without the small one if it refused an input that the session's window may hold."""
        is_wider = self.session_window_tokens > self.small_window_tokens
        is_small = refused_model is not None and refused_model == self.small
        return replace(self, small=None) if is_wider and is_small else None


def build_plain_request(variant: Variant, sent: Sequence[Entry], prompt: str, models: SummaryModels) -> SummaryRequest:
    """Return a streamed request without images, documents, thinking and skill listings, with a capped output."""
    stripped = tuple(strip_entries(sent))
    messages = flatten(stripped)
    if not messages:
        raise NothingToCompact("The conversation contains nothing that can be summarised.")
    body: dict[str, object] = {
        "max_tokens": MAX_SUMMARY_TOKENS,
        "system": [{"type": "text", "text": SYSTEM_TEXT}],
        "messages": add_prompt([message.to_api() for message in messages], prompt),
        "stream": True,
    }
    model = models.choose(estimate_tokens(stripped))
    if model is not None:
        body["model"] = model
    tools = build_tool_definitions(messages)
    if tools:
        body |= {"tools": tools, "tool_choice": {"type": "none"}}
    return SummaryRequest(variant=variant, route=SummaryRoute.PLAIN, entries=tuple(sent), prompt=prompt, body=body)


def build_tool_definitions(messages: Sequence[ApiMessage]) -> list[dict[str, object]]:
    """Return a definition for each tool in the messages: the API requires one wherever requests and results appear."""
    names = {block.name for message in messages for block in message.content if isinstance(block, ToolUseBlock)}
    return [{"name": name, "description": _TOOL_TEXT, "input_schema": {"type": "object"}} for name in sorted(names)]


def build_second_request(request: SummaryRequest, answer_text: str, missing: tuple[str, ...]) -> SummaryRequest:
    """Return the same request followed by its answer and the question for the sections missing in the answer."""
    prompt = build_second_prompt(missing, request.variant)
    messages = request.body.get("messages")
    body = {
        **request.body,
        "messages": [
            *(messages if isinstance(messages, Sequence) else ()),
            {"role": "assistant", "content": [{"type": "text", "text": answer_text.rstrip()}]},
            {"role": "user", "content": [{"type": "text", "text": prompt}]},
        ],
    }
    return replace(request, prompt=prompt, body=body, missing_sections=missing)


def add_prompt(messages: Sequence[Mapping[str, object]], prompt: str) -> list[Mapping[str, object]]:
    """Return the messages with the prompt at the end: in the last message if it is the user's, else in a new one."""
    block = {"type": "text", "text": prompt}
    if not messages or messages[-1].get("role") != "user":
        return [*messages, {"role": "user", "content": [block]}]
    return [*messages[:-1], {**messages[-1], "content": [*list_content_blocks(messages[-1]), block]}]


def remove_prompt(messages: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Return the messages as they were before `add_prompt`."""
    *before, last = messages
    blocks = list_content_blocks(last)[:-1]
    return [*before, {**last, "content": blocks}] if blocks else before


def strip_entries(entries: Iterable[Entry]) -> Iterator[Entry]:
    """List the entries without skill listings and thinking; marks replace images and documents."""
    for entry in entries:
        if isinstance(entry.payload, Attachment) and entry.payload.kind in SKILL_ATTACHMENTS:
            continue
        message = entry.message
        yield entry if message is None else _strip_message(entry, message)


def _strip_message(entry: Entry, message: Message) -> Entry:
    # Another model cannot check the signature of this one's thinking, and would refuse the request.
    blocks = tuple(_strip_block(block) for block in message.content if not isinstance(block, ThinkingBlock))
    if len(blocks) == len(message.content) and all(map(is_, blocks, message.content)):
        return entry
    return entry.changed(message=structs.replace(message, content=blocks))


def _strip_block(block: Block) -> Block:
    if isinstance(block, ImageBlock | DocumentBlock):
        return _strip_part(block)
    if isinstance(block, ToolResultBlock) and any(isinstance(part, ImageBlock | DocumentBlock) for part in block.parts):
        return structs.replace(block, parts=tuple(_strip_part(part) for part in block.parts))
    return block


def _strip_part(part: ResultPart) -> ResultPart:
    if isinstance(part, ImageBlock):
        return TextBlock(IMAGE_TEXT)
    return TextBlock(DOCUMENT_TEXT) if isinstance(part, DocumentBlock) else part
