"""Claude Code's settings with ours in them, and without them again: values in, values out, no files.

Whatever else stands in the settings stays as it is and where it is. What was added or replaced is noted in a receipt,
so that undoing touches nothing that somebody else wrote since.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Settings = dict[str, Any]
Receipt = dict[str, Any]


@dataclass(frozen=True)
class Wanted:
    """What is to stand in the settings: an entry per hook event, a status line, variables."""

    hooks: Mapping[str, Settings]
    status_line: Settings
    variables: Mapping[str, str]


@dataclass(frozen=True)
class Merged:
    """The settings, what undoing needs to know, and what was left as somebody else set it."""

    settings: Settings
    receipt: Receipt
    left_alone: tuple[str, ...] = ()


class UnusableSettings(Exception):
    """The settings hold something else where ours would go; the message is for people."""


def merge_settings(settings: Settings, wanted: Wanted, receipt: Receipt, *, replaces_status_line: bool) -> Merged:
    """With an earlier receipt its additions are taken out first, so that merging again changes nothing."""
    _check_kinds(settings)
    merged = undo_settings(settings, receipt) if receipt else copy.deepcopy(settings)
    noted: Receipt = {"hooks": {}, "env": {}}
    left_alone: list[str] = []
    _add_hooks(merged, wanted, noted)
    _add_status_line(merged, wanted, noted, left_alone, replaces=replaces_status_line)
    _add_variables(merged, wanted, noted, left_alone)
    return Merged(_keep_order(settings, merged), noted, tuple(left_alone))


def undo_settings(settings: Settings, receipt: Receipt) -> Settings:
    """Without what the receipt says was added, as far as it is still there as it was added."""
    left = copy.deepcopy(settings)
    _remove_hooks(left, receipt)
    if "statusLine" in receipt and left.get("statusLine") == receipt["statusLine"]["value"]:
        _put_back(left, "statusLine", receipt["statusLine"])
    variables = left.get("env")
    if isinstance(variables, dict):
        for name, noted in receipt.get("env", {}).items():
            if variables.get(name) == noted["value"]:
                _put_back(variables, name, noted)
        if not variables and receipt.get("made_env"):
            del left["env"]
    return left


def _check_kinds(settings: Settings) -> None:
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(entries, list) for entries in hooks.values()):
        raise UnusableSettings('"hooks" is not an object of lists.')
    if not isinstance(settings.get("env", {}), dict):
        raise UnusableSettings('"env" is not an object.')


def _add_hooks(settings: Settings, wanted: Wanted, noted: Receipt) -> None:
    noted["made_hooks"] = "hooks" not in settings
    hooks = settings.setdefault("hooks", {})
    for event, entry in wanted.hooks.items():
        is_new = event not in hooks
        entries = hooks.setdefault(event, [])
        if entry not in entries:
            noted["hooks"][event] = {"entry": entry, "made": is_new}
            entries.append(entry)


def _remove_hooks(settings: Settings, receipt: Receipt) -> None:
    hooks = settings.get("hooks")
    if not isinstance(hooks, dict):
        return
    for event, noted in receipt.get("hooks", {}).items():
        entries = hooks.get(event)
        if isinstance(entries, list) and noted["entry"] in entries:
            entries.reverse()  # ours was put last
            entries.remove(noted["entry"])
            entries.reverse()
            if not entries and noted["made"]:
                del hooks[event]
    if not hooks and receipt.get("made_hooks"):
        del settings["hooks"]


def _add_status_line(
    settings: Settings, wanted: Wanted, noted: Receipt, left_alone: list[str], *, replaces: bool
) -> None:
    if "statusLine" in settings and settings["statusLine"] != wanted.status_line and not replaces:
        left_alone.append("statusLine")
    else:
        _set(settings, "statusLine", wanted.status_line, noted)


def _add_variables(settings: Settings, wanted: Wanted, noted: Receipt, left_alone: list[str]) -> None:
    """All or none: half of somebody else's telemetry and half of ours would reach neither."""
    noted["made_env"] = "env" not in settings
    variables = settings.get("env", {})
    others = [name for name, value in wanted.variables.items() if variables.get(name, value) != value]
    if others:
        left_alone.extend(others)
        return
    for name, value in wanted.variables.items():
        _set(settings.setdefault("env", {}), name, value, noted["env"])


def _set(place: Settings, name: str, value: object, noted: Receipt) -> None:
    if name in place and place[name] == value:
        return
    noted[name] = {"value": value} | ({"before": place[name]} if name in place else {})
    place[name] = value


def _put_back(place: Settings, name: str, noted: Receipt) -> None:
    if "before" in noted:
        place[name] = noted["before"]
    else:
        del place[name]


def _keep_order(before: Settings, merged: Settings) -> Settings:
    """Keys where they were; taking ours out and putting them in again would move them to the end."""
    ordered = {name: merged[name] for name in before if name in merged}
    for name, value in merged.items():
        ordered.setdefault(name, value)
    for name in ("hooks", "env"):
        if isinstance(before.get(name), dict) and isinstance(ordered.get(name), dict):
            inner = ordered[name]
            ordered[name] = {key: inner[key] for key in before[name] if key in inner} | inner
    return ordered
