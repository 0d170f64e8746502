"""Secrets out of text before it is stored: bytes in, the same bytes with marks such as [redacted:github-token] out."""

from dashboard.ingest.redaction.forms import ASSIGNED, FORMS, Assigned, Form
from dashboard.ingest.redaction.marks import MARK
from dashboard.ingest.redaction.own_patterns import BadPattern, find_unusable
from dashboard.ingest.redaction.redactor import Redacted, Redactor

__all__ = ["ASSIGNED", "FORMS", "MARK", "Assigned", "BadPattern", "Form", "Redacted", "Redactor", "find_unusable"]
