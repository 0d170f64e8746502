"""The follower's rounds: finds transcripts below its folders, newest first, and reads on where something changed."""

import logging
import os
import stat
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from django.db import InterfaceError, OperationalError

from dashboard.ingest.agenda import Agenda
from dashboard.ingest.folder_watch import FolderWatch
from dashboard.ingest.follow_delivery import Delivery
from dashboard.ingest.followed_files import digest_path, list_numbers, load_files, note_gone, show_path
from dashboard.ingest.followed_reading import Followed, Next, forget_search, read_on, start_following
from dashboard.ingest.intake import Origin, count_drops
from dashboard.ingest.outdated_files import OutdatedFiles
from dashboard.ingest.quiet_lines import QUIET_SECONDS
from dashboard.ingest.record import TooBusy
from dashboard.ingest.transcript_folders import FoundFile, NotPlain, find_file, is_followed, real_roots, walk_folders

# Files are walked through even while the kernel tells of changes: it loses some when many come at once, and network
# drives tell of none. Each walk is followed by so much rest that thousands of files stay below one percent of a core.
WALK_EVERY_SECONDS = 2.0
POLL_EVERY_SECONDS = 0.5
REST_PER_WALK = 200
LONGEST_REST_SECONDS = 60.0
HOT_FILES = 50  # those written to last are looked at with every poll, between walks
FOLDER_NEWS_SECONDS = 0.1
BUSY_AGAIN_SECONDS = 0.5
REFUSED_AGAIN_SECONDS = 30.0
FAILED_AGAIN_SECONDS = 3600.0

log = logging.getLogger(__name__)


class Follower:
    """Call `work` again and again. It raises OperationalError or InterfaceError while the database cannot be used,
    and goes on where it was with the next call.
    """

    def __init__(self, origin: Origin, roots: tuple[Path, ...], delivery: Delivery, *, watch: FolderWatch) -> None:
        self._origin, self._roots, self._delivery, self._watch = origin, roots, delivery, watch
        self._kept = load_files(origin.team)  # of files that are not in `_files`, by the digest of the path
        self._files: dict[str, Followed] = {}
        self._agenda = Agenda()
        self._hot: list[str] = []
        self._real_roots: list[str] = []
        self._refused_folders: dict[str, str] = {}
        self._walk_at = self._poll_at = 0.0
        self._has_walked = False
        self._outdated: OutdatedFiles | None = None  # known after the first walk

    @property
    def waiting_count(self) -> int:
        return len(self._agenda)

    def work(self, *, wait_seconds: float) -> None:
        """What is due: a walk, one look at one file; with nothing to do, a wait for something."""
        is_busy = len(self._agenda) > 0 or bool(self._outdated)
        wait = 0.0 if is_busy else min(wait_seconds, max(0.0, self._next_at() - time.monotonic()))
        for path in self._watch.take_changes(wait_seconds=wait):
            self._notice_change(path)
        now = time.monotonic()
        if now >= self._walk_at:
            self._walk()
        elif now >= self._poll_at and not self._watch.is_hearing:
            self._poll_at = now + POLL_EVERY_SECONDS
            self._poll()
        for path in self._agenda.take_due(now):
            if followed := self._files.get(path):
                followed.place = forget_search(followed.place)
                self._want(path, followed)
        if urgent := self._agenda.peek():
            self._look(urgent, self._files[urgent])
        elif self._outdated:
            self._outdated.read_next(self._origin, self._delivery)

    def _next_at(self) -> float:
        poll_at = self._walk_at if self._watch.is_hearing else self._poll_at
        later_at = self._agenda.next_at()
        return min(self._walk_at, poll_at, self._walk_at if later_at is None else later_at)

    # --- what is there ---

    def _walk(self) -> None:
        began = time.thread_time()
        self._real_roots = real_roots(self._roots)
        findings = walk_folders(self._roots)
        self._notice_forgotten()
        for path, found in findings.files.items():
            self._notice(path, found)
        self._hot = sorted(findings.files, key=lambda path: -findings.files[path].modified_ns)[:HOT_FILES]
        gone = [path for path in self._files if path not in findings.files and not _is_below(path, findings.refused)]
        self._note_gone(gone)
        self._note_refused(findings.refused)
        if not self._has_walked:
            self._note_lost(findings.folders)
            self._outdated = OutdatedFiles(self._kept, self._real_roots)
            self._has_walked = True
        # What changed before the watch began to listen went unheard: then it is walked through once more at once.
        is_new = self._watch.cover(frozenset(findings.folders))
        every_seconds = WALK_EVERY_SECONDS if self._watch.is_hearing else POLL_EVERY_SECONDS
        rest_seconds = min((time.thread_time() - began) * REST_PER_WALK, LONGEST_REST_SECONDS)
        self._walk_at = time.monotonic() + (0.0 if is_new else max(every_seconds, rest_seconds))

    def _notice_forgotten(self) -> None:
        """Rows that were taken away: a session is allowed again, or content is kept from now on. Read once more, its
        file brings back what was not kept before."""
        numbers = list_numbers(self._origin.team)
        self._kept = {digest: kept for digest, kept in self._kept.items() if kept.number in numbers}
        for followed in self._files.values():
            if followed.kept and followed.kept.number not in numbers:
                followed.start_again()

    def _notice_change(self, path: str) -> None:
        """A path that the kernel told of."""
        root = next((root for root in self._real_roots if path.startswith(f"{root}/")), None)
        if root is None or not is_followed(path):
            if not _is_plain(path):  # a folder came or went
                self._walk_at = min(self._walk_at, time.monotonic() + FOLDER_NEWS_SECONDS)
            return
        try:
            found = find_file(root, path.removeprefix(f"{root}/"))
        except (FileNotFoundError, NotPlain):
            self._note_gone([path] if path in self._files else [])
            return
        except OSError:
            return  # the next walk tells why
        self._notice(path, found, is_certain=True)

    def _poll(self) -> None:
        for path in self._hot:
            if followed := self._files.get(path):
                try:
                    found = find_file(followed.found.root, followed.found.relative)
                except OSError:
                    continue  # the next walk tells why
                self._notice(path, found)

    def _notice(self, path: str, found: FoundFile, *, is_certain: bool = False) -> None:
        followed = self._files.get(path)
        if followed is None:
            kept = self._kept.pop(digest_path(path), None)
            followed = self._files[path] = start_following(found, kept)
        followed.found = found
        if is_certain or not (followed.is_as_read() or followed.is_set_aside):
            self._want(path, followed)

    def _want(self, path: str, followed: Followed) -> None:
        self._agenda.want(path, modified_ns=followed.found.modified_ns)

    def _note_gone(self, paths: list[str]) -> None:
        left = [self._files[path].kept for path in paths]
        note_gone(kept.number for kept in left if kept)
        for path, kept in zip(paths, left, strict=True):
            if kept:
                self._kept[digest_path(path)] = replace(kept, is_gone=True)
            del self._files[path]
            self._agenda.drop(path)

    def _note_lost(self, folders: set[str]) -> None:
        """Files that went while no follower ran; one below a folder that is not there (yet) is not judged."""
        shown = tuple(f"{show_path(folder)}/" for folder in folders)
        lost = {digest: kept for digest, kept in self._kept.items() if not kept.is_gone and kept.path.startswith(shown)}
        note_gone(kept.number for kept in lost.values())
        self._kept.update((digest, replace(kept, is_gone=True)) for digest, kept in lost.items())

    def _note_refused(self, refused: dict[str, str]) -> None:
        for folder, reason in refused.items():
            if self._refused_folders.get(folder) != reason:
                self._count_refusal(folder, reason)
        self._refused_folders = refused

    # --- looking ---

    def _look(self, path: str, followed: Followed) -> None:
        """The path leaves the agenda only when the look is over: what the database refused is tried again."""
        try:
            left = read_on(followed, self._origin, self._delivery)
        except (FileNotFoundError, NotPlain):
            self._note_gone([path])
            return
        except OSError as error:
            self._refuse(path, followed, error.strerror or type(error).__name__)
            return
        except TooBusy:
            self._put_off(path, BUSY_AGAIN_SECONDS)
            return
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:  # noqa: BLE001 (the edge: one odd file must not keep all others from being read)
            self._set_aside(path, followed, type(error).__name__)
            return
        followed.refusal, followed.failure_count = "", 0
        if left is Next.WHEN_QUIET:
            self._put_off(path, QUIET_SECONDS)
        elif left is Next.NOTHING:
            self._agenda.drop(path)

    def _refuse(self, path: str, followed: Followed, reason: str) -> None:
        if followed.refusal != reason:
            self._count_refusal(followed.name, reason)
            followed.refusal = reason
        self._put_off(path, REFUSED_AGAIN_SECONDS)

    def _set_aside(self, path: str, followed: Followed, reason: str) -> None:
        """Nothing of it is lost: it is tried again, ever more rarely, and at once with the next start."""
        log.error("file could not be imported", extra={"file": followed.number, "error": reason})
        if followed.failure_count == 0:
            count_drops(self._origin, {f"not imported: {reason}": 1}, detail=followed.name)
        seconds = min(REFUSED_AGAIN_SECONDS * 2**followed.failure_count, FAILED_AGAIN_SECONDS)
        followed.failure_count = min(followed.failure_count + 1, 10)
        self._put_off(path, seconds)

    def _put_off(self, path: str, seconds: float) -> None:
        self._agenda.drop(path)
        self._agenda.want_later(path, at=time.monotonic() + seconds)

    def _count_refusal(self, name: str, reason: str) -> None:
        log.warning("cannot be read: %s", reason)
        count_drops(self._origin, {f"cannot be read: {reason}": 1}, detail=show_path(name))


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(path.startswith(f"{folder}/") for folder in folders)


def _is_plain(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
