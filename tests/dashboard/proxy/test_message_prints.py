"""Remembered prints of messages are the prints a whole reading takes, whatever moves or changes."""

import hashlib
import json
import random
from typing import Any

from compaction.prompt.fingerprint import fingerprint_request
from compaction.prompt.request import read_request
from dashboard.proxy.message_prints import MessagePrints

KEY = b"k" * 32


def digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16, key=KEY).hexdigest()


def make_message(dice: random.Random, number: int) -> dict[str, Any]:
    text = {"type": "text", "text": f"words {number} \u00e9 \\u2028 " * dice.randint(1, 5)}
    match dice.randrange(6):
        case 0:
            return {"role": "user", "content": f"plain {number}"}
        case 1:
            return {"role": "assistant", "content": [text, {"type": "tool_use", "id": f"t{number}", "input": {"a": 1}}]}
        case 2:
            parts = [{"type": "image", "source": {}}, {**text, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
            return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": parts}]}
        case 3:
            return {"role": "system", "content": [], "output_config": {"effort": "low"}}
        case 4:
            cited = {"type": "document", "citations": {"enabled": True}, "source": {}}
            return {"role": "user", "content": [cited, {**text, "cache_control": {"type": "ephemeral"}}]}
        case _:
            return {"role": "assistant", "content": [text]}


def make_body(messages: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "model": "claude-opus-5-5",
        "system": [{"type": "text", "text": "You sail.", "cache_control": {"type": "ephemeral"}}],
        "tools": [{"name": "Read", "input_schema": {}}],
        "output_config": {"effort": "low"},
        "messages": messages,
    }


def test_prints_are_the_same_as_of_a_whole_reading() -> None:
    dice, known = random.Random(3), MessagePrints()
    messages = [make_message(dice, number) for number in range(12)]
    for number in range(60):
        messages.append(make_message(dice, 100 + number))
        if number % 7 == 0:
            messages[dice.randrange(len(messages))] = make_message(dice, 1_000 + number)
        body = make_body(messages)
        found = known.read(json.dumps(body).encode(), digest, key=KEY, betas="b-1,a-2")
        whole = read_request(body, betas="b-1,a-2")
        assert found is not None
        assert found.prints == fingerprint_request(whole, digest)
        assert found.request == whole


def test_what_concerns_the_whole_request_is_read_as_a_whole() -> None:
    messages = [{"role": "user", "content": f"words {number}"} for number in range(20)]
    marked = {**make_body(messages), "cache_control": {"type": "ephemeral"}}
    edited = make_body([*messages, {"role": "user", "content": [{"type": "cache_edits", "edits": [1]}]}])
    for body in (marked, edited, make_body(messages[:3])):
        assert MessagePrints().read(json.dumps(body).encode(), digest, key=KEY, betas="") is None
    for data in (b"{", b"[]", b'{"messages": 5}', b'{"model": "x"}'):
        assert MessagePrints().read(data, digest, key=KEY, betas="") is None


def test_memory_is_bounded() -> None:
    known = MessagePrints(most_bytes=10_000)
    for start in range(50):
        messages = [{"role": "user", "content": f"{start} {number} " + "x" * 100} for number in range(20)]
        known.read(json.dumps(make_body(messages)).encode(), digest, key=KEY, betas="")
    assert known._known_bytes <= 10_000
    assert sum(len(raw) for _, raw in known._known) == known._known_bytes
