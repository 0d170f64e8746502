"""The policy over the API: read, changed by a program, previewed, its history, storage."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.models import AuditEvent, Scope, Team, TeamPolicy
from dashboard.policies.in_force import find_policy
from tests.builders import make_key, make_session, make_team, make_user

pytestmark = pytest.mark.django_db
POLICY, STORAGE = "/api/v1/teams/harbour/policy", "/api/v1/teams/harbour/storage"


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="olga")


@pytest.fixture
def program(team: Team) -> Client:
    _, text = make_key(team, make_user("olga"), Scope.READ, Scope.ADMIN)
    return Client(headers={"authorization": f"Bearer {text}"})


def put(client: Client, url: str = POLICY, **body: Any) -> Any:
    return client.put(url, body, content_type="application/json")


def test_program_reads_changes_and_reads_again(program: Client) -> None:
    first = program.get(POLICY).json()
    assert (first["version"], first["changed_by"], first["changed_at"]) == (0, "", None)
    assert first["windows"][0]["lines"][0] == {
        "name": "warning",
        "tokens": 147_000,
        "before": 147_000,
        "formula": "auto - 20,000",
    }
    wanted = {"preset": "early", "auto_percent": 82.5, "models": {"claude-opus-4-5": {"is_auto_enabled": False}}}
    changed = put(program, base_version=0, thresholds=wanted, note="sooner").json()
    assert (changed["version"], changed["changed_by"]) == (1, "olga")
    assert changed["thresholds"]["auto_percent"] == 82.5
    assert changed["windows"][2]["lines"][2]["tokens"] is None
    assert program.get(POLICY).json() == changed
    assert put(program, base_version=0, thresholds=wanted).json()["version"] == 1
    assert AuditEvent.objects.filter(action="policy changed").count() == 1


REFUSED: list[tuple[int, str, dict[str, Any]]] = [
    (409, "olga changed the policy in the meantime", {"base_version": 0, "thresholds": {}}),
    (422, "below the warning threshold", {"base_version": 1, "thresholds": {"error_margin_tokens": 50_000}}),
    (422, "from 0 to 100,000,000", {"base_version": 1, "thresholds": {"reserve_tokens": -1}}),
    (422, "exceeded maximum size", {"base_version": 1, "thresholds": {"window_tokens": 10**30}}),
    (422, "from 1 to 100", {"base_version": 1, "thresholds": {"auto_percent": 1e300}}),
    (422, "Enter the model", {"base_version": 1, "thresholds": {"models": {"": {"auto_percent": 5}}}}),
    (422, "Extra inputs", {"base_version": 1, "thresholds": {"colour": "red"}}),
    (422, "base_version", {"thresholds": {}}),
]


@pytest.mark.parametrize(("status", "words", "body"), REFUSED)
def test_change_that_cannot_be_is_refused_with_a_sentence(
    program: Client, status: int, words: str, body: dict[str, Any]
) -> None:
    put(program, base_version=0, thresholds={"preset": "early"})
    response = put(program, **body)
    assert response.status_code == status
    assert words in str(response.json()["detail"])
    assert TeamPolicy.objects.count() == 1


def test_preview_draws_and_counts_and_saves_nothing(team: Team, program: Client) -> None:
    make_session(team, "one", peak_tokens=130_000, last_at=timezone.now())
    body = {"thresholds": {"preset": "early"}}
    answer = program.post(f"{POLICY}/preview", body, content_type="application/json").json()
    assert answer["windows"][0]["lines"][0] | {"formula": ""} == {
        "name": "warning",
        "tokens": 127_000,
        "before": 147_000,
        "formula": "",
    }
    assert answer["effect"]["lines"][0] == {"line": "warning", "before": 0, "after": 1}
    assert answer["effect"]["sentence"].startswith("In the last 30 days 1 more session")
    refused = {"thresholds": {"auto_margin_tokens": 1}}
    assert program.post(f"{POLICY}/preview", refused, content_type="application/json").status_code == 422
    assert not TeamPolicy.objects.exists()


def test_history_tells_of_thresholds_alone(team: Team, program: Client) -> None:
    owner = Client()
    owner.force_login(make_user("olga"), backend="django.contrib.auth.backends.ModelBackend")
    put(program, base_version=0, thresholds={"preset": "early"}, note="sooner")
    stored = put(owner, STORAGE, base_version=1, stores_content=True, own_patterns={"badge": "B-[0-9]{6}"}).json()
    days = {"content_days": None, "metrics_days": None}
    redaction = {"own_patterns": {"badge": "B-[0-9]{6}"}, "disabled_rules": []}
    assert stored == {"version": 2, "stores_content": True, **redaction, **days}
    assert owner.get(STORAGE).json() == stored
    put(program, base_version=2, thresholds={})
    assert find_policy(team).stores_content
    history = program.get(f"{POLICY}/history").json()
    assert history["next"] is None
    assert [(change["version"], change["note"], change["differences"]) for change in history["items"]] == [
        (3, "", [{"title": "preset", "before": "early", "after": "client"}]),
        (1, "sooner", [{"title": "preset", "before": "client", "after": "early"}]),
    ]
    assert len(program.get(f"{POLICY}/history?before=3").json()["items"]) == 1
    assert program.get(f"{POLICY}/history?before={10**30}").status_code in (200, 422)
    refused = put(owner, STORAGE, base_version=3, stores_content=True, own_patterns={"badge": "B+"})
    assert (refused.status_code, "has an unbounded repeat" in refused.json()["detail"]) == (422, True)


def test_history_goes_on_past_versions_of_other_things(team: Team, program: Client) -> None:
    """Every other version is about storage: pages are full all the same, and `next` leads to every change once."""
    TeamPolicy.objects.bulk_create(
        TeamPolicy(
            team=team,
            version=version,
            thresholds={"auto_percent": 20 + version // 2 % 60},
            stores_content=version // 2 % 2 == version % 2,
        )
        for version in range(1, 241)
    )
    seen: list[int] = []
    sizes: list[int] = []
    following = ""
    while True:
        page = program.get(f"{POLICY}/history{following}").json()
        seen += [change["version"] for change in page["items"]]
        sizes.append(len(page["items"]))
        if page["next"] is None:
            break
        following = f"?before={page['next']}"
    assert seen == sorted(set(seen), reverse=True)
    assert sizes == [50, 50, 21]


def test_program_undoes_a_change(team: Team, program: Client) -> None:
    put(program, base_version=0, thresholds={"auto_percent": 70})
    put(program, base_version=1, thresholds={"auto_percent": 70, "reserve_tokens": 15_000})
    undone = program.post(f"{POLICY}/1/undo").json()
    assert (undone["version"], undone["thresholds"]["auto_percent"], undone["thresholds"]["reserve_tokens"]) == (
        3, None, 15_000,
    )  # fmt: skip
    again = program.post(f"{POLICY}/1/undo")
    assert (again.status_code, "nothing left to undo" in again.json()["detail"]) == (409, True)
    assert program.post(f"{POLICY}/9/undo").status_code == 404


def test_program_does_not_undo_what_is_stored(team: Team, program: Client) -> None:
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    assert program.post(f"{POLICY}/1/undo").status_code == 403
    assert find_policy(team).stores_content
