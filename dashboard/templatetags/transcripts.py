"""Links from a finding to what was said: {% entry_url session_id uuid %}, {% call_url session_id call_id %}; and to a
call in the timeline: {% numbered_call_url session_id agent_id number %}."""

from django.template import Library

from dashboard.pages import session_tabs, transcript_page

register = Library()
register.simple_tag(transcript_page.entry_url)
register.simple_tag(transcript_page.call_url)
register.simple_tag(session_tabs.numbered_call_url)
