"""The fake itself: it refuses what the real API refuses, and its cache forgives nothing."""

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any

import pytest

from tests.fakes import replies
from tests.fakes.messages_api import COUNT, MESSAGES, MessagesApi
from tests.fakes.prompt_cache import LOOKBACK_BLOCKS, PromptCache

VERSION = "2023-06-01"
MARKER = {"type": "ephemeral"}


def make_body(**fields: object) -> dict[str, Any]:
    said = [{"role": "user", "content": "1. Primary Request and Intent: what was asked"}]
    return {"model": "m", "max_tokens": 10, "messages": said, **fields}


def post(
    api: MessagesApi, body: object, *, path: str = MESSAGES, version: str = VERSION
) -> tuple[int, Any, Mapping[str, str]]:
    headers = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": version}
    request = urllib.request.Request(f"{api.url}{path}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), dict(error.headers)


def test_whole_message_and_stream_say_the_same(messages_api: MessagesApi) -> None:
    _, whole, headers = post(messages_api, make_body(), path=f"{MESSAGES}?beta=true")
    message = json.loads(whole)
    assert message["stop_reason"] == "end_turn"
    assert headers["request-id"] == "req_0001"
    _, stream, _ = post(messages_api, make_body(stream=True))
    events = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
    assert [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]
    text = "".join(event["delta"]["text"] for event in events if event["type"] == "content_block_delta")
    assert text == message["content"][0]["text"]
    assert messages_api.messages[0].query == "beta=true"
    assert messages_api.messages[0].key == "k"


FAULTS = [
    ({"model": None}, "model: Field required"),
    ({"max_tokens": None}, "max_tokens: Field required"),
    ({"betas": ["x"]}, "betas: Extra inputs are not permitted"),
    ({"messages": []}, "at least one message"),
    ({"messages": [{"role": "assistant", "content": "hi"}]}, "first message"),
    ({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}, "must be non-empty"),
    (
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}]},
        "unexpected `tool_use_id`",
    ),
    (
        {
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "R", "input": {}}]},
            ]
        },
        "without `tool_result`",
    ),
    ({"system": [{"type": "text", "text": "s", "cache_control": MARKER}] * 5}, "A maximum of 4 blocks"),
]


@pytest.mark.parametrize(("fields", "words"), FAULTS)
def test_request_that_the_api_refuses_is_refused(
    messages_api: MessagesApi, fields: dict[str, object], words: str
) -> None:
    status, answer, _ = post(messages_api, make_body(**fields))
    assert status == 400
    assert words in json.loads(answer)["error"]["message"]


def test_sampling_is_refused_by_the_newer_version_alone(messages_api: MessagesApi) -> None:
    assert post(messages_api, make_body(temperature=1))[0] == 200
    assert post(messages_api, make_body(temperature=1), version="2026-10-21")[0] == 400


def test_replies_come_in_their_order_and_then_all_is_good(messages_api: MessagesApi) -> None:
    messages_api.script(replies.OVERLOADED, replies.refuse(429, "rate_limit_error", "slow", retry_after="3"))
    assert post(messages_api, make_body())[0] == 529
    status, _, headers = post(messages_api, make_body(), path=COUNT)
    assert (status, headers["retry-after"]) == (429, "3")
    assert post(messages_api, make_body())[0] == 200
    messages_api.known_key = "another"
    assert post(messages_api, make_body())[0] == 401


def talk(*texts: str, marked: int | None = None, ttl: str | None = None) -> dict[str, object]:
    marker = MARKER if ttl is None else {**MARKER, "ttl": ttl}
    blocks: list[dict[str, object]] = [{"type": "text", "text": text} for text in texts]
    if marked is not None:
        blocks[marked]["cache_control"] = marker
    return {"model": "m", "messages": [{"role": "user", "content": blocks}]}


def test_prefix_is_read_once_it_was_written_at_a_marker() -> None:
    cache = PromptCache()
    first = cache.take(talk("a" * 400, marked=0))
    assert (first.read_tokens, first.input_tokens) == (0, 0)
    assert first.write_5m_tokens >= 100
    again = cache.take(talk("a" * 400, "b" * 40, marked=0))
    assert (again.read_tokens, again.write_5m_tokens) == (first.write_5m_tokens, 0)
    assert again.input_tokens > 0
    assert cache.take(talk("a" * 399, marked=0)).read_tokens == 0
    assert cache.take({**talk("a" * 400, marked=0), "model": "other"}).read_tokens == 0
    assert cache.take(talk("a" * 400)).read_tokens == 0, "without a marker nothing is looked up"


def test_entry_lives_as_long_as_it_is_read() -> None:
    cache = PromptCache()
    cache.take(talk("a", marked=0))
    for _ in range(3):
        cache.age(290)
        assert cache.take(talk("a", marked=0)).read_tokens > 0
    cache.age(301)
    assert cache.take(talk("a", marked=0)).read_tokens == 0
    cache.take(talk("z", marked=0, ttl="1h"))
    cache.age(3500)
    assert cache.take(talk("z", marked=0, ttl="1h")).read_tokens > 0


def test_marker_looks_back_over_twenty_blocks_and_no_further() -> None:
    cache = PromptCache()
    cache.take(talk("start", marked=0))
    near = ["start", *(f"n{number}" for number in range(LOOKBACK_BLOCKS - 1))]
    far = ["start", *(f"f{number}" for number in range(LOOKBACK_BLOCKS))]
    assert cache.take(talk(*near, marked=-1)).read_tokens > 0
    assert cache.take(talk(*far, marked=-1)).read_tokens == 0
