"""Titles of conversations: how a text begins."""

LONGEST_TITLE = 120


def cut_title(words: str, longest: int = LONGEST_TITLE) -> str:
    """All of it, or its beginning up to the end of a word, with an ellipsis for what is left out."""
    if len(words) <= longest:
        return words
    whole, _, _ = words[:longest].rpartition(" ")
    # A word as long as a title is cut where it must be.
    begin = whole if len(whole) > longest // 2 else words[: longest - 1]
    return f"{begin.rstrip(' ,;:.')}…"
