"""While Plimsoll runs, the open sessions of the demo go on: for two hours, and no longer than the demo is there."""

from datetime import timedelta
from unittest.mock import ANY

import pytest
from django.utils import timezone

from dashboard.demo import going_on, making
from dashboard.demo.fleet import FLEET
from dashboard.demo.ordering import order_demo
from dashboard.demo.removal import remove_demo
from dashboard.jobs.perform import perform_due
from dashboard.models import AgentSession, ApiCall, CacheBreak, Job, JobState, LossKind, ObservedCompaction
from dashboard.pages.live_state import LIVE_FOR, LiveState, find_live_state
from tests.builders import make_team, make_user

pytestmark = pytest.mark.django_db
OPEN = [planned for planned in FLEET if planned.is_open]


def make_open_sessions(monkeypatch: pytest.MonkeyPatch, *, ago: timedelta) -> None:
    """As they were made then, before anything went on."""
    monkeypatch.setattr(making, "FLEET", OPEN)
    make_team("Real", owner="olga")
    made_at = timezone.now() - ago
    order_demo(make_user("olga"), now=made_at)
    making.fill_demo(now=made_at)
    Job.objects.exclude(kind="go_on_with_demo").delete()


def count_rows() -> list[int]:
    breaks = CacheBreak.objects.filter(kind=LossKind.BREAK)  # after a compaction a rebuild is expected
    return [AgentSession.objects.count(), ApiCall.objects.count(), breaks.count()]


@pytest.mark.parametrize("minutes", [0, 3, 8, 47, 118])
def test_open_sessions_stay_live(minutes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    make_open_sessions(monkeypatch, ago=timedelta(minutes=minutes))
    sessions, calls, breaks = count_rows()
    perform_due()
    now = timezone.now()
    live = [find_live_state(session, now=now) for session in AgentSession.objects.all()]
    assert live == [LiveState.LIVE] * len(OPEN)
    assert not AgentSession.objects.filter(last_at__gt=now).exists()
    assert all(session.warm_until and session.warm_until > now for session in AgentSession.objects.all())
    assert count_rows() == [sessions, ANY, breaks]
    assert (ApiCall.objects.count() > calls) == (minutes > 0)
    assert ObservedCompaction.objects.exists() == (minutes > 20)  # two of them come to their line meanwhile
    assert Job.objects.get(kind="go_on_with_demo").state == JobState.QUEUED


def test_nothing_is_told_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    make_open_sessions(monkeypatch, ago=timedelta(minutes=8))
    perform_due()
    known, versions = count_rows(), sorted(AgentSession.objects.values_list("pk", "version"))
    Job.objects.update(due_at=None)
    assert perform_due()
    assert count_rows() == known
    assert sorted(AgentSession.objects.values_list("pk", "version")) == versions


def test_it_ends_by_itself_and_leaves_a_deleted_session_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    make_open_sessions(monkeypatch, ago=timedelta(minutes=20))
    AgentSession.objects.order_by("pk")[0].delete()
    perform_due()
    assert AgentSession.objects.count() == len(OPEN) - 1
    monkeypatch.setattr(going_on, "ALIVE_FOR", timedelta(minutes=10))
    known = count_rows()
    Job.objects.update(due_at=None)
    perform_due()
    assert Job.objects.get(kind="go_on_with_demo").state == JobState.DONE
    assert count_rows() == known
    assert LIVE_FOR < going_on.ALIVE_FOR


def test_removed_demo_does_not_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    make_open_sessions(monkeypatch, ago=timedelta(minutes=8))
    remove_demo(now=timezone.now())
    assert not Job.objects.filter(kind="go_on_with_demo").exists()
    perform_due()
    assert count_rows() == [0, 0, 0]
