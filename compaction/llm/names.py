"""Names of language models: parses every spelling of a Claude model (suffix, date, alias, Bedrock, Vertex)."""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from compaction.llm.table import MODELS

# Claude Code marks a session with the long window by this suffix on the model's name.
LONG_WINDOW_SUFFIX = "[1m]"

# Names come from outside and are cached: no model on record has a third of this length.
LONGEST_NAME = 200

# "anthropic/claude-...", "bedrock/us.anthropic....", "vertex_ai/claude-...": gateways put the route in front.
_ROUTE = re.compile(r"^(?:[a-z0-9_.:-]+/)+", re.ASCII)
_BEDROCK = re.compile(r"^(?:(?P<region>[a-z]{2,6}(?:-[a-z]+)?)\.)?anthropic\.(?P<rest>claude.*)$", re.ASCII)
_BEDROCK_REVISION = re.compile(r"-v\d+(?::\d+(?::[a-z0-9]+)?)?$", re.ASCII)
_VERTEX_REVISION = re.compile(r"@(?P<revision>[a-z0-9-]+)$", re.ASCII)
_DATE = re.compile(r"-(?P<date>20\d{6}|20\d{2}-\d{2}-\d{2})$", re.ASCII)
_NEW_ORDER = re.compile(r"^claude-(?P<family>[a-z]+)-(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?$", re.ASCII)
_OLD_ORDER = re.compile(r"^claude-(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?-(?P<family>[a-z]+)$", re.ASCII)
FAMILIES = frozenset(match["family"] for name in MODELS if (match := _NEW_ORDER.match(name) or _OLD_ORDER.match(name)))


class Platform(StrEnum):
    """Who serves the model, according to its name."""

    ANTHROPIC = "anthropic"
    BEDROCK = "bedrock"
    VERTEX = "vertex"


@dataclass(frozen=True, slots=True)
class ModelName:
    """The parts of a model's name. `base` is the spelling that tables use; `family` is None for other models."""

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
    """Return the parts of a model's name. A name that is no Claude model is its own base, without family and version.

    Bare names such as "opus" are not parsed: which model they mean changes with the client's version.
    """
    return ModelName(base=model[:LONGEST_NAME]) if len(model) > LONGEST_NAME else _parse_name(model)


@lru_cache(maxsize=1024)
def _parse_name(model: str) -> ModelName:
    text = model.strip().lower()
    has_long_window = text.endswith(LONG_WINDOW_SUFFIX)
    text = text.removesuffix(LONG_WINDOW_SUFFIX)
    routed = _ROUTE.sub("", text)
    platform, is_regional, plain = _parse_platform(routed, text)
    dated = _DATE.search(plain)
    named = _DATE.sub("", plain).removesuffix("-latest")
    matched = _NEW_ORDER.match(named) or _OLD_ORDER.match(named)
    if matched is None or matched["family"] not in FAMILIES:
        return ModelName(base=plain or text, has_long_window=has_long_window, platform=platform)
    major, minor = int(matched["major"]), int(matched["minor"] or 0)
    return ModelName(
        base=_format_base(matched["family"], major, minor),
        family=matched["family"],
        version=(major, minor),
        has_long_window=has_long_window,
        platform=platform,
        is_regional=is_regional,
        dated=dated["date"].replace("-", "") if dated else None,
    )


def _parse_platform(routed: str, text: str) -> tuple[Platform, bool, str]:
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


def _format_base(family: str, major: int, minor: int) -> str:
    if major <= 3:  # names up to 3.7 put the version first: claude-3-5-sonnet
        return f"claude-{major}-{minor}-{family}" if minor else f"claude-{major}-{family}"
    return f"claude-{family}-{major}-{minor}" if minor else f"claude-{family}-{major}"
