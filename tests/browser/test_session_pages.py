"""Overview and sessions in a real Chromium: finding a risky session by mouse, by keyboard, without scripts."""

import re
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from dashboard.models import LEVELS, AgentSession, Membership, SessionChange, SessionHour, Team, User
from dashboard.pages.session_columns import ALL_COLUMNS
from tests.browser.charts import wait_for_charts
from tests.browser.conftest import Axe, SignIn
from tests.browser.keys import press
from tests.builders import make_many_sessions, make_session, make_team, make_user

RISKY = "Migrate billing to Decimal"


@pytest.fixture
def team(live_url: str) -> Team:
    team = make_team("Harbour", owner="alice")
    Membership.objects.update(content_grant=True)
    now = timezone.now()
    make_many_sessions(
        team, 70, title=lambda number: f"Fix login {number}", project="webshop", branch="main", developer="mia",
        context_tokens=40_000, level="ok", level_rank=1, percent_left=76, recent_hits=[91, 88, 97],
    )  # fmt: skip
    risky = make_session(
        team, "risky", title=RISKY, project="ledger", developer="mia", context_tokens=172_000, level="auto-compact",
        level_rank=LEVELS.index("auto-compact"), percent_left=0, last_at=now - timedelta(hours=3), break_count=2,
        warm_until=now + timedelta(minutes=4), lost_usd=1, spent_usd=4, recent_hits=[91, 12],
    )  # fmt: skip
    SessionHour.objects.create(
        team=team, session=risky, hour_at=now.replace(minute=0, second=0, microsecond=0), spent_usd=4, lost_usd=1,
        input_tokens=100, read_tokens=80,
    )  # fmt: skip
    return team


@pytest.fixture
def alice(team: Team) -> User:
    return make_user("alice")


@pytest.fixture
def signed_in(page: Page, alice: User, sign_in: SignIn) -> Page:
    sign_in(page, alice)
    return page


def test_risky_session_is_two_clicks_away(signed_in: Page) -> None:
    signed_in.goto("/")
    signed_in.get_by_role("link", name=re.compile("Over a threshold")).click()
    expect(signed_in).to_have_url(re.compile("level=above"))
    expect(signed_in.locator("[data-rows] > tr")).to_have_count(1)
    expect(signed_in.get_by_role("status").filter(has_text="1 session")).to_be_visible()
    signed_in.get_by_role("link", name=RISKY).click()
    expect(signed_in).to_have_url(re.compile(r"/sessions/\d+/$"))
    expect(signed_in.get_by_role("heading", level=1)).to_contain_text(RISKY)


def test_risky_session_is_a_few_keys_away(signed_in: Page) -> None:
    signed_in.goto("/")
    press(signed_in, "j")
    expect(signed_in.get_by_role("link", name=RISKY)).to_be_focused()
    press(signed_in, "g")
    press(signed_in, "s")
    expect(signed_in).to_have_url("/sessions/")
    press(signed_in, "/")
    expect(signed_in.get_by_label("Search")).to_be_focused()
    signed_in.keyboard.type("billing")
    expect(signed_in.locator("[data-rows] > tr")).to_have_count(1)
    expect(signed_in).to_have_url("/sessions/?text=billing")
    expect(signed_in.get_by_label("Search")).to_be_focused()
    press(signed_in, "Escape")
    expect(signed_in.get_by_label("Search")).to_have_value("billing")
    press(signed_in, "j")
    press(signed_in, "Enter")
    expect(signed_in.get_by_role("heading", level=1)).to_contain_text(RISKY)


def test_filters_swap_the_list_and_the_history_goes_back(signed_in: Page) -> None:
    signed_in.goto("/sessions/")
    signed_in.evaluate("window.stays = true")
    signed_in.get_by_label("Project").select_option("ledger")
    expect(signed_in).to_have_url("/sessions/?project=ledger")
    expect(signed_in.locator("[data-rows] > tr")).to_have_count(1)
    signed_in.get_by_label("Sort").select_option("risk")
    expect(signed_in).to_have_url("/sessions/?project=ledger&sort=risk")
    signed_in.get_by_role("link", name="Remove filter project ledger").click()
    expect(signed_in).to_have_url("/sessions/?sort=risk")
    expect(signed_in.get_by_label("Project")).to_have_value("")
    expect(signed_in.locator("[data-rows] > tr")).to_have_count(50)
    signed_in.get_by_role("link", name="Next").click()
    expect(signed_in.locator("[data-rows] > tr")).to_have_count(21)
    assert signed_in.evaluate("window.stays") is True
    signed_in.go_back()
    expect(signed_in.locator("[data-rows] > tr")).to_have_count(50)
    signed_in.go_back()
    expect(signed_in.locator("[data-rows] > tr")).to_have_count(1)
    expect(signed_in.get_by_role("heading", level=1)).to_have_text("Sessions")


def test_cache_countdown_ticks(signed_in: Page) -> None:
    signed_in.goto("/sessions/?text=billing")
    place = signed_in.locator("[data-seconds-left]")
    before = place.inner_text()
    assert re.fullmatch(r"[34]:\d\d", before)
    expect(place).not_to_have_text(before)


def test_words_beside_a_countdown_turn_with_it(signed_in: Page) -> None:
    signed_in.clock.install()
    signed_in.goto(f"/sessions/{AgentSession.objects.get(external_id='risky').pk}/")
    place = signed_in.locator("[data-seconds-left]")
    warm, cold = (signed_in.locator(f"[data-while={state}]") for state in ("warm", "cold"))
    expect(place).to_have_text(re.compile(r"[34]:\d\d"))
    expect(warm).to_be_visible()
    expect(cold).to_be_hidden()
    signed_in.clock.fast_forward("05:00")
    expect(place).to_have_text("cold")
    expect(warm).to_be_hidden()
    expect(cold).to_be_visible()
    expect(cold).to_contain_text("expired")


def test_ages_grow_while_a_page_is_open(signed_in: Page) -> None:
    signed_in.clock.install()
    signed_in.goto("/sessions/?text=billing")
    age = signed_in.locator("tbody time[data-age]").first
    expect(age).to_have_text("3 h ago")
    for later, words in (("59:00", "3 h ago"), ("02:00", "4 h ago"), ("48:00:00", "2 days ago")):
        signed_in.clock.fast_forward(later)
        expect(age).to_have_text(words)


def test_zone_of_the_browser_is_told(signed_in: Page) -> None:
    signed_in.goto("/")
    zone = signed_in.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    signed_in.reload()
    expect(signed_in.locator(".heading .sub")).to_contain_text(f"today in {zone}")


def test_sessions_work_without_scripts(signed_in: Page, alice: User, sign_in: SignIn, live_url: str) -> None:
    browser = signed_in.context.browser
    assert browser is not None
    context = browser.new_context(base_url=live_url, java_script_enabled=False)
    bare = context.new_page()
    sign_in(bare, alice)
    bare.goto("/")
    expect(bare.get_by_role("link", name=RISKY)).to_be_visible()
    bare.goto("/sessions/")
    bare.get_by_label("Search").fill("billing")
    bare.get_by_role("button", name="Apply").click()
    expect(bare.locator("[data-rows] > tr")).to_have_count(1)
    expect(bare.locator("[data-seconds-left]")).to_have_text(re.compile(r"[34]:\d\d"))
    bare.get_by_role("link", name="Remove filter contains billing").click()
    bare.get_by_role("link", name="Next").click()
    expect(bare.locator("[data-rows] > tr")).to_have_count(21)
    context.close()


@pytest.mark.parametrize("path", ["/", "/sessions/", "/sessions/?text=nowhere&level=above"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pages_have_no_serious_accessibility_finding(signed_in: Page, axe: Axe, path: str, theme: str) -> None:
    signed_in.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    signed_in.goto(path)
    if path == "/":
        expect(signed_in.locator("#spend-and-loss .chart-area")).to_have_count(1)
        wait_for_charts(signed_in)
    assert axe(signed_in) == []


@pytest.mark.parametrize("path", ["/", "/sessions/", "/sessions/?text=billing&breaks=yes&level=above"])
def test_nothing_scrolls_sideways_on_a_small_phone(signed_in: Page, path: str) -> None:
    signed_in.set_viewport_size({"width": 360, "height": 740})
    signed_in.goto(path)
    assert signed_in.evaluate("document.documentElement.scrollWidth") == 360
    gauge = signed_in.locator(".gauge-row").first.bounding_box()
    assert gauge is not None
    assert gauge["x"] + gauge["width"] / 2 < 360  # seen without scrolling the table


@pytest.mark.parametrize("path", ["/", "/sessions/"])
def test_table_fits_its_card_with_every_kind_of_gauge(signed_in: Page, team: Team, path: str) -> None:
    now = timezone.now()
    for number, (model, tokens) in enumerate(
        [("somebody-elses-coder", 1_248_200), ("claude-sonnet-4-5", 172_000), ("claude-sonnet-4-5", 212_000)]
    ):
        make_session(
            team, f"wide-{number}", model=model, context_tokens=tokens, last_at=now + timedelta(seconds=number),
            level_rank=5, percent_left=0, developer="mia", client_cost_usd="0.1", recent_hits=[91, 100],
        )  # fmt: skip
    signed_in.set_viewport_size({"width": 1280, "height": 800})
    signed_in.goto(path)
    expect(signed_in.get_by_text("unknown window").first).to_be_visible()
    wrapper = signed_in.locator(".table-wrap", has=signed_in.locator(".session-table"))
    assert wrapper.evaluate("wrap => wrap.scrollWidth - wrap.clientWidth") <= 0


def test_sums_behind_the_lines_are_one_stop_for_the_keyboard(signed_in: Page) -> None:
    signed_in.goto("/sessions/")
    summary = signed_in.get_by_text("How these thresholds are calculated")
    expect(signed_in.get_by_text("blocking = available - 3,000 = 177,000")).to_be_hidden()
    summary.focus()
    signed_in.keyboard.press("Enter")
    expect(signed_in.get_by_text("blocking = available - 3,000 = 177,000")).to_be_visible()


def test_titles_have_room_and_the_head_stays_in_sight(signed_in: Page) -> None:
    signed_in.set_viewport_size({"width": 1280, "height": 500})
    signed_in.goto("/sessions/")
    first = signed_in.locator(".session-table tbody td").first
    assert first.evaluate("cell => cell.getBoundingClientRect().width") >= 360
    signed_in.mouse.wheel(0, 900)
    head = signed_in.locator(".session-table th").first
    expect(head).to_be_in_viewport()
    assert head.evaluate("cell => cell.getBoundingClientRect().top") == 0


def test_titles_have_room_beside_every_column(signed_in: Page, alice: User, team: Team) -> None:
    alice.session_columns = list(ALL_COLUMNS)
    alice.save()
    tokens = {"read_tokens": 900, "input_tokens": 100, "recent_hits": [91, 100], "call_count": 1}
    make_session(
        team, "wide", model="somebody-elses-coder", context_tokens=1_248_200, last_at=timezone.now(), spent_usd=1234,
        lost_usd=123, break_count=12, compaction_count=21, mid_task_count=3, developer="tomas.demo",
        forecast={"growth": 9, "calls": [1_343, 2_860, 4_378], "turns": None, "minutes": None}, **tokens,
    )  # fmt: skip
    signed_in.set_viewport_size({"width": 1280, "height": 500})
    signed_in.goto("/sessions/")
    expect(signed_in.locator(".session-table th")).to_have_count(1 + len(ALL_COLUMNS))
    first = signed_in.locator(".session-table tbody td").first
    assert first.evaluate("cell => cell.getBoundingClientRect().width") >= 360
    wrapper = signed_in.locator(".table-wrap", has=signed_in.locator(".session-table"))
    assert wrapper.evaluate("wrap => wrap.scrollWidth - wrap.clientWidth") <= 0


@pytest.mark.parametrize("width", [390, 1100])
def test_head_stays_in_sight_where_the_list_scrolls_sideways(signed_in: Page, alice: User, width: int) -> None:
    alice.session_columns = list(ALL_COLUMNS)
    alice.save()
    signed_in.set_viewport_size({"width": width, "height": 844})
    signed_in.goto("/sessions/")
    frame = signed_in.locator(".table-wrap", has=signed_in.locator(".session-table"))
    frame.evaluate("frame => { frame.scrollIntoView(); frame.scrollTop = frame.scrollHeight }")
    expect(signed_in.locator("[data-rows] > tr").last).to_be_in_viewport()
    expect(signed_in.locator(".session-table th").first).to_be_in_viewport()
    spent = signed_in.locator(".session-table th", has_text="Spent")
    spent.scroll_into_view_if_needed()
    expect(spent).to_be_in_viewport()


def test_selected_text_does_not_open_the_row(signed_in: Page) -> None:
    signed_in.goto("/sessions/?text=billing")
    cell = signed_in.locator("tr[data-session] td.of-developer")
    box = cell.bounding_box()
    assert box is not None
    line = box["y"] + box["height"] / 2 - 8
    signed_in.mouse.move(box["x"] + 11, line)
    signed_in.mouse.down()
    signed_in.mouse.move(box["x"] + 60, line, steps=4)
    signed_in.mouse.up()
    assert signed_in.evaluate("String(getSelection())").startswith("mi")
    expect(signed_in).to_have_url("/sessions/?text=billing")


def test_row_opens_its_session_and_columns_come_at_once(signed_in: Page) -> None:
    signed_in.goto("/sessions/?text=billing")
    signed_in.locator("summary", has_text="Columns").click()
    signed_in.get_by_label("Compactions", exact=True).check()
    expect(signed_in.locator(".session-table th", has_text="Compactions")).to_have_count(1)
    expect(signed_in.get_by_label("Compactions", exact=True)).to_be_focused()
    signed_in.keyboard.press("Escape")
    spent = signed_in.locator("tr[data-session] td", has_text="$4.00")
    with signed_in.context.expect_page() as opened:
        spent.click(button="middle")
    expect(opened.value).to_have_url(re.compile(r"/sessions/\d+/$"))
    spent.click()
    expect(signed_in).to_have_url(re.compile(r"/sessions/\d+/$"))


def test_headings_sort_in_both_directions(signed_in: Page) -> None:
    signed_in.goto("/sessions/")
    for direction in ("ascending", "descending"):
        signed_in.locator(".session-table th a", has_text="project").click()
        expect(signed_in.locator(f'th[aria-sort="{direction}"]')).to_contain_text("project")
    expect(signed_in).to_have_url("/sessions/?sort=project_reversed")
    expect(signed_in.get_by_role("heading", name="By project, Z to A")).to_be_visible()


def test_every_heading_sorts_by_its_column(signed_in: Page, alice: User) -> None:
    alice.session_columns = list(ALL_COLUMNS)
    alice.save()
    signed_in.goto("/sessions/")
    heads = signed_in.locator(".session-table th")
    for number in range(1 + len(ALL_COLUMNS)):
        head = heads.nth(number)
        was = head.get_attribute("aria-sort")
        head.locator("a").click()
        expect(head).to_have_attribute("aria-sort", re.compile("ascending" if was == "descending" else "ending"))
        expect(signed_in.locator("th[aria-sort]")).to_have_count(1)


def test_changed_order_is_noted_and_the_list_is_sorted_again(signed_in: Page) -> None:
    now = timezone.now()
    calm = AgentSession.objects.exclude(external_id="risky").order_by("-pk")[5]
    signed_in.goto("/sessions/?sort=warm")
    expect(signed_in.locator('html[data-heard="stream"]')).to_have_count(1)
    rows = signed_in.locator("[data-rows] > tr")
    expect(rows.first).to_contain_text(RISKY)
    note = signed_in.locator("[data-live-order]")
    AgentSession.objects.filter(pk=calm.pk).update(warm_until=now + timedelta(hours=1), last_at=now)
    SessionChange.objects.note(calm.team_id, [calm.pk])
    expect(note).to_have_text("Rows updated in place. Sort again")
    expect(rows.first).to_contain_text(RISKY)
    note.get_by_role("link", name="Sort again").click()
    expect(rows.first).to_have_attribute("data-session", str(calm.pk))
    expect(note).to_be_empty()
    expect(signed_in).to_have_url("/sessions/?sort=warm")


def test_live_rows_keep_the_order_of_their_caption(signed_in: Page) -> None:
    now = timezone.now()
    calm = AgentSession.objects.exclude(external_id="risky").order_by("pk")[0]
    AgentSession.objects.exclude(pk__in=[calm.pk, AgentSession.objects.get(external_id="risky").pk]).delete()
    signed_in.goto("/")
    rows = signed_in.locator("#risk-list tr[data-session]")
    expect(rows.first).to_contain_text(RISKY)
    expect(signed_in.locator('html[data-heard="stream"]')).to_have_count(1)
    AgentSession.objects.filter(pk=calm.pk).update(level="blocking", level_rank=5, percent_left=0, last_at=now)
    SessionChange.objects.note(calm.team_id, [calm.pk])
    expect(rows.first).to_have_attribute("data-session", str(calm.pk))
    expect(rows).to_have_count(2)
