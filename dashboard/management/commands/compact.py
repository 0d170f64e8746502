"""`plimsoll compact SESSION`: what a compaction would do, or the compaction itself with its progress and its result."""

import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from django.conf import settings
from django.core.exceptions import PermissionDenied
from django.core.management.base import CommandError, CommandParser
from django.db import connection
from django.utils import timezone

from dashboard import access
from dashboard.access import Actor
from dashboard.accounts.local import ensure_local_owner
from dashboard.jobs.claim import claim_next
from dashboard.jobs.perform import perform, worker_name
from dashboard.management.plain_command import PlainCommand, find_user
from dashboard.models import AgentSession, CompactionRun, RunKind, RunState, SummarizerName
from dashboard.plain_json import write_value
from dashboard.runs.choices import RunChoices, RunRefused
from dashboard.runs.client_commands import write_resume_command
from dashboard.runs.endings import close_stranded, list_stranded
from dashboard.runs.failures import describe_failure
from dashboard.runs.missing_lines import DIFFERS
from dashboard.runs.predicted_losses import PredictedLosses, predict_losses
from dashboard.runs.preview import Preview, try_run
from dashboard.runs.resume import require_write_beside, write_beside
from dashboard.runs.start import JOB_KIND, cancel_run, start_run
from dashboard.runs.terminal_words import describe_preview, describe_run, tell_preview, tell_run

KINDS = {kind.value.replace("_", "-"): kind for kind in RunKind}
SUMMARIZERS = [SummarizerName.EXTRACTIVE.value, SummarizerName.CLAUDE.value, SummarizerName.NATIVE.value]
LOOK_EVERY_SECONDS = 0.2
TAKE_AFTER_SECONDS = 3.0  # no worker has come: Plimsoll is not running, so this process does the work
SHORTEST_PREFIX = 6
INTERRUPTED = 130  # as a shell tells it


class CompactRefused(CommandError):
    """A refusal with the code that `--json` prints beside the sentence."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


class Command(PlainCommand):
    help = (
        "Compacts a stored session and stores the result next to it; the session itself is never changed. "
        "Runs without a model unless --summarizer claude is given."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("session", metavar="SESSION", help="session id, a prefix of it, or its number")
        parser.add_argument("--kind", choices=KINDS, default="full", help="kind of compaction (default: full)")
        parser.add_argument("--pivot", metavar="UUID", default="", help="the message to compact from or up to")
        parser.add_argument(
            "--agent", metavar="ID", default="", help="id of a sub-agent (default: the main conversation)"
        )
        parser.add_argument("--instructions", metavar="TEXT", default="", help="what the summary must include")
        parser.add_argument("--summarizer", choices=SUMMARIZERS, default=SUMMARIZERS[0], help="default: extractive")
        parser.add_argument(
            "--model", metavar="NAME", default="", help="model (default: the team's choice, then the session's own)"
        )
        parser.add_argument(
            "--as", dest="person", metavar="NAME", help="account that starts the run (on your own machine: you)"
        )
        parser.add_argument(
            "--accept-difference",
            action="store_true",
            help="compact even if the stored lines do not add up to the measured context",
        )
        parser.add_argument(
            "--preview", action="store_true", help="print what it would do, cost and lose, without running it"
        )
        parser.add_argument(
            "--write", action="store_true", help="save the result as a new session next to the original transcript"
        )
        parser.add_argument("--json", action="store_true", help="print the result, or the error, as JSON")

    def handle(self, *args: object, session: str, **options: Any) -> None:
        self._is_json, self._has_printed = bool(options["json"]), False
        try:
            self._handle(session, options)
        except CommandError as error:
            if self._is_json and not self._has_printed:
                self._print_json({"error": _describe_error(error)})
            raise

    def _handle(self, session: str, options: dict[str, Any]) -> None:
        actor = _find_actor(options["person"])
        found = _find_session(actor, session)
        choices = RunChoices(
            kind=KINDS[options["kind"]],
            summarizer=SummarizerName(options["summarizer"]),
            agent_id=options["agent"],
            pivot_uuid=options["pivot"],
            instructions=options["instructions"],
            model=options["model"],
            accept_difference=options["accept_difference"],
        )
        if options["preview"]:
            tried = try_run(found, choices, now=timezone.now())
            self._tell_preview(tried.preview, predict_losses(tried, access.runs(actor).filter(team=found.team)))
            return
        try:
            if options["write"]:
                _require_write(found, choices.agent_id)
            run = start_run(actor, found, choices, source="cli", now=timezone.now())
        except RunRefused as refusal:
            advice = " To compact anyway, add --accept-difference." if refusal.code == DIFFERS else ""
            raise CompactRefused(refusal.code, f"{refusal.sentence}{advice}") from None
        except PermissionDenied as refusal:
            raise CompactRefused("not_allowed", str(refusal)) from None
        with _quiet_log():
            run, is_interrupted = _wait_for(actor, run, progress=_Progress(sys.stderr))
        self._tell_run(actor, run, writes=options["write"])
        if run.state != RunState.DONE:
            failure = describe_failure(run)
            told = f"{failure.sentence} {failure.kept} {failure.advice}" if failure else "The run was cancelled."
            raise CommandError(told, returncode=INTERRUPTED if is_interrupted else 1)

    def _tell_run(self, actor: Actor, run: CompactionRun, *, writes: bool) -> None:
        written: dict[str, str] = {}
        refused: CompactRefused | None = None
        if writes and run.state == RunState.DONE:
            try:
                written = _write(actor, run)
            except RunRefused as refusal:
                refused = CompactRefused(refusal.code, f"Run {run.pk} is done, but {refusal.sentence}")
        if self._is_json:
            self._print_json(
                {**describe_run(run), **written, **({"error": _describe_error(refused)} if refused else {})}
            )
        else:
            self.say(tell_run(run))
            if written:
                self.say(f"\nWritten to {written['path']}. Resume with:\n  {written['command']}")
        if refused:
            raise refused

    def _tell_preview(self, preview: Preview, losses: PredictedLosses | None) -> None:
        if self._is_json:
            self._print_json(describe_preview(preview, losses))
        else:
            self.say(tell_preview(preview, losses))
        if preview.refusals:
            raise CommandError("\n".join(refusal.sentence for refusal in preview.refusals))

    def _print_json(self, value: dict[str, Any]) -> None:
        self._has_printed = True
        self.say(json.dumps(value, default=write_value))


def _describe_error(error: CommandError) -> dict[str, str]:
    code = error.code if isinstance(error, CompactRefused) else "refused"
    return {"code": code, "detail": str(error)}


def _require_write(session: AgentSession, agent_id: str) -> None:
    try:
        require_write_beside(session, agent_id)
    except RunRefused as refusal:
        advice = "Omit --write to compact it, then download the transcript from the run's page."
        raise CompactRefused(refusal.code, f"{refusal.sentence} {advice}") from None


def _write(actor: Actor, run: CompactionRun) -> dict[str, str]:
    """Write the result as a new transcript beside the original, which is not changed."""
    file = write_beside(run, None, by=actor.user, now=timezone.now())
    return {"path": file.path, "command": write_resume_command(run.session.project_path, file.external_id)}


def _find_actor(name: str | None) -> Actor:
    if name:
        return access.person(find_user(name))
    if settings.LOCAL_MODE:
        return access.person(ensure_local_owner())
    raise CompactRefused("person_missing", "Specify an account with --as NAME")


def _find_session(actor: Actor, text: str) -> AgentSession:
    visible = access.sessions(actor).select_related("team").order_by("-last_at")
    exact = visible.filter(external_id=text).first()
    if exact is None and text.isascii() and text.isdigit() and len(text) < 18:
        exact = visible.filter(pk=int(text)).first()
    if exact is not None:
        return exact
    near = list(visible.filter(external_id__startswith=text)[:2]) if len(text) >= SHORTEST_PREFIX else []
    if len(near) == 1:
        return near[0]
    if near:
        raise CompactRefused(
            "session_ambiguous", f"More than one session id starts with {text}. Enter more characters."
        )
    raise CompactRefused("no_such_session", f"Session {text} not found.")


def _wait_for(actor: Actor, run: CompactionRun, *, progress: "_Progress") -> tuple[CompactionRun, bool]:
    """The run as it ended, and whether Ctrl-C ended it. It is performed here when no worker comes for it."""
    began, helper = time.monotonic(), None
    with _interrupts_noted(lambda: cancel_run(actor, run, now=timezone.now())) as interrupts:
        while True:
            close_stranded(list_stranded().filter(pk=run.pk), now=timezone.now())
            run = CompactionRun.objects.select_related("session", "session__team", "team", "job").get(pk=run.pk)
            progress.show(run)
            if not RunState(run.state).is_open:
                break
            if helper is None and run.state == RunState.QUEUED and time.monotonic() - began > TAKE_AFTER_SECONDS:
                helper = threading.Thread(target=_perform_waiting, name="run performed here")
                helper.start()
            time.sleep(LOOK_EVERY_SECONDS)
    if helper is not None:
        helper.join()
    progress.close()
    return run, bool(interrupts)


def _perform_waiting() -> None:
    try:
        while claim := claim_next(worker=worker_name(), kinds=[JOB_KIND], now=timezone.now()):
            perform(claim)
    finally:
        connection.close()


@contextmanager
def _interrupts_noted(cancel: Callable[[], object]) -> Iterator[list[int]]:
    """The first Ctrl-C cancels the run, and its end is waited for; the second ends this command at once."""
    seen: list[int] = []

    def note(number: int, _frame: object) -> None:
        seen.append(number)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        cancel()

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield seen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _quiet_log() -> Iterator[None]:
    """It would stand between the lines of the progress."""
    log = logging.getLogger("dashboard")
    level = log.level
    log.setLevel(logging.WARNING)
    try:
        yield
    finally:
        log.setLevel(level)


class _Progress:
    """One line that is drawn over on a terminal, a line for every stage anywhere else."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._is_terminal = out, out.isatty()
        self._began, self._told = time.monotonic(), ""

    def show(self, run: CompactionRun) -> None:
        words = run.stage if not run.written_tokens else f"{run.stage}, {run.written_tokens:,} tokens so far"
        if self._is_terminal:
            self._out.write(f"\r{time.monotonic() - self._began:5.1f} s  {words}\x1b[K")
        elif run.stage != self._told:
            self._out.write(f"{time.monotonic() - self._began:5.1f} s  {run.stage}\n")
        self._told = run.stage
        self._out.flush()

    def close(self) -> None:
        """Leaves a clean line behind."""
        if self._is_terminal:
            self._out.write("\r\x1b[K")
            self._out.flush()
