"""Titles of conversations: the beginning of a text."""

LONGEST_TITLE = 120


def cut_title(text: str, longest: int = LONGEST_TITLE) -> str:
    """Return the text, or its beginning up to the end of a word with an ellipsis."""
    if len(text) <= longest:
        return text
    whole, _, _ = text[:longest].rpartition(" ")
    # A word as long as a title is cut where it must be.
    begin = whole if len(whole) > longest // 2 else text[: longest - 1]
    return f"{begin.rstrip(' ,;:.')}…"
