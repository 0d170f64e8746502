"""Sub-agents: what their files are called, what their meta file says, and their messages inside the parent's lines."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from compaction.errors import AgentMetaUnreadable
from compaction.transcripts.entries import Entry
from compaction.transcripts.lines import Line
from compaction.transcripts.payloads import Progress
from compaction.transcripts.reader import load_json, make_lenient_entry
from compaction.transcripts.values import get_count, get_fields, get_text

_AGENT_FILE = re.compile(r"agent-([A-Za-z0-9_-]{1,128})\.(?:jsonl|meta\.json)\Z")


@dataclass(frozen=True, slots=True)
class AgentMeta:
    """`agent-<id>.meta.json`: which tool request of the parent started this sub-agent, and how."""

    agent_type: str | None = None
    description: str | None = None
    tool_use_id: str | None = None
    spawn_depth: int | None = None
    model: str | None = None
    is_built_in: bool = False
    is_finished: bool = False


def find_agent_id(file_name: str) -> str | None:
    """The sub-agent's id from the name of its transcript or meta file; None for a main transcript."""
    match = _AGENT_FILE.search(file_name.replace("\\", "/").rpartition("/")[2])
    return match[1] if match else None


def read_agent_meta(data: bytes) -> AgentMeta:
    """What a sub-agent's meta file says, as far as its values are of the right kind; raises AgentMetaUnreadable."""
    try:
        fields = load_json(data)
    except (ValueError, RecursionError) as error:
        raise AgentMetaUnreadable from error
    if not isinstance(fields, Mapping):
        raise AgentMetaUnreadable
    return AgentMeta(
        agent_type=get_text(fields, "agentType"),
        description=get_text(fields, "description"),
        tool_use_id=get_text(fields, "toolUseId"),
        spawn_depth=get_count(fields, "spawnDepth"),
        model=get_text(fields, "pickedEffortModel"),
        is_built_in=fields.get("isBuiltIn") is True,
        is_finished=fields.get("finished") is True,
    )


def read_nested_entry(entry: Entry) -> Entry | None:
    """The sub-agent's entry inside an `agent_progress` line; it belongs to the sub-agent, never to the main thread."""
    nested = get_fields(get_fields(entry.fields, "data"), "message")
    if not nested:
        return None
    inner = make_lenient_entry(nested, Line(entry.line_number, 0, b"", 0))
    agent_id = entry.payload.agent_id if isinstance(entry.payload, Progress) else None
    return inner.changed(session_id=entry.session_id, agent_id=agent_id, is_sidechain=True)
