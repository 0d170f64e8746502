"""What the conversations of a session are called: the main one, and sub-agents by their kind, id and task.

Calls are numbered in each of them from 1, so a call of a sub-agent is always named with it.
"""

from dashboard.models import Thread

MAIN = "main conversation"
UNNAMED = "sub-agent"


def name_threads(session_id: int, *, reads_content: bool) -> dict[str, str]:
    """One query. The task a sub-agent was given is content; its kind is not."""
    rows = Thread.objects.filter(session_id=session_id).exclude(agent_id="")
    names = {
        agent_id: name_agent(agent_id, agent_type, description if reads_content else "")
        for agent_id, agent_type, description in rows.values_list("agent_id", "agent_type", "description")
    }
    return {"": MAIN} | names


def name_agent(agent_id: str, agent_type: str = "", description: str = "") -> str:
    """Short and different from the others of its session: its kind, how its id begins, and its task."""
    name = f"{agent_type or UNNAMED} {agent_id.removeprefix('agent-')[:7]}"
    return f"{name}: {description}" if description else name


def name_by_id(agent_id: str) -> str:
    """Where its thread is not read."""
    return name_agent(agent_id) if agent_id else MAIN
