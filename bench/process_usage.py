"""Time and memory of a command with all its children. Linux alone: it reads /proc."""

import ctypes
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE_EVERY_SECONDS = 0.05
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


@dataclass(frozen=True)
class Usage:
    """Memory is the largest sum of proportional set sizes: a page that forks share counts once. 0: nobody looked."""

    wall_seconds: float
    cpu_seconds: float
    peak_bytes: int
    output: str


def measure(
    command: Sequence[str], *, environment: Mapping[str, str], folder: Path, watches_memory: bool = True
) -> Usage:
    """Ends the bench with the command's own words when it fails. To watch memory takes time from the command: the
    kernel walks all pages of all its processes for every look."""
    # What the command leaves behind becomes a child of this process: else nobody would be told what it spent.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    began = time.perf_counter()
    process = subprocess.Popen(
        command,
        env=environment,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    peak = [0]
    watcher = threading.Thread(target=_watch, args=(process.pid, peak), daemon=True) if watches_memory else None
    if watcher is not None:
        watcher.start()
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, spent = os.wait4(process.pid, 0)
    wall_seconds = time.perf_counter() - began
    cpu_seconds = spent.ru_utime + spent.ru_stime + _wait_for_rest(process.pid)
    process.returncode = os.waitstatus_to_exitcode(status)
    if watcher is not None:
        watcher.join()
    if process.returncode:
        raise SystemExit(f"exit code {process.returncode}: {' '.join(command)}\n{output}")
    return Usage(wall_seconds, cpu_seconds, peak[0], output)


def _wait_for_rest(group: int) -> float:
    """Processor time of what outlived the command."""
    cpu_seconds = 0.0
    while True:
        try:
            _, _, spent = os.wait4(-group, 0)
        except ChildProcessError:
            return cpu_seconds
        cpu_seconds += spent.ru_utime + spent.ru_stime


def _watch(pid: int, peak: list[int]) -> None:
    while (size := sum(map(_read_size, _find_family(pid)))) > 0:
        peak[0] = max(peak[0], size)
        time.sleep(SAMPLE_EVERY_SECONDS)


def _find_family(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(found for child in children for found in _find_family(int(child)))]


def _read_size(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)
