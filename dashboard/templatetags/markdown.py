"""Markdown in templates: {{ text|markdown }}, or {{ text|markdown:4 }} where it stands below an h3."""

from django.template import Library

from dashboard.markdown import render_markdown

register = Library()
register.filter("markdown", render_markdown)
