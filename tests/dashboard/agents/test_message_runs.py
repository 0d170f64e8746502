"""Messages that are compacted by a run: kept only where it begins, in a session of one's own, with their figures."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.jobs.perform import perform_due
from dashboard.models import AgentSession, ApiCall, CompactionRun, EntrySegment, Scope, Team, TeamPolicy
from dashboard.retention.deletion import delete_session
from tests.builders import make_key, make_session, make_team, make_user
from tests.dashboard.runs.conftest import script
from tests.dashboard.runs.scripted import Script
from tests.dashboard.runs.world import give_key

pytestmark = pytest.mark.django_db(transaction=True)
__all__ = ["script"]

MODEL = "claude-opus-4-5"
MESSAGES = [
    {"role": "user", "content": "Look at the basins. Never touch the wall."},
    {"role": "assistant", "content": "The first basin is deep."},
    {"role": "user", "content": "And the second?"},
]


@pytest.fixture
def team() -> Team:
    team = make_team("Harbour", owner="alice", admin="anna", member="bob")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    give_key(team)
    return team


def compact(team: Team, who: str = "bob", *scopes: Scope, **body: object) -> tuple[int, Any]:
    key = make_key(team, make_user(who), *(scopes or (Scope.COMPACT,)))[1]
    sent = {"model": MODEL, "kind": "full", "summarizer": "claude", "messages": MESSAGES, **body}
    headers = {"Authorization": f"Bearer {key}"}
    answer = Client().post("/api/v1/compact", sent, content_type="application/json", headers=headers)
    return answer.status_code, answer.json()


def count_kept() -> tuple[int, int]:
    return AgentSession.objects.count(), EntrySegment.objects.count()


@pytest.mark.parametrize("who", ["bob", "anna"])
def test_a_colleagues_session_gets_no_lines(team: Team, who: str) -> None:
    make_session(team, "alices", owner=make_user("alice"))
    before = count_kept()
    status, told = compact(team, who, session="alices")
    assert status == 403
    assert told["detail"].endswith(".")
    assert count_kept() == before


def test_a_run_that_is_refused_keeps_nothing(team: Team) -> None:
    settings = team.summarizer_settings
    settings.daily_cap_usd = 0
    settings.save()
    assert compact(team)[1]["code"] == "cap_reached"
    assert compact(team, summarizer_model="harbour-own-1")[1]["code"] == "model_not_allowed"
    settings.delete()
    assert compact(team)[1]["code"] == "no_key"
    assert compact(team, messages=[])[1]["code"] == "nothing_to_compact"
    TeamPolicy.objects.update(stores_content=False)
    assert compact(team)[1]["code"] == "no_content"
    assert count_kept() == (0, 0)
    assert not CompactionRun.objects.exists()


def test_a_second_run_under_one_name_waits_for_the_first(team: Team) -> None:
    assert compact(team, session="mine")[0] == 202
    before = count_kept()
    more = [*MESSAGES, {"role": "assistant", "content": "Deep as well."}]
    status, told = compact(team, session="mine", messages=more)
    assert (status, told["code"], count_kept()) == (409, "run_open", before)
    perform_due()
    assert compact(team, session="mine", messages=more)[0] == 202
    assert AgentSession.objects.count() == 1


def test_a_deleted_name_stays_away(team: Team) -> None:
    compact(team, session="gone")
    perform_due()
    delete_session(AgentSession.objects.get(), by=None, now=timezone.now())
    status, told = compact(team, session="gone")
    assert (status, told["code"]) == (409, "session_deleted")
    assert count_kept() == (0, 0)


def test_figures_and_lines_of_the_agent_hold_for_the_run(team: Team) -> None:
    told: dict[str, Any] = {
        "usage": {"input_tokens": 150_000, "output_tokens": 500},
        "policy": {"auto_margin_tokens": 30_000},
        "window_tokens": 300_000,
    }
    assert compact(team, **told)[0] == 202
    run = CompactionRun.objects.get()
    assert (run.line_tokens, run.before_origin) == (250_000, "measured")
    assert run.before_tokens is not None
    assert 150_500 < run.before_tokens < 151_000
    assert 149_000 < run.prefix_tokens < run.before_tokens
    before = run.before_tokens, run.prefix_tokens
    perform_due()
    run.refresh_from_db()
    assert (run.state, run.line_tokens, run.before_origin) == ("done", 250_000, "measured")
    assert (run.before_tokens, run.prefix_tokens) == before
    assert run.after_tokens is not None
    assert run.after_tokens > run.prefix_tokens
    assert not ApiCall.objects.exists()  # its usage is of a call that others tell of


def test_system_and_tools_count_where_there_is_no_usage(team: Team) -> None:
    compact(team, system="Be careful. " * 1_000, tools=[{"name": "Read", "description": "Reads. " * 500}])
    run = CompactionRun.objects.get()
    assert 4_000 < run.prefix_tokens < 7_000
    assert (run.before_tokens or 0) > run.prefix_tokens


@pytest.mark.parametrize(
    ("kind", "is_autonomous", "trigger"),
    [("full", True, "autonomous"), ("full", False, "manual"), ("auto", True, "autonomous"), ("auto", False, "auto")],
)
def test_what_the_summary_says_about_going_on_is_the_agents_wish(
    team: Team, kind: str, trigger: str, *, is_autonomous: bool
) -> None:
    compact(team, kind=kind, is_autonomous=is_autonomous, usage={"input_tokens": 170_000})
    assert CompactionRun.objects.get().trigger == trigger


def test_secrets_come_back_from_a_run_as_their_marks(team: Team, script: Script) -> None:
    secret = "sk-ant-api03-" + "aB3dE5fG7h" * 9
    messages = [*MESSAGES, {"role": "user", "content": f"The key is {secret}."}]
    scopes = (Scope.COMPACT, Scope.READ, Scope.CONTENT)
    _, told = compact(team, "bob", *scopes, messages=messages)
    perform_due()
    assert script.requests
    assert secret not in str([request.body for request in script.requests])
    assert CompactionRun.objects.get(pk=told["run"]).state == "done"


def test_a_very_long_conversation_is_quoted_by_a_worker_where_its_words_may_be_kept_and_read(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.agents.message_runs.AT_ONCE_TOKENS", 10)
    everything = (Scope.COMPACT, Scope.READ, Scope.CONTENT)
    asked = {"summarizer": "extractive", "session": "long"}
    status, told = compact(team, "bob", *everything, **asked)
    assert status == 202
    perform_due()
    run = CompactionRun.objects.get(pk=told["run"])
    assert (run.state, run.summarizer, run.trigger) == ("done", "extractive", "autonomous")
    assert "Never touch the wall." in run.revisions.get().text

    assert compact(team, "bob", Scope.COMPACT, **asked)[0] == 200  # it could not read the result
    status, told = compact(team, "bob", *everything, **{**asked, "kind": "auto"})
    assert (status, told["decision"]) == (200, "below the line")
    TeamPolicy.objects.update(stores_content=False)
    assert compact(team, "bob", *everything, **asked)[0] == 200
    assert CompactionRun.objects.count() == 1
