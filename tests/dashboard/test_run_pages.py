"""Pages of runs: who may what, choices with preview, progress, every end, revisions, two side by side, the breaker."""

import html
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from compaction.errors import SummaryRefused
from dashboard.jobs.claim import claim_next
from dashboard.jobs.perform import perform_due
from dashboard.models import (
    AgentSession,
    CompactionRun,
    Job,
    JobState,
    RunAttempt,
    RunKind,
    RunRevision,
    RunState,
    SummarizerName,
    Team,
    ThreadBreaker,
)
from dashboard.pages.run_comparison import Mark, mark_words
from dashboard.pages.run_progress import tell_progress
from dashboard.runs.choices import RunChoices
from dashboard.runs.start import start_run
from dashboard.words import format_retained
from tests.builders import make_user
from tests.dashboard.runs import scripted
from tests.dashboard.runs.scripted import Script, answer, write_summary
from tests.dashboard.runs.world import give_key, make_harbour, person, record_session, run_now, write_talk
from tests.session_rows import make_run
from tests.visitors import count_queries, read, sign_in

pytestmark = pytest.mark.django_db
WORDS = "never touch the lighthouse module"
HTMX = {"hx-request": "true"}
CLAUDE = RunChoices(summarizer=SummarizerName.CLAUDE)


@pytest.fixture(autouse=True)
def script(settings: Settings) -> Script:
    settings.PAID_SUMMARIZER = "tests.dashboard.runs.scripted.open_scripted"
    scripted.script = Script()
    return scripted.script


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def session(team: Team) -> AgentSession:
    """Mia's own."""
    return record_session(team, owner="mia")


def start(session: AgentSession, choices: RunChoices | None = None, *, by: str = "mia") -> CompactionRun:
    return start_run(person(by), session, choices or RunChoices(), source="page", now=timezone.now())


def post(client: Client, url: str, data: dict[str, str], *, status: int = 302, **headers: str) -> str:
    response = client.post(url, data, headers=headers)
    assert response.status_code == status, response.content.decode()[:2000]
    return response.content.decode()


def say(markup: str) -> str:
    """What a page says, without its markup."""
    text = re.sub(r"<(script|head)\b.*?</\1>|<[^>]*>", " ", markup, flags=re.DOTALL)
    return " ".join(html.unescape(text).split())


def new_url(session: AgentSession) -> str:
    return f"/sessions/{session.pk}/compact/"


def run_url(run: CompactionRun) -> str:
    return f"/runs/{run.pk}/"


def pick(markup: str, number: int) -> str:
    """The value of a message's radio button."""
    found = re.search(rf'value="([^"]+)" aria-label="Message {number},', markup)
    assert found
    return found[1]


# --- who -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "status"), [("mia", 200), ("anna", 200), ("alice", 200), ("vera", 403), ("charlie", 404)]
)
def test_compaction_is_for_the_owner_of_the_session_and_admins(session: AgentSession, name: str, status: int) -> None:
    client = sign_in(name)
    assert client.get(new_url(session)).status_code == status
    assert client.post(new_url(session), {"act": "preview", "kind": "full"}).status_code == status
    page = client.get(f"/sessions/{session.pk}/").content.decode()
    assert ('data-key="c"' in page) == (status == 200)


def test_member_cannot_compact_the_session_of_another(team: Team) -> None:
    session = record_session(team, write_talk("other"), owner="alice")
    assert sign_in("mia").get(new_url(session)).status_code == 403
    run = run_now(session)
    client = sign_in("mia")
    for path in ("cancel/", "revisions/"):
        assert client.post(f"{run_url(run)}{path}").status_code == 403
    assert "Run again" not in read(client, run_url(run))


def test_result_shows_words_only_to_those_who_may_read_them(session: AgentSession) -> None:
    run = run_now(session, RunChoices(instructions="Keep the basins."), by="mia")
    for name, reads in (("mia", True), ("vera", False), ("anna", False)):
        page = say(read(sign_in(name), run_url(run)))
        for words in (WORDS, "/home/ann/basin_3.py", "Keep the basins."):
            assert (words in page) == reads, (name, words)
        assert "freed" in page
        assert "Retained" in page
        assert ("because this is another person's session" in page) != reads
    assert sign_in("charlie").get(run_url(run)).status_code == 404
    assert sign_in("anna").post(f"{run_url(run)}revisions/", {"text": "mine"}).status_code == 403


def test_admin_without_the_grant_picks_by_structure(session: AgentSession) -> None:
    page = post(sign_in("anna"), new_url(session), {"act": "preview", "kind": "from", "agent_id": ""}, status=200)
    assert WORDS not in page
    assert "Turn 3" not in page
    assert "withheld" in page
    assert "tool result" in page
    assert "The prompt for the summary" not in page


# --- choices and preview ---------------------------------------------------------------------------------------------


def test_page_previews_the_usual_choice_and_names_the_client_command(session: AgentSession) -> None:
    words = say(read(sign_in("mia"), new_url(session)))
    assert "nothing leaves this machine" in words
    assert f"cd /home/ann/harbour && claude -p --resume {session.external_id} /compact" in words
    assert "No API key is set for this team. An admin can enter one." in words
    assert 'href="/teams/harbour/summarizer/"' in read(sign_in("anna"), new_url(session))
    for title in ("Full", "From a message on", "Up to a message", "Clear old tool results",
                  "Clear all but the last 5 tool results"):  # fmt: skip
        assert title in words


def test_instructions_are_quoted_in_the_client_command(session: AgentSession) -> None:
    typed = "keep $(rm -rf ~) and 'quotes'\nof two lines"
    data = {"act": "preview", "kind": "full", "agent_id": "", "instructions": typed}
    words = say(post(sign_in("mia"), new_url(session), data, status=200, **HTMX))
    assert """'/compact keep $(rm -rf ~) and '"'"'quotes'"'"' of two lines'""" in words


def test_fragment_holds_the_preview_and_brings_messages_once(session: AgentSession) -> None:
    client = sign_in("mia")
    data = {"act": "preview", "kind": "up_to", "agent_id": "", "listed": "-"}
    fragment = post(client, new_url(session), data, status=200, **HTMX)
    assert "<html" not in fragment
    assert 'id="pivots"' in fragment
    assert "Choose the message to compact from or up to." in fragment
    picked = {**data, "listed": "main", "pivot_uuid": pick(fragment, 9)}
    fragment = post(client, new_url(session), picked, status=200, **HTMX)
    assert 'id="pivots"' not in fragment
    assert "messages verbatim" in say(fragment)


def test_messages_are_paged_and_the_picked_one_is_kept(team: Team) -> None:
    session = record_session(team, write_talk("long", turns=12), owner="mia")
    client = sign_in("mia")
    data = {"act": "preview", "kind": "from", "agent_id": ""}
    page = post(client, new_url(session), data, status=200)
    assert "51 to 72 of 72" in say(page)
    chosen = pick(page, 60)
    earlier = post(client, new_url(session), {**data, "from": "1", "pivot_uuid": chosen}, status=200)
    assert "1 to 50 of 72" in say(earlier)
    assert "Picked: message 60" in say(earlier)
    assert re.search(rf'value="{chosen}" checked', earlier)
    fragment = post(client, new_url(session), {**data, "act": "messages", "from": "1"}, status=200, **HTMX)
    assert "What it would do" not in fragment
    assert "1 to 50 of 72" in say(fragment)


def test_paid_summary_is_previewed_with_its_cost_and_the_cap(team: Team, session: AgentSession) -> None:
    give_key(team)
    data = {"act": "preview", "kind": "full", "agent_id": "", "summarizer": "claude"}
    words = say(post(sign_in("mia"), new_url(session), data, status=200, **HTMX))
    assert "plain: a request of its own" in words
    assert "No whole request of this thread is stored" in words
    assert "Cache hit Miss At most" in words
    assert "has spent $0.00 , of $5.00 a day" in words.replace("$0.00,", "$0.00 ,")


def test_refusal_is_a_sentence_and_nothing_can_be_started(session: AgentSession) -> None:
    client = sign_in("mia")
    data = {"kind": "full", "agent_id": "", "summarizer": "claude"}
    page = post(client, new_url(session), {**data, "act": "preview"}, status=200)
    assert "No API key is configured for this team." in page
    assert re.search(r'id="start"[^>]* disabled', page)
    assert "No API key" in post(client, new_url(session), {**data, "act": "start"}, status=409)
    assert not CompactionRun.objects.exists()


def test_session_without_content_says_why(team: Team) -> None:
    session = record_session(team, write_talk("bare"), owner="mia")
    AgentSession.objects.filter(pk=session.pk).update(has_content=False)
    words = say(read(sign_in("mia"), new_url(session)))
    assert "The content of this session is not stored" in words
    assert "claude -p --resume" in words


def test_live_session_is_warned_about(session: AgentSession) -> None:
    AgentSession.objects.filter(pk=session.pk).update(last_at=timezone.now())
    assert "This session is at work right now." in read(sign_in("mia"), new_url(session))


def test_nothing_is_an_error_before_somebody_starts(session: AgentSession) -> None:
    client = sign_in("mia")
    AgentSession.objects.filter(pk=session.pk).update(has_content=False)
    form = read(client, new_url(session)).split('id="main"')[1]
    assert "is not stored" in form
    assert 'role="alert"' not in form
    assert "lv-blocking" not in form
    previewed = post(client, new_url(session), {"act": "preview", "kind": "from", "agent_id": ""}, status=200, **HTMX)
    assert 'role="alert"' not in previewed
    started = post(client, new_url(session), {"act": "start", "kind": "full", "agent_id": ""}, status=409)
    assert '<div class="notice lv-blocking" role="alert">' in started


@pytest.mark.parametrize(
    "data",
    [{"kind": "huge"}, {"kind": "full", "agent_id": "nobody"}, {"kind": "full", "instructions": "x" * 10_001}, {}],
)
def test_choices_that_make_no_sense_are_answered_with_a_page(session: AgentSession, data: dict[str, str]) -> None:
    page = post(sign_in("mia"), new_url(session), {"act": "start", **data}, status=422)
    assert "Complete the form to see a preview." in page
    assert not CompactionRun.objects.exists()


# --- start, progress, cancel -----------------------------------------------------------------------------------------


def test_run_is_started_watched_and_finished(session: AgentSession) -> None:
    client = sign_in("mia")
    post(client, new_url(session), {"act": "start", "kind": "full", "agent_id": "", "instructions": "Keep basins."})
    run = CompactionRun.objects.get()
    assert (run.source, run.started_by_name, run.instructions) == ("page", "mia", "Keep basins.")
    page = read(client, run_url(run))
    assert "Waiting for a worker" in page
    assert 'hx-trigger="every 1s"' in page
    assert f'href="/runs/{run.pk}/"' in read(client, f"/sessions/{session.pk}/")
    perform_due()
    ended = client.get(f"{run_url(run)}progress/", headers=HTMX)
    assert ended.headers["HX-Refresh"] == "true"
    assert client.get(f"{run_url(run)}progress/").status_code == 302
    words = say(read(client, run_url(run)))
    for told in (
        "Before and after",
        "Primary Request and Intent",
        "Restored attachments",
        "Message by message",
        "Took",
    ):
        assert told in words
    assert "nothing, no model was asked" in words
    tab = say(read(client, f"/sessions/{session.pk}/compactions/"))
    assert "By Plimsoll" in tab
    assert "freed" in tab
    assert "by Plimsoll" in say(read(client, "/"))


def test_second_start_is_told_of_the_first(session: AgentSession) -> None:
    run = start(session)
    page = post(sign_in("mia"), new_url(session), {"act": "start", "kind": "full", "agent_id": ""}, status=409)
    assert "is being compacted already" in page
    assert f'href="/runs/{run.pk}/"' in page


def test_stage_is_announced_only_when_it_changes(session: AgentSession) -> None:
    run = start(session)
    CompactionRun.objects.filter(pk=run.pk).update(state="running", stage="summarising", written_tokens=1234)
    client = sign_in("vera")
    fragment = read(client, f"{run_url(run)}progress/?stage=Waiting for a worker", **HTMX)
    assert 'id="run-voice"' in fragment
    assert "~1.2k tokens written so far" in fragment
    assert "run-voice" not in read(client, f"{run_url(run)}progress/?stage=Writing the summary", **HTMX)
    assert "Cancel" not in read(client, run_url(run))


@pytest.mark.parametrize(
    ("state", "stage", "current"),
    [
        ("queued", "queued", "Waiting for a worker"),
        ("running", "queued", "Reading the conversation"),
        ("running", "pre-hooks", "Reading the conversation"),
        ("running", "summarising", "Writing the summary"),
        ("running", "validating", "Checking the summary"),
        ("running", "post-hooks", "Bringing files, todos and plans back"),
        ("running", "a stage of a later version", "Reading the conversation"),
    ],
)
def test_every_stage_has_words(session: AgentSession, state: str, stage: str, current: str) -> None:
    now = timezone.now()
    run = CompactionRun(kind="full", state=state, stage=stage, created_at=now - timedelta(seconds=65), stage_at=now)
    progress = tell_progress(run, now=now)
    assert progress.current == current
    assert progress.elapsed_words == "1:05"
    assert ("No worker has taken it" in progress.note) == (state == "queued")


def test_waiting_run_is_cancelled_and_can_be_tried_again(session: AgentSession) -> None:
    run = start(session, RunChoices(instructions="Keep the basins."))
    client = sign_in("mia")
    post(client, f"{run_url(run)}cancel/", {})
    words = say(read(client, run_url(run)))
    assert "It was cancelled" in words
    assert "The session is as it was" in words
    again = read(client, f"{new_url(session)}?again={run.pk}")
    assert "Keep the basins." in again
    assert f'name="again" value="{run.pk}"' in again
    post(client, f"{run_url(run)}cancel/", {})
    assert "had ended already" in read(client, run_url(run))


def test_run_that_is_asked_to_stop_says_so(session: AgentSession) -> None:
    run = start(session)
    CompactionRun.objects.filter(pk=run.pk).update(state="running", stage="summarising")
    assert claim_next(worker="w", kinds=["compact"], now=timezone.now())
    client = sign_in("mia")
    post(client, f"{run_url(run)}cancel/", {})
    page = read(client, run_url(run))
    assert "It is asked to stop and ends at the next step." in page
    assert "Cancel</button>" not in page


# --- ends ------------------------------------------------------------------------------------------------------------


def test_failure_says_what_happened_what_was_kept_and_what_to_do(
    team: Team, session: AgentSession, script: Script
) -> None:
    give_key(team)
    script.steps = [SummaryRefused(), SummaryRefused()]
    run = run_now(session, CLAUDE, by="mia")
    assert run.state == RunState.FAILED
    words = say(read(sign_in("mia"), run_url(run)))
    for told in ("refused to summarise", "The session is as it was", "Choose another model", "Try again"):
        assert told in words
    assert "Try again" not in say(read(sign_in("vera"), run_url(run)))
    assert "refused to summarise" in read(sign_in("mia"), f"/sessions/{session.pk}/compactions/")


def test_paid_run_lists_its_requests(team: Team, session: AgentSession) -> None:
    give_key(team)
    run = run_now(session, CLAUDE, by="mia")
    RunAttempt.objects.create(
        run=run, number=90, path="fork", input_tokens=10, read_tokens=30, failure_code="overloaded"
    )
    words = say(read(sign_in("mia"), run_url(run)))
    assert "Requests to a model" in words
    assert "75%" in words
    assert "overloaded" in words
    assert "What the model thought before it wrote" in words


@pytest.mark.parametrize(
    ("origin", "words"),
    [("measured", "167.0k tokens measured"), ("counted", "counted"), ("estimate", "~167.0k tokens")],
)
def test_figures_tell_where_they_come_from(session: AgentSession, origin: str, words: str) -> None:
    run = make_run(session, before_tokens=167_000, before_origin=origin)
    assert words in say(read(sign_in("vera"), run_url(run)))


def test_micro_run_lists_what_it_cleared(session: AgentSession) -> None:
    run = run_now(session, RunChoices(kind=RunKind.MICRO_IDLE), by="mia")
    assert run.state == RunState.DONE
    words = say(read(sign_in("mia"), run_url(run)))
    assert "What was cleared" in words
    assert "/home/ann/basin_0.py" in words
    assert "Message by message" not in words
    assert "Edit the summary" not in words
    assert "/home/ann/basin_0.py" not in say(read(sign_in("vera"), run_url(run)))


def test_result_that_is_not_stored_any_more_says_so(session: AgentSession) -> None:
    run = run_now(session, by="mia")
    RunRevision.objects.all().delete()
    CompactionRun.objects.update(outcome=None, details=None)
    page = read(sign_in("mia"), run_url(run))
    assert page.count("is not stored.") >= 3
    assert "None" not in page.split('id="main"')[1].split("</main>")[0].replace("None yet", "")


def test_partial_run_tells_which_messages_stayed(session: AgentSession) -> None:
    client = sign_in("mia")
    listed = post(client, new_url(session), {"act": "preview", "kind": "up_to", "agent_id": ""}, status=200)
    run = run_now(session, RunChoices(kind=RunKind.UP_TO, pivot_uuid=pick(listed, 19)), by="mia")
    words = say(read(client, run_url(run)))
    assert re.search(r"6 kept \(", words)
    assert re.search(r"18 summarised \(", words)
    assert "up to a message" in words


# --- revisions -------------------------------------------------------------------------------------------------------


def test_edited_summary_is_a_new_revision_with_losses_of_its_own(session: AgentSession) -> None:
    run = run_now(session, by="mia")
    client = sign_in("mia")
    page = post(client, f"{run_url(run)}revisions/", {"text": "We drew a chart.", "base_number": "1"})
    assert page == ""
    words = say(read(client, run_url(run)))
    assert "edited by mia" in words
    assert "We drew a chart." in words
    assert "Not in this summary: Primary Request and Intent" in words
    first = read(client, f"{run_url(run)}?revision=1")
    assert "We drew a chart." not in say(first.split('id="edit"')[0])
    before, after = RunRevision.objects.order_by("number").values_list("retained_percent", flat=True)
    assert before is not None
    assert after is not None
    assert after < before
    assert format_retained(after) in words.split("Retained", 1)[1]


def test_second_of_two_who_save_is_told_and_keeps_the_words(session: AgentSession) -> None:
    run = run_now(session, by="mia")
    url = f"{run_url(run)}revisions/"
    post(sign_in("mia"), url, {"text": "First words.", "base_number": "1"})
    client = sign_in("mia")
    page = post(client, url, {"text": "Second <b>words</b>.", "base_number": "1"}, status=409)
    assert "mia saved revision 2 meanwhile." in page
    assert "Second &lt;b&gt;words&lt;/b&gt;." in page
    assert 'name="base_number" value="2"' in page
    assert RunRevision.objects.filter(run=run).count() == 2
    post(client, url, {"text": "Second words.", "base_number": "2"})
    assert RunRevision.objects.filter(run=run).count() == 3


def test_empty_summary_is_not_saved(session: AgentSession) -> None:
    run = run_now(session, by="mia")
    page = post(sign_in("mia"), f"{run_url(run)}revisions/", {"text": " ", "base_number": "1"}, status=409)
    assert "A summary without a word" in page


# --- compared --------------------------------------------------------------------------------------------------------


def test_two_runs_are_compared_word_by_word(team: Team, session: AgentSession, script: Script) -> None:
    give_key(team)
    script.steps = [answer(write_summary("The chart is blue.")), answer(write_summary("The chart is green."))]
    one, two = run_now(session, CLAUDE, by="mia"), run_now(session, CLAUDE, by="mia")
    page = read(sign_in("mia"), f"{run_url(one)}compare/{two.pk}/")
    assert "<del>blue</del>" in page
    assert "<ins>green</ins>" in page
    assert f'href="/runs/{two.pk}/compare/{one.pk}/"' in page
    assert "Compare" in read(sign_in("mia"), run_url(one))
    withheld = read(sign_in("vera"), f"{run_url(one)}compare/{two.pk}/")
    assert "blue" not in withheld
    assert "Retained" in withheld


def test_runs_of_two_kinds_are_not_ranked_by_what_they_retained(
    team: Team, session: AgentSession, script: Script
) -> None:
    give_key(team)
    script.steps = [answer(write_summary("The chart is blue.")), answer(write_summary(WORDS))]
    quoting = run_now(session, by="mia")
    written, other = run_now(session, CLAUDE, by="mia"), run_now(session, CLAUDE, by="mia")
    across = read(sign_in("mia"), f"{run_url(quoting)}compare/{written.pk}/")
    assert "cannot show which of these is better" in across
    for label in ("Retained", "Lost items"):
        assert "better" not in find_row(across, label)
    alike = read(sign_in("mia"), f"{run_url(written)}compare/{other.pk}/")
    assert "cannot show which of these is better" not in alike
    assert "better" in find_row(alike, "Lost items")


def find_row(page: str, label: str) -> str:
    return page.split(f'<th scope="row">{label}</th>', 1)[1].split("</tr>", 1)[0]


def test_only_finished_runs_of_one_session_are_compared(team: Team, session: AgentSession) -> None:
    one = run_now(session, by="mia")
    other = run_now(record_session(team, write_talk("other"), owner="mia"), by="mia")
    waiting = start(session)
    client = sign_in("mia")
    for second in (one, other, waiting):
        assert client.get(f"{run_url(one)}compare/{second.pk}/").status_code == 404


def test_words_are_marked_on_both_sides() -> None:
    left, right = mark_words("a red boat", "a blue boat")
    assert left == ((Mark.SAME, "a "), (Mark.OTHER, "red"), (Mark.SAME, " boat"))
    assert right == ((Mark.SAME, "a "), (Mark.OTHER, "blue"), (Mark.SAME, " boat"))
    assert mark_words("", "new") == ((), ((Mark.OTHER, "new"),))
    left, _ = mark_words("a red old boat", "a blue new boat")
    assert left == ((Mark.SAME, "a "), (Mark.OTHER, "red old"), (Mark.SAME, " boat"))


def test_long_texts_are_compared_by_lines_and_endless_ones_not_at_all() -> None:
    lines = [f"line {number} of the summary\n" for number in range(1000)]
    left, right = mark_words("".join(lines), "".join([*lines[:-1], "another end\n"]))
    assert left[-1] == (Mark.OTHER, lines[-1])
    assert right[-1] == (Mark.OTHER, "another end\n")
    assert mark_words("a\n" * 9000, "a\n" * 9001) == (((Mark.OTHER, "a\n" * 9000),), ((Mark.OTHER, "a\n" * 9001),))


# --- breaker ---------------------------------------------------------------------------------------------------------


def test_paused_automatic_runs_are_shown_and_reset_by_admins(session: AgentSession) -> None:
    now = timezone.now()
    ThreadBreaker.objects.create(session=session, failures=3, opened_at=now, last_failure_code="overloaded")
    url = f"/sessions/{session.pk}/breaker/reset/"
    for name, may in (("vera", False), ("mia", False), ("anna", True)):
        page = read(sign_in(name), f"/sessions/{session.pk}/")
        assert "3 failed runs in a row" in page
        assert ("Resume automatic compaction" in page) == may
        assert sign_in(name).post(url).status_code == (302 if may else 403)
    assert "3 failed runs in a row" not in read(sign_in("mia"), f"/sessions/{session.pk}/")
    assert sign_in("charlie").post(url).status_code == 404


# --- hostile texts, queries ------------------------------------------------------------------------------------------


def test_texts_of_people_and_models_are_escaped(session: AgentSession) -> None:
    hostile = "<script>hacked()</script>"
    run = run_now(session, RunChoices(instructions=hostile), by="mia")
    RunRevision.objects.update(text=f"1. Pending Tasks:\n{hostile}", analysis=hostile, missing_sections=[hostile])
    RunAttempt.objects.create(
        run=run, number=9, path="plain", model=hostile, failure_code="x", failure_sentence=hostile
    )
    CompactionRun.objects.update(started_by_name=hostile, fork_refusal=hostile, model=hostile)
    second = run_now(session, by="mia")
    client = sign_in("mia")
    for url in (
        run_url(run),
        f"{run_url(run)}compare/{second.pk}/",
        f"{new_url(session)}?again={run.pk}",
        f"/sessions/{session.pk}/compactions/",
    ):
        page = read(client, url)
        assert hostile not in page, url
        assert "&lt;script&gt;" in page, url


def test_queries_do_not_grow_with_runs_and_requests(session: AgentSession) -> None:
    client = sign_in("mia")
    run = run_now(session, by="mia")
    tab, page = f"/sessions/{session.pk}/compactions/", run_url(run)
    few = [count_queries(client, url) for url in (tab, page)]
    copies = [make_run(session) for _ in range(12)]
    RunRevision.objects.bulk_create(RunRevision(run=copy, number=1, text="x", retained_percent=50) for copy in copies)
    RunAttempt.objects.bulk_create(RunAttempt(run=run, number=number, path="plain") for number in range(9))
    assert [count_queries(client, url) for url in (tab, page)] == few


def test_run_of_somebody_who_left_keeps_their_name(session: AgentSession) -> None:
    run = run_now(session, by="mia")
    AgentSession.objects.update(owner=None)
    make_user("mia").delete()
    assert "started by mia" in read(sign_in("alice"), run_url(run))


def test_run_whose_job_died_is_not_shown_as_going_on(session: AgentSession) -> None:
    run = start(session)
    Job.objects.filter(run=run).update(state=JobState.DEAD, finished_at=timezone.now())
    client = sign_in("mia")
    assert client.get(f"{run_url(run)}progress/").status_code == 302
    assert "The run was given up" in say(read(client, run_url(run)))
    run.refresh_from_db()
    assert run.state == RunState.FAILED
