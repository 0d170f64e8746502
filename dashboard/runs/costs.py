"""What a request for a summary may cost: expected when the cache is hit and when it is missed, and at the very most."""

import json
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from compaction.compactors.summary.plain_request import SummaryModels
from compaction.context.margins import MAX_SUMMARY_TOKENS
from compaction.context.tokens import add_margin, count_text_tokens
from compaction.context.windows import ModelInUse, get_window
from compaction.llm.names import read_model_name
from compaction.llm.prices import Rates
from compaction.ports import SummaryRequest, SummaryRoute
from dashboard.models import SummarizerName
from dashboard.runs.basis import Basis
from dashboard.runs.choices import RunChoices
from dashboard.runs.team_settings import SummarizerChoice

TYPICAL_SUMMARY_TOKENS = 4_000  # ours, for the expectation alone; what is held back counts the whole output limit
_MILLION = Decimal(1_000_000)
_PLACES = Decimal("0.00000001")


@dataclass(frozen=True)
class ExpectedCost:
    """Of one request to one model. None: it has no known price, or there is no cache it could hit."""

    model: str
    sent_tokens: int
    hit_usd: Decimal | None
    miss_usd: Decimal | None
    most_usd: Decimal | None
    source: str = ""


def spell_model(model: str) -> str:
    """As the API itself takes it: without the client's mark for the long window, without a cloud platform's route."""
    name = read_model_name(model)
    if name.version is None:
        return model.strip()
    return f"{name.base}-{name.dated}" if name.dated else name.base


def choose_models(basis: Basis, choices: RunChoices, settings: SummarizerChoice) -> SummaryModels:
    """The person's model alone; else the team's, or the session's own behind the team's small one. None is asked
    where no model writes."""
    if not choices.summarizer.is_paid:
        return SummaryModels()
    if choices.summarizer is SummarizerName.NATIVE:
        # The block goes back to the model that made it, so the session's own is asked before any other.
        own = choices.model or basis.model or settings.model
        return SummaryModels(session=spell_model(own) if own else None, session_window_tokens=_find_window(own or ""))
    if choices.model:
        return SummaryModels(session=spell_model(choices.model), session_window_tokens=_find_window(choices.model))
    own, small = settings.model or basis.model, settings.small_model
    return SummaryModels(
        session=spell_model(own) if own else None,
        small=spell_model(small) if small else None,
        small_window_tokens=_find_window(small) if small else 0,
        session_window_tokens=_find_window(own) if own else 0,
    )


def _find_window(model: str) -> int:
    window = get_window(ModelInUse(model, is_claude_code=False))
    return window.tokens if window else 0


def count_request_tokens(request: SummaryRequest, basis: Basis) -> int:
    """A fork sends what the last call sent, and the prompt; a request of its own is counted by its text."""
    if request.route is SummaryRoute.FORK:
        return basis.before_tokens + add_margin(count_text_tokens(request.prompt))
    sent = {key: request.body.get(key) for key in ("system", "tools", "messages")}
    return add_margin(count_text_tokens(json.dumps(sent, ensure_ascii=False, default=str)))


def expect_cost(
    request: SummaryRequest, model: str, sent_tokens: int, *, settings: SummarizerChoice, now: datetime
) -> ExpectedCost:
    price = settings.find_price(model, now)
    rates = price.get_rates(sent_tokens) if price else None
    if price is None or rates is None:
        return ExpectedCost(model, sent_tokens, None, None, None)
    limit = request.body.get("max_tokens")
    most_output = limit if isinstance(limit, int) else MAX_SUMMARY_TOKENS
    is_fork = request.route is SummaryRoute.FORK
    new_tokens = add_margin(count_text_tokens(request.prompt))
    read_usd = rates.read_mtok_usd if is_fork else None
    return ExpectedCost(
        model=model,
        sent_tokens=sent_tokens,
        hit_usd=None
        if read_usd is None
        else _add(
            (max(0, sent_tokens - new_tokens), read_usd),
            (new_tokens, rates.input_mtok_usd),
            (TYPICAL_SUMMARY_TOKENS, rates.output_mtok_usd),
        ),
        miss_usd=_add(
            (sent_tokens, rates.input_mtok_usd), (min(TYPICAL_SUMMARY_TOKENS, most_output), rates.output_mtok_usd)
        ),
        most_usd=_add((sent_tokens, _find_dearest(rates, is_fork=is_fork)), (most_output, rates.output_mtok_usd)),
        source=price.source,
    )


def _find_dearest(rates: Rates, *, is_fork: bool) -> Decimal:
    """A fork carries its parent's markers: a miss writes the cache anew."""
    writes = (rates.write_5m_mtok_usd, rates.write_1h_mtok_usd) if is_fork else ()
    return max(rates.input_mtok_usd, *(rate for rate in writes if rate is not None), Decimal(0))


def _add(*parts: tuple[int, Decimal]) -> Decimal:
    return sum((tokens * rate / _MILLION for tokens, rate in parts), Decimal(0)).quantize(_PLACES)
