"""Links from a finding to what was said: {% entry_url session_id uuid %}, {% call_url session_id call_id %}; to a call
in the timeline: {% numbered_call_url session_id agent_id number %}; and words that were looked for, marked in what was
said: {{ text|mark_words:words }}."""

import re
from functools import lru_cache

from django.template import Library
from django.utils.html import escape
from django.utils.safestring import SafeString

from dashboard.pages import session_tabs, transcript_page

register = Library()
register.simple_tag(transcript_page.entry_url)
register.simple_tag(transcript_page.call_url)
register.simple_tag(session_tabs.numbered_call_url)


@register.filter
def mark_words(text: str, words: str) -> SafeString:
    """As the search finds them: whatever their case, across spaces and ends of lines."""
    if not words or not words.strip():
        return escape(text)
    pieces = _make_pattern(words).split(text)  # what stands between the words, and the words, in turn
    return SafeString(
        "".join(f"<mark>{escape(piece)}</mark>" if odd % 2 else escape(piece) for odd, piece in enumerate(pieces))
    )


@lru_cache(maxsize=64)
def _make_pattern(words: str) -> re.Pattern[str]:
    spaced = r"\s+".join(map(re.escape, words.split()))
    return re.compile(f"({spaced})", re.IGNORECASE)
