"""HTTP/1.1 as the web server speaks it: no other protocol is changed to, fields behind a body are left out, and the
head of an answer goes out with its body (dashboard/answer_writer.py).

uvicorn drops the body of a request that asks for another protocol (`Upgrade: h2c`, as curl --http2 and Java's client
do), and adds trailers to the headers of a request that was decided about already.
"""

from collections import deque

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from dashboard.answer_writer import AnswerWriter

_NOWHERE: deque[tuple[bytes, bytes]] = deque(maxlen=0)  # keeps nothing of what is appended


class PlainHttpProtocol(HttpToolsProtocol):
    """Of one connection. A request that is only a request costs one call more."""

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self._feed(memoryview(data))
        except httptools.HttpParserError:
            self.logger.warning("Invalid HTTP request received.")
            self.send_400_response("Invalid HTTP request received.")

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
            raise httptools.HttpParserError("What follows is for somebody else: this is no tunnel.")
        head = [method, b" ", self.url, b" HTTP/", self.parser.get_http_version().encode(), b"\r\n"]
        for name, value in self.scope["headers"]:
            if name != b"upgrade":
                head += [name, b": ", value, b"\r\n"]
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self.parser.feed_data(b"".join([*head, b"\r\n"]))

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.headers = _NOWHERE  # type: ignore[assignment]  # the request keeps its own list; what follows are trailers

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        cycle.transport = AnswerWriter(self.transport, self.loop)
        super()._start_asgi_task(cycle, app)

    def _should_upgrade(self) -> bool:
        """Asked of requests that want another protocol: their first reading is not to be answered."""
        return True
