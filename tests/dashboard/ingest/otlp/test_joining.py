"""Telemetry and transcript of one session: one call each, the same database whichever comes first."""

import json
from collections.abc import Callable
from random import Random

import pytest

from dashboard.ingest.intake import Origin, make_rules, store, take_in
from dashboard.ingest.observed import Piece
from dashboard.ingest.otlp.preparing import Form, Signal, prepare_export
from dashboard.models import AgentSession, ApiCall, CacheBreak, ObservedCompaction, Thread, User
from dashboard.policies.in_force import find_policy
from tests.builders import make_team
from tests.dashboard.ingest.conversation import Conversation, make_agent, make_conversation
from tests.dashboard.ingest.database_state import read_state
from tests.dashboard.ingest.otlp.exports import Json, call, event, logs, metrics, point, span, traces

pytestmark = pytest.mark.django_db
SIGNALS = {"resourceLogs": Signal.LOGS, "resourceMetrics": Signal.METRICS, "resourceSpans": Signal.TRACES}
Step = Callable[[Origin], object]


@pytest.fixture
def origin() -> Origin:
    team = make_team("Harbour", owner="alice")
    return Origin(team, User.objects.get(username="alice"), "otlp")


def send(export: Json) -> Step:
    def step(origin: Origin) -> object:
        signal = next(signal for name, signal in SIGNALS.items() if name in export)
        policy = find_policy(origin.team)
        rules = make_rules(origin.team, policy)
        exported = prepare_export(json.dumps(export).encode(), signal, Form.JSON, rules)
        return store(origin, exported.prepared, policy)

    return step


def follow(talk: Conversation, lines: slice = slice(None)) -> Step:
    data = b"".join(talk.lines[lines])
    return lambda origin: take_in(origin, Piece(data, "talk", talk.session_id, talk.agent_id))


def tell(talk: Conversation) -> list[Json]:
    """The exports of the conversation that conversation.make_conversation writes, as its client would send them."""
    session: Json = {"session": talk.session_id}
    named = [f"req_msg_harbour_{number}" for number in range(1, 6)]
    counts: Json = {"success": "true", "pre_tokens": "167000", "post_tokens": "9000", "duration_ms": "8000"}
    llm: Json = {"input_tokens": 3, "output_tokens": 50, "cache_read_tokens": 50_000, "cache_creation_tokens": 2_000}
    own: Json = {"session.id": talk.session_id, "request_id": named[1], "query_source": "repl_main_thread"}
    agent: Json = {"agent_id": "a1b2c3", "query_source": "agent:builtin:general-purpose"}
    return [
        logs(event("user_prompt", 0, **session), call(named[0], 1, written=50_000, output=60, **session)),
        logs(call(named[1], 4, read=50_000, written=2_000, **session), event("tool_result", 3, **session)),
        logs(event("compaction", 412, trigger="auto", **counts, **session)),
        logs(call("req_title", 411, written=700, query_source="compact", **session)),
        logs(call("req_msg_harbour_a1b2c3", 61, written=8_000, **agent, **session)),
        traces(span("claude_code.llm_request", 4, 1.5, 3, **llm, **own)),
        metrics("claude_code.cost.usage", point(20, 0.5, session=talk.session_id)),
        metrics("claude_code.token.usage", point(20, 900, session=talk.session_id, type="input")),
    ]


def test_transcript_and_telemetry_make_one_call_of_one_request(origin: Origin) -> None:
    talk = make_conversation()
    agent = make_agent()
    for step in (follow(talk), follow(agent), *map(send, tell(talk))):
        step(origin)
    session = AgentSession.objects.get()
    assert (session.call_count, session.turn_count) == (7, 3)
    assert session.entry_count == len(talk.lines) + len(agent.lines) - session.problem_count
    assert sorted(Thread.objects.values_list("agent_id", "call_count")) == [("", 6), ("a1b2c3", 1)]
    first = ApiCall.objects.get(call_id="msg_harbour_1")
    assert (first.output_tokens, first.duration_seconds, first.provenance["usage"]) == (60, 1.5, "otlp")
    assert session.write_5m_tokens == 50_000 + 2_000 + 45_000 + 20_000 + 8_000 + 700
    compaction = ObservedCompaction.objects.get()
    assert (compaction.trigger, compaction.before_tokens, compaction.duration_seconds) == ("auto", 167_000, 8.0)
    assert (session.compaction_count, session.client_tokens, str(session.client_cost_usd)) == (1, 900, "0.50000000")
    assert [loss.cause for loss in CacheBreak.objects.filter(kind="break")] == ["ttl_expired_5m"]


@pytest.mark.parametrize("seed", range(6))
def test_any_order_of_arrival_leaves_the_same_database(origin: Origin, seed: int) -> None:
    talk = make_conversation()
    steps = [follow(talk, slice(0, 7)), follow(talk, slice(7, None)), follow(make_agent()), *map(send, tell(talk))]
    for step in steps:
        step(origin)
    expected = read_state()
    AgentSession.objects.all().delete()
    random = Random(seed)
    shuffled = [*steps, *random.sample(steps, 3)]
    random.shuffle(shuffled)
    for step in shuffled:
        step(origin)
    assert read_state() == expected


def test_telemetry_alone_tells_calls_turns_and_compactions(origin: Origin) -> None:
    talk = make_conversation()
    for export in tell(talk):
        send(export)(origin)
    session = AgentSession.objects.get()
    assert (session.call_count, session.turn_count, session.compaction_count) == (4, 1, 1)
    assert session.context_tokens == 9_000 + 44_000  # what the compaction left, and system and tools
    row = ObservedCompaction.objects.get()
    assert (row.before_tokens, row.after_tokens, row.after_origin, row.saved_tokens) == (
        167_000, 9_000, "client", 158_000,
    )  # fmt: skip


def test_rebuild_after_a_reported_compaction_is_expected(origin: Origin) -> None:
    told: Json = {"trigger": "auto", "success": "true", "pre_tokens": "167000", "post_tokens": "9000"}
    send(
        logs(
            call("req_1", 0, written=160_000),
            call("req_2", 60, read=160_000, written=2_000),
            event("compaction", 90, **told),
            call("req_3", 120, read=10_000, written=20_000),
        )
    )(origin)
    assert not CacheBreak.objects.filter(kind="break").exists()
    assert ObservedCompaction.objects.get().after_tokens == 30_003


def test_reports_of_a_provider_without_request_ids_find_their_calls(origin: Origin) -> None:
    talk = Conversation("bedrock")
    talk.ask()
    for number, (read, written) in enumerate([(0, 50_000), (50_000, 2_000)], 1):
        talk.answer(f"msg_{number}", read=read, written=written)
        talk.result()
    talk.lines = [line.replace(b'"requestId":"req_msg_', b'"oldRequestId":"') for line in talk.lines]
    session: Json = {"session": talk.session_id}
    steps = [
        send(logs(call(None, 1, written=50_000, **session), call(None, 4, read=50_000, written=2_000, **session))),
        follow(talk),
    ]
    for step in reversed(steps):
        step(origin)
    assert sorted(ApiCall.objects.values_list("call_id", flat=True)) == ["msg_1", "msg_2"]
    assert set(ApiCall.objects.values_list("duration_seconds", flat=True)) == {1.5}


def test_span_of_another_thread_goes_to_its_call(origin: Origin) -> None:
    """Spans of sub-agents' calls do not name the sub-agent."""
    agent = make_agent()
    own: Json = {"session.id": agent.session_id, "request_id": "req_msg_harbour_a1b2c3"}
    figures: Json = {"input_tokens": 3, "output_tokens": 50, "cache_creation_tokens": 8_000}
    send(traces(span("claude_code.llm_request", 61, 2, **figures, **own)))(origin)
    assert list(Thread.objects.values_list("agent_id", flat=True)) == [""]
    follow(agent)(origin)
    assert list(Thread.objects.values_list("agent_id", "call_count")) == [("a1b2c3", 1)]
    assert ApiCall.objects.get().agent_id == "a1b2c3"
