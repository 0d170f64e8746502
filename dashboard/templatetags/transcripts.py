"""Links from a finding to what was said: {% entry_url session_id uuid %}, {% call_url session_id call_id %}; to a call
in the timeline: {% numbered_call_url session_id agent_id number %}; and words that were looked for, marked in what was
said: {{ text|mark_words:words }}; the same with redaction marks as links to their rule:
{% said_text text words team %}; and text of a model as Markdown: {% said_markdown text words team %}."""

from django.template import Library
from django.urls import reverse
from django.utils.html import escape, format_html
from django.utils.safestring import SafeString

from dashboard.markdown import render_markdown
from dashboard.models import Team
from dashboard.pages import session_tabs, transcript_page
from dashboard.pages.redaction_page import cut_at_marks
from dashboard.pages.transcript_rows import compile_search

# A page shows many texts: rendering a longer one could take a quarter of a second.
MAX_MARKDOWN_CHARACTERS = 10_000

register = Library()
register.simple_tag(transcript_page.entry_url)
register.simple_tag(transcript_page.call_url)
register.simple_tag(session_tabs.numbered_call_url)


@register.filter
def mark_words(text: str, words: str) -> SafeString:
    """As the search finds them: whatever their case, across spaces and ends of lines."""
    pattern = compile_search(words)
    if pattern is None:
        return escape(text)
    pieces = pattern.split(text)  # what stands between the words, and the words, in turn
    return SafeString(
        "".join(f"<mark>{escape(piece)}</mark>" if odd % 2 else escape(piece) for odd, piece in enumerate(pieces))
    )


@register.simple_tag
def said_text(text: str, words: str, team: Team) -> SafeString:
    """The text with the words marked, and with each redaction mark as a link to the rule that left it."""
    if "[redacted:" not in text:
        return mark_words(text, words)
    address = escape(reverse("redaction", args=[team.slug]))
    pieces = (
        f'<a class="redacted" href="{address}?rule={piece.rule}" title="Rule {piece.rule}">{escape(piece.text)}</a>'
        if piece.rule
        else mark_words(piece.text, words)
        for piece in cut_at_marks(text)
    )
    return SafeString("".join(pieces))


@register.simple_tag
def said_markdown(text: str, words: str, team: Team) -> SafeString:
    """Return text as rendered Markdown; as it is written if it is long or if something in it is marked or linked."""
    pattern = compile_search(words)
    has_marks = "[redacted:" in text or (pattern is not None and pattern.search(text))
    if has_marks or len(text) > MAX_MARKDOWN_CHARACTERS:
        return format_html('<p class="told">{}</p>', said_text(text, words, team))
    return render_markdown(text)
