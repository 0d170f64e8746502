"""Compaction for any agent: messages in, compacted messages out."""

from decimal import Decimal
from typing import Any

from django.utils import timezone
from ninja import Field, Router, Schema, Status
from pydantic import ConfigDict

from compaction.compactors.outcome import EntryFate
from compaction.errors import RunError
from compaction.transcripts.api_messages import parse_message_index
from dashboard.access import Act
from dashboard.agents.message_compaction import Compacted, CompactKind, Wish, compact_at_once, read_conversation
from dashboard.agents.message_runs import choose_trigger, is_left_to_run, start_message_run
from dashboard.api.agent_schemas import AgentIn, Message, Model
from dashboard.api.audits import RETAINED, RetainedPartOut
from dashboard.api.bodies import BODY_PROBLEMS
from dashboard.api.named_team import find_team
from dashboard.api.request import ApiRequest
from dashboard.api.run_schemas import Line, RunRefusal
from dashboard.api.schemas import Problem
from dashboard.hooks.callbacks import CallbackWish, attach_callback, read_callback
from dashboard.hooks.targets import LONGEST_URL, TargetRefused
from dashboard.models import CompactionRun, RunState, SummarizerName
from dashboard.runs.choices import LONGEST_INSTRUCTIONS, RunChoices

router = Router(tags=["agents"])


class CompactIn(AgentIn):
    """The conversation as it would be sent next. `auto` does what is due, possibly nothing."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "claude-sonnet-5-5",
                    "kind": "full",
                    "messages": [
                        {"role": "user", "content": "Rename the flag --dry to --dry-run."},
                        {"role": "assistant", "content": "Done in cli.py and its tests."},
                    ],
                }
            ]
        }
    )

    model: Model = Field(examples=["claude-sonnet-5-5"])
    kind: CompactKind = CompactKind.AUTO
    instructions: str = Field("", max_length=LONGEST_INSTRUCTIONS)
    summarizer: SummarizerName = Field(
        SummarizerName.EXTRACTIVE,
        description="extractive: quoted without a model, immediately unless very long. claude: written by a model, as "
        "a run to poll. native: compacted by the API, as a run; its block is the first of the run's messages.",
    )
    summarizer_model: Line = Field("", description="Default: the team's choice, then the agent's own.")
    session: Line = Field(
        "",
        description="Your name for the conversation. A run stores the conversation under this name, redacted. "
        "Empty: a new name.",
    )
    callback_url: str = Field(
        "",
        max_length=LONGEST_URL,
        description="Told, signed, when the run ends, however it ends; unused where the answer comes at once. "
        "https alone, no private address, redirects are not followed.",
        examples=["https://agent.example/compacted"],
    )
    callback_secret: str = Field(
        "", max_length=200, description="Signs the callback. Empty: a secret is created and returned."
    )
    is_too_long: bool = Field(
        False, description="The API rejected the last call as too long: `auto` then ignores thresholds."
    )
    is_autonomous: bool = Field(
        True, description="Runs unattended: the summary tells the agent to continue on its own."
    )

    def to_choices(self) -> RunChoices:
        """For a run."""
        return RunChoices(
            summarizer=self.summarizer,
            instructions=self.instructions,
            model=self.summarizer_model,
            trigger=choose_trigger(self.to_wish()),
        )

    def to_wish(self) -> Wish:
        return Wish(
            question=self.to_question(self.model),
            kind=self.kind,
            instructions=self.instructions or None,
            is_too_long=self.is_too_long,
            is_autonomous=self.is_autonomous,
        )


class CompactStarted(Schema):
    """A worker writes the summary: poll the run until its state is done, then get its messages."""

    run: int
    state: RunState
    url: str = Field(examples=["/api/v1/runs/12"])
    messages_url: str = Field(examples=["/api/v1/runs/12/messages"])
    callback_secret: str = Field(description="Secret that signs the callback, shown once; empty without a callback.")


class LostFromMessageOut(Schema):
    part: str
    text: str
    message: int | None = Field(description="Index of its message in the request, from 0.")
    weight: float = Field(description="Weight within the audit.")


class PutBackOut(Schema):
    kind: str
    name: str
    tokens: int
    state: str
    reason: str


class CompactOutcomeOut(Schema):
    summary: str
    kept: list[int] = Field(description="Unchanged messages, by their index in the request.")
    summarised: list[int]
    dropped: list[int]
    restored: list[PutBackOut]
    retained_percent: Decimal | None = Field(description=RETAINED)
    parts: list[RetainedPartOut]
    lost: list[LostFromMessageOut] = Field(description="Lost items, most important first.")
    is_above_line: bool


class CompactOut(Schema):
    """Continue with `messages`, whether or not anything was changed."""

    decision: str = Field(description="What was done: cleared, compacted in full, below the threshold, …")
    messages: list[Message]
    before_tokens: int
    after_tokens: int
    line_tokens: int | None = Field(description="The auto-compact threshold; null if the window is unknown.")
    cleared_tool_ids: list[str]
    outcome: CompactOutcomeOut | None = Field(description="Null when no summary was written.")


@router.post(
    "/compact",
    summary="Compact messages",
    response={
        200: CompactOut,
        202: CompactStarted,
        403: Problem,
        404: Problem,
        409: RunRefusal,
        422: Problem,
        **BODY_PROBLEMS,
    },
)
def compact_agent(request: ApiRequest, body: CompactIn) -> Status[dict[str, Any]]:
    """Without a model at once, and nothing of it is stored. A run is started where a model is to write the summary, and
    for conversations of more than 2,000,000 tokens where the team stores content and you may read it; `auto` still
    answers at once where no summary is needed. A body may have 32 MiB, plain or gzip."""
    team, wish, now = find_team(request, body.team, Act.RUN_OWN), body.to_wish(), timezone.now()
    try:
        callback = read_callback(body.callback_url, body.callback_secret)
    except TargetRefused as refusal:
        return Status(422, {"detail": str(refusal)})
    try:
        talk = read_conversation(team, wish.question)
        is_run = body.summarizer.is_paid or is_left_to_run(request.auth, team, talk)
        compacted = compact_at_once(talk, wish, may_summarise=not is_run, now=now)
        if compacted is not None:
            return Status(200, describe_compacted(compacted))
        run = start_message_run(request.auth, team, talk, body.to_choices(), session_id=body.session, now=now)
    except RunError as error:
        return Status(409, {"detail": str(error), "code": error.reason, "figures": {}})
    if callback is not None:
        attach_callback(run, callback)
    return Status(202, describe_start(run, callback))


def describe_start(run: CompactionRun, callback: CallbackWish | None) -> dict[str, Any]:
    url, secret = f"/api/v1/runs/{run.pk}", callback.secret if callback else ""
    told = {"run": run.pk, "state": run.state, "url": url, "messages_url": f"{url}/messages"}
    return {**told, "callback_secret": secret}


def describe_compacted(compacted: Compacted) -> dict[str, Any]:
    return {
        "decision": compacted.decision,
        "messages": compacted.messages,
        "before_tokens": compacted.before_tokens,
        "after_tokens": compacted.after_tokens,
        "line_tokens": compacted.lines.auto.tokens if compacted.lines else None,
        "cleared_tool_ids": [tool_id for step in compacted.cleared for tool_id in step.cleared_tool_ids],
        "outcome": _describe_outcome(compacted),
    }


def _describe_outcome(compacted: Compacted) -> dict[str, Any] | None:
    outcome, audit = compacted.outcome, compacted.audit
    if outcome is None or audit is None:
        return None

    def list_places(fate: EntryFate) -> list[int]:
        return [index for uuid in outcome.list_uuids(fate) if (index := parse_message_index(uuid)) is not None]

    return {
        "summary": outcome.summary.text,
        "kept": list_places(EntryFate.KEPT),
        "summarised": list_places(EntryFate.SUMMARISED),
        "dropped": list_places(EntryFate.DROPPED),
        "restored": [{name: getattr(item, name) for name in PutBackOut.model_fields} for item in outcome.restored],
        "retained_percent": audit.retained,
        "parts": [
            {
                "part": each.part.value,
                "weight": each.weight,
                "found": each.found,
                "present": each.present,
                "retained_percent": each.retained,
            }
            for each in audit.parts
        ],
        "lost": [
            {
                "part": each.part.value,
                "text": each.text,
                "message": parse_message_index(each.entry_uuid),
                "weight": round(each.weight, 3),
            }
            for each in audit.lost
        ],
        "is_above_line": outcome.is_above_threshold,
    }
