"""Sentences and lines of a text."""

import re

_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")


def split_sentences(text: str) -> list[str]:
    """Sentences and lines."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]
