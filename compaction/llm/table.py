"""Facts about Claude models, one row a model: windows, output limits, what they cache, keep and are used for.

A new model is one row here, looked up by lookup.py. Prices are in prices.py; a test names every row without one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

LONG_WINDOW_TOKENS = 1_000_000
SHORT_WINDOW_TOKENS = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """What is on record about one model; None where nothing is. The defaults are those of the newest models.

    `max_output_tokens` is the API's limit, None for retired models. `client_max_output_tokens` is what Claude Code asks
    for where that differs. `least_cached_tokens`: shorter prefixes are silently not cached. `keeps_thinking` and
    `keeps_system_messages`: a new prompt, or a system message inside the conversation, leaves earlier messages cached.
    `is_judged`: the client watches its cache. `has_api_compaction`: the API's own compaction takes it.
    `checked_output`: estimates of output (transcripts/output_estimate.py) compared with recorded calls they were not
    fitted on: how many, and estimate / truth in sum (bench/output_estimate.py).
    """

    window_tokens: int | None = LONG_WINDOW_TOKENS
    client_window_tokens: int | None = LONG_WINDOW_TOKENS
    max_output_tokens: int | None = 128_000
    client_max_output_tokens: int | None = None
    least_cached_tokens: int | None = 512
    keeps_thinking: bool = True
    keeps_system_messages: bool = True
    is_judged: bool = True
    is_small: bool = False
    has_api_compaction: bool = True
    checked_output: tuple[int, float] | None = None


_SHORT = SHORT_WINDOW_TOKENS
# The output limit and the least cached prefix of retired models are not on record.
_RETIRED = Model(
    window_tokens=_SHORT,
    client_window_tokens=_SHORT,
    max_output_tokens=None,
    least_cached_tokens=None,
    keeps_thinking=False,
    keeps_system_messages=False,
    has_api_compaction=False,
)
_RETIRED_HAIKU = replace(_RETIRED, is_judged=False, is_small=True)

# Claude Code gives models of the fourth generation the short window unless their name ends in [1m].
# fmt: off
MODELS: Mapping[str, Model] = {
    "claude-opus-5-5": Model(),
    "claude-sonnet-5-5": Model(),
    "claude-haiku-5-5": Model(is_judged=False, is_small=True),
    # No list of least prefixes names the first two; all Fable and Mythos models on record have 512.
    "claude-fable-5-2": Model(has_api_compaction=False),
    "claude-mythos-5-1": Model(),
    "claude-fable-5-1": Model(),
    "claude-fable-5": Model(),
    "claude-mythos-5": Model(),
    # The documentation says 2,048 for its least prefix, the price packages 512.
    "claude-mythos-preview": Model(
        window_tokens=None, client_window_tokens=None, max_output_tokens=None, least_cached_tokens=None,
    ),
    "claude-opus-5": Model(),
    "claude-sonnet-5": Model(least_cached_tokens=1024, keeps_system_messages=False),
    "claude-opus-4-8": Model(client_window_tokens=_SHORT, least_cached_tokens=1024),
    "claude-opus-4-7": Model(
        client_window_tokens=_SHORT, least_cached_tokens=2048, keeps_system_messages=False,
    ),
    "claude-opus-4-6": Model(
        client_window_tokens=_SHORT, client_max_output_tokens=64_000,
        least_cached_tokens=4096, keeps_system_messages=False,
    ),
    "claude-sonnet-4-6": Model(
        client_window_tokens=_SHORT, client_max_output_tokens=32_000,
        least_cached_tokens=1024, keeps_system_messages=False,
    ),
    "claude-opus-4-5": Model(
        window_tokens=_SHORT, client_window_tokens=_SHORT, max_output_tokens=64_000, client_max_output_tokens=32_000,
        least_cached_tokens=4096, keeps_system_messages=False, has_api_compaction=False, checked_output=(71, 0.97),
    ),
    "claude-sonnet-4-5": Model(
        window_tokens=_SHORT, client_window_tokens=_SHORT, max_output_tokens=64_000, client_max_output_tokens=32_000,
        least_cached_tokens=1024, keeps_thinking=False, keeps_system_messages=False, has_api_compaction=False,
        checked_output=(4, 1.07),
    ),
    "claude-haiku-4-5": Model(
        window_tokens=_SHORT, client_window_tokens=_SHORT, max_output_tokens=64_000, client_max_output_tokens=32_000,
        least_cached_tokens=4096, keeps_thinking=False, keeps_system_messages=False, has_api_compaction=False,
        is_judged=False, is_small=True, checked_output=(5, 1.08),
    ),
    "claude-opus-4-1": _RETIRED,
    "claude-opus-4": replace(_RETIRED, checked_output=(4, 0.81)),
    "claude-sonnet-4": replace(_RETIRED, checked_output=(2, 0.99)),
    "claude-3-7-sonnet": _RETIRED,
    "claude-3-5-sonnet": _RETIRED,
    "claude-3-5-haiku": _RETIRED_HAIKU,
    "claude-3-opus": _RETIRED,
    "claude-3-sonnet": _RETIRED,
    "claude-3-haiku": _RETIRED_HAIKU,
}
# fmt: on


def list_current_models() -> tuple[str, ...]:
    """Return the models the API serves today: those whose output limit is on record."""
    return tuple(name for name, model in MODELS.items() if model.max_output_tokens is not None)
