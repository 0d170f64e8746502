"""Values that fit their columns: cut, without NUL, dollars rounded as the database keeps them."""

from decimal import Decimal
from typing import Any

Row = dict[str, Any]  # column -> value

_USD = Decimal("0.00000001")
_LARGEST_USD = Decimal(10) ** 9
LARGEST_COUNT = 2**53 - 1


def fit(text: str | None, length: int) -> str:
    """PostgreSQL refuses NUL in text; a longer text is cut."""
    if text is None:
        return ""
    return text if len(text) <= length and "\x00" not in text else text.replace("\x00", "")[:length]


def fit_id(text: str | None) -> str:
    return fit(text, 200)


def fit_usd(amount: Decimal | None) -> Decimal | None:
    if amount is None:
        return None
    return (min(_LARGEST_USD, amount)).quantize(_USD)


def fit_count(number: int) -> int:
    return min(LARGEST_COUNT, number)
