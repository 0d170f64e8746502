"""Reports of false redactions: written by people, listed by rule, resolved by admins. What was redacted is never in
them, for nobody has it."""

from django.db import transaction

from dashboard.accounts import audit
from dashboard.accounts.refusals import Refused
from dashboard.ingest.redaction import ALWAYS_ON, Redactor, find_unusable
from dashboard.models import AuditAction, RedactionReport, Team, User
from dashboard.policies.in_force import TeamSettings

LONGEST_NOTE = 500
LONGEST_EXAMPLE = 2_000
MOST_REPORTS = 500  # open ones of a team


@transaction.atomic
def report_false_redaction(
    team: Team, settings: TeamSettings, rule: str, *, note: str, example: str, by: User
) -> RedactionReport:
    """Note and example are redacted and cut. Raises Refused while too many reports are open."""
    if RedactionReport.objects.filter(team=team).count() >= MOST_REPORTS:
        raise Refused(f"The team has {MOST_REPORTS} open reports. Ask an admin to resolve some first.")
    # An example may show what the rule takes for a secret, and nothing that another rule does; not even that where a
    # rule stays on.
    shown = frozenset({rule}) - ALWAYS_ON
    report = RedactionReport.objects.create(
        team=team,
        rule=rule,
        reported_by=by,
        reported_by_name=by.username,
        note=_redact(settings, note, frozenset())[:LONGEST_NOTE],
        example=_redact(settings, example, shown)[:LONGEST_EXAMPLE],
    )
    audit.note(team, AuditAction.REDACTION_REPORTED, by=by, subject=rule)
    return report


@transaction.atomic
def resolve_report(report: RedactionReport, *, by: User) -> None:
    """Delete a report."""
    audit.note(report.team, AuditAction.REDACTION_RESOLVED, by=by, subject=report.rule)
    report.delete()


def _redact(settings: TeamSettings, text: str, left_out: frozenset[str]) -> str:
    """All rules redact it, also those that the team has switched off."""
    plain = text.replace("\x00", "").strip()
    if not plain:
        return ""
    if unusable := find_unusable(settings.own_patterns):
        return " ".join(f"[redacted:{name}]" for name in unusable)
    redacted = Redactor.with_own(settings.own_patterns, left_out).redact(plain.encode("utf-8", "replace"))
    return redacted.data.decode("utf-8", "replace")
