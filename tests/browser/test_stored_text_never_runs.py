"""Hostile texts in everything a session stores, every page opened: nothing runs, nothing is even blocked (S5)."""

from collections.abc import Iterator

import pytest
from django.urls import get_resolver, reverse
from playwright.sync_api import Page, expect

from dashboard import access
from dashboard.ingest.intake import Origin, take_in
from dashboard.ingest.observed import Piece
from dashboard.jobs.perform import perform_due
from dashboard.models import (
    AgentSession,
    ApiCall,
    CacheBreak,
    CompactionRun,
    EntrySegment,
    Job,
    ListName,
    NotesExtraction,
    ObservedCompaction,
    RunAttempt,
    RunRevision,
    SavedView,
    SessionNote,
    Team,
    Thread,
    User,
)
from dashboard.pages.ledger_filters import GroupName
from dashboard.pages.session_tabs import tab_url
from dashboard.runs.choices import RunChoices
from dashboard.runs.start import start_run
from dashboard.views.session import TABS
from tests.browser.charts import wait_for_charts
from tests.browser.conftest import PageErrors, SignIn
from tests.browser.keys import press
from tests.builders import make_team, make_user
from tests.dashboard.expectations import PAGES
from tests.hostile_texts import group_texts, list_short_texts
from tests.recorded_talk import RecordedTalk, record_talk, write_recorded_talk
from tests.session_rows import START

NOTE_EVERYTHING = """
window.hits = [];
window.hacked = () => window.hits.push("ran");
window.alert = window.confirm = window.prompt = () => window.hits.push("dialog");
document.addEventListener("securitypolicyviolation", (event) => window.hits.push(event.violatedDirective));
"""
# What a text that got out of its quotes leaves behind, even where the browser refused to run it.
LIST_ESCAPED = """() => [...document.querySelectorAll("*")].filter((element) =>
    [...element.attributes].some((attribute) =>
        attribute.name.startsWith("on")
        || attribute.name.startsWith("hx-on")
        || attribute.value === "/theme/" && attribute.name === "hx-get"
        || /^\\s*(javascript|data:text)/i.test(attribute.value) && /href|src|action|data/.test(attribute.name))
    || element.matches("iframe, object, embed, base, marquee, math, image, foreignObject, animate, video, audio")
    || element.tagName.toLowerCase() === "script" && !element.src && element.type !== "application/json"
).map((element) => element.outerHTML.slice(0, 200))"""
# Pages that show nothing of a session, or are no pages.
NOT_OPENED = {
    "GET sign_in", "GET sign_in_link", "GET invitation", "GET openapi", "GET health_live", "GET health_ready",
    "GET new_team", "GET password", "GET resume_download",  # the last is a file
    "GET palette_sessions", "GET palette_places",  # drawn by the palette, which is opened at the end
}  # fmt: skip


@pytest.fixture
def owner(live_url: str) -> User:
    make_team("Harbour", owner="alice")
    return make_user("alice")


def plant(team: Team, owner: User, text: str) -> AgentSession:
    """One session with this text in every line, column and note that takes one."""
    number = AgentSession.objects.count()

    def say(words: str) -> str:
        return f"{text} {words}"

    session = record_talk(team, owner, write_recorded_talk(f"planted-{number}", say=say))
    agent = RecordedTalk(f"planted-{number}", say=say, agent_id="a1")
    agent.ask(say("Look."))
    agent.reply(f"planted-{number}-agent-1", read=0, written=30_000)
    agent.wait(700)
    agent.reply(f"planted-{number}-agent-2", read=0, written=31_000)
    take_in(Origin(team, owner, "import"), Piece(agent.data, "agent", agent.session_id, "a1"))
    plant_columns(session, text, number)
    name = text.replace("\x00", "")[:60]
    for list_name in ListName:
        SavedView.objects.create(owner=owner, team=team, list_name=list_name, name=name, query="sort=risk")
    plant_runs(session, owner, text)
    return session


def plant_runs(session: AgentSession, owner: User, text: str) -> None:
    """Two of them, so that they can be compared, with this text in every word that people and models write."""
    text = text.replace("\x00", "")
    for words in ("first", "second"):
        choices = RunChoices(instructions=f"{text} {words}")
        start_run(access.person(owner), session, choices, source="page", now=START)
        perform_due()
    runs = CompactionRun.objects.filter(session=session)
    assert {run.state for run in runs} == {"done"}
    runs.update(started_by_name=text[:150], model=text[:200], fork_refusal=text[:300])
    for run in runs:
        told = run.revisions.get()
        RunRevision.objects.create(
            run=run,
            number=2,
            text=f"1. Pending Tasks:\n{text} {told.text}",
            analysis=text,
            missing_sections=[text],
            edited_by_name=text[:150],
            audit=told.audit,
        )
        RunAttempt.objects.create(run=run, number=1, path="plain", model=text[:200], failure_sentence=text[:500])


def plant_columns(session: AgentSession, text: str, number: int) -> None:
    """What no line of a transcript brings so far, or what a table would only cut or refuse."""
    text = text.replace("\x00", "")  # PostgreSQL takes none; what records a session leaves it out as well
    shorts = list(list_short_texts(20))
    short = shorts[number % len(shorts)]
    AgentSession.objects.filter(pk=session.pk).update(
        external_id=f"{number} {text}"[:200], developer=text[:150], forked_from=text[:200], title=text
    )
    for version in (1, 2):
        SessionNote.objects.create(
            team=session.team,
            session=session,
            number=version,
            text=f"# {text}\n{text}\n{version} {text}",
            last_entry_uuid=text[:200],
            writer="person",
            edited_by_name=text[:150],
        )
    failed = Job.objects.create(
        kind="take_notes", key=f"notes {session.pk}", state="done", finished_at=START, result={"refusal": text}
    )
    NotesExtraction.objects.create(session=session, job=failed)
    Thread.objects.filter(session=session).exclude(agent_id="").update(agent_type=text[:200], description=text)
    ApiCall.objects.filter(session=session).update(query_source=short, stop_reason=short, client_version=short)
    conflicts = {"conflicts": [text], "further": [["unexplained", "inferred", text]]}
    CacheBreak.objects.filter(session=session).update(detail=f"{text} {text}", model=text[:200], evidence=conflicts)
    ObservedCompaction.objects.filter(session=session).update(trigger=short, drift=short[:10], drift_sentence=text)
    ObservedCompaction.objects.create(
        team=session.team, session=session, entry_uuid=text[:200], kind="micro", trigger=short, at=START
    )


def list_urls(session: AgentSession) -> Iterator[str]:
    """All pages about one session."""
    yield from (tab_url(session, tab) for tab in TABS)
    for loss in session.breaks.all():
        yield reverse("cache_break", args=[loss.pk])
    for compaction in session.compactions.all():
        yield reverse("compaction", args=[compaction.pk])
    yield f"{reverse('compare')}?first={session.pk}"
    yield f"{reverse('compare')}?first={session.pk}&second={session.pk}"
    one, two = session.runs.order_by("id")
    yield reverse("new_run", args=[session.pk]) + f"?again={one.pk}"
    yield reverse("run", args=[one.pk])
    yield reverse("compare_runs", args=[one.pk, two.pk])
    yield from (f"{reverse('session', args=[session.pk])}?call={call.pk}" for call in session.calls.all()[:1])


def list_team_urls(team: Team) -> Iterator[str]:
    """All other pages that everybody's texts may come together on. A page with an argument that is not known here
    fails the test, so that nobody forgets it."""
    about_one = {
        "session",
        "session_tab",
        "cache_break",
        "compaction",
        "new_run",
        "run",
        "run_progress",
        "compare_runs",
        "download_session",  # a file
        "live_session",  # parts of a page that is opened
        "open_first_session",  # redirects to a page that is opened
        "open_first_break",
    }
    known = {"slug": team.slug}
    for row in PAGES:
        name = row.removeprefix("GET ")
        if row.startswith("GET ") and row not in NOT_OPENED and name not in about_one:
            (pattern,) = (each for each in get_resolver().url_patterns if getattr(each, "name", "") == name)
            yield reverse(name, kwargs={key: known[key] for key in pattern.pattern.converters})
    yield from (f"{reverse('ledger')}?by={name}" for name in GroupName)


def open_and_look(page: Page, url: str) -> None:
    answer = page.goto(url)
    assert answer is not None
    assert answer.status == 200, url
    if page.locator(".js").count():  # a part of a page alone has no scripts
        wait_for_charts(page)
    page.locator("details:not(.menu):not(.confirm)").evaluate_all("(all) => all.forEach((one) => { one.open = true; })")
    assert page.evaluate("window.hits") == [], url
    assert page.evaluate(LIST_ESCAPED) == [], url


def test_nothing_stored_runs_on_any_page(page: Page, owner: User, sign_in: SignIn, page_errors: PageErrors) -> None:
    page_errors.expected.append("favicon.ico")  # asked for beside answers that are no page
    team = owner.memberships.get().team
    sessions = [plant(team, owner, text) for text in group_texts()]
    assert EntrySegment.objects.exclude(content=None).count() >= len(sessions)
    sign_in(page, owner)
    page.add_init_script(NOTE_EVERYTHING)
    opened = 0
    for session in sessions:
        for url in list_urls(session):
            open_and_look(page, url)
            opened += 1
    for url in list_team_urls(team):
        open_and_look(page, url)
        opened += 1
    assert opened >= 10 * len(sessions)
    press(page, "Control+k")
    expect(page.locator("#palette [role=option]").nth(2)).to_be_attached()
    assert page.evaluate("window.hits") == []
    assert page.evaluate(LIST_ESCAPED) == []
    page.goto(reverse("session_tab", args=[sessions[0].pk, "compactions"]))
    assert "<script>hacked()</script>" in page.inner_text("body")  # it is shown, as text
