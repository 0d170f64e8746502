"""Help for agent authors with the prompt itself: linted, laid out, with context in front. Nothing is stored."""

from typing import Annotated, Any

from ninja import Field, Router, Schema
from pydantic import ConfigDict

from compaction.cache.layout import Layout
from compaction.llm.cache_ttl import CacheTtl
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
        description="Requests of the conversation before it, oldest first: they show whether tools keep their order.",
    )
    betas: list[Line] = Field(default_factory=list, max_length=100, description="Of the header `anthropic-beta`.")


class LintFindingOut(Schema):
    rule: str
    path: str = Field(description="The block it is about, as system[2] or messages[14].content[0]; may be empty.")
    sentence: str


class LintOut(Schema):
    findings: list[LintFindingOut]
    model: str | None
    tool_count: int
    system_count: int
    message_count: int
    marker_count: int
    least_tokens: int | None = Field(description="The shortest prefix this model caches; null where it is not known.")


class NamedText(Input):
    name: Annotated[str, Field(min_length=1, max_length=1000)]
    text: str


class ReminderIn(Input):
    """Instruction files share 40,000 tokens; the one that passes them is cut with a mark."""

    instruction_files: list[NamedText] = Field(default_factory=list, max_length=MOST_TEXTS)
    sections: list[NamedText] = Field(
        default_factory=list,
        max_length=MOST_TEXTS,
        examples=[[{"name": "Todos", "text": "1. rename the flag"}]],
    )


class ReminderOut(Schema):
    message: Message | None = Field(description="To stand before the first message; null when there is nothing to say.")


class LayoutIn(Input):
    """What never changes comes first in `system`; what changes from session to session is the last of its texts."""

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


@router.post("/prompt/lint", response={200: LintOut, 403: Problem, 422: Problem, **BODY_PROBLEMS})
def lint_one_prompt(request: ApiRequest, body: LintIn) -> dict[str, object]:
    """What keeps this request from being cached well, each finding with the block it is about."""
    require_some_right(request.auth)
    return describe_lint(lint_prompt(body.request, body.earlier, betas=body.betas))


@router.post("/prompt/reminder", response={200: ReminderOut, 403: Problem, 422: Problem, **BODY_PROBLEMS})
def write_one_reminder(request: ApiRequest, body: ReminderIn) -> dict[str, object]:
    """Instruction files and titled context as one message in front: it stays the same, so the cache holds behind it."""
    require_some_right(request.auth)
    files = [(each.name, each.text) for each in body.instruction_files]
    return {"message": write_reminder(files, [(each.name, each.text) for each in body.sections])}


@router.post("/prompt/layout", response={200: LayoutOut, 403: Problem, 422: Problem, **BODY_PROBLEMS})
def lay_out_prompt(request: ApiRequest, body: LayoutIn) -> dict[str, Any]:
    """The parts of a request with cache markers in the right places."""
    require_some_right(request.auth)
    return lay_out(system=body.system, tools=body.tools, messages=body.messages, ttl=body.ttl, layout=body.layout)


def describe_lint(lint: Lint) -> dict[str, object]:
    found = [{"rule": each.rule, "path": each.cited, "sentence": each.sentence} for each in lint.findings]
    return {name: getattr(lint, name) for name in LintOut.model_fields if name != "findings"} | {"findings": found}


def require_some_right(actor: Actor) -> None:
    """No team's data is looked at: any key that reads or compacts will do."""
    access.require_anywhere(actor, Act.SEE if actor.may_anywhere(Act.SEE) else Act.RUN_OWN)
