"""A prompt looked at before it is sent: on a page for people, through the API for programs."""

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.agents.prompts import BadPrompt, lint_prompt, read_pasted
from tests.builders import make_team
from tests.visitors import sign_in

MARK = {"cache_control": {"type": "ephemeral"}}
BODY: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "system": [{"type": "text", "text": "Today is 2026-11-16T10:20:30Z. " + "Be careful. " * 600, **MARK}],
    "tools": [{"name": "b", "input_schema": {}}, {"name": "a", "input_schema": {}}],
    "messages": [{"role": "user", "content": "hello"}],
}


@pytest.fixture
def _team(db: None) -> None:
    make_team("Harbour", owner="alice")


@pytest.mark.usefixtures("_team")
def test_page_tells_what_is_wrong_and_where() -> None:
    alice = sign_in("alice")
    earlier = json.dumps({**BODY, "tools": BODY["tools"][::-1]})
    answer = alice.post("/lint/", {"request": json.dumps(BODY), "earlier": earlier})
    page = answer.content.decode()
    assert answer.status_code == 200
    assert "volatile text before a cache breakpoint" in page
    assert "<code>system[0]</code>" in page
    assert "was in a different position in an earlier request" in page
    for pasted in ("{", "[]", '{"model": "x"}', "", '"text"'):
        refused = alice.post("/lint/", {"request": pasted})
        assert refused.status_code == 422
        assert 'role="alert"' in refused.content.decode()


@pytest.mark.usefixtures("_team")
def test_programs_get_the_same() -> None:
    alice = sign_in("alice")

    def send(path: str, body: object) -> Any:
        answer = alice.post(f"/api/v1/prompt/{path}", body, content_type="application/json")
        assert answer.status_code == 200, answer.content
        return answer.json()

    found = send("lint", {"request": BODY})
    assert [each["path"] for each in found["findings"]] == ["system[0]"]
    assert (found["breakpoint_count"], found["least_tokens"]) == (1, 1024)

    laid = send("layout", {"system": ["Be careful.", "Branch: x"], "messages": BODY["messages"], "ttl": "1h"})
    assert [block["cache_control"]["ttl"] for block in laid["system"]] == ["1h", "1h"]
    assert laid["messages"][0]["content"][0]["cache_control"]["ttl"] == "1h"
    assert not [each for each in send("lint", {"request": laid})["findings"] if each["rule"] != "prefix too short"]

    told = send("reminder", {"instruction_files": [{"name": "AGENTS.md", "text": "Use tabs."}]})
    assert "## AGENTS.md\nUse tabs." in told["message"]["content"][0]["text"]
    assert send("reminder", {})["message"] is None


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["messages", "system", "tools", "content", "cache_control", "type", "ttl", "role", "name"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_any_json_is_linted_or_refused(value: object) -> None:
    with contextlib.suppress(BadPrompt):
        lint_prompt(read_pasted(json.dumps(value)))
    if isinstance(value, dict):
        lint_prompt(value)
