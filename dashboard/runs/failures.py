"""What a person is told when a run failed: what happened, what was kept, what to do."""

from collections.abc import Mapping
from dataclasses import dataclass

from dashboard.models import CompactionRun, RunState
from dashboard.runs.attempts import COUNT_PATH

UNTOUCHED = "The session is as it was: a run never changes it."
_AGAIN = "Run it again in a minute."
_CHECK_KEY = "Have an admin check the API key, or use the summary without a model."

# By the codes of compaction.errors, of the API's failures, and of runs themselves.
_ADVICE: Mapping[str, str] = {
    "nothing_to_compact": "Wait until the session has gone on, or choose another range.",
    "pivot_not_found": "Choose a message that the model still sees; those before the last compaction are gone.",
    "context_differs": "Look at the context page of the session, then run it again and confirm it there.",
    "pivot_missing": "Choose the message to compact from or up to.",
    "prompt_too_long": "Compact up to an earlier message, or choose a model with a larger window.",
    "max_tokens": "Ask for a shorter summary in the instructions, or compact a smaller part.",
    "refusal": "Choose another model, or use the summary without a model.",
    "tool_use": "Run it again, or choose another model.",
    "no_stop_reason": _AGAIN,
    "no_summary": "Run it again, or choose another model.",
    "api_error": f"{_AGAIN} If it fails the same way, look at the attempts below.",
    "authentication": _CHECK_KEY,
    "permission": _CHECK_KEY,
    "key_unreadable": _CHECK_KEY,
    "billing": "Have an admin pay in with the provider, or use the summary without a model.",
    "no_key": "Have an admin enter an API key, or use the summary without a model.",
    "model_not_found": "Choose another model.",
    "model_unknown": "Choose the model that is to write the summary.",
    "rate_limited": "Wait some minutes, then run it again; other work uses the same key.",
    "overloaded": "Wait some minutes, then run it again, or choose another model.",
    "timeout": _AGAIN,
    "connection": "See whether this machine reaches the API, then run it again.",
    "bad_answer": "Have the operator check the address of the API.",
    "bad_request": "Choose another model; the attempts below tell what the API did not take.",
    "too_large": "Compact up to an earlier message.",
    "cap_reached": "Wait for the next day (UTC), choose a smaller model, or have an admin raise the cap.",
    "price_unknown": "Have an admin enter the price of the model.",
    "no_content": "Nothing can be done for this session; an admin can let the team store content from now on.",
    "worker_lost": "Run it again. If it fails the same way, an admin finds the reason on the jobs page.",
}
_DEFAULT_ADVICE = "Run it again; the attempts below tell what happened."


@dataclass(frozen=True)
class Failure:
    sentence: str
    kept: str
    advice: str


def describe_failure(run: CompactionRun) -> Failure | None:
    """None for a run that has not failed."""
    if run.state != RunState.FAILED:
        return None
    return Failure(
        sentence=run.failure_sentence or "The run failed without a reason it could name.",
        kept=_tell_kept(run),
        advice=_ADVICE.get(run.failure_code, _DEFAULT_ADVICE),
    )


def _tell_kept(run: CompactionRun) -> str:
    count = sum(1 for attempt in run.attempts.all() if attempt.path != COUNT_PATH)
    if not count:
        return UNTOUCHED
    requests = "One request to a model was" if count == 1 else f"{count} requests to a model were"
    spent = f" and cost ${run.spent_usd:.4f}" if run.spent_usd else ""
    return f"{UNTOUCHED} {requests} made{spent}; each is recorded below."
