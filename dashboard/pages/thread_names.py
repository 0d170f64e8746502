"""What the conversations of a session are called: the main one, and sub-agents by their kind and task."""

from dashboard.models import Thread

MAIN = "main conversation"
UNNAMED = "sub-agent"


def name_threads(session_id: int, *, reads_content: bool) -> dict[str, str]:
    """One query. The task a sub-agent was given is content; its kind is not."""
    rows = Thread.objects.filter(session_id=session_id).exclude(agent_id="")
    names = {
        agent_id: _name_agent(agent_type, description if reads_content else "")
        for agent_id, agent_type, description in rows.values_list("agent_id", "agent_type", "description")
    }
    return {"": MAIN} | names


def _name_agent(agent_type: str, description: str) -> str:
    kind = f"{UNNAMED} {agent_type}" if agent_type else UNNAMED
    return f"{kind}: {description}" if description else kind
