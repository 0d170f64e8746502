"""`plimsoll up`: prepares the database and the static files, then runs every process Plimsoll consists of."""

import contextlib
import logging
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import FrameType

from django.conf import settings
from django.utils import timezone

from dashboard.accounts.local import ensure_local_owner
from dashboard.accounts.sign_in_links import create_link
from dashboard.children import Child, ChildSpec
from dashboard.data_folder import hold_data_folder
from dashboard.demo.ordering import order_demo
from dashboard.demo.removal import remove_demo
from dashboard.management.database import migrate_database, release_database
from dashboard.models import User
from dashboard.own_commands import spell_command
from dashboard.sqlite_damage import require_sound_database
from dashboard.static_build import build_static_files
from dashboard.web_server import CannotListen, bind_address, refuse_open_door, start_listening

LINK_VALID_FOR = timedelta(hours=1)
KILL_AFTER_SECONDS = 9.0  # uvicorn gives requests in flight 8; all is promised to be over after 10

log = logging.getLogger(__name__)
Say = Callable[[str], None]


def planned_children() -> list[ChildSpec]:
    """Every process of Plimsoll, one line each."""
    return [
        *(ChildSpec(f"web {number}", ("web",), takes_socket=True) for number in range(1, settings.WEB_PROCESSES + 1)),
        ChildSpec("worker", ("worker",)),
        ChildSpec("sweeper", ("sweeper",)),
        ChildSpec("recorder", ("recorder",)),
        *([ChildSpec("follower", ("follow",))] if settings.FOLLOW_ROOTS else []),
    ]


def run_everything(say: Say, *, with_demo: bool = False) -> None:
    """Returns after an orderly stop; raises CannotListen, DataFolderInUse or DatabaseDamaged with a sentence."""
    with hold_data_folder(settings.DATA), contextlib.closing(bind_address(settings.HOST, settings.PORT)) as listening:
        require_sound_database()
        migrate_database()
        if refusal := refuse_open_door():
            raise CannotListen(refusal)
        build_static_files()
        welcome(say)
        if with_demo:
            renew_demo(say)
        # Nothing of the database may be open here: a child starts with a clean slate, and so does a restored file.
        release_database()
        start_listening(listening)
        Supervisor(listening).run()
        say("Plimsoll has stopped.")


def renew_demo(say: Say) -> None:
    """Its sessions are those of the last two weeks: what an earlier start made is old by now."""
    owner = ensure_local_owner()
    remove_demo(now=timezone.now())
    order_demo(owner, now=timezone.now())
    say("  demo     sample sessions are loading. Remove with:")
    say(f"           {spell_command('demo', '--remove', is_local=settings.LOCAL_MODE)}")


def welcome(say: Say) -> None:
    say(f"Plimsoll {settings.VERSION}")
    say(f"  address  {settings.PUBLIC_URL}/")
    if settings.LOCAL_MODE:
        link = create_link(ensure_local_owner(), now=timezone.now(), valid_for=LINK_VALID_FOR)
        say(f"  sign in  {link}")
        say("           works once, within one hour. Create a new one with:")
        say(f"           {spell_command('signinlink', is_local=True, with_address=True)}")
    elif not User.objects.exists():
        say("  sign in  No account yet. Create one with: plimsoll createowner NAME")
    say(f"  data     {settings.DATA}")
    say("  stop     Ctrl-C")


class Supervisor:
    """Keeps the children of the table running until a signal asks it to stop."""

    def __init__(self, listening: socket.socket) -> None:
        alive_read, self._alive_write = os.pipe()
        self._children = [Child(spec, alive_fd=alive_read, socket_fd=listening.fileno()) for spec in planned_children()]
        self._stops_asked = 0

    def run(self) -> None:
        with self._woken_by_signals() as wake_fd:
            while not self._stops_asked:
                self._tend()
                starts = [child.start_at for child in self._children if child.start_at is not None]
                self._sleep(wake_fd, until=min(starts, default=None))
            self._stop(wake_fd)

    def _tend(self) -> None:
        for child in self._children:
            if child.notice_exit():
                child.plan_restart()
            if child.start_at is not None and child.start_at <= time.monotonic():
                self._start(child)

    @staticmethod
    def _start(child: Child) -> None:
        try:
            child.start()
        except OSError as error:  # out of processes or memory: it may pass, and the other children still work
            log.error("%s cannot be started: %s", child.spec.name, error.strerror)
            child.plan_restart()

    def _stop(self, wake_fd: int) -> None:
        log.info("stopping: requests in flight are answered first")
        for child in self._children:
            child.stop(signal.SIGTERM)
        kill_at: float | None = time.monotonic() + KILL_AFTER_SECONDS
        while running := [child for child in self._children if child.process is not None]:
            if kill_at and (self._stops_asked > 1 or time.monotonic() >= kill_at):
                kill_at = None
                for child in running:
                    log.warning("%s is killed", child.spec.name)
                    child.stop(signal.SIGKILL)
            self._sleep(wake_fd, until=kill_at)
            for child in running:
                child.notice_exit()

    @contextlib.contextmanager
    def _woken_by_signals(self) -> Iterator[int]:
        """A pipe that becomes readable with every signal, so that sleeping needs no polling and loses no signal."""
        wake_read, wake_write = os.pipe()
        os.set_blocking(wake_read, False)
        os.set_blocking(wake_write, False)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # nohup stays nohup
                signal.signal(number, self._ask_to_stop)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        yield wake_read

    def _ask_to_stop(self, _number: int, _frame: FrameType | None) -> None:
        self._stops_asked += 1

    @staticmethod
    def _sleep(wake_fd: int, *, until: float | None) -> None:
        timeout = None if until is None else max(0.0, until - time.monotonic())
        if select.select([wake_fd], [], [], timeout)[0]:
            os.read(wake_fd, 1024)
