"""The pusher: reads what is new into the outbox, and empties the outbox into the server, one step at a time."""

import gzip
import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from dashboard.ingest.observed import Prepared, merge_prepared
from dashboard.ingest.pushed_lines import Push, cut_push, make_push, read_push, write_push
from dashboard.ingest.transcript_folders import NotPlain
from dashboard.push.growing_files import GrowingFiles
from dashboard.push.outbox import Backlog, KnownFile, Outbox, Waiting
from dashboard.push.reading import PIECE_BYTES, read_on
from dashboard.push.server import Away, BatchRefused, Server, TeamRules, TooLarge

FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 60.0
MOST_FILES = 200  # in one batch

Tell = Callable[[str], None]


@dataclass
class Tally:
    """Since this program runs."""

    sent_lines: int = 0
    refused_lines: int = 0
    sent_bytes: int = 0
    batches: int = 0


class Pusher:
    """Call `step` again and again. Raises WrongSetup when nobody but a person can help."""

    def __init__(self, server: Server, outbox: Outbox, files: GrowingFiles, told: TeamRules, *, tell: Tell) -> None:
        self._server, self._outbox, self._files, self._tell = server, outbox, files, tell
        self._told = told
        self._failure_count = 0
        self._next_try_at = 0.0
        self._last_problem = ""
        self._refused: dict[str, str] = {}
        self.tally = Tally()

    @property
    def failure_count(self) -> int:
        """How often in a row the server was away."""
        return self._failure_count

    @property
    def is_done(self) -> bool:
        return not len(self._files) and not self.backlog.batch_count

    @property
    def backlog(self) -> Backlog:
        return self._outbox.measure()

    def step(self, *, wait_seconds: float) -> None:
        """Reads one batch, sends one batch; waits where there is neither."""
        has_room = not self.backlog.is_full
        can_send = self.backlog.batch_count > 0 and time.monotonic() >= self._next_try_at
        is_busy = can_send or (has_room and len(self._files) > 0)
        self._files.look_around(wait_seconds=0.0 if is_busy else wait_seconds)
        self._tell_refused(self._files.refused)
        if has_room:
            self._read_batch()
        if time.monotonic() >= self._next_try_at and (waiting := self._outbox.find_next()):
            self._send(waiting)

    # --- reading ---

    def _read_batch(self) -> None:
        parts: list[Prepared] = []
        places: dict[str, KnownFile] = {}
        size_bytes = 0
        while size_bytes < PIECE_BYTES and len(places) < MOST_FILES and (picked := self._files.pick_next()):
            found, known = picked
            try:
                reading = read_on(found, known, self._told.rules)
            except (FileNotFoundError, NotPlain):
                self._files.note_gone(found.path)
                continue
            except OSError as error:
                self._tell(f"Cannot read {found.path}: {error.strerror or type(error).__name__}.")
                self._files.note_unreadable(found.path)
                continue
            parts.append(reading.prepared)
            size_bytes += reading.size_bytes
            if reading.known != known:
                places[found.path] = reading.known
            self._files.note_read(found.path, reading.known, has_more=reading.has_more, is_young=reading.is_young)
        if places:
            push = make_push(merge_prepared(parts))
            has_news = push.line_count or push.drops
            self._outbox.keep(_pack(push) if has_news else b"", push.line_count, places)

    def _tell_refused(self, refused: dict[str, str]) -> None:
        for folder, reason in refused.items():
            if self._refused.get(folder) != reason:
                self._tell(f"Cannot read {folder}: {reason}.")
        self._refused = refused

    # --- sending ---

    def _send(self, waiting: Waiting) -> None:
        try:
            receipt = self._server.send(waiting.body)
        except Away as error:
            self._put_off(error)
            return
        except TooLarge:
            self._cut(waiting)
            return
        except BatchRefused as error:
            self._tell(
                f"The server rejected {waiting.line_count:,} lines: {error} They are kept on disk; sending continues."
            )
            self._set_aside(waiting, str(error))
            return
        self._outbox.remove(waiting)
        if self._failure_count:
            self._tell(f"{self._server.url} is reachable again.")
        self._failure_count, self._last_problem = 0, ""
        if receipt.refused_lines:
            self._tell(
                f"The server dropped {receipt.refused_lines:,} of {waiting.line_count:,} lines: "
                "their sessions belong to another account."
            )
        self.tally.sent_lines += waiting.line_count
        self.tally.refused_lines += receipt.refused_lines
        self.tally.sent_bytes += len(waiting.body)
        self.tally.batches += 1
        if not receipt.is_of(self._told):
            self._learn_rules()

    def _learn_rules(self) -> None:
        """The team decided something else about what is kept, or its database went back to a backup."""
        try:
            told = self._server.ask_rules()
        except Away:
            return  # the next answer says again that they are old
        if told.store != self._told.store:
            self._tell(f"{self._server.url} has a different database than before. Sending everything again.")
            self._outbox.aim_at(told.store)
            self._files.forget_known()
        if self._outbox.use_redaction(told.rules.redaction_version):
            self._tell("The team's redaction rules changed. Sending everything again.")
            self._files.forget_known()
        self._told = told

    def _set_aside(self, waiting: Waiting, reason: str) -> None:
        if gone_count := self._outbox.set_aside(waiting, reason):
            self._tell(
                f"Too much rejected data to keep: {gone_count:,} lines were dropped. Use --again to re-read them."
            )

    def _cut(self, waiting: Waiting) -> None:
        parts = cut_push(read_push(gzip.decompress(waiting.body)))
        if not parts:
            self._tell("A queued line is too large for the server. It is kept on disk; sending continues.")
            self._set_aside(waiting, "too large")
            return
        self._outbox.replace(waiting, [(_pack(part), part.line_count) for part in parts])

    def _put_off(self, error: Away) -> None:
        wait_seconds = max(find_backoff(self._failure_count), error.retry_after_seconds or 0.0)
        self._failure_count += 1
        self._next_try_at = time.monotonic() + wait_seconds
        if str(error) != self._last_problem:
            self._last_problem = str(error)
            self._tell(f"{self._server.url} is not accepting data: {error}. Queuing on disk.")


def find_backoff(failure_count: int) -> float:
    """Doubles, and is never the same for two machines that failed together."""
    longest = min(FIRST_BACKOFF_SECONDS * (1 << min(failure_count, 10)), LONGEST_BACKOFF_SECONDS)
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 (no secret)


def _pack(push: Push) -> bytes:
    return gzip.compress(write_push(push), compresslevel=6, mtime=0)
