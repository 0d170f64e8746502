"""Forks proven: only a request that repeats the captured one byte for byte reads the cache. And the engine's tries."""

import json
import urllib.request
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from compaction.compactors.outcome import CompactionOutcome, Trigger
from compaction.compactors.run import CompactionRequest, RunPorts
from compaction.compactors.selections import compact_full
from compaction.compactors.summary.fork_request import ParentRequest
from compaction.compactors.summary.plain_request import SummaryModels
from compaction.compactors.summary.prompt import SECTIONS
from compaction.errors import ConversationTooLong, SummarizerUnavailable, SummaryRefused
from compaction.ports import SummaryRoute
from compaction.transcripts.entries import Entry
from dashboard.runs.attempts import AttemptReport
from dashboard.runs.claude import ClaudeAccess, ClaudeSummarizer, Limits
from dashboard.runs.fork_terms import ForkTerms
from tests.compaction.compactors.talks import NOW, Talk, make_talk
from tests.compaction.making import request as tool_request
from tests.compaction.making import result, text, thought
from tests.fakes import replies
from tests.fakes.messages_api import KeptRequest, MessagesApi
from tests.fakes.replies import Reply

MARKER = {"type": "ephemeral", "ttl": "1h"}
MARKER_TEXT = b',"cache_control":{"type":"ephemeral","ttl":"1h"}'
VERSION, BETAS = "2023-06-01", ("claude-code-20250219", "interleaved-thinking-2025-05-14")
QUICK = Limits(poll_seconds=0.02, wait_seconds=0.02, idle_seconds=5, try_seconds=10, run_seconds=20)
MODELS = SummaryModels(session="claude-opus-5-5", session_window_tokens=1_000_000)

Body = dict[str, Any]


def make_body() -> Body:
    """A request as the client sends it; `temperature` is what the newer API version refuses."""
    return {
        "model": "claude-opus-5-5",
        "max_tokens": 32_000,
        "temperature": 1,
        "thinking": {"type": "adaptive"},
        "metadata": {"user_id": "u-1"},
        "system": [{"type": "text", "text": "You are an agent. " * 50, "cache_control": MARKER}],
        "tools": [
            {"name": "Read", "description": "Reads “files”, ünïcode", "input_schema": {"type": "object"}},
            {
                "name": "Bash",
                "description": "Runs",
                "input_schema": {"type": "object", "properties": {"n": {"maximum": 1.0}}},
            },
        ],
        "stream": True,
        "messages": [
            {"role": "user", "content": "begin"},
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {"z": 1, "a": 2}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "line\n" * 200, "cache_control": MARKER}
                ],
            },
        ],
    }


def make_entries(response_id: str) -> list[Entry]:
    talk = Talk()
    talk.say("begin")
    talk.answer("m0", tool_request("a", z=1, a=2))
    talk.say([result("a", "line\n" * 200)])
    talk.answer(response_id, thought("hm"), text("Seen."))
    talk.answer(response_id, tool_request("b", "Bash"))
    talk.say([result("b", "ok")])
    return talk.entries


def send_as_client(api: MessagesApi, body: Body) -> str:
    """Posts a request as the client would; the id of the response."""
    headers = {
        "content-type": "application/json",
        "x-api-key": "sk-ant-client",
        "anthropic-version": VERSION,
        "anthropic-beta": ",".join(BETAS),
    }
    raw = json.dumps({**body, "stream": False}, ensure_ascii=False, separators=(",", ":")).encode()
    request = urllib.request.Request(f"{api.url}/v1/messages?beta=true", raw, headers)
    with urllib.request.urlopen(request, timeout=5) as response:
        return str(json.load(response)["id"])


def compact(
    api: MessagesApi, entries: list[Entry], parent: ParentRequest | None
) -> tuple[CompactionOutcome, list[AttemptReport]]:
    attempts: list[AttemptReport] = []
    access = ClaudeAccess(key="sk-ant-ours", base_url=api.url)
    terms = ForkTerms(version=VERSION, betas=BETAS)
    claude = ClaudeSummarizer(access, attempts.append, limits=QUICK, fork_terms=terms)
    request = CompactionRequest(trigger=Trigger.MANUAL, now=NOW, parent=parent, models=MODELS)
    try:
        return compact_full(entries, request, RunPorts(claude)), attempts
    except Exception as error:
        error.add_note(f"{[attempt.failure_code for attempt in attempts]}")
        raise


def fork(api: MessagesApi, change: Callable[[Body], None] | None = None) -> tuple[KeptRequest, list[AttemptReport]]:
    """The client's request, and our fork of it, changed on the way."""
    body = make_body()
    response_id = send_as_client(api, body)
    captured = deepcopy(body)
    if change is not None:
        change(captured)
    _, attempts = compact(api, make_entries(response_id), ParentRequest(captured, response_id))
    return api.messages[-1], attempts


def test_fork_reads_all_that_its_parent_wrote(messages_api: MessagesApi) -> None:
    sent, [attempt] = fork(messages_api)
    parent = messages_api.messages[0]
    whole = len(json.dumps(parent.body["messages"])) // 4
    assert (attempt.path, attempt.failure_code) == ("fork", "")
    assert attempt.usage.cache_read_tokens > whole
    assert attempt.usage.cache_creation_1h_tokens < 100, "only the answer that came since"
    assert sent.headers["anthropic-version"] == VERSION
    assert sent.headers["anthropic-beta"] == ",".join(BETAS)
    assert sent.key == "sk-ant-ours"


def test_fork_is_its_parent_byte_for_byte_but_for_the_place_of_the_marker(messages_api: MessagesApi) -> None:
    body = make_body()
    response_id = send_as_client(messages_api, body)
    compact(messages_api, make_entries(response_id), ParentRequest(body, response_id))
    parent_raw = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    before, after = (raw.replace(MARKER_TEXT, b"") for raw in (parent_raw, messages_api.messages[-1].raw))
    assert after.startswith(before.removesuffix(b"]}")), "everything up to the end of the parent's last message"
    assert set(messages_api.messages[-1].body) == set(body)


def _change_system(body: Body) -> None:
    body["system"][0]["text"] += " "


def _swap_tools(body: Body) -> None:
    body["tools"].reverse()


def _reorder_keys(body: Body) -> None:
    body["tools"][0] = dict(reversed(body["tools"][0].items()))


def _change_number(body: Body) -> None:
    body["tools"][1]["input_schema"]["properties"]["n"]["maximum"] = 1


def _change_model(body: Body) -> None:
    body["model"] = "claude-opus-5"


@pytest.mark.parametrize("change", [_change_system, _swap_tools, _reorder_keys, _change_number, _change_model])
def test_any_other_byte_before_the_messages_reads_nothing(
    messages_api: MessagesApi, change: Callable[[Body], None]
) -> None:
    _, [attempt] = fork(messages_api, change)
    assert attempt.path == "fork"
    assert attempt.usage.cache_read_tokens == 0


def _change_thinking(body: Body) -> None:
    body["thinking"] = {"type": "disabled"}


def _change_message(body: Body) -> None:
    body["messages"][0]["content"] = "Begin"


@pytest.mark.parametrize("change", [_change_thinking, _change_message])
def test_another_byte_in_the_messages_reads_no_further_than_the_system_prompt(
    messages_api: MessagesApi, change: Callable[[Body], None]
) -> None:
    _, [whole] = fork(messages_api)
    _, [changed] = fork(messages_api, change)
    assert 0 < changed.usage.cache_read_tokens < whole.usage.cache_read_tokens


def test_cache_that_ran_out_reads_nothing(messages_api: MessagesApi) -> None:
    body = make_body()
    response_id = send_as_client(messages_api, body)
    messages_api.cache.age(3_601)
    _, [attempt] = compact(messages_api, make_entries(response_id), ParentRequest(body, response_id))
    assert (attempt.path, attempt.usage.cache_read_tokens) == ("fork", 0)


def test_betas_that_were_captured_in_the_body_become_the_header(messages_api: MessagesApi) -> None:
    sent, [attempt] = fork(messages_api, lambda body: body.update(betas=["one-2026-01-01", "two-2026-02-02"]))
    assert sent.headers["anthropic-beta"] == "one-2026-01-01,two-2026-02-02"
    assert "betas" not in sent.body
    assert attempt.usage.cache_read_tokens > 0


def test_plain_request_shares_nothing_with_the_session(messages_api: MessagesApi) -> None:
    response_id = send_as_client(messages_api, make_body())
    _, [attempt] = compact(messages_api, make_entries(response_id), None)
    assert (attempt.path, attempt.usage.cache_read_tokens) == ("plain", 0)
    assert messages_api.messages[-1].body["tool_choice"] == {"type": "none"}


# --- the engine's tries with a real client ---------------------------------------------------------------------------


def test_second_try_succeeds_after_one_of_any_passing_failure(messages_api: MessagesApi) -> None:
    passing = (replies.OVERLOADED, replies.BROKEN, replies.CUT, replies.ENDED_EARLY, replies.OVERLOADED_MIDWAY)
    for reply in passing:
        messages_api.script(reply)
        outcome, attempts = compact(messages_api, make_talk(), None)
        assert outcome.summary.missing_sections == ()
        assert [bool(attempt.failure_code) for attempt in attempts] == [True, False]


def test_two_failed_tries_are_the_end(messages_api: MessagesApi) -> None:
    messages_api.script(replies.OVERLOADED, replies.OVERLOADED)
    with pytest.raises(SummarizerUnavailable, match="overloaded"):
        compact(messages_api, make_talk(), None)
    assert len(messages_api.requests) == 2


@pytest.mark.parametrize("reply", [replies.REFUSED, replies.TOOL_CALL, replies.BAD_REQUEST, replies.EMPTY])
def test_fork_that_gets_no_summary_gives_way_to_a_plain_request(messages_api: MessagesApi, reply: Reply) -> None:
    body = make_body()
    response_id = send_as_client(messages_api, body)
    messages_api.script(reply)
    outcome, attempts = compact(messages_api, make_entries(response_id), ParentRequest(body, response_id))
    assert [attempt.path for attempt in attempts] == [SummaryRoute.FORK.value, SummaryRoute.PLAIN.value]
    assert outcome.summary.missing_sections == ()


def test_plain_refusal_is_final(messages_api: MessagesApi) -> None:
    messages_api.script(replies.REFUSED)
    with pytest.raises(SummaryRefused):
        compact(messages_api, make_talk(), None)


def test_missing_sections_are_asked_for_once_more(messages_api: MessagesApi) -> None:
    messages_api.script(Reply(leaves_out=(SECTIONS[3], SECTIONS[6])))
    outcome, attempts = compact(messages_api, make_talk(), None)
    assert len(attempts) == 2
    assert outcome.summary.missing_sections == ()
    assert all(name in outcome.summary.text for name in SECTIONS)


@pytest.mark.parametrize("wording", list(replies.TOO_LONG))
def test_prompt_that_is_too_long_is_sent_again_smaller(messages_api: MessagesApi, wording: str) -> None:
    messages_api.script(replies.TOO_LONG[wording])
    _, attempts = compact(messages_api, make_talk(20, size=8_000), None)
    assert [attempt.failure_code for attempt in attempts] == ["prompt_too_long", ""]
    first, second = (len(request.raw) for request in messages_api.messages)
    assert second < first


def test_prompt_that_stays_too_long_ends_with_a_sentence(messages_api: MessagesApi) -> None:
    messages_api.script(*[replies.TOO_LONG["first party"]] * 10)
    with pytest.raises(ConversationTooLong, match="too long to be summarised"):
        compact(messages_api, make_talk(20), None)
