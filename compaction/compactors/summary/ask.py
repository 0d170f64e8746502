"""Getting a summary: fork first, plain behind it, less of it when it is too long, a second ask for what is missing.

Every try ends in a summary or a named error. Waiting between tries is the summariser's affair.
"""

from dataclasses import dataclass, field, replace

from compaction.compactors.outcome import Summary, SummaryCall
from compaction.compactors.summary.answer import (
    ParsedSummary,
    add_sections,
    check_answer,
    find_missing_sections,
    parse_answer,
)
from compaction.compactors.summary.fork_request import ParentRequest, prepare_fork
from compaction.compactors.summary.plain_request import SummaryModels, prepare_plain, prepare_second_ask
from compaction.compactors.summary.too_long import LARGEST_SHRINK_RETRIES, SummaryRange, TokenBudget, shrink_range
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
    """What is to be summarised, with which prompt, and how it may be asked for."""

    variant: Variant
    span: SummaryRange
    prompt: str
    room: TokenBudget
    parent: ParentRequest | None = None
    models: SummaryModels = field(default_factory=SummaryModels)
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """The summary, the range it came to cover, and every request that was answered on the way."""

    summary: Summary
    span: SummaryRange
    calls: tuple[SummaryCall, ...]


@dataclass(slots=True)
class _Asking:
    """One summary being asked for: who is asked, and what was answered so far."""

    summarizer: Summarizer
    monitor: Monitor
    calls: list[SummaryCall] = field(default_factory=list)

    def enter(self, stage: Stage) -> None:
        if self.monitor.is_cancelled():
            raise CompactionCancelled
        self.monitor.enter_stage(stage)

    def ask(self, request: SummaryRequest) -> SummaryAnswer:
        """A checked answer, after at most two tries."""
        for tries_left in range(TRANSPORT_TRIES - 1, -1, -1):
            self.enter(Stage.SUMMARISING)
            try:
                answer = self.summarizer.summarize(request, self.monitor)
            except (OSError, SummarizerUnavailable) as error:
                named = error if isinstance(error, SummarizerUnavailable) else SummarizerUnavailable(str(error))
                if tries_left and named.is_retryable:
                    continue
                raise named from error
            break
        self.enter(Stage.VALIDATING)
        self._check(request, answer)
        return answer

    def _check(self, request: SummaryRequest, answer: SummaryAnswer) -> None:
        """Notes the answer, good or bad, before it is judged: it was paid for."""
        failure: str | None = None
        try:
            check_answer(answer)
            if not request.missing_sections:
                parse_answer(answer, request.variant)
        except BadSummary as error:
            failure = error.reason
            raise
        finally:
            self._note(request, answer, failure)

    def _note(self, request: SummaryRequest, answer: SummaryAnswer, failure: str | None) -> None:
        model, paid = answer.model or request.model, answer.usage.billed
        call = SummaryCall(
            request.path, answer.usage, model, answer.message_id, answer.duration_seconds, failure=failure
        )
        self.calls.append(call)
        self.monitor.note_event(
            SummaryAnswered(
                path=request.path,
                model=model,
                message_id=answer.message_id,
                input_tokens=paid.input_tokens,
                output_tokens=paid.output_tokens,
                cache_read_tokens=paid.cache_read_tokens,
                cache_creation_tokens=paid.cache_creation_tokens,
                failure=failure,
            )
        )


def write_summary(task: SummaryTask, summarizer: Summarizer, monitor: Monitor) -> WrittenSummary:
    """The summary of a range that may have become smaller on the way. Raises a named error otherwise."""
    asking = _Asking(summarizer, monitor)
    span, is_fork_open, retries = task.span, task.parent is not None, 0
    while True:
        asking.enter(Stage.PREPARING)
        request = _prepare(task, span, is_fork_open=is_fork_open)
        try:
            answer = asking.ask(request)
            break
        except PromptTooLong as error:
            retries += 1
            if wider := task.models.grow(request.model if request.path is SummaryRoute.PLAIN else None):
                task = replace(task, models=wider)
                continue
            span = _shrink(task, span, error, retries=retries)
            # Without its oldest part the request shares no prefix with the parent any more.
            is_fork_open = is_fork_open and not span.left_out
        except (BadSummary, SummarizerUnavailable) as error:
            is_settled = isinstance(error, SummarizerUnavailable) and error.is_retryable
            if request.path is SummaryRoute.PLAIN or is_settled:
                raise
            is_fork_open = False
    return WrittenSummary(_complete(asking, request, answer), span, tuple(asking.calls))


def _prepare(task: SummaryTask, span: SummaryRange, *, is_fork_open: bool) -> SummaryRequest:
    if is_fork_open and task.parent is not None:
        kept = span.kept_after
        fork = prepare_fork(task.variant, task.parent, span.sent, kept_after=kept, prompt=task.prompt)
        if fork is not None:
            return replace(fork, instructions=task.instructions)
    plain = prepare_plain(task.variant, span.sent, task.prompt, task.models)
    return replace(plain, instructions=task.instructions)


def _shrink(task: SummaryTask, span: SummaryRange, error: PromptTooLong, *, retries: int) -> SummaryRange:
    smaller = None
    if retries <= LARGEST_SHRINK_RETRIES:
        may_keep = task.variant is not Variant.FROM
        smaller = shrink_range(span, error, task.room, may_keep_newest=may_keep)
    if smaller is None:
        raise ConversationTooLong from error
    return smaller


def _complete(asking: _Asking, request: SummaryRequest, answer: SummaryAnswer) -> Summary:
    """The summary with its missing sections asked for once more; still without them it counts as incomplete."""
    parsed = parse_answer(answer, request.variant)
    if parsed.missing_sections:
        parsed = _ask_again(asking, request, answer, parsed)
    return Summary(
        text=parsed.text,
        analysis=parsed.analysis,
        missing_sections=parsed.missing_sections,
        is_native=answer.is_native,
        block=answer.block,
        label=answer.label,
    )


def _ask_again(asking: _Asking, request: SummaryRequest, answer: SummaryAnswer, parsed: ParsedSummary) -> ParsedSummary:
    try:
        more = asking.ask(prepare_second_ask(request, answer.text, parsed.missing_sections))
        added = parse_answer(more, request.variant).text
    except (BadSummary, PromptTooLong, SummarizerUnavailable):
        return parsed  # the first answer is usable; that it is incomplete is said in the outcome
    text = add_sections(parsed.text, added, request.variant)
    return ParsedSummary(text, parsed.analysis, find_missing_sections(text, request.variant), parsed.has_tags)
