"""Who uses the data folder: one `plimsoll up`, or any number of single web processes, never both."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK_NAME = "in_use.lock"


class DataFolderInUse(Exception):
    """Another Plimsoll holds the folder; the message is for the person who started this one."""


@contextmanager
def hold_data_folder(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Kept by the kernel as long as this process lives, so a killed one leaves nothing behind to clean up."""
    descriptor = os.open(folder / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            raise DataFolderInUse(
                f"The data folder {folder} is in use by another Plimsoll (process {holder or 'unknown'}). "
                "Stop that one, or choose another folder with PLIMSOLL_DATA=/some/folder."
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
