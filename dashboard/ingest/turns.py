"""Writers of one process take turns on SQLite, whose own lock is waited for in naps of up to a tenth of a second."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_TURN = threading.RLock()


@contextmanager
def take_turn() -> Iterator[None]:
    """Elsewhere the database lets sessions be written side by side."""
    if connection.vendor != "sqlite":
        yield
        return
    with _TURN:
        yield
