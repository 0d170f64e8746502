"""Sending while nobody waits: a child that lets go of everything the client gave it."""

import os
import sys

from dashboard.client.client_folder import note_problem


def send_in_background(folder: str) -> None:
    """Returns at once; the child is nobody's to wait for, and holds no pipe of the client open."""
    sys.stdout.flush()
    if os.fork() == 0:
        try:
            _let_go()
            _send(folder)
        finally:
            os._exit(0)


def _let_go() -> None:
    os.setsid()
    os.chdir("/")
    os.umask(0o077)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.closerange(3, 256)


def _send(folder: str) -> None:
    # The client's process never needs it: it would double the time the client waits.
    from dashboard.client.spool_sender import send_waiting  # noqa: PLC0415

    try:
        send_waiting(folder)
    except Exception as error:  # noqa: BLE001 (the last one who could tell anybody)
        note_problem(folder, f"sender failed: {type(error).__name__}: {error}")
