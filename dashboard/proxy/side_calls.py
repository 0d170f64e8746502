"""Calls that a client makes beside its conversation without saying so: probes, summaries, titles, a page summed up, a
search. No Django here."""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

from compaction.compactors.summary.prompt import TEXT_ONLY_TEXT
from compaction.prompt.request import BILLING_LINE
from compaction.transcripts.json_fields import get_count, get_items, get_text
from dashboard.proxy.threads import MOST_THREADS, ThreadName

# Run by the API itself. Tools with a type that the client runs (bash, text_editor, memory) are its own like any other.
SERVER_TOOLS = ("web_search", "web_fetch", "code_execution", "tool_search_tool", "mcp_toolset", "advisor")

STEP_FIELDS = ("thinking", "context_management")  # seen with 2.1.325, with every model and without thinking too

# How an instruction to sum up a conversation begins: of Claude Code 2.1.325, of older versions, and our own.
_SUMMARY_OPENING = re.compile(
    r"\s*(?:CRITICAL: Respond with TEXT ONLY\b"
    r"|Your task is to create a detailed summary of (?:the|this) (?:RECENT portion of the )?conversation\b"
    rf"|{re.escape(TEXT_ONLY_TEXT)})"
)


def is_probe(body: Mapping[str, object]) -> bool:
    return not get_items(body, "tools") and get_count(body, "max_tokens") == 1


def read_billing_line(body: Mapping[str, object]) -> str:
    """What Claude Code writes first into every system prompt; empty for other clients."""
    first = next(iter(get_items(body, "system")), None)
    text = get_text(first, "text") if isinstance(first, Mapping) else None
    return text if text is not None and text.startswith(BILLING_LINE) else ""


def list_own_tools(tools: Iterable[object]) -> list[str]:
    """The names of the tools that the client runs."""
    own = (tool for tool in tools if isinstance(tool, Mapping))
    return [get_text(tool, "name") or "" for tool in own if not (get_text(tool, "type") or "").startswith(SERVER_TOOLS)]


def asks_for_summary(role: str, blocks: Sequence[object]) -> bool:
    """Whether this last message of a request is a client's own compaction: an instruction behind all that was said,
    known by how it begins. Anybody may want both tags back, and any tool result may hold them."""
    spoken = [block for block in blocks if isinstance(block, Mapping) and block.get("type") == "text"]
    last = (get_text(spoken[-1], "text") or "") if spoken and role == "user" else ""
    return "<analysis>" in last and "<summary>" in last and _SUMMARY_OPENING.match(last) is not None


class ToolUsers:
    """The threads that were seen with tools of their own. What such a thread asks without them is no step of its
    conversation; an agent that never had any tools simply talks. Claude Code asks for a title before anything else,
    so its side calls are known by what they lack: each step of its conversation has the fields below, tools or not."""

    def __init__(self, *, most_threads: int = MOST_THREADS) -> None:
        self._most = most_threads
        self._threads: OrderedDict[ThreadName, None] = OrderedDict()

    def is_beside(self, thread: ThreadName, body: Mapping[str, object]) -> bool:
        """Whether this request of the thread stands beside its conversation. Its messages are not looked at."""
        if not list_own_tools(get_items(body, "tools")):
            is_bare = bool(read_billing_line(body)) and body.keys().isdisjoint(STEP_FIELDS)
            return is_bare or thread in self._threads
        self._threads[thread] = None
        self._threads.move_to_end(thread)
        if len(self._threads) > self._most:
            self._threads.popitem(last=False)
        return False
