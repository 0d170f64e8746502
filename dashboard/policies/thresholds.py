"""A team's thresholds as somebody enters them: every fault with its sentence, and the clean values that are stored."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from compaction.context.margins import Preset
from compaction.context.policy import Policy
from compaction.context.policy_parsing import read_team_value
from compaction.errors import BadPolicy
from compaction.llm.names import LONGEST_NAME, read_model_name

MARGINS = ("warning_margin_tokens", "error_margin_tokens", "auto_margin_tokens", "blocking_margin_tokens")
SETTINGS = (
    *MARGINS,
    "auto_percent",
    "window_tokens",
    "max_output_tokens",
    "reserve_tokens",
    "is_auto_enabled",
)
# More models than any team has in use; a form with that many rows is at its end as well.
MOST_MODELS = 20

Values = Mapping[str, object]


@dataclass(frozen=True)
class Fault:
    """What cannot be used, at which setting, of which model (as it was spelt) where it is not the team's own."""

    setting: str
    sentence: str
    model: str | None = None


def clean_thresholds(values: Values) -> dict[str, object]:
    """What is stored: only what differs from the client's rule, in types JSON has. Raises BadPolicy."""
    fault = next(find_faults(values), None)
    if fault is not None:
        raise BadPolicy(fault.setting, fault.sentence)
    own, models = _take_apart(values)
    clean = _clean_values(own)
    if own.get("preset") == Preset.EARLY:
        clean["preset"] = Preset.EARLY.value
    if clean.get("is_auto_enabled") is True:
        del clean["is_auto_enabled"]
    if models:
        clean["models"] = {read_model_name(name).key: _clean_values(given) for name, given in models.items()}
    return clean


def find_faults(values: Values) -> Iterator[Fault]:
    """All of them at once, so that a form can mark every field; lines are judged only where the figures can be read."""
    try:
        own, models = _take_apart(values)
    except BadPolicy as refusal:
        yield Fault(refusal.setting, refusal.sentence)
        return
    faults = list(_find_value_faults(own)) or list(_find_line_faults(own))
    yield from faults
    seen: set[str] = set()
    for name, given in models.items():
        sentence = _judge_name(name, given, seen)
        if sentence:
            yield Fault("models", sentence, name)
            continue
        own_faults = list(_find_value_faults(given, name))
        if not faults and not own_faults:
            own_faults = list(_find_line_faults({**own, "models": {name: given}}, name))
        yield from own_faults


def lay_flat(values: Values) -> dict[tuple[str, str], object]:
    """Stored values by model (empty: all of them) and setting."""
    own, models = _take_apart(values)
    groups = {"": own, **models}
    return {(model, setting): value for model, given in groups.items() for setting, value in given.items()}


def stand_up(flat: Mapping[tuple[str, str], object]) -> dict[str, object]:
    """The reverse of lay_flat."""
    values: dict[str, object] = {setting: value for (model, setting), value in flat.items() if not model}
    models: dict[str, dict[str, object]] = {}
    for (model, setting), value in flat.items():
        if model:
            models.setdefault(model, {})[setting] = value
    return {**values, "models": models} if models else values


def _take_apart(values: Values) -> tuple[dict[str, object], dict[str, Values]]:
    own = dict(values)
    models = own.pop("models", None) or {}
    if not isinstance(models, Mapping) or not all(isinstance(given, Mapping) for given in models.values()):
        raise BadPolicy("models", "Per-model values must be keyed by the model's name.")
    if len(models) > MOST_MODELS:
        raise BadPolicy("models", f"At most {MOST_MODELS} models can have their own values, not {len(models)}.")
    return own, {str(name): given for name, given in models.items()}


def _judge_name(name: str, given: Values, seen: set[str]) -> str:
    key = read_model_name(name).key
    if not key or len(name) > LONGEST_NAME or not name.isprintable():
        return "Enter the model's name as the client reports it, such as claude-opus-4-5."
    if key in seen:
        return f"The model {key} is listed twice."
    seen.add(key)
    is_filled = any(value not in (None, "") for value in given.values())
    return "" if is_filled else f"No value is set for {key}. Enter one, or remove the model."


def _find_value_faults(values: Values, model: str | None = None) -> Iterator[Fault]:
    for setting, value in values.items():
        try:
            if setting == "preset" and model is None:
                Policy.from_team_values({"preset": value})
            elif setting not in SETTINGS:
                raise BadPolicy(setting, f'Unknown setting "{setting}".')
            elif value not in (None, ""):
                read_team_value(setting, value)
        except BadPolicy as refusal:
            yield Fault(refusal.setting, refusal.sentence, model)


def _find_line_faults(values: Values, model: str | None = None) -> Iterator[Fault]:
    try:
        Policy.from_team_values(values)
    except BadPolicy as refusal:
        yield Fault(refusal.setting, refusal.sentence, model)


def _clean_values(values: Values) -> dict[str, object]:
    given = {setting: values.get(setting) for setting in SETTINGS}
    return {
        setting: _as_json(read_team_value(setting, value))
        for setting, value in given.items()
        if value not in (None, "")
    }


def _as_json(value: object) -> object:
    if not isinstance(value, Decimal):
        return value
    return int(value) if value == value.to_integral_value() else float(value)
