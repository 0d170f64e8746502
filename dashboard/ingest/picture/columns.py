"""Values that fit their columns: cut, without NUL, dollars rounded as the database keeps them."""

from decimal import Decimal
from typing import Any

Row = dict[str, Any]  # column -> value

_USD = Decimal("0.00000001")
_LARGEST_USD = Decimal(10) ** 9
_LARGEST_COUNT = 2**53 - 1


def fit(text: str | None, length: int) -> str:
    """PostgreSQL refuses NUL in text; a longer text is cut."""
    return (text or "").replace("\x00", "")[:length]


def fit_id(text: str | None) -> str:
    return fit(text, 200)


def fit_usd(amount: Decimal | None) -> Decimal | None:
    return None if amount is None else min(amount, _LARGEST_USD).quantize(_USD)


def fit_count(number: int) -> int:
    return min(number, _LARGEST_COUNT)
