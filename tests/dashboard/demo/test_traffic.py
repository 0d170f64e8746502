"""The demo's proxied calls really pass the proxy: forwarder, HTTP, frames; only then are they set back."""

import time
from datetime import timedelta

import pytest
from django.utils import timezone

from dashboard.demo import making
from dashboard.demo.codebase import BOOKING
from dashboard.demo.fake_api import FakeApi
from dashboard.demo.fleet import FLEET
from dashboard.demo.ordering import order_demo
from dashboard.demo.traffic import open_traffic, set_back
from dashboard.front_door import Receive, Scope, Send
from dashboard.models import AgentSession, ApiCall
from dashboard.proxy.callers import Caller
from dashboard.proxy.forwarder import Forwarder
from dashboard.proxy.wire import Ending
from tests.builders import make_team, make_user

BODY = b'{"model":"claude-sonnet-5-5","messages":[{"role":"user","content":"hi"}],"stream":true}'
HEADERS = {"x-claude-code-session-id": "s1", "authorization": "Bearer sk-hidden"}


def test_call_passes_the_forwarder_and_comes_back_whole() -> None:
    api, before = FakeApi("one", BOOKING), time.time()
    with open_traffic(Caller(7, 8, None)) as traffic:
        answers = [traffic.post(api, BODY, HEADERS) for _ in range(2)]
        first, second = traffic.take_exchanges()
        assert traffic.take_exchanges() == []
    assert answers[0].startswith(b"event: message_start")
    assert (first.response_body, second.response_body) == tuple(answers)
    assert (first.request_body, first.status, first.ending) == (BODY, 200, Ending.WHOLE)
    assert (first.team_pk, first.owner_pk, first.key_pk) == (7, 8, None)
    assert first.request_headers == {"x-claude-code-session-id": "s1"}  # credentials stay behind, as always
    assert first.response_headers["request-id"] != second.response_headers["request-id"]
    assert before <= first.started_at <= time.time()
    past = set_back(first, at=1_000.0, seconds=4.0, name="msg_1")
    assert (past.id, past.started_at, past.duration_seconds, past.first_byte_seconds) == ("msg_1", 1_000.0, 4.0, 1.0)
    assert past.response_body == first.response_body


@pytest.mark.django_db
def test_every_proxied_call_of_the_demo_passes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[str] = []
    take = Forwarder.__call__

    async def count(self: Forwarder, scope: Scope, receive: Receive, send: Send) -> None:
        passed.append(scope["path"])
        await take(self, scope, receive, send)

    monkeypatch.setattr(Forwarder, "__call__", count)
    monkeypatch.setattr(making, "FLEET", [planned for planned in FLEET if planned.name == "seat-map"])
    make_team("Real", owner="olga")
    now = timezone.now()
    order_demo(make_user("olga"), now=now)
    making.fill_demo(now=now)
    session = AgentSession.objects.get()
    assert len(passed) == ApiCall.objects.filter(session=session).count() > 10
    assert set(passed) == {"/proxy/v1/messages"}
    assert timedelta(hours=4) < now - session.last_at < timedelta(hours=5)
