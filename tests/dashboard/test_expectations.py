"""Every address x every role and key scope x own and other team, enumerated from the URL resolver (S4, S6)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone
from pytest_django import Settings

from dashboard.api import api
from dashboard.middleware import security_headers
from dashboard.models import Beat, Scope, User
from dashboard.pages.session_tabs import TAB_NAMES
from tests.builders import make_key, make_team
from tests.dashboard.expectations import API, BODIES, INGEST, KEY_SCOPES, PAGES, ROLES
from tests.dashboard.furniture import furnish

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@dataclass(frozen=True)
class World:
    """Two teams with the same furniture; the people of the first are the ones who knock."""

    people: dict[str, User]
    key_texts: dict[str, str]
    arguments: dict[str, dict[str, object]]  # "own" and "other": what an address of that team needs


@pytest.fixture
def world(settings: Settings) -> World:
    Beat.objects.create(name="sweeper here", at=timezone.now())
    settings.LOCAL_MODE = False  # the wider of the two: further teams can be founded
    own = make_team("Harbour", viewer="vera", member="mia", admin="anna", owner="olga")
    other = make_team("Marina", viewer="v2", member="m2", admin="a2", owner="charlie")
    people = {membership.role: membership.user for membership in own.memberships.select_related("user")}
    texts = {
        name: make_key(own, people["owner"], *(Scope(scope) for scope in scopes))[1]
        for name, scopes in KEY_SCOPES.items()
    }
    return World(people, texts, {"own": furnish(own), "other": furnish(other)})


def page_patterns() -> Iterator[tuple[str, URLPattern]]:
    for pattern in get_resolver().url_patterns:
        if isinstance(pattern, URLPattern):
            yield str(pattern.name), pattern
        elif isinstance(pattern, URLResolver):
            inner = [each for each in pattern.url_patterns if isinstance(each, URLPattern)]
            yield from ((f"{pattern.namespace}:{each.name}", each) for each in inner)


def api_patterns() -> list[URLPattern]:
    return [pattern for name, pattern in page_patterns() if name.startswith("api:") and name != "api:api-root"]


def page_url(name: str, arguments: dict[str, object]) -> str:
    pattern = dict(page_patterns())[name]
    wanted = pattern.pattern.converters
    return reverse(name, kwargs={key: arguments[key] for key in wanted})


def api_url(path: str, arguments: dict[str, object]) -> str:
    return path.format(**arguments)


def ask(client: Client, row: str, url: str, **headers: str) -> HttpResponse:
    """One request whose effects are rolled back, so that every cell of the table starts from the same world."""
    method = row.split(maxsplit=1)[0].lower()
    body = BODIES.get(row, {})
    with transaction.atomic():
        if url.startswith("/api/") and method != "get":
            response = getattr(client, method)(url, body, content_type="application/json", headers=headers)
        else:
            response = getattr(client, method)(url, body, headers=headers)
        transaction.set_rollback(True)
    for name, value in security_headers().items():
        assert response.headers[name] == value, (row, name)
    return response  # type: ignore[no-any-return]


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def test_every_page_and_method_has_a_row(world: World) -> None:
    client = signed_in(world.people["owner"])
    found = set()
    for name, _ in page_patterns():
        if name.startswith("api:"):
            continue  # in API, by path
        refusal = client.generic("PURGE", page_url(name, world.arguments["own"]))
        assert refusal.status_code == 405, f"{name} takes any method: give it require_safe, require_POST, …"
        allowed = {method.strip() for method in refusal.headers["Allow"].split(",")} - {"HEAD", "OPTIONS"}
        found |= {f"{method} {name}" for method in allowed}
    assert found == set(PAGES) | set(INGEST)


def test_every_endpoint_has_a_row() -> None:
    schema = api.get_openapi_schema()
    documented = {f"{method.upper()} {path}" for path, methods in schema["paths"].items() for method in methods}
    assert documented == set(API)
    person_only = {
        f"{method.upper()} {path}"
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
        if operation.get("x-person-only")
    }
    assert person_only == {row for row, expected in API.items() if not expected.keys}
    # An endpoint left out of the description would slip past the table.
    routed = {re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", f"/api/v1/{pattern.pattern}") for pattern in api_patterns()}
    assert routed == set(schema["paths"])


@pytest.mark.parametrize("row", PAGES)
def test_pages_answer_each_role_as_the_table_says(world: World, row: str) -> None:
    expected = PAGES[row]
    url = page_url(row.split()[1], world.arguments["own"])
    assert ask(Client(), row, url).status_code == expected.anonymous
    for role in ROLES:
        assert ask(signed_in(world.people[role]), row, url).status_code == getattr(expected, role), role
    for scope, text in world.key_texts.items():
        answer = ask(Client(), row, url, authorization=f"Bearer {text}")
        assert answer.status_code == expected.anonymous, f"{scope} opens a page"


@pytest.mark.parametrize("tab", TAB_NAMES[1:])
def test_every_tab_answers_as_the_row_of_tabs_says(world: World, tab: str) -> None:
    row = "GET session_tab"
    own, other = (page_url("session_tab", {**world.arguments[team], "tab": tab}) for team in ("own", "other"))
    assert ask(Client(), row, own).status_code == PAGES[row].anonymous
    for role in ROLES:
        client = signed_in(world.people[role])
        assert ask(client, row, own).status_code == getattr(PAGES[row], role), role
        assert ask(client, row, other).status_code == PAGES[row].other, role


@pytest.mark.parametrize("row", [row for row, expected in PAGES.items() if expected.other is not None])
def test_pages_of_another_team_do_not_exist(world: World, row: str) -> None:
    own, other = (page_url(row.split()[1], world.arguments[team]) for team in ("own", "other"))
    assert ask(Client(), row, other).status_code == PAGES[row].anonymous
    for role in ROLES:
        # Jobs are for admins: too low a role is refused before anything is looked up.
        refused_first = getattr(PAGES[row], role) == 403 and "/jobs/" in other
        expected = 403 if refused_first else PAGES[row].other
        assert ask(signed_in(world.people[role]), row, other).status_code == expected, role
    # A stranger's object under one's own team's address does not exist either.
    mixed = page_url(row.split()[1], {**world.arguments["other"], "slug": world.arguments["own"]["slug"]})
    if mixed not in (own, other):
        assert ask(signed_in(world.people["owner"]), row, mixed).status_code == 404


@pytest.mark.parametrize("row", API)
def test_endpoints_answer_each_role_and_scope_as_the_table_says(world: World, row: str) -> None:
    expected = API[row]
    url = api_url(row.split()[1], world.arguments["own"])
    assert ask(Client(), row, url).status_code == 401
    assert ask(Client(), row, url, authorization="Bearer plk_" + "x" * 43).status_code == 401
    for role in ROLES:
        assert ask(signed_in(world.people[role]), row, url).status_code == getattr(expected, role), role
    for scope, text in world.key_texts.items():
        answer = ask(Client(), row, url, authorization=f"Bearer {text}")
        assert answer.status_code == expected.keys.get(scope, 403), scope


@pytest.mark.parametrize("row", [row for row, expected in API.items() if expected.other is not None])
def test_endpoints_of_another_team_do_not_exist(world: World, row: str) -> None:
    url = api_url(row.split()[1], world.arguments["other"])
    assert ask(Client(), row, url).status_code == 401
    for role in ROLES:
        assert ask(signed_in(world.people[role]), row, url).status_code == 404, role
    for scope, text in world.key_texts.items():
        # Where the address names no team, a key without the right is refused before anything is looked up.
        expected = 404 if "/teams/" in url or scope in API[row].keys else 403
        assert ask(Client(), row, url, authorization=f"Bearer {text}").status_code == expected, scope
    mixed = api_url(row.split()[1], {**world.arguments["other"], "slug": world.arguments["own"]["slug"]})
    if mixed != api_url(row.split()[1], world.arguments["own"]) and mixed != url:
        assert ask(signed_in(world.people["owner"]), row, mixed).status_code == 404


@pytest.mark.parametrize("row", [row for row in (*PAGES, *API) if not row.startswith("GET ")])
def test_unsafe_requests_need_a_csrf_token(world: World, row: str) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(world.people["owner"], backend="django.contrib.auth.backends.ModelBackend")
    target = row.split()[1]
    url = api_url(target, world.arguments["own"]) if row in API else page_url(target, world.arguments["own"])
    assert ask(client, row, url).status_code == 403


@pytest.mark.parametrize("row", INGEST)
def test_ingest_addresses_answer_keys_with_their_scope_alone(world: World, row: str) -> None:
    url = page_url(row.split()[1], world.arguments["own"])

    def send(client: Client, **headers: str) -> int:
        with transaction.atomic():
            response = client.post(url, b"\n\x00", content_type=INGEST[row], headers=headers)
            transaction.set_rollback(True)
        for name, value in security_headers().items():
            assert response.headers[name] == value, (row, name)
        return int(response.status_code)

    assert send(Client()) == 401
    assert send(Client(), authorization="Bearer plk_" + "x" * 43) == 401
    for role in ROLES:
        assert send(signed_in(world.people[role])) == 401, role
    for scope, text in world.key_texts.items():
        expected = 200 if scope == "key ingest" else 403
        assert send(Client(), authorization=f"Bearer {text}") == expected, scope
        assert send(Client(), **{"X-Plimsoll-Key": text}) == expected, scope


def test_a_key_in_a_cookie_opens_nothing(world: World) -> None:
    client = Client()
    for name in ("plimsoll_session", "Authorization", "key"):
        client.cookies[name] = world.key_texts["key read"]
    assert client.get("/api/v1/me").status_code == 401


def test_a_wrong_key_is_not_saved_by_a_session(world: World) -> None:
    client = signed_in(world.people["owner"])
    assert client.get("/api/v1/me", headers={"authorization": "Bearer plk_wrong"}).status_code == 401


def test_error_pages_carry_the_security_headers(world: World) -> None:
    for client in (Client(), signed_in(world.people["owner"])):
        for url in ("/nothing/here/", "/api/v1/nothing", "/teams/marina/"):
            response = client.get(url)
            assert response.status_code in (302, 401, 404)
            assert response.headers["Content-Security-Policy"] == security_headers()["Content-Security-Policy"]
