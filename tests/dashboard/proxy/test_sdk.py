"""The Anthropic Python SDK through the proxy: sync, async, streaming, beta, errors as it knows them."""

import asyncio
import json
from typing import Any

import anthropic
import pytest

from tests.dashboard.proxy.serving import KEY, Serving
from tests.dashboard.proxy.talking import make_usage, stream_answer, write_events
from tests.fakes.raw_upstream import Connection, RawUpstream

QUESTION: dict[str, Any] = {
    "model": "claude-opus-5-5",
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Hello"}],
}
MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-5", "stop_reason": "end_turn",
    "stop_sequence": None, "content": [{"type": "text", "text": "Ahoy"}], "usage": make_usage(read=5, output=2),
}  # fmt: skip


def answer_as_api(connection: Connection) -> None:
    if json.loads(connection.seen.body or b"{}").get("stream"):
        events = stream_answer("msg_1", make_usage(read=5), words="Ahoy there")
        connection.stream([write_events([event]) for event in events], ("request-id", "req_1"))
    else:
        connection.answer(json.dumps(MESSAGE).encode(), ("content-type", "application/json"), ("request-id", "req_1"))


@pytest.fixture
def settings_of_client(proxy: Serving, upstream: RawUpstream) -> dict[str, Any]:
    upstream.script = answer_as_api
    return {
        "base_url": f"{proxy.url}/proxy",
        "api_key": "sk-ant-test",
        "default_headers": {"X-Plimsoll-Key": KEY},
        "max_retries": 0,
    }


def test_sync_client(settings_of_client: dict[str, Any], proxy: Serving, upstream: RawUpstream) -> None:
    with anthropic.Anthropic(**settings_of_client) as client:
        answered = client.messages.create(**QUESTION)
        assert (answered.content[0].text, answered._request_id) == ("Ahoy", "req_1")
        assert client.beta.messages.create(**QUESTION).id == "msg_1"
    assert [seen.target for seen in upstream.requests] == ["/v1/messages", "/v1/messages"]
    assert "sk-ant-test" in (
        upstream.requests[0].header("authorization") or upstream.requests[0].header("x-api-key") or ""
    )
    assert "sk-ant-test" not in repr(proxy.wait_for_exchange(2))


def test_sync_stream(settings_of_client: dict[str, Any]) -> None:
    with anthropic.Anthropic(**settings_of_client) as client, client.messages.stream(**QUESTION) as stream:
        assert "".join(stream.text_stream) == "Ahoy there"
        final = stream.get_final_message()
    assert (final.stop_reason, final.usage.output_tokens) == ("end_turn", 40)


def test_beta_stream(settings_of_client: dict[str, Any], upstream: RawUpstream) -> None:
    beta = {"betas": ["context-management-2025-06-27"], **QUESTION}
    with anthropic.Anthropic(**settings_of_client) as client, client.beta.messages.stream(**beta) as stream:
        assert "".join(stream.text_stream) == "Ahoy there"
        assert stream.get_final_message().usage.cache_read_input_tokens == 5
    assert upstream.requests[0].header("anthropic-beta") == "context-management-2025-06-27"


def test_async_client_and_stream(settings_of_client: dict[str, Any]) -> None:
    async def walk() -> tuple[str, str]:
        async with anthropic.AsyncAnthropic(**settings_of_client) as client:
            answered = await client.messages.create(**QUESTION)
            async with client.messages.stream(**QUESTION) as stream:
                words = "".join([text async for text in stream.text_stream])
        return answered.id, words

    assert asyncio.run(walk()) == ("msg_1", "Ahoy there")


def test_key_in_the_address(settings_of_client: dict[str, Any], proxy: Serving) -> None:
    told = settings_of_client | {"base_url": f"{proxy.url}/proxy/k/{KEY}", "default_headers": {}}
    with anthropic.Anthropic(**told) as client:
        assert client.messages.create(**QUESTION).id == "msg_1"


def test_refusals_are_errors_the_sdk_knows(settings_of_client: dict[str, Any]) -> None:
    told = settings_of_client | {"default_headers": {"X-Plimsoll-Key": "plk_wrong"}}
    with anthropic.Anthropic(**told) as client, pytest.raises(anthropic.AuthenticationError, match="Plimsoll"):
        client.messages.create(**QUESTION)


def test_upstream_errors_reach_the_sdk_as_they_are(settings_of_client: dict[str, Any], upstream: RawUpstream) -> None:
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    upstream.script = lambda connection: connection.answer(
        body, ("content-type", "application/json"), status="529 Overloaded"
    )
    with anthropic.Anthropic(**settings_of_client) as client, pytest.raises(anthropic.InternalServerError) as caught:
        client.messages.create(**QUESTION)
    assert caught.value.status_code == 529
