"""The steps of a test run: lanes go side by side, the steps of a lane in order. No failure hides another one.

What a step prints is shown in one piece when it ends. A step that hangs fails. Whatever is interrupted may clean up
after itself first.
"""

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

GRACE_SECONDS = 20
LONGEST_SECONDS = 1_500  # several times what the longest step needs
Lane = Callable[[], None]


@dataclass
class Run:
    """`environment` is added to that of every step."""

    environment: Mapping[str, str] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    _under_way: list["subprocess.Popen[bytes]"] = field(default_factory=list)
    _is_stopping: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def step(self, name: str, *command: str | Path, **environment: str) -> None:
        began = time.monotonic()
        with tempfile.TemporaryFile() as output:
            with self._lock:
                if self._is_stopping:
                    return
                process = subprocess.Popen(
                    [str(part) for part in command],
                    env={**os.environ, **self.environment, **environment},
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
                self._under_way.append(process)
            code = _wait(process)
            output.seek(0)
            told = output.read().decode(errors="replace")
        with self._lock:
            self._under_way.remove(process)
            end = f"{'ok' if code == 0 else f'FAILED ({code})'}, {time.monotonic() - began:.1f} s"
            print(f"\n=== {name}\n{told}--- {name}: {end}", flush=True)
            if code != 0:
                self.failed.append(name)

    def side_by_side(self, *lanes: Lane) -> None:
        with ThreadPoolExecutor(len(lanes)) as threads:
            walks = [threads.submit(self._walk, lane) for lane in lanes]
            try:
                wait(walks)
            except (KeyboardInterrupt, SystemExit) as reason:
                # Ctrl-C reached the steps by itself, a SIGTERM did not.
                self._stop(tell=isinstance(reason, SystemExit))
                wait(walks)
                raise

    def _walk(self, lane: Lane) -> None:
        try:
            lane()
        except BaseException as error:
            self.failed.append(f"a lane that broke ({error!r})")
            raise

    def _stop(self, *, tell: bool) -> None:
        with self._lock:
            self._is_stopping = True
            under_way = list(self._under_way)
        if tell:
            for process in under_way:
                process.send_signal(signal.SIGINT)
        give_up_at = time.monotonic() + GRACE_SECONDS
        for process in under_way:
            _wait_or_kill(process, give_up_at - time.monotonic())


def _wait(process: "subprocess.Popen[bytes]") -> int:
    try:
        return process.wait(LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        _wait_or_kill(process, GRACE_SECONDS)
        return process.wait() or 1


def _wait_or_kill(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    try:
        process.wait(max(0.0, seconds))
    except subprocess.TimeoutExpired:
        process.kill()
