"""Secrets out of text before it is stored: bytes in, the same bytes with marks such as [redacted:github-token] out."""

from dashboard.ingest.redaction.forms import ASSIGNED, FORMS, Assigned, Form
from dashboard.ingest.redaction.marks import MARK, MARKS
from dashboard.ingest.redaction.own_patterns import BadPattern, find_unusable
from dashboard.ingest.redaction.redactor import Redacted, Redactor
from dashboard.ingest.redaction.rules import ALWAYS_ON, Rule, list_rules, rule_names

__all__ = [
    "ALWAYS_ON",
    "ASSIGNED",
    "FORMS",
    "MARK",
    "MARKS",
    "Assigned",
    "BadPattern",
    "Form",
    "Redacted",
    "Redactor",
    "Rule",
    "find_unusable",
    "list_rules",
    "rule_names",
]
