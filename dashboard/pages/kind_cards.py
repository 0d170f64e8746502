"""Kinds of compaction as cards, each with what it would come to: the size after it, its cost, what it would lose."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from django.db.models import QuerySet

from compaction.context.thresholds import Level
from dashboard import access
from dashboard.access import Actor
from dashboard.ingest.audit_rows import StoredLoss
from dashboard.models import CompactionRun, RunKind
from dashboard.pages.run_draft import Option, RunDraft
from dashboard.pages.run_form import SUMMARIZER_SENTENCES
from dashboard.runs.basis import Basis
from dashboard.runs.choices import RunChoices
from dashboard.runs.costs import ExpectedCost
from dashboard.runs.missing_lines import DIFFERS
from dashboard.runs.predicted_losses import FigureRange, PredictedLosses, PredictionSource, predict_losses
from dashboard.runs.preview import DryRun, Preview, try_basis
from dashboard.words import format_lost_count, format_retained, format_size, saves_nothing, say_usd

FREE = "free"
UNKNOWN_PRICE = "no known price"
PICK_A_MESSAGE = "Choose it and pick a message: its size, cost and losses then appear here."
# The kinds that `POST /api/v1/check` advises at a level, best first; below the error threshold nothing is due.
RECOMMENDED: Mapping[str, tuple[RunKind, ...]] = {
    Level.ERROR: (RunKind.MICRO_SIZE, RunKind.NOTES, RunKind.FULL),
    Level.AUTO_COMPACT: (RunKind.NOTES, RunKind.FULL),
    Level.BLOCKING: (RunKind.FULL,),
}
NOTHING_TO_PREDICT_FROM = "No earlier compactions to predict from"


@dataclass(frozen=True)
class CardLosses:
    """A prediction in words. `lost` names the most important losses of a dry run, unless they are withheld."""

    figure: str
    note: str
    lost: tuple[StoredLoss, ...] = ()
    names_all: bool = False
    is_withheld: bool = False


@dataclass(frozen=True)
class KindCard:
    """One kind. The figures are empty where `problem` says why there are none; `losses` is None until predicted."""

    option: Option
    size_after: str = ""
    saves_nothing: bool = False
    cost: str = ""
    losses: CardLosses | None = None
    summarizer: str = ""  # for which the figures are
    problem: str = ""
    is_recommended: bool = False


@dataclass(frozen=True)
class KindCards:
    """Kinds that can be started as they are, and those for which a message has to be picked.

    `has_figures`: False where nothing of the conversation can be read.
    """

    ready: tuple[KindCard, ...]
    partial: tuple[KindCard, ...]
    has_figures: bool

    @property
    def all(self) -> tuple[KindCard, ...]:
        return (*self.ready, *self.partial)


def build_kind_cards(actor: Actor, draft: RunDraft, *, now: datetime, predicts_losses: bool = False) -> KindCards:
    """Return every kind that the form offers, from one reading of the conversation.

    Losses cost an audit of every kind: a page is answered without them and asks for them afterwards.
    """
    basis = draft.tried.basis if draft.tried else None
    runs = access.runs(actor).filter(team=draft.session.team) if predicts_losses else None
    cards = {RunKind(option.value): _build_card(draft, option, basis, runs, now=now) for option in draft.kinds}
    recommended = _find_recommended(draft.session.level, cards)
    if recommended is not None:
        cards[recommended] = replace(cards[recommended], is_recommended=True)
    return KindCards(
        ready=tuple(card for kind, card in cards.items() if not kind.needs_pivot),
        partial=tuple(card for kind, card in cards.items() if kind.needs_pivot),
        has_figures=basis is not None,
    )


def _find_recommended(level: str, cards: Mapping[RunKind, KindCard]) -> RunKind | None:
    """Return the first kind for this level that would make the context smaller."""
    kinds = (kind for kind in RECOMMENDED.get(level, ()) if kind in cards)
    return next((kind for kind in kinds if cards[kind].size_after and not cards[kind].saves_nothing), None)


def _build_card(
    draft: RunDraft, option: Option, basis: Basis | None, runs: QuerySet[CompactionRun] | None, *, now: datetime
) -> KindCard:
    if basis is None:
        return KindCard(option)  # the preview beside the form says why
    tried = _try_kind(draft, RunKind(option.value), basis, now=now)
    if tried is None:
        return KindCard(option, problem=PICK_A_MESSAGE)
    preview = tried.preview
    problem = next((each.sentence for each in preview.refusals if each.code != DIFFERS), "")
    if problem or preview.expected_after_tokens is None:
        return KindCard(option, problem=problem)
    predicted = None if runs is None else predict_losses(tried, runs)
    return KindCard(
        option,
        size_after=_format_size_after(preview),
        saves_nothing=saves_nothing(preview.before_tokens, preview.expected_after_tokens[0]),
        cost=_format_cost(preview.cost),
        losses=None if predicted is None else describe_losses(predicted, reads_content=draft.reads_content),
        summarizer="" if preview.choices.kind.asks_nobody else SUMMARIZER_SENTENCES[preview.choices.summarizer][0],
    )


def _try_kind(draft: RunDraft, kind: RunKind, basis: Basis, *, now: datetime) -> DryRun | None:
    """Return the dry run of one kind with the other choices of the form; None where a message has to be picked."""
    choices = draft.form.read_choices(kind) or RunChoices(kind=kind)
    if draft.tried is not None and choices == draft.choices:
        return draft.tried
    if kind.needs_pivot:
        return None  # a message is picked for the chosen kind
    return try_basis(basis, choices, now=now)


def describe_losses(predicted: PredictedLosses, *, reads_content: bool) -> CardLosses:
    """Return a prediction in words. Texts of losses are content, their number is not."""
    if predicted.source is PredictionSource.DRY_RUN:
        lost = predicted.lost if reads_content else ()
        if predicted.retained_percent is None:
            note = "exact for this preview; too little in the conversation for a percentage"
        else:
            note = f"retained {format_retained(predicted.retained_percent)}, exact for this preview"
        return CardLosses(
            format_lost_count(predicted.lost_count),
            note,
            lost,
            names_all=bool(lost) and len(lost) == predicted.lost_count,
            is_withheld=bool(predicted.lost) and not reads_content,
        )
    if predicted.lost_range is None or predicted.retained_range is None:
        return CardLosses("", NOTHING_TO_PREDICT_FROM)
    lost_range, retained = predicted.lost_range, predicted.retained_range
    ends = " to ".join(dict.fromkeys((format_retained(retained.low), format_retained(retained.high))))
    note = (
        f"median {lost_range.median:,}; retained {ends}, median {format_retained(retained.median)}; "
        f"seen in {predicted.run_count} earlier compactions"
    )
    return CardLosses(_format_lost_range(lost_range), note)


def _format_lost_range(lost: FigureRange[int]) -> str:
    if lost.low == lost.high:
        return format_lost_count(lost.high)
    return f"{lost.low:,} to {format_lost_count(lost.high)}"


def _format_size_after(preview: Preview) -> str:
    low, high = (format_size(tokens, is_estimated=True) for tokens in preview.expected_after_tokens or (None, None))
    return low if low == high else f"{low} to {high}"


def _format_cost(cost: ExpectedCost | None) -> str:
    """Return the cost with a warm cache to the cost with a cold one."""
    if cost is None:
        return FREE
    known = [amount for amount in (cost.hit_usd, cost.miss_usd) if amount is not None]
    if not known:
        return UNKNOWN_PRICE
    low, high = say_usd(min(known)), say_usd(max(known))
    return f"~{low}" if low == high else f"~{low} to ~{high}"
