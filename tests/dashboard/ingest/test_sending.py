"""Transcripts over HTTP: by a program with a key, and from the browser's form."""

import gzip
import json
import sys
from random import Random

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection
from django.test import Client
from pytest_django import Settings

from dashboard.ingest.bodies import TRANSCRIPT_LINES
from dashboard.models import AgentSession, ApiCall, EntrySegment, Scope, Team, TeamPolicy, User
from tests.builders import make_key, make_team
from tests.dashboard.ingest.conversation import make_agent, make_conversation

pytestmark = pytest.mark.django_db
URL = "/api/v1/ingest/transcripts"
NDJSON = "application/x-ndjson"


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="alice", member="mia")


@pytest.fixture
def headers(team: Team) -> dict[str, str]:
    _, text = make_key(team, User.objects.get(username="mia"), Scope.INGEST)
    return {"Authorization": f"Bearer {text}"}


def test_program_sends_a_transcript_and_learns_what_became_of_it(client: Client, headers: dict[str, str]) -> None:
    talk = make_conversation()
    url = f"{URL}?session={talk.session_id}&name=harbour.jsonl"
    answer = client.post(url, talk.data, content_type=NDJSON, headers=headers)
    told = answer.json()
    assert answer.status_code == 200
    assert (told["lines"], told["new_lines"], told["problem_count"]) == (len(talk.lines), len(talk.lines), 1)
    assert told["problems"][0]["line_number"] == 1 + talk.lines.index(b'{"type":"assistant","message":{"id":"cut\n')
    (session,) = told["sessions"]
    assert (session["session"], session["is_new"], session["new_calls"], session["new_breaks"]) == (
        talk.session_id, True, 5, 1,
    )  # fmt: skip
    assert AgentSession.objects.get().developer == "mia"
    again = client.post(
        url, gzip.compress(talk.data), content_type=NDJSON, headers=headers | {"Content-Encoding": "gzip"}
    )
    assert again.json()["new_lines"] == 0


def test_sub_agent_lines_join_their_session(client: Client, headers: dict[str, str]) -> None:
    talk, agent = make_conversation(), make_agent()
    for each in (agent, talk):
        name = (
            f"{each.session_id}/subagents/agent-{each.agent_id}.jsonl" if each.agent_id else f"{each.session_id}.jsonl"
        )
        assert client.post(f"{URL}?name={name}", each.data, content_type=NDJSON, headers=headers).status_code == 200
    assert list(AgentSession.objects.get().threads.order_by("agent_id").values_list("agent_id", flat=True)) == [
        "",
        "a1b2c3",
    ]


@pytest.mark.parametrize(
    ("body", "content_type", "extra", "status"),
    [
        (b"", NDJSON, {}, 400),
        (b"\n \n", NDJSON, {}, 400),
        (b"<html>", "text/html", {}, 415),
        (b"x", NDJSON, {"Content-Encoding": "br"}, 415),
        (b"not gzip", NDJSON, {"Content-Encoding": "gzip"}, 400),
        (b"plain words\nmore words\n", NDJSON, {}, 422),
        (b'{"type":"summary","summary":"of nobody"}\n', NDJSON, {}, 422),
    ],
)
def test_bad_bodies_get_a_sentence_and_keep_nothing(
    client: Client, headers: dict[str, str], body: bytes, content_type: str, extra: dict[str, str], status: int
) -> None:
    answer = client.post(URL, body, content_type=content_type, headers=headers | extra)
    assert answer.status_code == status
    assert answer.json()["detail"].endswith(".")
    assert not ApiCall.objects.exists()


def test_far_too_many_lines_are_refused_and_none_is_kept(client: Client, team: Team, headers: dict[str, str]) -> None:
    client.force_login(User.objects.get(username="mia"))
    talk = make_conversation()
    lines = talk.data + b"\n" * TRANSCRIPT_LINES
    sent = client.post(f"{URL}?session=s", lines, content_type=NDJSON, headers=headers)
    form = {"file": SimpleUploadedFile("s.jsonl", lines), "name": "s.jsonl", "team": team.slug}
    part = client.post("/upload/part/", form)
    sentence = "The body has more than 100,000 lines. Split the body at line ends and send several requests."
    assert [(answer.status_code, answer.json()["detail"]) for answer in (sent, part)] == [(413, sentence)] * 2
    assert not AgentSession.objects.exists()


def test_person_of_two_teams_names_one(client: Client, team: Team) -> None:
    mia = User.objects.get(username="mia")
    other = make_team("Quay", member="mia")
    client.force_login(mia)
    talk = make_conversation()
    line = client.post(URL, talk.data, content_type=NDJSON)
    assert (line.status_code, line.json()["detail"]) == (422, "team: required, because you are in several teams.")
    assert client.post(f"{URL}?team=quay", talk.data, content_type=NDJSON).status_code == 200
    assert AgentSession.objects.get().team == other


def test_full_disk_is_told_as_503_and_keeps_nothing_half(
    client: Client, team: Team, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    if connection.vendor != "sqlite":
        monkeypatch.setattr("dashboard.ingest.record.append_lines", _no_room)
    else:
        _limit_pages(2)
    talk = make_conversation()
    for seed in range(1 + _count_free_bytes() // 500_000):  # more than what earlier tests left free inside the file
        talk.ask(Random(seed).randbytes(1_500_000).hex())
    answer = client.post(f"{URL}?session={talk.session_id}", talk.data, content_type=NDJSON, headers=headers)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    if connection.vendor == "sqlite":
        _limit_pages(1_000_000)
    else:
        monkeypatch.undo()
    assert not AgentSession.objects.exists()
    assert not EntrySegment.objects.exists()
    assert (
        client.post(f"{URL}?session={talk.session_id}", talk.data, content_type=NDJSON, headers=headers).status_code
        == 200
    )
    assert AgentSession.objects.get().call_count == 5


def test_part_that_cannot_be_kept_says_when_to_send_it_again(
    client: Client, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.force_login(User.objects.get(username="mia"))
    monkeypatch.setattr("dashboard.views.upload.take_in_upload", _no_room)
    part = {"file": SimpleUploadedFile("part", make_conversation().data), "name": "x.jsonl", "team": team.slug}
    answer = client.post("/upload/part/", part)
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    assert answer.json()["detail"].endswith("upload the file again.")


def _no_room(*_: object) -> None:
    raise OperationalError("could not extend file: No space left on device")


def _count_free_bytes() -> int:
    if connection.vendor != "sqlite":
        return 0
    with connection.cursor() as cursor:
        free, size = (cursor.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_size"))
    return int(free * size)


def _limit_pages(more: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA page_count")
        cursor.execute(f"PRAGMA max_page_count={cursor.fetchone()[0] + more}")


def test_form_takes_many_files_and_tells_of_each(client: Client, team: Team) -> None:
    client.force_login(User.objects.get(username="mia"))
    talk = make_conversation()
    files = [
        SimpleUploadedFile(f"{talk.session_id}.jsonl", talk.data),
        SimpleUploadedFile("notes.jsonl", b"plain words\n"),
        SimpleUploadedFile("notes.txt", talk.data),
        SimpleUploadedFile("old.jsonl.gz", b"compressed"),
    ]
    page = client.post("/upload/", {"file": files, "team": team.slug})
    text = page.content.decode()
    assert page.status_code == 200
    assert "1 line could not be parsed" in text
    assert "The file is not a Claude Code transcript: no line could be parsed." in text
    assert "2 of 4 files, 1 not imported, 2 skipped" in text
    assert "Skipped: not a transcript (.jsonl file).</td>" in text
    assert "Skipped: compressed. Decompress it and upload the .jsonl file.</td>" in text
    assert AgentSession.objects.get().sources == ["upload"]


def test_part_of_a_file_is_numbered_from_where_it_begins(client: Client, team: Team) -> None:
    client.force_login(User.objects.get(username="mia"))
    part = {"file": SimpleUploadedFile("part", b'{"broken\n{"type":"user","sessionId":"s","uuid":"u"}\n'), "line": "41"}
    told = client.post("/upload/part/", part | {"name": "x.jsonl", "team": team.slug}).json()
    assert (told["lines"], told["problem_count"], told["problems"][0][0]) == (2, 1, 41)


def test_meta_file_names_its_sub_agent(client: Client, team: Team, settings: Settings) -> None:
    client.force_login(User.objects.get(username="mia"))
    agent = make_agent()
    place = f"projects/{agent.session_id}/subagents/agent-{agent.agent_id}"
    meta = json.dumps({"agentType": "Explore", "description": "Look at the tides"}).encode()
    for name, data in ((f"{place}.meta.json", meta), (f"{place}.jsonl", agent.data)):
        part = {"file": SimpleUploadedFile("part", data), "name": name, "team": team.slug}
        assert client.post("/upload/part/", part).status_code == 200
    thread = AgentSession.objects.get().threads.get(agent_id="a1b2c3")
    assert (thread.agent_type, thread.call_count, thread.description) == ("Explore", 1, "")


def _choose_files(count: int, *, size: int = 0) -> list[SimpleUploadedFile]:
    talk = make_conversation()
    padding = b" " * size
    return [SimpleUploadedFile(f"{number}.jsonl", talk.lines[0] + padding) for number in range(count)]


def test_form_without_scripts_takes_hundreds_of_files(client: Client, team: Team) -> None:
    client.force_login(User.objects.get(username="mia"))
    page = client.post("/upload/", {"file": _choose_files(120, size=30_000), "team": team.slug})  # 3.6 MB
    assert page.status_code == 200
    assert len(page.context["results"]) == 120
    assert all(each.refusal == "" for each in page.context["results"])


def test_files_over_the_number_of_one_upload_are_left_out(client: Client, team: Team) -> None:
    client.force_login(User.objects.get(username="mia"))
    page = client.post("/upload/", {"file": _choose_files(503), "team": team.slug})
    assert (page.status_code, page.context["left_out"]) == (200, 3)
    assert "3 more files were not uploaded" in page.content.decode()


def test_far_too_many_files_are_refused_with_a_reason(client: Client, team: Team) -> None:
    client.force_login(User.objects.get(username="mia"))
    page = client.post("/upload/", {"file": _choose_files(2001), "team": team.slug})
    assert page.status_code == 400
    assert "More than 2,000 files in one request" in page.content.decode()
    assert not AgentSession.objects.exists()


def test_many_small_files_of_a_form_open_no_temporary_files(client: Client, team: Team) -> None:
    client.force_login(User.objects.get(username="mia"))
    opened: list[str] = []
    is_looking = [True]

    def look(event: str, arguments: tuple[object, ...]) -> None:
        if is_looking[0] and event == "tempfile.mkstemp":
            opened.append(str(arguments))

    sys.addaudithook(look)  # it cannot be removed
    client.post("/upload/", {"file": _choose_files(100, size=30_000), "team": team.slug})
    is_looking[0] = False
    assert not opened
