"""The follower process: rounds until it is stopped, a sign of life every few seconds, patience with the database."""

import logging
import random
import signal
import threading
import time

from django.conf import settings
from django.db import InterfaceError, OperationalError, connection
from django.utils import timezone

from dashboard.accounts.local import ensure_local_owner
from dashboard.ingest.folder_watch import FolderWatch
from dashboard.ingest.follow import Follower
from dashboard.ingest.follow_delivery import IntakeDelivery
from dashboard.ingest.intake import Origin
from dashboard.jobs.beat import BEAT_EVERY_SECONDS, note_beat
from dashboard.models import Team, User

WAIT_SECONDS = 0.5  # also the longest until a signal is heeded
TEAM_AGAIN_SECONDS = 5.0
FIRST_BACKOFF_SECONDS = 0.5
LONGEST_BACKOFF_SECONDS = 15.0  # shorter than the silence that the health page takes for a standstill

log = logging.getLogger(__name__)


def run_follower() -> None:
    """Returns after an orderly stop; what is being taken in at that moment is finished first."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopping.set())
    watch = FolderWatch(is_polling=settings.FOLLOW_POLL)
    rounds = _Rounds(watch)
    failure_count = 0
    while not stopping.is_set():
        try:
            rest_seconds = rounds.do_next()
            failure_count = 0
        except (OperationalError, InterfaceError) as error:
            # Locked, full, away: every place is kept where it was, so nothing is lost by trying again.
            connection.close()
            rest_seconds = find_backoff(failure_count)
            failure_count += 1
            log.warning("database cannot be used", extra={"error": type(error).__name__, "tries": failure_count})
        if rest_seconds:
            stopping.wait(rest_seconds)
    watch.close()


def find_backoff(failure_count: int) -> float:
    """Doubles, and is never the same for two processes that failed together."""
    longest = min(FIRST_BACKOFF_SECONDS * (1 << min(failure_count, 10)), LONGEST_BACKOFF_SECONDS)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 (no secret)


class _Rounds:
    def __init__(self, watch: FolderWatch) -> None:
        self._watch = watch
        self._follower: Follower | None = None
        self._beat_at = 0.0
        self._has_told = self._was_busy = False

    def do_next(self) -> float:
        """How long to rest afterwards; 0.0 while a follower is at work, which waits by itself."""
        if self._follower is None:
            self._follower = self._start()
        if self._follower is None:
            return TEAM_AGAIN_SECONDS
        self._follower.work(wait_seconds=WAIT_SECONDS)
        if time.monotonic() >= self._beat_at:
            note_beat("follower", timezone.now())
            self._beat_at = time.monotonic() + BEAT_EVERY_SECONDS
            self._tell_progress(self._follower.waiting_count)
        return 0.0

    def _start(self) -> Follower | None:
        origin = find_origin()
        if origin is None:
            if not self._has_told:
                log.warning("no team to follow for: make one, or name one of several with PLIMSOLL_FOLLOW_TEAM")
                self._has_told = True
            return None
        return Follower(origin, settings.FOLLOW_ROOTS, IntakeDelivery(origin), watch=self._watch)

    def _tell_progress(self, waiting_count: int) -> None:
        if waiting_count > 1 or self._was_busy:
            log.info("following", extra={"files_waiting": waiting_count})
        self._was_busy = waiting_count > 1


def find_origin() -> Origin | None:
    """Whose sessions these are: the team's that was named, this machine's own, or those of the only team there is."""
    owner: User | None = None
    if settings.FOLLOW_TEAM:
        teams = list(Team.objects.filter(slug=settings.FOLLOW_TEAM))
    elif settings.LOCAL_MODE:
        owner = ensure_local_owner()
        teams = list(Team.objects.filter(is_local=True))
    else:
        teams = list(Team.objects.filter(is_demo=False)[:2])
    return Origin(teams[0], owner, "follow") if len(teams) == 1 else None
