"""Policy: the settings that move the thresholds, with the origin of each one.

Built from a team's values (invalid ones raise BadPolicy with a sentence), or from a client's environment (what the
client would ignore is ignored). The thresholds themselves are computed in thresholds.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from decimal import Decimal
from typing import Any

from compaction.context.cache_ttl import CacheTtl
from compaction.context.margins import (
    AUTO_MARGIN_TOKENS,
    BLOCKING_MARGIN_TOKENS,
    EARLY_ERROR_MARGIN_TOKENS,
    EARLY_WARNING_MARGIN_TOKENS,
    ERROR_MARGIN_TOKENS,
    RESERVE_CAP_TOKENS,
    WARNING_MARGIN_TOKENS,
    Preset,
)
from compaction.context.policy_parsing import (
    is_off,
    is_on,
    read_client_cache_ttl,
    read_client_max_output,
    read_client_percent,
    read_client_window,
    read_team_value,
)
from compaction.context.windows import ModelInUse, Origin, get_window
from compaction.errors import BadPolicy
from compaction.llm.names import read_model_name
from compaction.llm.table import SHORT_WINDOW_TOKENS


@dataclass(frozen=True, slots=True)
class Policy:
    """All settings that move a threshold. A margin is the distance from a threshold up to its limit."""

    auto_margin_tokens: int = AUTO_MARGIN_TOKENS
    warning_margin_tokens: int = WARNING_MARGIN_TOKENS
    error_margin_tokens: int = ERROR_MARGIN_TOKENS
    blocking_margin_tokens: int = BLOCKING_MARGIN_TOKENS
    auto_percent: Decimal | None = None
    window_tokens: int | None = None
    max_output_tokens: int | None = None
    reserve_tokens: int | None = None
    is_compaction_enabled: bool = True
    is_auto_enabled: bool = True
    is_micro_enabled: bool = True
    is_session_memory_enabled: bool = True
    is_reactive_enabled: bool = True
    cache_ttl: CacheTtl | None = None
    origins: tuple[tuple[str, Origin], ...] = ()
    notes: tuple[str, ...] = ()
    by_model: tuple[tuple[str, tuple[tuple[str, Any], ...]], ...] = ()

    @property
    def compacts_by_itself(self) -> bool:
        """Return whether the auto-compact threshold has an effect: both switches are on."""
        return self.is_compaction_enabled and self.is_auto_enabled

    @property
    def compacts_when_too_long(self) -> bool:
        """Return whether a refused prompt starts a compaction: its switch is on, and so is all compaction."""
        return self.is_compaction_enabled and self.is_reactive_enabled

    def get_origin(self, setting: str) -> Origin:
        """Return where a setting comes from; the client's rule where it is not set."""
        return dict(self.origins).get(setting, Origin.CLIENT_RULE)

    def for_model(self, model: str) -> "Policy":
        """Return this policy with the team's values for one model; the name with its suffix overrides the bare one."""
        name = read_model_name(model)
        overrides = dict(self.by_model)
        chosen = overrides.get(name.key, overrides.get(name.base))
        return self if chosen is None else _apply_values(self, dict(chosen), Origin.TEAM)

    @classmethod
    def from_preset(cls, preset: Preset) -> "Policy":
        """Return the client's margins, or the early ones."""
        if preset is Preset.CLIENT:
            return cls()
        margins = {
            "warning_margin_tokens": EARLY_WARNING_MARGIN_TOKENS,
            "error_margin_tokens": EARLY_ERROR_MARGIN_TOKENS,
        }
        return _apply_values(cls(), margins, Origin.TEAM)

    @classmethod
    def from_team_values(cls, values: Mapping[str, object]) -> "Policy":
        """Return the policy of a team's form or stored values. `preset` comes first; `models`: values by model.

        Raise BadPolicy with a sentence when a value, or the thresholds it leads to, are invalid.
        """
        settings = dict(values)
        preset, models = settings.pop("preset", None) or Preset.CLIENT.value, settings.pop("models", None) or {}
        if preset not in tuple(Preset):
            raise BadPolicy("preset", f'Unknown preset "{preset}". Choose "client" or "early".')
        policy = _apply_values(cls.from_preset(Preset(str(preset))), _read_team_values(settings), Origin.TEAM)
        _require_valid_thresholds(policy)
        if not isinstance(models, Mapping):
            raise BadPolicy("models", "Per-model values must be keyed by the model's name.")
        by_model = [_read_model_values(policy, str(model), overrides) for model, overrides in models.items()]
        return replace(policy, by_model=tuple(sorted(by_model, key=lambda pair: pair[0])))

    @classmethod
    def from_environment(cls, mapping: Mapping[str, object]) -> "Policy":
        """Return the policy of a client's variables and settings, with the client's precedence. Never raises."""
        settings, notes = _read_client_settings(mapping)
        return replace(_apply_values(cls(), settings, Origin.CLIENT_SETTING), notes=tuple(notes))


_TEAM_SETTINGS = frozenset(field.name for field in fields(Policy)) - {"origins", "notes", "by_model", "cache_ttl"}


def _apply_values(policy: Policy, values: Mapping[str, Any], origin: Origin) -> Policy:
    origins = dict(policy.origins) | dict.fromkeys(values, origin)
    return replace(policy, **values, origins=tuple(sorted(origins.items())))


def _read_team_values(values: Mapping[str, object]) -> dict[str, object]:
    read: dict[str, object] = {}
    for setting, value in values.items():
        if setting not in _TEAM_SETTINGS:
            raise BadPolicy(setting, f'Unknown setting "{setting}".')
        if value not in (None, ""):
            read[setting] = read_team_value(setting, value)
    return read


def _read_model_values(policy: Policy, model: str, values: object) -> tuple[str, tuple[tuple[str, Any], ...]]:
    if not isinstance(values, Mapping):
        raise BadPolicy("models", f"The values for {model} must be given by name.")
    read = _read_team_values(values)
    _require_valid_thresholds(_apply_values(policy, read, Origin.TEAM), model)
    return read_model_name(model).key, tuple(sorted(read.items()))


def _read_client_settings(mapping: Mapping[str, object]) -> tuple[dict[str, object], list[str]]:
    notes: list[str] = []
    read: dict[str, object] = {
        "auto_percent": read_client_percent(mapping.get("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE"), notes),
        "window_tokens": read_client_window(mapping, notes),
        "max_output_tokens": read_client_max_output(mapping.get("CLAUDE_CODE_MAX_OUTPUT_TOKENS"), notes),
        "cache_ttl": read_client_cache_ttl(mapping),
    }
    settings = {setting: value for setting, value in read.items() if value is not None}
    if is_on(mapping.get("DISABLE_COMPACT")):
        settings["is_compaction_enabled"] = False
    if is_on(mapping.get("DISABLE_AUTO_COMPACT")) or is_off(mapping.get("autoCompactEnabled")):
        settings["is_auto_enabled"] = False
    return settings, notes


def _require_valid_thresholds(policy: Policy, model: str | None = None) -> None:
    about = f" for {model}" if model else ""
    warning, error = policy.warning_margin_tokens, policy.error_margin_tokens
    auto, blocking = policy.auto_margin_tokens, policy.blocking_margin_tokens
    if error > warning:
        sentence = f"its margin of {error:,} tokens is larger than the warning margin of {warning:,}."
        raise BadPolicy(
            "error_margin_tokens", f"The error threshold{about} would be below the warning threshold: {sentence}"
        )
    if auto < blocking:
        sentence = f"its margin of {auto:,} tokens is smaller than the blocking margin of {blocking:,}."
        raise BadPolicy(
            "auto_margin_tokens", f"The auto-compact threshold{about} would be above the blocking threshold: {sentence}"
        )
    if not policy.compacts_by_itself and error < blocking:
        sentence = f"its margin of {error:,} tokens is smaller than the blocking margin of {blocking:,}."
        raise BadPolicy(
            "error_margin_tokens",
            f"With auto-compact off, the error threshold{about} would be above the blocking threshold: {sentence}",
        )
    lowest = _compute_lowest_threshold(policy, model)
    if lowest < 0:
        sentence = "Lower the margins, or raise the window or the percentage."
        raise BadPolicy(
            _find_bad_setting(policy, model), f"The lowest threshold{about} would be at {lowest:,} tokens. {sentence}"
        )


# Margins first: a window that leaves room for the client's own margins is not the cause.
_SUSPECTS = (
    "warning_margin_tokens",
    "auto_margin_tokens",
    "blocking_margin_tokens",
    "reserve_tokens",
    "auto_percent",
    "window_tokens",
)


def _find_bad_setting(policy: Policy, model: str | None) -> str:
    """Return the setting that would raise the lowest threshold to 0 or more if it followed the client's rule."""
    plain = Policy()
    changed = (name for name in _SUSPECTS if getattr(policy, name) != getattr(plain, name))
    for name in changed:
        rule: dict[str, Any] = {name: getattr(plain, name)}
        if _compute_lowest_threshold(replace(policy, **rule), model) >= 0:
            return name
    return "warning_margin_tokens"


def _compute_lowest_threshold(policy: Policy, model: str | None) -> int:
    # Where neither the policy nor the model has a window, the smallest one of the tables; in a larger window all
    # thresholds move up together.
    model_window = get_window(ModelInUse(model)) if model else None
    window = policy.window_tokens or (model_window.tokens if model_window else SHORT_WINDOW_TOKENS)
    available = window - (RESERVE_CAP_TOKENS if policy.reserve_tokens is None else policy.reserve_tokens)
    limit = available
    if policy.compacts_by_itself:
        limit = available - policy.auto_margin_tokens
        if policy.auto_percent is not None:
            limit = min(limit, int(available * policy.auto_percent / 100))
    return min(limit - policy.warning_margin_tokens, available - policy.blocking_margin_tokens)
