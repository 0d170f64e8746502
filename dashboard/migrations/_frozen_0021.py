"""Windows and thresholds of sessions of other agents, as 0021 computes them.

A frozen copy: a database that is upgraded later gets the same figures, whatever happens to live code and its table of
models.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

LEVELS = ("not known", "ok", "warning", "error", "auto-compact", "blocking")
Values = Mapping[str, object]

_LONG_TOKENS, _SHORT_TOKENS, _RESERVE_TOKENS = 1_000_000, 200_000, 20_000
_LONG = "[1m]"
_LONGEST_NAME = 200
_WINDOWS = {
    **dict.fromkeys(
        (
            *("claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-2", "claude-mythos-5-1"),
            *("claude-fable-5-1", "claude-fable-5", "claude-mythos-5", "claude-opus-5", "claude-sonnet-5"),
            *("claude-opus-4-8", "claude-opus-4-7", "claude-opus-4-6", "claude-sonnet-4-6"),
        ),
        _LONG_TOKENS,
    ),
    **dict.fromkeys(
        (
            *("claude-opus-4-5", "claude-sonnet-4-5", "claude-haiku-4-5", "claude-opus-4-1", "claude-opus-4"),
            *("claude-sonnet-4", "claude-3-7-sonnet", "claude-3-5-sonnet", "claude-3-5-haiku", "claude-3-opus"),
            *("claude-3-sonnet", "claude-3-haiku"),
        ),
        _SHORT_TOKENS,
    ),
}
_MARGINS = {
    "auto_margin_tokens": 13_000,
    "warning_margin_tokens": 20_000,
    "error_margin_tokens": 20_000,
    "blocking_margin_tokens": 3_000,
}
_EARLY_MARGINS = {"warning_margin_tokens": 40_000, "error_margin_tokens": 20_000}

_ROUTE = re.compile(r"^(?:[a-z0-9_.:-]+/)+", re.ASCII)
_BEDROCK = re.compile(r"^(?:[a-z]{2,6}(?:-[a-z]+)?\.)?anthropic\.(?P<rest>claude.*)$", re.ASCII)
_BEDROCK_REVISION = re.compile(r"-v\d+(?::\d+(?::[a-z0-9]+)?)?$", re.ASCII)
_VERTEX_REVISION = re.compile(r"@(?P<revision>[a-z0-9-]+)$", re.ASCII)
_DATE = re.compile(r"-(20\d{6}|20\d{2}-\d{2}-\d{2})$", re.ASCII)
_FAMILY = r"(?P<family>fable|haiku|mythos|opus|sonnet)"
_NUMBER = r"(?P<major>\d{1,2})(?:[-.](?P<minor>\d{1,2}))?"
_NAMES = (
    re.compile(rf"^claude-{_FAMILY}-{_NUMBER}$", re.ASCII),
    re.compile(rf"^claude-{_NUMBER}-{_FAMILY}$", re.ASCII),
)


@dataclass(frozen=True)
class SessionLevel:
    """The columns of a session that depend on its window and its team's policy."""

    window_tokens: int | None
    auto_line_tokens: int | None
    level: str
    percent_left: int | None

    @property
    def level_rank(self) -> int:
        """Return the place of the level in rising order."""
        return LEVELS.index(self.level)


def find_window_tokens(model: str, reported_tokens: int | None) -> int | None:
    """Return the window that was reported, else the API's window of the model; None when it is not known."""
    if reported_tokens is not None and reported_tokens > 0:
        return reported_tokens
    base, is_claude, is_long = _read_name(model)
    return _LONG_TOKENS if is_claude and is_long else _WINDOWS.get(base)


def compute_level(thresholds: Values, model: str, reported_tokens: int | None, context_tokens: int) -> SessionLevel:
    """Return the level of a session of another agent under its team's stored thresholds."""
    policy = _read_policy(thresholds, model)
    known = find_window_tokens(model, reported_tokens)
    window = _read_tokens(policy["window_tokens"]) if "window_tokens" in policy else known
    if window is None:
        return SessionLevel(None, None, "not known", None)
    available = max(0, window - _compute_reserve(policy))
    blocking = max(0, available - _margin(policy, "blocking"))
    auto = min(_compute_auto(policy, available), blocking)
    is_auto_on = _is_on(policy, "is_compaction_enabled") and _is_on(policy, "is_auto_enabled")
    limit, ceiling = (auto, auto) if is_auto_on else (available, blocking)
    error = min(max(0, limit - _margin(policy, "error")), ceiling)
    warning = min(max(0, limit - _margin(policy, "warning")), error)
    lines = {"blocking": blocking, **({"auto-compact": auto} if is_auto_on else {}), "error": error, "warning": warning}
    reached = next((name for name, tokens in lines.items() if context_tokens >= tokens), "ok")
    return SessionLevel(window, auto if is_auto_on else None, reached, _compute_percent_left(context_tokens, limit))


def _read_policy(thresholds: Values, model: str) -> dict[str, object]:
    """A model's own values before the team's, the team's before those of its preset."""
    own = dict(thresholds)
    preset, models = own.pop("preset", None), own.pop("models", None) or {}
    by_name = {_spell_key(name): values for name, values in models.items()} if isinstance(models, Mapping) else {}
    base, _, is_long = _read_name(model)
    chosen = by_name.get(base + _LONG if is_long else base, by_name.get(base, {}))
    early = _EARLY_MARGINS if preset == "early" else {}
    given = {name: value for values in (own, chosen) for name, value in values.items() if value not in (None, "")}
    return {**_MARGINS, **early, **given}


def _compute_reserve(policy: Values) -> int:
    if "reserve_tokens" in policy:
        return _read_tokens(policy["reserve_tokens"])
    # Every output limit in the API's table is above the cap.
    return min(_read_tokens(policy.get("max_output_tokens", _RESERVE_TOKENS)), _RESERVE_TOKENS)


def _compute_auto(policy: Values, available: int) -> int:
    auto = max(0, available - _margin(policy, "auto"))
    if "auto_percent" not in policy:
        return auto
    return min(auto, int(available * Decimal(str(policy["auto_percent"]).strip()) / 100))


def _compute_percent_left(used_tokens: int, limit_tokens: int) -> int:
    if limit_tokens <= 0:
        return 0
    left = max(0, limit_tokens - max(0, used_tokens))
    return (200 * left + limit_tokens) // (2 * limit_tokens)


def _margin(policy: Values, name: str) -> int:
    return _read_tokens(policy[f"{name}_margin_tokens"])


def _read_tokens(value: object) -> int:
    return int(str(value).strip().replace(",", "").replace("_", ""))


def _is_on(policy: Values, switch: str) -> bool:
    return str(policy.get(switch, True)).strip().lower() in {"1", "true", "yes", "on"}


def _spell_key(model: str) -> str:
    base, _, is_long = _read_name(model)
    return base + _LONG if is_long else base


def _read_name(model: str) -> tuple[str, bool, bool]:
    """The one spelling of the table, whether it is a Claude model, and whether its name asks for the long window."""
    if len(model) > _LONGEST_NAME:
        return model[:_LONGEST_NAME], False, False
    text = model.strip().lower()
    is_long = text.endswith(_LONG)
    text = text.removesuffix(_LONG)
    plain = _strip_platform(_ROUTE.sub("", text))
    named = _DATE.sub("", plain).removesuffix("-latest")
    matched = next((found for pattern in _NAMES if (found := pattern.match(named))), None)
    if matched is None:
        return plain or text, False, is_long
    family, major, minor = matched["family"], int(matched["major"]), int(matched["minor"] or 0)
    if major <= 3:  # names up to 3.7 put the version first
        return f"claude-{major}-{minor}-{family}" if minor else f"claude-{major}-{family}", True, is_long
    return f"claude-{family}-{major}-{minor}" if minor else f"claude-{family}-{major}", True, is_long


def _strip_platform(name: str) -> str:
    bedrock = _BEDROCK.match(name)
    if bedrock:
        return _BEDROCK_REVISION.sub("", bedrock["rest"])
    revision = _VERTEX_REVISION.search(name)
    if revision is None:
        return name
    plain = name[: revision.start()]
    return f"{plain}-{revision['revision']}" if revision["revision"].isdigit() else plain
