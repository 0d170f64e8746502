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
    """Remaining until the auto-compact threshold, or until the end of the usable window if auto-compact is off."""

    remaining_tokens: int
    growth_tokens_per_call: int
    calls: RangeOut
    turns: RangeOut | None = Field(None, description="Null if too few complete turns are known.")
    minutes: RangeOut | None = Field(None, description="Working time, without pauses.")


class LineOut(Schema):
    """One step of the calculation from the window to the thresholds."""

    name: str
    tokens: int
    formula: str = Field(description="Empty for a value used as is.")
    origin: str
    words: str
    is_acting: bool


class RelativeOut(Schema):
    external_id: str
    id: int | None = Field(description="Null if that session is not stored.")


class NextPromptOut(Schema):
    """Cost of sending the context once more, without new input and output. At your prices, otherwise list price."""

    prompt_tokens: int
    warm_usd: Decimal = Field(description="While the cache is warm.", examples=["0.06120000"])
    cold_usd: Decimal = Field(description="When the cache is cold.", examples=["0.73440000"])
    extra_usd: Decimal = Field(description="Cost of a pause longer than the cache lifetime.", examples=["0.67320000"])
    ttl: str = Field(description="Lifetime of the next cache write: 5m, 1h, or off.", examples=["5m"])


class SessionDetailOut(Schema):
    """All values in the header of a session. Dollars are at your prices, otherwise list price."""

    id: int
    external_id: str
    team: str
    title: str | None = Field(description="Null without content access.")
    project: str
    project_path: str
    branch: str
    developer: str
    model: str
    client_version: str
    is_claude_code: bool = Field(description="False: another agent, which uses the API's window.")
    is_window_inferred: bool = Field(
        description="`model` names the long window because a call exceeded the short window; it was not reported."
    )
    sources: list[str]
    forked_from: RelativeOut | None
    forks: list[RelativeOut]
    state: LiveState
    started_at: datetime | None
    last_at: datetime
    ended_at: datetime | None
    warm_until: datetime | None = Field(description="When the cache of the main conversation expires.")
    window_tokens: int | None = Field(description="Null if the model's window is unknown.")
    context_tokens: int = Field(description="Measured by the last call, plus what arrived since.")
    pending_tokens: int = Field(description="The estimated part of `context_tokens`: what arrived since.")
    context_provenance: str = Field(
        description="measured, or estimated if any part is, such as after a compaction without a later call; empty "
        "before any call."
    )
    peak_tokens: int
    level: str
    is_soon: bool = Field(description="At most 5 calls or 2 turns from the auto-compact threshold.")
    percent_left: int | None
    policy_version: int
    lines: list[LineOut]
    auto_state: str | None
    remarks: list[str]
    forecast: ForecastOut | None
    forecast_reason: str = Field(description="Why there is no forecast; otherwise empty.")
    next_prompt: NextPromptOut | None = Field(
        description="For the conversation on the gauge. Null without a price, before any call, and after a compaction "
        "without a later call."
    )
    input_tokens: int
    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int
    output_tokens: int
    hit_rate: float | None = Field(description="Across all calls of the session; null before the first prompt.")
    spent_usd: Decimal | None = Field(description="Null if no call has a known price.")
    lost_usd: Decimal | None
    avoidable_usd: Decimal | None
    client_cost_usd: Decimal | None = Field(description="The client's own total, if reported.")
    client_tokens: int | None = Field(description="Tokens of all kinds by the client's metrics, if reported.")
    unpriced_count: int = Field(description="Calls without a known price, not included in the sums.")
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
    content_removed_at: datetime | None = Field(description="When the team's retention deleted content of it.")
    reading_version: int | None = Field(description="The oldest reader version that parsed a line of it.")


class VerdictOut(Schema):
    """Cache result of a call."""

    kind: VerdictKind
    title: str = Field(examples=["The tools changed."])
    sentence: str = Field(examples=["38.0k tokens were lost, 38.0k re-written to cache: $0.25 at list price."])
    break_id: int | None = Field(description="Id of the cache break or rebuild, for `/breaks/{id}`.")


class KindPricesOut(Schema):
    """Dollars by kind of tokens, at your prices, otherwise list price."""

    read_usd: Decimal = Field(examples=["0.01440000"])
    write_5m_usd: Decimal = Field(examples=["0.14250000"])
    write_1h_usd: Decimal = Field(examples=["0.00000000"])
    uncached_usd: Decimal = Field(examples=["0.00001200"])
    output_usd: Decimal = Field(examples=["0.00750000"])
    other_usd: Decimal = Field(
        description="Searches, additional samplings of the call, or a tier with another price.", examples=["0.00000000"]
    )


class CallOut(Schema):
    """One call. `is_counted` is false for a copy of a call that is counted in another session."""

    id: int
    agent_id: str = Field(description="Empty for the main conversation.")
    number: int = Field(description="Position in its thread, from 1.")
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
    output_estimate: str = Field(description="How an estimated output was calculated; empty if it was reported.")
    context_tokens: int
    cost_usd: Decimal | None
    prices: KindPricesOut | None = Field(description="Null if no price is known.")
    verdict: VerdictOut
    next_prompt: NextPromptOut | None = Field(description="For the last call of a thread; otherwise null.")
    duration_seconds: float | None
    ttft_seconds: float | None
    provenance: dict[str, str]


class CallsOut(Schema):
    calls: list[CallOut]
    next: int | None = Field(description="Pass as `after` for the next page; null at the end.")


class CallsAsked(Schema):
    agent: str | None = Field(None, description="Thread: empty for the main conversation, otherwise its agent id.")
    after: int | None = Field(None, description="`next` of the previous page.")
    limit: int = Field(100, ge=1, le=500)
