"""Figures of a session that lists, its page, exports and the API show: worked out here, so that they mean the same."""

from dashboard.models import AgentSession
from dashboard.pages.listed_session import ListedSession


def count_prompt_tokens(session: AgentSession | ListedSession) -> int:
    """Of all calls that count here."""
    return session.input_tokens + session.read_tokens + session.write_5m_tokens + session.write_1h_tokens


def find_hit_rate(session: AgentSession | ListedSession) -> float | None:
    """Tokens read from the cache as a share of all prompts of the session; None before the first."""
    prompt_tokens = count_prompt_tokens(session)
    return session.read_tokens / prompt_tokens if prompt_tokens else None


def is_price_unknown(session: AgentSession | ListedSession) -> bool:
    """No call has a price, or none is known of a client that says it paid: a sum of nothing would read as free."""
    if session.call_count == 0:
        return session.client_cost_usd is not None
    return session.call_count == session.unpriced_count
