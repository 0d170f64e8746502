"""S1 for OTLP: whatever an export holds and however it is sent, no answer is a 5xx and the database stays sound.

Each of the six addresses, some dozens of exports each; PLIMSOLL_TEST_LONG=1 draws many more.
"""

import gzip
import json

import pytest
from django.db import connection, transaction
from django.test import Client
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dashboard.ingest.otlp.preparing import Form, Signal
from dashboard.models import AgentSession, Scope, User
from tests.builders import make_key, make_team
from tests.dashboard.ingest.otlp.exports import Json, call, logs, to_protobuf
from tests.dashboard.ingest.otlp.odd_exports import draw_export, tell_apart
from tests.faults.figures import IS_LONG

pytestmark = pytest.mark.django_db
SETTINGS = settings(
    max_examples=400 if IS_LONG else 30,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# Half of them as the body is: what is refused for its envelope tests nothing of its content.
_ENCODINGS = ("", "", "", "identity", "gzip", "gzip", "br", "gzip, gzip", "deflate", "\xff")
_TYPES = ("", "text/plain", "application/json; charset=utf-16", "multipart/form-data; boundary=x", "APPLICATION/JSON")


@pytest.mark.parametrize("form", Form)
@pytest.mark.parametrize("signal", Signal)
@pytest.mark.parametrize("prefix", ["", "/ingest/otlp"])
def test_no_export_is_answered_with_a_5xx(client: Client, prefix: str, signal: Signal, form: Form) -> None:
    team = make_team("Harbour", owner="olga")
    olga = User.objects.get(username="olga")
    key = {"Authorization": f"Bearer {make_key(team, olga, Scope.INGEST)[1]}"}
    client.force_login(olga)

    def post(path: str, body: bytes, kind: str, **more: str) -> int:
        return client.generic("POST", path, body, kind, headers=key | more).status_code

    def attack(body: bytes, kind: str, encoding: str) -> None:
        sent = gzip.compress(body) if encoding == "gzip" else body
        more = {"Content-Encoding": encoding} if encoding else {}
        with transaction.atomic():
            for _ in range(2):  # the second time it is known already
                assert post(f"{prefix}/v1/{signal}", sent, kind, **more) < 500, tell_apart(body)
            connection.check_constraints()
            for stored in AgentSession.objects.all():
                assert client.get(f"/sessions/{stored.pk}/").status_code == 200, tell_apart(body)
            assert client.get("/api/v1/sessions").status_code == 200
            healthy = json.dumps(logs(call("req_healthy", 0, session="healthy"))).encode()
            assert post("/v1/logs", healthy, "application/json") == 200
            assert AgentSession.objects.get(external_id="healthy").call_count == 1
            transaction.set_rollback(True)

    @SETTINGS
    @given(
        export=draw_export(signal, form),
        kind=st.sampled_from((form.value,) * 12 + _TYPES),
        encoding=st.sampled_from(_ENCODINGS),
    )
    def draw(export: Json, kind: str, encoding: str) -> None:
        body = to_protobuf(export) if form is Form.PROTOBUF else json.dumps(export).encode()
        attack(body, kind, encoding)

    draw()


def test_drawn_exports_are_kept_for_the_most_part(client: Client) -> None:
    """What is refused or dropped as a whole would prove nothing."""
    team = make_team("Harbour", owner="olga")
    key = {"Authorization": f"Bearer {make_key(team, User.objects.get(username='olga'), Scope.INGEST)[1]}"}
    kept: list[bool] = []

    @SETTINGS
    @given(draw_export(Signal.LOGS, Form.PROTOBUF))
    def draw(export: Json) -> None:
        with transaction.atomic():
            client.post("/v1/logs", to_protobuf(export), content_type=Form.PROTOBUF.value, headers=key)
            kept.append(AgentSession.objects.exists())
            transaction.set_rollback(True)

    draw()
    assert sum(kept) * 2 > len(kept)
