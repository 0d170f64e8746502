"""Runs through the API: previewed, started, listed, read, cancelled, revised; words only for those who may read."""

from typing import Any

import pytest
from django.test import Client

from dashboard.jobs.perform import perform_due
from dashboard.models import AgentSession, CompactionRun, Job, JobState, Scope, Team
from tests.builders import make_key, make_user
from tests.dashboard.runs.test_predicted_losses import add_run, write_forgetful_talk
from tests.dashboard.runs.world import give_key, make_harbour, record_session
from tests.session_rows import make_run
from tests.visitors import sign_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def team() -> Team:
    return make_harbour()


@pytest.fixture
def session(team: Team) -> AgentSession:
    return record_session(team)


def send(client: Client, path: str, body: object = None, **headers: str) -> tuple[int, Any]:
    answer = client.post(f"/api/v1/{path}", body or {}, content_type="application/json", headers=headers)
    return answer.status_code, answer.json()


def read(client: Client, path: str, **headers: str) -> Any:
    answer = client.get(f"/api/v1/{path}", headers=headers)
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_walk_from_preview_to_revision(team: Team, session: AgentSession) -> None:
    give_key(team)
    alice = sign_in("alice")
    asked = {"kind": "full", "summarizer": "claude", "instructions": "Keep the basins."}
    status, preview = send(alice, f"sessions/{session.pk}/runs/preview", asked)
    assert status == 200
    assert (preview["refusals"], preview["model"], preview["path"]) == ([], "claude-haiku-4-5", "plain")
    assert "Keep the basins." in preview["prompt"]
    assert preview["costs"][0]["most_usd"] is not None
    assert not CompactionRun.objects.exists()

    status, run = send(alice, f"sessions/{session.pk}/runs", asked)
    assert (status, run["state"], run["stage"], run["started_by"]) == (201, "queued", "queued", "alice")
    assert run["reserved_usd"] == preview["costs"][0]["most_usd"]
    status, told = send(alice, f"sessions/{session.pk}/runs", asked)
    assert (status, told["code"], told["figures"]) == (409, "run_open", {"run_id": run["id"]})
    perform_due()

    found = read(alice, f"runs/{run['id']}")
    assert (found["state"], found["spent_usd"], len(found["attempts"])) == ("done", "0.05450000", 1)
    assert found["revisions"][0]["text"].startswith("1. Primary Request and Intent")
    assert found["restored"][0]["name"].startswith("/home/ann/basin_")
    assert [row["id"] for row in read(alice, f"sessions/{session.pk}/runs")["items"]] == [run["id"]]

    status, revision = send(alice, f"runs/{run['id']}/revisions", {"text": "Shorter.", "base_number": 1})
    assert (status, revision["number"], revision["edited_by"], revision["text"]) == (201, 2, "alice", "Shorter.")
    status, told = send(alice, f"runs/{run['id']}/revisions", {"text": "Other.", "base_number": 1})
    assert (status, told["code"]) == (409, "revised_meanwhile")


def test_words_are_withheld_and_numbers_are_not(session: AgentSession) -> None:
    status, run = send(sign_in("alice"), f"sessions/{session.pk}/runs", {"instructions": "Keep the basins."})
    assert status == 201
    perform_due()
    for name in ("vera", "anna"):
        found = read(sign_in(name), f"runs/{run['id']}")
        assert (found["state"], found["content"]) == ("done", "not granted")
        assert found["after_tokens"] > 0
        assert found["revisions"][0]["retained_percent"] == "100.0"
        assert found["revisions"][0]["parts"][0]["part"] == "requirements"
        assert found["instructions"] is found["revisions"][0]["text"] is found["revisions"][0]["lost"] is None
        assert "basin" not in str(found)
    status, preview = send(sign_in("anna"), f"sessions/{session.pk}/runs/preview", {})
    assert (status, preview["prompt"]) == (200, None)
    assert (preview["losses"]["source"], preview["losses"]["lost_count"]) == ("dry_run", 0)
    assert preview["losses"]["lost"] is None


def test_preview_predicts_the_losses_of_the_run(team: Team) -> None:
    session = record_session(team, write_forgetful_talk())
    status, preview = send(sign_in("alice"), f"sessions/{session.pk}/runs/preview", {})
    losses = preview["losses"]
    assert (status, losses["source"], len(losses["lost"])) == (200, "dry_run", 3)
    status, run = send(sign_in("alice"), f"sessions/{session.pk}/runs", {})
    perform_due()
    [revision] = read(sign_in("alice"), f"runs/{run['id']}")["revisions"]
    for name in ("lost_count", "retained_percent"):
        assert losses[name] == revision[name]
    assert losses["lost"] == revision["lost"][:3]
    status, preview = send(sign_in("alice"), f"sessions/{session.pk}/runs/preview", {"kind": "from"})
    assert (status, preview["losses"]) == (200, None)


def test_preview_of_a_model_has_the_range_of_earlier_runs(team: Team, session: AgentSession) -> None:
    give_key(team)
    asked = {"summarizer": "claude"}
    _, preview = send(sign_in("alice"), f"sessions/{session.pk}/runs/preview", asked)
    assert (preview["losses"]["source"], preview["losses"]["run_count"]) == ("none", 0)
    for number in range(5):
        add_run(session, f"{70 + number}.0", 9 - number)
    _, preview = send(sign_in("alice"), f"sessions/{session.pk}/runs/preview", asked)
    assert preview["losses"] == {
        "source": "earlier_runs",
        "lost_count": None,
        "retained_percent": None,
        "lost": [],
        "run_count": 5,
        "lost_range": {"low": 5, "median": 7, "high": 9},
        "retained_range": {"low": "70.0", "median": "72.0", "high": "74.0"},
    }


def test_refusals_of_a_preview_are_told_with_their_figures(team: Team, session: AgentSession) -> None:
    give_key(team, daily_cap_usd="0.01")
    status, preview = send(sign_in("alice"), f"sessions/{session.pk}/runs/preview", {"summarizer": "claude"})
    assert status == 200
    [refusal] = preview["refusals"]
    assert refusal["code"] == "cap_reached"
    assert refusal["figures"]["cap_usd"] == "0.01000000"
    status, told = send(sign_in("alice"), f"sessions/{session.pk}/runs", {"summarizer": "claude"})
    assert (status, told["code"], told["detail"]) == (409, "cap_reached", refusal["sentence"])


def test_key_for_compactions_starts_and_watches_without_reading(team: Team, session: AgentSession) -> None:
    _, text = make_key(team, make_user("alice"), Scope.COMPACT)
    headers = {"authorization": f"Bearer {text}"}
    status, run = send(Client(), f"sessions/{session.pk}/runs", {}, **headers)
    assert status == 201
    perform_due()
    found = read(Client(), f"runs/{run['id']}", **headers)
    assert (found["state"], found["revisions"][0]["text"]) == ("done", None)


def test_cancel_ends_a_waiting_run_and_an_ended_one_is_refused(session: AgentSession) -> None:
    alice = sign_in("alice")
    _, run = send(alice, f"sessions/{session.pk}/runs", {})
    status, told = send(alice, f"runs/{run['id']}/cancel")
    assert (status, told["state"]) == (200, "cancelled")
    status, told = send(alice, f"runs/{run['id']}/cancel")
    assert (status, told["code"]) == (409, "run_ended")


def test_run_whose_job_died_is_told_as_failed(session: AgentSession) -> None:
    alice = sign_in("alice")
    _, run = send(alice, f"sessions/{session.pk}/runs", {})
    Job.objects.filter(kind="compact").update(state=JobState.DEAD)
    found = read(alice, f"runs/{run['id']}")
    assert (found["state"], found["failure"]["code"]) == ("failed", "worker_lost")
    assert "The session is as it was" in found["failure"]["kept"]
    assert found["failure"]["advice"]


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "whole"},
        {"summarizer": "gpt"},
        {"pivot_uuid": "x\x00y"},
        {"model": "m" * 201},
        {"instructions": "x" * 10_001},
        {"pivott": "x"},
        [],
    ],
)
def test_what_cannot_be_read_is_422(session: AgentSession, body: object) -> None:
    status, _ = send(sign_in("alice"), f"sessions/{session.pk}/runs", body or "[]")
    assert status == 422


def test_list_goes_on_where_it_stopped(session: AgentSession) -> None:
    runs = [make_run(session).pk for _ in range(5)]
    alice = sign_in("alice")
    first = read(alice, f"sessions/{session.pk}/runs?limit=3")
    assert [row["id"] for row in first["items"]] == runs[:1:-1]
    rest = read(alice, f"sessions/{session.pk}/runs?limit=3&before={first['next']}")
    assert ([row["id"] for row in rest["items"]], rest["next"]) == (runs[1::-1], None)
