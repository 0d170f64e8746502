"""Ways in: snippets for this very server, a key only when it is asked for, and whether something came."""

import re
import shlex
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from dashboard.client.client_wishes import find_program
from dashboard.environment import find_transcript_folders
from dashboard.live import room
from dashboard.models import ApiKey, AuditAction, AuditEvent, Membership, Team
from dashboard.own_commands import spell_command
from dashboard.pages.ways_in import INSTALL, NO_KEY, Way, list_ways
from tests.builders import make_session, make_team, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(settings: Settings) -> Team:
    room.forget()
    settings.LOCAL_MODE = False
    settings.PUBLIC_URL = "https://plimsoll.example"
    return make_team("Harbour", owner="olga", member="mia", viewer="vera")


def enter(name: str) -> Client:
    client = Client()
    client.force_login(make_user(name), backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_looking_makes_no_key(team: Team) -> None:
    client = enter("mia")
    for path in ("/connect/", "/"):
        page = client.get(path).content.decode()
        assert "plimsoll watch --server https://plimsoll.example" in page
        assert NO_KEY in page
    assert not ApiKey.objects.exists()


def test_key_is_made_once_asked_shown_once_and_written_down(team: Team) -> None:
    client = enter("mia")
    answer = client.post("/connect/")
    page = answer.content.decode()
    keys = set(re.findall(r"plk_[\w-]{20,}", page))
    assert len(keys) == 1
    assert NO_KEY not in page
    assert "no-store" in answer["Cache-Control"]
    made = ApiKey.objects.get()
    assert (made.owner, made.scopes) == (make_user("mia"), ["ingest", "proxy"])
    assert AuditEvent.objects.get().action == AuditAction.KEY_CREATED
    assert keys.pop() not in client.get("/connect/").content.decode()
    body = b'{"type":"user","uuid":"u1","sessionId":"s1","message":{"content":"hi"}}\n'
    text = re.findall(r"plk_[\w-]{20,}", page)[0]
    sent = Client().post(
        "/api/v1/ingest/transcripts",
        body,
        content_type="application/x-ndjson",
        headers={"authorization": f"Bearer {text}"},
    )
    assert sent.status_code == 200


def test_viewer_reads_what_ways_show_and_gets_no_key(team: Team) -> None:
    client = enter("vera")
    page = client.get("/connect/").content.decode()
    assert "Compare data sources" in page
    assert "Make a key" not in page
    assert client.post("/connect/").status_code == 403
    assert not ApiKey.objects.exists()


def test_every_way_says_when_something_came_by_it(team: Team) -> None:
    client = enter("mia")
    assert client.get("/connect/").content.decode().count(">waiting<") == 5
    make_session(make_team("Marina", owner="charlie"), "theirs", sources=["proxy"])
    make_session(team, "one", sources=["otlp", "push"])
    page = client.get("/live/ways/harbour").content.decode()
    received = re.findall(r'id="way-(\w+)"[^>]*><span class="badge lv-ok">received</span>\s*</span>', page)
    assert received == ["push", "otlp"]  # when is not said: it is known of the session alone
    assert enter("charlie").get("/live/ways/harbour").status_code == 404


def test_snippets_work_as_they_are_copied() -> None:
    """On one's own machine with the program that is there; elsewhere with what installs it first."""
    local = {way.name: way for way in list_ways("http://127.0.0.1:8000", "plk_x", is_local=True)}
    program = shlex.join(find_program())
    for name, command in (("follow", "import"), ("push", "watch"), ("hooks", "connect")):
        line = local[name].snippet.splitlines()[-1]
        assert f"{program} {command} " in line, name
        assert not local[name].install
        done = subprocess.run([*shlex.split(program), command, "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    remote = {way.name: way for way in list_ways("https://plimsoll.example", "plk_x", is_local=False)}
    for name, way in remote.items():
        assert ("plimsoll " in way.snippet) == bool(way.install) == (name in ("push", "hooks"))


def list_local_ways() -> dict[str, Way]:
    return {way.name: way for way in list_ways("http://127.0.0.1:8000", "plk_x", is_local=True)}


def test_history_goes_into_the_data_folder_of_this_server(tmp_path: Path, settings: Settings) -> None:
    """Copied into a new terminal, which knows nothing of this server, in a folder of its own."""
    home, settings.DATA = tmp_path / "home", tmp_path / "the server's data"
    talk = home / ".claude" / "projects" / "-web" / "s1.jsonl"
    talk.parent.mkdir(parents=True)
    talk.write_text('{"type":"user","uuid":"u1","sessionId":"s1","message":{"role":"user","content":"hi"}}\n')
    snippet = list_local_ways()["follow"].snippet
    done = subprocess.run(
        ["/bin/sh", "-c", snippet], cwd=home, env={"HOME": str(home)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with closing(sqlite3.connect(settings.DATA / "plimsoll.sqlite3")) as database:
        assert database.execute("SELECT external_id FROM dashboard_agentsession").fetchall() == [("s1",)]
    assert not (home / ".local").exists()


def test_command_names_what_a_new_terminal_does_not_know(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    program = shlex.join(find_program())
    monkeypatch.setenv("PLIMSOLL_PORT", "8125")
    ask = f"PLIMSOLL_DATA={settings.DATA} PLIMSOLL_PORT=8125 {program} signinlink"
    assert spell_command("signinlink", is_local=True, with_address=True) == ask
    monkeypatch.delenv("PLIMSOLL_DATA")
    assert spell_command("import", is_local=True) == f"{program} import"
    assert spell_command("import", is_local=False) == "plimsoll import"


def test_card_says_what_is_followed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.FOLLOW_ROOTS = tuple(find_transcript_folders())
    assert "it follows Claude Code transcripts." in list_local_ways()["follow"].words
    settings.FOLLOW_ROOTS = (Path("/srv/talks"),)
    assert "it follows transcripts in /srv/talks." in list_local_ways()["follow"].words
    settings.FOLLOW_ROOTS = ()
    words = list_local_ways()["follow"].words
    assert words.startswith("Following is off on this server")
    assert "No action needed" not in words
    monkeypatch.setenv("DATABASE_URL", "postgresql://ann:s3cret@db/plimsoll")
    assert "First set DATABASE_URL in the terminal" in list_local_ways()["follow"].words
    assert not any("s3cret" in way.words + way.snippet for way in list_local_ways().values())


def test_upload_page_promises_new_lines_only_where_they_come(team: Team, settings: Settings) -> None:
    settings.FOLLOW_ROOTS = ()
    assert "are imported automatically" not in enter("mia").get("/upload/").content.decode()
    settings.FOLLOW_ROOTS = (Path("/srv/talks"),)
    assert "are imported automatically" in enter("mia").get("/upload/").content.decode()


def test_server_tells_how_the_program_gets_on_a_laptop(team: Team) -> None:
    page = enter("mia").get("/connect/").content.decode()
    assert page.count(INSTALL) == 2
    assert "from a clone of Plimsoll on that machine" in page


def test_json_api_names_the_way_for_agents_without_transcripts(team: Team) -> None:
    page = enter("mia").get("/connect/").content.decode()
    assert page.count("/api/v1/ingest/items") == 3  # in its summary, beside its snippet, and in the table


def test_key_made_while_the_demo_is_looked_at_is_for_the_real_team(team: Team) -> None:
    client = enter("olga")
    client.post("/demo/")
    demo = Team.objects.filter(is_demo=True).order_by("name")[0]
    assert client.get("/").context["team"] == demo
    assert client.get("/connect/").context["team"] == team
    assert client.get("/upload/").context["team"] == team
    client.post("/connect/")
    assert ApiKey.objects.get().team == team


def test_demo_takes_no_keys(team: Team) -> None:
    client = enter("olga")
    client.post("/demo/")
    slug = Team.objects.filter(is_demo=True).order_by("name")[0].slug
    assert "Keys are disabled in the demo team" in client.get(f"/teams/{slug}/keys/").content.decode()
    asked = {"name": "laptop", "scopes": ["ingest"], "expires": "90"}
    refused = client.post(f"/teams/{slug}/keys/", asked)
    assert refused.status_code == 422
    assert "Keys are disabled in the demo team" in refused.content.decode()
    told = {"name": "laptop", "scopes": ["ingest"]}
    assert client.post(f"/api/v1/teams/{slug}/keys", told, content_type="application/json").status_code == 409
    Membership.objects.filter(team=team, user=make_user("olga")).delete()
    assert "Make a key" not in client.get("/connect/").content.decode()
    assert client.post("/connect/").status_code == 403
    assert not ApiKey.objects.exists()


def test_own_machine_follows_without_a_key() -> None:
    ways = {way.name: way for way in list_ways("http://127.0.0.1:8000", "", is_local=True)}
    assert not ways["follow"].needs_key
    assert NO_KEY not in ways["proxy"].snippet
    assert "follow" not in {way.name for way in list_ways("https://plimsoll.example", "", is_local=False)}


@pytest.mark.parametrize(("is_local", "recommended"), [(True, ["follow", "hooks"]), (False, ["push"])])
def test_one_source_is_recommended_and_the_rest_is_folded(
    team: Team, settings: Settings, recommended: list[str], *, is_local: bool
) -> None:
    settings.LOCAL_MODE = is_local
    make_session(team, "one", sources=["otlp"])
    page = enter("mia").get("/connect/").content.decode()
    open_part, _, folded = page.split('class="card connect-recommended"')[1].partition('<ul class="connect-ways">')
    assert re.findall(r'id="way-title-(\w+)"', open_part) == recommended
    names = re.findall(r'<details id="way-fold-(\w+)">', folded)
    assert sorted(names + recommended) == sorted(
        way.name for way in list_ways("https://plimsoll.example", "", is_local=is_local)
    )
    summary = folded.split('id="way-fold-otlp"')[1].split("</summary>")[0]
    assert "received" in summary
    assert "waiting" in folded.split('id="way-fold-proxy"')[1].split("</summary>")[0]
