"""Items of any agent: each taken or refused by itself, known when it comes again, the same whatever its order."""

import gzip
import json
from itertools import permutations
from typing import Any

import pytest
from django.test import Client

from dashboard.api.agent_items import GONE
from dashboard.ingest.agent_facts import REFUSED
from dashboard.models import (
    AgentSession,
    ApiCall,
    DeletedSession,
    DeletionReason,
    Drop,
    EntrySegment,
    PromptShape,
    Scope,
    Team,
    TeamPolicy,
    User,
)
from tests.builders import make_key, make_team
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.ingest.database_state import read_state

pytestmark = pytest.mark.django_db
URL = "/api/v1/ingest/items"
SECRET = "ghp_" + "Zq9" * 12
MODEL = "claude-opus-4-5"


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="alice", member="mia")


@pytest.fixture
def headers(team: Team) -> dict[str, str]:
    return {"Authorization": f"Bearer {make_key(team, User.objects.get(username='mia'), Scope.INGEST)[1]}"}


def send(client: Client, headers: dict[str, str], *items: object) -> Any:
    return client.post(URL, {"items": list(items)}, content_type="application/json", headers=headers)


def at(minute: int) -> str:
    return f"2026-05-01T10:{minute:02}:00Z"


def make_call(number: int, *, read: int = 0, written: int = 0, **more: object) -> dict[str, object]:
    usage = {"input_tokens": 10, "cache_read_input_tokens": read, "cache_creation_input_tokens": written}
    told = {"type": "call", "session": "s1", "id": f"c{number}", "at": at(number), "model": MODEL}
    return {**told, "usage": usage | {"output_tokens": 100}, **more}


def make_request(*words: str) -> dict[str, Any]:
    """Every second message is the model's; the last is marked."""
    messages = [
        {"role": "assistant" if number % 2 else "user", "content": [{"type": "text", "text": text}]}
        for number, text in enumerate(words)
    ]
    return {"model": MODEL, "system": "Be a pilot.", "messages": messages, "cache_control": {"type": "ephemeral"}}


ITEMS: list[dict[str, object]] = [
    {"type": "session", "session": "s1", "at": at(0), "title": "Sounding", "folder": "/srv/quay", "branch": "main"},
    {"type": "prompt", "session": "s1", "id": "p1", "system": "Be a pilot.", "tools": [{"name": "sound"}]},
    {"type": "message", "session": "s1", "id": "m1", "at": at(1), "role": "user", "content": f"Go, with {SECRET}."},
    make_call(1, written=50_000, prompt="p1", request={"messages": [{"role": "user", "content": "Go."}]}),
    {
        "type": "message",
        "session": "s1",
        "id": "m2",
        "at": at(1),
        "parent": "m1",
        "role": "assistant",
        "content": [{"type": "text", "text": "Well."}],
    },
    make_call(2, read=50_000, written=2_000, agent="deck", request_id="req_2"),
    {
        "type": "compaction",
        "session": "s1",
        "id": "k1",
        "at": at(3),
        "parent": "m2",
        "trigger": "manual",
        "before_tokens": 52_000,
        "after_tokens": 4_000,
        "duration_seconds": 2.5,
        "summary": "Basins were sounded.",
    },
    {"type": "compaction", "session": "s1", "id": "k2", "at": at(4), "failure": "overloaded"},
    {"type": "compaction", "session": "s1", "id": "k3", "at": at(5), "kind": "micro", "saved_tokens": 700},
    make_call(6, written=4_000),
    make_call(7, read=1, purpose="title", model="claude-haiku-4-5"),
]


def test_items_become_a_session(client: Client, team: Team, headers: dict[str, str]) -> None:
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    answer = send(client, headers, *ITEMS)
    assert answer.status_code == 200, answer.json()
    assert answer.json()["results"] == [{"index": index, "ok": True, "detail": None} for index in range(len(ITEMS))]
    session = AgentSession.objects.get()
    told = (session.title, session.project, session.branch, session.developer, session.sources)
    assert told == ("Sounding", "quay", "main", "mia", ["api"])
    assert (session.call_count, session.turn_count, session.context_tokens) == (4, 1, 4_110)
    assert list(session.threads.order_by("agent_id").values_list("agent_id", "call_count")) == [("", 3), ("deck", 1)]
    kinds = session.compactions.order_by("at").values_list("kind", "trigger", "before_tokens", "after_tokens")
    assert len(kinds) == 3
    assert ("full", "manual", 52_000, 4_000) in kinds
    kept = b"".join(content for *_, content in read_state()["lines"])
    assert b"Basins were sounded." in kept
    assert SECRET.encode() not in kept


def test_same_state_in_any_order_and_however_often(client: Client, team: Team, headers: dict[str, str]) -> None:
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    send(client, headers, *ITEMS)
    expected = read_state()
    assert send(client, headers, *ITEMS).json()["ok"] == len(ITEMS)
    assert read_state() == expected
    AgentSession.objects.all().delete()
    for item in reversed(ITEMS):
        send(client, headers, item)
    assert read_state() == expected


def test_numbers_only_keeps_no_word(client: Client, headers: dict[str, str]) -> None:
    send(client, headers, *ITEMS)
    session = AgentSession.objects.get()
    assert (session.title, session.call_count, session.turn_count) == ("", 4, 1)
    assert not EntrySegment.objects.exclude(content=None).exists()
    assert not PromptShape.objects.exclude(content=None).exists()
    state = repr(read_state())
    assert not [words for words in ("Sounding", "Be a pilot", "Well.", "Basins were", SECRET) if words in state]


@pytest.mark.parametrize("way", ["whole", "tail", "hashes"])
def test_two_requests_explain_a_break(client: Client, headers: dict[str, str], way: str) -> None:
    words = ["Sound the basins.", "It is deep.", "Go on.", "Done.", "And the wall?"]
    requests: list[dict[str, Any]] = [{"request": make_request(*words[:count])} for count in (1, 3, 5)]
    requests[2] = {"request": make_request("Sound the docks.", *words[1:])}  # the first message is another one now
    if way == "tail":
        whole = make_request(*words[:3])
        requests[1] = {"base": "c1", "keep": 1, "request": whole | {"messages": whole["messages"][1:]}}
    if way == "hashes":
        hashed = [["a"], ["a", "b", "c"], ["x", "b", "c", "d", "e"]]
        requests = [{"request": {"system": "Be a pilot."}, "message_hashes": each} for each in hashed]
    items = [
        make_call(1, written=30_000, **requests[0]),
        make_call(2, read=30_000, written=1_000, **requests[1]),
        make_call(3, read=500, written=31_000, **requests[2]),
    ]
    assert send(client, headers, *items).json()["refused"] == 0
    (found,) = AgentSession.objects.get().breaks.filter(kind="break")
    assert (found.cause, found.grade) == ("messages_rewritten", "request")


@pytest.mark.parametrize(
    ("before", "now", "cause", "detail"),
    [
        ({"strategy": "global"}, {"strategy": "org"}, "strategy_changed", "global -> org"),
        ({}, {"auto_mode": True}, "auto_mode_changed", "off -> on"),
        ({"overage": True}, {"overage": False}, "overage_changed", "on -> off"),
        ({"cached_micro": ["t1", "t2"]}, {"cached_micro": ["t2"]}, "cached_micro_changed", "+0/-1 deleted results"),
        ({"cached_micro": ["t1"]}, {"cached_micro": ["t1", "t2"]}, "deletion_announced", ""),
    ],
)
def test_state_of_the_client_explains_a_loss(
    client: Client, headers: dict[str, str], before: object, now: object, cause: str, detail: str
) -> None:
    items = [
        make_call(1, written=30_000, request=make_request("Go."), client_state=before),
        make_call(2, written=31_000, request=make_request("Go.", "Done.", "More."), client_state=now),
    ]
    assert send(client, headers, *items).json()["refused"] == 0
    found = AgentSession.objects.get().breaks.get()
    assert (found.cause, found.detail) == (cause, detail)
    assert found.kind == ("expected" if cause == "deletion_announced" else "break")


@pytest.mark.parametrize(("kind", "cause"), [("deletion", "deletion_announced"), ("micro", "micro_compacted")])
def test_announced_deletion_makes_the_next_call_a_rebuild(
    client: Client, headers: dict[str, str], kind: str, cause: str
) -> None:
    about: dict[str, object] = {"type": "compaction", "session": "s1", "id": "d1", "at": at(2), "kind": kind}
    told = about | {"cleared_count": 4, "saved_tokens": 9_000}
    items = [make_call(1, written=30_000), told, make_call(3, read=500, written=21_000), make_call(4, written=21_000)]
    assert send(client, headers, *items).json()["refused"] == 0
    session = AgentSession.objects.get()
    assert list(session.breaks.order_by("at").values_list("kind", "cause")) == [
        ("expected", cause),
        ("break", "unexplained"),
    ]
    assert session.compactions.values_list("kind", "cleared_count", "saved_tokens").get() == ("micro", 4, 9_000)


def test_usage_that_counts_deleted_tokens_makes_a_lower_read_expected(client: Client, headers: dict[str, str]) -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 21_000, "cache_deleted_input_tokens": 9_000}
    assert send(client, headers, make_call(1, written=30_000), make_call(2, usage=usage)).json()["refused"] == 0
    assert AgentSession.objects.get().breaks.values_list("kind", "cause").get() == ("expected", "deletion_announced")


def test_call_is_one_with_the_lines_that_tell_of_it(client: Client, headers: dict[str, str]) -> None:
    talk = Conversation("s1")
    talk.ask()
    talk.answer("msg_1", written=9_000)
    item = make_call(1, written=9_000, session=talk.session_id, request_id="req_msg_1", duration_seconds=3.0)
    for first, second in permutations(["lines", "item"]):
        for each in (first, second):
            if each == "lines":
                url = f"/api/v1/ingest/transcripts?session={talk.session_id}"
                client.post(url, talk.data, content_type="application/x-ndjson", headers=headers)
            else:
                send(client, headers, item)
        call = ApiCall.objects.get()
        assert (call.call_id, call.duration_seconds) == ("msg_1", 3.0)
        assert AgentSession.objects.get().sources == ["api"]
        AgentSession.objects.all().delete()


def test_calls_of_two_sessions_may_bear_one_id(client: Client, headers: dict[str, str]) -> None:
    send(client, headers, make_call(1, written=5_000), make_call(1, written=5_000, session="s2"))
    assert ApiCall.objects.filter(is_counted=True).count() == 2


def test_later_words_on_a_session_go_before_earlier_ones(client: Client, team: Team, headers: dict[str, str]) -> None:
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    about = {"type": "session", "session": "s1"}
    late, early = about | {"at": at(9), "title": "New"}, about | {"at": at(1), "title": "A longer old title"}
    for items in ((late, early), (early, late)):
        send(client, headers, *items)
        assert AgentSession.objects.get().title == "New"
        AgentSession.objects.all().delete()


@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        (7, "Expected `object`"),
        ({"type": "song", "session": "s1"}, "song"),
        ({"type": "call", "session": "s1", "id": "c"}, "missing required field"),
        (make_call(1, colour="red"), "unknown field `colour`"),
        (make_call(1, session=""), "length >= 1"),
        (make_call(1, usage={"input_tokens": -1}), ">= 0"),
        (make_call(1, at="2026-05-01T10:00:00"), "timezone"),
        (make_call(1, at="0001-01-01T00:00:00Z"), "outside the years"),
        (make_call(1, duration_seconds=1e300), "<= 10000000"),
        (make_call(1, keep=2), "`base`, which is left out"),
        (make_call(1, request={"messages": ["hi"]}), "`request.messages` is a list of messages"),
        (make_call(1, client_state={"auto_mode": True}), "`client_state` tells more of a request"),
        (make_call(1, request={}, client_state={"auto_mode": "yes"}), "Expected `bool`"),
        (make_call(1, request={}, client_state={"mood": "good"}), "unknown field `mood`"),
        (make_call(1, request={}, client_state={"strategy": "a b"}), "matching regex"),
        (make_call(1, request={}, client_state={"cached_micro": ["t"] * 1_001}), "length <= 1000"),
        ({"type": "message", "session": "s1", "id": "m", "at": at(1), "role": "system", "content": ""}, "role"),
    ],
)
def test_refused_item_leaves_the_others(client: Client, headers: dict[str, str], item: object, sentence: str) -> None:
    answer = send(client, headers, make_call(1), item, make_call(2)).json()
    assert (answer["ok"], answer["refused"]) == (2, 1)
    assert [result["ok"] for result in answer["results"]] == [True, False, True]
    assert sentence in answer["results"][1]["detail"]
    assert AgentSession.objects.get().call_count == 2
    assert Drop.objects.get(reason=REFUSED).count == 1


def test_items_of_a_deleted_session_are_refused(client: Client, team: Team, headers: dict[str, str]) -> None:
    DeletedSession.objects.create(team=team, external_id="s1", reason=DeletionReason.PERSON)
    answer = send(client, headers, make_call(1), make_call(1, session="s2")).json()
    assert [result["detail"] for result in answer["results"]] == [GONE, None]
    assert AgentSession.objects.get().external_id == "s2"


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b" ", "application/json", 400),
        (b"[]", "application/json", 422),
        (b'{"items": 1}', "application/json", 422),
        (b"\xff", "application/json", 422),
        (b'{"items": []}', "text/plain", 415),
        (json.dumps({"items": [1] * 1001}).encode(), "application/json", 422),
    ],
)
def test_bad_bodies_get_a_sentence(
    client: Client, headers: dict[str, str], body: bytes, content_type: str, status: int
) -> None:
    answer = client.post(URL, body, content_type=content_type, headers=headers)
    assert answer.status_code == status
    assert answer.json()["detail"]


def test_body_may_be_gzip_and_names_its_team(client: Client, headers: dict[str, str]) -> None:
    body = gzip.compress(json.dumps({"items": ITEMS}).encode())
    packed = headers | {"Content-Encoding": "gzip"}
    assert client.post(f"{URL}?team=harbour", body, content_type="application/json", headers=packed).status_code == 200
    assert client.post(f"{URL}?team=quay", body, content_type="application/json", headers=packed).status_code == 404


def test_example_of_the_description_is_taken(client: Client, headers: dict[str, str]) -> None:
    described = client.get("/api/v1/openapi.json", headers=headers).json()["paths"][URL]["post"]
    body = described["requestBody"]["content"]["application/json"]
    kinds = [each["properties"]["type"]["enum"][0] for each in body["schema"]["properties"]["items"]["items"]["oneOf"]]
    assert sorted(kinds) == ["call", "compaction", "message", "prompt", "session"]
    assert send(client, headers, *body["example"]["items"]).json()["refused"] == 0
