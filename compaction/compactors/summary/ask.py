"""Requests a summary: as a fork first, then as a plain request, with fewer messages when the request is too long.

A second request asks for missing sections. The result is a summary or a named error. Waiting between attempts is left
to the summariser.
"""

from dataclasses import dataclass, field, replace

from compaction.compactors.outcome import Summary, SummaryCall
from compaction.compactors.summary.answer import (
    ParsedSummary,
    add_sections,
    list_missing_sections,
    parse_answer,
    require_usable_answer,
)
from compaction.compactors.summary.fork_request import ParentRequest, build_fork_request
from compaction.compactors.summary.plain_request import SummaryModels, build_plain_request, build_second_request
from compaction.compactors.summary.too_long import MAX_SHRINK_RETRIES, SummaryRange, TokenBudget, shrink_range
from compaction.errors import (
    BadSummary,
    CompactionCancelled,
    ConversationTooLong,
    PromptTooLong,
    SummarizerUnavailable,
)
from compaction.events import SummaryAnswered
from compaction.ports import Monitor, Stage, Summarizer, SummaryAnswer, SummaryRequest, SummaryRoute, Variant

TRANSPORT_TRIES = 2  # the client's limit for one request, the SDK's own retries off


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryTask:
    """What to summarise, with which prompt, and by which requests."""

    variant: Variant
    span: SummaryRange
    prompt: str
    budget: TokenBudget
    parent: ParentRequest | None = None
    models: SummaryModels = field(default_factory=SummaryModels)
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """The summary, the range it covers in the end, and every request that was answered."""

    summary: Summary
    span: SummaryRange
    calls: tuple[SummaryCall, ...]


@dataclass(slots=True)
class _SummaryClient:
    """Sends the requests for one summary and records every answer."""

    summarizer: Summarizer
    monitor: Monitor
    calls: list[SummaryCall] = field(default_factory=list)

    def enter(self, stage: Stage) -> None:
        if self.monitor.is_cancelled():
            raise CompactionCancelled
        self.monitor.enter_stage(stage)

    def ask(self, request: SummaryRequest) -> SummaryAnswer:
        """Return a usable answer after at most two attempts."""
        for tries_left in range(TRANSPORT_TRIES - 1, -1, -1):
            self.enter(Stage.SUMMARISING)
            try:
                answer = self.summarizer.summarize(request, self.monitor)
            except (OSError, SummarizerUnavailable) as error:
                failure = error if isinstance(error, SummarizerUnavailable) else SummarizerUnavailable(str(error))
                if tries_left and failure.is_retryable:
                    continue
                raise failure from error
            break
        self.enter(Stage.VALIDATING)
        self._require_usable(request, answer)
        return answer

    def _require_usable(self, request: SummaryRequest, answer: SummaryAnswer) -> None:
        """Raise a BadSummary for an unusable answer. Every answer is recorded, because it was paid for."""
        failure: str | None = None
        try:
            require_usable_answer(answer)
            if not request.missing_sections:
                parse_answer(answer, request.variant)
        except BadSummary as error:
            failure = error.reason
            raise
        finally:
            self._record(request, answer, failure)

    def _record(self, request: SummaryRequest, answer: SummaryAnswer, failure: str | None) -> None:
        model, billed = answer.model or request.model, answer.usage.billed
        self.calls.append(
            SummaryCall(
                route=request.route,
                usage=answer.usage,
                model=model,
                message_id=answer.message_id,
                duration_seconds=answer.duration_seconds,
                failure=failure,
            )
        )
        self.monitor.record_event(
            SummaryAnswered(
                path=request.route,
                model=model,
                message_id=answer.message_id,
                input_tokens=billed.input_tokens,
                output_tokens=billed.output_tokens,
                cache_read_tokens=billed.cache_read_tokens,
                cache_creation_tokens=billed.cache_creation_tokens,
                failure=failure,
            )
        )


def request_summary(task: SummaryTask, summarizer: Summarizer, monitor: Monitor) -> WrittenSummary:
    """Return the summary of the range, which may have been shrunk. Raises a RunError if there is none."""
    client = _SummaryClient(summarizer, monitor)
    span, can_fork, retries = task.span, task.parent is not None, 0
    while True:
        client.enter(Stage.PREPARING)
        request = _build_request(task, span, can_fork=can_fork)
        try:
            answer = client.ask(request)
            break
        except PromptTooLong as error:
            retries += 1
            if wider := task.models.widen(request.model if request.route is SummaryRoute.PLAIN else None):
                task = replace(task, models=wider)
                continue
            span = _shrink(task, span, error, retries=retries)
            # Without its oldest part the request no longer shares a prefix with the parent.
            can_fork = can_fork and not span.left_out
        except (BadSummary, SummarizerUnavailable) as error:
            is_final = isinstance(error, SummarizerUnavailable) and error.is_retryable
            if request.route is SummaryRoute.PLAIN or is_final:
                raise
            can_fork = False
    return WrittenSummary(_complete(client, request, answer), span, tuple(client.calls))


def _build_request(task: SummaryTask, span: SummaryRange, *, can_fork: bool) -> SummaryRequest:
    if can_fork and task.parent is not None:
        fork = build_fork_request(task.variant, task.parent, span.sent, kept_after=span.kept_after, prompt=task.prompt)
        if fork is not None:
            return replace(fork, instructions=task.instructions)
    plain = build_plain_request(task.variant, span.sent, task.prompt, task.models)
    return replace(plain, instructions=task.instructions)


def _shrink(task: SummaryTask, span: SummaryRange, error: PromptTooLong, *, retries: int) -> SummaryRange:
    smaller = None
    if retries <= MAX_SHRINK_RETRIES:
        may_keep_newest = task.variant is not Variant.FROM
        smaller = shrink_range(span, error, task.budget, may_keep_newest=may_keep_newest)
    if smaller is None:
        raise ConversationTooLong from error
    return smaller


def _complete(client: _SummaryClient, request: SummaryRequest, answer: SummaryAnswer) -> Summary:
    """Return the summary after one more request for missing sections; sections still missing make it incomplete."""
    parsed = parse_answer(answer, request.variant)
    if parsed.missing_sections:
        parsed = _ask_for_missing(client, request, answer, parsed)
    return Summary(
        text=parsed.text,
        analysis=parsed.analysis,
        missing_sections=parsed.missing_sections,
        is_native=answer.is_native,
        block=answer.block,
        label=answer.label,
    )


def _ask_for_missing(
    client: _SummaryClient, request: SummaryRequest, answer: SummaryAnswer, parsed: ParsedSummary
) -> ParsedSummary:
    try:
        second = client.ask(build_second_request(request, answer.text, parsed.missing_sections))
        added = parse_answer(second, request.variant).text
    except (BadSummary, PromptTooLong, SummarizerUnavailable):
        return parsed  # the first answer is usable; the outcome marks it as incomplete
    text = add_sections(parsed.text, added, request.variant)
    return replace(parsed, text=text, missing_sections=list_missing_sections(text, request.variant))
