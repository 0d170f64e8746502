"""A compaction that failed: the tab leads to its page, which tells what was kept, what it means and what to do."""

from datetime import timedelta

import pytest

from dashboard.models import AgentSession, ObservedCompaction, Team
from dashboard.pages.failed_compaction import find_advice
from tests.builders import make_session
from tests.recorded_talk import make_harbour
from tests.session_rows import START, make_compactions
from tests.visitors import ask, read, sign_in

pytestmark = pytest.mark.django_db
WORDS = "The summary was cut off: the conversation is too long."


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def session(team: Team) -> AgentSession:
    return make_session(team, "session-1", model="claude-sonnet-4-5")


def fail(session: AgentSession, **columns: object) -> ObservedCompaction:
    given: dict[str, object] = {
        "kind": "failed",
        "failure": WORDS,
        "before_tokens": 95_182,
        "after_tokens": None,
        "after_origin": "",
        "saved_tokens": None,
        **columns,
    }
    return make_compactions(session, 1, **given)[0]


def read_main(name: str, url: str) -> str:
    return read(sign_in(name), url).split('id="main"')[1].split("</main>")[0]


def test_page_tells_what_failed_was_kept_and_is_to_be_done(session: AgentSession) -> None:
    failed = fail(session)
    page = read_main("alice", f"/compactions/{failed.pk}/")
    assert "<h1>Compaction failed at 95k</h1>" in page
    assert f"<q>{WORDS}</q>" in page
    assert "95.2k" in page
    assert "What was kept" in page
    assert "a compaction that fails changes nothing" in page
    assert "stops after three failures in a row" in page
    assert "Compact a smaller part" in page
    assert "unknown" not in page
    assert "not in the transcript" not in page
    assert "Cleared" not in page


def test_tab_leads_to_the_page_of_a_failure(session: AgentSession) -> None:
    failed = fail(session)
    tab = read(sign_in("vera"), f"/sessions/{session.pk}/compactions/")
    assert f'href="/compactions/{failed.pk}/">Failed: {WORDS}</a>' in tab


def test_context_that_the_client_did_not_tell_is_said_to_be_so(session: AgentSession) -> None:
    page = read_main("vera", f"/compactions/{fail(session, before_tokens=None, trigger='').pk}/")
    assert "not reported by the client" in page
    assert "trigger not known" in page


def test_failure_before_one_that_worked_leads_to_it(session: AgentSession) -> None:
    first = fail(session, call_number=4)
    worked = make_compactions(session, 1, call_number=6)[0]
    page = read_main("alice", f"/compactions/{first.pk}/")
    assert "a later compaction worked" in page
    assert f'href="/compactions/{worked.pk}/"' in page
    assert "/compact/" not in page
    assert ask(sign_in("vera"), f"compactions/{first.pk}")["failed"]["solved_by"] == worked.pk


def test_failures_are_counted_since_the_last_one_that_worked(session: AgentSession) -> None:
    fail(session, call_number=2)
    make_compactions(session, 1, call_number=3)
    calls = enumerate((5, 5, 7))
    rows = [fail(session, call_number=number, at=START + timedelta(hours=hour)) for hour, number in calls]
    told = [ask(sign_in("vera"), f"compactions/{row.pk}")["failed"]["in_a_row"] for row in rows]
    assert told == [1, 2, 3]
    assert "This was failure 3 in a row." in read_main("vera", f"/compactions/{rows[2].pk}/")


def test_viewer_gets_no_button_and_no_command(session: AgentSession) -> None:
    page = read_main("vera", f"/compactions/{fail(session).pk}/")
    assert "Compact this session" not in page
    assert "claude -p" not in page


def test_compaction_that_worked_has_no_failure_in_the_api(session: AgentSession) -> None:
    (worked,) = make_compactions(session, 1)
    assert ask(sign_in("vera"), f"compactions/{worked.pk}")["failed"] is None


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("too_few_groups", "Let the turn end"),
        ("prompt is too long: 210000 tokens > 200000 maximum", "Compact a smaller part"),
        ("The user aborted the request.", "stopped on purpose"),
        ("Blocked by a PreCompact hook", "PreCompact hooks"),
        ("529 overloaded_error", "Wait a minute"),
        ("invalid api key", "API key"),
        ("no reason given", "Compact again."),
    ],
)
def test_advice_fits_the_words_of_the_client(words: str, advice: str) -> None:
    assert advice in find_advice(words)
