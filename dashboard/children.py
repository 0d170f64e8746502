"""Child processes of `plimsoll up`: how one is started, watched, restarted with backoff and stopped."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

FIRST_BACKOFF_SECONDS = 0.5
LONGEST_BACKOFF_SECONDS = 30.0
HEALTHY_AFTER_SECONDS = 60.0
ORPHAN_GRACE_SECONDS = 9.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ChildSpec:
    name: str
    arguments: tuple[str, ...]  # of `plimsoll`
    takes_socket: bool = False  # is handed the listening socket, which outlives it


class Child:
    """One line of the supervisor's table, over all its lives."""

    def __init__(self, spec: ChildSpec, *, alive_fd: int, socket_fd: int) -> None:
        self.spec = spec
        self.alive_fd = alive_fd
        self.socket_fd = socket_fd
        self.process: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.asked_to_stop = False
        self.backoff_seconds = FIRST_BACKOFF_SECONDS
        self.start_at: float | None = 0.0  # monotonic time of the next start, None while it runs

    def start(self) -> None:
        arguments = [*self.spec.arguments, "--alive-fd", str(self.alive_fd)]
        handed = [self.alive_fd]
        if self.spec.takes_socket:
            arguments += ["--socket-fd", str(self.socket_fd)]
            handed.append(self.socket_fd)
        self.started_at, self.start_at = time.monotonic(), None
        self.process = subprocess.Popen(
            # -P: a folder called `dashboard` where the person happens to stand must not be imported.
            [sys.executable, "-P", "-m", "dashboard.cli", *arguments],
            stdin=subprocess.DEVNULL,
            pass_fds=handed,
            start_new_session=True,  # Ctrl-C reaches the supervisor alone, which stops the children in order
        )
        log.info("%s started", self.spec.name, extra={"pid": self.process.pid})

    def notice_exit(self) -> bool:
        """True once for every process that has ended."""
        if self.process is None or self.process.poll() is None:
            return False
        log.log(
            logging.INFO if self.asked_to_stop else logging.WARNING,
            "%s ended: %s",
            self.spec.name,
            describe_exit(self.process.returncode),
            extra={"pid": self.process.pid},
        )
        self.process = None
        return True

    def plan_restart(self) -> None:
        now = time.monotonic()
        if now - self.started_at >= HEALTHY_AFTER_SECONDS:
            self.backoff_seconds = FIRST_BACKOFF_SECONDS
        self.start_at = now + self.backoff_seconds
        log.warning("%s restarts in %g s", self.spec.name, self.backoff_seconds)
        self.backoff_seconds = min(self.backoff_seconds * 2, LONGEST_BACKOFF_SECONDS)

    def stop(self, number: signal.Signals) -> None:
        self.asked_to_stop = True
        if self.process is not None:
            self.process.send_signal(number)  # does nothing when it has ended but was not noticed yet


def describe_exit(returncode: int) -> str:
    if returncode >= 0:
        return f"exit code {returncode}"
    try:
        return signal.Signals(-returncode).name
    except ValueError:
        return f"signal {-returncode}"


def stop_with_parent(alive_fd: int) -> None:
    """Called in a child: ends this process when the supervisor is gone, however it went.

    The supervisor holds the only write end of the pipe; the kernel closes it even after kill -9. (Linux alone has a
    signal for the parent's death, and there it is tied to the thread that started the child.)
    """

    def wait_for_end() -> None:
        while os.read(alive_fd, 64):
            pass
        log.warning("the supervisor is gone: stopping")
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(ORPHAN_GRACE_SECONDS)
        os._exit(1)

    os.set_inheritable(alive_fd, False)
    threading.Thread(target=wait_for_end, name="stop-with-parent", daemon=True).start()
