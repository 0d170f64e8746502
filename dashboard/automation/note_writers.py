"""Who writes notes: quoted without a model, or asked of one, paid for out of the team's day."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from django.utils import timezone

from compaction.compactors.notes.extractive import build_extractive_notes, find_edited_sections
from compaction.compactors.notes.template import build_extraction_prompt, parse_extraction, parse_notes
from compaction.compactors.summary.answer import require_usable_answer
from compaction.compactors.summary.plain_request import build_plain_request
from compaction.ports import SilentMonitor, Variant
from dashboard.automation.note_versions import PERSON
from dashboard.automation.wishes import NotesWriter
from dashboard.jobs.run import JobRun
from dashboard.models import AgentSession, SessionNote, SummarizerName, Team
from dashboard.runs.attempt_rows import find_attempt_cost
from dashboard.runs.attempts import COUNT_PATH, AttemptReport
from dashboard.runs.basis import Basis
from dashboard.runs.choices import RunChoices, RunRefused
from dashboard.runs.costs import choose_models
from dashboard.runs.spend import NOTHING, reserve, settle
from dashboard.runs.summarizers import open_summarizer
from dashboard.runs.team_settings import SummarizerChoice, find_settings
from dashboard.runs.texts import redact_text


@dataclass(frozen=True)
class Written:
    """Notes that are not a version yet."""

    text: str
    writer: NotesWriter
    cost_usd: Decimal = NOTHING
    redactions: Mapping[str, int] = field(default_factory=dict)  # marks that the text got, by rule


def write_notes(job: JobRun, basis: Basis, writer: NotesWriter, template: str) -> Written:
    """Reads no more than is stored, so what was redacted stays so. Raises RunRefused or a RunError."""
    if writer is NotesWriter.CLAUDE:
        return _ask_claude(job, basis, template)
    own_words = _find_own_words(basis.session, basis.agent_id)
    text = build_extractive_notes(basis.context.entries, template=template, edited_sections=own_words)
    return Written(text, NotesWriter.EXTRACTIVE)


def _find_own_words(session: AgentSession, agent_id: str) -> dict[str, str]:
    versions = SessionNote.objects.filter(session=session, agent_id=agent_id)
    if not versions.filter(writer=PERSON).exists():
        return {}
    history = versions.order_by("number").values_list("writer", "text")
    return find_edited_sections([(writer == PERSON, text) for writer, text in history])


def _ask_claude(job: JobRun, basis: Basis, template: str) -> Written:
    team = basis.session.team
    settings = find_settings(team)
    if not settings.has_key:
        missing = "No API key is set for this team, so no model can take notes. An admin can set one."
        raise RunRefused("no_key", settings.key_problem or missing)
    versions = SessionNote.objects.filter(session=basis.session, agent_id=basis.agent_id).order_by("-number")
    current = versions.values_list("text", flat=True).first() or ""
    choices = RunChoices(summarizer=SummarizerName.CLAUDE)
    models = choose_models(basis, choices, settings)
    prompt = build_extraction_prompt(current, template=template)
    request = build_plain_request(Variant.FULL, basis.context.entries, prompt, models)
    # Named, so that the answer is not held against the sections of a summary.
    names = tuple(section.name for section in parse_notes(current or template))
    book = NotesBook(job, team, settings)
    summarizer = open_summarizer(choices, basis, book, settings)
    answer = summarizer.summarize(replace(request, missing_sections=names), JobMonitor(job))
    require_usable_answer(answer)
    text, redactions = redact_text(team, parse_extraction(answer.text, current, template=template))
    return Written(text, NotesWriter.CLAUDE, book.paid_usd, redactions)


class JobMonitor(SilentMonitor):
    """Nobody watches notes being written; they stop when their job must."""

    def __init__(self, job: JobRun) -> None:
        self._job = job

    def is_cancelled(self) -> bool:
        """What the reason is, JobRun.check tells."""
        return self._job.cancelled.is_set() or self._job.lost.is_set() or self._job.worker_stopping.is_set()


class NotesBook:
    """The most a request may cost counts as spent before it is sent; what was left of that is given back after it.

    So a worker that is lost in between leaves the day with the most it may have cost, as everywhere.
    """

    def __init__(self, job: JobRun, team: Team, settings: SummarizerChoice) -> None:
        self._job, self._team, self._settings = job, team, settings
        self._held: tuple[datetime, Decimal] | None = None
        self.paid_usd = NOTHING

    def open(self, *, path: str, model: str, most_usd: Decimal) -> None:  # noqa: ARG002 (one request, one path)
        """Under the fence. Raises CapReached where that is too much."""
        now = timezone.now()
        with self._job.writing():
            reserve(self._team, most_usd, self._settings.daily_cap_usd, now=now)
            settle(self._team, now=now, released_usd=most_usd, spent_usd=most_usd)
        self._held = (now, most_usd)

    def note(self, report: AttemptReport) -> None:
        """Once for what is in flight."""
        if report.path == COUNT_PATH or self._held is None:
            return
        at, most_usd = self._held
        cost_usd = find_attempt_cost(report, self._settings) or NOTHING
        settle(self._team, now=at, released_usd=NOTHING, spent_usd=cost_usd - most_usd)
        self._held, self.paid_usd = None, self.paid_usd + cost_usd
