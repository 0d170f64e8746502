"""Calls that compact or take notes themselves start neither: what they would start would wait for them."""

from compaction.compactors.auto import GUARDED_SOURCES
from dashboard.models import AgentSession, ApiCall


def is_guarded(session: AgentSession) -> bool:
    """Whether the last call of the conversation was of that kind; the next one is looked at again."""
    calls = ApiCall.objects.filter(session=session, agent_id="").order_by("-number")
    return calls.values_list("query_source", flat=True).first() in GUARDED_SOURCES
