"""The agent loop of docs/agent-loop.md, as it stands there, driven through a long task against the fake API."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.messages_api import MessagesApi
from tests.fakes.prompt_cache import count_prompt_tokens
from tests.fakes.replies import Reply

DOCUMENT = Path(__file__).parents[3] / "docs" / "agent-loop.md"
TASK = "Never touch the harbour wall. Look at every basin."
THOUGHT = "I looked at the basin and will go on to the next one. " * 300  # about 4,000 tokens
TOOLS = [{"name": "Read", "description": "Reads.", "input_schema": {"type": "object"}}]


def read_loop() -> str:
    found = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


@dataclass
class Walk:
    """What a task was. `result_tokens` come back from each of its `turns`; `model` None: the document's own."""

    api: MessagesApi
    url: str
    key: str
    turns: int = 60
    result_tokens: int = 16_500
    model: str | None = None
    seen_tokens: int = 0

    def walk(self, patch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
        """The messages at the end."""
        patch.setenv("PLIMSOLL_URL", self.url)
        patch.setenv("PLIMSOLL_KEY", self.key)
        patch.setenv("ANTHROPIC_BASE_URL", self.api.url)
        patch.setenv("ANTHROPIC_API_KEY", "sk-ant-test")
        look = Reply(text=THOUGHT, calls_tool=True, stop_reason="tool_use")
        self.api.script(*[look] * self.turns, Reply(text="All basins are deep."))
        space: dict[str, Any] = {}
        exec(compile(read_loop(), str(DOCUMENT), "exec"), space)
        space["MODEL"] = self.model or space["MODEL"]
        messages: list[dict[str, Any]] = space["run_agent"](TASK, TOOLS, self.use_tool)
        return messages

    def use_tool(self, name: str, _input: object) -> str:
        self.seen_tokens += self.result_tokens + len(THOUGHT) // 4
        words = "The basin is deep and the wall is old. "
        return f"{name} {self.seen_tokens}: " + words * (4 * self.result_tokens // len(words))

    @property
    def sizes(self) -> list[int]:
        """Tokens of every prompt that was sent, those that were refused too."""
        return [count_prompt_tokens(request.body) for request in self.api.messages]
