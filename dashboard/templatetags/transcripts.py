"""Links from a finding to what was said: {% entry_url session_id uuid %}, {% call_url session_id call_id %}."""

from django.template import Library

from dashboard.pages import transcript_page

register = Library()
register.simple_tag(transcript_page.entry_url)
register.simple_tag(transcript_page.call_url)
