"""The real client in a terminal of its own, as a person has it: only there it shows a status line."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_ROWS, _COLUMNS = 50, 160


class Terminal:
    def __init__(self, keyboard: int, process: "subprocess.Popen[bytes]") -> None:
        self._keyboard, self._process = keyboard, process
        self.shown = b""

    def type(self, text: str) -> None:
        """Words and the key after them arrive one after the other: together they would be a paste."""
        os.write(self._keyboard, text.encode())
        self.watch(seconds=1.0)
        os.write(self._keyboard, b"\r")

    def watch(self, *, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Reads what is shown: a client whose terminal is full stands still."""
        give_up_at = time.monotonic() + seconds
        while time.monotonic() < give_up_at and not until():
            if select.select([self._keyboard], [], [], 0.1)[0]:
                with contextlib.suppress(OSError):
                    self.shown += os.read(self._keyboard, 65_536)

    def wait_until(self, condition: Callable[[], bool], *, what: str, seconds: float = 120.0) -> None:
        self.watch(seconds=seconds, until=condition)
        assert condition(), f"not within {seconds:g} s: {what}: {self.shown[-3000:]!r}"

    def has_ended(self) -> bool:
        return self._process.poll() is not None


@contextlib.contextmanager
def opened_terminal(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[Terminal]:
    keyboard, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0))
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=screen, stdout=screen, stderr=screen, start_new_session=True
    )
    os.close(screen)
    try:
        yield Terminal(keyboard, process)
    finally:
        process.kill()
        process.wait()
        os.close(keyboard)
