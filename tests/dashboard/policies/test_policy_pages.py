"""The pages of thresholds and storage: drafts, faults at their fields, saves, conflicts, history, rights."""

from dataclasses import replace
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.models import AgentSession, Job, Team, TeamPolicy
from dashboard.policies.changes import RELEVEL, change_policy
from dashboard.policies.in_force import find_policy
from tests.builders import make_many_sessions, make_session, make_team, make_user

pytestmark = pytest.mark.django_db
THRESHOLDS, STORAGE = "/teams/harbour/thresholds/", "/teams/harbour/storage/"


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="olga", admin="anna", viewer="vera")


@pytest.fixture
def anna(team: Team) -> Client:
    return client_of("anna")


def client_of(name: str) -> Client:
    client = Client()
    client.force_login(make_user(name), backend="django.contrib.auth.backends.ModelBackend")
    return client


def change(team: Team, **values: Any) -> None:
    current = find_policy(team)
    change_policy(team, replace(current, **values), by=make_user("olga"), base_version=current.version)


def thresholds_form(act: str, *models: dict[str, str], base: int = 0, **values: str) -> dict[str, str]:
    rows = {f"models-{at}-{name}": value for at, row in enumerate(models) for name, value in row.items()}
    counts = {"models-TOTAL_FORMS": str(len(models)), "models-INITIAL_FORMS": "0"}
    return {"act": act, "preset": "client", "base_version": str(base), **values, **rows, **counts}


def storage_form(*, base: int = 0, **values: str) -> dict[str, str]:
    return {"stores_content": "no", "base_version": str(base), **values}


def test_save_puts_the_lines_in_force_and_posts_the_job(team: Team, anna: Client) -> None:
    opus = {"model": "claude-opus-4-5", "auto_percent": "70"}
    form = thresholds_form(
        "save", opus, {"model": "", "auto_percent": ""}, warning_margin_tokens="60,000", note="why not"
    )
    response = anna.post(THRESHOLDS, form, follow=True)
    assert "Thresholds saved." in response.text
    row = TeamPolicy.objects.get()
    assert row.thresholds == {"warning_margin_tokens": 60_000, "models": {"claude-opus-4-5": {"auto_percent": 70}}}
    assert (row.changed_by_name, row.note) == ("anna", "why not")
    assert Job.objects.filter(kind=RELEVEL, team=team).exists()
    assert 'value="60,000"' in response.text
    again = anna.post(THRESHOLDS, thresholds_form("save", opus, base=1, warning_margin_tokens="60000"), follow=True)
    assert "No changes to save." in again.text
    removed = thresholds_form("save", {**opus, "remove": "on"}, base=1, warning_margin_tokens="60000")
    anna.post(THRESHOLDS, removed)
    assert find_policy(team).thresholds == {"warning_margin_tokens": 60_000}


def test_page_says_what_the_client_does_and_offers_sliders_to_those_who_may_tune(team: Team, anna: Client) -> None:
    for client in (anna, client_of("vera")):
        page = client.get(THRESHOLDS).text
        assert "Claude Code compacts at <b>167,000</b> tokens: 200,000 \u2212 20,000" in page
        assert "CLAUDE_CODE_AUTO_COMPACT_WINDOW=200000" in page
        assert ('role="slider"' in page) == (client is anna)
    fragment = anna.post(THRESHOLDS, thresholds_form("preview", auto_percent="50"), headers={"hx-request": "true"})
    assert "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=50" in fragment.text
    assert 'id="client-rule" aria-labelledby="client-title" hx-swap-oob="true"' in fragment.text


def test_preview_saves_nothing_and_is_page_or_fragment(team: Team, anna: Client) -> None:
    make_session(team, "one", peak_tokens=130_000, last_at=timezone.now())
    form = thresholds_form("preview", preset="early")
    page = anna.post(THRESHOLDS, form)
    fragment = anna.post(THRESHOLDS, form, headers={"hx-request": "true"})
    for response in (page, fragment):
        assert response.status_code == 200
        assert "1 more session would have crossed the warning threshold" in response.text
        assert "127,000" in response.text
    assert "<html" in page.text
    assert "<html" not in fragment.text
    assert not TeamPolicy.objects.exists()


def test_faults_stand_at_their_fields(team: Team, anna: Client) -> None:
    rows = ({"model": "claude-opus-4-5", "error_margin_tokens": "30000"}, {"model": "", "window_tokens": "9"})
    twice = ({"model": "m", "window_tokens": "300000"}, {"model": "m", "window_tokens": "400000"})
    cases: list[tuple[dict[str, str], set[str]]] = [
        (thresholds_form("save", error_margin_tokens="30,000"), {"error_margin_tokens"}),
        (
            thresholds_form("save", warning_margin_tokens="x", auto_percent="0"),
            {"warning_margin_tokens", "auto_percent"},
        ),
        (thresholds_form("save", *rows), {"models-0-error_margin_tokens", "models-1-model"}),
        (thresholds_form("save", *twice), {"models-0-model"}),
        (thresholds_form("save", preset="late"), {"preset"}),
        (thresholds_form("preview", window_tokens="9" * 41), {"window_tokens"}),
        (thresholds_form("save", window_tokens="5"), {"window_tokens"}),
    ]
    for form, names in cases:
        page = anna.post(THRESHOLDS, form)
        assert page.status_code == 422
        fragment = anna.post(THRESHOLDS, form, headers={"hx-request": "true"})
        assert fragment.status_code == 200
        for response in (page, fragment):
            marked = {
                name.split('_errors"')[0]
                for name in response.text.split('class="field-errors" id="id_')[1:]
                if "errorlist" in name.split("</div>")[0]
            }
            assert marked == names
    assert not TeamPolicy.objects.exists()


def test_broken_form_is_refused_and_not_an_error(team: Team, anna: Client) -> None:
    for form in ({}, {"act": "save"}, {"act": "save", "base_version": "x", "models-TOTAL_FORMS": "-3"}):
        assert anna.post(THRESHOLDS, form).status_code == 422
        assert anna.post(STORAGE, form).status_code == 422
        assert anna.post("/teams/harbour/redaction/", form).status_code == 422


def test_second_of_two_is_told_keeps_the_draft_and_may_save_again(team: Team, anna: Client) -> None:
    change(team, thresholds={"auto_percent": 50})
    form = thresholds_form("save", auto_percent="61.5")
    told = anna.post(THRESHOLDS, form)
    assert told.status_code == 409
    assert "olga changed the policy in the meantime" in told.text
    assert 'value="61.5"' in told.text
    assert 'name="base_version" value="1"' in told.text
    assert find_policy(team).thresholds == {"auto_percent": 50}
    assert anna.post(THRESHOLDS, {**form, "base_version": "1"}).status_code == 302
    assert find_policy(team).thresholds == {"auto_percent": 61.5}


def test_viewer_sees_lines_and_history_but_no_form_and_no_undo(team: Team) -> None:
    change(team, thresholds={"preset": "early"})
    change(team, own_patterns={"desk-number": "B-[0-9]{6}"})
    text = client_of("vera").get(THRESHOLDS).text
    assert "127,000" in text
    assert "<del>client</del> <ins>early</ins>" in text
    for hidden in ("Undo", "desk-number", 'name="auto_percent"', "Storage"):
        assert hidden not in text


def test_history_is_read_in_pages_and_undone(team: Team, anna: Client) -> None:
    for percent in range(50, 75):
        change(team, thresholds={"auto_percent": percent})
    change(team, stores_content=True)
    page = anna.get(THRESHOLDS).text
    assert page.count("Undo<") == 20  # the version that changed something else is passed over
    assert "?before=6" in page
    older = anna.get(f"{THRESHOLDS}?before=6").text
    assert older.count("Undo<") == 5
    assert "<del>not set</del> <ins>50%</ins>" in older
    assert "End of list" in older
    assert anna.get(f"{THRESHOLDS}?before={'9' * 400}").status_code == 200
    assert "Version 25 undone." in anna.post("/teams/harbour/policy/25/undo/", follow=True).text
    assert find_policy(team).thresholds == {"auto_percent": 73}
    undone = anna.post("/teams/harbour/policy/26/undo/", follow=True)
    assert undone.redirect_chain == [(STORAGE, 302)]
    assert find_policy(team).stores_content is False
    assert "nothing left to undo" in anna.post("/teams/harbour/policy/26/undo/", follow=True).text
    for version in (0, 99):
        assert anna.post(f"/teams/harbour/policy/{version}/undo/").status_code == 404


def test_queries_do_not_grow_with_sessions_and_versions(team: Team, anna: Client) -> None:
    counted: list[int] = []
    for size in (10, 1000):
        AgentSession.objects.all().delete()
        make_many_sessions(team, size, client_version=lambda number: f"2.1.{number}")
        TeamPolicy.objects.all().delete()
        TeamPolicy.objects.bulk_create(
            TeamPolicy(team=team, version=version, thresholds={"auto_percent": 50 + version % 40})
            for version in range(1, size + 1)
        )
        anna.get(THRESHOLDS)
        cache.clear()  # what every page remembers for a moment is asked for in both rounds
        with CaptureQueriesContext(connection) as queries:
            anna.get(THRESHOLDS)
        counted.append(len(queries))
    assert counted[0] == counted[1]


def test_storage_is_saved_and_keeps_what_other_pages_set(team: Team, anna: Client) -> None:
    change(team, own_patterns={"badge": "B-[0-9]{6}"}, disabled_rules=frozenset({"jwt"}))
    saved = anna.post(STORAGE, storage_form(base=1, stores_content="yes", content_days="30"), follow=True)
    assert "They apply to new data." in saved.text
    settings = find_policy(team)
    assert (settings.stores_content, settings.content_days) == (True, 30)
    assert settings.own_patterns == {"badge": "B-[0-9]{6}"}
    assert settings.disabled_rules == {"jwt"}
    conflict = anna.post(STORAGE, storage_form(base=1))
    assert (conflict.status_code, find_policy(team).stores_content) == (409, True)
    assert 'href="/teams/harbour/redaction/"' in anna.get(STORAGE).text
