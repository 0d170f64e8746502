"""How JSON of ours writes what JSON has no form for: times as Django writes them, decimals with plain digits."""

from datetime import UTC, datetime
from decimal import Decimal

from django.core.serializers.json import DjangoJSONEncoder

_ENCODER = DjangoJSONEncoder()


def spell_decimal(value: Decimal) -> str:
    """0.00000000, never 0E-8: many programs take that for text."""
    return f"{value:f}"


def write_value(value: object) -> object:
    """Times of UTC and dollars, which every row has, without the encoder's questions; the rest by the encoder."""
    if type(value) is datetime and value.tzinfo is UTC:
        letters = value.isoformat(timespec="milliseconds" if value.microsecond else "seconds")
        return f"{letters[: -len('+00:00')]}Z"
    return spell_decimal(value) if isinstance(value, Decimal) else _ENCODER.default(value)
