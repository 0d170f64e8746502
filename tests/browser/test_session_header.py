"""The head of a session's page in a real Chromium: whatever it has to say, the chart keeps its place below it."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import FloatRect, Page, expect

from compaction.context.thresholds import Level
from dashboard.live import room
from dashboard.models import AgentSession, LineCrossing, Team, TeamPolicy, Thread, ThreadBreaker, User
from dashboard.session_levels import LEVEL_RANKS
from tests.browser.conftest import Axe, SignIn
from tests.browser.keys import press
from tests.builders import make_session
from tests.session_builders import make_calls
from tests.session_rows import make_run

CHART_BEGINS_WITHIN_PIXELS = 360
LONG_TITLE = "Mend the crane and say which of the nine winches has to be stopped for it, and for how long. " * 3
CROSSED = "Auto-compact threshold of 167,000 tokens crossed"


@pytest.fixture
def session(owner: User) -> AgentSession:
    room.forget()
    team = owner.memberships.get().team
    session = make_session(team, "s-1", title="Mend the crane", owner=owner, has_content=True, call_count=30)
    make_session(team, "newer one")
    make_calls(session, 30)
    AgentSession.objects.filter(pk=session.pk).update(
        spent_usd=112, lost_usd=11, avoidable_usd=10, break_count=12, turn_count=12, compaction_count=12, micro_count=4,
        mid_task_count=3, read_tokens=900, input_tokens=100, recent_hits=[90, 95, 92], client_cost_usd=100,
        warm_until=timezone.now() - timedelta(days=280), developer="firstname.lastname@harbour.example",
    )  # fmt: skip
    return session


@pytest.fixture
def signed_in(page: Page, session: AgentSession, owner: User, sign_in: SignIn) -> Page:
    page.set_viewport_size({"width": 1280, "height": 900})
    sign_in(page, owner)
    return page


def change(session: AgentSession, **columns: object) -> None:
    AgentSession.objects.filter(pk=session.pk).update(**columns)


def cross(session: AgentSession, **columns: object) -> LineCrossing:
    """A suggestion that waits."""
    change(session, level_rank=LEVEL_RANKS[Level.AUTO_COMPACT], context_tokens=170_000)
    given = {"used_tokens": 170_000, "line_tokens": 167_000, "answer": "suggest", **columns}
    return LineCrossing.objects.create(team=session.team, session=session, **given)


def pause_automation(session: AgentSession, agent_id: str = "") -> None:
    since = timezone.now() - timedelta(minutes=12)
    ThreadBreaker.objects.create(
        session=session, agent_id=agent_id, failures=3, opened_at=since, last_failure_code="summary_too_long"
    )


def be_live(session: AgentSession) -> None:
    change(session, last_at=timezone.now(), warm_until=timezone.now() + timedelta(minutes=4))


def be_idle(session: AgentSession) -> None:
    change(session, last_at=timezone.now() - timedelta(minutes=40))


def be_ended(session: AgentSession) -> None:
    change(session, last_at=timezone.now() - timedelta(days=2), ended_at=timezone.now() - timedelta(days=1))


def have_only_sub_agents(session: AgentSession) -> None:
    session.calls.update(agent_id="agent-1")
    Thread.objects.filter(session=session).update(agent_id="agent-1")


def have_metrics_only(session: AgentSession) -> None:
    change(session, has_content=False)


def miss_parts(session: AgentSession) -> None:
    change(session, content_removed_at=timezone.now(), problem_count=12, forked_from="elsewhere", unpriced_count=3)


def be_new_client(session: AgentSession) -> None:
    change(session, client_version="2.1.325", model="claude-opus-4-5")


def switch_auto_compact_off(session: AgentSession) -> None:
    TeamPolicy.objects.create(team=session.team, version=1, thresholds={"is_auto_enabled": False})


def have_unknown_window(session: AgentSession) -> None:
    change(session, model="harbour-1", is_claude_code=False)


def fail_automatic_run(session: AgentSession) -> None:
    run = make_run(session, state="failed", failure_code="too_long", failure_sentence="The summary was too long. " * 5)
    cross(session, run=run)


def refuse_automatic_run(session: AgentSession) -> None:
    cross(session, answer="run", refusal="The daily cap of the team's key is reached, so no summary was requested.")


def run_compactions(session: AgentSession) -> None:
    for agent_id in ("", "agent-1"):
        make_run(session, state="running", stage="summarising", agent_id=agent_id)


def belong_to_demo(session: AgentSession) -> None:
    Team.objects.update(is_demo=True)


def have_long_title(session: AgentSession) -> None:
    change(session, title=LONG_TITLE[:300])


def pause_two_threads(session: AgentSession) -> None:
    pause_automation(session)
    pause_automation(session, "agent-1")


STATES: dict[str, tuple[Callable[[AgentSession], object], ...]] = {
    "plain": (),
    "live": (be_live,),
    "idle": (be_idle,),
    "ended": (be_ended,),
    "long title": (have_long_title,),
    "only sub-agents": (have_only_sub_agents,),
    "metrics only": (have_metrics_only,),
    "parts missing": (miss_parts,),
    "new client": (be_new_client,),
    "auto-compact off": (switch_auto_compact_off,),
    "unknown window": (have_unknown_window,),
    "compactions under way": (run_compactions,),
    "suggestion": (cross,),
    "failed automatic run": (fail_automatic_run,),
    "refused automatic run": (refuse_automatic_run,),
    "automation paused": (pause_two_threads,),
    "demo": (belong_to_demo,),
    "everything": (
        be_live, have_long_title, miss_parts, be_new_client, run_compactions, fail_automatic_run, pause_two_threads,
        belong_to_demo,
    ),
}  # fmt: skip


def find_box(page: Page, selector: str) -> FloatRect:
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return box


@pytest.mark.parametrize("state", STATES)
def test_chart_begins_within_360_pixels(signed_in: Page, session: AgentSession, state: str) -> None:
    for step in STATES[state]:
        step(session)
    signed_in.goto(f"/sessions/{session.pk}/")
    # The tests have no worker, so that every page says so as well.
    expect(signed_in.get_by_text("Background worker is not running")).to_be_visible()
    assert find_box(signed_in, ".session-timeline")["y"] <= CHART_BEGINS_WITHIN_PIXELS
    assert signed_in.locator(".session-summary .chart").count() == 0


def test_call_that_is_not_there_is_said_in_the_head_of_the_chart(signed_in: Page, session: AgentSession) -> None:
    signed_in.goto(f"/sessions/{session.pk}/?call=999999")
    expect(signed_in.locator(".session-timeline").get_by_role("status")).to_have_text("Call not found")
    assert find_box(signed_in, ".session-timeline")["y"] <= CHART_BEGINS_WITHIN_PIXELS


def test_suggestion_unfolds_by_keyboard_and_moves_nothing(signed_in: Page, session: AgentSession) -> None:
    crossing = cross(session)
    signed_in.goto(f"/sessions/{session.pk}/")
    notice = signed_in.get_by_role("group", name="Notices").locator("details").filter(has_text=CROSSED)
    before = find_box(signed_in, ".session-timeline")
    notice.locator("summary").focus()
    press(signed_in, "Enter")
    expect(notice.get_by_text("Compact now to avoid an automatic compaction")).to_be_visible()
    assert find_box(signed_in, ".session-timeline") == before
    press(signed_in, "Tab")
    expect(notice.get_by_role("link", name="Compact")).to_be_focused()
    press(signed_in, "Escape")
    expect(notice.get_by_role("link", name="Compact")).to_be_hidden()
    expect(notice.locator("summary")).to_be_focused()
    press(signed_in, "Enter")
    notice.get_by_role("button", name="Dismiss").click()
    expect(notice).to_have_count(0)
    crossing.refresh_from_db()
    assert crossing.dismissed_by is not None


def test_notices_are_read_without_scripts_and_on_paper(
    signed_in: Page, session: AgentSession, owner: User, sign_in: SignIn, live_url: str
) -> None:
    cross(session)
    pause_automation(session)
    browser = signed_in.context.browser
    assert browser is not None
    context = browser.new_context(base_url=live_url, java_script_enabled=False, viewport={"width": 390, "height": 844})
    bare = context.new_page()
    sign_in(bare, owner)
    bare.goto(f"/sessions/{session.pk}/")
    for words, more in ((CROSSED, "Compact now to avoid"), ("Automatic compaction of the main", "after 3 failed runs")):
        notice = bare.locator(".session-notice").filter(has_text=words)
        expect(notice.locator("summary")).to_be_in_viewport()
        notice.locator("summary").click()
        expect(notice.get_by_text(more)).to_be_in_viewport(ratio=1)
        notice.locator("summary").click()
    bare.emulate_media(media="print")
    expect(bare.get_by_text("Compact now to avoid")).to_be_visible()
    expect(bare.get_by_text("Background worker is not running")).to_be_hidden()
    context.close()


def test_full_title_is_in_the_details(signed_in: Page, session: AgentSession) -> None:
    have_long_title(session)
    signed_in.goto(f"/sessions/{session.pk}/")
    assert find_box(signed_in, "h1")["height"] <= 30
    signed_in.locator(".session-about > summary").click()
    expect(signed_in.locator("#session-about").get_by_text(LONG_TITLE[:300].strip())).to_be_visible()


@pytest.mark.parametrize("state", ["everything", "compactions under way"])
def test_notices_stay_inside_a_narrow_page(signed_in: Page, session: AgentSession, state: str) -> None:
    for step in STATES[state]:
        step(session)
    signed_in.set_viewport_size({"width": 360, "height": 740})
    signed_in.goto(f"/sessions/{session.pk}/")
    assert signed_in.evaluate("document.documentElement.scrollWidth") == 360
    for summary in signed_in.locator(".session-notice > summary").all():
        summary.click()
        panel = summary.locator("xpath=..").locator(".menu-panel").bounding_box()
        assert panel is not None
        assert panel["x"] >= 0
        assert panel["x"] + panel["width"] <= 360
        summary.click()  # it lies over the next one


def test_notices_have_no_serious_accessibility_finding(signed_in: Page, session: AgentSession, axe: Axe) -> None:
    for step in STATES["everything"]:
        step(session)
    for scheme in ("light", "dark"):
        signed_in.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        signed_in.goto(f"/sessions/{session.pk}/")
        assert axe(signed_in) == []
        signed_in.locator(".session-notice > summary").first.click()
        assert axe(signed_in) == []
