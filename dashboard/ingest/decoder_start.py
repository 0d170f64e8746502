"""Where decoding processes come from: one that has loaded what they need and forks them when asked.

It can be started as soon as there is something to read, and then loads while its parent still does. No Django.
"""

import multiprocessing
import os
import sys
from multiprocessing import forkserver
from multiprocessing.context import BaseContext

from dashboard.ingest.looks import PIECE_BYTES

MOST_PROCESSES = 8  # one writer cannot keep up with more
_LOADED = "dashboard.ingest.decoder_loading"
_CAN_FORK = sys.platform == "linux"  # elsewhere a fresh start is the default, for good reasons


def count_processes(work_bytes: int) -> int:
    """None for little work: they would take longer to start than it takes."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return 0 if work_bytes <= PIECE_BYTES or cores == 1 else min(cores, MOST_PROCESSES)


def find_context() -> BaseContext:
    if not _CAN_FORK:
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([_LOADED])
    return context


def start_ahead() -> None:
    """Returns at once; the decoders that are started later find everything loaded."""
    if _CAN_FORK:
        find_context()
        forkserver.ensure_running()
