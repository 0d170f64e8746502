"""A prompt before it is sent: cache breakpoints and prefix linted, a request laid out, context put in front of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compaction.context.cache_ttl import CacheTtl
from compaction.context.reminder import (
    ContextSection,
    InstructionFile,
    build_context_reminder,
    build_instruction_section,
)
from compaction.errors import CompactionError
from compaction.llm.lookup import get_least_cached_tokens
from compaction.prompt.layout import SystemBlock, write_system
from compaction.prompt.linter import LintFinding, lint_request
from compaction.prompt.markers import CacheScope, Layout, mark_messages, mark_tools
from compaction.prompt.request import Fields, read_request
from compaction.transcripts.flatten import flatten
from compaction.transcripts.reader import load_json


class BadPrompt(CompactionError):
    """What was pasted is no request; the message is for people."""


@dataclass(frozen=True)
class Lint:
    """What was found, and what was looked at: a person sees whether the right thing was pasted."""

    findings: tuple[LintFinding, ...]
    model: str | None
    tool_count: int
    system_count: int
    message_count: int
    breakpoint_count: int
    least_tokens: int | None  # what the model caches at least; None where it is not on record


def lint_prompt(body: Fields, earlier: Sequence[Fields] = (), *, betas: Sequence[str] = ()) -> Lint:
    """One request of the Messages API; `earlier` ones of the conversation show whether the tools keep their order."""
    request = read_request(body, betas=betas)
    return Lint(
        findings=lint_request(request, [read_request(each) for each in earlier]),
        model=request.model,
        tool_count=len(request.tools),
        system_count=len(request.system) + request.has_billing_line,
        message_count=len(request.messages),
        breakpoint_count=len(request.markers),
        least_tokens=get_least_cached_tokens(request.model),
    )


def read_pasted(text: str) -> Fields:
    """The request in what somebody pasted: a body, or a log line that holds one as `body`, `request` or `params`."""
    try:
        value = load_json(text.encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise BadPrompt("Invalid JSON. Paste the body of a request to /v1/messages.") from error
    for name in ("body", "request", "params"):
        if isinstance(value, Mapping) and "messages" not in value and isinstance(value.get(name), Mapping):
            value = value[name]
    if not isinstance(value, Mapping) or not isinstance(value.get("messages"), list):
        raise BadPrompt("No request found in this JSON: expected an object with a list of messages.")
    return value


def lay_out(
    *,
    system: Sequence[str],
    tools: Sequence[Fields],
    messages: Sequence[Fields],
    ttl: CacheTtl,
    layout: Layout = Layout.OBSERVED,
) -> dict[str, list[dict[str, object]]]:
    """The three parts of a request with cache breakpoints where the layout puts them; earlier ones are removed."""
    return {
        "system": write_system(_split_system([text for text in system if text]), ttl),
        "tools": mark_tools(tools, ttl, layout),
        "messages": mark_messages(messages, ttl),
    }


def _split_system(texts: Sequence[str]) -> list[SystemBlock]:
    """The last text apart from the others: two cache breakpoints at most, so that tools and messages keep theirs."""
    halves = ["\n\n".join(texts[:-1]), *texts[-1:]]
    return [SystemBlock(text, CacheScope.ORG) for text in halves if text]


def write_reminder(
    instruction_files: Sequence[tuple[str, str]], sections: Sequence[tuple[str, str]]
) -> dict[str, object] | None:
    """One user message to stand in front of a conversation; None when there is nothing to say."""
    instructions = build_instruction_section(InstructionFile(path, content) for path, content in instruction_files)
    told = [ContextSection(title, content) for title, content in sections]
    entry = build_context_reminder([instructions, *told] if instructions else told)
    return None if entry is None else flatten([entry])[0].to_api()
