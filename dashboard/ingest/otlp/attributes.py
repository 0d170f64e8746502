"""Attributes read leniently: numbers also as text, which is how some events of Claude Code write them."""

import json
import math
import re
from decimal import Decimal, InvalidOperation
from hashlib import blake2b

from compaction.transcripts.json_fields import LARGEST_COUNT
from dashboard.ingest.observed import Rules
from dashboard.ingest.otlp.values import Attributes, Value
from dashboard.ingest.transcripts import find_redactor

_NUMBER = re.compile(r"\d{1,20}(?:\.\d{1,20})?")
_LONGEST_NAME = 200


def find_text(attributes: Attributes, *names: str) -> str | None:
    """The first of these that is a text and not empty."""
    for name in names:
        value = attributes.get(name)
        if isinstance(value, str) and value:
            return value
    return None


def find_name(attributes: Attributes, *names: str) -> str | None:
    """An id or the like: short."""
    text = find_text(attributes, *names)
    return text[:_LONGEST_NAME] if text else None


def find_clean_name(attributes: Attributes, rules: Rules, *names: str) -> str | None:
    """A name that people or programs chose: without secrets, and short."""
    return clean_name(find_text(attributes, *names) or "", rules)


def clean_name(text: str, rules: Rules, longest: int = _LONGEST_NAME) -> str | None:
    return find_redactor(rules).clean_start(text, longest) or None


def find_number(attributes: Attributes, *names: str) -> float | None:
    for name in names:
        value = attributes.get(name)
        if isinstance(value, str) and _NUMBER.fullmatch(value):
            value = float(value) if "." in value else int(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        if math.isfinite(value) and 0 <= value <= LARGEST_COUNT:
            return value
    return None


def find_count(attributes: Attributes, *names: str) -> int | None:
    number = find_number(attributes, *names)
    return None if number is None else int(number)


def find_seconds(attributes: Attributes, *names: str) -> float | None:
    """Milliseconds under one of these names, as seconds."""
    number = find_number(attributes, *names)
    return None if number is None else number / 1000


def find_usd(attributes: Attributes) -> str | None:
    """Micro-dollars are exact, dollars are not."""
    micros = find_count(attributes, "cost_usd_micros")
    if micros is not None:
        return str(Decimal(micros).scaleb(-6))
    number = find_number(attributes, "cost_usd")
    return None if number is None else spell_usd(number)


def spell_usd(number: float) -> str | None:
    try:
        return str(Decimal(repr(number)).quantize(Decimal("0.00000001")))
    except InvalidOperation:
        return None


def is_true(value: Value) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true")


def hash_attributes(attributes: Attributes) -> str:
    """A name for what brings none: the same attributes are the same thing."""
    text = json.dumps(attributes, sort_keys=True, default=repr)
    return blake2b(text.encode("utf-8", "replace"), digest_size=12).hexdigest()
