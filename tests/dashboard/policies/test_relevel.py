"""Sessions are levelled anew after a change: once, in batches, and on from where a killed run stopped."""

import threading
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from compaction.context.forecast import Forecast, Pace, forecast_remaining
from dashboard import access
from dashboard.accounts.local import ensure_local_owner
from dashboard.jobs.claim import claim_next
from dashboard.jobs.perform import perform_due
from dashboard.jobs.run import JobRun
from dashboard.jobs.sweep import sweep
from dashboard.models import AgentSession, Job, JobState, Team, TeamPolicy, User
from dashboard.pages.session_page import read_header
from dashboard.policies import relevel
from dashboard.policies.changes import RELEVEL, change_policy
from dashboard.policies.in_force import find_policy
from dashboard.session_forecasts import list_ranges
from tests.builders import make_session, make_team
from tests.dashboard.ingest.importing import OTHER, SESSION, run_import
from tests.dashboard.ingest.importing import make_calls as make_transcript_calls
from tests.session_builders import make_calls

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


def test_forecast_is_rebuilt_for_the_new_line_and_comes_back_with_an_undo(tmp_path: Path) -> None:
    """Of a session at work, which goes on while the policy has changed, and of an idle one."""
    idle, active = tmp_path / "idle.jsonl", tmp_path / "active.jsonl"
    idle.write_bytes(make_transcript_calls(*range(40, 61), session=OTHER))
    active.write_bytes(make_transcript_calls(*range(20, 51), session=SESSION))
    owner = ensure_local_owner()
    team = Team.objects.get(is_local=True)
    run_import(tmp_path)
    before = forecasts(team)
    # 15 and 25 calls of 1,000 tokens beyond the opening, and 20 of the usual 1,100.
    assert before == {OTHER: expect(1_057, 167_000 - 60_015), SESSION: expect(1_044, 167_000 - 50_015)}
    assert calls_left(team) == {OTHER: 101, SESSION: 112}

    # To the line at 63,000 the idle session has about 3 calls left, the other one 12.
    set_thresholds(team, auto_percent=35)
    assert perform_due() >= 1
    assert forecasts(team) == {OTHER: expect(1_057, 63_000 - 60_015), SESSION: expect(1_044, 63_000 - 50_015)}
    assert calls_left(team) == {OTHER: 3, SESSION: 12}
    assert soon(team) == {OTHER: True, SESSION: False}
    assert_page_agrees(team, owner)

    active.write_bytes(make_transcript_calls(*range(20, 61), session=SESSION))
    run_import(tmp_path)
    assert soon(team) == {OTHER: True, SESSION: True}
    assert_page_agrees(team, owner)

    # Without a line there is no forecast, and the pace stays.
    set_thresholds(team, is_auto_enabled=False)
    assert perform_due() >= 1
    assert [list_ranges(forecast) for forecast in forecasts(team).values()] == [None, None]
    assert calls_left(team) == {OTHER: None, SESSION: None}
    assert soon(team) == {OTHER: False, SESSION: False}

    set_thresholds(team)
    assert perform_due() >= 1
    assert forecasts(team)[OTHER] == before[OTHER]
    assert forecasts(team)[SESSION] == expect(1_036, 167_000 - 60_015)
    assert_page_agrees(team, owner)


@pytest.mark.parametrize(
    "stored", [None, {"growth": 900, "calls": [1, 2, 3], "turns": [0, 0, 1], "minutes": None}], ids=["none", "ranges"]
)
def test_session_stored_without_a_pace_reads_its_calls(team: Team, stored: dict[str, Any] | None) -> None:
    columns = {"call_count": 31, "context_tokens": 35_500, "forecast": stored}
    for name in ("main", "sub-agent", "unread"):
        make_session(team, name, **columns)
    make_calls(AgentSession.objects.get(external_id="main"), 31)
    make_calls(AgentSession.objects.get(external_id="sub-agent"), 31, agent_id="a1")
    set_thresholds(team, auto_percent=50)
    perform_due()
    known = forecasts(team)
    # 25 calls of 500 tokens beyond the opening, and 20 of the usual 1,100; 54,500 tokens are left to 90,000.
    pace = {"growth_tokens": 767, "calls_per_turn": None, "seconds_per_call": 30.0}
    ranges = {"growth": 767, "calls": [28, 71, 117], "turns": None, "minutes": [12, 36, 66]}
    assert known["main"] == known["sub-agent"] == {"pace": pace, **ranges}
    assert known["unread"] is None


def forecasts(team: Team) -> dict[str, Any]:
    return dict(AgentSession.objects.filter(team=team).values_list("external_id", "forecast"))


def calls_left(team: Team) -> dict[str, int | None]:
    """What the list of sessions is sorted by."""
    return dict(AgentSession.objects.filter(team=team).values_list("external_id", "calls_left"))


def soon(team: Team) -> dict[str, bool]:
    return dict(AgentSession.objects.filter(team=team).values_list("external_id", "is_soon"))


def expect(growth_tokens: int, remaining: int) -> dict[str, Any]:
    """A call a second and no prompt: the forecast of calls that add 1,000 tokens each, as far as they are known."""
    found = forecast_remaining(Pace(growth_tokens, None, 1.0), remaining)
    assert isinstance(found, Forecast)
    assert found.minutes is not None
    return {
        "pace": {"growth_tokens": growth_tokens, "calls_per_turn": None, "seconds_per_call": 1.0},
        "growth": growth_tokens,
        "calls": [found.calls.low, found.calls.likely, found.calls.high],
        "turns": None,
        "minutes": [found.minutes.low, found.minutes.likely, found.minutes.high],
    }


def assert_page_agrees(team: Team, owner: User) -> None:
    for session in AgentSession.objects.filter(team=team):
        header = read_header(access.person(owner), session, now=timezone.now())
        found = header.standing.forecast
        assert isinstance(found, Forecast)
        stored: dict[str, Any] = session.forecast or {}
        assert [found.calls.low, found.calls.likely, found.calls.high] == stored["calls"]
        assert (found.turns and [found.turns.low, found.turns.likely, found.turns.high]) == stored["turns"]
        assert (found.minutes and [found.minutes.low, found.minutes.likely, found.minutes.high]) == stored["minutes"]
        assert found.is_soon == session.is_soon


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
