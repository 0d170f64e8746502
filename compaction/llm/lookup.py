"""Looks up what is on record about a model by any spelling of its name, and which models are offered for summaries.

All of it follows from the rows of table.py, so a new model needs no change here.
"""

from datetime import datetime
from functools import lru_cache

from compaction.llm.names import ModelName, read_model_name
from compaction.llm.prices import get_list_price
from compaction.llm.table import LONG_WINDOW_TOKENS, MODELS, Model, list_current_models


def get_model_row(name: ModelName) -> Model | None:
    """Return the model's row; None for a model that is not in the table."""
    return MODELS.get(name.base)


def get_nearest_model_row(name: ModelName) -> Model | None:
    """Return the model's row; for a version that is not in the table the row of the newest older one of its family.

    For facts that stay the same from one version on. None for what is no Claude model.
    """
    model = get_model_row(name)
    if model is not None or name.version is None or name.family is None:
        return model
    versions = _FAMILY_VERSIONS[name.family]
    older = [version for version in versions if version <= name.version]
    return versions[max(older, default=min(versions))]


def get_client_window_tokens(name: ModelName) -> int | None:
    """Return the window in Claude Code's own table; for a model missing in table.py the window of its generation."""
    if name.version is None:
        return None
    if name.has_long_window:
        return LONG_WINDOW_TOKENS
    model = get_model_row(name)
    return _GENERATION_WINDOWS.get(name.version[0]) if model is None else model.client_window_tokens


def _group_versions() -> dict[str, dict[tuple[int, int], Model]]:
    grouped: dict[str, dict[tuple[int, int], Model]] = {}
    for base, model in MODELS.items():
        name = read_model_name(base)
        if name.family is not None and name.version is not None:
            grouped.setdefault(name.family, {})[name.version] = model
    return grouped


_FAMILY_VERSIONS = _group_versions()
_GENERATION_WINDOWS = {
    version[0]: model.client_window_tokens
    for versions in _FAMILY_VERSIONS.values()
    for version, model in sorted(versions.items())
}
# Judged or not is a fact about a family: calls whose model has no version in its name are left out as well.
UNJUDGED_FAMILIES = tuple(
    sorted(family for family, versions in _FAMILY_VERSIONS.items() if not all(m.is_judged for m in versions.values()))
)
# The versions from which on earlier thinking is kept, for families that also have models that drop it.
FIRST_KEEPING_THINKING = {
    family: min(version for version, model in versions.items() if model.keeps_thinking)
    for family, versions in _FAMILY_VERSIONS.items()
    if {model.keeps_thinking for model in versions.values()} == {True, False}
}


def get_least_cached_tokens(model: str | None) -> int | None:
    """Return the length of the shortest prefix a model caches; None when it is not on record."""
    found = get_model_row(read_model_name(model)) if model else None
    return found.least_cached_tokens if found else None


def keeps_thinking(model: str | None) -> bool:
    """Return whether earlier thinking stays cached when a new prompt arrives; True for an unknown model."""
    found = get_nearest_model_row(read_model_name(model)) if model else None
    return found is None or found.keeps_thinking


def keeps_system_messages(model: str | None) -> bool:
    """Return whether a system message inside the conversation leaves the cache whole; True for an unknown model."""
    found = get_nearest_model_row(read_model_name(model)) if model else None
    return found is None or found.keeps_system_messages


@lru_cache(maxsize=8)
def list_offered_models(at: datetime | None = None) -> tuple[str, ...]:
    """Return the models with a known window, output limit and list price: newest first, then by name."""
    offered = [model for model in list_current_models() if get_list_price(model, at) is not None]
    return tuple(sorted(offered, key=_order))


def get_small_model() -> str:
    """Return the newest small model: cheap, quick, and with a window that holds most sessions."""
    return next(name for name in list_offered_models() if MODELS[name].is_small)


def _order(model: str) -> tuple[int, int, str]:
    major, minor = read_model_name(model).version or (0, 0)
    return -major, -minor, model
