"""Parses single values of a policy: the text of a team's form, or a client's variable.

A team's invalid value raises BadPolicy with a sentence; a client's is ignored with a note, as the client ignores it.
"""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from compaction.context.cache_ttl import CacheTtl
from compaction.errors import BadPolicy

# The client takes CLAUDE_CODE_AUTO_COMPACT_WINDOW as a plain integer in this range only.
CLIENT_WINDOW_RANGE = range(100_000, 1_000_001)
# 100 times any window on offer: catches a typing error before it reaches a column.
LARGEST_TOKENS = 100_000_000

_TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
_FALSE_WORDS = frozenset({"0", "false", "no", "off"})
_LEADING_NUMBER = re.compile(r"^\s*[+]?(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)

_TITLES = {
    "auto_margin_tokens": "The auto-compact margin",
    "warning_margin_tokens": "The warning margin",
    "error_margin_tokens": "The error margin",
    "blocking_margin_tokens": "The blocking margin",
    "auto_percent": "The auto-compact percentage",
    "window_tokens": "The window",
    "max_output_tokens": "The max output",
    "reserve_tokens": "The reserve",
}


def read_team_value(setting: str, value: object) -> bool | int | Decimal:
    """Return a form's text or a stored value in the type of its setting. Raise BadPolicy with a sentence."""
    if setting.startswith("is_"):
        return _read_switch(setting, value)
    if setting == "auto_percent":
        return _read_team_percent(value)
    least = 1 if setting in ("window_tokens", "max_output_tokens") else 0
    tokens = _read_tokens(setting, value)
    if not least <= tokens <= LARGEST_TOKENS:
        raise BadPolicy(setting, f"{_TITLES[setting]} must be from {least} to {LARGEST_TOKENS:,} tokens, not {tokens}.")
    return tokens


def read_client_percent(value: object, notes: list[str]) -> Decimal | None:
    """Return CLAUDE_AUTOCOMPACT_PCT_OVERRIDE: a number from 1 to 100, else ignored with a note."""
    if value in (None, ""):
        return None
    # The client reads the leading number of the text, so "80%" means 80.
    matched = _LEADING_NUMBER.match(str(value))
    percent = Decimal(matched[1]) if matched else Decimal(0)
    if 1 <= percent <= 100:
        return percent
    notes.append("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE is ignored: it is not a number from 1 to 100.")
    return None


def read_client_window(mapping: Mapping[str, object], notes: list[str]) -> int | None:
    """Return the auto-compact window: the variable overrides the key of the same meaning in the settings file."""
    for name in ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "autoCompactWindow"):
        value = mapping.get(name)
        if value in (None, "", "auto"):
            continue
        window = _read_whole_number(value)
        if window in CLIENT_WINDOW_RANGE:
            return window
        notes.append(f"{name} is ignored: it is not a whole number from 100,000 to 1,000,000.")
    return None


def read_client_max_output(value: object, notes: list[str]) -> int | None:
    """Return CLAUDE_CODE_MAX_OUTPUT_TOKENS: a whole number above 0, else ignored with a note."""
    if value in (None, ""):
        return None
    tokens = _read_whole_number(value)
    if tokens:
        return tokens
    notes.append("CLAUDE_CODE_MAX_OUTPUT_TOKENS is ignored: it is not a whole number above 0.")
    return None


def read_client_cache_ttl(mapping: Mapping[str, object]) -> CacheTtl | None:
    """Return what the caching switches ask for, None when none is set: DISABLE wins over FORCE, FORCE over ENABLE."""
    if is_on(mapping.get("DISABLE_PROMPT_CACHING")):
        return CacheTtl.OFF
    if is_on(mapping.get("FORCE_PROMPT_CACHING_5M")):
        return CacheTtl.FIVE_MINUTES
    if is_on(mapping.get("ENABLE_PROMPT_CACHING_1H")):
        return CacheTtl.ONE_HOUR
    return None


def is_on(value: object) -> bool:
    """Return whether a client's switch is set to one of the four words for it."""
    return str(value).strip().lower() in _TRUE_WORDS


def is_off(value: object) -> bool:
    """Return whether a client's setting is switched off by one of the four words for it; an absent one is not."""
    return str(value).strip().lower() in _FALSE_WORDS


def _read_switch(setting: str, value: object) -> bool:
    if is_on(value):
        return True
    if is_off(value):
        return False
    raise BadPolicy(setting, f'A switch is either on or off, not "{_shorten(value)}".')


def _read_team_percent(value: object) -> Decimal:
    sentence = f"{_TITLES['auto_percent']} must be a number from 1 to 100, not {_shorten(value)}."
    try:
        percent = Decimal(str(value).strip())
    except InvalidOperation:
        raise BadPolicy("auto_percent", sentence) from None
    if not percent.is_finite() or not 1 <= percent <= 100:
        raise BadPolicy("auto_percent", sentence)
    return percent


def _read_tokens(setting: str, value: object) -> int:
    text = str(value).strip().replace(",", "").replace("_", "")
    digits = text.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 12:
        raise BadPolicy(setting, f'{_TITLES[setting]} must be a whole number of tokens, not "{_shorten(value)}".')
    return int(text)


def _read_whole_number(value: object) -> int | None:
    text = str(value).strip()
    # Ten digits are more than any window or output.
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 10 else None


def _shorten(value: object) -> str:
    text = str(value)
    return text if len(text) <= 40 else f"{text[:40]}..."
