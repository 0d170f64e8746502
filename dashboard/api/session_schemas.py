"""One session and its calls, as the API gives them."""

from datetime import datetime
from decimal import Decimal

from ninja import Field, Schema

from dashboard.pages.live_state import LiveState
from dashboard.pages.session_call import VerdictKind


class RangeOut(Schema):
    low: int
    likely: int
    high: int


class ForecastOut(Schema):
    """What is left until the auto-compact line, or until the end of what is available while that is off."""

    remaining_tokens: int
    growth_tokens_per_call: int
    calls: RangeOut
    turns: RangeOut | None = Field(None, description="Null where too few whole turns are known.")
    minutes: RangeOut | None = Field(None, description="Of work, pauses left out.")


class LineOut(Schema):
    """One step of the sum that leads from the window to the lines."""

    name: str
    tokens: int
    formula: str = Field(description="Empty for a figure that is taken as it is.")
    origin: str
    words: str
    is_acting: bool


class RelativeOut(Schema):
    external_id: str
    id: int | None = Field(description="Null when that session is not here.")


class NextPromptOut(Schema):
    """What sending the context once more costs; what is said and answered next comes on top. At your
    prices, else list price."""

    prompt_tokens: int
    warm_usd: Decimal = Field(description="While the cache holds.", examples=["0.06120000"])
    cold_usd: Decimal = Field(description="When it went cold.", examples=["0.73440000"])
    extra_usd: Decimal = Field(description="What a pause beyond the cache's lifetime costs.", examples=["0.67320000"])
    ttl: str = Field(description="The lifetime it would be written for: 5m, 1h, or off.", examples=["5m"])


class SessionDetailOut(Schema):
    """Everything the header of a session shows. Dollars are at your prices, else list price."""

    id: int
    external_id: str
    team: str
    title: str | None = Field(description="Null without the right to read the session's content.")
    project: str
    project_path: str
    branch: str
    developer: str
    model: str
    client_version: str
    is_claude_code: bool = Field(description="False: of another agent, whose window is that of the API.")
    is_window_inferred: bool = Field(
        description="`model` names the long window because a call held more than the short one: no call says so."
    )
    sources: list[str]
    forked_from: RelativeOut | None
    forks: list[RelativeOut]
    state: LiveState
    started_at: datetime | None
    last_at: datetime
    ended_at: datetime | None
    warm_until: datetime | None = Field(description="Until when the cache of the main conversation holds.")
    window_tokens: int | None = Field(description="Null when the window of the model is not known.")
    context_tokens: int = Field(description="Measured by the last call, and what arrived since.")
    pending_tokens: int = Field(description="The estimated part of `context_tokens`: what arrived since.")
    context_provenance: str = Field(
        description="measured, or estimated where a part of it is, as after a compaction that no call has followed "
        "yet; empty before any call."
    )
    peak_tokens: int
    level: str
    is_soon: bool = Field(description="At most 5 calls or 2 turns from the auto-compact line.")
    percent_left: int | None
    policy_version: int
    lines: list[LineOut]
    auto_state: str | None
    remarks: list[str]
    forecast: ForecastOut | None
    forecast_reason: str = Field(description="Why there is no forecast; empty when there is one.")
    next_prompt: NextPromptOut | None = Field(
        description="Of the conversation the gauge shows. Null without a price, before any call, and after a "
        "compaction that no call has followed yet."
    )
    input_tokens: int
    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int
    output_tokens: int
    hit_rate: float | None = Field(description="Of all calls of the session; null before the first prompt.")
    spent_usd: Decimal | None = Field(description="Null when no call has a known price.")
    lost_usd: Decimal | None
    avoidable_usd: Decimal | None
    client_cost_usd: Decimal | None = Field(description="The client's own total, where it tells one.")
    client_tokens: int | None = Field(description="Tokens of all kinds by the client's metrics, where it sends them.")
    unpriced_count: int = Field(description="Calls without a known price: the sums leave them out.")
    call_count: int
    turn_count: int
    break_count: int
    rebuild_count: int
    compaction_count: int = Field(description="Full compactions by the client.")
    mid_task_count: int
    micro_count: int
    failed_compaction_count: int = Field(description="Compactions by the client that failed.")
    run_count: int = Field(description="Compactions by Plimsoll, as `/sessions/{id}/runs` lists them.")
    sub_agent_count: int
    has_content: bool
    content_removed_at: datetime | None = Field(description="When the team's retention took words of it away.")
    reading_version: int | None = Field(description="The earliest version of the reader that read a line of it.")


class VerdictOut(Schema):
    """What happened to the cache at a call."""

    kind: VerdictKind
    title: str = Field(examples=["The tools changed."])
    sentence: str = Field(examples=["38.0k tokens were gone, 38.0k written again: $0.25 at list price."])
    break_id: int | None = Field(description="Of the break or rebuild, for `/breaks/{id}`.")


class KindPricesOut(Schema):
    """Dollars by kind of tokens, at your prices, else list price."""

    read_usd: Decimal = Field(examples=["0.01440000"])
    write_5m_usd: Decimal = Field(examples=["0.14250000"])
    write_1h_usd: Decimal = Field(examples=["0.00000000"])
    uncached_usd: Decimal = Field(examples=["0.00001200"])
    output_usd: Decimal = Field(examples=["0.00750000"])
    other_usd: Decimal = Field(
        description="Searches, further samplings of the call, or a tier with another price.", examples=["0.00000000"]
    )


class CallOut(Schema):
    """One call. `is_counted` is false for a copy of a call that another session had first."""

    id: int
    agent_id: str = Field(description="Empty for the main conversation.")
    number: int = Field(description="Place in its thread, from 1.")
    call_id: str
    request_id: str
    is_counted: bool
    at: datetime | None
    ended_at: datetime | None
    turn: int
    model: str
    client_version: str
    query_source: str
    stop_reason: str
    input_tokens: int
    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int
    output_tokens: int
    is_output_estimated: bool
    output_estimate: str = Field(description="How an estimated output was found; empty where it was reported.")
    context_tokens: int
    cost_usd: Decimal | None
    prices: KindPricesOut | None = Field(description="Null where no price is known.")
    verdict: VerdictOut
    next_prompt: NextPromptOut | None = Field(description="Of the last call of a thread; null for all others.")
    duration_seconds: float | None
    ttft_seconds: float | None
    provenance: dict[str, str]


class CallsOut(Schema):
    calls: list[CallOut]
    next: int | None = Field(description="Give it as `after` to read on; null at the end.")


class CallsAsked(Schema):
    agent: str | None = Field(None, description="One thread: empty for the main conversation, else its agent id.")
    after: int | None = Field(None, description="The `next` of the page before.")
    limit: int = Field(100, ge=1, le=500)
