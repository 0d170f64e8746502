"""The JSON API as a program meets it."""

import html
import json
import re
from collections.abc import Iterator

import ninja
import pytest
from django.test import Client

from dashboard.accounts.keys import PREFIX_LENGTH
from dashboard.api import api
from dashboard.api.reference import fill_path
from dashboard.api.session_schemas import SessionDetailOut
from dashboard.models import ApiKey, LineCrossing, Membership, ResumedFile, Scope, Team
from tests.builders import make_key, make_session, make_team, make_user
from tests.session_rows import make_breaks, make_compactions, make_run

pytestmark = pytest.mark.django_db
BACKEND = "django.contrib.auth.backends.ModelBackend"
JSON = "application/json"


@pytest.fixture
def owner(client: Client) -> Client:
    make_team("Harbour", owner="alice", viewer="vera")
    client.force_login(make_user("alice"), backend=BACKEND)
    return client


def test_person_makes_a_key_and_a_program_uses_it(owner: Client) -> None:
    made = owner.post("/api/v1/teams/harbour/keys", {"name": "laptop", "scopes": ["read"]}, content_type=JSON).json()
    me = Client().get("/api/v1/me", headers={"authorization": f"Bearer {made['key']}"}).json()
    assert me == {
        "name": "alice",
        "key": made["details"]["prefix"],
        "teams": [{"slug": "harbour", "name": "Harbour", "role": "owner", "rights": ["see metrics"]}],
    }
    assert ApiKey.objects.get().expires_at is not None
    revoked = owner.delete(f"/api/v1/teams/harbour/keys/{made['details']['id']}")
    assert revoked.status_code == 204
    assert Client().get("/api/v1/me", headers={"authorization": f"Bearer {made['key']}"}).status_code == 401


def test_member_is_changed_wholly_or_not_at_all(owner: Client) -> None:
    vera = Membership.objects.get(user__username="vera")
    changed = owner.patch(f"/api/v1/teams/harbour/members/{vera.pk}", {"role": "admin"}, content_type=JSON).json()
    assert (changed["name"], changed["role"], changed["content_grant"]) == ("vera", "admin", False)
    alice = Membership.objects.get(user__username="alice")
    body = {"content_grant": True, "role": "viewer"}
    refused = owner.patch(f"/api/v1/teams/harbour/members/{alice.pk}", body, content_type=JSON)
    assert refused.status_code == 409
    assert "needs an owner" in refused.json()["detail"]
    alice.refresh_from_db()
    assert (alice.role, alice.content_grant) == ("owner", False)


@pytest.mark.parametrize(
    "body",
    [
        '{"name": "", "scopes": ["read"]}',
        '{"name": "x", "scopes": []}',
        '{"name": "x", "scopes": ["root"]}',
        '{"name": "x", "scopes": ["read"], "expires_days": 0}',
        '{"name": "x", "scopes": ["read"], "color": "red"}',
        '{"name": "a\\u0000b", "scopes": ["read"]}',
        "[]",
        "null",
    ],
)
def test_body_that_does_not_fit_is_422_and_makes_nothing(owner: Client, body: str) -> None:
    answer = owner.post("/api/v1/teams/harbour/keys", body, content_type=JSON)
    assert answer.status_code == 422
    assert answer.json()["detail"]
    assert not ApiKey.objects.exists()


def test_body_that_is_not_json_is_400(owner: Client) -> None:
    assert owner.post("/api/v1/teams/harbour/keys", "{", content_type=JSON).status_code == 400


def test_ids_beyond_any_row_do_not_exist(owner: Client) -> None:
    for number in (0, 2**31, 2**63, 10**30):
        assert owner.delete(f"/api/v1/teams/harbour/keys/{number}").status_code == 404


def test_description_lists_both_ways_to_sign_in(client: Client) -> None:
    schema = client.get("/api/v1/openapi.json").json()
    assert set(schema["components"]["securitySchemes"]) == {"KeyAuth", "SessionAuth"}
    assert "example" not in str(schema.get("servers", ""))


def test_documentation_shows_every_operation_with_a_call_that_fits(owner: Client) -> None:
    page = html.unescape(owner.get("/api/docs/").content.decode())
    schema = owner.get("/api/v1/openapi.json").json()
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            assert f'id="{operation["operationId"]}"' in page, (method, path)
    calls = re.findall(r"curl -H [^<]*? http://\S+?/api/v1/\S*?<", page)
    calls = [call for call in calls if "/ingest/" not in call]  # a transcript goes along with those
    team = make_user("alice").memberships.get().team
    _, text = make_key(team, make_user("alice"), Scope.READ, Scope.CONTENT, Scope.ADMIN, Scope.COMPACT)
    session = make_session(team, "s-1", owner=make_user("alice"))
    (loss,), (compaction,) = make_breaks(session, 1), make_compactions(session, 1)
    known = {"slug": "harbour", "session_id": session.pk, "break_id": loss.pk, "compaction_id": compaction.pk}
    known["second_id"] = session.pk
    known["run_id"] = make_run(session).pk
    known["crossing_id"] = LineCrossing.objects.create(
        team=team, session=session, used_tokens=2, line_tokens=1, answer="suggest"
    ).pk
    known["resumed_id"] = ResumedFile.objects.create(team=team, origin=session, external_id="r", size_bytes=1).pk
    known["version"] = 1  # made by the example of a change
    real = {fill_path(path): path for path in schema["paths"]}
    for call in calls:
        method, shown = re.search(r"-X (\w+)", call), call.rstrip("<").rpartition("http://")[2].partition("/")[2]
        assert "{" not in shown
        path = real[f"/{shown}"].removeprefix("/")
        body = re.search(r"-d '(.*)'", call)
        answer = Client().generic(
            method[1] if method else "GET",
            f"/{path.format(**known)}",
            body[1] if body else "",
            content_type=JSON,
            headers={"authorization": f"Bearer {text}"},
        )
        # A run without a result, a session without content or notes: understood, but there is nothing to do (409).
        fitting = (200, 409) if re.search("/runs|/resumed/|/transcript|/notes", call) else (200, 204)
        assert answer.status_code in fitting, (call, answer.content)
    assert len(calls) >= 33


def test_no_two_types_of_the_api_share_a_name() -> None:
    """The description knows a type by its name alone: one would stand in the place of the other."""
    names = [kind.__name__ for kind in list_kinds(ninja.Schema) if kind.__module__.startswith("dashboard.api")]
    assert sorted(names) == sorted(set(names))


def list_kinds(kind: type[object]) -> Iterator[type[object]]:
    found: list[type[object]] = kind.__subclasses__()
    for each in found:
        yield each
        yield from list_kinds(each)


def test_documentation_shows_an_answer_of_every_operation_that_gives_one(owner: Client) -> None:
    page = html.unescape(owner.get("/api/docs/").content.decode())
    schema = owner.get("/api/v1/openapi.json").json()
    for path, methods in schema["paths"].items():
        for operation in methods.values():
            section = page.split(f'id="{operation["operationId"]}"')[1].split("</section>")[0]
            given = [one for status, one in operation["responses"].items() if status[0] == "2" and one.get("content")]
            assert ('aria-label="Example response"' in section) == bool(given), path
    section = page.split('id="dashboard_api_session_read_session"')[1].split("</section>")[0]
    told = json.loads(section.split('aria-label="Example response"><code>')[1].split("</code>")[0])
    assert SessionDetailOut.model_validate(told)
    assert (told["model"], told["window_tokens"], told["spent_usd"]) == ("claude-sonnet-4-5", 200_000, "0.42")


def test_key_sees_its_own_team_only(owner: Client) -> None:
    team = make_team("Marina", owner="alice")
    _, text = make_key(team, make_user("alice"), Scope.READ)
    listed = Client().get("/api/v1/teams", headers={"authorization": f"Bearer {text}"}).json()
    assert [team["slug"] for team in listed] == ["marina"]
    assert len(owner.get("/api/v1/teams").json()) == 2


def test_request_with_a_key_does_not_pass_what_is_for_people(owner: Client) -> None:
    """Not even where a browser's cookies come along."""
    _, text = make_key(Team.objects.get(), make_user("alice"), Scope.READ)
    headers = {"Authorization": f"Bearer {text}"}
    by_key, by_person = owner.get("/api/v1/me", headers=headers), owner.get("/api/v1/me")
    assert by_key.json()["key"] == text[:PREFIX_LENGTH]
    assert not hasattr(by_key.wsgi_request, "session")
    assert by_person.json()["key"] is None
    assert by_person.wsgi_request.user.is_authenticated
    unknown = owner.get("/api/v1/nothing", headers=headers)
    assert (unknown.status_code, unknown.json()) == (404, {"detail": "Page not found."})
    assert unknown.headers["Cache-Control"] == by_key.headers["Cache-Control"] == "private, no-cache"


def test_reads_refuse_unknown_parameters_and_name_the_known_ones(owner: Client) -> None:
    refused = owner.get("/api/v1/breaks?form=2026-11-01")
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("form: unknown parameter. Known are avoidable, before, cause,")
    assert owner.get("/api/v1/me?verbose=1").json() == {"detail": "verbose: unknown parameter. There are none here."}


def test_every_read_is_checked_for_unknown_parameters(owner: Client) -> None:
    """An endpoint whose documented parameters cannot be found would answer 500."""
    paths = api.get_openapi_schema()["paths"]
    reads = [path for path, operations in paths.items() if "get" in operations]
    assert len(reads) > 20
    for path in reads:
        named = re.sub(r"\{\w*slug\w*\}", "harbour", path)
        answer = owner.get(re.sub(r"\{\w+\}", "1", named) + "?no_such_parameter=1")
        assert answer.status_code in (404, 422), path


def test_telemetry_is_not_refused_for_a_parameter_that_changes_nothing(owner: Client) -> None:
    line = b'{"type":"user","sessionId":"s","uuid":"u","message":{"role":"user","content":"x"}}'
    sent = owner.post("/api/v1/ingest/transcripts?session=s&from=proxy", line, content_type="application/x-ndjson")
    assert sent.status_code == 200, sent.content
