"""The follower process: whose sessions it brings, and how long it waits for the database."""

import pytest
from pytest_django import Settings

from dashboard.ingest.follower import LONGEST_BACKOFF_SECONDS, find_backoff, find_origin
from dashboard.models import Team
from tests.builders import make_team


@pytest.mark.django_db
def test_sessions_of_this_machine_belong_to_its_own_team(settings: Settings) -> None:
    settings.LOCAL_MODE = True
    make_team("Harbour", owner="alice")
    origin = find_origin()
    assert origin
    assert origin.team.is_local
    assert origin.sender
    assert origin.team.memberships.get().user == origin.sender
    assert origin.source == "follow"


@pytest.mark.django_db
def test_team_is_the_only_one_or_the_named_one(settings: Settings) -> None:
    settings.LOCAL_MODE = False
    assert find_origin() is None
    first = make_team("Harbour", owner="alice")
    assert _team_found() == first
    second = make_team("Lighthouse", owner="bob")
    assert _team_found() is None, "nobody said which of the two"
    settings.FOLLOW_TEAM = "lighthouse"
    assert _team_found() == second
    settings.FOLLOW_TEAM = "no such team"
    assert _team_found() is None


def _team_found() -> Team | None:
    origin = find_origin()
    return origin.team if origin else None


def test_waits_grow_differ_and_stay_below_the_silence_of_a_standstill() -> None:
    waits = [find_backoff(count) for count in range(40)]
    assert waits[0] <= 0.5
    assert max(waits) <= LONGEST_BACKOFF_SECONDS < 30
    assert min(waits[6:]) > max(waits[:2])
    assert len(set(waits)) > 30
