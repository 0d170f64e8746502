"""Policies are written once: new rows, refusals, two people at once, undo."""

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from compaction.errors import BadPolicy
from dashboard.accounts.refusals import Refused
from dashboard.models import AuditEvent, Job, Team, TeamPolicy, User
from dashboard.policies import changes
from dashboard.policies.changes import RELEVEL, change_policy, undo_change
from dashboard.policies.in_force import TeamSettings, find_policy
from tests.builders import make_team, make_user

pytestmark = pytest.mark.django_db
EARLY = {"preset": "early"}


@pytest.fixture
def team() -> Team:
    return make_team("Harbour", owner="olga", admin="anna")


@pytest.fixture
def anna(team: Team) -> User:
    return make_user("anna")


def change(team: Team, by: User | None, note: str = "", **values: Any) -> TeamSettings:
    current = find_policy(team)
    return change_policy(team, replace(current, **values), by=by, base_version=current.version, note=note)


def test_team_without_a_row_has_the_clients_lines_and_stores_content_on_ones_own_machine(team: Team) -> None:
    assert find_policy(team) == TeamSettings(stores_content=False)
    team.is_local = True
    assert find_policy(team) == TeamSettings(stores_content=True)
    assert find_policy(team).lines_policy.warning_margin_tokens == 20_000


def test_policy_in_force_is_the_newest_row_of_the_team_in_one_query(team: Team, anna: User) -> None:
    change(team, anna, thresholds=EARLY)
    change(team, anna, stores_content=True)
    change(make_team("Marina"), anna, thresholds={"auto_percent": 50})
    with CaptureQueriesContext(
        connection,
    ) as queries:
        settings = find_policy(team)
    assert len(queries) == 1
    assert (settings.version, settings.thresholds, settings.stores_content) == (2, EARLY, True)
    assert settings.lines_policy.warning_margin_tokens == 40_000


def test_change_is_a_row_with_who_and_why_an_audit_event_and_a_job(team: Team, anna: User) -> None:
    change(team, anna, "too many surprises", thresholds={"warning_margin_tokens": "30,000", "auto_percent": 80})
    row = TeamPolicy.objects.get(team=team)
    assert row.thresholds == {"warning_margin_tokens": 30_000, "auto_percent": 80}
    assert (row.version, row.changed_by_name, row.note) == (1, "anna", "too many surprises")
    event = AuditEvent.objects.get(team=team)
    assert (event.action, event.subject, event.actor_name) == ("policy changed", "version 1", "anna")
    assert event.details == {"changes": ["warning margin: not set → 30,000", "auto-compact percentage: not set → 80%"]}
    now, late = Job.objects.filter(kind=RELEVEL, team=team).order_by("id")
    assert now.payload == late.payload == {"version": 1}
    assert now.due_at is None
    assert late.due_at is not None


def test_change_of_storage_levels_nothing_anew_and_tells_no_pattern(team: Team, anna: User) -> None:
    change(team, anna, stores_content=True, own_patterns={"badge": "B-[0-9]{6}"})
    change(team, anna, own_patterns={"badge": "C-[0-9]{6}"})
    change(team, anna, own_patterns={})
    assert not Job.objects.filter(kind=RELEVEL).exists()
    assert [event.details["changes"] for event in AuditEvent.objects.order_by("id")] == [
        ["content: not stored → stored", "redaction badge: none → set"],
        ["redaction badge: set → changed"],
        ["redaction badge: set → none"],
    ]


def test_values_in_force_already_write_nothing_whatever_they_are_based_on(team: Team, anna: User) -> None:
    first = change(team, anna, thresholds=EARLY)
    wanted = replace(first, thresholds={"preset": "early", "window_tokens": ""})
    assert change_policy(team, wanted, by=anna, base_version=0) == first
    assert TeamPolicy.objects.count() == AuditEvent.objects.count() == 1


REFUSED: dict[str, dict[str, Any]] = {
    "lines that cross": {"thresholds": {"error_margin_tokens": 30_000}},
    "a pattern without end": {"own_patterns": {"badge": "B-[0-9]+"}},
    "a pattern's name": {"own_patterns": {"Badge!": "B-[0-9]{6}"}},
    "a long pattern": {"own_patterns": {"badge": "B" * 501}},
    "too many patterns": {"own_patterns": {f"badge-{n}": "B-[0-9]{6}" for n in range(21)}},
}


@pytest.mark.parametrize("case", REFUSED)
def test_values_that_make_no_sense_are_refused_with_a_sentence(team: Team, anna: User, case: str) -> None:
    with pytest.raises(BadPolicy, match=r"\.$"):
        change(team, anna, **REFUSED[case])
    assert not TeamPolicy.objects.exists()
    assert not Job.objects.exists()


def test_second_of_two_people_is_told_and_overwrites_nothing(team: Team, anna: User) -> None:
    seen_by_both = find_policy(team)
    change_policy(team, replace(seen_by_both, thresholds=EARLY), by=anna, base_version=0)
    late = replace(seen_by_both, thresholds={"auto_percent": 70})
    with pytest.raises(Refused, match="anna changed the policy in the meantime, so nothing was saved"):
        change_policy(team, late, by=make_user("olga"), base_version=0)
    assert find_policy(team).thresholds == EARLY


def test_row_written_between_the_look_and_the_save_is_told_by_the_constraint(team: Team, anna: User) -> None:
    """Two transactions on PostgreSQL both see version 0; what the slower one meets is the unique constraint."""
    seen = find_policy(team)
    change(team, anna, thresholds=EARLY)
    late = replace(seen, thresholds={"auto_percent": 70})
    with pytest.raises(Refused, match="anna changed the policy"):
        changes._write(team, seen, late, by=make_user("olga"), note="")
    assert [row.version for row in TeamPolicy.objects.all()] == [1]
    with pytest.raises(IntegrityError), transaction.atomic():
        TeamPolicy.objects.create(team=team, version=1)


def test_undo_of_the_newest_change_brings_the_older_values_as_a_new_row(team: Team, anna: User) -> None:
    change(team, anna, thresholds=EARLY)
    change(
        team, anna, thresholds={"warning_margin_tokens": 60_000, "models": {"claude-opus-4-5": {"auto_percent": 50}}}
    )
    undone = undo_change(team, 2, by=anna)
    assert (undone.version, undone.thresholds) == (3, EARLY)
    assert TeamPolicy.objects.get(team=team, version=3).note == "undoes version 2"
    assert undo_change(team, 1, by=anna).thresholds == {}


def test_undo_of_an_older_change_keeps_what_came_since(team: Team, anna: User) -> None:
    change(team, anna, thresholds={"auto_percent": 80}, stores_content=True)
    change(team, anna, thresholds={"auto_percent": 80, "models": {"claude-opus-4-5": {"auto_percent": 50}}})
    change(team, anna, own_patterns={"badge": "B-[0-9]{6}"})
    undone = undo_change(team, 1, by=anna)
    assert undone.thresholds == {"models": {"claude-opus-4-5": {"auto_percent": 50}}}
    assert (undone.stores_content, undone.own_patterns) == (False, {"badge": "B-[0-9]{6}"})


def test_undo_of_nothing_is_refused(team: Team, anna: User) -> None:
    change(team, anna, thresholds=EARLY)
    change(team, anna, thresholds={})
    for version in (0, 3, 99):
        with pytest.raises(Refused, match="Change not found"):
            undo_change(team, version, by=anna)
    with pytest.raises(Refused, match="nothing left to undo"):
        undo_change(team, 1, by=anna)
    assert TeamPolicy.objects.count() == 2


def test_undo_that_would_cross_the_lines_is_refused(team: Team, anna: User) -> None:
    change(team, anna, thresholds={"warning_margin_tokens": 60_000})
    change(team, anna, thresholds={"warning_margin_tokens": 60_000, "error_margin_tokens": 50_000})
    with pytest.raises(BadPolicy, match="below the warning threshold"):
        undo_change(team, 1, by=anna)


@pytest.mark.django_db(transaction=True)
def test_of_many_who_save_at_once_one_wins_and_the_others_are_told() -> None:
    team = make_team("Harbour", owner="olga")
    seen, together = find_policy(team), threading.Barrier(4)

    def save(percent: int) -> str:
        together.wait(10)
        try:
            change_policy(team, replace(seen, thresholds={"auto_percent": percent}), by=None, base_version=0)
        except Refused as refusal:
            return str(refusal)
        finally:
            connection.close()
        return "saved"

    with ThreadPoolExecutor(4) as people:
        told = list(people.map(save, (50, 60, 70, 80)))
    assert told.count("saved") == 1
    assert sum("changed the policy in the meantime" in each for each in told) == 3
    assert TeamPolicy.objects.count() == AuditEvent.objects.count() == 1
    assert Job.objects.filter(kind=RELEVEL).count() == 2
