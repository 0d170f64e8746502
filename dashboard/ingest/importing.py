"""Importing: files are decoded by a pool of processes and written by this one, in order, with bounded memory."""

import contextlib
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeAlias, TypeVar

from django.db import DatabaseError, OperationalError

from dashboard.ingest.decoders import Decoders, Underway
from dashboard.ingest.decoding import Decoded
from dashboard.ingest.drawn import DrawnSession
from dashboard.ingest.import_progress import Progress
from dashboard.ingest.import_tally import Tally
from dashboard.ingest.intake import OTHER_ACCOUNT, Origin, make_drawing_rules, make_rules, store, store_drawn, store_new
from dashboard.ingest.kept_looks import keep_looks
from dashboard.ingest.looks import PIECE_BYTES, FileLook, NextLook
from dashboard.ingest.observed import Piece, Prepared
from dashboard.ingest.record import TooBusy
from dashboard.ingest.transcripts import name_session
from dashboard.policies.in_force import TeamSettings, find_policy
from dashboard.policies.unusable_patterns import keeps_content

# Decoded or waiting to be: with what decoding makes of it, everything together stays below 250 MB.
IN_FLIGHT_BYTES = 3 * PIECE_BYTES
IN_FLIGHT_WORKS = 32
SHARED_BYTES = PIECE_BYTES // 2
# One transaction holds the database for well below 100 ms.
ROWS_AT_ONCE = 4_000
STORED_BYTES_AT_ONCE = 4 * 1024 * 1024
LOOKS_KEPT_AT_ONCE = 500
RETRY_AFTER_SECONDS = (0.5, 1.0, 2.0, 4.0)

_T = TypeVar("_T")
_Work: TypeAlias = tuple[NextLook, ...] | Piece


class CannotStore(Exception):
    """The database refused again and again; the message is for the person who waits."""


@dataclass
class Importer:
    """One run. `should_stop` is asked between two writings, so nothing is ever half written."""

    origin: Origin
    policy: TeamSettings
    decoders: Decoders
    tally: Tally
    progress: Progress
    should_stop: Callable[[], bool]
    _underway: deque[tuple[_Work, Underway, int]] = field(default_factory=deque)
    _in_flight_bytes: int = 0
    _gathered: list[tuple[_Work | None, Decoded]] = field(default_factory=list)  # to be written together
    _gathered_rows: int = 0
    _gathered_bytes: int = 0
    _ended: list[FileLook] = field(default_factory=list)

    def import_files(self, works: Iterable[tuple[NextLook, ...]]) -> None:
        """Raises CannotStore or DecodersLost; what was written before stays, and is remembered."""
        waiting = iter(works)
        try:
            while not self._stops():
                self._fill(waiting)
                if not self._underway:
                    break
                self._finish_first()
            if not self._stops():
                self._store_gathered()
        finally:
            self._keep_ended()

    def import_pieces(self, pieces: Iterable[Piece | Prepared]) -> None:
        """What comes through a pipe, in its order."""
        for piece in pieces:
            if isinstance(piece, Prepared):
                self._take(None, Decoded(piece))
            else:
                self._submit(piece, len(piece.data))
            while self._is_full() and not self._stops():
                self._finish_first()
            if self._stops():
                return
        while self._underway and not self._stops():
            self._finish_first()

    def _stops(self) -> bool:
        self.tally.is_interrupted = self.tally.is_interrupted or self.should_stop()
        return self.tally.is_interrupted

    def _is_full(self) -> bool:
        return self._in_flight_bytes >= IN_FLIGHT_BYTES or len(self._underway) >= IN_FLIGHT_WORKS

    def _fill(self, waiting: Iterator[tuple[NextLook, ...]]) -> None:
        while not self._is_full():
            looks = next(waiting, None)
            if looks is None:
                return
            self._read_on(looks)

    def _read_on(self, looks: tuple[NextLook, ...]) -> None:
        self._submit(looks, sum(look.waiting_bytes for look in looks))

    def _submit(self, work: _Work, size_bytes: int) -> None:
        self._underway.append((work, self._decode(work), size_bytes))
        self._in_flight_bytes += size_bytes

    def _decode(self, work: _Work) -> Underway:
        return self.decoders.take(work) if isinstance(work, Piece) else self.decoders.read_on(work)

    def _finish_first(self) -> None:
        work, underway, size_bytes = self._underway.popleft()
        decoded = underway.wait()
        self._in_flight_bytes -= size_bytes
        unread = tuple(NextLook(look.file, look.place) for look in decoded.looks if look.has_more)
        if unread:
            self._read_on(unread)  # decoded meanwhile, written in its turn: lines of a file stay in order
        self._take(work, decoded)

    def _take(self, work: _Work | None, decoded: Decoded) -> None:
        self._gathered.append((work, decoded))
        self._gathered_rows += sum(session.row_count for session in decoded.drawn)
        self._gathered_bytes += sum(session.stored_bytes for session in decoded.drawn)
        is_full = self._gathered_rows >= ROWS_AT_ONCE or self._gathered_bytes >= STORED_BYTES_AT_ONCE
        if is_full or not decoded.drawn:
            self._store_gathered()

    def _store_gathered(self) -> None:
        """What is drawn first, most of it in one transaction; then what continues sessions that are stored by now."""
        self._heed_policy()
        gathered, self._gathered = [decoded for _, decoded in self._gathered], []
        self._gathered_rows = self._gathered_bytes = 0
        drawn = [session for decoded in gathered for session in decoded.drawn]
        failed: set[str] = set()
        if drawn:
            stored = self._insist(partial(store_new, self.origin, drawn, self.policy))
            self.tally.add_sessions(stored.recorded)
            self.tally.drops.update(stored.drops)
            failed = {session.external_id for session in stored.others if not self._store_drawn(session)}
        for decoded in gathered:
            is_stored = self._store_rest(decoded)
            self.progress.add(size_bytes=decoded.size_bytes)
            if is_stored and failed.isdisjoint(session.external_id for session in decoded.drawn):
                for look in decoded.looks:
                    self._end_file(look)

    def _heed_policy(self) -> None:
        """What was decoded by a policy that is no longer in force is decoded anew: nothing is stored by it."""
        policy = self._insist(partial(find_policy, self.origin.team))
        if policy.version == self.policy.version:
            return
        if keeps_content(policy) and not keeps_content(self.policy):
            self._ended.clear()  # stored without content: the next import fills it in
        self.policy = policy
        is_drawing = self.decoders.rules.lines_policy is not None
        self.decoders.rules = (make_drawing_rules if is_drawing else make_rules)(self.origin.team, policy)
        again = [(work, decoded, None if work is None else self._decode(work)) for work, decoded in self._gathered]
        self._underway = deque((work, self._decode(work), size_bytes) for work, _, size_bytes in self._underway)
        self._gathered = [(work, underway.wait() if underway else decoded) for work, decoded, underway in again]

    def _store_drawn(self, session: DrawnSession) -> bool:
        """One that no database takes is told, and takes no other along."""
        try:
            recorded = self._insist(partial(store_drawn, self.origin, session, self.policy))
        except (DatabaseError, OverflowError) as error:
            self._tell_failure(session.external_id, error)
            return False
        if recorded is None:
            self.tally.drops[OTHER_ACCOUNT] += session.line_count
        else:
            self.tally.add_sessions([recorded])
        return True

    def _store_rest(self, decoded: Decoded) -> bool:
        """What was not drawn, session by session for the same reason; and what else there is to tell."""
        prepared, is_stored = decoded.prepared, True
        for observed in prepared.sessions:
            one = Prepared(prepared.name, (observed,))
            try:
                taken = self._insist(partial(store, self.origin, one, self.policy))
            except (DatabaseError, OverflowError) as error:
                self._tell_failure(observed.external_id, error)
                is_stored = False
            else:
                self.tally.add_sessions(taken.sessions)
                self.tally.drops.update(taken.drops or {})
        told = replace(prepared, sessions=())
        self.tally.add(decoded, self._insist(partial(store, self.origin, told, self.policy)))
        return is_stored

    def _tell_failure(self, external_id: str, error: Exception) -> None:
        self.tally.failures.append(f"Session {external_id} cannot be stored ({str(error).strip()}).")

    def _insist(self, write: Callable[[], _T]) -> _T:
        """Writes, again after a while when the database or the session is busy."""
        for wait_seconds in (*RETRY_AFTER_SECONDS, 0.0):
            try:
                return write()
            except (OperationalError, TooBusy) as error:
                refusal = error
            if self._stops():
                break
            time.sleep(wait_seconds)
        raise CannotStore(_explain(refusal)) from refusal

    def _end_file(self, look: FileLook) -> None:
        if look.has_more:
            return
        self.tally.add_file(look)
        self.progress.add(files=0 if look.file.is_meta else 1)
        if not look.refusal:
            self._ended.append(look)
        if len(self._ended) >= LOOKS_KEPT_AT_ONCE:
            self._keep_ended()

    def _keep_ended(self) -> None:
        with contextlib.suppress(OperationalError):  # it only saves reading them again
            keep_looks(self.origin.team, self._ended)
        self._ended.clear()


def _explain(error: Exception) -> str:
    if isinstance(error, TooBusy):
        return f"Another process keeps writing session {error}. Run the same command again to import the rest."
    return f"The database cannot be written ({str(error).strip()}). Run the same command again to import the rest."


def group_looks(looks: Iterable[NextLook]) -> list[tuple[NextLook, ...]]:
    """The files of a session together, up to a piece's size; sessions that were written to long ago first, so that most
    are there before those that were forked from them. Small ones share a work: handing it out takes time too."""
    families: dict[str, list[NextLook]] = defaultdict(list)
    for look in looks:
        families[name_session(look.file.path)[0] or look.file.path].append(look)
    works: list[list[NextLook]] = []
    shared: list[NextLook] = []
    oldest_first = sorted(families.values(), key=_find_oldest)
    for part in (part for family in oldest_first for part in _cut_family(family)):
        # What goes on with a known session would keep the others from being drawn where they are decoded.
        if any(look.known.offset for look in part) or _measure(part) > SHARED_BYTES:
            works.append(part)
        elif shared and _measure(shared) + _measure(part) <= SHARED_BYTES:
            shared += part
        else:
            works.append(part)
            shared = part
    return [tuple(work) for work in works]


def _find_oldest(family: Iterable[NextLook]) -> int:
    return min(look.file.modified_ns for look in family)


def _cut_family(family: Iterable[NextLook]) -> Iterator[list[NextLook]]:
    part: list[NextLook] = []
    for look in family:
        if part and _measure(part) + look.waiting_bytes > PIECE_BYTES:
            yield part
            part = []
        part.append(look)
    yield part


def _measure(looks: Iterable[NextLook]) -> int:
    return sum(look.waiting_bytes for look in looks)
