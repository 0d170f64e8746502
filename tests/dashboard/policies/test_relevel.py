"""Sessions are levelled anew after a change: once, in batches, and on from where a killed run stopped."""

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from dashboard.jobs.claim import claim_next
from dashboard.jobs.perform import perform_due
from dashboard.jobs.run import JobRun
from dashboard.jobs.sweep import sweep
from dashboard.models import AgentSession, Job, JobState, Team, TeamPolicy
from dashboard.policies import relevel
from dashboard.policies.changes import RELEVEL, change_policy
from dashboard.policies.in_force import find_policy
from tests.builders import make_session, make_team

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(monkeypatch: pytest.MonkeyPatch) -> Team:
    monkeypatch.setattr(relevel, "BATCH", 2)
    return make_team("Harbour")


def set_thresholds(team: Team, **thresholds: object) -> Job:
    current = find_policy(team)
    wanted = replace(current, thresholds=thresholds)
    version = change_policy(team, wanted, by=None, base_version=current.version).version
    return Job.objects.get(key=f"{RELEVEL}:{team.pk}:{version}")


def figures(team: Team) -> dict[str, tuple[Any, ...]]:
    columns = ("level", "level_rank", "percent_left", "window_tokens", "auto_line_tokens", "version", "policy_version")
    return {row[0]: row[1:] for row in AgentSession.objects.filter(team=team).values_list("external_id", *columns)}


def test_each_session_gets_the_figures_of_the_new_policy(team: Team) -> None:
    make_session(team, "short")
    make_session(team, "old client", client_version="2.1.20")
    make_session(team, "reported", reported_window_tokens=1_000_000, context_tokens=930_000)
    make_session(team, "unknown", model="qwen-coder")
    make_session(team, "own values", model="us.anthropic.claude-opus-4-5-20251101-v1:0")
    stranger = make_session(make_team("Marina"), "stranger")
    models = {"claude-opus-4-5": {"is_auto_enabled": False, "window_tokens": 400_000}}
    job = set_thresholds(team, preset="early", models=models)
    assert perform_due() == 1
    job.refresh_from_db()
    assert (job.state, job.result) == (JobState.DONE, {"sessions": 5, "changed": 4})
    assert (job.progress_done, job.progress_total) == (5, 5)
    assert figures(team) == {
        "short": ("error", 3, 10, 200_000, 167_000, 1, 1),
        "old client": ("error", 3, 3, 200_000, 155_000, 1, 1),
        "reported": ("warning", 2, 4, 1_000_000, 967_000, 1, 1),
        "unknown": ("not known", 0, None, None, None, 0, 1),
        "own values": ("ok", 1, 61, 400_000, None, 1, 1),
    }
    stranger.refresh_from_db()
    assert (stranger.level, stranger.version, stranger.policy_version) == ("not known", 0, 0)


def test_second_run_changes_nothing_and_a_change_back_changes_all(team: Team) -> None:
    for number in range(5):
        make_session(team, f"s{number}")
    set_thresholds(team, auto_percent=50)
    perform_due()
    first = figures(team)
    again = Job.objects.create(kind=RELEVEL, key="again", team=team, payload={"version": 1})
    perform_due()
    again.refresh_from_db()
    assert again.result == {"sessions": 0, "changed": 0}
    assert figures(team) == first
    set_thresholds(team)
    perform_due()
    assert set(figures(team).values()) == {("error", 3, 10, 200_000, 167_000, 2, 2)}


def test_sessions_of_a_change_of_storage_are_not_touched(team: Team) -> None:
    set_thresholds(team, preset="early")
    make_session(team, "recorded since", policy_version=1)
    change_policy(team, replace(find_policy(team), stores_content=True), by=None, base_version=1)
    Job.objects.filter(key__endswith=":late").update(due_at=None)
    assert perform_due() == 2
    assert figures(team)["recorded since"][-1] == 1


def test_forecast_to_a_line_that_moved_is_forgotten(team: Team) -> None:
    told = {"calls": [5, 9, 14]}
    for name, line in (("moved", 167_000), ("stayed", 90_000)):
        make_session(team, name, auto_line_tokens=line, forecast=told, level="ok", window_tokens=200_000)
    set_thresholds(team, auto_percent=50)
    perform_due()
    kept = dict(AgentSession.objects.values_list("external_id", "forecast"))
    assert kept == {"moved": None, "stayed": told}


class Killed(BaseException):
    """The process is gone: nothing after this line of the run happens."""


class DyingRun(JobRun):
    def report(self, **_: object) -> None:
        raise Killed


def test_killed_run_is_taken_up_where_it_stopped(team: Team, settings: Settings) -> None:
    settings.RECURRING_JOBS = {}
    for number in range(5):
        make_session(team, f"s{number}")
    job = set_thresholds(team, preset="early")
    claim = claim_next(worker="first", kinds=[RELEVEL], now=timezone.now())
    assert claim is not None
    with pytest.raises(Killed):
        relevel.relevel_sessions(DyingRun(claim, threading.Event()))
    done = {name for name, row in figures(team).items() if row[-1] == 1}
    assert len(done) == 2
    sweep(timezone.now() + timedelta(minutes=2))
    assert perform_due() == 1
    job.refresh_from_db()
    assert (job.state, job.attempts, job.result) == (JobState.DONE, 2, {"sessions": 3, "changed": 3})
    assert {row[-2:] for row in figures(team).values()} == {(1, 1)}


def test_policy_that_changes_during_the_run_holds_for_the_rest(team: Team) -> None:
    for number in range(4):
        make_session(team, f"s{number}")
    job = set_thresholds(team, preset="early")
    claim = claim_next(worker="first", kinds=[RELEVEL], now=timezone.now())
    assert claim is not None
    with pytest.raises(Killed):
        relevel.relevel_sessions(DyingRun(claim, threading.Event()))
    TeamPolicy.objects.create(team=team, version=2, thresholds={"auto_percent": 50})
    relevel.relevel_sessions(JobRun(claim, threading.Event()))
    job.refresh_from_db()
    assert job.result == {"sessions": 2, "changed": 2}
    assert sorted(row[-1] for row in figures(team).values()) == [1, 1, 2, 2]


def test_job_without_a_team_fails_with_a_sentence() -> None:
    job = Job.objects.create(kind=RELEVEL, key="lost", payload={"version": 1})
    perform_due()
    job.refresh_from_db()
    assert (job.state, job.last_error) == (JobState.FAILED, "The job does not say which team's policy changed.")
