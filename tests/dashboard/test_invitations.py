"""Invitation links: made, accepted once, revoked, expired."""

from collections.abc import Callable
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.test import Client
from django.utils import timezone

from dashboard.accounts import invitations, members
from dashboard.accounts.refusals import Refused
from dashboard.models import AuditEvent, Invitation, Membership, Role, Team, User
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
    assert "alice invited you" in client.get(path).content.decode()
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
    assert "This name is already taken. Choose another one." in answer


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


def find_membership(name: str) -> Membership:
    return Membership.objects.select_related("user", "team").get(user__username=name)


def invite_as(name: str, role: Role, note: str = "for Nora") -> str:
    team = Team.objects.get(slug="harbour")
    return urlsplit(invitations.invite(team, role, note=note, by=make_user(name), now=timezone.now())[1]).path


def test_removed_owner_does_not_come_back_by_an_earlier_invitation(client: Client) -> None:
    make_team("Harbour", owner="alice")
    Membership.objects.create(team=Team.objects.get(), user=make_user("eve"), role=Role.OWNER)
    path, spare = invite_as("eve", Role.OWNER), invite_as("eve", Role.VIEWER, note="spare")
    kept = invite_as("alice", Role.MEMBER)
    members.remove_member(find_membership("eve"), by=make_user("alice"))
    client.force_login(make_user("eve"), backend=BACKEND)
    for link in (path, spare):
        assert [client.get(link).status_code, client.post(link).status_code] == [410, 410]
        assert Client().post(link, NEW_PERSON).status_code == 410
    assert set(Membership.objects.values_list("user__username", flat=True)) == {"alice"}
    events = AuditEvent.objects.filter(action="invitation revoked").order_by("pk")
    assert list(events.values_list("actor_name", "subject", "details__reason")) == [
        ("alice", "for Nora", "its creator left the team"),
        ("alice", "spare", "its creator left the team"),
    ]
    assert Client().get(kept).status_code == 200


@pytest.mark.parametrize(
    ("before", "after", "gives"),
    [
        (Role.OWNER, Role.ADMIN, Role.OWNER),
        (Role.OWNER, Role.MEMBER, Role.MEMBER),
        (Role.ADMIN, Role.MEMBER, Role.MEMBER),
        (Role.ADMIN, Role.VIEWER, Role.VIEWER),
    ],
)
def test_lower_role_revokes_invitations_and_a_higher_one_does_not(before: Role, after: Role, gives: Role) -> None:
    make_team("Harbour", owner="alice")
    Membership.objects.create(team=Team.objects.get(), user=make_user("eve"), role=before)
    path = invite_as("eve", gives)
    members.change_role(find_membership("eve"), Role.OWNER, by=make_user("alice"))
    assert Client().get(path).status_code == 200
    members.change_role(find_membership("eve"), after, by=make_user("alice"))
    assert Client().get(path).status_code == 410
    assert AuditEvent.objects.get(action="invitation revoked").details == {"reason": "its creator now has a lower role"}
    members.change_role(find_membership("eve"), Role.OWNER, by=make_user("alice"))
    assert Client().post(path, NEW_PERSON).status_code == 410


def remove_row() -> None:
    Membership.objects.filter(user__username="eve").delete()


def lower_row() -> None:
    Membership.objects.filter(user__username="eve").update(role=Role.ADMIN)


def close_account() -> None:
    User.objects.filter(username="eve").update(is_active=False)


def delete_account() -> None:
    User.objects.filter(username="eve").delete()


@pytest.mark.parametrize("lose_right", [remove_row, lower_row, close_account, delete_account])
def test_right_of_the_maker_is_checked_again_on_acceptance(lose_right: Callable[[], None]) -> None:
    make_team("Harbour", owner="alice")
    Membership.objects.create(team=Team.objects.get(), user=make_user("eve"), role=Role.OWNER)
    path = invite_as("eve", Role.OWNER)
    invitation = Invitation.objects.select_related("team", "created_by").get()
    lose_right()
    fresh = Invitation.objects.get()
    with pytest.raises(Refused, match="can no longer grant this role"):
        invitations.accept(invitation if fresh.created_by_id else fresh, make_user("nora"), now=timezone.now())
    page = Client().get(path)
    assert page.status_code == 410
    assert "can no longer invite people as owner" in page.content.decode()
    assert Client().post(path, NEW_PERSON | {"username": "nina"}).status_code == 410
    assert not Membership.objects.filter(user__username__in=["nora", "nina"]).exists()
    event = AuditEvent.objects.get(action="invitation revoked")
    assert (event.actor_name, event.details["reason"]) == ("Plimsoll", "its creator can no longer grant this role")
