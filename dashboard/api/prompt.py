"""Help for agent authors with the prompt itself: linted, laid out, with context in front. Nothing is stored."""

from typing import Annotated, Any

from ninja import Field, Router, Schema
from pydantic import ConfigDict

from compaction.context.cache_ttl import CacheTtl
from compaction.prompt.markers import Layout
from dashboard import access
from dashboard.access import Act, Actor
from dashboard.agents.prompts import Lint, lay_out, lint_prompt, write_reminder
from dashboard.api.agent_schemas import MOST_MESSAGES, Message
from dashboard.api.bodies import BODY_PROBLEMS
from dashboard.api.request import ApiRequest
from dashboard.api.run_schemas import Line
from dashboard.api.schemas import Input, Problem

router = Router(tags=["agents"])
MOST_EARLIER = 20
MOST_TEXTS = 1000


class LintIn(Input):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "request": {
                        "model": "claude-sonnet-5-5",
                        "system": "Today is 2026-11-16. You are careful.",
                        "messages": [{"role": "user", "content": "hello"}],
                    }
                }
            ]
        }
    )

    request: dict[str, Any] = Field(description="The body of a request to /v1/messages.")
    earlier: list[dict[str, Any]] = Field(
        default_factory=list,
        max_length=MOST_EARLIER,
        description="Earlier requests of the conversation, oldest first. They show whether tools keep their order.",
    )
    betas: list[Line] = Field(
        default_factory=list, max_length=100, description="Values of the header `anthropic-beta`."
    )


class LintFindingOut(Schema):
    rule: str
    path: str = Field(description="The affected block, such as system[2] or messages[14].content[0]; may be empty.")
    sentence: str


class LintOut(Schema):
    findings: list[LintFindingOut]
    model: str | None
    tool_count: int
    system_count: int
    message_count: int
    breakpoint_count: int = Field(description="Cache breakpoints: blocks with `cache_control`.")
    least_tokens: int | None = Field(description="The shortest prefix this model caches; null if unknown.")


class NamedText(Input):
    name: Annotated[str, Field(min_length=1, max_length=1000)]
    text: str


class ReminderIn(Input):
    """Instruction files share 40,000 tokens; the file that exceeds them is truncated with a mark."""

    instruction_files: list[NamedText] = Field(default_factory=list, max_length=MOST_TEXTS)
    sections: list[NamedText] = Field(
        default_factory=list,
        max_length=MOST_TEXTS,
        examples=[[{"name": "Todos", "text": "1. rename the flag"}]],
    )


class ReminderOut(Schema):
    message: Message | None = Field(description="Insert before the first message; null if there is no content.")


class LayoutIn(Input):
    """Stable content comes first in `system`; content that varies per session is its last text."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "system": ["You are careful.", "Branch: main"],
                    "messages": [{"role": "user", "content": "hello"}],
                    "ttl": "1h",
                }
            ]
        }
    )

    system: list[str] = Field(default_factory=list, max_length=MOST_TEXTS, examples=[["You are careful.", "Branch: x"]])
    tools: list[dict[str, Any]] = Field(default_factory=list, max_length=MOST_TEXTS)
    messages: list[Message] = Field(default_factory=list, max_length=MOST_MESSAGES)
    ttl: CacheTtl = CacheTtl.FIVE_MINUTES
    layout: Layout = Layout.OBSERVED


class LayoutOut(Schema):
    system: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    messages: list[Message]


@router.post(
    "/prompt/lint", summary="Check prompt", response={200: LintOut, 403: Problem, 422: Problem, **BODY_PROBLEMS}
)
def lint_one_prompt(request: ApiRequest, body: LintIn) -> dict[str, object]:
    """Finds problems that keep this request from being cached, each with the affected block."""
    require_some_right(request.auth)
    return describe_lint(lint_prompt(body.request, body.earlier, betas=body.betas))


@router.post(
    "/prompt/reminder",
    summary="Create context reminder",
    response={200: ReminderOut, 403: Problem, 422: Problem, **BODY_PROBLEMS},
)
def write_one_reminder(request: ApiRequest, body: ReminderIn) -> dict[str, object]:
    """Instruction files and titled context as one stable first message, so that the cache survives."""
    require_some_right(request.auth)
    files = [(each.name, each.text) for each in body.instruction_files]
    return {"message": write_reminder(files, [(each.name, each.text) for each in body.sections])}


@router.post(
    "/prompt/layout", summary="Lay out prompt", response={200: LayoutOut, 403: Problem, 422: Problem, **BODY_PROBLEMS}
)
def lay_out_prompt(request: ApiRequest, body: LayoutIn) -> dict[str, Any]:
    """The parts of a request with cache breakpoints (`cache_control`) in the right positions."""
    require_some_right(request.auth)
    return lay_out(system=body.system, tools=body.tools, messages=body.messages, ttl=body.ttl, layout=body.layout)


def describe_lint(lint: Lint) -> dict[str, object]:
    found = [{"rule": each.rule, "path": each.cited, "sentence": each.sentence} for each in lint.findings]
    return {name: getattr(lint, name) for name in LintOut.model_fields if name != "findings"} | {"findings": found}


def require_some_right(actor: Actor) -> None:
    """No team's data is looked at: any key that reads or compacts will do."""
    access.require_anywhere(actor, Act.SEE if actor.may_anywhere(Act.SEE) else Act.RUN_OWN)
