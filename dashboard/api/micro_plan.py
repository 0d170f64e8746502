"""Micro-compaction for an agent to carry out: which cached results to delete, and what to ask the API to clear."""

from typing import Annotated, Any

from ninja import Field, Router, Schema
from pydantic import ConfigDict

from compaction.compactors.micro.api_context_editing import ContextEditingSettings
from compaction.compactors.micro.cache_edits import CacheEditState, EditSettings, PinnedEdit, build_edits_block
from compaction.compactors.micro.clearing import CLEARABLE_TOOLS
from compaction.transcripts.api_messages import read_messages
from dashboard.accounts.refusals import Refused
from dashboard.agents.micro_plans import CONTEXT_EDITING_BETA, MicroPlan, MicroWish, plan_for_session, plan_micro
from dashboard.api.agent_schemas import MOST_MESSAGES, Message, Tokens
from dashboard.api.bodies import BODY_PROBLEMS
from dashboard.api.check import find_session
from dashboard.api.prompt import require_some_right
from dashboard.api.request import ApiRequest, BadQuestion
from dashboard.api.run_schemas import Line
from dashboard.api.schemas import Input, Problem

router = Router(tags=["agents"])
MOST_RESULTS = 20_000
Names = Annotated[list[Line], Field(max_length=MOST_RESULTS)]


class PinnedIn(Input):
    message_index: int = Field(ge=0, le=MOST_MESSAGES)
    references: Names


class EditStateIn(Input):
    """`state` of the last plan."""

    order: Names = Field(default_factory=list)
    deleted: Names = Field(default_factory=list)
    pinned: list[PinnedIn] = Field(default_factory=list, max_length=MOST_MESSAGES)
    deleted_tokens: Tokens = 0
    cache_read_tokens: Tokens | None = None


class MicroPlanIn(Input):
    """A conversation as it would be sent next, or a stored session."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "messages": [
                        {"role": "user", "content": "Look at cli.py."},
                        {
                            "role": "assistant",
                            "content": [
                                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "cli.py"}}
                            ],
                        },
                        {
                            "role": "user",
                            "content": [
                                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "def main(): ..."}
                            ],
                        },
                    ],
                    "tools": ["Read", "Edit"],
                },
                {"session": "6f0c3a52-6d0b-4a57-9f0e-2a3f0c7c8a11"},
            ]
        }
    )

    session: Line | None = Field(None, description="The session's id, or its number in Plimsoll.")
    messages: list[Message] = Field(default_factory=list, max_length=MOST_MESSAGES)
    tools: Names = Field(default_factory=list, description="Names of the request's tools. Default: the tools used.")
    clearable_tools: Names | None = Field(
        None, description="Tools whose old results may be deleted from the cache. Default: the client's list."
    )
    trigger_results: int = Field(12, ge=1, le=MOST_RESULTS, description="Minimum number of active results.")
    kept_results: int = Field(3, ge=0, le=MOST_RESULTS)
    idle_seconds: float | None = Field(
        None, ge=0, description="Time since the last call; thinking is dropped from the cache after an hour."
    )
    trigger_tokens: Tokens = Field(180_000, description="Input tokens from which the API clears.")
    target_tokens: Tokens = Field(40_000, description="Number of tool results the API keeps.")
    state: EditStateIn = Field(default_factory=EditStateIn)
    cache_read_tokens: Tokens | None = Field(None, description="`cache_read_input_tokens` of the response since then.")
    cache_deleted_tokens: Tokens | None = Field(None, description="`cache_deleted_input_tokens` of that response.")

    def to_wish(self) -> MicroWish:
        tools = CLEARABLE_TOOLS if self.clearable_tools is None else frozenset(self.clearable_tools)
        return MicroWish(
            tool_names=self.tools,
            idle_seconds=self.idle_seconds,
            state=_read_state(self.state),
            cache_read_tokens=self.cache_read_tokens,
            cache_deleted_tokens=self.cache_deleted_tokens,
            edit_settings=EditSettings(self.trigger_results, self.kept_results, tools),
            native_settings=ContextEditingSettings(
                trigger_tokens=self.trigger_tokens, target_tokens=self.target_tokens
            ),
        )


class PinnedOut(Schema):
    message_index: int
    references: list[str]


class EditStateOut(Schema):
    order: list[str]
    deleted: list[str]
    pinned: list[PinnedOut]
    deleted_tokens: int
    cache_read_tokens: int | None


class CacheEditsOut(Schema):
    """Deletions from the cached prefix. The messages are unchanged, so the cache stays warm."""

    result_count: int = Field(description="Results seen so far.")
    deletions: list[str] = Field(description="New in this plan; empty if there are too few results.")
    expected_tokens: int = Field(description="Their estimated size. The next response reports the actual size.")
    is_drop_expected: bool = Field(description="The next cache read will be lower; this is not a cache break.")
    edits_block: dict[str, Any] | None = Field(
        description="Block with the new deletions; add it after the tool results of the last user message."
    )
    messages: list[Message] | None = Field(
        description="Messages with `cache_reference` on results and `cache_edits` blocks; null for a stored session."
    )
    state: EditStateOut = Field(description="Send it with the next plan request.")


class ContextEditingOut(Schema):
    beta: str = Field(description="Values for the header `anthropic-beta`.")
    context_management: dict[str, Any] | None = Field(description="For the request; null if nothing applies.")


class MicroPlanOut(Schema):
    """Two alternatives: use one of them."""

    cache_edits: CacheEditsOut
    context_editing: ContextEditingOut


@router.post(
    "/prompt/micro-plan",
    summary="Plan micro-compaction",
    response={200: MicroPlanOut, 403: Problem, 404: Problem, 409: Problem, 422: Problem, **BODY_PROBLEMS},
)
def plan_one_micro(request: ApiRequest, body: MicroPlanIn) -> dict[str, object]:
    """Which old tool results to clear before the next call. Nothing is stored or changed."""
    if body.session:
        session = find_session(request.auth, body.session)
        if not session.has_content:
            raise Refused("No content of this session is stored, so its tool results are unknown. Send `messages`.")
        return describe_plan(plan_for_session(session, body.to_wish()))
    require_some_right(request.auth)
    if not body.messages:
        raise BadQuestion("Send `session` or `messages`.")
    return describe_plan(plan_micro(read_messages(body.messages), body.messages, body.to_wish()))


def describe_plan(plan: MicroPlan) -> dict[str, object]:
    state = plan.state
    return {
        "cache_edits": {
            "result_count": plan.result_count,
            "deletions": list(plan.deletions),
            "expected_tokens": plan.deleted_tokens,
            "is_drop_expected": plan.is_drop_expected,
            "edits_block": build_edits_block(plan.deletions) if plan.deletions else None,
            "messages": plan.messages,
            "state": {
                "order": list(state.order),
                "deleted": [tool_id for tool_id in state.order if tool_id in state.deleted],
                "pinned": [
                    {"message_index": pin.message_index, "references": list(pin.references)} for pin in state.pinned
                ],
                "deleted_tokens": state.deleted_tokens,
                "cache_read_tokens": state.cache_read_tokens,
            },
        },
        "context_editing": {"beta": CONTEXT_EDITING_BETA, "context_management": plan.context_management},
    }


def _read_state(given: EditStateIn) -> CacheEditState:
    order = tuple(dict.fromkeys(given.order))
    return CacheEditState(
        registered=frozenset(order),
        order=order,
        deleted=frozenset(given.deleted),
        pinned=tuple(PinnedEdit(pin.message_index, tuple(pin.references)) for pin in given.pinned),
        deleted_tokens=given.deleted_tokens,
        cache_read_tokens=given.cache_read_tokens,
    )
