"""S8: secrets planted in every part of transcripts and telemetry, looked for in all of the database and in the log."""

import json
import logging
from collections.abc import Iterator

import pytest
from django.apps import apps

from compaction.transcripts.subagents import AgentMeta
from dashboard.ingest.intake import Origin, count_drops, make_rules, store, take_in, take_in_agent_meta
from dashboard.ingest.observed import ObservedSession, Piece, Prepared
from dashboard.ingest.otlp.preparing import Form, Signal, prepare_export
from dashboard.ingest.segments import expand
from dashboard.models import AgentSession, EntrySegment, PromptShape, Team, TeamPolicy, UnansweredCall
from dashboard.policies.in_force import find_policy
from dashboard.proxy.reports import Report
from tests.builders import make_team
from tests.dashboard.ingest.conversation import Conversation
from tests.dashboard.ingest.otlp.exports import SESSION, event, logs
from tests.dashboard.ingest.planted_secrets import PLANTED
from tests.dashboard.ingest.straddling_secrets import FILLERS, OWN_PATTERNS, SECRETS, WAYS, find_halves, lay_across
from tests.visitors import sign_in

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


def _plant(texts: list[str]) -> Conversation:
    talk = Conversation()
    for number, text in enumerate(texts):
        talk.ask(f"Use {text} please.")
        talk.answer(f"m{number}", written=100, words=f"I use {text} now.")
        talk.result(f"ok\n{text}\n")
        talk.write("user", cwd=f"/tmp/{text}", gitBranch=text, message={"role": "user", "content": "x"})
        talk.note("summary", summary=f"With {text}")
        talk.write("attachment", attachment={"type": "file", "filename": text, "content": text})
        talk.note("api-request-shape", shapeHash=f"h{number}", shape={"system": [text], "tools": [{"name": text}]})
        _plant_names(talk, text)
    return talk


def _plant_names(talk: Conversation, text: str) -> None:
    """Where a client writes words of its own, and others may write what they like."""
    talk.write("attachment", version=text, attachment={"type": text, "content": "x"})
    talk.write("system", subtype="api_error", error={"status": 500, "error": {"error": {"type": text}}})
    talk.write("user", isSidechain=True, agentId=text, message={"role": "user", "content": "x"})


def _read_everything() -> Iterator[str]:
    for model in apps.get_models():
        for row in model._default_manager.values():
            for value in row.values():
                yield value.hex() if isinstance(value, bytes | memoryview) else json.dumps(value, default=str)
    packed = [value for row in EntrySegment.objects.values_list("facts", "content") for value in row]
    packed += PromptShape.objects.values_list("content", flat=True)
    for value in packed:
        if value is not None:
            yield expand(value).decode("utf-8", "replace")


def test_no_planted_secret_is_in_the_database_or_the_log(caplog: pytest.LogCaptureFixture) -> None:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    talk = _plant([planted.text for planted in PLANTED])
    with caplog.at_level(logging.DEBUG):
        taken = take_in(Origin(team, None, "api"), Piece(talk.data, "harbour.jsonl", talk.session_id))
    assert sum((taken.redactions or {}).values()) >= len(PLANTED)
    told = "\n".join(_read_everything()) + caplog.text
    assert talk.session_id in told, "the search itself finds what is there"
    left = [planted.form for planted in PLANTED if planted.secret in told]
    assert left == []
    assert AgentSession.objects.get().call_count == len(PLANTED)
    assert not EntrySegment.objects.filter(content=None).exists(), "content is stored here"
    assert UnansweredCall.objects.exists()
    assert [planted.form for planted in PLANTED if planted.secret in _read_exports(team)] == []


def _read_exports(team: Team) -> str:
    """Every list of the session as a file."""
    owner, session = sign_in("alice"), AgentSession.objects.get()
    lists = ("/sessions/", "/breaks/", f"/sessions/{session.pk}/breaks/", f"/sessions/{session.pk}/compactions/")
    answers = [
        owner.get(url, {"export": form}) for url in (*lists, f"/teams/{team.slug}/audit/") for form in ("csv", "json")
    ]
    assert {answer.status_code for answer in answers} == {200}
    told = b"".join(b"".join(answer) for answer in answers).decode()
    assert session.external_id in told
    return told


def test_no_secret_planted_in_a_sub_agents_description_is_in_the_database() -> None:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    for number, planted in enumerate(PLANTED):
        meta = AgentMeta(agent_type=planted.text, description=f"With {planted.text}")
        take_in_agent_meta(Origin(team, None, "api"), "harbour", f"a{number}", meta)
        take_in_agent_meta(Origin(team, None, "api"), "harbour", planted.text, AgentMeta(agent_type="Explore"))
    told = "\n".join(_read_everything())
    assert "harbour" in told
    assert [planted.form for planted in PLANTED if planted.secret in told] == []


def test_no_secret_planted_in_telemetry_is_in_the_database_or_the_log(caplog: pytest.LogCaptureFixture) -> None:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True)
    policy = find_policy(team)
    records = [record for number, planted in enumerate(PLANTED) for record in _plant_events(number, planted.text)]
    with caplog.at_level(logging.DEBUG):
        data = json.dumps(logs(*records)).encode()
        exported = prepare_export(data, Signal.LOGS, Form.JSON, make_rules(team, policy))
        store(Origin(team, None, "otlp"), exported.prepared, policy)
    told = "\n".join(_read_everything()) + caplog.text
    assert SESSION in told, "the search itself finds what is there"
    assert PromptShape.objects.exclude(content=None).count() == len(PLANTED)
    assert [planted.form for planted in PLANTED if planted.secret in told] == []


@pytest.mark.parametrize("name", WAYS)
def test_no_half_of_a_secret_is_in_the_database_where_a_text_was_cut(name: str) -> None:
    team = make_team("Harbour", owner="alice")
    TeamPolicy.objects.create(team=team, version=1, stores_content=True, own_patterns=OWN_PATTERNS)
    secrets = [planted for planted in SECRETS if planted.form in ("berth", "github-token", "jwt", "url-password")]
    way, policy = WAYS[name], find_policy(team)
    for cut in way.cuts:
        for stored in way.send([lay_across(planted, cut, filler) for planted in secrets for filler in FILLERS]):
            store(Origin(team, None, "api"), _prepare(stored), policy)
    count_drops(Origin(team, None, "api"), {lay_across(secrets[0], 60): 1}, detail=lay_across(secrets[0], 300))
    told = "\n".join(_read_everything())
    assert "[redacted" in told
    assert find_halves(told, tuple(secrets)) == []


def _prepare(stored: Prepared | Report) -> Prepared:
    if isinstance(stored, Prepared):
        return stored
    return Prepared("proxy", (ObservedSession(stored.session_id, stored.lines, stored.shapes),))


def _plant_events(number: int, text: str) -> Iterator[dict[str, object]]:
    body = {"system": [{"type": "text", "text": text}], "messages": [{"role": "user", "content": text}]}
    tools = [{"name": f"tool {number}", "description": text, "input_schema": {"default": text}}]
    yield event("user_prompt", number, prompt=f"Use {text} please.")
    yield event("compaction", number, success="false", error=f"API Error: {text}")
    yield event("api_error", number, error=text)
    yield event("tool_result", number, tool_name=text, tool_input=text)
    yield event("api_request_body", number, body=json.dumps(body | {"tools": tools}), request_body_id=str(number))
