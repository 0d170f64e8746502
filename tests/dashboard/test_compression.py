"""Compression of pages: what leaves compressed, what must not, and that headers stay as they are."""

import gzip
from http import HTTPStatus

import pytest
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.test import Client, RequestFactory

from dashboard.middleware import CONTENT_SECURITY_POLICY, LEAST_COMPRESSED_BYTES, PageCompressionMiddleware
from dashboard.models import AgentSession, Scope
from tests.builders import make_key, make_session, make_team, make_user
from tests.session_builders import make_calls
from tests.visitors import sign_in

pytestmark = pytest.mark.django_db
PAGE = "<p>A page.</p>" * LEAST_COMPRESSED_BYTES


@pytest.fixture
def session() -> AgentSession:
    session = make_session(make_team("Harbour", owner="olga"), "one", call_count=200)
    make_calls(session, 200)
    return session


def get(client: Client, url: str, **headers: str) -> HttpResponse:
    answer = client.get(url, headers={"accept-encoding": "gzip, deflate, br, zstd", **headers})
    assert answer.status_code == HTTPStatus.OK
    assert isinstance(answer, HttpResponse)
    return answer


@pytest.mark.parametrize("path", ["/", "/sessions/", "/sessions/{pk}/", "/sessions/{pk}/settings/", "/glossary/"])
def test_pages_leave_compressed_with_all_their_headers(session: AgentSession, path: str) -> None:
    client, url = sign_in("olga"), path.format(pk=session.pk)
    plain = client.get(url)
    assert "Content-Encoding" not in plain
    packed = get(client, url)
    assert packed["Content-Encoding"] == "gzip"
    assert int(packed["Content-Length"]) == len(packed.content) < len(plain.content) / 2
    # The tokens of forms differ from answer to answer.
    assert len(gzip.decompress(packed.content)) == pytest.approx(len(plain.content), rel=0.01)
    assert {"Accept-Encoding", "Cookie"} <= set(packed["Vary"].split(", "))
    assert packed["Content-Security-Policy"] == CONTENT_SECURITY_POLICY
    assert packed["Cache-Control"] == plain["Cache-Control"]
    assert packed["Content-Type"] == plain["Content-Type"]


def test_parts_that_scripts_fetch_are_compressed_too(session: AgentSession) -> None:
    client = sign_in("olga")
    for target in ("calls-table", "timeline-figure"):
        part = get(client, f"/sessions/{session.pk}/", **{"hx-request": "true", "hx-target": target})
        assert part["Content-Encoding"] == "gzip", target
        assert {"HX-Request", "HX-Target", "Accept-Encoding"} <= set(part["Vary"].split(", "))


def test_what_programs_read_and_what_is_saved_leaves_as_it_is(session: AgentSession) -> None:
    client = sign_in("olga")
    _, key = make_key(session.team, make_user("olga"), Scope.READ)
    calls = f"/api/v1/sessions/{session.pk}/calls"
    answers: list[HttpResponseBase] = [
        get(client, calls),
        get(Client(), calls, authorization=f"Bearer {key}"),
        client.get("/sessions/?export=csv", headers={"accept-encoding": "gzip"}),
        client.get("/sessions/?export=json", headers={"accept-encoding": "gzip"}),
        client.get(f"/sessions/{session.pk}/?export=csv&part=calls", headers={"accept-encoding": "gzip"}),
        client.get(f"/sessions/{session.pk}/download/numbers/", headers={"accept-encoding": "gzip"}),
        client.get("/live/stream?since=harbour:0", headers={"accept-encoding": "gzip"}),
    ]
    assert [answer.status_code for answer in answers] == [HTTPStatus.OK] * len(answers)
    assert [answer["Content-Type"] for answer in answers if "Content-Encoding" in answer] == []


def answer(content: str, content_type: str = "text/html; charset=utf-8") -> HttpResponse:
    def respond(request: HttpRequest) -> HttpResponse:
        return HttpResponse(content, content_type=content_type)

    request = RequestFactory().get("/", headers={"accept-encoding": "gzip"})
    compressed = PageCompressionMiddleware(respond)(request)
    assert isinstance(compressed, HttpResponse)
    return compressed


def test_small_answers_and_other_types_are_not_compressed() -> None:
    assert "Content-Encoding" in answer(PAGE)
    assert "Content-Encoding" not in answer("x" * (LEAST_COMPRESSED_BYTES - 1))
    for other in ("text/csv", "application/json", "application/x-ndjson", "text/plain", "text/event-stream"):
        assert "Content-Encoding" not in answer(PAGE, other), other


def test_length_of_a_compressed_page_varies_by_chance() -> None:
    """So that it does not tell whether a guess at a secret of the page was right (BREACH)."""
    assert len({len(answer(PAGE).content) for _ in range(30)}) > 5


def test_weak_etag_and_no_encoding_for_who_does_not_ask(session: AgentSession) -> None:
    def respond(request: HttpRequest) -> HttpResponse:
        return HttpResponse(PAGE, headers={"ETag": '"abc"'})

    tags = {}
    for coding in ("gzip", "br"):
        packed = PageCompressionMiddleware(respond)(RequestFactory().get("/", headers={"accept-encoding": coding}))
        assert isinstance(packed, HttpResponse)
        tags[coding] = packed["ETag"]
    assert tags == {"gzip": 'W/"abc"', "br": '"abc"'}
    head = sign_in("olga").head(f"/sessions/{session.pk}/", headers={"accept-encoding": "gzip"})
    assert (head.status_code, head["Content-Encoding"]) == (HTTPStatus.OK, "gzip")
