"""Ledger, exports, comparison and saved views in a real Chromium: by mouse, by keyboard, on a phone, for axe."""

import csv
import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from dashboard.models import AgentSession, ApiCall, Membership, SessionHour, Team
from tests.browser.charts import wait_for_charts
from tests.browser.conftest import Axe, SignIn
from tests.browser.keys import press
from tests.builders import make_session, make_team, make_user
from tests.session_rows import make_breaks

CAUSES = (
    ("tools_changed", True, "request"),
    ("likely_server_side", False, "inferred"),
    ("unexplained", False, "unknown"),
)
PATHS = ("/breaks/", "/breaks/?by=day&project=none", "/compare/", "/compare/?first={}&second={}", "/compare/?first={}")


@pytest.fixture
def team(live_url: str) -> Team:
    team = make_team("Harbour", owner="alice")
    Membership.objects.update(content_grant=True)
    now = timezone.now()
    for number in range(6):
        session = make_session(
            team, f"s-{number}", title=f"=Fix login {number}", project="web" if number % 2 else "api",
            developer="mia", call_count=3, last_at=now - timedelta(minutes=number),
        )  # fmt: skip
        cause, is_avoidable, grade = CAUSES[number % 3]
        make_breaks(session, 20, at=now - timedelta(days=number), cause=cause, grade=grade, is_avoidable=is_avoidable,
                    lost_usd=Decimal("0.1123"))  # fmt: skip
        SessionHour.objects.create(team=team, session=session, hour_at=now, call_count=3, input_tokens=9, spent_usd=1)
        ApiCall.objects.bulk_create(
            ApiCall(team=team, session=session, number=call, call_id=f"{number}-{call}", context_tokens=1000 * call)
            for call in (1, 2, 3)
        )
    return team


@pytest.fixture
def signed_in(page: Page, team: Team, sign_in: SignIn) -> Page:
    sign_in(page, make_user("alice"))
    return page


def test_ledger_is_narrowed_and_its_export_has_the_same_totals(signed_in: Page) -> None:
    signed_in.goto("/")
    press(signed_in, "g")
    press(signed_in, "b")
    expect(signed_in).to_have_url("/breaks/")
    wait_for_charts(signed_in)
    signed_in.get_by_label("Project").select_option("web")
    expect(signed_in).to_have_url("/breaks/?project=web")
    expect(signed_in.get_by_role("link", name=re.compile(r"^Cache breaks\s*60"))).to_be_visible()
    wait_for_charts(signed_in)
    with signed_in.expect_download() as started:
        press(signed_in, "e")
    with started.value.path().open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert started.value.suggested_filename.startswith("plimsoll-cache-breaks-")
    assert len(rows) == 60
    lost = sum(Decimal(row["lost_usd"]) for row in rows)
    assert f"${lost:.2f}" in signed_in.locator("#groups tfoot").inner_text()
    assert {row["session"][:2] for row in rows} == {"'="}
    signed_in.get_by_role("link", name="The tools changed").first.click()
    expect(signed_in).to_have_url(re.compile("cause=tools_changed"))
    signed_in.locator("#breaks tbody [data-opens]").first.click()
    expect(signed_in.get_by_role("heading", level=1)).to_have_text("The tools changed")


def test_view_is_saved_and_columns_are_chosen(signed_in: Page) -> None:
    signed_in.goto("/sessions/")
    signed_in.get_by_label("Project").select_option("web")
    expect(signed_in).to_have_url("/sessions/?project=web")
    signed_in.locator("summary", has_text="Save view").click()
    signed_in.get_by_label("Name").fill("Web shop")
    signed_in.get_by_role("button", name="Save").click()
    expect(signed_in.get_by_role("list", name="Saved views")).to_contain_text("Web shop")
    signed_in.locator("summary", has_text="Columns").click()
    signed_in.locator(".menu-form").get_by_label("Cache warm").uncheck()
    expect(signed_in.get_by_role("columnheader", name="Cache warm")).to_have_count(0)
    signed_in.locator(".menu-form").get_by_label("Hit rate").check()
    expect(signed_in.get_by_role("columnheader", name="Hit rate")).to_have_count(1)
    expect(signed_in.get_by_role("columnheader", name="Cache warm")).to_have_count(0)
    expect(signed_in.get_by_role("columnheader", name="Spent")).to_have_count(1)
    expect(signed_in).to_have_url("/sessions/?project=web")
    signed_in.goto("/sessions/")
    expect(signed_in.get_by_role("columnheader", name="Hit rate")).to_have_count(1)
    signed_in.get_by_role("link", name="Web shop").click()
    expect(signed_in).to_have_url("/sessions/?project=web")


def test_session_is_compared_with_another(signed_in: Page) -> None:
    first = AgentSession.objects.get(external_id="s-1")
    signed_in.goto(f"/sessions/{first.pk}/")
    signed_in.locator("summary", has_text="More").click()
    signed_in.get_by_role("link", name="Compare with another session").click()
    signed_in.get_by_role("link", name="=Fix login 3").click()
    expect(signed_in.get_by_role("row", name=re.compile("Cache breaks per 100 calls"))).to_contain_text("no change")
    wait_for_charts(signed_in)
    expect(signed_in.locator(".scatterlayer .trace")).to_have_count(2)


@pytest.mark.parametrize("path", PATHS)
def test_pages_are_accessible_and_fit_a_phone(signed_in: Page, axe: Axe, path: str) -> None:
    one, two = AgentSession.objects.order_by("pk")[:2]
    signed_in.goto(path.format(one.pk, two.pk))
    wait_for_charts(signed_in)
    assert axe(signed_in) == []
    press(signed_in, "t")
    wait_for_charts(signed_in)
    assert axe(signed_in) == []
    signed_in.set_viewport_size({"width": 360, "height": 740})
    assert signed_in.evaluate("document.documentElement.scrollWidth") <= 360
