"""Invitation links: made, accepted once, revoked, expired."""

from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.accounts import invitations
from dashboard.accounts.refusals import Refused
from dashboard.models import Invitation, Membership, Role
from tests.builders import make_team, make_user

pytestmark = pytest.mark.django_db
BACKEND = "django.contrib.auth.backends.ModelBackend"
NEW_PERSON = {"username": "nora", "password1": "correct horse staple", "password2": "correct horse staple"}


def make_link(role: Role = Role.MEMBER) -> str:
    team = make_team("Harbour", owner="alice")
    _, link = invitations.invite(team, role, note="", by=make_user("alice"), now=timezone.now())
    return urlsplit(link).path


def test_link_is_shown_once_and_stored_as_a_digest(client: Client) -> None:
    make_team("Harbour", owner="alice")
    client.force_login(make_user("alice"), backend=BACKEND)
    answer = client.post("/teams/harbour/invitations/", {"role": "viewer", "note": "for Nora"}).content.decode()
    assert "/invitations/pli_" in answer
    again = client.get("/teams/harbour/invitations/").content.decode()
    assert "pli_" not in again
    assert "for Nora" in again


def test_new_person_makes_an_account_and_is_in(client: Client) -> None:
    path = make_link()
    assert "alice invites you" in client.get(path).content.decode()
    assert client.post(path, NEW_PERSON).status_code == 302
    assert client.get("/teams/harbour/").status_code == 200
    assert Membership.objects.get(user__username="nora").role == Role.MEMBER
    assert Client().get(path).status_code == 410


@pytest.mark.parametrize(
    "change",
    [{"password2": "other"}, {"password1": "short", "password2": "short"}, {"username": "ALICE"}, {"username": "a b"}],
)
def test_account_that_cannot_be_made_leaves_the_link_open(client: Client, change: dict[str, str]) -> None:
    path = make_link()
    assert client.post(path, NEW_PERSON | change).status_code == 422
    assert client.post(path, NEW_PERSON).status_code == 302


def test_taken_name_is_said_in_words(client: Client) -> None:
    answer = client.post(make_link(), NEW_PERSON | {"username": "ALICE"}).content.decode()
    assert "Somebody here has this name already." in answer


def test_person_with_an_account_joins_with_it(client: Client) -> None:
    path = make_link(Role.ADMIN)
    client.force_login(make_user("bob"), backend=BACKEND)
    assert "Join as bob" in client.get(path).content.decode()
    client.post(path)
    assert Membership.objects.get(user__username="bob").role == Role.ADMIN


def test_member_who_opens_an_invitation_does_not_use_it_up(client: Client) -> None:
    path = make_link()
    client.force_login(make_user("alice"), backend=BACKEND)
    client.post(path)
    assert Invitation.objects.get().accepted_at is None
    assert Client().get(path).status_code == 200


def test_link_is_accepted_once_revoked_once_and_expires() -> None:
    make_link()
    invitation, now = Invitation.objects.get(), timezone.now()
    with pytest.raises(Refused):
        invitations.accept(invitation, make_user("late"), now=now + timedelta(days=7, seconds=1))
    invitations.accept(invitation, make_user("first"), now=now)
    with pytest.raises(Refused):
        invitations.accept(invitation, make_user("second"), now=now)
    with pytest.raises(Refused):
        invitations.revoke(invitation, by=make_user("alice"), now=now)


def test_admin_cannot_invite_an_admin(client: Client) -> None:
    make_team("Harbour", owner="alice", admin="anna")
    client.force_login(make_user("anna"), backend=BACKEND)
    statuses = [client.post("/teams/harbour/invitations/", {"role": role}).status_code for role in Role.values]
    assert statuses == [200, 200, 422, 422]
