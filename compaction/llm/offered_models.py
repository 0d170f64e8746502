"""Models that can be offered for writing summaries: those with a known window, output limit and list price.

Which model a bare choice means is worked out from the names on record, so that a new table is all a new model needs.
"""

from datetime import datetime
from functools import lru_cache

from compaction.llm.names import read_model_name
from compaction.llm.prices import price_of
from compaction.llm.table import MODELS, list_current_models


@lru_cache(maxsize=8)
def list_offered_models(at: datetime | None = None) -> tuple[str, ...]:
    """Newest first, then by name."""
    offered = [model for model in list_current_models() if price_of(model, at) is not None]
    return tuple(sorted(offered, key=_order))


def find_small_model() -> str:
    """Return the newest small model: cheap, quick, and with a window that holds most sessions."""
    return next(name for name in list_offered_models() if MODELS[name].is_small)


def _order(model: str) -> tuple[int, int, str]:
    major, minor = read_model_name(model).version or (0, 0)
    return -major, -minor, model
