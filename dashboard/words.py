"""Numbers in words, the same on pages, gauges and charts: tokens, dollars, shares, ranges. Unknown is said."""

import re
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

UNKNOWN = "unknown"
_RELEASED = re.compile(r"-20\d{6}(?=$|\[)")
_SPANS = ((86_400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s"))
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


def name_prices(*, has_own: bool) -> str:
    """Return the label of dollars: a team's own prices take precedence for the models it entered one for."""
    return "your prices where set" if has_own else "list price"


def say_size(count: int | None) -> str:
    """A round figure short, such as a window: 200k, 1M; any other as tokens are said."""
    return say_tokens(count).replace(".0k", "k").replace(".00M", "M")


def format_size(count: int | None, *, is_estimated: bool = False) -> str:
    """Return a context's size for a sentence: 167,300 -> 167k, 8,240 -> 8.2k; estimates with a tilde."""
    if count is None:
        return UNKNOWN
    is_rounded = 9_950 <= count < 999_500
    size = f"{Decimal(count) / 1000:.0f}k" if is_rounded else say_size(count)
    return f"~{size}" if is_estimated else size


def format_size_change(
    before: int | None, after: int | None, *, is_before_estimated: bool = False, is_after_estimated: bool = False
) -> str:
    """Return what a compaction did to a context: 167k → 36k."""
    sizes = (format_size(before, is_estimated=is_before_estimated), format_size(after, is_estimated=is_after_estimated))
    return " → ".join(sizes)


def saves_nothing(before: int | None, after: int | None) -> bool:
    """Return whether a compaction left the context as large as it was, or larger."""
    return before is not None and after is not None and after >= before


def title_compaction(
    before: int | None,
    after: int | None,
    *,
    verb: str = "Compacted",
    ending: str = "",
    is_before_estimated: bool = False,
    is_after_estimated: bool = False,
) -> str:
    """Return the title of a finished compaction, such as "Grew from 23k to ~26k tokens: nothing saved"."""
    sizes = [format_size(before, is_estimated=is_before_estimated), format_size(after, is_estimated=is_after_estimated)]
    if format_size(before) == format_size(after):  # too close for round figures
        marks = ("~" if is_before_estimated else "", "~" if is_after_estimated else "")
        sizes = [f"{mark}{say_tokens(count)}" for mark, count in zip(marks, (before, after), strict=True)]
    if not saves_nothing(before, after):
        return f"{verb} {sizes[0]} to {sizes[1]}{ending}"
    if say_tokens(before) == say_tokens(after):
        return f"Stayed at {sizes[1]} tokens: nothing saved"
    return f"Grew from {sizes[0]} to {sizes[1]} tokens: nothing saved"


def format_freed(before: int | None, after: int | None, saved: int | None, *, is_estimated: bool = False) -> str:
    """Return what a compaction freed, for a list: ~116.0k freed; grew, nothing saved."""
    if saves_nothing(before, after):
        return "nothing saved" if before == after else "grew, nothing saved"
    if saved == 0:
        return "nothing saved"
    return f"{'~' if is_estimated and saved is not None else ''}{say_tokens(saved)} freed"


def format_lost_count(count: int | None) -> str:
    """Return how much a compaction lost, as the end of a title."""
    if count is None:
        return "losses not measured"
    return "nothing lost" if count == 0 else f"{count:,} thing{'' if count == 1 else 's'} lost"


def say_model(name: str) -> str:
    """claude-opus-4-5-20251101 -> opus-4-5, where the whole name is told beside it."""
    return _RELEASED.sub("", name.removeprefix("claude-"))


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


def format_retained(percent: Decimal | None) -> str:
    """83.3 -> ~83%: an estimate, so without decimals."""
    if percent is None:
        return UNKNOWN
    words = say_percent(percent / 100)
    return words if words[0] in "<>" else f"~{words}"


def say_seconds(seconds: float | None) -> str:
    """0.041 -> 41 ms; 5.07 -> 5.1 s; 615 -> 10 min 15 s; 9000 -> 2 h 30 min."""
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for unit_seconds, unit, smaller_seconds, smaller in _SPANS:
        if whole >= unit_seconds:
            rest = whole % unit_seconds // smaller_seconds
            return f"{whole // unit_seconds} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def say_range(likely: int, ends: tuple[int, int], unit: str) -> str:
    """12, (8, 20), "turn" -> ~12 turns (8-20). What rounds to nothing is still to come."""
    low, high = ends
    if likely == 0:
        return f"less than a {unit}" if high <= 1 else f"less than a {unit} (0-{high:,})"
    words = f"~{likely:,} {unit}" if likely == 1 else f"~{likely:,} {unit}s"
    return words if low == high else f"{words} ({low:,}-{high:,})"


def join_words(words: Sequence[str]) -> str:
    """a; a and b; a, b and c."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"
