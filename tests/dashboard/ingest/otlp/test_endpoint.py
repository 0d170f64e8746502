"""OTLP over HTTP: who is let in, what is refused and how, and that the answer comes after the commit."""

import gzip
import json

import pytest
from django.db import OperationalError
from django.test import Client
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse

from dashboard.ingest import intake
from dashboard.ingest.endpoints.otlp import INFLATED_BYTES
from dashboard.ingest.record import TooBusy
from dashboard.models import AgentSession, ApiCall, Drop, ObservedCompaction, Scope, Team, User
from tests.builders import make_key, make_team
from tests.dashboard.ingest.otlp.exports import (
    SESSION,
    Json,
    call,
    event,
    logs,
    metrics,
    point,
    span,
    to_protobuf,
    traces,
)

pytestmark = pytest.mark.django_db
PROTOBUF, JSON = "application/x-protobuf", "application/json"


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="alice", member="mia")


@pytest.fixture
def headers(team: Team) -> dict[str, str]:
    _, text = make_key(team, User.objects.get(username="mia"), Scope.INGEST)
    return {"Authorization": f"Bearer {text}"}


def post(client: Client, headers: dict[str, str], export: Json, *, signal: str = "logs", prefix: str = "") -> Json:
    url = f"{prefix}/v1/{signal}"
    answer = client.post(url, json.dumps(export), content_type=JSON, headers=headers)
    assert (answer.status_code, answer.headers["Content-Type"]) == (200, JSON), answer.content
    told: Json = answer.json()
    return told


def test_logs_in_protobuf_are_committed_before_the_answer(client: Client, headers: dict[str, str]) -> None:
    body = to_protobuf(logs(call("req_1", 0, written=9_000), call("req_2", 60, read=9_000)))
    answer = client.post("/v1/logs", body, content_type=PROTOBUF, headers=headers)
    assert (answer.status_code, answer.headers["Content-Type"], answer.content) == (200, PROTOBUF, b"")
    session = AgentSession.objects.get()
    assert (session.external_id, session.call_count, session.developer) == (SESSION, 2, "mia")
    assert session.sources == ["otlp"]


@pytest.mark.parametrize("prefix", ["", "/ingest/otlp"])
def test_all_signals_arrive_below_a_prefix_too(client: Client, headers: dict[str, str], prefix: str) -> None:
    told: Json = {"input_tokens": 3, "output_tokens": 50, "request_id": "req_1", "session.id": SESSION}
    assert post(client, headers, logs(call("req_1", 0)), prefix=prefix) == {}
    spans = traces(span("claude_code.llm_request", 0, 1.5, **told))
    assert post(client, headers, spans, signal="traces", prefix=prefix) == {}
    counted = metrics("claude_code.cost.usage", point(10, 0.5))
    assert post(client, headers, counted, signal="metrics", prefix=prefix) == {}
    session = AgentSession.objects.get()
    assert (session.call_count, str(session.client_cost_usd)) == (1, "0.50000000")


def test_sessions_of_one_export_known_and_unknown_are_all_taken(client: Client, headers: dict[str, str]) -> None:
    post(client, headers, logs(call("req_a1", 0, session="a")))
    export = logs(*(call(f"req_{name}{n}", 60 * n, session=name, written=900) for name in "abc" for n in (1, 2)))
    for _ in range(2):
        assert post(client, headers, export) == {}
    assert dict(AgentSession.objects.values_list("external_id", "call_count")) == {"a": 2, "b": 2, "c": 2}


def test_gzip_is_unpacked(client: Client, headers: dict[str, str]) -> None:
    body = gzip.compress(to_protobuf(logs(call("req_1", 0))))
    answer = client.post("/v1/logs", body, content_type=PROTOBUF, headers=headers | {"Content-Encoding": "gzip"})
    assert answer.status_code == 200
    assert ApiCall.objects.count() == 1


def test_key_may_come_in_a_header_of_our_own(client: Client, headers: dict[str, str]) -> None:
    key = headers["Authorization"].removeprefix("Bearer ")
    own = {"X-Plimsoll-Key": key, "Authorization": "Basic c29tZWJvZHk6ZWxzZQ=="}
    assert post(client, own, logs(call("req_1", 0))) == {}


@pytest.mark.parametrize("spelt", ["Bearer%20{}", "bearer {}", "Bearer  {} ", "BEARER%20{}"])
def test_key_is_taken_as_clients_spell_it(client: Client, headers: dict[str, str], spelt: str) -> None:
    key = headers["Authorization"].removeprefix("Bearer ")
    assert post(client, {"Authorization": spelt.format(key)}, logs(call("req_1", 0))) == {}


@pytest.mark.parametrize(
    ("body", "content_type", "extra", "status"),
    [
        (b"\xff\xff", PROTOBUF, {}, 400),
        (b"not json", JSON, {}, 400),
        (b" ", JSON, {}, 400),
        (b"{}", "text/plain", {}, 415),
        (b"{}", JSON, {"Content-Encoding": "br"}, 415),
        (b"not gzip", JSON, {"Content-Encoding": "gzip"}, 400),
        (gzip.compress(b" " * (INFLATED_BYTES + 1)), JSON, {"Content-Encoding": "gzip"}, 413),
        (gzip.compress(gzip.compress(b"{}")), JSON, {"Content-Encoding": "gzip"}, 400),
    ],
    ids=["protobuf", "json", "empty", "type", "brotli", "gzip", "bomb", "nested"],
)
def test_bad_bodies_get_a_status_and_a_sentence(
    client: Client, headers: dict[str, str], body: bytes, content_type: str, extra: dict[str, str], status: int
) -> None:
    answer = client.post("/v1/logs", body, content_type=content_type, headers=headers | extra)
    assert answer.status_code == status
    assert b"." in answer.content
    if content_type == JSON:
        assert answer.json()["message"].endswith(".")
    assert not AgentSession.objects.exists()


def test_items_without_a_session_are_a_partial_success(client: Client, headers: dict[str, str]) -> None:
    export = logs(call("req_1", 0), call("req_2", 1, session=None))
    told = post(client, headers, export)["partialSuccess"]
    assert told == {"rejectedLogRecords": "1", "errorMessage": "Dropped: 1 of them: names no session."}
    answer = client.post("/v1/logs", to_protobuf(export), content_type=PROTOBUF, headers=headers)
    partial = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert partial.rejected_log_records == 1
    assert ApiCall.objects.count() == 1


def test_unknown_events_are_counted_and_not_refused(client: Client, headers: dict[str, str]) -> None:
    assert post(client, headers, logs(event("from_the_future"), event("tool_decision", 1))) == {}
    assert dict(Drop.objects.values_list("reason", "count")) == {
        "event not known": 1,
        "known, but nothing is made of it": 1,
    }


@pytest.mark.parametrize("error", [OperationalError("database is locked"), TooBusy("fought over")])
def test_states_that_pass_are_answered_with_503_and_a_time(
    client: Client, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(intake, "record", fail)
        answer = client.post("/v1/logs", json.dumps(logs(call("req_1", 0))), content_type=JSON, headers=headers)
    assert answer.status_code == 503
    assert int(answer.headers["Retry-After"]) >= 1
    assert post(client, headers, logs(call("req_1", 0))) == {}
    assert ApiCall.objects.count() == 1


def test_failed_compaction_is_shown_and_does_not_count(client: Client, headers: dict[str, str]) -> None:
    told: Json = {"trigger": "auto", "success": "false", "pre_tokens": "190000", "error": "too_few_groups"}
    post(client, headers, logs(call("req_1", 0, written=190_000), event("compaction", 9, duration_ms="12", **told)))
    row = ObservedCompaction.objects.get()
    assert (row.kind, row.failure, row.before_tokens) == ("failed", "too_few_groups", 190_000)
    session = AgentSession.objects.get()
    assert (session.compaction_count, session.micro_count) == (0, 0)
    client.force_login(User.objects.get(username="mia"))
    page = client.get(f"/sessions/{session.pk}/compactions/").content.decode()
    assert "Failed: too_few_groups" in page
    (item,) = client.get(f"/api/v1/sessions/{session.pk}/compactions?kind=failed").json()["items"]
    assert (item["kind"], item["failure"]) == ("failed", "too_few_groups")
    assert client.get(f"/compactions/{row.pk}/").status_code == 200


def test_page_of_a_compaction_that_only_telemetry_tells_of_is_whole(client: Client, headers: dict[str, str]) -> None:
    told: Json = {"trigger": "manual", "success": "true", "pre_tokens": "190000", "post_tokens": "9000"}
    post(client, headers, logs(call("req_1", 0, written=190_000), event("compaction", 9, duration_ms="12", **told)))
    row = ObservedCompaction.objects.get()
    client.force_login(User.objects.get(username="mia"))
    page = client.get(f"/compactions/{row.pk}/")
    assert page.status_code == 200
    assert "190.0k → 9.0k, 181.0k freed" in page.content.decode()


def test_calls_beside_the_conversation_are_paid_for_and_drawn_apart(client: Client, headers: dict[str, str]) -> None:
    export = logs(
        call("req_1", 0, written=90_000),
        call("req_2", 30, written=2_500, query_source="generate_session_title"),
        call("req_3", 60, read=90_000, written=1_000),
    )
    post(client, headers, export)
    session = AgentSession.objects.get()
    assert (session.call_count, session.context_tokens, session.break_count) == (3, 91_053, 0)
    assert session.write_5m_tokens == 93_500
    client.force_login(User.objects.get(username="mia"))
    page = client.get(f"/sessions/{session.pk}/").content.decode()
    assert "outside the conversation: generate_session_title" in page
    assert "outside the conversation, call 2: 2.6k" in page  # its own lane in the figure
