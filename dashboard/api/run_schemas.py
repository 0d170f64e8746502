"""What the endpoints of runs take and give."""

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any

from ninja import Field, Schema
from pydantic import ConfigDict, StringConstraints

from dashboard.api.audits import LOST_COUNT, RETAINED, LostOut, RetainedPartOut
from dashboard.api.schemas import Input
from dashboard.models import RunKind, RunState, SummarizerName
from dashboard.runs.choices import LONGEST_INSTRUCTIONS, RunChoices
from dashboard.runs.predicted_losses import PredictionSource
from dashboard.runs.revisions import LONGEST_SUMMARY

# A NUL would reach PostgreSQL, which takes none.
Line = Annotated[str, StringConstraints(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]

PIVOT = "6f0c3a52-6d0b-4a57-9f0e-2a3f0c7c8a11"
CHOICES: dict[str, Any] = {
    "kind": "up_to",
    "summarizer": "claude",
    "pivot_uuid": PIVOT,
    "instructions": "Keep every file path.",
    "model": "claude-haiku-4-5",
}


class RunIn(Input):
    """Defaults: a full compaction of the main conversation, without a model."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [CHOICES]})

    kind: RunKind = RunKind.FULL
    summarizer: SummarizerName = SummarizerName.EXTRACTIVE
    agent_id: Line = Field("", description="Empty: the main conversation.")
    pivot_uuid: Line = Field("", description="Entry of the conversation; for `from` and `up_to`.")
    instructions: str = Field("", max_length=LONGEST_INSTRUCTIONS)
    model: Line = Field("", description="Default: the team's choice, then the session's own.")
    accept_difference: bool = Field(
        False,
        description="Confirms that the stored lines add up to much less or more than the measured context. Without it "
        "such a run is rejected (409, `context_differs`).",
    )

    def to_choices(self) -> RunChoices:
        return RunChoices(**self.model_dump())


class RunRevisionIn(Input):
    text: str = Field(min_length=1, max_length=LONGEST_SUMMARY, examples=["1. Primary Request and Intent: …"])
    base_number: int | None = Field(
        None, ge=1, description="The revision you read. A newer one is not overwritten (409)."
    )


class RunNoticeOut(Schema):
    code: str
    sentence: str
    figures: dict[str, Any]


class RunRefusal(Schema):
    """Why a run cannot be started or changed, with the values behind it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "detail": "This may cost up to $1.20. The team's cap is $5.00 a day (UTC), $4.10 are spent.",
                    "code": "cap_reached",
                    "figures": {"cap_usd": "5.00", "spent_usd": "4.10", "reserved_usd": "0.00", "wanted_usd": "1.20"},
                }
            ]
        }
    )

    detail: str
    code: str
    figures: dict[str, Any]


class RunCostOut(Schema):
    model: str
    hit_usd: Decimal | None = Field(description="Null if there is no cache to read, or no price is known.")
    miss_usd: Decimal | None
    most_usd: Decimal | None = Field(
        description="Reserved for the first request; each further request reserves its own."
    )
    source: str


class LostRangeOut(Schema):
    low: int
    median: int
    high: int


class RetainedRangeOut(Schema):
    low: Decimal
    median: Decimal
    high: Decimal


class PredictedLossesOut(Schema):
    source: PredictionSource = Field(
        description="dry_run: the result was built without a model and audited as a run audits it, so its losses are "
        "exact for this preview. earlier_runs: a model would write the summary; the ranges are of the team's newest "
        "audited runs of this kind and summarizer, at most 100. none: there are fewer than 5 of them."
    )
    lost_count: int | None = Field(description="Total number lost in the dry run.")
    retained_percent: Decimal | None = Field(description=RETAINED)
    lost: list[LostOut] | None = Field(
        description="The 3 most important losses of the dry run; null without content access."
    )
    run_count: int = Field(description="Earlier runs of this kind and summarizer; 0 for a dry run.")
    lost_range: LostRangeOut | None = Field(description="Things lost in earlier runs.")
    retained_range: RetainedRangeOut | None = Field(description="Percent retained in earlier runs.")


class RunPreviewOut(Schema):
    kind: RunKind
    summarizer: SummarizerName
    model: str = Field(description="The model that would be used; empty without a model.")
    path: str = Field(
        description="fork: reuses the session's prompt cache; plain: a separate request; empty without a model."
    )
    fork_refusal: str
    messages_sent: int = Field(description="Sent to the model; 0 without a model.")
    sent_tokens: int
    kept_tokens: int
    summarised_count: int
    kept_count: int
    dropped_count: int
    cleared_count: int
    cleared_tokens: int
    before_tokens: int
    before_origin: str
    line_tokens: int | None = Field(description="The effective auto-compact threshold.")
    gap_count: int = Field(description="Positions in the model's context where lines are missing.")
    found_tokens: int | None = Field(
        description="Sum of the stored lines, if it differs by more than 25% from the measured size."
    )
    expected_after_tokens: list[int] | None = Field(description="Lower and upper bound; equal if known.")
    costs: list[RunCostOut] = Field(description="By model, in the order in which they would be used.")
    losses: PredictedLossesOut | None = Field(
        description="What the run is expected to lose; null if a run with these options is not possible."
    )
    prompt: str | None = Field(description="Null without content access.")
    refusals: list[RunNoticeOut] = Field(description="Problems that prevent a run with these options.")
    warnings: list[RunNoticeOut]


class RunAttemptOut(Schema):
    number: int
    path: str
    model: str
    message_id: str
    request_id: str
    at: datetime
    duration_seconds: float
    input_tokens: int
    read_tokens: int
    write_5m_tokens: int
    write_1h_tokens: int
    output_tokens: int
    hit_percent: int | None
    cost_usd: Decimal | None
    failure_code: str
    failure_sentence: str


class RunRevisionOut(Schema):
    number: int
    created_at: datetime
    edited_by: str = Field(description="Empty: as written by the summariser.")
    summary_tokens: int
    after_tokens: int
    missing_sections: list[str]
    retained_percent: Decimal | None = Field(description=RETAINED)
    parts: list[RetainedPartOut]
    lost_count: int = Field(description=LOST_COUNT)
    lost: list[LostOut] | None = Field(description="Most important first; null without content access, like the text.")
    text: str | None


class RunRestoredOut(Schema):
    kind: str
    name: str = Field(description="Empty without content access.")
    tokens: int
    state: str
    reason: str
    entry_uuid: str | None


class RunFailureOut(Schema):
    code: str
    sentence: str
    kept: str
    advice: str


class RunOut(Schema):
    id: int
    session_id: int
    agent_id: str
    kind: RunKind
    summarizer: SummarizerName
    model: str
    state: RunState
    stage: str
    stage_at: datetime
    written_tokens: int = Field(description="Tokens of the summary so far, while it is being written.")
    source: str
    started_by: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    before_tokens: int | None
    before_origin: str
    after_tokens: int | None
    after_origin: str
    line_tokens: int | None
    gap_count: int = Field(description="Positions in the model's context where lines were missing.")
    found_tokens: int | None = Field(
        description="Sum of the stored lines, if it differed by more than 25% from the measured size."
    )
    accepts_difference: bool = Field(description="Whether that difference was confirmed.")
    kept_count: int
    summarised_count: int
    dropped_count: int
    cleared_count: int
    reserved_usd: Decimal
    spent_usd: Decimal
    again_of: int | None
    failure: RunFailureOut | None


class RunDetailOut(RunOut):
    content: str = Field(description="shown, not granted, not stored or removed (by the team's retention).")
    pivot_uuid: str
    instructions: str | None = Field(description="Null without content access.")
    fork_refusal: str
    attempts: list[RunAttemptOut]
    revisions: list[RunRevisionOut] = Field(description="Oldest first; empty for a micro-compaction.")
    restored: list[RunRestoredOut]


class RunsOut(Schema):
    items: list[RunOut]
    next: str | None = Field(description="Pass as `before` for the next page; null on the last page.")
