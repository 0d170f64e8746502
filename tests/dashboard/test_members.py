"""Roles, grants, leaving: a team keeps an owner, and every change is in the audit log."""

import threading

import pytest
from django.db import connection
from django.test import Client

from dashboard.accounts import members
from dashboard.accounts.local import ensure_local_owner
from dashboard.accounts.refusals import Refused
from dashboard.accounts.teams import create_team
from dashboard.models import ApiKey, AuditEvent, Membership, Role, Scope, Team, User
from tests.builders import make_key, make_team, make_user

BACKEND = "django.contrib.auth.backends.ModelBackend"


def membership(name: str) -> Membership:
    return Membership.objects.select_related("user", "team").get(user__username=name)


@pytest.mark.django_db
def test_last_owner_neither_leaves_nor_steps_down() -> None:
    make_team("Harbour", owner="alice", admin="anna")
    alice = membership("alice")
    with pytest.raises(Refused, match="needs an owner"):
        members.change_role(alice, Role.ADMIN, by=alice.user)
    with pytest.raises(Refused, match="needs an owner"):
        members.remove_member(alice, by=alice.user)
    assert membership("alice").role == Role.OWNER
    assert not AuditEvent.objects.exists()


@pytest.mark.django_db
def test_a_closed_account_does_not_count_as_owner() -> None:
    make_team("Harbour", owner="alice")
    bob = Membership.objects.create(team=Team.objects.get(), user=make_user("bob"), role=Role.OWNER)
    User.objects.filter(pk=bob.user_id).update(is_active=False)
    with pytest.raises(Refused):
        members.change_role(membership("alice"), Role.ADMIN, by=bob.user)


@pytest.mark.django_db(transaction=True)
def test_two_owners_who_demote_each_other_at_once_leave_one() -> None:
    make_team("Harbour", owner="alice")
    Membership.objects.create(team=Team.objects.get(), user=make_user("bob"), role=Role.OWNER)
    together, outcomes = threading.Barrier(2), []

    def demote(name: str) -> None:
        target = membership(name)
        together.wait(10)
        try:
            members.change_role(target, Role.ADMIN, by=target.user)
            outcomes.append("done")
        except Refused:
            outcomes.append("refused")
        finally:
            connection.close()

    threads = [threading.Thread(target=demote, args=[name]) for name in ("alice", "bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(outcomes) == ["done", "refused"]
    assert Membership.objects.filter(role=Role.OWNER).count() == 1


@pytest.mark.django_db
def test_removed_member_takes_their_keys_along() -> None:
    team = make_team("Harbour", owner="alice", member="mia")
    make_key(team, make_user("mia"), Scope.READ)
    members.remove_member(membership("mia"), by=make_user("alice"))
    assert ApiKey.objects.filter(revoked_at=None).count() == 0
    event = AuditEvent.objects.get(action="member removed")
    assert (event.actor_name, event.subject, event.details) == ("alice", "mia", {"keys_revoked": 1})


@pytest.mark.django_db
def test_admin_removes_those_below_and_nobody_else(client: Client) -> None:
    make_team("Harbour", owner="alice", admin="anna", member="mia")
    client.force_login(make_user("anna"), backend=BACKEND)
    statuses = {
        name: client.post(f"/teams/harbour/members/{membership(name).pk}/remove/").status_code
        for name in ("alice", "mia")
    }
    assert statuses == {"alice": 403, "mia": 302}


@pytest.mark.django_db
def test_everybody_may_leave(client: Client) -> None:
    make_team("Harbour", owner="alice", viewer="vera")
    client.force_login(make_user("vera"), backend=BACKEND)
    assert client.post(f"/teams/harbour/members/{membership('vera').pk}/remove/").headers["Location"] == "/"
    assert client.get("/teams/harbour/").status_code == 404
    assert "You are not a member of any team" in client.get("/").content.decode()


@pytest.mark.django_db
def test_role_changed_in_place_answers_with_the_row_and_a_toast(client: Client) -> None:
    make_team("Harbour", owner="alice", viewer="vera")
    client.force_login(make_user("alice"), backend=BACKEND)
    vera = membership("vera")
    url = f"/teams/harbour/members/{vera.pk}/role/"
    page = client.post(url, {"role": "admin"}, headers={"HX-Request": "true"}).content.decode()
    assert f'<tr id="member-{vera.pk}">' in page
    assert "<html" not in page
    assert "vera is now an admin." in page
    assert membership("vera").role == Role.ADMIN
    refused = client.post(url, {"role": "emperor"}, headers={"HX-Request": "true"}).content.decode()
    assert "Unknown role." in refused


@pytest.mark.django_db
def test_content_grant_is_given_and_withdrawn_with_a_trace(client: Client) -> None:
    make_team("Harbour", owner="alice", viewer="vera")
    client.force_login(make_user("alice"), backend=BACKEND)
    url = f"/teams/harbour/members/{membership('vera').pk}/content/"
    for granted in ("yes", "yes", "no"):
        client.post(url, {"granted": granted})
    actions = list(AuditEvent.objects.order_by("id").values_list("action", flat=True))
    assert actions == ["content granted", "content withdrawn"]


@pytest.mark.django_db
def test_teams_of_the_same_name_get_different_addresses() -> None:
    alice = make_user("alice")
    slugs = [create_team(name, owner=alice).slug for name in ("Harbour", "Harbour!", "New", "船", "harbour")]
    assert slugs == ["harbour", "harbour-2", "new-2", "team", "harbour-3"]


@pytest.mark.django_db
def test_renamed_team_keeps_its_address(client: Client) -> None:
    make_team("Harbour", owner="alice")
    client.force_login(make_user("alice"), backend=BACKEND)
    client.post("/teams/harbour/settings/", {"name": "Quay"})
    page = client.get("/teams/harbour/").content.decode()
    assert "<h1>Quay</h1>" in page
    assert client.post("/teams/harbour/settings/", {"name": " "}).status_code == 422


@pytest.mark.django_db
def test_local_owner_is_made_once() -> None:
    first, second = ensure_local_owner(), ensure_local_owner()
    assert first == second
    assert not first.has_usable_password()
    assert Team.objects.get().is_local
    assert membership(first.username).role == Role.OWNER


@pytest.mark.django_db(transaction=True)
def test_two_first_starts_make_one_local_team() -> None:
    together, owners = threading.Barrier(2), []

    def start() -> None:
        together.wait(10)
        try:
            owners.append(ensure_local_owner().pk)
        finally:
            connection.close()

    threads = [threading.Thread(target=start) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert Team.objects.count() == 1
    assert len(set(owners)) == 1
    assert len(owners) == 2
