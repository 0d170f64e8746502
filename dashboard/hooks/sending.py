"""One signed POST to an address that a team gave: to a checked machine alone, no redirects, five seconds in all.

The work is done in a thread of its own, since neither a resolver nor a slow drip of bytes keeps to a time limit by
itself: when the time is over the connection is closed under it, and whoever waits goes on.
"""

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from dashboard.hooks.targets import NameNotKnown, Target, TargetRefused, read_target, resolve_target
from dashboard.version import VERSION

LIMIT_SECONDS = 5.0
LONGEST_REPLY_BYTES = 64 * 1024
_SENTENCES: Mapping[type[Exception], str] = {
    ssl.SSLCertVerificationError: "The certificate is not valid for this host name.",
    ssl.SSLError: "The TLS connection failed.",
    TimeoutError: f"No response within {LIMIT_SECONDS:g} seconds.",
    http.client.RemoteDisconnected: "The connection was closed without a response.",
    http.client.HTTPException: "The response is not HTTP.",
}


class SendFailed(Exception):
    """It was not taken. The message is a sentence; `status` where there was an answer at all."""

    def __init__(self, sentence: str, *, status: int | None = None, is_refused: bool = False) -> None:
        super().__init__(sentence)
        self.status = status
        self.is_refused = is_refused  # the address may not be sent to: another try would not help


@dataclass(frozen=True)
class Reply:
    """A 2xx answer. `body` is None when there was more of it than is read."""

    status: int
    body: bytes | None


@dataclass
class Sending:
    """A request under way; `wait` for its end, outside of transactions. Several may be under way at once."""

    url: str
    body: bytes
    headers: Mapping[str, str]
    limit_seconds: float = LIMIT_SECONDS
    _over: threading.Event = field(default_factory=threading.Event)
    _socket: socket.socket | None = None
    _outcome: Reply | Exception | None = None
    _give_up_at: float = 0.0

    def start(self) -> "Sending":
        self._give_up_at = time.monotonic() + self.limit_seconds
        threading.Thread(target=self._work, name="webhook", daemon=True).start()
        return self

    def wait(self) -> Reply:
        """Raises SendFailed."""
        is_in_time = self._over.wait(max(0.0, self._give_up_at - time.monotonic()))
        outcome = self._outcome
        if not is_in_time or outcome is None:
            self._hang_up()
            raise SendFailed(f"No response within {self.limit_seconds:g} seconds.")
        if isinstance(outcome, Reply):
            return outcome
        raise _tell_failure(outcome) from outcome

    def _work(self) -> None:
        try:
            self._outcome = self._exchange(read_target(self.url))
        except Exception as error:  # noqa: BLE001 (carried over to the thread that waits)
            self._outcome = error
        finally:
            self._hang_up()
            self._over.set()

    def _exchange(self, target: Target) -> Reply:
        connection = http.client.HTTPConnection(target.host, target.port)
        connection.auto_open = 0  # it never connects by itself, and so never asks for the name again
        connection.sock = self._connect(target)
        headers = {
            "Host": target.host_header,
            "Content-Type": "application/json",
            "User-Agent": f"Plimsoll/{VERSION}",
            "Connection": "close",
            **self.headers,
        }
        connection.request("POST", target.path, self.body, headers)
        with contextlib.closing(connection.getresponse()) as response:
            if not 200 <= response.status < 300:
                raise SendFailed(_tell_status(response.status), status=response.status)
            read = response.read(LONGEST_REPLY_BYTES + 1)
        return Reply(response.status, read if len(read) <= LONGEST_REPLY_BYTES else None)

    def _connect(self, target: Target) -> socket.socket:
        plain = self._reach(target)
        self._socket = plain
        if time.monotonic() >= self._give_up_at:
            raise TimeoutError  # whoever waited has gone on, perhaps before there was a connection to close
        if not target.is_tls:
            return plain
        secured = ssl.create_default_context().wrap_socket(plain, server_hostname=target.host)
        self._socket = secured
        return secured

    def _reach(self, target: Target) -> socket.socket:
        """The first of the checked addresses that answers."""
        failure: OSError = ConnectionError()
        for address in resolve_target(target):
            left_seconds = self._give_up_at - time.monotonic()
            if left_seconds <= 0:
                break
            try:
                return socket.create_connection((str(address), target.port), timeout=left_seconds)
            except OSError as error:
                failure = error
        raise failure

    def _hang_up(self) -> None:
        if (held := self._socket) is not None:
            with contextlib.suppress(OSError):
                held.shutdown(socket.SHUT_RDWR)
            held.close()


def _tell_status(status: int) -> str:
    if 300 <= status < 400:
        return f"The response was a redirect (HTTP {status}), which is not followed. Use its target as the URL."
    return f"The response was HTTP {status}."


def _tell_failure(error: Exception) -> SendFailed:
    if isinstance(error, SendFailed):
        return error
    if isinstance(error, TargetRefused):
        return SendFailed(str(error), is_refused=True)
    for kind, sentence in _SENTENCES.items():
        if isinstance(error, kind):
            return SendFailed(sentence)
    if isinstance(error, NameNotKnown):
        return SendFailed(str(error))
    if isinstance(error, OSError):
        return SendFailed(f"The host could not be reached ({error.strerror or type(error).__name__}).")
    raise error
