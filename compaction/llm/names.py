"""Model names: reads every spelling of a Claude model (suffix, date, alias, Bedrock, Vertex) and finds its row."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from compaction.llm.table import LONG_WINDOW_TOKENS, MODELS, Model

# Claude Code marks a session with the long window by this suffix on the model's name.
LONG_WINDOW_SUFFIX = "[1m]"

# Names come from outside and are kept in caches: no model on record has a third of this length.
LONGEST_NAME = 200

# "anthropic/claude-...", "bedrock/us.anthropic....", "vertex_ai/claude-...": gateways put the route in front.
_ROUTE = re.compile(r"^(?:[a-z0-9_.:-]+/)+", re.ASCII)
_BEDROCK = re.compile(r"^(?:(?P<region>[a-z]{2,6}(?:-[a-z]+)?)\.)?anthropic\.(?P<rest>claude.*)$", re.ASCII)
_BEDROCK_REVISION = re.compile(r"-v\d+(?::\d+(?::[a-z0-9]+)?)?$", re.ASCII)
_VERTEX_REVISION = re.compile(r"@(?P<revision>[a-z0-9-]+)$", re.ASCII)
_DATE = re.compile(r"-(?P<date>20\d{6}|20\d{2}-\d{2}-\d{2})$", re.ASCII)
_NEW_ORDER = re.compile(r"^claude-(?P<family>[a-z]+)-(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?$", re.ASCII)
_OLD_ORDER = re.compile(r"^claude-(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?-(?P<family>[a-z]+)$", re.ASCII)
_PARTS = [found for name in MODELS if (found := _NEW_ORDER.match(name) or _OLD_ORDER.match(name))]

FAMILIES = frozenset(found["family"] for found in _PARTS)


class Platform(StrEnum):
    """Who serves the model, as far as its name tells."""

    ANTHROPIC = "anthropic"
    BEDROCK = "bedrock"
    VERTEX = "vertex"


@dataclass(frozen=True, slots=True)
class ModelName:
    """A model's name taken apart: `base` is the one spelling tables use, `family` is None for what is no Claude."""

    base: str
    family: str | None = None
    version: tuple[int, int] | None = None
    has_long_window: bool = False
    platform: Platform = Platform.ANTHROPIC
    is_regional: bool = False
    dated: str | None = None

    @property
    def key(self) -> str:
        """The spelling under which a team may set values for this model."""
        return self.base + LONG_WINDOW_SUFFIX if self.has_long_window else self.base


def read_model_name(model: str) -> ModelName:
    """Take a model's name apart. A name that is no Claude model comes back as it is, without family and version.

    Bare names such as "opus" stay unread: which model they mean moves with the client's version.
    """
    return ModelName(base=model[:LONGEST_NAME]) if len(model) > LONGEST_NAME else _take_apart(model)


def find_model(name: ModelName) -> Model | None:
    """Return the model's row; None for a model that is not in the table."""
    return MODELS.get(name.base)


def find_nearest_model(name: ModelName) -> Model | None:
    """Return the model's row, for a version that is not in the table that of the newest older one of its family.

    For what stays as it is from one version on; None for what is no Claude model.
    """
    model = find_model(name)
    if model is not None or name.version is None or name.family is None:
        return model
    versions = _FAMILY_VERSIONS[name.family]
    older = [version for version in versions if version <= name.version]
    return versions[max(older, default=min(versions))]


def find_client_window_tokens(name: ModelName) -> int | None:
    """Return the window in Claude Code's own table; a model that is not in ours has that of its generation."""
    if name.version is None:
        return None
    if name.has_long_window:
        return LONG_WINDOW_TOKENS
    model = find_model(name)
    return _GENERATION_WINDOWS.get(name.version[0]) if model is None else model.client_window_tokens


@lru_cache(maxsize=1024)
def _take_apart(model: str) -> ModelName:
    text = model.strip().lower()
    has_long_window = text.endswith(LONG_WINDOW_SUFFIX)
    text = text.removesuffix(LONG_WINDOW_SUFFIX)
    routed = _ROUTE.sub("", text)
    platform, is_regional, plain = _find_platform(routed, text)
    dated = _DATE.search(plain)
    named = _DATE.sub("", plain).removesuffix("-latest")
    matched = _NEW_ORDER.match(named) or _OLD_ORDER.match(named)
    if matched is None or matched["family"] not in FAMILIES:
        return ModelName(base=plain or text, has_long_window=has_long_window, platform=platform)
    major, minor = int(matched["major"]), int(matched["minor"] or 0)
    return ModelName(
        base=_spell_base(matched["family"], major, minor),
        family=matched["family"],
        version=(major, minor),
        has_long_window=has_long_window,
        platform=platform,
        is_regional=is_regional,
        dated=dated["date"].replace("-", "") if dated else None,
    )


def _find_platform(routed: str, text: str) -> tuple[Platform, bool, str]:
    bedrock = _BEDROCK.match(routed)
    if bedrock:
        plain = _BEDROCK_REVISION.sub("", bedrock["rest"])
        return Platform.BEDROCK, bedrock["region"] != "global", plain
    revision = _VERTEX_REVISION.search(routed)
    if revision:
        plain = routed[: revision.start()]
        dated = revision["revision"]
        return Platform.VERTEX, False, f"{plain}-{dated}" if dated.isdigit() else plain
    if text.startswith(("vertex_ai/", "vertex/")) or "/publishers/anthropic/" in text:
        return Platform.VERTEX, False, routed
    return Platform.ANTHROPIC, False, routed


def _spell_base(family: str, major: int, minor: int) -> str:
    if major <= 3:  # names up to 3.7 put the version first: claude-3-5-sonnet
        return f"claude-{major}-{minor}-{family}" if minor else f"claude-{major}-{family}"
    return f"claude-{family}-{major}-{minor}" if minor else f"claude-{family}-{major}"


def _group_versions() -> dict[str, dict[tuple[int, int], Model]]:
    grouped: dict[str, dict[tuple[int, int], Model]] = {}
    for base, model in MODELS.items():
        name = _take_apart(base)
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


def keeps_thinking(model: str | None) -> bool:
    """Whether a model keeps earlier thinking when a new prompt arrives; unknown models are given the benefit."""
    found = find_nearest_model(read_model_name(model)) if model else None
    return found is None or found.keeps_thinking


def keeps_system_messages(model: str | None) -> bool:
    """Whether a system message inside the conversation leaves the cache whole; unknown models get the benefit."""
    found = find_nearest_model(read_model_name(model)) if model else None
    return found is None or found.keeps_system_messages
