"""The notes of a session as its page and the API show them: the sections, the versions, what changed between two."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from compaction.cache.text_diff import TextDiff, diff_text
from compaction.compactors.notes.template import NotesSection, parse_notes
from compaction.context.tokens import count_text_tokens
from dashboard import access
from dashboard.access import Act, Actor
from dashboard.automation.note_versions import PERSON, find_open_job
from dashboard.automation.wishes import NotesWriter, find_wish
from dashboard.models import AgentSession, NotesExtraction, SessionNote
from dashboard.pages.content_state import ContentState, find_content_state
from dashboard.pages.transcript_page import entry_url

WRITER_WORDS = {
    NotesWriter.EXTRACTIVE: "extracted without a model",
    NotesWriter.CLAUDE: "written by Claude",
    PERSON: "edited",
}


@dataclass(frozen=True)
class Version:
    """One of the kept versions, without its words."""

    number: int
    writer: str
    by: str
    at: datetime
    cost_usd: Decimal
    context_tokens: int
    is_shown: bool

    @property
    def words(self) -> str:
        said = WRITER_WORDS.get(self.writer, self.writer)
        return f"{said} by {self.by}" if self.by else said


@dataclass(frozen=True)
class NotesPage:
    """`shown` is the newest version, or the one asked for. Text, sections and diff are content: empty where it is
    withheld."""

    content_state: ContentState
    versions: tuple[Version, ...]
    shown: Version | None
    text: str
    tokens: int
    opening: str
    sections: tuple[NotesSection, ...]
    diff: TextDiff | None
    diff_from: int | None
    last_entry_uuid: str
    covered_url: str  # where the transcript tells the last entry they cover
    growth_tokens: int
    writer: NotesWriter
    is_under_way: bool
    refusal: str
    refused_at: datetime | None
    may_run: bool
    may_tune: bool

    @property
    def newest_number(self) -> int:
        return self.versions[0].number if self.versions else 0

    @property
    def is_newest(self) -> bool:
        return self.shown is not None and self.shown.number == self.newest_number

    @property
    def may_edit(self) -> bool:
        return self.may_run and bool(self.text) and self.is_newest


def read_notes_page(actor: Actor, session: AgentSession, *, number: int | None = None) -> NotesPage:
    """An unknown number is the newest one."""
    rows = SessionNote.objects.filter(session=session, agent_id="").order_by("-number")
    known = list(rows.defer("text").select_related(None))
    chosen = next((row for row in known if row.number == number), known[0] if known else None)
    before = next((row for row in known if chosen is not None and row.number < chosen.number), None)
    versions = tuple(_tell_version(row, is_shown=row is chosen) for row in known)
    state = find_content_state(actor, session)
    # Notes are words of the session, and stay readable while they are kept, whatever became of its transcript.
    reads = access.reads_content(actor, session)
    text = chosen.text if chosen is not None and reads else ""
    failed = _find_failure(session)
    sections = parse_notes(text)
    covered_uuid = chosen.last_entry_uuid if chosen is not None else ""
    return NotesPage(
        content_state=ContentState.SHOWN if reads and known else state,
        versions=versions,
        shown=next((version for version in versions if version.is_shown), None),
        text=text,
        tokens=count_text_tokens(text),
        opening="" if sections else text,
        sections=sections,
        diff=diff_text(before.text, text) if before is not None and text else None,
        diff_from=before.number if before is not None else None,
        last_entry_uuid=covered_uuid,
        covered_url=entry_url(session.pk, covered_uuid) if covered_uuid and text and session.has_content else "",
        growth_tokens=max(0, session.context_tokens - chosen.context_tokens) if chosen is not None else 0,
        writer=find_wish(session.team).notes_writer,
        is_under_way=find_open_job(session) is not None,
        refusal=str((failed.job.result or {}).get("refusal", "")) if failed else "",
        refused_at=failed.job.finished_at if failed else None,
        may_run=access.may_run(actor, session),
        may_tune=actor.may(Act.TUNE, session.team),
    )


def _tell_version(row: SessionNote, *, is_shown: bool) -> Version:
    return Version(
        row.number, row.writer, row.edited_by_name, row.written_at, row.cost_usd, row.context_tokens, is_shown
    )


def _find_failure(session: AgentSession) -> NotesExtraction | None:
    """The last try, if it came to nothing."""
    rows = NotesExtraction.objects.filter(session=session, agent_id="", job__finished_at__isnull=False)
    return rows.select_related("job").first()
