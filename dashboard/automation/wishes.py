"""What a team wants done without being asked: read, and changed with an entry in the audit log."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import transaction
from django.utils import timezone

from compaction.compactors.notes.template import DEFAULT_TEMPLATE, require_valid_template
from compaction.errors import BadNotesTemplate
from dashboard.accounts import audit
from dashboard.accounts.refusals import Refused
from dashboard.models import AuditAction, AutomaticMode, AutomationSettings, SummarizerName, Team, User
from dashboard.runs.settings_changes import BadChoice, Fault

LONGEST_TEMPLATE = 20_000  # characters


class NotesWriter(StrEnum):
    """Who takes notes while a session goes on."""

    OFF = "off"
    EXTRACTIVE = "extractive"
    CLAUDE = "claude"


@dataclass(frozen=True)
class Wish:
    """What is in force. `notes_template` is never empty: where the team wrote none it is the engine's."""

    mode: AutomaticMode = AutomaticMode.SUGGEST
    summarizer: SummarizerName = SummarizerName.EXTRACTIVE
    notes_writer: NotesWriter = NotesWriter.OFF
    notes_template: str = DEFAULT_TEMPLATE
    has_own_template: bool = False
    stamp: str = ""  # of the stored row: what a person looked at before changing it
    changed_by_name: str = ""
    changed_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class WishChange:
    """What to change; None stays as it is. An empty template is the engine's own."""

    mode: AutomaticMode | None = None
    summarizer: SummarizerName | None = None
    notes_writer: NotesWriter | None = None
    notes_template: str | None = None


def find_wish(team: Team) -> Wish:
    """One query."""
    row = AutomationSettings.objects.filter(team=team).select_related("changed_by").first()
    if row is None:
        return Wish()
    return Wish(
        mode=AutomaticMode(row.mode),
        summarizer=SummarizerName(row.summarizer),
        notes_writer=NotesWriter(row.notes_writer),
        notes_template=row.notes_template or DEFAULT_TEMPLATE,
        has_own_template=bool(row.notes_template),
        stamp=row.changed_at.isoformat(),
        changed_by_name=row.changed_by.username if row.changed_by else "",
        changed_at=row.changed_at,
    )


@transaction.atomic
def change_wish(team: Team, change: WishChange, *, by: User | None, stamp: str | None = None) -> None:
    """`stamp` is what the person looked at: what came since is never overwritten (Refused). Raises BadChoice.

    Values that are in force already write nothing.
    """
    faults = list(find_faults(change))
    if faults:
        raise BadChoice(faults)
    # The row of the team is there from the start, so two first savers meet as well.
    Team.objects.select_for_update().get(pk=team.pk)
    row = AutomationSettings.objects.select_related("changed_by").filter(team=team).first()
    found = row or AutomationSettings(team=team)
    told = list(_apply(found, change))
    if not told:
        return
    if stamp is not None and stamp != (row.changed_at.isoformat() if row else ""):
        who = found.changed_by.username if found.changed_by else "Someone"
        raise Refused(
            f"{who} changed these settings in the meantime, so nothing was saved. Review them, then save again."
        )
    found.changed_by, found.changed_at = by, timezone.now()
    found.save()
    audit.note(team, AuditAction.AUTOMATION_CHANGED, by=by, subject="automatic mode", changes=told)


def find_faults(change: WishChange) -> Iterator[Fault]:
    if change.summarizer in (SummarizerName.NONE, SummarizerName.NATIVE):
        yield Fault("summarizer", "Automatic runs need a written summary: choose extractive or claude.")
    template = change.notes_template
    if not template:
        return
    if len(template) > LONGEST_TEMPLATE:
        yield Fault("notes_template", f"The template has more than {LONGEST_TEMPLATE:,} characters.")
        return
    try:
        require_valid_template(template)
    except BadNotesTemplate as error:
        yield Fault("notes_template", str(error))


def _apply(row: AutomationSettings, change: WishChange) -> Iterator[str]:
    """Sets what differs and tells it, field by field."""
    for name in ("mode", "summarizer", "notes_writer"):
        wanted = getattr(change, name)
        if wanted is not None and wanted != getattr(row, name):
            yield f"{name.replace('_', ' ')}: {getattr(row, name)} to {wanted}"
            setattr(row, name, wanted.value)
    if change.notes_template is not None:
        template = change.notes_template.replace("\r\n", "\n").strip()
        template = "" if template == DEFAULT_TEMPLATE.strip() else template
        if template != row.notes_template:
            row.notes_template = template
            yield "notes template: custom" if template else "notes template: default"
