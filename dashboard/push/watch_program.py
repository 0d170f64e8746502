"""`plimsoll watch`: the command line, and the loop that ends with a signal, or with --once when everything is there."""

import argparse
import os
import signal
import sys
import threading
import time
from contextlib import closing
from hashlib import sha256
from pathlib import Path

from compaction.timeline.observations import READING_VERSION
from dashboard.client.client_folder import find_folder, read_connection
from dashboard.client.client_wishes import is_safe_address
from dashboard.client.spool_sender import hold_lock
from dashboard.environment import find_transcript_folders
from dashboard.ingest.folder_watch import FolderWatch
from dashboard.push.growing_files import GrowingFiles
from dashboard.push.outbox import Outbox
from dashboard.push.pusher import Pusher, find_backoff
from dashboard.push.server import Away, Server, TeamRules, WrongSetup

DESCRIPTION = """\
Send the transcripts of this machine to a Plimsoll server as they grow. Secrets are redacted before anything is sent;
if the team stores no content, or with --metrics-only, no conversation content is sent at all.
"""
EPILOG = """\
The key needs the scope ingest; its owner becomes the owner of the sessions. Other users of this machine can see the
value of --key, so prefer PLIMSOLL_KEY. URL and key can also come from `plimsoll connect --write`.

Data not yet accepted by the server is queued on disk, at most 64 MiB, together with the read position of each file
(PLIMSOLL_CLIENT_FOLDER, default ~/.local/state/plimsoll). Ingest is idempotent: duplicates are ignored.

exit codes: 0 stopped, or everything was sent (--once); 1 server unreachable or some data rejected; 2 bad key or URL
"""
WAIT_SECONDS = 0.5  # also the longest until a signal is heeded
PROGRESS_EVERY_SECONDS = 5.0
ONCE_TRIES = 3


def main(arguments: list[str]) -> int:
    options = _read_options(arguments)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopping.set())
    os.umask(0o077)
    folder = Path(find_folder())
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = sha256(f"{options.server}\n{options.team}".encode()).hexdigest()[:16]
    with hold_lock(str(folder / f"watch-{name}.lock")) as is_mine:
        if not is_mine:
            return _fail("another `plimsoll watch` on this machine already sends to this server.", 1)
        server = Server(options.server, options.key, team=options.team, is_metrics_only=options.metrics_only)
        with closing(server), closing(Outbox(folder / f"watch-{name}.sqlite3")) as outbox:
            try:
                return _run(options, server, outbox, stopping)
            except WrongSetup as error:
                return _fail(str(error), 2)


def _read_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="plimsoll watch",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--server", metavar="URL", help="server URL, such as https://plimsoll.example")
    parser.add_argument("--key", help="API key with the scope ingest (prefer PLIMSOLL_KEY)")
    parser.add_argument("--team", default="", metavar="SLUG", help="required if the key's owner is in several teams")
    parser.add_argument(
        "--root",
        action="append",
        type=Path,
        metavar="PATH",
        help="folder to watch, repeatable (default: Claude Code's own folders)",
    )
    parser.add_argument("--metrics-only", action="store_true", help="send metrics, names and fingerprints, no content")
    parser.add_argument("--once", action="store_true", help="send existing data and exit, for cron")
    parser.add_argument("--again", action="store_true", help="send everything again, including rejected data")
    parser.add_argument("--poll", action="store_true", help="poll for changes instead of using file notifications")
    options = parser.parse_args(arguments)
    known = read_connection(find_folder())
    options.server = (options.server or (known.url if known else "")).rstrip("/")
    kept_key = known.key if known and known.url == options.server else ""  # a key goes to its own server alone
    options.key = options.key or os.environ.get("PLIMSOLL_KEY", "").strip() or kept_key
    if not options.server or not options.key:
        parser.error("specify the server with --server URL and the API key with PLIMSOLL_KEY")
    if not is_safe_address(options.server):
        parser.error(f"--server {options.server}: expected https, or plain http on this machine only")
    if not options.key.isascii() or not options.key.isprintable() or " " in options.key:
        parser.error("invalid key: expected plk_ followed by letters and digits")
    return options


def _run(options: argparse.Namespace, server: Server, outbox: Outbox, stopping: threading.Event) -> int:
    told = _learn_rules(server, stopping, is_once=options.once)
    if told is None:
        return 0 if stopping.is_set() else 1
    outbox.aim_at(told.store)
    outbox.use_reader(READING_VERSION)
    outbox.use_redaction(told.rules.redaction_version)
    if options.again:
        outbox.forget_places()
        outbox.try_again()
    roots = tuple(root.absolute() for root in options.root or find_transcript_folders())
    _say(_introduce(server, told, roots))
    watch = FolderWatch(is_polling=options.poll or options.once)
    files = GrowingFiles(roots, outbox.load_files(), watch)
    pusher = Pusher(server, outbox, files, told, tell=_complain)
    try:
        _loop(pusher, stopping, is_once=options.once)
    finally:
        watch.close()
    return _conclude(pusher, is_once=options.once)


def _learn_rules(server: Server, stopping: threading.Event, *, is_once: bool) -> TeamRules | None:
    """Nothing can be made ready before they are known: the transcripts wait where they are."""
    failure_count = 0
    last_problem = ""
    while not stopping.is_set():
        try:
            return server.ask_rules()
        except Away as error:
            if str(error) != last_problem:
                last_problem = str(error)
                _complain(f"cannot reach {server.url}: {error}.")
            seconds = max(find_backoff(failure_count), error.retry_after_seconds or 0.0)
        failure_count += 1
        if is_once and failure_count == ONCE_TRIES:
            return None
        stopping.wait(seconds)
    return None


def _introduce(server: Server, told: TeamRules, roots: tuple[Path, ...]) -> str:
    what = "content with secrets redacted" if told.rules.keeps_content else "metrics only"
    places = ", ".join(map(str, roots))
    return f"Sending {places} to {server.url}, team {told.team}, as {told.developer}: {what}."


def _loop(pusher: Pusher, stopping: threading.Event, *, is_once: bool) -> None:
    tell_at = time.monotonic() + PROGRESS_EVERY_SECONDS
    told_lines = 0
    has_looked = False
    while not stopping.is_set():
        if is_once and has_looked and (pusher.is_done or pusher.failure_count >= ONCE_TRIES):
            return
        pusher.step(wait_seconds=WAIT_SECONDS)
        has_looked = True
        if time.monotonic() >= tell_at:
            tell_at = time.monotonic() + PROGRESS_EVERY_SECONDS
            if pusher.tally.sent_lines != told_lines:
                told_lines = pusher.tally.sent_lines
                _say(_spell_progress(pusher))


def _spell_progress(pusher: Pusher) -> str:
    tally, backlog = pusher.tally, pusher.backlog
    sent = f"{tally.sent_lines:,} lines sent ({tally.sent_bytes / 1024 / 1024:,.1f} MiB)"
    waiting = f", {backlog.batch_count:,} batches queued" if backlog.batch_count else ""
    refused = f", {backlog.refused_count:,} batches rejected" if backlog.refused_count else ""
    dropped = f", {tally.refused_lines:,} lines of other accounts' sessions dropped" if tally.refused_lines else ""
    return f"{sent}{dropped}{waiting}{refused}."


def _conclude(pusher: Pusher, *, is_once: bool) -> int:
    _say(_spell_progress(pusher))
    backlog = pusher.backlog
    return 1 if is_once and (backlog.batch_count or backlog.refused_count) else 0


def _say(sentence: str) -> None:
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


def _complain(sentence: str) -> None:
    sys.stderr.write(f"plimsoll: {sentence}\n")


def _fail(sentence: str, exit_code: int) -> int:
    _complain(sentence)
    return exit_code
