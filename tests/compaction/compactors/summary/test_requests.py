"""Requests: what a plain one strips and caps, what a fork repeats byte for byte."""

import json

import pytest

from compaction.cache.prefix_diff import diff_requests
from compaction.compactors.summary.fork_request import ParentRequest, build_fork_request
from compaction.compactors.summary.plain_request import SummaryModels, build_plain_request, strip_entries
from compaction.errors import NothingToCompact
from compaction.ports import SummaryRequest, SummaryRoute, Variant
from compaction.prompt.request import read_request
from compaction.transcripts.entries import Entry
from tests.compaction.compactors.talks import DOCUMENT, IMAGE, Talk, make_talk
from tests.compaction.making import request as tool_request
from tests.compaction.making import result, text, thought

MARKER = {"type": "ephemeral", "ttl": "1h"}


def list_messages(request: SummaryRequest) -> list[dict[str, object]]:
    messages = request.body["messages"]
    assert isinstance(messages, list)
    return messages


def make_parent(**more: object) -> ParentRequest:
    """The request that was answered by m1, as the client sent it."""
    messages = [
        {"role": "user", "content": "begin"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": [IMAGE], "cache_control": MARKER}],
        },
    ]
    body = {
        "model": "claude-opus-4-5",
        "max_tokens": 32_000,
        "thinking": {"type": "adaptive"},
        "system": [{"type": "text", "text": "You are an agent.", "cache_control": MARKER}],
        "tools": [{"name": "Read"}, {"name": "Bash"}],
        "messages": messages,
        **more,
    }
    return ParentRequest(body, response_id="m1")


def make_entries() -> list[Entry]:
    talk = Talk()
    talk.say("begin")
    talk.answer("m0", tool_request("a"))
    talk.say([result("a", [IMAGE])])
    talk.answer("m1", thought("hm"), text("Seen."))
    talk.answer("m1", tool_request("b", "Bash"))
    talk.say([result("b", "ok")])
    return talk.entries


def test_a_fork_repeats_the_parent_and_adds_only_what_came_after_and_the_prompt() -> None:
    parent, entries = make_parent(), make_entries()
    before = json.dumps(parent.body)
    fork = build_fork_request(Variant.FULL, parent, entries, kept_after=(), prompt="SUMMARISE")
    assert fork is not None
    assert fork.route is SummaryRoute.FORK
    for key in ("model", "max_tokens", "thinking", "system", "tools"):
        assert fork.body[key] is parent.body[key]
    messages = list_messages(fork)
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert messages[:2] == list(parent.body["messages"])[:2]  # type: ignore[call-overload]
    assert messages[2]["content"] == [{"type": "tool_result", "tool_use_id": "a", "content": [IMAGE]}]
    assert messages[3]["content"][-1]["cache_control"] == MARKER  # type: ignore[index]
    assert [block["type"] for block in messages[4]["content"]] == ["tool_result", "text"]  # type: ignore[attr-defined]
    assert json.dumps(messages).count("cache_control") == 1
    assert json.dumps(parent.body) == before


def test_to_the_cache_a_fork_is_its_parent_with_something_behind_it() -> None:
    parent = make_parent()
    fork = build_fork_request(Variant.FULL, parent, make_entries(), kept_after=(), prompt="SUMMARISE")
    assert fork is not None
    diff = diff_requests(read_request(dict(parent.body)), read_request(dict(fork.body)))
    assert diff.first is None


def test_a_parent_that_was_not_answered_yet_is_repeated_as_it_is() -> None:
    parent = ParentRequest(make_parent().body)
    fork = build_fork_request(Variant.FULL, parent, make_entries()[:3], kept_after=(), prompt="SUMMARISE")
    assert fork is not None
    messages = list_messages(fork)
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    assert messages[1]["content"][0]["cache_control"] == MARKER  # type: ignore[index]
    assert messages[2]["content"][-1] == {"type": "text", "text": "SUMMARISE"}  # type: ignore[index]


def test_a_fork_of_a_part_stops_where_the_kept_part_begins() -> None:
    entries = make_entries()
    early = build_fork_request(Variant.UP_TO, make_parent(), entries[:1], kept_after=entries[1:], prompt="SUMMARISE")
    assert early is not None
    assert list_messages(early) == [{"role": "user", "content": [text("begin"), {"type": "text", "text": "SUMMARISE"}]}]
    late = build_fork_request(Variant.UP_TO, make_parent(), entries[:3], kept_after=entries[3:], prompt="SUMMARISE")
    assert late is not None
    assert [message["role"] for message in list_messages(late)] == ["user", "assistant", "user"]
    assert list_messages(late)[0] == {"role": "user", "content": "begin"}
    between = build_fork_request(Variant.UP_TO, make_parent(), entries[:5], kept_after=entries[5:], prompt="SUMMARISE")
    assert between is not None
    assert [message["role"] for message in list_messages(between)] == ["user", "assistant", "user", "assistant", "user"]
    lost = Talk().say("never sent")
    assert (
        build_fork_request(Variant.UP_TO, ParentRequest(make_parent().body), entries, kept_after=[lost], prompt="x")
        is None
    )


def test_a_kept_response_is_cut_off_whole_with_its_thinking() -> None:
    talk = Talk()
    talk.say("begin")
    talk.answer("m0", thought("hm"))
    talk.answer("m0", text("Seen."))
    talk.say("more")
    thinking = {"type": "thinking", "thinking": "hm", "signature": "sig"}
    messages = [
        {"role": "user", "content": "begin"},
        {"role": "assistant", "content": [thinking, text("Seen.")]},
        {"role": "user", "content": "more"},
    ]
    parent = ParentRequest({"messages": messages})
    fork = build_fork_request(Variant.UP_TO, parent, talk.entries[:1], kept_after=talk.entries[1:], prompt="SUMMARISE")
    assert fork is not None
    assert [message["role"] for message in list_messages(fork)] == ["user"]


@pytest.mark.parametrize(
    "parent",
    [
        ParentRequest({}, "m1"),
        ParentRequest({"messages": "none"}, "m1"),
        ParentRequest({"messages": [1]}, "m1"),
        ParentRequest({"messages": [{"role": "user", "content": "begin"}]}, "somebody else"),
    ],
)
def test_a_parent_that_does_not_fit_makes_no_fork(parent: ParentRequest) -> None:
    assert build_fork_request(Variant.FULL, parent, make_entries(), kept_after=(), prompt="SUMMARISE") is None


def test_a_cut_that_could_be_at_two_places_makes_no_fork() -> None:
    talk = Talk()
    talk.say("begin")
    talk.answer("m-1", text("I do"))
    talk.say("again")
    talk.answer("m0", text("yes"))
    kept = talk.say("again")
    said = ["begin", "I do", "again", "yes", "again"]
    messages = [{"role": ("user", "assistant")[at % 2], "content": words} for at, words in enumerate(said)]
    parent = ParentRequest({"messages": messages})
    assert build_fork_request(Variant.UP_TO, parent, talk.entries[:4], kept_after=[kept], prompt="x") is None


def test_a_plain_request_is_stripped_capped_streamed_and_allows_no_tool() -> None:
    talk = Talk()
    talk.say([text("look"), IMAGE, DOCUMENT])
    talk.attach("skill_listing", "a hundred skills")
    talk.attach("todo_reminder", "1. tests")
    talk.answer("m0", thought("secret thought"), tool_request("a"))
    talk.say([result("a", [text("a screen"), IMAGE, DOCUMENT])])
    plain = build_plain_request(Variant.FULL, talk.entries, "SUMMARISE", SummaryModels("big", "small", 200_000))
    body = json.dumps(plain.body)
    assert plain.body["max_tokens"] == 20_000
    assert plain.body["stream"] is True
    assert plain.body["tool_choice"] == {"type": "none"}
    assert [tool["name"] for tool in plain.body["tools"]] == ["Read"]  # type: ignore[attr-defined]
    assert body.count("[image]") == body.count("[document]") == 2
    assert "base64" not in body
    assert "skills" not in body
    assert "secret thought" not in body
    assert "1. tests" in body
    assert list_messages(plain)[-1]["content"][-1]["text"] == "SUMMARISE"  # type: ignore[index]
    assert plain.entries == tuple(talk.entries)


def test_entries_with_nothing_to_strip_stay_the_same_objects() -> None:
    entries = make_talk()
    assert all(new is old for new, old in zip(strip_entries(entries), entries, strict=True))


@pytest.mark.parametrize(
    ("models", "size", "chosen"),
    [
        (SummaryModels("big", "small", 200_000), 400, "small"),
        (SummaryModels("big", "small", 200_000), 80_000, "big"),
        (SummaryModels("big"), 400, "big"),
        (SummaryModels(None, "small", 1), 400, "small"),
        (SummaryModels(), 400, None),
    ],
)
def test_the_small_model_writes_where_its_window_holds_the_input(
    models: SummaryModels, size: int, chosen: str | None
) -> None:
    request = build_plain_request(Variant.FULL, make_talk(8, size=size), "SUMMARISE", models)
    assert request.model == chosen


def test_the_small_model_must_have_room_for_the_summary_too() -> None:
    models = SummaryModels("big", "small", 200_000)
    assert models.choose(180_000) == "small"
    assert models.choose(180_001) == "big"


def test_only_a_wider_model_takes_over_from_the_small_one() -> None:
    assert SummaryModels("big", "small", 200_000, 200_000).widen("small") is None
    assert SummaryModels("big", "small", 200_000, 1_000_000).widen("big") is None
    assert SummaryModels("big", "small", 200_000, 1_000_000).widen(None) is None
    assert SummaryModels("big", "small", 200_000, 1_000_000).widen("small") == SummaryModels(
        "big", None, 200_000, 1_000_000
    )


def test_a_conversation_of_nothing_but_skill_listings_is_nothing() -> None:
    talk = Talk()
    talk.attach("skill_listing", "skills")
    with pytest.raises(NothingToCompact):
        build_plain_request(Variant.FULL, talk.entries, "SUMMARISE", SummaryModels())
