"""Which summariser writes: quoted without a model, or asked of one and metered."""

from collections.abc import Callable

from django.conf import settings
from django.utils.module_loading import import_string

from compaction.compactors.extractive.summarizer import ExtractiveSummarizer
from compaction.errors import SummarizerUnavailable
from compaction.ports import Summarizer
from dashboard.models import NativeForm, SummarizerName, Team
from dashboard.runs.attempts import Book, NoteAttempt
from dashboard.runs.basis import Basis
from dashboard.runs.choices import RunChoices
from dashboard.runs.fork_terms import ForkTerms
from dashboard.runs.metering import MeteredSummarizer
from dashboard.runs.native_requests import NativeTerms
from dashboard.runs.team_settings import SummarizerChoice

NATIVE_SUMMARIZER = "dashboard.runs.claude.open_native"  # by its path: the SDK is loaded only where it is used
OpenNative = Callable[[Team, NoteAttempt, NativeTerms], Summarizer]
OpenSummarizer = Callable[[Team, NoteAttempt, ForkTerms], Summarizer]


def open_summarizer(choices: RunChoices, basis: Basis, book: Book, team_settings: SummarizerChoice) -> Summarizer:
    """The one with a model by its dotted path, so that an installation can be run against another one."""
    if choices.summarizer is SummarizerName.NATIVE:
        form = team_settings.native_form
        if form is NativeForm.OFF:
            raise SummarizerUnavailable("the team has switched it off", is_retryable=False, reason="native_off")
        open_native: OpenNative = import_string(NATIVE_SUMMARIZER)
        terms = NativeTerms(form=form, has_instructions=bool(choices.instructions))
        inner = open_native(basis.session.team, book.note, terms)
        return MeteredSummarizer(inner, book, basis, team_settings, path=form.value)
    if choices.summarizer is not SummarizerName.CLAUDE:
        return ExtractiveSummarizer()
    open_paid: OpenSummarizer = import_string(settings.PAID_SUMMARIZER)
    return MeteredSummarizer(open_paid(basis.session.team, book.note, basis.fork_terms), book, basis, team_settings)
