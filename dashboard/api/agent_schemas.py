"""What agents send of themselves: their conversation, its usage, lines of their own."""

from typing import Annotated, Any

from ninja import Field
from pydantic import StringConstraints

from compaction.context.tokens import add_margin, count_text_tokens
from compaction.transcripts.reader import encode_json
from compaction.transcripts.usage import read_usage
from dashboard.agents.checks import Question
from dashboard.api.run_schemas import Line
from dashboard.api.schemas import Input

MOST_MESSAGES = 10_000
MOST_TOKENS = 2**53 - 1
Tokens = Annotated[int, Field(ge=0, le=MOST_TOKENS)]
Model = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Message = dict[str, Any]


class AgentIn(Input):
    """An agent's conversation. Sizes come from `usage`; messages after that response are estimated."""

    team: Line | None = Field(
        None, description="Slug of the team whose thresholds apply; required if you are in several teams."
    )
    usage: dict[str, Any] | None = Field(
        None,
        description="`usage` of the last response, as returned by the Messages API.",
        examples=[{"input_tokens": 12, "cache_read_input_tokens": 161_000, "output_tokens": 900}],
    )
    messages: list[Message] = Field(default_factory=list, max_length=MOST_MESSAGES)
    system: str | list[Any] | None = Field(None, description="Counts towards the size if `usage` is missing.")
    tools: list[Any] | None = Field(None, description="As `system`.")
    policy: dict[str, Any] = Field(
        default_factory=dict,
        description="Values that override the team's, named as in the team's policy.",
        examples=[{"auto_margin_tokens": 30_000}],
    )
    window_tokens: Tokens | None = Field(None, description="Set if the model's window differs from the built-in table.")
    max_output_tokens: Tokens | None = None
    clearable_tools: list[Line] | None = Field(
        None, description="Tools whose old results may be cleared. Default: all tools.", max_length=1000
    )

    def to_question(self, model: str, *, used_tokens: int | None = None) -> Question:
        return Question(
            model=model,
            usage=read_usage(self.usage) if self.usage is not None else None,
            used_tokens=used_tokens,
            messages=self.messages,
            policy=self.policy,
            window_tokens=self.window_tokens,
            max_output_tokens=self.max_output_tokens,
            prefix_tokens=self.count_prefix(),
            clearable_tools=None if self.clearable_tools is None else frozenset(self.clearable_tools),
        )

    def count_prefix(self) -> int:
        """Estimated size of system prompt and tools, margin included."""
        parts = [self.system if isinstance(self.system, str) else encode_json(self.system)] if self.system else []
        parts += [encode_json(tool) for tool in self.tools or ()]
        return add_margin(sum(map(count_text_tokens, parts)))
