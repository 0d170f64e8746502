"""Conversations whose requests are known: a client that changes its ways, answered by the fake API.

Its calls pass the proxy (traffic); an agent of another kind tells of them itself (told_items).
"""

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

from dashboard.demo.codebase import FOLLOW_UPS, Project, say, write_code
from dashboard.demo.fake_api import FakeApi
from dashboard.demo.stories import Script
from dashboard.demo.talks import name_id

Json = dict[str, Any]
Post = Callable[[FakeApi, bytes, Mapping[str, str]], bytes]  # a request and its headers to the API; its answer
_PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
_RULES = (
    "You help the people of a ferry line with their code. Be brief. Ask before you change what others call. "
    "Names follow the glossary of the repository; money is counted in cents; times are those of the port of call. "
)


def _make_tool(name: str, words: str) -> Json:
    fields = {"file_path": {"type": "string", "description": "Where."}, "note": {"type": "string"}}
    return {"name": name, "description": words * 12, "input_schema": {"type": "object", "properties": fields}}


@dataclass(frozen=True, slots=True)
class Sent:
    """One call as the client knows it. `state` is what it knows beside the request; `deleted_count` results went from
    the cache before it."""

    message_id: str
    at: float
    duration_seconds: float
    said: Json
    reply: str
    body: Json
    usage: Json
    output_tokens: int
    state: Json
    deleted_count: int


class Client:
    """One conversation. What it sends with each call stands in plain fields, so that a change is one assignment."""

    def __init__(self, name: str, project: Project, *, model: str, start: datetime, post: Post) -> None:
        self.name, self.project, self.model = name, project, model
        self.session_id = name_id(name)
        self.random = Random(name)  # noqa: S311 (invented figures)
        self.api, self.post = FakeApi(name, project), post
        self.now = start.timestamp()
        self.betas = "prompt-caching-scope-2026-01-05"
        self.rules, self.system_mark, self.ttl, self.scope = _RULES * 14, 0, "5m", "global"
        self.state: Json = {}
        self.deleted_count = 0
        self.marks = True
        self.fields: Json = {"output_config": {"effort": "high"}, "thinking": {"type": "adaptive"}}
        words = {"Read": "Reads a file. ", "Edit": "Changes a file. ", "Bash": "Runs a command. ", "Grep": "Searches. "}
        self.tools = [_make_tool(tool, told) for tool, told in words.items()]
        self.messages: list[Json] = []
        self.sent: list[Sent] = []

    def turn(self, words: str = "", *, extra: Sequence[Json] = ()) -> None:
        """A prompt with what it is about, and the answer."""
        text = words or say(FOLLOW_UPS, self.project, self.random)
        quoted = write_code(self.project, self.random, 900)
        blocks = [{"type": "text", "text": text}, {"type": "text", "text": quoted}, *extra]
        self.messages.append({"role": "user", "content": blocks})
        self.call()

    def call(self) -> None:
        self.now += 35 + 40 * self.random.random()
        body = self._spell_body()
        answered = _read_events(self.post(self.api, json.dumps(body).encode(), self._spell_headers()))
        self.sent.append(
            Sent(
                answered.message_id,
                self.now,
                duration_seconds=3 + 6 * self.random.random(),
                said=self.messages[-1],
                reply=answered.words,
                body=body,
                usage=answered.usage,
                output_tokens=answered.output_tokens,
                state=dict(self.state),
                deleted_count=self.deleted_count,
            )
        )
        self.deleted_count = 0
        self.messages.append({"role": "assistant", "content": [{"type": "text", "text": answered.words}]})

    def _spell_body(self) -> Json:
        mark = {"cache_control": {"type": "ephemeral", **({"ttl": "1h"} if self.ttl == "1h" else {})}}
        shared = {"scope": self.scope} if self.scope else {}
        system: list[Json] = [{"type": "text", "text": self.rules}, {"type": "text", "text": "Answer in English."}]
        messages = copy.deepcopy(self.messages)
        if self.marks:
            system[self.system_mark] |= {"cache_control": mark["cache_control"] | shared}
            messages[-1]["content"][-1] |= mark
        told = {"model": self.model, "max_tokens": 32_000, "stream": True, "system": system, "tools": self.tools}
        return {**told, "messages": messages, **self.fields}

    def _spell_headers(self) -> dict[str, str]:
        return {
            "x-claude-code-session-id": self.session_id,
            "anthropic-version": "2023-06-01",
            "anthropic-beta": self.betas,
            "user-agent": "claude-cli/2.1.126 (external, cli)",
        }


@dataclass(frozen=True, slots=True)
class _Answered:
    message_id: str
    words: str
    usage: Json
    output_tokens: int


def _read_events(data: bytes) -> _Answered:
    events = [json.loads(line.removeprefix(b"data: ")) for line in data.splitlines() if line.startswith(b"data: ")]
    by_type = {event["type"]: event for event in events}
    message = by_type["message_start"]["message"]
    return _Answered(
        message["id"],
        words=by_type["content_block_delta"]["delta"]["text"],
        usage=message["usage"],
        output_tokens=by_type["message_delta"]["usage"]["output_tokens"],
    )


# --- what a client may do to its cache ---


def _add_server(client: Client) -> None:
    client.tools = [*client.tools, _make_tool("mcp__harbourmaster__berths", "Lists free berths. ")]


def _reorder_tools(client: Client) -> None:
    client.tools = client.tools[::-1]


def _change_system(client: Client) -> None:
    client.rules = f"Changed files: {len(client.sent)}. {client.rules}"


def _search_web(client: Client) -> None:
    client.tools = [*client.tools, {"type": "web_search_20250305", "name": "web_search"}]


def _switch_fast(client: Client) -> None:
    client.fields |= {"speed": "fast"}


def _change_effort(client: Client) -> None:
    client.fields |= {"output_config": {"effort": "low"}}


def _change_thinking(client: Client) -> None:
    client.fields |= {"thinking": {"type": "enabled", "budget_tokens": 8_000}}


def _lengthen_life(client: Client) -> None:
    client.ttl = "1h"


def _move_markers(client: Client) -> None:
    client.system_mark = 1 - client.system_mark


def _share_less(client: Client) -> None:
    client.scope = ""


def _switch_auto_mode(client: Client) -> None:
    """Changes headers that this client tells nobody of."""
    client.state |= {"auto_mode": True}
    client.api.forget()


def _use_credits(client: Client) -> None:
    client.state |= {"overage": True}
    client.api.forget()


def _announce_deletion(client: Client) -> None:
    client.deleted_count = 4
    client.api.delete(4)


def _stop_caching(client: Client) -> None:
    client.marks = False


def _add_beta(client: Client) -> None:
    client.betas += ",interleaved-thinking-2025-05-14"


def _add_field(client: Client) -> None:
    client.fields |= {"container": "demo"}


def _edit_context(client: Client) -> None:
    client.fields |= {"context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}}


def _choose_tool(client: Client) -> None:
    client.fields |= {"tool_choice": {"type": "any"}}


def _rewrite_message(client: Client) -> None:
    first, *rest = client.messages[0]["content"]
    edited = {"type": "text", "text": f"(edited) {first['text']}"}
    client.messages[0] = {"role": "user", "content": [edited, *rest]}


def _load_tool(client: Client) -> None:
    """Should cost nothing; here a gateway on the way loses the cache."""
    client.tools = [*client.tools, _make_tool("TideTable", "Tells tides. ") | {"defer_loading": True}]
    client.api.forget()


def _lose_entry(client: Client) -> None:
    client.api.forget()


def _pause(client: Client) -> None:
    client.now += 11 * 60
    client.api.forget()


def _show_picture(client: Client) -> None:
    image = {"type": "base64", "media_type": "image/png", "data": _PIXEL}
    client.turn("The board looks like this:", extra=[{"type": "image", "source": image}])


def _cite(client: Client) -> None:
    text = {"type": "text", "media_type": "text/plain", "data": "Fares of the summer timetable."}
    client.turn("Cite the timetable.", extra=[{"type": "document", "source": text, "citations": {"enabled": True}}])


def _remind(client: Client) -> None:
    """A system message inside the conversation, to a model that starts anew for it."""
    client.messages.append({"role": "system", "content": [{"type": "text", "text": "The tests are slow today."}]})
    client.api.forget()
    client.turn()


def _answer_many(client: Client) -> None:
    """More blocks at once than the server looks back."""
    blocks = [{"type": "text", "text": write_code(client.project, client.random, 60)} for _ in range(24)]
    client.turn("All of these:", extra=blocks)


def _delete_results(client: Client) -> None:
    edits = [{"type": "delete", "cache_reference": f"toolu_demo_{number}"} for number in (1, 2)]
    blocks: list[Json] = [{"type": "cache_edits", "edits": edits}, {"type": "text", "text": "Go on."}]
    client.turn("Forget the old listing.", extra=blocks)


def _keep_results(client: Client) -> None:
    """The deletions are no longer sent, so the server has the results back."""
    client.messages = [
        message | {"content": [block for block in message["content"] if block["type"] != "cache_edits"]}
        for message in client.messages
    ]


_STEPS: Mapping[str, tuple[Callable[[Client], None], bool]] = {  # the change, and whether it calls by itself
    "server": (_add_server, False),
    "order": (_reorder_tools, False),
    "system": (_change_system, False),
    "search": (_search_web, False),
    "fast": (_switch_fast, False),
    "effort": (_change_effort, False),
    "thinking": (_change_thinking, False),
    "lifetime": (_lengthen_life, False),
    "markers": (_move_markers, False),
    "sharing": (_share_less, False),
    "auto mode": (_switch_auto_mode, False),
    "credits": (_use_credits, False),
    "announced": (_announce_deletion, False),
    "kept again": (_keep_results, False),
    "no caching": (_stop_caching, False),
    "beta": (_add_beta, False),
    "field": (_add_field, False),
    "clearing": (_edit_context, False),
    "choice": (_choose_tool, False),
    "rewrite": (_rewrite_message, False),
    "deferred": (_load_tool, False),
    "server side": (_lose_entry, False),
    "pause": (_pause, False),
    "picture": (_show_picture, True),
    "cite": (_cite, True),
    "remind": (_remind, True),
    "many": (_answer_many, True),
    "deleted": (_delete_results, True),
}


def answer_at_once(api: FakeApi, body: bytes, headers: Mapping[str, str]) -> bytes:
    """For calls that go to the API itself."""
    return api.answer(body, headers).body


def converse(script: Script, *, end_at: datetime, post: Post) -> Client:
    """A conversation that ends then. How long it takes is known when it is over: it is rehearsed first."""
    took_seconds = _perform(script, end_at, answer_at_once).now - end_at.timestamp()
    return _perform(script, datetime.fromtimestamp(end_at.timestamp() - took_seconds, end_at.tzinfo), post)


def _perform(script: Script, start: datetime, post: Post) -> Client:
    client = Client(script.name, script.project, model=script.model, start=start, post=post)
    client.turn(script.wish)
    for _ in range(3):
        client.turn()
    for step in script.plan:
        change, calls = _STEPS[step]
        change(client)
        if not calls:
            client.turn()
        client.turn()
        client.turn()
    return client
