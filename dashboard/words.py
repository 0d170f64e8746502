"""Numbers in words, the same on pages, gauges and charts: tokens, dollars, shares, ranges. Unknown is said."""

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

UNKNOWN = "unknown"
_CENT, _SMALLEST = Decimal("0.01"), Decimal("0.0001")


def say_tokens(count: int | None) -> str:
    """167000 -> 167.0k. An unknown count is said, never drawn as zero."""
    if count is None:
        return UNKNOWN
    if abs(count) < 1000:
        return str(count)
    # 999,950 would round to 1000.0k.
    if abs(count) < 999_950:
        return f"{Decimal(count) / 1000:.1f}k"
    return f"{Decimal(count) / 1_000_000:.2f}M"


def say_size(count: int) -> str:
    """A round figure short, such as a window: 200k, 1M; any other as tokens are said."""
    return say_tokens(count).replace(".0k", "k").replace(".00M", "M")


def say_usd(amount: Decimal | None) -> str:
    """Cents, half up; below a cent four digits, so that a small amount is not shown as nothing."""
    if amount is None:
        return UNKNOWN
    sign = "−" if amount < 0 else ""  # noqa: RUF001 (a minus sign lines up with digits, a hyphen does not)
    size = abs(amount)
    if 0 < size < _CENT:
        small = size.quantize(_SMALLEST, ROUND_HALF_UP)
        if small < _SMALLEST:
            return f"{sign}<${_SMALLEST}"
        if small < _CENT:
            return f"{sign}${small}"
    return f"{sign}${size.quantize(_CENT, ROUND_HALF_UP):,}"


def say_percent(share: float | Decimal | None) -> str:
    """0.914 -> 91%. What is not quite nothing or not quite all is not rounded to it."""
    if share is None:
        return UNKNOWN
    words = f"{share * 100:.0f}%"
    if words == "0%" and share > 0:
        return "<1%"
    return ">99%" if words == "100%" and share < 1 else words


def say_range(likely: int, ends: tuple[int, int], unit: str) -> str:
    """12, (8, 20), "turn" -> ~12 turns (8-20)."""
    low, high = ends
    words = f"~{likely:,} {unit}" if likely == 1 else f"~{likely:,} {unit}s"
    return words if low == high else f"{words} ({low:,}-{high:,})"


def join_words(words: Sequence[str]) -> str:
    """a; a and b; a, b and c."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
