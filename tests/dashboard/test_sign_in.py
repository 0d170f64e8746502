"""Signing in by password and by link, lock-out, sign out."""

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.test import Client
from django.utils import timezone

from dashboard.accounts.passwords import set_password
from dashboard.accounts.sign_in_links import create_link, redeem
from dashboard.models import AuditEvent, SignInLink, User
from tests.builders import make_team, make_user

pytestmark = pytest.mark.django_db
SHOWN = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}  # as browsers send it for what a person opens


def try_password(client: Client, password: str, **more: str) -> int:
    return client.post("/sign-in/", {"username": "alice", "password": password, **more}).status_code


def test_right_password_opens_and_is_audited(client: Client) -> None:
    make_team("Harbour", owner="alice")
    assert try_password(client, "alice-password") == 302
    assert client.get("/").status_code == 200
    event = AuditEvent.objects.get(action="signed in")
    assert (event.actor_name, event.details) == ("alice", {"way": "password"})


def test_name_is_matched_in_any_case(client: Client) -> None:
    make_user("alice")
    answer = client.post("/sign-in/", {"username": "ALICE", "password": "alice-password"})
    assert answer.status_code == 302


def test_wrong_password_says_so_and_keeps_the_name(client: Client) -> None:
    make_user("alice")
    answer = client.post("/sign-in/", {"username": "alice", "password": "wrong"})
    assert answer.status_code == 422
    assert 'value="alice"' in answer.content.decode()


def test_five_wrong_passwords_lock_the_name_even_for_the_right_one(client: Client) -> None:
    make_user("alice")
    assert [try_password(client, "wrong") for _ in range(5)] == [422, 422, 422, 422, 429]
    locked = client.post("/sign-in/", {"username": "alice", "password": "alice-password"})
    assert locked.status_code == 429
    assert locked.headers["Retry-After"] == "900"
    assert "15 minutes" in locked.content.decode()
    other_address = Client(REMOTE_ADDR="10.1.2.3")
    assert try_password(other_address, "alice-password") == 302


def widen(name: str) -> str:
    """In full-width letters."""
    return "".join(chr(ord(letter) + 0xFEE0) for letter in name)


SPELLINGS = [
    *("alice", "ALICE", "aLice", widen("alice"), " alice ", widen("ALICE")),
    *("\u2003Alice", widen("A") + "lice", "alicE", "ALice"),
]


def test_fresh_spelling_of_a_name_is_no_fresh_start(client: Client) -> None:
    make_user("alice")
    statuses = [
        client.post("/sign-in/", {"username": spelling, "password": "wrong"}).status_code for spelling in SPELLINGS
    ]
    assert statuses == [422] * 4 + [429] * 6
    right = {"username": "aLICe", "password": "alice-password"}
    assert client.post("/sign-in/", right).status_code == 429
    assert Client(REMOTE_ADDR="10.1.2.3").post("/sign-in/", right).status_code == 302


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_opens_the_account_and_none_makes_another(client: Client, spelling: str) -> None:
    make_user("alice")
    assert client.post("/sign-in/", {"username": spelling, "password": "alice-password"}).status_code == 302
    with pytest.raises(ValidationError, match="This name is already taken"):
        User(username=spelling, password="x").full_clean(exclude=["name_key"])
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create_user(spelling)


@pytest.mark.parametrize(
    ("first", "second"),
    [("straße", "STRASSE"), ("ärger", "ÄRGER"), ("σοφος", "ΣΟΦΟΣ"), ("alice", "alice\u3164"), ("office", "o\ufb03ce")],
)
def test_names_that_read_alike_are_one(first: str, second: str) -> None:
    user = make_user(first)
    assert User.objects.find_by_name(second) == user
    with pytest.raises(IntegrityError), transaction.atomic():
        User.objects.create_user(second)


def test_letter_that_a_database_takes_for_another_opens_nothing(client: Client) -> None:
    """For PostgreSQL the dotless "i" has the same capital letter as "i"; its wrong passwords would be counted apart."""
    make_user("alice")
    answer = client.post("/sign-in/", {"username": "al\u0131ce", "password": "alice-password"})
    assert answer.status_code == 422


def test_name_that_grows_when_it_is_compared_is_counted(client: Client) -> None:
    fields = {"username": "ß" * 150, "password": "wrong"}
    assert [client.post("/sign-in/", fields).status_code for _ in range(5)] == [422, 422, 422, 422, 429]


def test_twins_of_earlier_versions_keep_working() -> None:
    """As the migration leaves them: both sign in by their own spelling, and share the count of wrong passwords."""
    older, newer = make_user("strasse"), User(username="straße", name_key="strasse 2")
    newer.set_password("straße-password")
    newer.save()
    newer.save()  # keeps its key
    for spelling, user in {"strasse": older, "STRASSE": older, "straße": newer, "Straße": newer}.items():
        assert User.objects.find_by_name(spelling) == user, spelling
        fields = {"username": spelling, "password": f"{user.username}-password"}
        assert Client().post("/sign-in/", fields).status_code == 302, spelling
    assert [try_name(spelling) for spelling in ("straße", "strasse", "straße", "strasse", "STRASSE")][-1] == 429


def try_name(name: str) -> int:
    return Client().post("/sign-in/", {"username": name, "password": "wrong"}).status_code


@pytest.mark.parametrize(
    ("target", "lands_on"),
    [
        ("/account/", "/account/"),
        ("https://evil.example/", "/"),
        ("//evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ],
)
def test_after_sign_in_one_lands_on_this_site_only(client: Client, target: str, lands_on: str) -> None:
    make_user("alice")
    answer = client.post("/sign-in/", {"username": "alice", "password": "alice-password", "next": target})
    assert answer.headers["Location"] == lands_on


def test_page_asked_for_first_comes_after_sign_in(client: Client) -> None:
    make_team("Harbour", owner="alice")
    asked = client.get("/teams/harbour/keys/")
    assert asked.headers["Location"] == "/sign-in/?next=/teams/harbour/keys/"
    assert 'name="next" value="/teams/harbour/keys/"' in client.get(asked.headers["Location"]).content.decode()


def test_fragment_asked_for_after_the_session_ended_sends_the_whole_page_to_sign_in(client: Client) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/account/"}
    answer = client.get("/account/", headers=headers)
    assert answer.headers["HX-Redirect"] == "/sign-in/?next=%2Faccount%2F"


def test_link_signs_in_once(client: Client) -> None:
    alice = make_user("alice")
    path = urlsplit(create_link(alice, now=timezone.now(), valid_for=timedelta(hours=1))).path
    assert client.get(path, headers=SHOWN).headers["Location"] == "/"
    assert client.get("/account/").status_code == 200
    spent = Client().get(path, headers=SHOWN)
    assert spent.status_code == 410
    assert "plimsoll signinlink" in spent.content.decode()


def test_link_is_not_spent_by_somebody_already_signed_in(client: Client) -> None:
    alice = make_user("alice")
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    path = urlsplit(create_link(alice, now=timezone.now(), valid_for=timedelta(hours=1))).path
    assert client.get(path, headers=SHOWN).status_code == 302
    assert SignInLink.objects.get().used_at is None


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("head", {}),
        ("head", SHOWN),
        ("get", {"User-Agent": "Slackbot-LinkExpanding 1.0"}),
        ("get", {"Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}),
        ("get", SHOWN | {"Sec-Purpose": "prefetch;prerender"}),
        ("get", SHOWN | {"Purpose": "prefetch"}),
        ("get", SHOWN | {"X-Moz": "prefetch"}),
    ],
)
def test_link_is_not_used_up_by_what_no_person_opened(method: str, headers: dict[str, str]) -> None:
    path = urlsplit(create_link(make_user("alice"), now=timezone.now(), valid_for=timedelta(hours=1))).path
    program, person = Client(), Client()
    assert getattr(program, method)(path, headers=headers).status_code == 200
    assert program.get("/account/").status_code == 302
    assert SignInLink.objects.get().used_at is None
    assert person.get(path, headers=SHOWN).headers["Location"] == "/"
    assert person.get("/account/").status_code == 200


def test_link_opens_by_a_button_where_the_browser_says_nothing() -> None:
    path = urlsplit(create_link(make_user("alice"), now=timezone.now(), valid_for=timedelta(hours=1))).path
    client = Client(enforce_csrf_checks=True)
    page = client.get(path).content.decode()
    assert "Sign in as alice" in page
    assert client.post(path).status_code == 403
    token = page.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
    assert client.post(path, {"csrfmiddlewaretoken": token}).headers["Location"] == "/"
    assert client.get("/account/").status_code == 200
    assert [Client().get(path).status_code, Client().head(path).status_code] == [410, 410]


def test_links_end_with_a_new_password() -> None:
    alice, now = make_user("alice"), timezone.now()
    before = [create_link(alice, now=now, valid_for=timedelta(hours=72)) for _ in range(2)]
    others = create_link(make_user("bob"), now=now, valid_for=timedelta(hours=1))
    set_password(alice, "correct horse staple", by=None)
    after = create_link(alice, now=timezone.now(), valid_for=timedelta(hours=1))
    statuses = [Client().post(urlsplit(link).path).status_code for link in (*before, others, after)]
    assert statuses == [410, 410, 302, 302]


def test_link_expires_and_a_closed_account_has_none() -> None:
    alice, now = make_user("alice"), timezone.now()
    tokens = [create_link(alice, now=now, valid_for=timedelta(minutes=5)).split("/")[-2] for _ in range(2)]
    assert redeem(tokens[0], now=now + timedelta(minutes=5)) is None
    alice.is_active = False
    alice.save()
    assert redeem(tokens[1], now=now) is None


def test_stored_link_is_a_digest_only() -> None:
    link = create_link(make_user("alice"), now=timezone.now(), valid_for=timedelta(hours=1))
    assert len(bytes(SignInLink.objects.get().digest)) == 32
    assert "/sign-in/link/pls_" in link


def test_sign_out_closes_the_session(client: Client) -> None:
    client.force_login(make_user("alice"), backend="django.contrib.auth.backends.ModelBackend")
    assert client.post("/sign-out/").status_code == 302
    assert client.get("/account/").status_code == 302


def test_new_password_signs_other_browsers_out(client: Client) -> None:
    make_team("Harbour", owner="alice")
    alice, other = make_user("alice"), Client()
    for browser in (client, other):
        browser.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    new = {
        "old_password": "alice-password",
        "new_password1": "correct horse staple",
        "new_password2": "correct horse staple",
    }
    assert client.post("/account/password/", new).status_code == 302
    assert client.get("/account/").status_code == 200
    assert other.get("/account/").status_code == 302
    assert AuditEvent.objects.filter(action="password changed", actor=alice).count() == 1


def test_old_password_is_asked_for_where_there_is_one(client: Client) -> None:
    client.force_login(make_user("alice"), backend="django.contrib.auth.backends.ModelBackend")
    new = {"new_password1": "correct horse staple", "new_password2": "correct horse staple"}
    assert client.post("/account/password/", new).status_code == 422
    alice = make_user("alice")
    alice.set_unusable_password()
    alice.save()
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    assert client.post("/account/password/", new).status_code == 302
