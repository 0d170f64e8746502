"""What a run would do, without doing it: what is sent to whom, what it may cost, how small the context gets.

The engine itself is run with the summariser that needs no model, and its request for a summary is looked at.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal

from compaction.compactors.extractive.summarizer import ExtractiveSummarizer
from compaction.compactors.micro.clearing import list_clearable
from compaction.compactors.notes.schedule import WAIT_SECONDS
from compaction.compactors.outcome import CompactionOutcome, EntryFate
from compaction.compactors.restore.restorer import ContextRestorer
from compaction.compactors.run import RunPorts
from compaction.compactors.summary.plain_request import SummaryModels
from compaction.context.margins import MAX_SUMMARY_TOKENS
from compaction.context.tokens import add_margin, count_text_tokens, estimate_tokens
from compaction.errors import RunError
from compaction.llm.names import LONGEST_NAME, read_model_name
from compaction.ports import Monitor, SummaryAnswer, SummaryRequest, SummaryRoute
from compaction.transcripts.entries import Entry
from dashboard.models import AgentSession, RunKind, SummarizerName
from dashboard.pages.live_state import LiveState, find_live_state
from dashboard.runs.basis import Basis, read_basis
from dashboard.runs.choices import LONGEST_INSTRUCTIONS, RunChoices, RunRefused
from dashboard.runs.costs import ExpectedCost, choose_models, count_request_tokens, expect_cost
from dashboard.runs.kinds import clear_results, compact, make_request
from dashboard.runs.missing_lines import LINE_MISSING, describe_gaps, find_difference, refuse_difference
from dashboard.runs.native_requests import find_obstacles
from dashboard.runs.parent_requests import add_parent
from dashboard.runs.session_notes import add_notes, find_notes_wait
from dashboard.runs.spend import CapReached, read_spend
from dashboard.runs.team_settings import SummarizerChoice, find_settings
from dashboard.runs.texts import clean_text

SHORT_SUMMARY_TOKENS = 1_000  # ours: the lower end of what a summary is expected to take
GROWTH_ADVICE = "Compact later, when there is more to leave out."


@dataclass(frozen=True)
class Notice:
    """A refusal, or a warning that refuses nothing: a code for programs, a sentence for people."""

    code: str
    sentence: str
    figures: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Preview:
    """Counts are of messages; `expected_after_tokens` is a range, both ends equal where it is known.

    `prompt` is content. `costs` are for each model that could be asked, the chosen one first. Without a model there are
    none, `path` is empty and nothing is sent. `gap_count`: places in what the model sees where lines are missing.
    `found_tokens`: what the stored lines add up to, where that differs by more than a quarter from what was measured.
    """

    choices: RunChoices
    model: str = ""
    path: str = ""
    fork_refusal: str = ""
    gap_count: int = 0
    found_tokens: int | None = None
    messages_sent: int = 0
    sent_tokens: int = 0
    kept_tokens: int = 0
    summarised_count: int = 0
    kept_count: int = 0
    dropped_count: int = 0
    cleared_count: int = 0
    cleared_tokens: int = 0
    before_tokens: int = 0
    before_origin: str = ""
    prefix_tokens: int = 0
    line_tokens: int | None = None
    expected_after_tokens: tuple[int, int] | None = None
    costs: tuple[ExpectedCost, ...] = ()
    prompt: str = ""
    refusals: tuple[Notice, ...] = ()
    warnings: tuple[Notice, ...] = ()

    @property
    def cost(self) -> ExpectedCost | None:
        """Of the model that would be asked."""
        return self.costs[0] if self.costs else None

    @property
    def reserved_usd(self) -> Decimal:
        """What is held back when the run starts: the most its first request may cost. A further one holds its own."""
        return (self.cost.most_usd if self.cost else None) or Decimal(0)

    def raise_refusal(self) -> None:
        """The first thing in the way, as RunRefused."""
        if self.refusals:
            first = self.refusals[0]
            raise RunRefused(first.code, first.sentence, **first.figures)


@dataclass(frozen=True)
class DryRun:
    """A preview and what it was made from. `basis`: None where nothing can be read.

    `entries` is the context after the run, for kinds that need no model; it is content.
    """

    preview: Preview
    basis: Basis | None = None
    entries: tuple[Entry, ...] | None = None


def preview_run(session: AgentSession, choices: RunChoices, *, now: datetime) -> Preview:
    """Return the preview alone."""
    return try_run(session, choices, now=now).preview


def try_run(session: AgentSession, choices: RunChoices, *, now: datetime) -> DryRun:
    """Never raises for what a person chose: `refusals` say what is in the way."""
    try:
        tried = try_basis(read_basis(session, choices.agent_id), choices, now=now)
    except RunRefused as refusal:
        tried = DryRun(Preview(choices=settle_choices(session, choices), refusals=(_describe(refusal),)))
    warnings = _list_warnings(session, now=now) + tried.preview.warnings
    return replace(tried, preview=replace(tried.preview, warnings=warnings))


def preview_basis(basis: Basis, choices: RunChoices, *, now: datetime) -> Preview:
    """Return the preview of a conversation that was read already, or is not stored yet."""
    return try_basis(basis, choices, now=now).preview


def try_basis(basis: Basis, choices: RunChoices, *, now: datetime) -> DryRun:
    """Return the dry run of a conversation that was read already."""
    choices = settle_choices(basis.session, choices)
    try:
        _check_choices(choices)
        preview, entries = _look_ahead(basis, choices, now=now)
        return DryRun(_add_missing_lines(preview, basis), basis, entries)
    except RunRefused as refusal:
        return DryRun(Preview(choices=choices, refusals=(_describe(refusal),)), basis)
    except RunError as error:
        return DryRun(Preview(choices=choices, refusals=(Notice(error.reason, str(error)),)), basis)


def settle_choices(session: AgentSession, choices: RunChoices) -> RunChoices:
    """Without what the kind has no use for: a micro-compaction asks nobody, only a partial one has a pivot."""
    changes: dict[str, object] = {"instructions": clean_text(session.team, choices.instructions).strip()}
    if choices.kind.asks_nobody:
        changes = {"summarizer": SummarizerName.NONE, "instructions": "", "model": ""}
    elif not choices.summarizer.is_paid:
        changes |= {"summarizer": SummarizerName.EXTRACTIVE, "model": ""}
    if not choices.kind.needs_pivot:
        changes["pivot_uuid"] = ""
    return replace(choices, **changes)  # type: ignore[arg-type]


def _describe(refusal: RunRefused) -> Notice:
    return Notice(refusal.code, refusal.sentence, dict(refusal.figures))


def _list_warnings(session: AgentSession, *, now: datetime) -> tuple[Notice, ...]:
    if find_live_state(session, now=now) is not LiveState.LIVE:
        return ()
    sentence = (
        "This session is at work right now. The run compacts what has arrived by then; "
        "what comes after it is not in the result, and the session itself goes on unchanged."
    )
    return (Notice("live_session", sentence),)


def _check_choices(choices: RunChoices) -> None:
    if choices.kind.needs_pivot and not choices.pivot_uuid:
        raise RunRefused("pivot_missing", "Choose the message to compact from or up to.")
    if len(choices.instructions) > LONGEST_INSTRUCTIONS:
        raise RunRefused(
            "instructions_too_long",
            f"The instructions have {len(choices.instructions):,} characters; {LONGEST_INSTRUCTIONS:,} are allowed.",
        )


def describe_basis(basis: Basis, choices: RunChoices) -> Preview:
    """What is known without trying anything out."""
    return Preview(
        choices=choices,
        before_tokens=basis.before_tokens,
        before_origin=basis.before_origin,
        prefix_tokens=basis.prefix_tokens,
        line_tokens=basis.line_tokens,
        gap_count=basis.gap_count,
        found_tokens=find_difference(basis.coverage),
    )


def _look_ahead(basis: Basis, choices: RunChoices, *, now: datetime) -> tuple[Preview, tuple[Entry, ...] | None]:
    """Return the preview, and the context after the run where no model writes it."""
    measured = describe_basis(basis, choices)
    if choices.kind.is_micro:
        return _look_at_clearing(basis, measured, now=now)
    if choices.kind is RunKind.NOTES:
        return _look_at_notes(add_notes(basis), measured, now=now)
    settings = find_settings(basis.session.team)
    is_paid = choices.summarizer.is_paid
    basis = add_parent(basis, choices, settings, now=now)
    models = choose_models(basis, choices, settings)
    request, outcome = _try_out(basis, choices, models, now=now)
    preview = _describe_outcome(replace(measured, prompt=request.prompt), outcome)
    preview = replace(preview, warnings=_warn_of_no_saving(preview))
    if not is_paid:
        return preview, outcome.entries  # the summary is extracted here: no request is sent
    preview = _describe_request(preview, basis, request)
    return _add_costs(preview, basis, request, models, settings, now=now), None


def _warn_of_no_saving(preview: Preview) -> tuple[Notice, ...]:
    """In a short conversation, summary and restored files can take more than they replace."""
    low, high = preview.expected_after_tokens or (0, 0)
    before = preview.before_tokens
    figures: dict[str, object] = {"before_tokens": before, "after_tokens": low}
    if low >= before:
        sentence = (
            f"The context would not get smaller: it holds {before:,} tokens now and is expected to hold "
            f"{low:,} with the summary and the restored files. {GROWTH_ADVICE}"
        )
        return (Notice("no_saving", sentence, figures),)
    if high >= before:
        sentence = (
            f"The context may not get smaller: it holds {before:,} tokens now and is expected to hold between {low:,} "
            f"and {high:,}, depending on the length of the summary. {GROWTH_ADVICE}"
        )
        return (Notice("saving_uncertain", sentence, figures | {"most_after_tokens": high}),)
    return ()


def _add_missing_lines(preview: Preview, basis: Basis) -> Preview:
    """The preview with what is missing in the conversation: said always, in the way until it is confirmed."""
    gaps, refusal = describe_gaps(basis.gap_count), refuse_difference(basis)
    found: list[Notice] = [Notice(LINE_MISSING, gaps, {"missing_lines": basis.gap_count})] if gaps else []
    refusals = preview.refusals
    if refusal is not None and preview.choices.accept_difference:
        found.append(_describe(refusal))
    elif refusal is not None:
        refusals = (*refusals, _describe(refusal))
    return replace(preview, warnings=(*found, *preview.warnings), refusals=refusals)


class _Onlooker:
    """Answers as the summariser without a model does, and keeps the first request it saw."""

    def __init__(self) -> None:
        self.seen: list[SummaryRequest] = []
        self._inner = ExtractiveSummarizer()

    def summarize(self, request: SummaryRequest, monitor: Monitor) -> SummaryAnswer:
        self.seen.append(request)
        return self._inner.summarize(request, monitor)


def _try_out(
    basis: Basis, choices: RunChoices, models: SummaryModels, *, now: datetime
) -> tuple[SummaryRequest, CompactionOutcome]:
    onlooker = _Onlooker()
    outside = RunPorts(onlooker, restore=ContextRestorer())
    outcome = compact(basis, choices, make_request(basis, choices, models, now=now), outside)
    return onlooker.seen[0], outcome


def _describe_outcome(preview: Preview, outcome: CompactionOutcome) -> Preview:
    counts = {fate: len(outcome.list_uuids(fate)) for fate in EntryFate}
    after = outcome.expected_tokens
    expected = (after, after)
    if preview.choices.summarizer.is_paid:
        beside = after - add_margin(count_text_tokens(outcome.summary.text))
        expected = (beside + SHORT_SUMMARY_TOKENS, beside + MAX_SUMMARY_TOKENS)
    return replace(
        preview,
        kept_tokens=estimate_tokens(outcome.kept),
        summarised_count=counts[EntryFate.SUMMARISED],
        kept_count=counts[EntryFate.KEPT],
        dropped_count=counts[EntryFate.DROPPED],
        expected_after_tokens=expected,
    )


def _describe_request(preview: Preview, basis: Basis, request: SummaryRequest) -> Preview:
    messages = request.body.get("messages")
    return replace(
        preview,
        path=request.route.value,
        fork_refusal="" if request.route is SummaryRoute.FORK else basis.fork_refusal,
        messages_sent=len(messages) if isinstance(messages, list) else 0,
        sent_tokens=count_request_tokens(request, basis),
    )


def _look_at_notes(basis: Basis, preview: Preview, *, now: datetime) -> tuple[Preview, tuple[Entry, ...]]:
    request = make_request(basis, preview.choices, SummaryModels(), now=now)
    outcome = compact(basis, preview.choices, request, RunPorts(ExtractiveSummarizer(), restore=ContextRestorer()))
    preview = _describe_outcome(preview, outcome)
    warnings = (*_warn_of_newer_notes(basis, now=now), *_warn_of_no_saving(preview))
    return replace(preview, warnings=warnings), outcome.entries


def _warn_of_newer_notes(basis: Basis, *, now: datetime) -> tuple[Notice, ...]:
    if not find_notes_wait(basis.session, basis.agent_id, since=now, now=now):
        return ()
    sentence = f"Newer notes are being taken. The run waits up to {WAIT_SECONDS} seconds for them."
    return (Notice("extraction_under_way", sentence),)


def _look_at_clearing(basis: Basis, preview: Preview, *, now: datetime) -> tuple[Preview, tuple[Entry, ...]]:
    outcome = clear_results(basis, preview.choices.kind, now=now)
    after = max(0, basis.before_tokens - outcome.tokens_saved)
    kept = sum(1 for entry in outcome.entries if entry.message is not None)
    warm_until = basis.session.warm_until
    warnings: tuple[Notice, ...] = ()
    if warm_until is not None and warm_until > now:
        left = f"{(warm_until - now).total_seconds() / 60:.0f} minutes"
        sentence = f"The prompt cache is warm for another {left}; a client that continues from the result re-writes it."
        warnings = (Notice("cache_warm", sentence),)
    looked_at = replace(
        preview,
        kept_count=kept,
        cleared_count=len(outcome.cleared_tool_ids) + len(outcome.cleared_attachment_uuids),
        cleared_tokens=outcome.tokens_saved,
        kept_tokens=sum(result.tokens for result in list_clearable(outcome.entries)),
        expected_after_tokens=(after, after),
        warnings=warnings,
    )
    return looked_at, outcome.entries


def _add_costs(
    preview: Preview,
    basis: Basis,
    request: SummaryRequest,
    models: SummaryModels,
    settings: SummarizerChoice,
    *,
    now: datetime,
) -> Preview:
    chosen = request.model or ""
    others = [name for name in dict.fromkeys((models.small, models.session)) if name and name != chosen]
    if request.route is SummaryRoute.FORK:
        others = []  # a fork has its parent's model
    costs = tuple(
        expect_cost(request, name, preview.sent_tokens, settings=settings, now=now) for name in (chosen, *others)
    )
    preview = replace(preview, model=chosen, costs=costs)
    if preview.choices.summarizer is SummarizerName.NATIVE:
        # Without instructions the server asks with a prompt of its own.
        prompt = preview.prompt if preview.choices.instructions else ""
        preview = replace(preview, path=settings.native_form.value, prompt=prompt)
    return replace(preview, refusals=tuple(_list_refusals(preview, basis, settings, now=now)))


def _list_refusals(preview: Preview, basis: Basis, settings: SummarizerChoice, *, now: datetime) -> list[Notice]:
    """Everything in the way of a paid run."""
    found: list[Notice] = []
    if not settings.has_key:
        sentence = settings.key_problem or (
            "No API key is configured for this team. An admin can enter one; the summary without a model needs none."
        )
        found.append(Notice("no_key", sentence))
    if preview.choices.summarizer is SummarizerName.NATIVE:
        obstacles = find_obstacles(
            settings.native_form, preview.choices.kind, model=preview.model, sent_tokens=preview.sent_tokens
        )
        found += [Notice(code, sentence) for code, sentence in obstacles]
    refused = _refuse_model(preview.model, settings)
    if refused:
        found.append(refused)
    elif preview.cost is not None and preview.cost.most_usd is None:
        sentence = (
            f"The price of {preview.model} for prompts of {preview.sent_tokens:,} tokens is not known, so no cap could "
            "hold it. An admin can enter the team's own price for it."
        )
        found.append(Notice("price_unknown", sentence, {"model": preview.model}))
    spend = read_spend(basis.session.team, now)
    if spend.taken_usd + preview.reserved_usd > settings.daily_cap_usd:
        cap = CapReached(spend, cap_usd=settings.daily_cap_usd, wanted_usd=preview.reserved_usd)
        found.append(_describe(cap))
    return found


def _refuse_model(model: str, settings: SummarizerChoice) -> Notice | None:
    if not model:
        return Notice("model_unknown", "The session's model is not known: choose the one that is to write the summary.")
    is_known = len(model) <= LONGEST_NAME and read_model_name(model).version is not None
    if is_known or settings.find_own_price(model):
        return None
    sentence = f"{model[:LONGEST_NAME]} is not a Claude model, and the team has entered no price for it."
    return Notice("model_not_allowed", sentence, {"model": model[:LONGEST_NAME]})
