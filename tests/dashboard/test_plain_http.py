"""What the web server makes of requests that want another protocol, of fields behind a body, of heads that do not
arrive, and of two hosts in one head: on a real port."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import BinaryIO

import pytest
import uvicorn

from dashboard import plain_http
from dashboard.front_door import Receive, Scope, Send
from dashboard.plain_http import PlainHttpProtocol

H2C = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n"

LARGE_BYTES = 30 * 2**20  # more than the system keeps for a client that does not read


async def tell_back(scope: Scope, receive: Receive, send: Send) -> None:
    """Says what arrived: method, path, header names and body."""
    body, more = b"", True
    while more and scope["path"] != "/unread":
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    names = [name.decode() for name, _ in scope["headers"]]
    told = json.dumps([scope["method"], scope["path"], names, body.decode()]).encode()
    if scope["path"] == "/large":
        told += b" " * LARGE_BYTES
    headers = [(b"content-length", str(len(told)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": told})


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    config = uvicorn.Config(
        tell_back, loop="uvloop", http=PlainHttpProtocol, ws="none", lifespan="off", log_config=None, access_log=False
    )
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    yield listening.getsockname()[1]
    server.should_exit = True
    thread.join(10)
    listening.close()


def exchange(port: int, *parts: str, answers: int = 1) -> list[bytes]:
    """The bodies of the answers to what is sent on one connection, part after part."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            connection.sendall(part.encode())
            time.sleep(0.02 if len(parts) < 20 else 0)
        with connection.makefile("rb") as file:
            return [read_answer(file) for _ in range(answers)]


def read_answer(file: BinaryIO) -> bytes:
    """The body, or the first line where that says something else than 200."""
    status, size = file.readline().strip(), 0
    while (line := file.readline()) not in (b"\r\n", b""):
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
    body = file.read(size)
    return body if b" 200 " in status else status


def post(body: str, *, fields: str = H2C, version: str = "1.1") -> str:
    return f"POST /x?y HTTP/{version}\r\nHost: a\r\n{fields}Content-Length: {len(body)}\r\n\r\n{body}"


NAMES = ["host", "connection", "http2-settings", "content-length"]


@pytest.mark.parametrize("size", [0, 1, 12, 300_000])
def test_body_behind_a_wish_for_another_protocol_arrives(port: int, size: int) -> None:
    (told,) = exchange(port, post("b" * size))
    assert json.loads(told) == ["POST", "/x", NAMES, "b" * size]


@pytest.mark.parametrize("place", [1, 60, 120, 165, 172, 176, 180])
def test_such_a_request_may_come_in_two_parts(port: int, place: int) -> None:
    request = post("0123456789")
    (told,) = exchange(port, request[:place], request[place:])
    assert json.loads(told)[3] == "0123456789"


def test_such_a_request_may_come_byte_by_byte(port: int) -> None:
    (told,) = exchange(port, *post("0123456789"))
    assert json.loads(told)[3] == "0123456789"


def test_such_a_body_may_be_chunked(port: int) -> None:
    head = f"POST /x HTTP/1.1\r\nHost: a\r\n{H2C}Transfer-Encoding: chunked\r\n\r\n"
    (told,) = exchange(port, head + "3\r\nabc\r\n", "2\r\nde\r\n0\r\n\r\n")
    assert json.loads(told)[3] == "abcde"


def test_a_connection_goes_on_behind_such_requests(port: int) -> None:
    requests = [post("one"), post("two", fields=""), post("three"), post("four"), post("five", fields="")]
    told = exchange(port, "".join(requests), answers=5)
    assert [json.loads(each)[3] for each in told] == ["one", "two", "three", "four", "five"]


@pytest.mark.parametrize(
    "fields",
    [
        "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Version: 13\r\n",
        "Connection: close, upgrade\r\nUPGRADE: h2c, TLS/1.0\r\n",
        "Upgrade: h2c\r\n",
        "Connection: upgrade\r\n",
    ],
)
def test_any_wish_for_another_protocol_is_ignored(port: int, fields: str) -> None:
    for version in ("1.0", "1.1"):
        (told,) = exchange(port, post("body", fields=fields, version=version))
        assert json.loads(told)[3] == "body"


def test_an_expectation_beside_it_is_met(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        request = post("body", fields=f"{H2C}Expect: 100-continue\r\n")
        connection.sendall(request.removesuffix("body").encode())
        assert connection.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        connection.sendall(b"body")
        with connection.makefile("rb") as file:
            assert json.loads(read_answer(file))[3] == "body"


@pytest.mark.parametrize("target", ["/x", "a:443", "*"])
def test_a_tunnel_is_refused(port: int, target: str) -> None:
    assert exchange(port, f"CONNECT {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{{}}") == [
        b"HTTP/1.1 400 Bad Request"
    ]


def test_a_wish_with_an_address_that_cannot_be_read_is_refused(port: int) -> None:
    assert exchange(port, f"POST http://a:99999999/ HTTP/1.1\r\nHost: a\r\n{H2C}\r\n") == [b"HTTP/1.1 400 Bad Request"]


def test_fields_behind_a_body_become_no_headers(port: int) -> None:
    head = "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    trailers = "X-Plimsoll-Key: k\r\nAuthorization: Bearer t\r\nConnection: host\r\n\r\n"
    after = "GET /after HTTP/1.1\r\nHost: b\r\n\r\n"
    told = exchange(port, head + trailers + after, answers=2)
    assert json.loads(told[0]) == ["POST", "/x", ["host", "transfer-encoding"], "{}"]
    assert json.loads(told[1]) == ["GET", "/after", ["host"], ""]


def test_head_and_body_of_an_answer_come_together(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(post("b", fields="").encode())
        assert connection.recv(65536).endswith(b'"b"]')


def test_answers_without_a_body_keep_their_order(port: int) -> None:
    head = "HEAD /first HTTP/1.1\r\nHost: a\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall((head * 3 + post("b", fields="Connection: close\r\n")).encode())
        with connection.makefile("rb") as file:
            told = file.read()
    assert [part.split(b" ", 1)[0] for part in told.split(b"HTTP/1.1 ")[1:]] == [b"200"] * 4
    assert told.count(b"/x") == 1
    assert told.endswith(b'"b"]')


# --- heads that do not arrive ---


@pytest.fixture
def _short_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_http, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(plain_http, "DISCARD_SECONDS", 0.5)


def trickle_until_closed(connection: socket.socket, part: bytes, *, seconds: float = 15.0) -> bytes:
    """Sends `part` again and again; returns what the server answered before it closed the connection."""
    answer, give_up_at = b"", time.monotonic() + seconds
    connection.settimeout(0.1)
    while time.monotonic() < give_up_at:
        try:
            connection.sendall(part)
            received = connection.recv(65536)
        except TimeoutError:
            continue
        except ConnectionError:
            return answer
        if not received:
            return answer
        answer += received
    raise AssertionError(f"still open after {seconds:g} s; received {answer!r}")


@pytest.mark.usefixtures("_short_deadlines")
@pytest.mark.parametrize(
    ("start", "part", "status"),
    [
        (b"", b"", b""),
        (b"GET / HTTP/1.1\r\nX-Slow: ", b"", b"408"),
        (b"GET / HTTP/1.1\r\nX-Slow: ", b"a", b"408"),
        (b"GET /", b"a", b"408"),
        (b"\r\n", b"\r\n", b""),
    ],
)
def test_half_a_head_is_given_up(port: int, start: bytes, part: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(start)
        answer = trickle_until_closed(connection, part)
    assert answer[9:12] == status


@pytest.mark.usefixtures("_short_deadlines")
@pytest.mark.parametrize("part", [b"\r\n", b"G", b"GET / HTTP/1.1\r\nX-Slow:"])
def test_half_a_head_behind_an_answered_request_is_given_up(port: int, part: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(post("one", fields="").encode() + part)
        with connection.makefile("rb") as file:
            assert json.loads(read_answer(file))[3] == "one"
        trickle_until_closed(connection, b"\r\n" if part == b"\r\n" else b"a")


@pytest.mark.usefixtures("_short_deadlines")
def test_body_that_was_answered_unread_is_not_discarded_for_ever(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")
        assert b" 200 " in trickle_until_closed(connection, b"a")


def test_connection_goes_on_behind_a_body_that_was_answered_unread(port: int) -> None:
    large = "b" * 1_000_000
    unread = f"POST /unread HTTP/1.1\r\nHost: a\r\nContent-Length: {len(large)}\r\n\r\n{large}"
    told = exchange(port, unread, post("after", fields=""), answers=2)
    assert [json.loads(each)[3] for each in told] == ["", "after"]


@pytest.mark.parametrize(
    "start",
    [
        b"GET / HTTP/1.1\r\nHost: a\r\nX-Large: ",
        b"GET /",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX-Large: ",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2;",
    ],
)
def test_head_without_end_does_not_occupy_the_server(port: int, start: bytes) -> None:
    """The parser joins what it keeps with every part anew: 100 MB of it took minutes."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as flood:
        with pytest.raises(ConnectionError):
            flood.sendall(start + b"a" * 100 * 2**20)
        (told,) = exchange(port, post("meanwhile", fields=""))
    assert json.loads(told)[3] == "meanwhile"
    assert time.monotonic() - began < 20


def test_answer_that_nobody_takes_does_not_keep_a_closed_connection(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_http, "UNSENT_SECONDS", 0.3)
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        time.sleep(3)
        with connection.makefile("rb") as file:
            received = len(file.read())
    assert received < LARGE_BYTES


# --- hosts ---


def ask_status(port: int, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.sendall(request)
        return connection.recv(65536)


@pytest.mark.parametrize(
    ("target", "fields", "status"),
    [
        (b"/x", b"Host: a\r\n", b"200"),
        (b"http://a/x", b"Host: A\r\n", b"200"),
        (b"/x", b"Host: a\r\nHost: b\r\n", b"400"),
        (b"/x", b"Host: a\r\nhost: a\r\n", b"400"),
        (b"/x", b"Host: a\r\nX-Between: 1\r\nHOST:\r\n", b"400"),
        (b"http://b/x", b"Host: a\r\n", b"400"),
        (b"http://a@b/x", b"Host: a\r\n", b"400"),
        (b"http://a:81/x", b"Host: a\r\n", b"400"),
    ],
)
def test_request_that_names_two_hosts_is_refused(port: int, target: bytes, fields: bytes, status: bytes) -> None:
    for more in (b"", H2C.encode()):
        answer = ask_status(port, b"GET " + target + b" HTTP/1.1\r\n" + fields + more + b"\r\n")
        assert answer[9:12] == status
        if status == b"400":
            assert b"Host" in answer.split(b"\r\n\r\n")[1]
