"""The page Redaction as its people use it: rules with counts, switching, own patterns, trying a text, reports."""

from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from dashboard.models import AuditEvent, PromptShape, RedactionCount, RedactionReport, Team, TeamPolicy
from dashboard.policies import redaction_reports
from dashboard.policies.in_force import find_policy
from tests.builders import make_session, make_team
from tests.dashboard.policies.test_policy_pages import change, client_of

pytestmark = pytest.mark.django_db
REDACTION = "/teams/harbour/redaction/"
TRY, SWITCH, REPORTS = f"{REDACTION}try/", f"{REDACTION}rule/", f"{REDACTION}reports/"
API = "/api/v1/teams/harbour/redaction"
HTMX = {"hx-request": "true"}
TOKEN = "ghp_" + "Zq9" * 12
KEY = "plk_" + ("A1b2C3d4E5f" * 4)[:43]


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="olga", admin="anna", member="mia", viewer="vera")


@pytest.fixture
def anna(team: Team) -> Client:
    return client_of("anna")


@pytest.fixture
def mia(team: Team) -> Client:
    return client_of("mia")


def redaction_form(*patterns: tuple[str, str], base: int = 0, **values: str) -> dict[str, str]:
    rows = {
        f"patterns-{at}-{name}": text
        for at, row in enumerate(patterns)
        for name, text in zip(("name", "pattern"), row, strict=True)
    }
    counts = {"patterns-TOTAL_FORMS": str(len(patterns)), "patterns-INITIAL_FORMS": "0"}
    return {"base_version": str(base), **values, **rows, **counts}


def switch(client: Client, rule: str, state: str, *, base: int = 0) -> str:
    return client.post(SWITCH, {"rule": rule, "state": state, "base_version": str(base)}, follow=True).text


def count(team: Team, rule: str, marks: int, *, days_ago: int = 0, segment: int = 1) -> None:
    session = make_session(team, f"{rule} {days_ago} {segment}")
    day = timezone.now().date() - timedelta(days=days_ago)
    RedactionCount.objects.create(team=team, session=session, segment_number=segment, rule=rule, day=day, count=marks)


def put(client: Client, **body: object) -> Any:
    return client.put("/api/v1/teams/harbour/storage", body, content_type="application/json")


def rows_of(text: str) -> list[str]:
    """The names of rules in the order of the page."""
    return [piece.split('"')[0] for piece in text.split('<tr id="rule-')[1:]]


def test_rules_are_listed_most_frequent_first_and_those_without_a_mark_are_folded(team: Team, anna: Client) -> None:
    change(team, stores_content=True, own_patterns={"badge": "B-[0-9]{6}", "old": "O-[0-9]{6}"})
    change(team, own_patterns={"badge": "B-[0-9]{6}"})
    count(team, "github-token", 1_200, days_ago=40)
    count(team, "github-token", 34)
    count(team, "badge", 5_000)
    count(team, "old", 3)
    count(team, "made-up", 9)
    text = anna.get(REDACTION).text
    assert rows_of(text)[:3] == ["badge", "github-token", "old"]
    assert "made-up" not in text
    shown, folded = text.split('<details class="idle-rules"')
    assert "1,234" in shown
    assert ">34<" in shown
    assert "removed" in shown
    assert 'id="rule-jwt"' not in shown
    assert 'id="rule-jwt"' in folded
    assert "rules without a mark" in folded
    assert 'class="is-current"' in anna.get(f"{REDACTION}?rule=jwt").text


def test_page_without_a_mark_says_so(team: Team, anna: Client) -> None:
    assert "stores no content" in anna.get(REDACTION).text
    change(team, stores_content=True)
    text = anna.get(REDACTION).text
    assert "Nothing redacted yet" in text
    assert "stores no content" not in text


def test_admin_switches_a_rule_off_and_undoes_it(team: Team, anna: Client) -> None:
    page = anna.get(REDACTION).text
    assert "JSON Web Token: secrets of this form will be stored unredacted" in page
    assert "Saved." in switch(anna, "jwt", "off")
    assert find_policy(team).disabled_rules == {"jwt"}
    page = anna.get(REDACTION).text
    assert "rule jwt <del>on</del> <ins>off</ins>" in page
    assert "1 turned off" in page
    assert "anna changed the policy in the meantime" in switch(client_of("olga"), "discord-token", "off")
    assert "Version 1 undone." in anna.post("/teams/harbour/policy/1/undo/", follow=True).text
    assert find_policy(team).disabled_rules == frozenset()
    assert find_policy(team).redaction_version == 2
    switch(anna, "jwt", "off", base=2)
    switch(anna, "jwt", "on", base=3)
    assert (find_policy(team).disabled_rules, find_policy(team).redaction_version) == (frozenset(), 4)
    events = AuditEvent.objects.filter(action="policy changed").order_by("pk")
    assert [event.details["changes"] for event in events][:2] == [["rule jwt: on → off"], ["rule jwt: off → on"]]


def test_undo_gives_back_its_own_rule_alone(team: Team, anna: Client) -> None:
    switch(anna, "jwt", "off")
    switch(anna, "discord-token", "off", base=1)
    anna.post("/teams/harbour/policy/1/undo/")
    assert find_policy(team).disabled_rules == {"discord-token"}


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("plimsoll-key", "The rule plimsoll-key cannot be turned off"),
        ("private-key", "The rule private-key cannot be turned off"),
        ("no-such-rule", "Unknown redaction rule"),
    ],
)
def test_some_rules_stay_on_and_others_do_not_exist(team: Team, anna: Client, rule: str, sentence: str) -> None:
    assert sentence in switch(anna, rule, "off")
    assert not TeamPolicy.objects.exists()


def test_own_pattern_is_switched_off_and_forgotten_as_a_rule_with_the_pattern(team: Team, anna: Client) -> None:
    anna.post(REDACTION, redaction_form(("badge", "B-[0-9]{6}")))
    switch(anna, "badge", "off", base=1)
    assert find_policy(team).disabled_rules == {"badge"}
    anna.post(REDACTION, redaction_form(base=2))
    assert (find_policy(team).own_patterns, find_policy(team).disabled_rules) == ({}, frozenset())


def test_members_read_the_page_and_viewers_do_not_try(team: Team, mia: Client) -> None:
    change(team, own_patterns={"badge": "B-[0-9]{6}"})
    text = mia.get(REDACTION).text
    assert "badge" in text
    for hidden in ("B-[0-9]{6}", "Turn off", "Save patterns", "Undo", "Resolve"):
        assert hidden not in text
    assert "Only admins can turn rules on and off." in text
    tried = mia.post(TRY, {"sample": f"B-123456 and {TOKEN}"}, headers=HTMX).text
    assert ">[redacted:badge]</a> and <a" in tried
    assert TOKEN not in tried
    # Patterns that a member sends along are not tried.
    drafted = mia.post(TRY, redaction_form(("x", "C-[0-9]{4}"), sample="C-1234"), headers=HTMX).text
    assert "No rule matches" in drafted
    assert "id_patterns" not in drafted  # their page has no such field
    viewer = client_of("vera").get(REDACTION).text
    assert "Test redaction" not in viewer
    assert "Report a false redaction" not in viewer


def test_text_is_tried_with_drafts_and_not_stored(team: Team, anna: Client) -> None:
    sample = f"{TOKEN} <b>met</b> B-123456 and B-1"
    for headers in ({}, HTMX):
        response = anna.post(TRY, redaction_form(("badge", "B-[0-9]{6}"), sample=sample), headers=headers)
        assert response.status_code == 200
        assert ">[redacted:github-token]</a> &lt;b&gt;met&lt;/b&gt; <a" in response.text
        assert "<b>1</b> badge" in response.text
    switched = anna.post(TRY, redaction_form(sample=sample, switched="github-token"), headers=HTMX).text
    assert TOKEN in switched
    assert not TeamPolicy.objects.exists()
    switch(anna, "github-token", "off")
    assert TOKEN in anna.post(TRY, {"sample": sample}, headers=HTMX).text
    again_on = anna.post(TRY, {"sample": sample, "switched": "github-token"}, headers=HTMX).text
    assert TOKEN not in again_on
    assert "No rule matches" in anna.post(TRY, {"sample": "plain"}, headers=HTMX).text


def test_text_that_is_too_long_is_refused_with_a_sentence(team: Team, mia: Client) -> None:
    too_long = {"sample": "x" * 20_001}
    page = mia.post(TRY, too_long)
    assert page.status_code == 422
    fragment = mia.post(TRY, too_long, headers=HTMX)
    for response in (page, fragment):
        assert "The text has 20001 characters; the limit is 20,000." in response.text
    assert mia.post(TRY, {"sample": "x" * 20_000}).status_code == 200


@pytest.mark.parametrize(
    ("patterns", "sentence"),
    [
        ([("badge", "B-[0-9]+")], "has an unbounded repeat"),
        ([("badge", "")], "Enter the pattern."),
        ([("", "B-1")], "Enter a name."),
        ([("Badge", "B-1")], "use lower-case letters"),
        ([("badge", "B-1"), ("badge", "B-2")], "The name badge is already in use."),
        ([("badge", "(")], "is not a valid RE2 expression"),
        ([("badge", "B" * 501)], "at most 500 characters"),
    ],
)
def test_pattern_that_cannot_be_used_is_told_at_its_field(
    team: Team, anna: Client, patterns: list[tuple[str, str]], sentence: str
) -> None:
    for url in (REDACTION, TRY):
        response = anna.post(url, redaction_form(*patterns, sample="B-1"))
        assert response.status_code == 422
        assert sentence in response.text
    assert not TeamPolicy.objects.exists()


def test_second_of_two_who_save_patterns_is_told(team: Team, anna: Client) -> None:
    assert anna.post(REDACTION, redaction_form(("badge", "B-[0-9]{6}"))).status_code == 302
    conflict = anna.post(REDACTION, redaction_form(("crate", "C-[0-9]{4}")))
    assert (conflict.status_code, find_policy(team).own_patterns) == (409, {"badge": "B-[0-9]{6}"})
    assert "C-[0-9]{4}" in conflict.text
    assert 'name="base_version" value="1"' in conflict.text


def test_report_holds_what_was_typed_redacted_and_is_resolved(team: Team, mia: Client, anna: Client) -> None:
    change(team, own_patterns={"badge": "B-[0-9]{6}"}, disabled_rules=frozenset({"badge"}))
    report = {"rule": "github-token", "note": f"tests of {TOKEN}, B-123456", "example": f"{TOKEN} {KEY} B-123456"}
    assert "Report on github-token sent." in mia.post(REPORTS, report, follow=True).text
    stored = RedactionReport.objects.get()
    assert (stored.rule, stored.reported_by_name) == ("github-token", "mia")
    assert stored.note == "tests of [redacted:github-token], [redacted:badge]"
    assert stored.example == f"{TOKEN} [redacted:plimsoll-key] [redacted:badge]"
    page = anna.get(REDACTION).text
    assert "1 report<" in page
    assert "False redaction by rule github-token" in page
    assert mia.post(f"{REPORTS}{stored.pk}/resolve/").status_code == 403
    assert client_of("vera").post(REPORTS, report).status_code == 403
    resolved = anna.post(f"{REPORTS}{stored.pk}/resolve/", follow=True).text
    assert "Report on github-token resolved." in resolved
    assert not RedactionReport.objects.exists()
    assert anna.post(f"{REPORTS}{stored.pk}/resolve/").status_code == 404
    actions = AuditEvent.objects.filter(subject="github-token").order_by("pk").values_list("action", "actor_name")
    assert list(actions) == [("false redaction reported", "mia"), ("redaction report resolved", "anna")]


def test_example_of_a_rule_that_stays_on_is_redacted_by_it_too(team: Team, mia: Client) -> None:
    mia.post(REPORTS, {"rule": "plimsoll-key", "example": KEY})
    assert RedactionReport.objects.get().example == "[redacted:plimsoll-key]"


def test_report_that_cannot_be_taken_is_refused(team: Team, mia: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for report, sentence in (
        ({"rule": ""}, "Choose the rule that redacted too much."),
        ({"rule": "no-such"}, "is not one of the available choices"),
        ({"rule": "jwt", "note": "x" * 501}, "at most 500 characters"),
        ({"rule": "jwt", "example": "x" * 2_001}, "at most 2000 characters"),
    ):
        refused = mia.post(REPORTS, report)
        assert (refused.status_code, sentence in refused.text) == (422, True), report
    monkeypatch.setattr(redaction_reports, "MOST_REPORTS", 1)
    mia.post(REPORTS, {"rule": "jwt"})
    assert "1 open reports" in mia.post(REPORTS, {"rule": "jwt"}, follow=True).text
    assert RedactionReport.objects.count() == 1


def test_queries_do_not_grow_with_marks_and_reports(team: Team, anna: Client) -> None:
    counted: list[int] = []
    for size in (5, 300):
        session = make_session(team, f"session {size}")
        day = timezone.now().date()
        RedactionCount.objects.bulk_create(
            RedactionCount(team=team, session=session, segment_number=n, rule="jwt", day=day, count=n + 1)
            for n in range(size)
        )
        RedactionReport.objects.bulk_create(
            RedactionReport(team=team, rule="jwt", reported_by_name="mia") for _ in range(size)
        )
        anna.get(REDACTION)
        cache.clear()
        with CaptureQueriesContext(connection) as queries:
            anna.get(REDACTION)
        counted.append(len(queries))
    assert counted[0] == counted[1]


def test_api_has_the_counts_and_switches_rules(team: Team, anna: Client, mia: Client) -> None:
    count(team, "github-token", 7)
    found = mia.get(API).json()
    assert found["rules"][0] == {
        "name": "github-token",
        "what": "GitHub token (personal, OAuth, app, refresh)",
        "kind": "built_in",
        "is_on": True,
        "is_always_on": False,
        "problem": "",
        "mark_count": 7,
        "recent_mark_count": 7,
        "last_day": timezone.now().date().isoformat(),
        "report_count": 0,
    }
    storage = {"base_version": 0, "stores_content": True, "own_patterns": {"badge": "B-[0-9]{6}"}}
    changed = put(anna, **storage, disabled_rules=["jwt", "badge"]).json()
    assert changed["disabled_rules"] == ["badge", "jwt"]
    kept = put(anna, **storage | {"base_version": 1, "content_days": 9}).json()
    assert (kept["disabled_rules"], kept["content_days"]) == (["badge", "jwt"], 9)
    for rule in ("plimsoll-key", "nothing"):
        refused = put(anna, **storage | {"base_version": 2, "disabled_rules": [rule]})
        assert (refused.status_code, rule in refused.json()["detail"]) == (422, True)
    states = {rule["name"]: rule["is_on"] for rule in mia.get(API).json()["rules"]}
    assert (states["jwt"], states["badge"], states["github-token"]) == (False, False, True)


def test_counts_of_another_team_are_not_seen(team: Team, anna: Client) -> None:
    other = make_team("Quay", owner="quentin")
    count(other, "github-token", 7)
    PromptShape.objects.create(team=other, digest="d", prints={})
    RedactionReport.objects.create(team=other, rule="jwt", reported_by_name="quentin")
    assert 'id="rule-github-token"' in anna.get(REDACTION).text.split("idle-rules")[1]
    assert anna.get("/teams/quay/redaction/").status_code == 404
