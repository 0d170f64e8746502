"""Kinds of compaction as cards, each with what it would come to: the size after it, its cost, what it may lose."""

from dataclasses import dataclass, replace
from datetime import datetime

from dashboard.models import RunKind
from dashboard.pages.run_draft import Option, RunDraft
from dashboard.runs.basis import Basis, read_basis
from dashboard.runs.choices import RunChoices, RunRefused
from dashboard.runs.costs import ExpectedCost
from dashboard.runs.missing_lines import DIFFERS
from dashboard.runs.preview import Preview, preview_basis
from dashboard.words import format_size, say_usd

FREE = "free"
UNKNOWN_PRICE = "no known price"
NOT_PREDICTED = "not predicted"


@dataclass(frozen=True)
class KindCard:
    """One kind. The figures are empty where `problem` says why there are none, or a message has to be picked first."""

    option: Option
    size_after: str = ""
    cost: str = ""
    losses: str = ""
    summarizer: str = ""  # for which the figures are
    problem: str = ""


@dataclass(frozen=True)
class KindCards:
    """Kinds that can be started as they are, and those for which a message has to be picked."""

    ready: tuple[KindCard, ...]
    partial: tuple[KindCard, ...]


def build_kind_cards(draft: RunDraft, *, now: datetime) -> KindCards:
    """Return every kind that the form offers. The conversation is read once for all figures."""
    basis = _read_basis(draft)
    cards = [(option, _build_card(draft, option, basis, now=now)) for option in draft.kinds]
    return KindCards(
        ready=tuple(card for option, card in cards if not RunKind(option.value).needs_pivot),
        partial=tuple(card for option, card in cards if RunKind(option.value).needs_pivot),
    )


def _read_basis(draft: RunDraft) -> Basis | None:
    try:
        return read_basis(draft.session, draft.choices.agent_id if draft.choices else "")
    except RunRefused:
        return None  # the preview beside the form says why


def _build_card(draft: RunDraft, option: Option, basis: Basis | None, *, now: datetime) -> KindCard:
    kind = RunKind(option.value)
    if kind.needs_pivot or basis is None:
        return KindCard(option)
    preview = preview_basis(basis, replace(draft.choices or RunChoices(), kind=kind, pivot_uuid=""), now=now)
    problem = next((each.sentence for each in preview.refusals if each.code != DIFFERS), "")
    if problem or preview.expected_after_tokens is None:
        return KindCard(option, problem=problem)
    chosen = next((each.title for each in draft.summarizers if each.is_chosen), "")
    summarizer = "" if kind.asks_nobody else chosen
    return KindCard(option, _format_size_after(preview), _format_cost(preview.cost), NOT_PREDICTED, summarizer)


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
