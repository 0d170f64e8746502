"""What the page Redaction shows: rules with counts, a tried text piece by piece, open reports."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from dashboard import access
from dashboard.access import Actor
from dashboard.ingest.redaction import Redactor
from dashboard.models import COUNTED_SINCE, AgentSession, RedactionReport, Team
from dashboard.pages.redaction_forms import RedactionDraft
from dashboard.policies.in_force import TeamSettings
from dashboard.policies.redaction_rules import TeamRule, list_team_rules

REPORTS_SHOWN = 50
_MARK = re.compile(r"\[redacted:([a-z][a-z0-9-]{0,39})\]")


@dataclass(frozen=True)
class TextPiece:
    """Text between marks, or a mark: then `rule` names it."""

    text: str
    rule: str = ""


@dataclass(frozen=True)
class TriedText:
    """A pasted text as it would be stored, and how many marks it got by rule."""

    pieces: tuple[TextPiece, ...]
    counts: Mapping[str, int]


@dataclass(frozen=True)
class RedactionPage:
    """Everything the page shows besides its forms."""

    rules: Sequence[TeamRule]
    reports: Sequence[RedactionReport]
    uncounted_sessions: int  # stored by an earlier version, whose marks are not counted yet

    @cached_property
    def shown_rules(self) -> list[TeamRule]:
        """Rules with marks or reports, rules that are off, and the team's own."""
        return [rule for rule in self.rules if not _is_idle(rule)]

    @cached_property
    def idle_rules(self) -> list[TeamRule]:
        """Built-in rules that are on and never redacted anything."""
        return [rule for rule in self.rules if _is_idle(rule)]

    @property
    def mark_count(self) -> int:
        return sum(rule.mark_count for rule in self.rules)

    @property
    def recent_mark_count(self) -> int:
        return sum(rule.recent_mark_count for rule in self.rules)

    @property
    def off_count(self) -> int:
        return sum(rule.can_be_switched and not rule.is_on for rule in self.rules)

    @property
    def on_count(self) -> int:
        return sum(rule.is_on for rule in self.rules)

    @property
    def report_count(self) -> int:
        return sum(rule.report_count for rule in self.rules)

    def find(self, name: str) -> TeamRule | None:
        """Return the rule of that name."""
        return next((rule for rule in self.rules if rule.name == name), None)


def _is_idle(rule: TeamRule) -> bool:
    is_plain = rule.is_on and rule.kind == "built_in"
    return is_plain and not rule.mark_count and not rule.report_count


def read_redaction_page(actor: Actor, team: Team, settings: TeamSettings) -> RedactionPage:
    """Five queries at most, however many marks there are."""
    reports = access.redaction_reports(actor, team.slug)
    rules = list_team_rules(team, settings, access.redaction_counts(actor, team.slug), reports)
    uncounted = AgentSession.objects.filter(team=team, has_content=True, projection_version__lt=COUNTED_SINCE)
    return RedactionPage(rules, list(reports[:REPORTS_SHOWN]), uncounted.count())


def try_text(draft: RedactionDraft) -> TriedText:
    """Redact the pasted text as the draft says."""
    redacted = Redactor.with_own(draft.patterns, draft.disabled_rules).redact(draft.sample.encode())
    counts = sorted(redacted.counts.items(), key=lambda item: (-item[1], item[0]))
    return TriedText(tuple(cut_at_marks(redacted.data.decode(errors="replace"))), dict(counts))


def cut_at_marks(text: str) -> Iterator[TextPiece]:
    """Yield the text and its marks in turn."""
    done = 0
    for mark in _MARK.finditer(text):
        if mark.start() > done:
            yield TextPiece(text[done : mark.start()])
        yield TextPiece(mark[0], mark[1])
        done = mark.end()
    if done < len(text):
        yield TextPiece(text[done:])
