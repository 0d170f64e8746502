"""Told by the kernel which files changed. Where it cannot tell, nothing is heard, and the caller has to look often.

Every folder is watched by itself: a watch that goes down on its own would go through links.
"""

import logging
import threading
import time
from collections.abc import Generator
from contextlib import closing

from watchfiles import watch
from watchfiles.main import FileChange

GATHER_MILLISECONDS = 200  # the longest a stream of changes is held back
STEP_MILLISECONDS = 50
TRY_AGAIN_SECONDS = 60.0

log = logging.getLogger(__name__)


class FolderWatch:
    """A thread that gathers changed paths until they are asked for."""

    def __init__(self, *, is_polling: bool) -> None:
        self._is_wanted = not is_polling
        self._try_again_at = 0.0
        self._folders: frozenset[str] = frozenset()
        self._changed: set[str] = set()
        self._news = threading.Condition()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_hearing(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def cover(self, folders: frozenset[str]) -> bool:
        """Watch these folders from now on; True when the watch is new, so that changes before it went unheard."""
        is_due = time.monotonic() >= self._try_again_at
        if not self._is_wanted or not is_due or (self.is_hearing and folders == self._folders):
            return False
        self.close()
        if not folders:
            return False
        self._folders, self._end = folders, threading.Event()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._listen, args=(ready, self._end), name="folder-watch", daemon=True)
        self._thread.start()
        ready.wait()
        return self.is_hearing

    def take_changes(self, *, wait_seconds: float) -> set[str]:
        """The paths that changed since the last call; waits for one, or until it is woken."""
        with self._news:
            if not self._changed and wait_seconds > 0:
                self._news.wait(wait_seconds)
            taken, self._changed = self._changed, set()
        return taken

    def close(self) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _listen(self, ready: threading.Event, end: threading.Event) -> None:
        try:
            with closing(self._watch(end)) as heard:
                for changes in heard:
                    ready.set()
                    self._note(changes)
        except FileNotFoundError:
            log.debug("a folder went before it was watched")  # the next walk finds others
        except (OSError, RuntimeError) as error:
            # Too many watches, or no such call: looking often does the same work.
            log.warning("folders cannot be watched", extra={"error": type(error).__name__})
            self._try_again_at = time.monotonic() + TRY_AGAIN_SECONDS
        finally:
            ready.set()

    def _watch(self, end: threading.Event) -> Generator[set[FileChange], None, None]:
        return watch(
            *self._folders,
            watch_filter=None,
            debounce=GATHER_MILLISECONDS,
            step=STEP_MILLISECONDS,
            stop_event=end,
            rust_timeout=STEP_MILLISECONDS,
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,
            recursive=False,
        )

    def _note(self, changes: set[FileChange]) -> None:
        if changes:
            with self._news:
                self._changed.update(path for _, path in changes)
                self._news.notify()
