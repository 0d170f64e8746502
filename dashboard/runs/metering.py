"""A summariser whose requests are paid for: each is held against the day's cap before it is sent, and written down."""

import time
from collections.abc import Mapping
from datetime import timedelta

from django.utils import timezone

from compaction.errors import CompactionCancelled, RunError, SummarizerUnavailable
from compaction.ports import Monitor, Summarizer, SummaryAnswer, SummaryRequest
from dashboard.runs.attempts import AttemptReport, Book
from dashboard.runs.basis import Basis
from dashboard.runs.costs import count_request_tokens, expect_cost
from dashboard.runs.counting import TokenCounter
from dashboard.runs.spend import CapReached
from dashboard.runs.team_settings import SummarizerChoice


class MeteredSummarizer:
    """Around any Summarizer. One that tells of its requests itself is given `book.note`; for others it is done here."""

    def __init__(
        self, inner: Summarizer, book: Book, basis: Basis, settings: SummarizerChoice, *, path: str = ""
    ) -> None:
        """`path` names the attempts where the engine's own name for them does not tell how they were made."""
        self._inner, self._book, self._basis, self._settings, self._path = inner, book, basis, settings, path

    def summarize(self, request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:
        """One try: what may be paid is held back first."""
        if monitor.is_cancelled():
            raise CompactionCancelled
        self._hold_back(request)
        began = time.monotonic()
        try:
            answer = self._inner.summarize(request, monitor)
        except (RunError, OSError) as error:
            self._note_failure(request, error, seconds=time.monotonic() - began)
            raise
        self._book.note(
            AttemptReport(
                path=request.route.value,
                model=request.model or answer.model or "",
                at=timezone.now() - timedelta(seconds=answer.duration_seconds),
                duration_seconds=answer.duration_seconds or time.monotonic() - began,
                usage=answer.usage,
                message_id=answer.message_id or "",
            )
        )
        return answer

    def count_tokens(self, body: Mapping[str, object], monitor: Monitor) -> int | None:
        """Free of charge, so nothing is held back; None where the summariser inside cannot count."""
        return self._inner.count_tokens(body, monitor) if isinstance(self._inner, TokenCounter) else None

    def _hold_back(self, request: SummaryRequest) -> None:
        model = request.model or ""
        sent_tokens = count_request_tokens(request, self._basis)
        cost = expect_cost(request, model, sent_tokens, settings=self._settings, now=timezone.now())
        if cost.most_usd is None:
            what = f"the price of {model or 'the model'} is not known, so no cap could hold it"
            raise SummarizerUnavailable(what, is_retryable=False, reason="price_unknown")
        try:
            self._book.open(path=self._path or request.route.value, model=model, most_usd=cost.most_usd)
        except CapReached as refusal:
            # What was answered before it still counts: to the engine it is a summariser that cannot be had.
            raise SummarizerUnavailable(refusal.sentence, is_retryable=False, reason=refusal.code) from refusal

    def _note_failure(self, request: SummaryRequest, error: RunError | OSError, *, seconds: float) -> None:
        self._book.note(
            AttemptReport(
                path=request.route.value,
                model=request.model or "",
                at=timezone.now() - timedelta(seconds=seconds),
                duration_seconds=seconds,
                failure_code=error.reason if isinstance(error, RunError) else "connection",
                failure_sentence=str(error) if isinstance(error, RunError) else "The connection failed.",
            )
        )
