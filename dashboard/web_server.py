"""The web server process: binding the address, and uvicorn as Plimsoll wants it."""

import errno
import gc
import resource
import socket
import time
from importlib import import_module

import uvicorn
from django.conf import settings
from django.db import connection
from django.utils.module_loading import import_string

from dashboard.accounts.passwords import has_password_protected_owner
from dashboard.live.streams import Streams
from dashboard.loading import loading
from dashboard.plain_http import PlainHttpProtocol

BACKLOG = 2048
GRACEFUL_STOP_SECONDS = 8
# After kill -9 of a supervisor its web processes close the socket within half a second.
BIND_PATIENCE_SECONDS = 2.0
OPEN_FILES = 8192  # connections are files; many systems start a process with 1,024


class CannotListen(Exception):
    """The address cannot be used; the message is for the person who set it."""


def bind_address(host: str, port: int) -> socket.socket:
    """Bound, not yet listening: nobody is let in before the start has been decided."""
    give_up_at = time.monotonic() + BIND_PATIENCE_SECONDS
    while True:
        try:
            return _bind(host, port)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() > give_up_at:
                raise CannotListen(_explain(error, host, port)) from None
        time.sleep(0.1)


def _bind(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    return bound


def start_listening(bound: socket.socket) -> None:
    try:
        bound.listen(BACKLOG)
    except OSError as error:  # two starts at the same moment: both may bind, one may listen
        raise CannotListen(_explain(error, *bound.getsockname()[:2])) from None


def _explain(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        other = _free_port_after(host, port)
        hint = f"Stop it, or choose another port: PLIMSOLL_PORT={other} plimsoll up" if other else "Stop it first."
        return f"Port {port} on {host} is in use by another program. {hint}"
    if error.errno == errno.EACCES:
        return f"PLIMSOLL_PORT={port}: this user is not allowed to listen on that port. Use a port from 1024 on."
    return f"PLIMSOLL_HOST={host}: this machine cannot listen there ({error.strerror})."


def _free_port_after(host: str, port: int) -> int | None:
    for candidate in range(port + 1, min(port + 50, 65536)):
        try:
            _bind(host, candidate).close()
        except OSError:
            continue
        return candidate
    return None


def refuse_open_door() -> str | None:
    """Why this address must not be served yet, or None (S11)."""
    if settings.LOOPBACK_ONLY or has_password_protected_owner():
        return None
    return (
        f"PLIMSOLL_HOST={settings.HOST} can be reached from other machines, and no owner has a password yet. "
        "Make an owner with `plimsoll createowner NAME`, or give the one you have a password with "
        "`plimsoll resetpassword NAME`, then start again."
    )


class WebServer(uvicorn.Server):
    """Ends what would never end by itself before it waits for what is in flight."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Known by now: with the application's addresses it was loaded.
        streams: Streams = import_string("dashboard.live.room.streams")
        streams.end_all()
        await super().shutdown(sockets)


def serve(listening: socket.socket) -> None:
    """Returns when the process was told to stop and every request in flight is answered."""
    if connection.vendor == "postgresql":  # SQLite installations never load the driver
        import_string("dashboard.postgresql.bound_statements")()
    with loading():
        application = import_string(settings.ASGI_APPLICATION)
        import_module(settings.ROOT_URLCONF)  # Django would leave every page of it to the first visitor
    config = uvicorn.Config(
        application,
        loop="uvloop",
        http=PlainHttpProtocol,
        ws="none",
        interface="asgi3",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,  # dashboard.front_door writes it, without query strings
        server_header=False,
        date_header=False,  # dashboard.front_door says it; an answer that is passed through brings its own
        proxy_headers=True,
        forwarded_allow_ips=["127.0.0.1", "::1"],
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACEFUL_STOP_SECONDS,
    )
    raise_open_file_limit()
    set_garbage_aside()
    WebServer(config).run(sockets=[listening])


def raise_open_file_limit() -> None:
    """Raises what this process may have open to what the system allows it, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def set_garbage_aside() -> None:
    """What is loaded by now stays: looking through all of it for garbage would halt a request for 75 ms."""
    gc.collect()
    gc.freeze()
