"""Sub-agents: the names of their files, their meta file, and their messages inside the parent's lines."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from compaction.errors import AgentMetaUnreadable
from compaction.transcripts.client_protocol import AGENT_PROGRESS
from compaction.transcripts.entries import Entry
from compaction.transcripts.json_fields import get_count, get_fields, get_text
from compaction.transcripts.payloads import Progress
from compaction.transcripts.reader import encode_json, load_json

_INHERITED_FIELDS = ("sessionId", "version", "cwd", "gitBranch")
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


def parse_agent_id(file_name: str) -> str | None:
    """Return the sub-agent's id from the name of its transcript or meta file; None for a main transcript."""
    match = _AGENT_FILE.search(file_name.replace("\\", "/").rpartition("/")[2])
    return match[1] if match else None


def read_agent_meta(data: bytes) -> AgentMeta:
    """Return the meta file of a sub-agent, without values of the wrong type. Raise AgentMetaUnreadable."""
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


def write_nested_line(entry: Entry) -> bytes | None:
    """Return the sub-agent's line inside an `agent_progress` line, with its uuid in the sub-agent's own file; None for
    every other line. Its parent is not recorded there."""
    payload = entry.payload
    if not isinstance(payload, Progress) or payload.kind != AGENT_PROGRESS or not payload.agent_id:
        return None
    nested = get_fields(get_fields(entry.fields, "data"), "message")
    if not nested:
        return None
    inherited = {name: value for name in _INHERITED_FIELDS if (value := entry.fields.get(name)) is not None}
    line = {**inherited, **nested, "isSidechain": True, "agentId": payload.agent_id}
    return encode_json(line).encode("utf-8", "surrogatepass")
