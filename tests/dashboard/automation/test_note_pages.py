"""The notes of a session on its page and in the API: who reads, who edits, who has them taken, and what is refused."""

import re

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.agents.checks import check_session
from dashboard.jobs.perform import perform_due
from dashboard.models import AgentSession, Job, Membership, NotesExtraction, SessionNote, Team
from dashboard.runs.session_notes import has_notes_of_context
from tests.builders import make_team
from tests.dashboard.automation.test_crossings import FULL, LiveTalk, make_storing_team
from tests.visitors import sign_in

pytestmark = pytest.mark.django_db

TEXT = "# Current State\n_Now._\nBasin 2 is drawn.\n\n# Worklog\n"


@pytest.fixture
def team() -> Team:
    make_team("Marina", owner="charlie")
    return make_storing_team("Harbour")


@pytest.fixture
def talk() -> LiveTalk:
    return LiveTalk().grow(20_000)


@pytest.fixture
def session(team: Team, talk: LiveTalk) -> AgentSession:
    return talk.send(team)


def note(session: AgentSession, number: int = 1, text: str = TEXT, **columns: object) -> SessionNote:
    values: dict[str, object] = {"writer": "extractive", "context_tokens": 9_000, **columns}
    return SessionNote.objects.create(team=session.team, session=session, number=number, text=text, **values)


def page_of(client: Client, session: AgentSession, query: str = "") -> str:
    answer = client.get(f"/sessions/{session.pk}/notes/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def test_page_shows_sections_versions_and_what_changed(session: AgentSession) -> None:
    client = sign_in("alice")
    assert "No notes for this session yet." in page_of(client, session)
    note(session)
    columns = {"writer": "person", "edited_by_name": "mia", "last_entry_uuid": "u-2"}
    note(session, 2, TEXT.replace("Basin 2", "Basin 3"), **columns)
    page = page_of(client, session)
    assert f'href="/sessions/{session.pk}/transcript/?entry=u-2#entry-u-2"' in page
    assert "Basin 3 is drawn." in page
    assert 'Worklog <span class="note">empty' in page
    assert "edited by mia" in page
    assert "<del>2</del>" in page
    assert "<ins>3</ins>" in page
    assert f'action="/sessions/{session.pk}/notes/edit/"' in page
    old = page_of(client, session, "?version=1")
    assert "This is not the newest version." in old
    assert "notes/edit/" not in old


def test_words_of_notes_are_kept_from_those_without_the_grant(session: AgentSession) -> None:
    note(session)
    note(session, 2, TEXT.replace("Basin 2", "Basin 3"))
    vera = sign_in("vera")
    page = page_of(vera, session)
    assert "The text of the notes is hidden because this is another person's session." in page
    assert "Basin" not in page.split('id="tab-content"')[1]
    assert "extracted without a model" in page
    assert "notes/take/" not in page
    told = vera.get(f"/api/v1/sessions/{session.pk}/notes").json()
    assert (told["number"], told["text"], len(told["versions"])) == (2, None, 2)
    Membership.objects.filter(user__username="vera").update(content_grant=True)
    page = page_of(sign_in("vera"), session)
    assert "Basin 3 is drawn." in page
    assert "notes/edit/" not in page  # she reads, and runs nothing
    for url in (f"/sessions/{session.pk}/notes/", f"/api/v1/sessions/{session.pk}/notes"):
        assert sign_in("charlie").get(url).status_code == 404


def test_edit_makes_a_version_and_overwrites_nothing_newer(session: AgentSession) -> None:
    note(session, last_entry_uuid="u9")
    client, url = sign_in("alice"), f"/sessions/{session.pk}/notes/edit/"
    mine = TEXT.replace("drawn", "redrawn")
    answer = client.post(url, {"text": mine, "base_number": "1"})
    assert answer.status_code == 302
    made = SessionNote.objects.get(number=2)
    assert (made.text, made.writer, made.edited_by_name) == (mine.strip(), "person", "alice")
    assert (made.last_entry_uuid, made.context_tokens) == ("u9", 9_000)

    late = client.post(url, {"text": TEXT.replace("drawn", "erased"), "base_number": "1"})
    assert late.status_code == 409
    page = late.content.decode()
    assert "alice saved version 2 in the meantime." in page
    assert "Basin 2 is erased." in page  # the words stay in the form
    assert SessionNote.objects.count() == 2


@pytest.mark.parametrize(
    ("text", "code"),
    [("  \n", "empty_notes"), ("# A\n" + "x " * 30_000, "notes_too_long"), (TEXT.strip(), "no_change")],
)
def test_edit_is_refused_with_a_code(session: AgentSession, text: str, code: str) -> None:
    note(session, text=TEXT.strip())
    url = f"/api/v1/sessions/{session.pk}/notes"
    answer = sign_in("alice").put(url, {"text": text, "base_number": 1}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, code)


def test_secret_in_an_edit_is_marked(session: AgentSession) -> None:
    note(session)
    secret = "sk-ant-api03-" + "Q7" * 46 + "AA"
    url = f"/api/v1/sessions/{session.pk}/notes"
    answer = sign_in("alice").put(url, {"text": f"# A\n{secret} opens it."}, content_type="application/json")
    assert answer.status_code == 200
    assert "opens it." in answer.json()["text"]
    assert secret not in SessionNote.objects.get(number=2).text


@pytest.mark.django_db(transaction=True)
def test_notes_are_taken_when_asked_though_the_team_takes_none(session: AgentSession, talk: LiveTalk) -> None:
    client, url = sign_in("alice"), f"/api/v1/sessions/{session.pk}/notes"
    told = client.post(url)
    assert (told.status_code, told.json()["is_under_way"]) == (202, True)
    again = client.post(url)
    assert (again.status_code, again.json()["code"]) == (409, "extraction_under_way")
    perform_due()
    taken = client.get(url).json()
    assert (taken["number"], taken["is_under_way"]) == (1, False)
    assert "never touch the lighthouse" in taken["text"]
    assert taken["last_entry_uuid"] == talk.parent
    again = client.post(url)
    assert (again.status_code, again.json()["code"]) == (409, "nothing_new")
    page = client.post(f"/sessions/{session.pk}/notes/take/", follow=True).content.decode()
    assert "Nothing new since version 1" in page


def test_last_failure_is_told(session: AgentSession) -> None:
    job = Job.objects.create(
        kind="take_notes", key="one", state="done", finished_at=timezone.now(), result={"refusal": "No key is set."}
    )
    NotesExtraction.objects.create(session=session, job=job)
    page = page_of(sign_in("alice"), session)
    assert "Taking notes failed" in page
    assert "No key is set." in page


def test_form_offers_the_notes_where_there_are_some(session: AgentSession) -> None:
    client, url = sign_in("alice"), f"/sessions/{session.pk}/compact/"
    assert 'value="notes"' not in client.get(url).content.decode()
    note(session)
    chosen = re.compile(r'<input type="radio" name="kind" value="notes"[^>]* checked>')
    assert not chosen.search(client.get(url).content.decode())
    assert chosen.search(client.get(f"{url}?kind=notes").content.decode())


def test_check_advises_notes_that_cover_what_the_model_sees(team: Team) -> None:
    now, talk = timezone.now(), LiveTalk("full")
    session = talk.grow(20_000).grow(FULL).send(team)
    assert check_session(session, now=now).advice.action == "full"
    row = note(session, last_entry_uuid=talk.parent)
    assert check_session(session, now=now).advice.action == "session-memory"
    for columns in ({"last_entry_uuid": "gone"}, {"text": "# Current State\n_Now._"}):
        SessionNote.objects.filter(pk=row.pk).update(last_entry_uuid=talk.parent, text=TEXT)
        SessionNote.objects.filter(pk=row.pk).update(**columns)
        assert not has_notes_of_context(session, now=now)
