"""What to do when a run failed: one piece of advice per failure code."""

_AGAIN = "Try again; nothing has to be changed."
_LATER = "Wait a few minutes, then try again. The extractive summariser needs no API and can be used meanwhile."
_KEY = "An admin checks the key under Team, Summariser. The extractive summariser needs none."

ADVICE = {
    "api_error": _LATER,
    "overloaded": _LATER,
    "rate_limit": _LATER,
    "timeout": _LATER,
    "connection": _LATER,
    "authentication": _KEY,
    "permission": _KEY,
    "billing": "The provider wants to be paid first. The extractive summariser costs nothing.",
    "not_found": "The provider does not know this model. Choose another one.",
    "no_key": _KEY,
    "prompt_too_long": "Compact up to an earlier message, or use the extractive summariser, which reads any length.",
    "max_tokens": "Ask for a shorter summary in the instructions, or compact a smaller part.",
    "refusal": "Choose another model, or use the extractive summariser.",
    "tool_use": _AGAIN,
    "no_summary": _AGAIN,
    "no_stop_reason": _AGAIN,
    "nothing_to_compact": "Go on with the session first, or choose another range.",
    "pivot_not_found": "The conversation has changed since: choose the message anew.",
    "blocked_by_hook": "The hook that said no names the reason.",
    "spend_cap": "Wait for the next day, or ask an admin to raise the daily cap.",
    "cancelled": "Start it again when you want it after all.",
}
_OTHERWISE = "Try again. If it fails the same way, the log of the worker says more."


def advise(code: str) -> str:
    """What a person can do about it."""
    return ADVICE.get(code, _OTHERWISE)
