"""HTTP/1.1 as the web server speaks it: no other protocol is changed to, fields behind a body are left out, the head
of an answer goes out with its body (dashboard/answer_writer.py), and a client that is silent or endless is cut off.

uvicorn drops the body of a request that asks for another protocol (`Upgrade: h2c`, as curl --http2 and Java's client
do), and adds trailers to the headers of a request that was decided about already. With this parser it has no limits
for the head of a request; those for bodies are in dashboard/front_door.py and dashboard/proxy/forwarder.py.
"""

import asyncio
from collections import deque
from http import HTTPStatus
from urllib.parse import urlsplit

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from dashboard.answer_writer import AnswerWriter

HEAD_SECONDS = 10.0  # for the head of a request, from its first bytes or from the start of the connection
# For the rest of a body that was refused: a client that is cut off at once would often not see the answer.
DISCARD_SECONDS = 10.0
# Of a head, of fields behind a body, of a chunk's extension: all that the parser keeps before it calls back.
MOST_HEAD_BYTES = 64 * 1024
UNSENT_SECONDS = 60.0  # for a client that takes nothing of the last part of an answer

_NOWHERE: deque[tuple[bytes, bytes]] = deque(maxlen=0)  # keeps nothing of what is appended


class BadRequest(Exception):
    """A head that must not be answered as a request; the message is for whoever sent it."""


class PlainHttpProtocol(HttpToolsProtocol):
    """Of one connection. A request that is only a request costs one call more."""

    _deadline: asyncio.TimerHandle | None = None
    _unsent_check: asyncio.TimerHandle | None = None
    _is_in_head = False
    _is_in_body = False
    _unparsed_bytes = 0  # received since the parser last called back with something whole

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        self._set_deadline(HEAD_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:
        self._clear_deadline()
        self._clear_unsent_check()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        self._unparsed_bytes += len(data)
        try:
            self._feed(memoryview(data))
        except httptools.HttpParserError as error:
            # The parser wraps what a callback raises.
            cause = error.__context__
            sentence = str(cause) if isinstance(cause, BadRequest) else "Invalid HTTP request received."
            self.logger.warning(sentence)
            self.send_400_response(sentence)
            return
        if self._unparsed_bytes > MOST_HEAD_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "The request headers are too large.")
        elif self._deadline is None and (self.cycle is None or self.cycle.response_complete):
            self._set_deadline(HEAD_SECONDS)  # these bytes ended the keep-alive timer, but began no whole request

    def _feed(self, rest: memoryview) -> None:
        while rest:
            try:
                self.parser.feed_data(rest)
                return
            except httptools.HttpParserUpgrade as stopped:
                rest = rest[stopped.args[0] :]
            self._begin_again()

    def _begin_again(self) -> None:
        """Reads the head once more without its wish for another protocol, which a server may ignore (RFC 9110, 7.8):
        the parser takes what follows for the body then. A new parser: one that was told to close reads nothing more."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            raise httptools.HttpParserError("CONNECT tunnels are not supported.")
        head = [method, b" ", self.url, b" HTTP/", self.parser.get_http_version().encode(), b"\r\n"]
        for name, value in self.scope["headers"]:
            if name != b"upgrade":
                head += [name, b": ", value, b"\r\n"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self.parser.feed_data(b"".join([*head, b"\r\n"]))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True

    def on_headers_complete(self) -> None:
        check_host(self.url, self.headers)
        self._unparsed_bytes = 0
        self._is_in_head, self._is_in_body = False, True
        self._clear_deadline()
        super().on_headers_complete()
        self.headers = _NOWHERE  # type: ignore[assignment]  # the request keeps its own list; what follows are trailers

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed_bytes = 0
        self._is_in_body = False
        self._clear_deadline()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # A pipelined request may have become `self.cycle` meanwhile.
        if self._is_in_body and self.cycle.response_complete:
            self._set_deadline(DISCARD_SECONDS)

    # --- deadlines ---

    def _set_deadline(self, seconds: float) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(seconds, self._miss_deadline)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _miss_deadline(self) -> None:
        self._deadline = None
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            # The start of the next request stands behind one that is still being answered.
            self._set_deadline(HEAD_SECONDS)
        elif self._is_in_head:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The request headers did not arrive in time.")
        else:
            self.transport.close()

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        """Answers from here and closes the connection. An answer that is under way is cut instead."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            body = f"{sentence}\n".encode()
            head = (
                f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: text/plain; charset=utf-8\r\n"
                f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
        self.transport.close()

    # --- answers that are not taken ---

    def pause_writing(self) -> None:
        super().pause_writing()
        self._check_unsent_later()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._clear_unsent_check()

    def _check_unsent_later(self) -> None:
        size = self.transport.get_write_buffer_size()
        self._unsent_check = self.loop.call_later(UNSENT_SECONDS, self._check_unsent, size)

    def _check_unsent(self, size_before: int) -> None:
        """Only of a connection that is being closed, which otherwise waits for its client for ever. How long an answer
        may take is decided where it is made: those of the proxy have a limit of their own."""
        if self.transport.is_closing() and self.transport.get_write_buffer_size() >= size_before:
            self.transport.abort()
        else:
            self._check_unsent_later()

    def _clear_unsent_check(self) -> None:
        if self._unsent_check is not None:
            self._unsent_check.cancel()
            self._unsent_check = None

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        cycle.transport = AnswerWriter(self.transport, self.loop)
        super()._start_asgi_task(cycle, app)

    def _should_upgrade(self) -> bool:
        """Asked of requests that want another protocol: their first reading is not to be answered."""
        return True


def check_host(target: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    """Raises BadRequest where two readers of one head could see different hosts: with several Host headers, or with a
    target that names another one (RFC 9112, 3.2)."""
    hosts = [value.strip().lower() for name, value in headers if name == b"host"]
    if len(hosts) > 1:
        raise BadRequest("The request has more than one Host header.")
    if target[:1] not in (b"/", b"*") and hosts:
        named = urlsplit(target.lower()).netloc
        if named and named != hosts[0]:
            raise BadRequest("The request's target and its Host header name different hosts.")
