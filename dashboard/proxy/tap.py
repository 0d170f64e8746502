"""What is kept of a call while it passes, for the recorder. The bytes themselves are never held up."""

import itertools
import secrets
import time
from collections.abc import Iterable

from dashboard.proxy.callers import Caller
from dashboard.proxy.wire import Ending, Exchange

LARGEST_ANSWER_BYTES = 32 * 1024 * 1024
MOST_HELD_BYTES = 192 * 1024 * 1024  # of all calls under way in one process

REQUEST_HEADERS = frozenset(
    {
        b"x-claude-code-session-id", b"x-claude-code-agent-id", b"anthropic-version", b"anthropic-beta",
        b"content-encoding", b"user-agent", b"x-stainless-retry-count",
    }
)  # fmt: skip
RESPONSE_HEADERS = frozenset({b"content-type", b"content-encoding", b"request-id"})

_THIS_PROCESS = secrets.token_hex(8)
_NUMBERS = itertools.count(1)


class Held:
    """How many bytes all taps of a process hold."""

    def __init__(self, most_bytes: int = MOST_HELD_BYTES) -> None:
        self.most_bytes = most_bytes
        self.now_bytes = 0


class Tap:
    """One call. Past a limit it keeps nothing, and `overflow` says why."""

    def __init__(self, caller: Caller, headers: Iterable[tuple[bytes, bytes]], held: Held) -> None:
        self.id = f"{_THIS_PROCESS}-{next(_NUMBERS)}"
        self.caller = caller
        self.overflow = ""
        self.added: tuple[str, ...] = ()
        self._held = held
        self._request_headers = _pick(headers, REQUEST_HEADERS)
        self._response_headers: dict[str, str] = {}
        self._request: list[bytes] = []
        self._response: list[bytes] = []
        self._size_bytes = self._answer_bytes = 0
        self._status = 0
        self._began_at, self._began = time.time(), time.perf_counter()
        self._first_byte_seconds: float | None = None

    def add_request(self, data: bytes) -> None:
        if self._fits(len(data)):
            self._request.append(data)

    def copy_request(self) -> bytes | None:
        """None when the tap overflowed."""
        return None if self.overflow else b"".join(self._request)

    def start_answer(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._status = status
        self._response_headers = _pick(headers, RESPONSE_HEADERS)
        self._first_byte_seconds = time.perf_counter() - self._began

    def add_answer(self, data: bytes) -> None:
        self._answer_bytes += len(data)
        if self._answer_bytes > LARGEST_ANSWER_BYTES:
            self._give_up("answer too large to record")
        elif self._fits(len(data)):
            self._response.append(data)

    def close(self, ending: Ending) -> Exchange | None:
        """What to hand to the recorder; None when the tap overflowed."""
        self._held.now_bytes -= self._size_bytes
        if self.overflow:
            return None
        return Exchange(
            id=self.id,
            team_pk=self.caller.team_pk,
            owner_pk=self.caller.owner_pk,
            key_pk=self.caller.key_pk,
            started_at=self._began_at,
            first_byte_seconds=self._first_byte_seconds,
            duration_seconds=time.perf_counter() - self._began,
            status=self._status,
            ending=ending,
            request_headers=self._request_headers,
            response_headers=self._response_headers,
            request_body=b"".join(self._request),
            response_body=b"".join(self._response),
            added=self.added,
        )

    def _fits(self, size_bytes: int) -> bool:
        if self.overflow:
            return False
        if self._held.now_bytes + size_bytes > self._held.most_bytes:
            self._give_up("too much under way to record")
            return False
        self._held.now_bytes += size_bytes
        self._size_bytes += size_bytes
        return True

    def _give_up(self, why: str) -> None:
        self.overflow = self.overflow or why
        self._request.clear()
        self._response.clear()
        self._held.now_bytes -= self._size_bytes
        self._size_bytes = 0


def _pick(headers: Iterable[tuple[bytes, bytes]], wanted: frozenset[bytes]) -> dict[str, str]:
    return {name.decode().lower(): value.decode("latin-1")[:4096] for name, value in headers if name.lower() in wanted}
