"""What a session can be taken away as: its transcript byte for byte, its numbers as JSON."""

import json
from datetime import timedelta

import pytest
from asgiref.sync import async_to_sync
from django.http import StreamingHttpResponse
from django.test import AsyncClient, Client
from django.urls import reverse

from dashboard.models import AgentSession, Membership, User
from tests.dashboard.retention.talks import NOW, WORD, furnish, make_origin, make_talk

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session() -> AgentSession:
    return furnish(make_origin(), make_talk(at=NOW - timedelta(days=1)))


@async_to_sync
async def _take(person: User, address: str) -> tuple[int, bytes, str]:
    """As a web process serves it: asynchronously, piece by piece."""
    client = AsyncClient()
    await client.aforce_login(person)
    response = await client.get(address)
    assert isinstance(response, StreamingHttpResponse)
    data = b"".join([part async for part in aiter(response)])
    return response.status_code, data, response.headers.get("Content-Disposition", "")


@pytest.mark.parametrize("address", ["/sessions/{}/download/transcript/", "/api/v1/sessions/{}/transcript"])
def test_transcript_is_what_was_stored_byte_for_byte(session: AgentSession, address: str) -> None:
    olga = User.objects.get(username="olga")
    Membership.objects.filter(user=olga).update(content_grant=True)
    status, data, name = _take(olga, address.format(session.pk))
    assert (status, data) == (200, make_talk(at=NOW - timedelta(days=1)).data)
    assert name == f'attachment; filename="{session.external_id}.jsonl"'


@pytest.mark.parametrize("address", ["/sessions/{}/download/numbers/", "/api/v1/sessions/{}/numbers"])
def test_numbers_hold_no_word(session: AgentSession, address: str) -> None:
    status, data, _ = _take(User.objects.get(username="mia"), address.format(session.pk))
    assert status == 200
    assert WORD.encode() not in data
    told = json.loads(data)
    assert told["session"]["external_id"] == session.external_id
    assert [len(told[name]) for name in ("calls", "compactions", "threads", "runs")] == [2, 1, 2, 1]
    assert told["calls"][0]["output_tokens"] == 50


def test_transcript_is_for_those_who_read_content(session: AgentSession, client: Client) -> None:
    client.force_login(User.objects.get(username="mia"))
    address = reverse("download_session", args=[session.pk, "transcript"])
    assert client.get(address).status_code == 403
    Membership.objects.update(content_grant=True)
    assert client.get(reverse("download_session", args=[session.pk, "else"])).status_code == 404
    AgentSession.objects.update(has_content=False)
    assert client.get(address).status_code == 404
