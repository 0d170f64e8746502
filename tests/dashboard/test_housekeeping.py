"""Recurring work: what goes, what stays, and that a second run changes nothing."""

import sqlite3
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings as django_settings
from django.contrib.sessions.models import Session
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from dashboard import housekeeping
from dashboard.housekeeping import refresh_statistics
from dashboard.jobs.perform import perform_due
from dashboard.models import AgentSession, Invitation, Job, JobState, Role, SignInLink
from tests.builders import make_many_sessions, make_team, make_user


def run(kind: str, key: str = "once") -> Job:
    job = Job.objects.create(kind=kind, key=f"{kind}:{key}")
    assert perform_due() == 1
    job.refresh_from_db()
    return job


@pytest.mark.django_db
def test_expired_links_invitations_and_sessions_are_forgotten() -> None:
    now, alice, team = timezone.now(), make_user("alice"), make_team("Harbour")
    for number, days in enumerate((-1, 1)):
        at = now + timedelta(days=days)
        SignInLink.objects.create(user=alice, digest=bytes([number]) * 32, expires_at=at)
        Session.objects.create(session_key=str(number), session_data="", expire_date=at)
    for number, days in enumerate((-91, -1, 1)):
        at = now + timedelta(days=days)
        Invitation.objects.create(team=team, role=Role.VIEWER, digest=bytes([number]) * 32, expires_at=at)
    assert run("forget_expired").result == {
        "links": 1,
        "invitations": 1,
        "key_hours": 0,
        "drop_receipts": 0,
        "sessions": 1,
    }
    assert run("forget_expired", "again").result == {
        "links": 0,
        "invitations": 0,
        "key_hours": 0,
        "drop_receipts": 0,
        "sessions": 0,
    }


@pytest.mark.django_db
def test_old_jobs_are_forgotten_and_broken_ones_stay_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(housekeeping, "BATCH", 2)
    now = timezone.now()
    kept = []
    for state in JobState:
        for days in (1, 8, 91):
            ended = now - timedelta(days=days) if state in JobState.finished() else None
            lease = now + timedelta(seconds=30) if state == JobState.RUNNING else None
            due = now + timedelta(days=1)  # what waits is not due, so that the run below takes its own job
            job = Job.objects.create(
                kind="forget_expired",
                key=f"{state}{days}",
                state=state,
                finished_at=ended,
                lease_until=lease,
                due_at=due,
            )
            limit = 90 if state in (JobState.FAILED, JobState.DEAD) else 7
            if ended is None or days < limit:
                kept.append(job.key)
    assert run("forget_old_jobs").result == {"jobs": 6}
    assert sorted(Job.objects.exclude(kind="forget_old_jobs").values_list("key", flat=True)) == sorted(kept)


@pytest.mark.django_db(transaction=True)
def test_database_is_tended_while_it_is_in_use() -> None:
    job = run("tend_database")
    assert job.state == JobState.DONE
    assert job.result is not None
    assert job.result["database"] == connection.vendor


@pytest.mark.django_db(transaction=True)
def test_statistics_are_refreshed_after_another_writer_is_done() -> None:
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    make_many_sessions(make_team("Harbour"), 300)  # far more rows than the statistics know of
    assert AgentSession.objects.filter(team__slug="harbour").order_by("-last_at").first()
    other = sqlite3.connect(connection.settings_dict["NAME"], check_same_thread=False, isolation_level=None)
    with closing(other):
        other.execute("BEGIN IMMEDIATE")
        end = threading.Timer(1, other.execute, ["COMMIT"])
        end.start()
        refresh_statistics()  # raises OperationalError, "database is locked", where it does not wait
        end.join()
    with connection.cursor() as cursor:
        cursor.execute("SELECT stat FROM sqlite_stat1 WHERE tbl = %s", [AgentSession._meta.db_table])
        assert {int(stat.split()[0]) for (stat,) in cursor.fetchall()} == {300}


@pytest.mark.django_db(transaction=True)
def test_a_daily_backup_is_kept_and_the_oldest_goes(settings: Settings, tmp_path: Path) -> None:
    if connection.vendor != "sqlite":
        assert run("keep_backup").result == {}
        return
    settings.DATABASES["default"]["NAME"], before = (
        connection.settings_dict["NAME"],
        django_settings.DATABASES["default"]["NAME"],
    )
    settings.DATA, settings.DAILY_BACKUPS = tmp_path, 2
    (tmp_path / "backups").mkdir()
    for day in (1, 2, 3):
        (tmp_path / "backups" / f"plimsoll-2026-01-0{day}.sqlite3").touch()
    make_team("Harbour")
    try:
        job = run("keep_backup")
    finally:
        settings.DATABASES["default"]["NAME"] = before
    assert job.state == JobState.DONE
    names = sorted(path.name for path in (tmp_path / "backups").iterdir())
    assert len(names) == 2
    assert names[0] == "plimsoll-2026-01-03.sqlite3"
    with sqlite3.connect(tmp_path / "backups" / names[1]) as copy:
        assert copy.execute("SELECT name FROM dashboard_team").fetchall() == [("Harbour",)]
    copy.close()
