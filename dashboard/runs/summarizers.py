"""Which summariser writes: quoted without a model, or asked of one and metered."""

from collections.abc import Callable

from django.conf import settings
from django.utils.module_loading import import_string

from compaction.compactors.extractive import ExtractiveSummarizer
from compaction.ports import Summarizer
from dashboard.models import SummarizerName, Team
from dashboard.runs.attempts import Book, NoteAttempt
from dashboard.runs.basis import Basis
from dashboard.runs.fork_terms import ForkTerms
from dashboard.runs.metering import MeteredSummarizer
from dashboard.runs.team_settings import SummarizerChoice

OpenSummarizer = Callable[[Team, NoteAttempt, ForkTerms], Summarizer]


def open_summarizer(name: SummarizerName, basis: Basis, book: Book, team_settings: SummarizerChoice) -> Summarizer:
    """The one with a model by its dotted path, so that an installation can be run against another one."""
    if name is not SummarizerName.CLAUDE:
        return ExtractiveSummarizer()
    open_paid: OpenSummarizer = import_string(settings.PAID_SUMMARIZER)
    return MeteredSummarizer(open_paid(basis.session.team, book.note, basis.fork_terms), book, basis, team_settings)
