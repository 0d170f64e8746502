"""Text that people type or models write, made fit to be stored: secrets marked, nothing a database refuses."""

from dashboard.ingest.redaction import Redactor, find_unusable
from dashboard.models import Team
from dashboard.policies.in_force import find_policy


def clean_text(team: Team, text: str) -> str:
    """What is stored of a conversation is redacted; what is written about it is no exception."""
    plain = text.replace("\x00", "").encode("utf-8", "replace")
    if not plain:
        return ""
    patterns = find_policy(team).own_patterns
    unusable = find_unusable(patterns)
    if unusable:
        # They may stand for anything in the text.
        return " ".join(f"[redacted:{name}]" for name in unusable)
    return Redactor.with_own(patterns).redact(plain).data.decode("utf-8", "replace")
