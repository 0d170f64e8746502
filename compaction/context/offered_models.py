"""Models that can be offered for writing summaries: those with a known window, output limit and list price.

Which model a bare choice means is worked out from the names on record, so that a new table is all a new model needs.
"""

from datetime import datetime
from functools import lru_cache

from compaction.context.model_names import read_model_name
from compaction.context.prices import price_of
from compaction.context.windows import list_current_models

SMALL_FAMILY = "haiku"


@lru_cache(maxsize=8)
def list_offered_models(at: datetime | None = None) -> tuple[str, ...]:
    """Newest first, then by name."""
    offered = [model for model in list_current_models() if price_of(model, at) is not None]
    return tuple(sorted(offered, key=_order))


def find_small_model() -> str:
    """The newest of the small family: cheap, quick, and with a window that holds most sessions."""
    return next(model for model in list_offered_models() if read_model_name(model).family == SMALL_FAMILY)


def _order(model: str) -> tuple[int, int, str]:
    major, minor = read_model_name(model).version or (0, 0)
    return -major, -minor, model
