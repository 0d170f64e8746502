"""Hooks and status lines over HTTP: what they add to a session, and that they add nothing twice."""

import gzip
import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from compaction.timeline.observations import LineKind, pack_observations, unpack_observations
from dashboard.ingest.client_hooks import EVENTS, NOT_KNOWN, prepare_hooks
from dashboard.ingest.client_json import LARGEST_COUNT
from dashboard.ingest.client_reports import SPOOL_FULL
from dashboard.ingest.client_status import prepare_statuses
from dashboard.ingest.observed import Rules
from dashboard.ingest.stored_lines import read_stored_lines
from dashboard.models import AgentSession, CacheBreak, Drop, EntrySegment, Scope, Team, TeamPolicy, User
from dashboard.pages.live_state import LiveState, find_live_state
from tests.builders import make_key, make_team
from tests.dashboard.ingest.conversation import START, Conversation, make_conversation
from tests.dashboard.ingest.database_state import read_state
from tests.visitors import read, sign_in

HOOKS, STATUS, TRANSCRIPTS = "/api/v1/ingest/hooks", "/api/v1/ingest/status", "/api/v1/ingest/transcripts"
RULES = Rules(keeps_content=True, digest_key=b"k")
SESSION = make_conversation().session_id
DOCUMENT = Path(__file__).parents[3] / "docs" / "claude-code.md"


@pytest.fixture
def team(db: None) -> Team:
    return make_team("Harbour", owner="alice", member="mia")


@pytest.fixture
def headers(team: Team) -> dict[str, str]:
    _, text = make_key(team, User.objects.get(username="mia"), Scope.INGEST)
    return {"Authorization": f"Bearer {text}"}


def hook(event: str, minute: float = 0, **fields: object) -> dict[str, object]:
    at = (START + timedelta(minutes=minute)).timestamp()
    named = {"plimsoll_event_id": f"{event}-{minute}", "plimsoll_at": at}
    return {"session_id": SESSION, "hook_event_name": event, "cwd": "/home/ann/harbour", **named, **fields}


def status(minute: float = 0, **fields: object) -> dict[str, object]:
    at = (START + timedelta(minutes=minute)).timestamp()
    window = {"context_window_size": 400_000, "current_usage": {"input_tokens": 96_000}}
    return {"session_id": SESSION, "plimsoll_at": at, "model": {"id": "harbour-1"}, "context_window": window, **fields}


def send(client: Client, url: str, headers: dict[str, str], *objects: object) -> None:
    body = "\n".join(json.dumps(each) for each in objects)
    answer = client.post(url, body, content_type="application/x-ndjson", headers=headers)
    assert (answer.status_code, answer.content) == (204, b"")


def test_hooks_over_http_as_the_documentation_sets_them(client: Client, headers: dict[str, str]) -> None:
    """As the client sends them: the event's own JSON, the key from its environment, no name and time of ours."""
    snippet = re.search(r"```json\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert snippet is not None
    told = json.loads(snippet[1])["hooks"]
    assert set(told) == EVENTS - {"SessionStart"}  # which the client sends to commands alone
    key = headers["Authorization"].removeprefix("Bearer ")
    for event, ((entry,),) in ((event, [entry["hooks"] for entry in entries]) for event, entries in told.items()):
        assert entry["type"] == "http"
        assert entry["allowedEnvVars"] == ["PLIMSOLL_KEY"]
        sent = {name: value.replace("$PLIMSOLL_KEY", key) for name, value in entry["headers"].items()}
        body = {
            "session_id": SESSION,
            "hook_event_name": event,
            "cwd": "/home/ann",
            "prompt_id": "p",
            "trigger": "auto",
        }
        path = urlsplit(entry["url"]).path
        answer = client.post(path, body, content_type="application/json", headers=sent)
        assert (answer.status_code, answer.content) == (204, b"")
    assert AgentSession.objects.get().sources == ["hooks"]
    assert not Drop.objects.exists()


def send_talk(client: Client, headers: dict[str, str], talk: Conversation) -> None:
    url = f"{TRANSCRIPTS}?session={talk.session_id}"
    assert client.post(url, talk.data, content_type="application/x-ndjson", headers=headers).status_code == 200


def test_hooks_alone_make_a_session_with_turns_and_an_end(client: Client, headers: dict[str, str]) -> None:
    hooks = [
        hook("SessionStart", 0, source="startup"),
        hook("UserPromptSubmit", 1, prompt_id="p1", prompt="secret plans"),
        hook("Stop", 2, prompt_id="p1"),
        hook("UserPromptSubmit", 3, prompt_id="p2"),
        hook("SessionEnd", 4, reason="other"),
    ]
    send(client, HOOKS, headers, *hooks)
    session = AgentSession.objects.get()
    assert (session.turn_count, session.call_count, session.entry_count) == (2, 0, 0)
    assert (session.project, session.developer, session.sources) == ("harbour", "mia", ["hooks"])
    assert session.ended_at == START + timedelta(minutes=4)
    assert find_live_state(session, now=START + timedelta(minutes=5)) is LiveState.ENDED
    before = read_state()
    send(client, HOOKS, headers, *reversed(hooks))
    assert read_state() == before


def test_turn_is_counted_once_whichever_comes_first(client: Client, headers: dict[str, str]) -> None:
    talk = make_conversation()
    prompts = [hook("UserPromptSubmit", minute, prompt_id=f"p{minute}") for minute in (0, 1, 8)]
    send(client, HOOKS, headers, *prompts)
    assert AgentSession.objects.get().turn_count == 3
    send_talk(client, headers, talk)
    after = AgentSession.objects.get()
    assert (after.turn_count, after.call_count) == (3, 5)
    send(client, HOOKS, headers, *prompts, hook("UserPromptSubmit", 9, prompt_id="late"))
    assert AgentSession.objects.get().turn_count == 3


def test_prompt_told_by_command_and_http_hook_is_one_turn(client: Client, headers: dict[str, str]) -> None:
    plain = {"session_id": SESSION, "hook_event_name": "UserPromptSubmit", "prompt_id": "p1"}
    answer = client.post(HOOKS, plain, content_type="application/json", headers=headers)
    assert (answer.status_code, answer.content) == (204, b"")
    send(client, HOOKS, headers, hook("UserPromptSubmit", 0, prompt_id="p1"))
    assert AgentSession.objects.get().turn_count == 1


def test_resumed_session_is_at_work_again(client: Client, headers: dict[str, str]) -> None:
    send(client, HOOKS, headers, hook("SessionEnd", 1), hook("SessionStart", 9, source="resume", context_tokens=90_000))
    session = AgentSession.objects.get()
    assert session.ended_at == START + timedelta(minutes=1)
    assert find_live_state(session, now=START + timedelta(minutes=10)) is LiveState.LIVE


def test_summary_is_stored_redacted_and_only_where_content_is(client: Client, headers: dict[str, str]) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    told = hook("PostCompact", 1, trigger="auto", compact_summary=f"We used {secret[:40]} to sail.")
    send(client, HOOKS, headers, told)
    team = Team.objects.get()
    assert not EntrySegment.objects.get().content
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    AgentSession.objects.all().delete()
    send(client, HOOKS, headers, told)
    session = AgentSession.objects.get()
    (fact,) = read_stored_lines(session).facts.values()
    assert (fact.kind, fact.has_content, fact.is_redacted) == (LineKind.COMPACTION_REPORT, True, True)
    assert fact.compaction is not None
    assert (fact.compaction.trigger, (fact.compaction.summary_tokens or 0) > 5) == ("auto", True)


def test_status_alone_draws_the_gauge_of_an_unknown_model(client: Client, headers: dict[str, str]) -> None:
    expires_at = START + timedelta(minutes=5)
    told = status(0, cost={"total_cost_usd": 1.5}, prompt_cache={"warm": True, "expires_at": expires_at.timestamp()})
    send(client, STATUS, headers, told)
    session = AgentSession.objects.get()
    assert (session.model, session.window_tokens, session.reported_window_tokens) == ("harbour-1", 400_000, 400_000)
    assert (session.context_tokens, session.level, session.sources) == (96_000, "ok", ["statusline"])
    assert (session.warm_until, str(session.client_cost_usd)) == (expires_at, "1.50000000")


def test_page_of_a_session_known_by_its_status_line_does_not_contradict_itself(
    client: Client, headers: dict[str, str]
) -> None:
    send(client, STATUS, headers, status(0, cost={"total_cost_usd": 0.1}))
    session = AgentSession.objects.get()
    page = read(sign_in("mia"), f"/sessions/{session.pk}/")
    assert "96,000 of 400,000 tokens in use" in page
    assert "No call yet" not in page.split('id="session-figures"')[1].split("</dl>")[0]
    assert "is taken from the client's status line" in page
    assert "$0.10 <small>reported by the client, no API calls recorded</small>" in page
    assert 'class="gauge gauge-header"' in page
    context = read(sign_in("mia"), f"/sessions/{session.pk}/context/")
    assert "96.0k tokens, reported by the client's status line." in context
    assert "No context measured yet" not in context


def test_session_of_which_nothing_is_known_draws_no_gauge(client: Client, headers: dict[str, str]) -> None:
    send(client, HOOKS, headers, hook("SessionStart", model="claude-opus-4-5"))
    page = read(sign_in("mia"), f"/sessions/{AgentSession.objects.get().pk}/")
    assert "No API calls yet, and the client has not reported a context size." in page
    assert 'class="gauge gauge-header"' not in page


def test_later_status_replaces_the_earlier_in_any_order(client: Client, headers: dict[str, str]) -> None:
    first, later = status(0), status(1, context_window={"context_window_size": 1_000_000})
    send(client, STATUS, headers, later)
    send(client, STATUS, headers, first)
    session = AgentSession.objects.get()
    assert session.reported_window_tokens == 1_000_000
    assert len(read_stored_lines(session).facts) == 1


def test_reported_window_is_believed_for_its_model_alone(client: Client, headers: dict[str, str]) -> None:
    talk = make_conversation()
    send_talk(client, headers, talk)
    assert AgentSession.objects.get().window_tokens == 200_000
    send(client, STATUS, headers, status(20, model="harbour-1"))
    assert AgentSession.objects.get().window_tokens == 200_000
    send(client, STATUS, headers, status(21, model={"id": "claude-opus-4-5[1m]"}))
    session = AgentSession.objects.get()
    assert (session.window_tokens, session.reported_window_tokens, session.call_count) == (400_000, 400_000, 5)


@pytest.mark.parametrize("status_first", [True, False])
def test_cause_of_a_miss_goes_to_the_call_that_missed(
    client: Client, headers: dict[str, str], *, status_first: bool
) -> None:
    talk = Conversation("missed")
    talk.ask()
    talk.answer("msg_1", written=50_000, stop="tool_use")
    talk.result("x")
    talk.answer("msg_2", read=0, written=52_000)
    missed_at = talk.now + timedelta(seconds=0.4)
    cache = {"last_miss_at": missed_at.isoformat(), "last_miss_cause": {"causes": ["effort_changed"]}}
    told = status(2, prompt_cache=cache) | {"session_id": talk.session_id}
    if status_first:
        send(client, STATUS, headers, told)
    send_talk(client, headers, talk)
    if not status_first:
        assert CacheBreak.objects.get().grade != "client"
        send(client, STATUS, headers, told)
    found = CacheBreak.objects.get()
    assert (found.call_id, found.cause, found.grade) == ("msg_2", "effort_changed", "client")
    # A later status tells of other things: what was known of this miss stays.
    send(client, STATUS, headers, status(9) | {"session_id": talk.session_id})
    assert CacheBreak.objects.get().grade == "client"


@pytest.mark.parametrize(
    ("body", "content_type", "extra", "expected"),
    [
        (b"", "application/json", {}, 400),
        (b"not json", "application/json", {}, 422),
        (b"[]", "application/json", {}, 422),
        (b"{}", "text/html", {}, 415),
        (b"{}", "application/json", {"Content-Encoding": "br"}, 415),
        (gzip.compress(b" " * 5_000_000), "application/json", {"Content-Encoding": "gzip"}, 413),
        (b"{}\n" * (LARGEST_COUNT + 1), "application/x-ndjson", {}, 413),
        (b'{"hook_event_name":"PreToolUse","session_id":"s"}', "application/json", {}, 204),
    ],
)
@pytest.mark.parametrize("url", [HOOKS, STATUS])
def test_bad_bodies_get_a_sentence(
    client: Client,
    headers: dict[str, str],
    url: str,
    body: bytes,
    content_type: str,
    extra: dict[str, str],
    expected: int,
) -> None:
    answer = client.post(url, body, content_type=content_type, headers=headers | extra)
    assert answer.status_code == expected
    assert expected == 204 or answer.json()["detail"].endswith(".")


def test_what_is_not_kept_is_counted(client: Client, headers: dict[str, str]) -> None:
    dropped = headers | {"X-Plimsoll-Dropped": "7"}
    send(client, HOOKS, dropped, {"hook_event_name": "PreToolUse", "session_id": "s"}, {"hook_event_name": "Stop"})
    assert dict(Drop.objects.values_list("reason", "count")) == {
        NOT_KNOWN: 1,
        SPOOL_FULL: 7,
        "hook without a session": 1,
    }
    assert not AgentSession.objects.exists()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
FIELDS = (
    *("session_id", "cwd", "prompt_id", "agent_id", "source", "reason", "model", "context_tokens", "trigger"),
    *("compact_summary", "plimsoll_at", "plimsoll_event_id", "estimated_cache_write_usd", "context_window", "version"),
    *("prompt_cache", "rate_limits", "cost"),
)


@settings(max_examples=150, deadline=None)
@given(
    st.fixed_dictionaries(
        {"hook_event_name": st.sampled_from(sorted(EVENTS)) | JSON},
        optional=dict.fromkeys(FIELDS, JSON),
    )
)
def test_any_json_is_decoded_into_facts_that_can_be_packed(told: dict[str, object]) -> None:
    data = json.dumps(told).encode()
    now = datetime(2026, 5, 1, tzinfo=UTC)
    for prepared in (prepare_hooks(data, RULES, arrived_at=now), prepare_statuses(data, RULES, arrived_at=now)):
        assert prepared.line_count == 1
        for session in prepared.sessions:
            again = {line.fact.id for line in session.lines}
            assert len(again) == len(session.lines)
            assert all(line.fact.at is not None for line in session.lines)
            assert unpack_observations(pack_observations([line.fact for line in session.lines]))
