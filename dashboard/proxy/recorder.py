"""The recorder process: takes calls that passed, reads them, and writes them down as facts of their sessions.

Calls of one session that come within a moment are written together. While the database cannot be used they wait here
and in the web processes; what has no room is counted there, never waited for.
"""

import logging
import signal
import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from django.conf import settings
from django.db import IntegrityError, InterfaceError, OperationalError, connection
from django.utils import timezone

from dashboard.accounts.keys import note_use
from dashboard.ingest.follower import find_backoff
from dashboard.ingest.intake import Origin, make_rules, store
from dashboard.ingest.observed import ObservedLine, ObservedSession, ObservedShape, Prepared, Rules
from dashboard.ingest.record import TooBusy
from dashboard.jobs.beat import BEAT_EVERY_SECONDS, note_beat
from dashboard.models import ApiKey, Team, User
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.proxy.captured_requests import keep_request
from dashboard.proxy.conversations import Conversations
from dashboard.proxy.counted_drops import count_drops_once
from dashboard.proxy.inbox import Delivery, Inbox
from dashboard.proxy.journal import find_journal_folder, make_cipher
from dashboard.proxy.journal_replay import JournalReplay
from dashboard.proxy.reports import SOURCE, Reporter, WholeRequest
from dashboard.proxy.responses import NotReadable
from dashboard.proxy.stored_conversations import look_up
from dashboard.proxy.wire import Exchange, Lost, find_socket_path

# Calls of a session that come so close are written together. Writing a session costs much the same for one call as for
# ten, so under load it is done less often: twice as long as the last round of writing took is gathered, within bounds.
GATHER_SECONDS, MOST_GATHER_SECONDS = 0.5, 2.5
WAIT_SECONDS = 0.1
MOST_AT_ONCE = 2_000
MOST_GATHERED_BYTES = 24 * 1024 * 1024  # of the 64 MiB that each web process can hold
TEAM_AGAIN_SECONDS = 2.0  # a changed policy holds after that
# Web processes answer what is in flight when they are stopped, and those calls are to be written down too.
LAST_WORDS_SECONDS = 8.3
MOST_RECENT = 20_000
ACCOUNT_GONE = "the account of its key was deleted"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _KnownTeam:
    team: Team
    policy: TeamSettings
    rules: Rules
    read_at: float


@dataclass
class _Pending:
    """What waits to be written for one session."""

    team_pk: int
    owner_pk: int | None
    session_id: str
    developer: str = ""
    lines: list[ObservedLine] = field(default_factory=list)
    shapes: list[ObservedShape] = field(default_factory=list)
    requests: dict[str, WholeRequest] = field(default_factory=dict)  # the last of each thread
    calls: list[str] = field(default_factory=list)  # by the ids of their exchanges
    deliveries: list[Delivery] = field(default_factory=list)


class Desk:
    """Everything between the inbox and the database. Raises OperationalError or InterfaceError while the database
    cannot be used, and goes on where it was with the next call."""

    def __init__(self) -> None:
        self._reporter = Reporter(Conversations(look_up))
        # By team, account and session: what one account sends is never written in the name of another.
        self._pending: dict[tuple[int, int | None, str], _Pending] = {}
        self._teams: dict[int, _KnownTeam | None] = {}
        self._used_keys: dict[int, float] = {}
        self._unwritten: dict[str, _Pending] = {}  # calls by the ids of their exchanges
        self._recent: deque[str] = deque(maxlen=MOST_RECENT)  # ids of what is done with
        self._recent_set: set[str] = set()
        self._unread: deque[Delivery] = deque()

    @property
    def pending_count(self) -> int:
        return len(self._unread) + sum(len(each.deliveries) for each in self._pending.values())

    @property
    def pending_bytes(self) -> int:
        return sum(delivery.size_bytes for each in self._pending.values() for delivery in each.deliveries)

    def put(self, deliveries: list[Delivery]) -> None:
        self._unread.extend(deliveries)
        while self._unread:
            self._read(self._unread[0])
            self._unread.popleft()

    def write(self) -> None:
        for name, pending in list(self._pending.items()):
            self._write_session(pending)
            del self._pending[name]
            for call in pending.calls:
                del self._unwritten[call]
                self._remember(call)
            for delivery in pending.deliveries:
                delivery.confirm()
        self._note_keys()

    # --- reading ---

    def _read(self, delivery: Delivery) -> None:
        message = delivery.message
        known = self._find_team(message.team_pk)
        if known is None or message.id in self._recent_set:  # deleted since; told again as our answer was missed
            delivery.confirm()
        elif pending := self._unwritten.get(message.id):  # told again before it was written: answered when it is
            pending.deliveries.append(delivery)
        elif isinstance(message, Lost):
            self._give_up(delivery, known, message.reason, message.count)
        else:
            self._read_exchange(delivery, message, known)

    def _read_exchange(self, delivery: Delivery, exchange: Exchange, known: _KnownTeam) -> None:
        reason = ""
        try:
            report = self._reporter.read(exchange, known.rules)
        except NotReadable as error:
            report, reason = None, str(error)
        except (OperationalError, InterfaceError):
            raise  # whose it is cannot be looked up now
        except Exception as error:
            log.error("a call could not be read", exc_info=error)
            report, reason = None, f"not read: {type(error).__name__}"
        if report is None:
            self._give_up(delivery, known, reason, 1 if reason else 0)
            return
        name = (exchange.team_pk, exchange.owner_pk, report.session_id)
        pending = self._pending.setdefault(name, _Pending(exchange.team_pk, exchange.owner_pk, report.session_id))
        pending.developer = pending.developer or report.developer
        pending.lines.extend(report.lines)
        pending.shapes.extend(report.shapes)
        if report.request is not None:
            pending.requests[report.request.agent_id] = report.request
        pending.calls.append(exchange.id)
        pending.deliveries.append(delivery)
        self._unwritten[exchange.id] = pending
        if exchange.key_pk is not None:
            self._used_keys[exchange.key_pk] = time.monotonic()

    def _give_up(self, delivery: Delivery, known: _KnownTeam, reason: str, count: int) -> None:
        """Nothing to write but a number, if any. Remembered behind it: what cannot be counted now is read again."""
        if count:
            self._count_drops(known, reason, {delivery.message.id: count})
        self._remember(delivery.message.id)
        delivery.confirm()

    def _count_drops(self, known: _KnownTeam, reason: str, counts: Mapping[str, int]) -> None:
        """`counts` is by the ids of messages."""
        try:
            count_drops_once(Origin(known.team, None, SOURCE), reason, counts)
        except IntegrityError:
            if not self._is_gone(known.team.pk):
                raise

    def _is_gone(self, team_pk: int) -> bool:
        """Whether the team was deleted since it was looked up."""
        is_gone = not Team.objects.filter(pk=team_pk).exists()
        if is_gone:
            self._teams.pop(team_pk, None)
        return is_gone

    def _find_team(self, team_pk: int) -> _KnownTeam | None:
        known = self._teams.get(team_pk)
        if known is not None and time.monotonic() - known.read_at < TEAM_AGAIN_SECONDS:
            return known
        team = Team.objects.filter(pk=team_pk).first()
        if team is None:
            return None
        policy = find_policy(team)
        known = _KnownTeam(team, policy, make_rules(team, policy), time.monotonic())
        self._teams[team_pk] = known
        return known

    def _remember(self, exchange_id: str) -> None:
        if len(self._recent) == self._recent.maxlen:
            self._recent_set.discard(self._recent[0])
        self._recent.append(exchange_id)
        self._recent_set.add(exchange_id)

    # --- writing ---

    def _write_session(self, pending: _Pending) -> None:
        known = self._find_team(pending.team_pk)
        if known is None:
            return
        sender = User.objects.filter(pk=pending.owner_pk).first() if pending.owner_pk else None
        if sender is None and pending.owner_pk is not None:
            self._count_drops(known, ACCOUNT_GONE, dict.fromkeys(pending.calls, 1))
            return
        observed = ObservedSession(pending.session_id, tuple(pending.lines), tuple(pending.shapes), pending.developer)
        prepared = Prepared(SOURCE, (observed,), line_count=len(pending.lines))
        origin = Origin(known.team, sender, SOURCE)
        try:
            taken = store(origin, prepared, known.policy)
            if not taken.sessions:  # deleted, or another account's: `store` has counted its lines
                self._forget(pending)
            for recorded in taken.sessions:
                for request in pending.requests.values():
                    keep_request(recorded.session_pk, request, known.rules)
        except (OperationalError, InterfaceError, TooBusy):
            raise
        except Exception as error:
            self._forget(pending)
            if not self._is_gone(pending.team_pk):
                log.error("a session could not be written", exc_info=error)
                reason = f"not written: {type(error).__name__}"
                self._count_drops(known, reason, dict.fromkeys(pending.calls, 1))

    def _forget(self, pending: _Pending) -> None:
        self._reporter.threads.forget(pending.team_pk, pending.owner_pk, pending.session_id)

    def _note_keys(self) -> None:
        used, self._used_keys = self._used_keys, {}
        for key in ApiKey.objects.filter(pk__in=used):
            note_use(key, now=timezone.now())


def run_recorder() -> None:
    """Returns after an orderly stop. Raises InUse."""
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopping.set())
    inbox = Inbox(find_socket_path(settings.DATA))
    replay = JournalReplay(find_journal_folder(settings.DATA), make_cipher(settings.SECRET_KEY))
    try:
        _Rounds(inbox, replay, stopping).run()
    finally:
        replay.close()
        inbox.close()


class _Rounds:
    def __init__(self, inbox: Inbox, replay: JournalReplay, stopping: threading.Event) -> None:
        self._inbox, self._replay, self._stopping = inbox, replay, stopping
        self._desk = Desk()
        self._failure_count = 0
        self._gather_seconds = GATHER_SECONDS
        self._beat_at = self._write_at = 0.0

    def run(self) -> None:
        stop_at = None
        while stop_at is None or (self._inbox.has_senders and time.monotonic() < stop_at) or self._desk.pending_count:
            if stop_at is None and self._stopping.is_set():
                stop_at = time.monotonic() + LAST_WORDS_SECONDS
            is_over = stop_at is not None and time.monotonic() >= stop_at
            if not self._try(partial(self._do_next, is_last=is_over)) and is_over:
                return  # what is not written stays with the web processes, or is gone with them

    def _do_next(self, *, is_last: bool) -> None:
        room = MOST_AT_ONCE - self._desk.pending_count
        replayed = [] if self._stopping.is_set() else self._replay.take(most=max(room, 0))
        wait_seconds = 0.0 if replayed else WAIT_SECONDS
        arrived = [*replayed, *self._inbox.take(wait_seconds=wait_seconds, most=max(room - len(replayed), 0))]
        if arrived and not self._desk.pending_count:
            self._write_at = time.monotonic() + self._gather_seconds
        self._desk.put(arrived)
        now = time.monotonic()
        is_due = now >= self._write_at or is_last or room <= 0 or self._desk.pending_bytes > MOST_GATHERED_BYTES
        if self._desk.pending_count and is_due:
            self._desk.write()
            took_seconds = time.monotonic() - now
            self._gather_seconds = min(MOST_GATHER_SECONDS, max(GATHER_SECONDS, 2 * took_seconds))
        if now >= self._beat_at:
            note_beat("recorder", timezone.now())
            self._beat_at = now + BEAT_EVERY_SECONDS

    def _try(self, work: "partial[None]") -> bool:
        try:
            work()
        except (OperationalError, InterfaceError, TooBusy) as error:
            # Locked, full, away: nothing was confirmed, so nothing is lost by trying again.
            connection.close()
            self._failure_count += 1
            log.warning("cannot write", extra={"error": type(error).__name__, "tries": self._failure_count})
            if self._stopping.is_set():
                time.sleep(WAIT_SECONDS)
            self._stopping.wait(find_backoff(self._failure_count - 1))
            return False
        self._failure_count = 0
        return True
