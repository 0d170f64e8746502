"""Text that people type or models write, made fit to be stored: secrets marked, nothing a database refuses."""

from collections.abc import Mapping

from dashboard.ingest.redaction import Redactor, find_unusable
from dashboard.models import Team
from dashboard.policies.in_force import find_policy


def clean_text(team: Team, text: str) -> str:
    """What is stored of a conversation is redacted; what is written about it is no exception."""
    return redact_text(team, text)[0]


def redact_text(team: Team, text: str) -> tuple[str, Mapping[str, int]]:
    """Return the text as it is stored, and how many marks of each rule it got."""
    plain = text.replace("\x00", "").encode("utf-8", "replace")
    if not plain:
        return "", {}
    settings = find_policy(team)
    patterns = settings.own_patterns
    unusable = find_unusable(patterns)
    if unusable:
        # They may stand for anything in the text.
        return " ".join(f"[redacted:{name}]" for name in unusable), dict.fromkeys(unusable, 1)
    redacted = Redactor.with_own(patterns, settings.disabled_rules).redact(plain)
    return redacted.data.decode("utf-8", "replace"), redacted.counts
