"""Recurring work that keeps an installation small and safe. Each is a job; all may run twice without harm."""

import shutil
from datetime import timedelta
from pathlib import Path

from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import OperationalError, connection, transaction
from django.db.backends.utils import CursorWrapper
from django.utils import timezone

from dashboard.backup import BackupFailed, write_backup
from dashboard.ingest.hour_sums import add_up_changes
from dashboard.jobs.run import JobFailed, JobRun
from dashboard.models import DropReceipt, Invitation, Job, JobState, KeyHour, SignInLink
from dashboard.runs.resumed_files import forget_missing

KEEP_SPENT_INVITATIONS = timedelta(days=90)
KEEP_ENDED_JOBS = timedelta(days=7)
KEEP_BROKEN_JOBS = timedelta(days=90)  # failed and dead ones stay longer: somebody may still want to know why
KEEP_KEY_HOURS = timedelta(days=7)
KEEP_DROP_RECEIPTS = timedelta(days=7)  # a recorder that was killed gets the same messages again within minutes
BATCH = 500
PAGES_AT_ONCE = 1_000  # 4 MB: well below 100 ms
SPARE_SHARE = 0.1  # of the file stays free for what comes next


def forget_expired(run: JobRun) -> None:
    now = timezone.now()
    with run.finishing() as result:
        result["links"] = SignInLink.objects.filter(expires_at__lt=now).delete()[0]
        result["invitations"] = Invitation.objects.filter(expires_at__lt=now - KEEP_SPENT_INVITATIONS).delete()[0]
        result["key_hours"] = KeyHour.objects.filter(hour_at__lt=now - KEEP_KEY_HOURS).delete()[0]
        result["drop_receipts"] = DropReceipt.objects.filter(at__lt=now - KEEP_DROP_RECEIPTS).delete()[0]
        result["sessions"] = Session.objects.filter(expire_date__lt=now).delete()[0]


def forget_missing_transcripts(run: JobRun) -> None:
    """Of transcripts that were written for the client to resume: people delete them, and writers are killed."""
    forgotten = forget_missing(now=timezone.now())
    with run.finishing() as result:
        result["transcripts"] = forgotten


def forget_old_jobs(run: JobRun) -> None:
    """In batches: on SQLite a long delete would keep everybody else from writing."""
    now, forgotten = timezone.now(), 0
    quiet = Job.objects.filter(
        state__in=[JobState.DONE, JobState.CANCELLED], finished_at__lt=now - KEEP_ENDED_JOBS
    ) | Job.objects.filter(state__in=[JobState.FAILED, JobState.DEAD], finished_at__lt=now - KEEP_BROKEN_JOBS)
    while batch := list(quiet.values_list("pk", flat=True)[:BATCH]):
        run.check()
        with run.writing():
            forgotten += Job.objects.filter(pk__in=batch).delete()[0]
        run.report(done=forgotten)
    with run.finishing() as result:
        result["jobs"] = forgotten


def add_up_hours(run: JobRun) -> None:
    """In batches: on SQLite a long transaction would keep everybody else from writing."""
    added = 0
    while True:
        run.check()
        with run.writing():
            count = add_up_changes(BATCH)
        added += count
        if count < BATCH:
            break
        run.report(done=added)
    with run.finishing() as result:
        result["changes"] = added


def tend_database(run: JobRun) -> None:
    """SQLite's free pages go back to the disk, its log into the file, and its statistics are refreshed; PostgreSQL
    does all of it by itself."""
    told: dict[str, object] = {"database": connection.vendor}
    if connection.vendor == "sqlite":
        told["bytes_given_back"] = _give_back_space(run)
        refresh_statistics()
        with connection.cursor() as cursor:
            try:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                told["checkpoint"] = "busy" if cursor.fetchone()[0] else "whole"
            except OperationalError:
                told["checkpoint"] = "busy"  # somebody else is at it; the next turn comes
    with run.finishing(told):
        pass


def refresh_statistics() -> None:
    """Refresh SQLite's statistics where they are stale.

    The transaction takes the write lock first: a statement that reads and then writes does not wait for the lock.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("PRAGMA optimize")


def _give_back_space(run: JobRun) -> int:
    """Pages that deletions freed, some at a time: each step is a transaction of its own. A database that was made
    before pages could be given back has none to give, and fills them again."""
    with connection.cursor() as cursor:
        page_bytes, first, left = (_read_pragma(cursor, name) for name in ("page_size", "freelist_count", "page_count"))
        if not _read_pragma(cursor, "auto_vacuum") or first < left * SPARE_SHARE:
            return 0
        free = first
        while free > left * SPARE_SHARE:
            run.check()
            cursor.execute(f"PRAGMA incremental_vacuum({PAGES_AT_ONCE})")
            cursor.fetchall()
            now_free = _read_pragma(cursor, "freelist_count")
            if now_free >= free:
                break
            free = now_free
    return (first - free) * page_bytes


def _read_pragma(cursor: CursorWrapper, name: str) -> int:
    cursor.execute(f"PRAGMA {name}")
    return int(cursor.fetchone()[0])


def keep_backup(run: JobRun) -> None:
    """One copy a day in the data folder, the newest few kept. Not for PostgreSQL, which has its own ways."""
    folder: Path = settings.DATA / "backups"
    if connection.vendor != "sqlite" or not settings.DAILY_BACKUPS:
        return
    folder.mkdir(mode=0o700, exist_ok=True)
    database = Path(settings.DATABASES["default"]["NAME"])
    if shutil.disk_usage(folder).free < 3 * database.stat().st_size:
        raise JobFailed("The disk has no room for a backup in the data folder.")
    try:
        size = write_backup(folder / f"plimsoll-{timezone.now():%Y-%m-%d}.sqlite3", replace=True)
    except BackupFailed as failure:
        raise JobFailed(str(failure)) from failure
    for old in sorted(folder.glob("plimsoll-*.sqlite3"))[: -settings.DAILY_BACKUPS]:
        old.unlink()
    with run.finishing() as result:
        result["bytes"] = size
