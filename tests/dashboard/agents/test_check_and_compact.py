"""Agents ask whether they may go on, and have their messages compacted; nothing of it is stored."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from ninja.responses import NinjaJSONEncoder

from compaction.transcripts.client_protocol import CLEARED_RESULT
from dashboard.api.check import CheckOut
from dashboard.models import AgentSession, CompactionRun, Scope, Team, TeamPolicy
from tests.builders import make_key, make_session, make_team, make_user
from tests.visitors import sign_in

pytestmark = pytest.mark.django_db

MODEL = "claude-opus-4-5"


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="alice", member="bob")


@pytest.fixture
def key(team: Team) -> str:
    return make_key(team, make_user("bob"), Scope.COMPACT)[1]


def send(key: str, path: str, **body: object) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {key}"}
    answer = Client().post(f"/api/v1/{path}", body, content_type="application/json", headers=headers)
    return answer.status_code, answer.json()


def talk(reads: int, characters: int = 40_000) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Never touch the harbour wall. Read everything."}]
    for number in range(reads):
        use = {"type": "tool_use", "id": f"t{number}", "name": "look_up", "input": {"page": number}}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": f"{number} " + "w" * characters}
        messages += [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]
    return [*messages, {"role": "assistant", "content": "I have read it all."}]


@pytest.mark.parametrize(
    ("used", "level", "percent_left", "action"),
    [
        (100_000, "ok", 40, "none"),
        (147_000, "error", 12, "warn"),
        (167_000, "auto-compact", 0, "full"),
        (177_000, "blocking", 0, "block"),
    ],
)
def test_level_and_action_of_what_an_agent_tells(
    key: str, used: int, level: str, percent_left: int, action: str
) -> None:
    for told in ({"used_tokens": used}, {"usage": {"cache_read_input_tokens": used - 500, "output_tokens": 500}}):
        status, found = send(key, "check", model=MODEL, **told)
        assert (status, found["level"], found["percent_left"], found["action"]) == (200, level, percent_left, action)
        assert (found["used_tokens"], found["used_origin"]) == (used, "measured")
        assert found["lines"]["auto"] == 167_000


def test_lines_of_the_agent_go_over_those_of_the_team(key: str) -> None:
    _, found = send(key, "check", model=MODEL, used_tokens=100_000, policy={"auto_percent": 50})
    assert (found["lines"]["auto"], found["action"]) == (90_000, "full")
    status, told = send(key, "check", model=MODEL, used_tokens=1, policy={"auto_margin_tokens": -5})
    assert status == 422
    assert told["detail"].endswith(".")


def test_messages_say_whether_clearing_is_worth_it(key: str) -> None:
    usage = {"input_tokens": 150_000, "output_tokens": 10}
    _, found = send(key, "check", model=MODEL, usage=usage, messages=talk(12))
    assert (found["level"], found["action"]) == ("error", "micro")
    _, found = send(key, "check", model=MODEL, usage=usage, messages=talk(2))
    assert found["action"] == "warn"


def test_a_session_is_checked_by_its_own_name_or_number(team: Team, key: str) -> None:
    session = make_session(team, "0a1b-2c", model=MODEL, context_tokens=168_000)
    for named in ("0a1b-2c", str(session.pk)):
        status, found = send(key, "check", session=named)
        assert (status, found["action"], found["used_tokens"]) == (200, "full", 168_000)
    other = make_team("Quay", owner="carol")
    hidden = make_session(other, "elsewhere")
    assert send(key, "check", session="elsewhere")[0] == send(key, "check", session=str(hidden.pk))[0] == 404


def test_lines_over_the_teams_hold_for_a_stored_session_too(team: Team, key: str) -> None:
    make_session(team, "stored", model=MODEL, context_tokens=100_000)
    _, found = send(key, "check", session="stored", policy={"auto_percent": 50})
    assert (found["lines"]["auto"], found["action"]) == (90_000, "full")
    _, found = send(key, "check", session="stored", window_tokens=100_000, team="harbour")
    assert (found["lines"]["window"], found["action"]) == (100_000, "block")
    assert send(key, "check", session="stored", policy={"auto_margin_tokens": -5})[0] == 422
    status, told = send(key, "check", session="stored", usage={"input_tokens": 1}, used_tokens=1)
    assert status == 422
    assert told["detail"] == "With `session`, its stored values are used. Remove `usage`, `used_tokens`."


def test_an_id_that_two_teams_have_needs_the_team(team: Team) -> None:
    other = make_team("Quay", owner="bob")
    for each, used in ((team, 1_000), (other, 2_000)):
        make_session(each, "same", model=MODEL, context_tokens=used)
    browser = sign_in("bob")

    def ask(**body: object) -> tuple[int, Any]:
        answer = browser.post("/api/v1/check", body, content_type="application/json")
        return answer.status_code, answer.json()

    status, told = ask(session="same")
    assert (status, "Specify `team`" in told["detail"]) == (422, True)
    assert [ask(session="same", team=each.slug)[1]["used_tokens"] for each in (team, other)] == [1_000, 2_000]
    assert ask(session="same", team="elsewhere")[0] == 404


def test_a_question_without_figures_is_refused_with_a_sentence(key: str) -> None:
    status, told = send(key, "check", model=MODEL)
    assert (status, told["detail"]) == (422, "Send `session`, or `model` with `usage`, `messages` or `used_tokens`.")


def test_check_takes_the_same_few_queries_for_any_conversation(key: str) -> None:
    counts = []
    for reads in (1, 1, 60):
        with CaptureQueriesContext(connection) as queries:
            send(key, "check", model=MODEL, messages=talk(reads, 100))
        counts.append(len(queries))
    assert counts[1] == counts[2] <= 4


@pytest.mark.parametrize(("model", "used"), [(MODEL, 1), (MODEL, 177_000), ("somebody's own", 1)])
def test_an_answer_holds_exactly_what_its_schema_says(key: str, model: str, used: int) -> None:
    _, found = send(key, "check", model=model, used_tokens=used)
    assert found.keys() == CheckOut.model_fields.keys()
    assert json.loads(json.dumps(CheckOut.model_validate(found).model_dump(), cls=NinjaJSONEncoder)) == found


def test_auto_returns_what_was_sent_below_every_line(key: str) -> None:
    messages = talk(3)
    status, done = send(key, "compact", model=MODEL, messages=messages)
    assert (status, done["decision"], done["messages"]) == (200, "below the line", messages)
    assert done["outcome"] is None


def test_auto_clears_first_and_compacts_when_that_is_not_enough(key: str) -> None:
    messages = talk(12)
    _, done = send(key, "compact", model=MODEL, messages=messages, usage={"input_tokens": 150_000})
    assert done["decision"] == "cleared"
    assert done["after_tokens"] < 150_000 - 60_000
    assert done["messages"][2]["content"][0]["content"] == CLEARED_RESULT
    assert done["messages"][-2] == messages[-2]

    _, done = send(key, "compact", model=MODEL, messages=talk(2), usage={"input_tokens": 170_000})
    assert done["decision"] == "compacted in full"
    assert "Never touch the harbour wall." in done["outcome"]["summary"]
    assert done["outcome"]["retained_percent"] == "100.0"
    assert done["messages"][0]["role"] == "user"


def test_full_summarises_and_cites_by_place(key: str) -> None:
    status, done = send(key, "compact", model=MODEL, messages=talk(3), kind="full", instructions="Keep the wall.")
    assert status == 200
    assert done["outcome"]["summarised"] == list(range(8))
    assert done["after_tokens"] < done["before_tokens"]
    assert not CompactionRun.objects.exists()
    assert not AgentSession.objects.exists()


def test_nothing_to_do_is_told_as_a_refusal(key: str) -> None:
    for kind in ("micro", "full"):
        status, told = send(key, "compact", model=MODEL, kind=kind, messages=[])
        assert (status, told["code"]) == (409, "nothing_to_compact")


def test_auto_is_refused_where_the_team_compacts_nothing_by_itself_and_nothing_fits(team: Team, key: str) -> None:
    policy = TeamPolicy.objects.create(team=team, version=1, thresholds={"is_auto_enabled": False})
    full = {"model": MODEL, "messages": talk(2), "usage": {"input_tokens": 178_000}}
    status, told = send(key, "compact", **full)
    assert (status, told["code"]) == (409, "compaction_off")
    assert send(key, "compact", **full, kind="full")[1]["decision"] == "compacted in full"
    _, told = send(key, "compact", **{**full, "usage": {"input_tokens": 150_000}})
    assert (told["decision"], told["messages"]) == ("disabled", full["messages"])

    policy.thresholds = {"models": {MODEL: {"is_auto_enabled": False}}}  # of this model alone
    policy.save()
    assert send(key, "compact", **full)[1]["code"] == "compaction_off"
    policy.thresholds = {"is_reactive_enabled": False}
    policy.save()
    assert send(key, "compact", **full, is_too_long=True)[1]["code"] == "compaction_off"
