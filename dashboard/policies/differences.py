"""What a change of policy changed, as words a person can read: setting, before, after."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from compaction.context.margins import Preset
from dashboard.policies.in_force import TeamSettings
from dashboard.policies.own_prices import StoredPrices, describe_price
from dashboard.policies.proxy_additions import ProxyAdditions
from dashboard.policies.thresholds import lay_flat

# In the order in which changes are told.
TITLES = {
    "preset": "preset",
    "warning_margin_tokens": "warning margin",
    "error_margin_tokens": "error margin",
    "auto_margin_tokens": "auto-compact margin",
    "blocking_margin_tokens": "blocking margin",
    "auto_percent": "auto-compact percentage",
    "window_tokens": "window",
    "max_output_tokens": "max output",
    "reserve_tokens": "reserve",
    "is_auto_enabled": "auto-compact",
}
_ORDER = list(TITLES)
NOT_SET = "not set"


class Area(StrEnum):
    """What a setting is about, and the page that shows its history."""

    LINES = "thresholds"
    STORAGE = "storage"
    PROXY = "proxy_settings"
    PRICES = "prices"
    REDACTION = "redaction"


@dataclass(frozen=True)
class Difference:
    title: str
    before: str
    after: str
    area: Area = Area.LINES

    def __str__(self) -> str:
        return f"{self.title}: {self.before} → {self.after}"


def find_differences(before: TeamSettings, after: TeamSettings) -> list[Difference]:
    return [
        *_compare_thresholds(before.thresholds, after.thresholds),
        *_compare_storage(before, after),
        *_compare_redaction(before, after),
        *_compare_additions(before.proxy_additions, after.proxy_additions),
        *_compare_prices(before.own_prices, after.own_prices),
    ]


def _compare_thresholds(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[Difference]:
    was, now = lay_flat(before), lay_flat(after)
    changed = [key for key in {*was, *now} if was.get(key) != now.get(key)]
    for key in sorted(changed, key=lambda key: (key[0], _ORDER.index(key[1]))):
        model, setting = key
        title = f"{model}: {TITLES[setting]}" if model else TITLES[setting]
        yield Difference(title, say_value(setting, was.get(key)), say_value(setting, now.get(key)))


def _compare_storage(before: TeamSettings, after: TeamSettings) -> Iterator[Difference]:
    told: list[tuple[str, str, str]] = []
    if before.stores_content != after.stores_content:
        told.append(("content", _say_stored(before), _say_stored(after)))
    if before.content_days != after.content_days:
        told.append(("keep content for", _say_days(before.content_days), _say_days(after.content_days)))
    if before.metrics_days != after.metrics_days:
        told.append(("keep metrics for", _say_days(before.metrics_days), _say_days(after.metrics_days)))
    yield from (Difference(title, was, now, Area.STORAGE) for title, was, now in told)


def _compare_redaction(before: TeamSettings, after: TeamSettings) -> Iterator[Difference]:
    for name in sorted({*before.own_patterns, *after.own_patterns}):
        was, now = before.own_patterns.get(name), after.own_patterns.get(name)
        if was != now:
            # The pattern itself stays out of histories: it shows what the team's secrets look like.
            set_to = "none" if now is None else "set" if was is None else "changed"
            yield Difference(f"redaction {name}", "none" if was is None else "set", set_to, Area.REDACTION)
    for name in sorted(before.disabled_rules ^ after.disabled_rules):
        states = ("off", "on") if name in before.disabled_rules else ("on", "off")
        yield Difference(f"rule {name}", *states, Area.REDACTION)


def _compare_additions(before: ProxyAdditions, after: ProxyAdditions) -> Iterator[Difference]:
    if before.asks_diagnosis != after.asks_diagnosis:
        words = {True: "on", False: "off"}
        told = words[before.asks_diagnosis], words[after.asks_diagnosis]
        yield Difference("cache diagnosis", *told, Area.PROXY)
    if before.clearing_words != after.clearing_words:
        yield Difference("clear old tool results", before.clearing_words, after.clearing_words, Area.PROXY)


def _compare_prices(before: StoredPrices, after: StoredPrices) -> Iterator[Difference]:
    for model in sorted({*before, *after}):
        was, now = before.get(model), after.get(model)
        if was != now:
            yield Difference(f"price of {model}", describe_price(was), describe_price(now), Area.PRICES)


def say_value(setting: str, value: object) -> str:
    if setting == "preset":
        return str(value or Preset.CLIENT.value)
    if value is None:
        return NOT_SET
    if isinstance(value, bool):
        return "on" if value else "off"
    if setting == "auto_percent":
        return f"{value}%"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _say_stored(settings: TeamSettings) -> str:
    return "stored" if settings.stores_content else "not stored"


def _say_days(days: int | None) -> str:
    return "no limit" if days is None else f"{days} days"
