"""Is this installation able to work: questions of the health page and of probes, answered from facts, not liveness."""

import platform
import shutil
import time
from dataclasses import dataclass, replace
from datetime import datetime

import django
from django.conf import settings
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Count, F, Max, Min, Q, QuerySet, Sum
from django.db.models.functions import Greatest
from django.template.defaultfilters import filesizeformat

from dashboard.jobs.claim import due_jobs
from dashboard.jobs.kinds import known_kinds
from dashboard.models import Beat, FollowedFile
from dashboard.policies.unusable_patterns import count_unusable

# Below this SQLite's journal and a backup no longer fit beside each other on a small installation.
LOW_DISK_BYTES = 500 * 1024 * 1024
LONGEST_WAIT_SECONDS = 30  # of a due job and of the sweeper: beyond it work stands still (R18)
NOTICE_KEPT_SECONDS = 2


@dataclass(frozen=True)
class Check:
    name: str
    is_ok: bool
    finding: str
    is_vital: bool = True  # a process that cannot do without it is not ready


@dataclass(frozen=True)
class Health:
    checks: list[Check]

    @property
    def is_ready(self) -> bool:
        return all(check.is_ok for check in self.checks if check.is_vital)


@dataclass(frozen=True)
class Installation:
    """Facts for the page alone; a probe has no business with them."""

    versions: dict[str, str]
    data_folder: str
    database: str
    disk_free_bytes: int
    disk_total_bytes: int


@dataclass(frozen=True)
class Intake:
    """How far the ways in are: files that are followed, and what is written in them but not yet read."""

    file_count: int
    behind_bytes: int
    unreadable_lines: int
    last_read_at: datetime | None


def read_intake(files: QuerySet[FollowedFile]) -> Intake:
    told = files.filter(gone_at=None).aggregate(
        number=Count("id"),
        behind=Sum(Greatest(F("size_bytes") - F("offset"), 0)),
        problems=Sum("problem_count"),
        last=Max("read_at"),
    )
    return Intake(told["number"], told["behind"] or 0, told["problems"] or 0, told["last"])


def read_health(now: datetime) -> Health:
    database = _check_database()
    checks = [database]
    if database.is_ok:
        schema = _check_migrations()
        checks.append(schema)
        if schema.is_ok:
            checks += _check_work(now)
            checks += _check_patterns()
    checks.append(_check_disk())
    return Health(checks)


def standstill_notice(now: datetime) -> str:
    """For the banner of every page: empty while work goes on. Remembered for a moment, as every page asks."""
    return str(cache.get_or_set("standstill-notice", lambda: _read_standstill(now), NOTICE_KEPT_SECONDS))


def _read_standstill(now: datetime) -> str:
    failing = [check for check in _check_work(now) if not check.is_ok]
    return "; ".join(f"{check.name}: {check.finding}" for check in failing)


def read_installation() -> Installation:
    disk = shutil.disk_usage(settings.DATA)
    return Installation(
        versions={
            "Plimsoll": settings.VERSION,
            "Python": platform.python_version(),
            "Django": django.get_version(),
            connection.display_name: _database_version(),
        },
        data_folder=str(settings.DATA),
        database=connection.display_name,
        disk_free_bytes=disk.free,
        disk_total_bytes=disk.total,
    )


def _database_version() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT sqlite_version()" if connection.vendor == "sqlite" else "SHOW server_version")
        return str(cursor.fetchone()[0])


def _check_database() -> Check:
    started = time.perf_counter()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchone()
    except DatabaseError as error:
        return Check("database", is_ok=False, finding=f"does not answer ({type(error).__name__})")
    return Check("database", is_ok=True, finding=f"answers in {(time.perf_counter() - started) * 1000:.2f} ms")


def _check_migrations() -> Check:
    executor = MigrationExecutor(connection)
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if pending:
        return Check("schema", is_ok=False, finding=f"{len(pending)} migrations wait; run plimsoll migrate")
    return Check("schema", is_ok=True, finding="up to date")


def _check_work(now: datetime) -> list[Check]:
    """What must go on by itself, as it is set up here."""
    follower = [_check_follower(now)] if settings.FOLLOW_ROOTS else []
    return [_check_queue(now), _check_sweeper(now), _check_recorder(now), *follower]


def _check_queue(now: datetime) -> Check:
    """How long work waits says more than whether a worker process lives: a wedged one lives."""
    due = due_jobs(now).filter(kind__in=known_kinds())
    waits = due.aggregate(
        number=Count("id"), delayed=Min("due_at"), at_once=Min("created_at", filter=Q(due_at__isnull=True))
    )
    since = [at for at in (waits["delayed"], waits["at_once"]) if at]
    if not since:
        return Check("jobs", is_ok=True, finding="nothing waits")
    age_seconds = max(0, int((now - min(since)).total_seconds()))
    told = f"{waits['number']:,} waiting, the oldest for {age_seconds:,} s"
    return Check("jobs", is_ok=age_seconds < LONGEST_WAIT_SECONDS, finding=told)


def _check_sweeper(now: datetime) -> Check:
    return _check_beat("sweeper", now, never="has not made a round yet", last="last round")


def _check_recorder(now: datetime) -> Check:
    """Calls pass without it, and must: a balancer that turned away from here would break them."""
    if not Beat.objects.filter(name__startswith="recorder ").exists():
        return Check("recorder", is_ok=True, finding="does not run: calls would pass through the proxy unseen")
    found = _check_beat("recorder", now, never="", last="last looked")
    return replace(found, is_vital=False)


def _check_follower(now: datetime) -> Check:
    return _check_beat("follower", now, never="has not looked at the transcripts yet", last="last looked")


def _check_beat(process: str, now: datetime, *, never: str, last: str) -> Check:
    at = Beat.objects.filter(name__startswith=f"{process} ").aggregate(at=Max("at"))["at"]
    if at is None:
        return Check(process, is_ok=False, finding=never)
    age_seconds = max(0, int((now - at).total_seconds()))
    return Check(process, is_ok=age_seconds < LONGEST_WAIT_SECONDS, finding=f"{last} {age_seconds:,} s ago")


def _check_patterns() -> list[Check]:
    """Listed only while something is wrong. Teams are not named, as probes are public."""
    pattern_count, team_count = count_unusable()
    if not pattern_count:
        return []
    finding = (
        f"{pattern_count:,} of {team_count:,} {'team' if team_count == 1 else 'teams'} cannot be used, so no content is"
        " stored there: see the storage page of the team"
    )
    return [Check("redaction patterns", is_ok=False, finding=finding, is_vital=False)]


def _check_disk() -> Check:
    try:
        free = shutil.disk_usage(settings.DATA).free
    except OSError as error:
        return Check("disk", is_ok=False, finding=f"the data folder cannot be read ({error.strerror})")
    if free < LOW_DISK_BYTES:
        return Check("disk", is_ok=False, finding=f"only {filesizeformat(free)} free in the data folder")
    return Check("disk", is_ok=True, finding=f"{filesizeformat(free)} free in the data folder")
