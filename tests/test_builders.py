"""The builders make what they say."""

import pytest
from django.utils import timezone

from dashboard.accounts.keys import find_key
from dashboard.models import Role, Scope
from tests.builders import make_key, make_team, make_user


@pytest.mark.django_db
def test_team_has_one_person_per_named_role() -> None:
    team = make_team("Harbour", owner="alice", viewer="vera")
    roles = dict(team.memberships.values_list("user__username", "role"))
    assert roles == {"alice": Role.OWNER, "vera": Role.VIEWER}


@pytest.mark.django_db
def test_key_opens_by_its_text() -> None:
    team = make_team("Harbour", owner="alice")
    key, text = make_key(team, make_user("alice"), Scope.READ, Scope.CONTENT)
    assert find_key(text, now=timezone.now()) == key
