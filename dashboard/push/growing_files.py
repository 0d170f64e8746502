"""Which transcripts of this machine have something new, the one written to last first."""

import os
import time
from collections.abc import Mapping
from pathlib import Path

from dashboard.ingest.agenda import Agenda
from dashboard.ingest.file_tail import Place
from dashboard.ingest.folder_watch import FolderWatch
from dashboard.ingest.quiet_lines import QUIET_SECONDS
from dashboard.ingest.transcript_folders import FoundFile, find_file, is_followed, real_roots, walk_folders
from dashboard.push.outbox import KnownFile

WALK_EVERY_SECONDS = 2.0
# Each walk is followed by so much rest that thousands of files stay below one percent of a core.
REST_PER_WALK = 100
LONGEST_REST_SECONDS = 60.0
REFUSED_AGAIN_SECONDS = 30.0
NOT_KNOWN = KnownFile(Place())
_State = tuple[int, int, int]  # inode, size, time of the last change


class GrowingFiles:
    def __init__(self, roots: tuple[Path, ...], known: Mapping[str, KnownFile], watch: FolderWatch) -> None:
        self._roots, self._watch = roots, watch
        self._known = dict(known)
        self._found: dict[str, FoundFile] = {}
        self._looked_at: dict[str, _State] = {}  # since this program runs
        self._agenda = Agenda()
        self._walk_at = 0.0
        self.refused: dict[str, str] = {}  # folders that cannot be read, and why

    def __len__(self) -> int:
        return len(self._agenda)

    def look_around(self, *, wait_seconds: float) -> None:
        """Hears what changed, and walks through everything when that is due; waits where nothing is."""
        until_walk = max(0.0, self._walk_at - time.monotonic())
        changed = self._watch.take_changes(wait_seconds=min(wait_seconds, until_walk))
        for path in changed:
            self._notice_change(path)
        if time.monotonic() >= self._walk_at:
            self._walk()
        for path in self._agenda.take_due(time.monotonic()):
            if found := self._found.get(path):
                self._agenda.want(path, modified_ns=found.modified_ns)

    def pick_next(self) -> tuple[FoundFile, KnownFile] | None:
        path = self._agenda.peek()
        if path is None:
            return None
        return self._found[path], self._known.get(path, NOT_KNOWN)

    def forget_known(self) -> None:
        """Everything is read again, from the beginning."""
        self._known.clear()
        self._looked_at.clear()
        self._walk()

    def note_read(self, path: str, known: KnownFile, *, has_more: bool, is_young: bool) -> None:
        """One look is over; where more is there the file stays on the list."""
        self._known[path] = known
        self._note_look(path)
        if not has_more:
            self._agenda.drop(path)
        if is_young:
            self._agenda.want_later(path, at=time.monotonic() + QUIET_SECONDS)

    def note_unreadable(self, path: str) -> None:
        self._note_look(path)
        self._agenda.drop(path)
        self._agenda.want_later(path, at=time.monotonic() + REFUSED_AGAIN_SECONDS)

    def note_gone(self, path: str) -> None:
        self._agenda.drop(path)
        self._found.pop(path, None)

    def _walk(self) -> None:
        began = time.thread_time()
        findings = walk_folders(self._roots)
        for path in self._found.keys() - findings.files.keys():
            self._agenda.drop(path)
        self._found = {}
        for path, found in findings.files.items():
            self._notice(path, found)
        self.refused = findings.refused
        is_new = self._watch.cover(frozenset(findings.folders))
        rest_seconds = min((time.thread_time() - began) * REST_PER_WALK, LONGEST_REST_SECONDS)
        self._walk_at = time.monotonic() + (0.0 if is_new else max(WALK_EVERY_SECONDS, rest_seconds))

    def _notice_change(self, path: str) -> None:
        root = next((root for root in real_roots(self._roots) if path.startswith(f"{root}{os.sep}")), None)
        if root is None or not is_followed(path):
            return
        try:
            self._notice(path, find_file(root, path.removeprefix(f"{root}{os.sep}")))
        except OSError:
            return  # it went again, or the next walk tells why

    def _notice(self, path: str, found: FoundFile) -> None:
        self._found[path] = found
        state = _read_state(found)
        if path in self._looked_at:
            is_as_seen = self._looked_at[path] == state
        else:
            known = self._known.get(path, NOT_KNOWN)
            is_as_seen = known.is_read and state == _read_state(known.place)
        if not is_as_seen:
            self._agenda.want(path, modified_ns=found.modified_ns)

    def _note_look(self, path: str) -> None:
        if found := self._found.get(path):
            self._looked_at[path] = _read_state(found)


def _read_state(file: FoundFile | Place) -> _State:
    return file.inode, file.size_bytes, file.modified_ns
