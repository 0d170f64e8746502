"""The page of what the proxy adds: off at first, saved with audit and history, undone, read by callers at once."""

import pytest
from django.test import Client

from dashboard.models import AuditEvent, Job, Scope, Team, TeamPolicy
from dashboard.policies.in_force import find_policy
from dashboard.policies.proxy_additions import NO_ADDITIONS, ProxyAdditions
from dashboard.proxy.callers import Caller, look_up_key
from tests.builders import make_key, make_team, make_user
from tests.visitors import read, sign_in

pytestmark = pytest.mark.django_db
PROXY = "/teams/harbour/proxy/"
BOTH = {
    "asks_diagnosis": "on",
    "clears_results": "on",
    "clear_above_tokens": "80,000",
    "kept_results": "5",
    "least_cleared_tokens": "30,000",
}
WORDS = "above 80,000 tokens, 5 kept, at least 30,000 at once"


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="olga", admin="anna", member="ben")


@pytest.fixture
def anna(team: Team) -> Client:
    assert team.pk
    return sign_in("anna")


def test_nothing_is_added_until_an_admin_decides_so(team: Team, anna: Client) -> None:
    assert find_policy(team).proxy_additions == NO_ADDITIONS
    assert "requests unchanged" in read(anna, PROXY)


def test_saving_is_audited_told_in_the_history_and_can_be_undone(team: Team, anna: Client) -> None:
    _, text = make_key(team, make_user("ben"), Scope.PROXY)
    assert anna.post(PROXY, {**BOTH, "base_version": "0", "note": "to find out"}).status_code == 302
    wanted = ProxyAdditions(
        asks_diagnosis=True,
        clears_results=True,
        clear_above_tokens=80_000,
        kept_results=5,
        least_cleared_tokens=30_000,
    )
    assert find_policy(team).proxy_additions == wanted
    caller = look_up_key(text)
    assert isinstance(caller, Caller)
    assert caller.additions == wanted
    page = read(anna, PROXY)
    for words in ("requests modified", "to find out", WORDS, 'value="80,000"', 'value="30,000"'):
        assert words in page
    assert not Job.objects.exists()  # no line moved
    changes = AuditEvent.objects.get(action="policy changed").details["changes"]
    assert changes == [
        "cache diagnosis: off → on",
        f"clear old tool results: off → {WORDS}",
    ]
    undone = anna.post("/teams/harbour/policy/1/undo/")
    assert (undone.status_code, undone["Location"]) == (302, PROXY)
    assert find_policy(team).proxy_additions == NO_ADDITIONS
    assert "above 80,000" not in read(anna, "/teams/harbour/storage/")


def test_what_was_decided_before_there_was_a_least_amount_stays_without_one(team: Team) -> None:
    before = {"asks_diagnosis": False, "clears_results": True, "clear_above_tokens": 50_000, "kept_results": 3}
    TeamPolicy.objects.create(team=team, version=1, proxy_additions=before)
    additions = find_policy(team).proxy_additions
    assert additions.least_cleared_tokens == 0
    assert additions.clearing_words == "above 50,000 tokens, 3 kept"


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("clear_above_tokens", "12", "Enter 1,000 to 1,000,000 tokens."),
        ("kept_results", "0", "Enter 1 to 100 results."),
        ("kept_results", "many", "Enter a whole number."),
        ("least_cleared_tokens", "80,000", "Enter 0 or more, below the size above which results are cleared."),
        ("least_cleared_tokens", "-1", "Enter 0 or more, below the size above which results are cleared."),
    ],
)
def test_figures_that_make_no_sense_are_told_at_their_field(anna: Client, field: str, value: str, words: str) -> None:
    answer = anna.post(PROXY, {**BOTH, "base_version": "0", field: value})
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not TeamPolicy.objects.exists()


def test_the_second_of_two_is_told(anna: Client) -> None:
    assert anna.post(PROXY, {**BOTH, "base_version": "0"}).status_code == 302
    late = anna.post(PROXY, {**BOTH, "kept_results": "7", "base_version": "0"})
    assert late.status_code == 409
    assert 'value="7"' in late.content.decode()
