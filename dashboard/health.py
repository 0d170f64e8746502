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

from dashboard.jobs.beat import find_newest_beat, find_own_beat
from dashboard.jobs.claim import due_jobs
from dashboard.jobs.kinds import known_kinds
from dashboard.models import FollowedFile
from dashboard.policies.unusable_patterns import count_unusable
from dashboard.proxy.private_socket import NotPrivate, require_private_socket
from dashboard.proxy.wire import find_socket_path
from dashboard.sqlite_damage import is_damage, was_damage_found

# Below this SQLite's journal and a backup no longer fit beside each other on a small installation.
LOW_DISK_BYTES = 500 * 1024 * 1024
LONGEST_WAIT_SECONDS = 30  # of a due job and of the sweeper: beyond it work stands still (R18)
NOTICE_KEPT_SECONDS = 2
DAMAGE = "damaged; restore a backup"


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

    @property
    def failing_count(self) -> int:
        return sum(not check.is_ok for check in self.checks)


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
    behind_bytes: int  # of complete lines
    cut_file_count: int  # files whose last line is incomplete
    cut_bytes: int
    unreadable_lines: int
    last_read_at: datetime | None


def read_intake(files: QuerySet[FollowedFile]) -> Intake:
    cut = Q(open_line_bytes__gt=0, is_open_line_read=False)
    told = files.filter(gone_at=None).aggregate(
        number=Count("id"),
        behind=Sum(Greatest(F("size_bytes") - F("offset") - F("open_line_bytes"), 0)),
        cut_files=Count("id", filter=cut),
        cut_bytes=Sum("open_line_bytes", filter=cut),
        problems=Sum("problem_count"),
        last=Max("read_at"),
    )
    return Intake(
        file_count=told["number"],
        behind_bytes=told["behind"] or 0,
        cut_file_count=told["cut_files"],
        cut_bytes=told["cut_bytes"] or 0,
        unreadable_lines=told["problems"] or 0,
        last_read_at=told["last"],
    )


def read_health(now: datetime) -> Health:
    try:
        checks = _check_stored(now)
    except DatabaseError as error:
        words = DAMAGE if is_damage(error) else "not responding"
        checks = [Check("database", is_ok=False, finding=f"{words} ({type(error).__name__})")]
    return Health([*checks, _check_disk()])


def _check_stored(now: datetime) -> list[Check]:
    """Checks that read the database. Raises DatabaseError."""
    database, schema = _check_database(), _check_migrations()
    return [database, schema, *([*_check_work(now), *_check_patterns()] if schema.is_ok else [])]


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
    if was_damage_found():
        return Check("database", is_ok=False, finding=DAMAGE)
    started = time.perf_counter()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchone()
    return Check("database", is_ok=True, finding=f"responds in {(time.perf_counter() - started) * 1000:.2f} ms")


def _check_migrations() -> Check:
    executor = MigrationExecutor(connection)
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if pending:
        return Check("schema", is_ok=False, finding=f"{len(pending)} pending migrations; run plimsoll migrate")
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
        return Check("jobs", is_ok=True, finding="queue is empty")
    age_seconds = max(0, int((now - min(since)).total_seconds()))
    told = f"{waits['number']:,} waiting, the oldest for {age_seconds:,} s"
    return Check("jobs", is_ok=age_seconds < LONGEST_WAIT_SECONDS, finding=told)


def _check_sweeper(now: datetime) -> Check:
    return _check_beat("sweeper", now, never="has not run yet", last="last run")


def _check_recorder(now: datetime) -> Check:
    """Calls pass without it, and must: a balancer that turned away from here would break them."""
    try:
        require_private_socket(find_socket_path(settings.DATA))
    except NotPrivate as error:
        return Check(
            "recorder",
            is_ok=False,
            finding=f"not in use; calls are forwarded but not recorded: {error}",
            is_vital=False,
        )
    except OSError:
        pass  # no socket: whether that is a fault, the heartbeat says
    if find_own_beat("recorder", now) is None:
        return Check("recorder", is_ok=True, finding="not running: proxied calls are forwarded but not recorded")
    found = _check_beat("recorder", now, never="", last="last run")
    return replace(found, is_vital=False)


def _check_follower(now: datetime) -> Check:
    return _check_beat("follower", now, never="has not run yet", last="last run")


def _check_beat(process: str, now: datetime, *, never: str, last: str) -> Check:
    """Check this host's process; on a host without one, that another host's goes on: one is enough for all of them."""
    own = find_own_beat(process, now)
    at = own or find_newest_beat(process)
    if at is None:
        return Check(process, is_ok=False, finding=never)
    age_seconds = max(0, int((now - at).total_seconds()))
    is_ok = age_seconds < LONGEST_WAIT_SECONDS
    where = ", on another host" if is_ok and own is None else ""
    return Check(process, is_ok=is_ok, finding=f"{last} {age_seconds:,} s ago{where}")


def _check_patterns() -> list[Check]:
    """Listed only while something is wrong. Teams are not named, as probes are public."""
    pattern_count, team_count = count_unusable()
    if not pattern_count:
        return []
    finding = (
        f"{pattern_count:,} {'pattern' if pattern_count == 1 else 'patterns'} of {team_count:,}"
        f" {'team' if team_count == 1 else 'teams'} cannot be used, so no content is stored there; see the"
        " team's Redaction page"
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
