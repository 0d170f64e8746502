"""What the upstream sees is what the caller wrote, and what the caller reads is what the upstream wrote (R12)."""

import gzip
import http.client
import json
import random
import socket
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from tests.dashboard.proxy.serving import KEY, Serving, serving
from tests.fakes.raw_upstream import Connection, RawUpstream

STREAMS = 200
STEPS_BACK = [
    *("../a", "v1/%2e%2e/%2E%2E/a", "./v1", "..%2fa", "x/..%5C..%5ca", "..\\a", "x%2F..", "%2e%2E%2f%2e%2e/a"),
    *("..;/a", "v1/..;x=1/a", "v1/..%3b/a", "v1/%2e%2e;/a", ".;/a", "..%20/a"),
    *("%252e%252e/a", "v1/%252e%252e%252fa", "..%253b/a", "%25252e%25252e/a", "%" + "25" * 500 + "2e/a"),
]


def cut_randomly(data: bytes, dice: random.Random) -> list[bytes]:
    places = sorted(dice.sample(range(1, len(data)), dice.randint(0, min(40, len(data) - 1))))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


def stream_chunks(chunks: list[bytes], pause_seconds: float, connection: Connection) -> None:
    connection.send_head("200 OK", ("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))
    for chunk in chunks:
        connection.send_chunk(chunk)
        time.sleep(pause_seconds)
    connection.end_chunks()


def test_bytes_of_200_streams_come_out_as_they_went_in(proxy: Serving, upstream: RawUpstream) -> None:
    dice = random.Random(12)
    for number in range(STREAMS):
        body = dice.randbytes(dice.randint(2, 200_000 if number % 20 == 0 else 5_000))
        request = dice.randbytes(dice.randint(0, 300_000 if number % 20 == 1 else 3_000))
        chunks = cut_randomly(body, dice)
        upstream.script = partial(stream_chunks, chunks, 0.001 if dice.random() < 0.1 else 0.0)
        answered = proxy.ask("/proxy/v1/messages", request)
        assert answered.status == 200
        assert answered.body == body, f"stream {number}"
        assert not answered.is_cut
        assert upstream.requests[-1].body == request, f"stream {number}"
        exchange = proxy.wait_for_exchange(number + 1)
        assert (exchange.request_body, exchange.response_body) == (request, body)


@pytest.mark.parametrize(
    ("method", "path", "target"),
    [
        ("POST", "/proxy/v1/messages?beta=true", "/v1/messages?beta=true"),
        ("POST", "/proxy/v1/messages/count_tokens", "/v1/messages/count_tokens"),
        ("GET", "/proxy/v1/models?limit=1000", "/v1/models?limit=1000"),
        ("HEAD", "/proxy/", "/"),
        ("HEAD", "/proxy", "/"),
        ("HEAD", "/proxy/api/hello", "/api/hello"),
        ("DELETE", "/proxy/v1/files/a%2Fb%20c?x=%7E&y=a+b&&z", "/v1/files/a%2Fb%20c?x=%7E&y=a+b&&z"),
        ("PUT", "/proxy/caf%C3%A9//double//slash", "/caf%C3%A9//double//slash"),
        ("PATCH", f"/proxy/k/{KEY}/v1/x", "/v1/x"),
        ("GET", f"/proxy/k/{KEY}/u/other/v1/x", "/v1/x"),
        ("GET", f"/proxy/u/other/k/{KEY}/v1/x", "/v1/x"),
        ("GET", "/proxy/u/other/v1/x", "/v1/x"),
        ("GET", "/proxy/v1/...%2F.hidden%5C/a..b", "/v1/...%2F.hidden%5C/a..b"),
        ("GET", "/proxy/keys/k/u/..x", "/keys/k/u/..x"),
    ],
)
def test_method_path_and_query_arrive_as_written(
    upstream: RawUpstream, tmp_path: Path, method: str, path: str, target: str
) -> None:
    with serving(upstream.url, tmp_path, other=upstream.url) as proxy:
        assert proxy.ask(path, method=method).status == 200
    assert (upstream.requests[-1].method, upstream.requests[-1].target) == (method, target)


def test_upstream_in_a_folder_of_a_gateway_is_kept_below_it(upstream: RawUpstream, tmp_path: Path) -> None:
    with serving(f"{upstream.url}/anthropic", tmp_path) as proxy:
        assert proxy.ask("/proxy/v1/messages", b"{}").status == 200
        for path in STEPS_BACK:
            refused = proxy.ask(f"/proxy/{path}", b"{}")
            told = json.loads(refused.body)["error"]
            assert (refused.status, told["type"]) == (400, "invalid_request_error"), path
            assert told["message"].endswith("are not forwarded."), path
    assert [seen.target for seen in upstream.requests] == ["/anthropic/v1/messages"]


def test_headers_pass_but_for_those_of_the_connection_and_ours(proxy: Serving, upstream: RawUpstream) -> None:
    sent = {
        "anthropic-version": "2026-10-21",
        "anthropic-beta": "a-1,b-2",
        "x-api-key": "sk-ant-secret",
        "Authorization": "Bearer sk-ant-other",
        "X-Claude-Code-Session-Id": "s",
        "Accept-Encoding": "gzip, br, zstd",
        "User-Agent": "claude-cli/2.1.325",
        "Content-Type": "application/json",
        "X-Odd": "café \N{SNOWMAN}",
        "Connection": "keep-alive, X-Hop",
        "X-Hop": "dropped",
        "TE": "trailers",
        "Proxy-Authorization": "dropped",
        "X-Plimsoll-Anything": "dropped",
        "Cookie": "a=b; plimsoll_session=secret; c=d",
    }
    encoded = {name: value.encode("utf-8").decode("latin-1") for name, value in sent.items()}
    assert proxy.ask("/proxy/v1/messages", b"{}", headers=encoded).status == 200
    seen = {name.lower(): value for name, value in upstream.requests[-1].headers}
    for name in list(sent)[:9]:
        assert seen.pop(name.lower()) == encoded[name]
    assert seen.pop("host") == upstream.url.removeprefix("http://")
    assert seen.pop("content-length") == "2"
    assert seen.pop("cookie") == "a=b; c=d"
    assert seen == {}


def test_nothing_is_added_to_a_bare_request(proxy: Serving, upstream: RawUpstream) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        connection.sendall(f"GET /proxy/k/{KEY}/v1/models HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        connection.recv(1000)
    assert [name for name, _ in upstream.requests[-1].headers] == ["Host"]


def test_response_headers_keep_order_repetition_and_value(proxy: Serving, upstream: RawUpstream) -> None:
    headers = [
        ("request-id", "req_1"),
        ("set-cookie", "a=1"),
        ("set-cookie", "b=2"),
        ("anthropic-ratelimit-requests-remaining", "3"),
        ("date", "Mon, 16 Nov 2026 09:00:00 GMT"),
        ("server", "cloudflare"),
        ("x-odd", "caf\xe9"),
    ]
    upstream.script = lambda connection: connection.answer(
        b"{}", *headers, ("connection", "close, x-hop"), ("x-hop", "dropped"), ("keep-alive", "timeout=5")
    )
    answered = proxy.ask("/proxy/v1/messages", b"{}")
    assert answered.headers == [*headers, ("content-length", "2")]


@pytest.mark.parametrize("status", ["400 Bad Request", "401 Unauthorized", "404 Not Found", "429 Slow", "529 Busy"])
def test_upstream_errors_are_not_touched(proxy: Serving, upstream: RawUpstream, status: str) -> None:
    body = b'{"type":"error","error":{"type":"x","message":"caf\xc3\xa9"},"request_id":"r"}'
    upstream.script = lambda connection: connection.answer(body, ("retry-after", "7"), status=status)
    answered = proxy.ask("/proxy/v1/messages", b"{}")
    assert (answered.status, answered.body) == (int(status[:3]), body)
    assert answered.header("retry-after") == "7"


def test_redirects_are_passed_back_not_followed(proxy: Serving, upstream: RawUpstream) -> None:
    upstream.script = lambda connection: connection.answer(b"", ("location", "http://127.0.0.1:1/x"), status="307 No")
    answered = proxy.ask("/proxy/v1/messages", b"{}")
    assert (answered.status, answered.header("location")) == (307, "http://127.0.0.1:1/x")


def test_encoded_bodies_are_not_decoded(proxy: Serving, upstream: RawUpstream) -> None:
    packed = gzip.compress(b'{"ok":1}')
    upstream.script = lambda connection: connection.answer(packed, ("content-encoding", "gzip"))
    answered = proxy.ask("/proxy/v1/messages", packed, headers={"Content-Encoding": "gzip"})
    assert answered.body == packed
    assert upstream.requests[-1].body == packed
    assert upstream.requests[-1].header("content-encoding") == "gzip"


def test_head_passes_headers_without_a_body(proxy: Serving, upstream: RawUpstream) -> None:
    upstream.script = lambda connection: connection.send_head("200 OK", ("content-length", "5"), ("x-a", "b"))
    answered = proxy.ask("/proxy/api/hello", method="HEAD")
    assert (answered.status, answered.body, answered.header("content-length")) == (200, b"", "5")


@pytest.mark.parametrize("status", ["204 No Content", "304 Not Modified"])
def test_an_answer_without_a_body_leaves_the_connection_open(
    proxy: Serving, upstream: RawUpstream, status: str
) -> None:
    length = ("content-length", "5") if status.startswith("304") else ("x-a", "b")
    upstream.script = lambda connection: connection.send_head(status, length, ("etag", '"1"'))
    caller = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=20)
    with closing(caller):
        for _ in range(2):
            caller.request("GET", "/proxy/v1/models", headers={"X-Plimsoll-Key": KEY})
            answer = caller.getresponse()
            assert (answer.status, answer.read(), answer.headers["etag"]) == (int(status[:3]), b"", '"1"')
            assert not answer.will_close


def test_a_page_of_the_upstream_cannot_run_as_a_page_of_plimsoll(proxy: Serving, upstream: RawUpstream) -> None:
    upstream.script = lambda connection: connection.answer(b"<script>", ("Content-Type", "text/html"))
    assert proxy.ask("/proxy/ui", method="GET").header("content-security-policy") == "sandbox"


def test_an_answer_may_have_many_headers(
    proxy: Serving, upstream: RawUpstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http.client, "_MAXHEADERS", 1000)
    headers = [(f"x-{number}", "v") for number in range(300)]
    upstream.script = lambda connection: connection.answer(b"{}", *headers)
    answered = proxy.ask("/proxy/v1/messages", b"{}", headers=dict(headers))
    assert answered.status == 200
    assert answered.headers[:300] == headers
    assert set(upstream.requests[-1].headers) >= set(headers)


def test_body_behind_a_wish_for_http_2_is_passed(proxy: Serving, upstream: RawUpstream) -> None:
    """As `curl --http2` and Java's client ask, on a connection that goes on."""
    wish = {"Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "HTTP2-Settings": "AAMAAABkAARAAAAAAAIAAAAA"}
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=5)
    for number, headers in enumerate((wish, {}, wish)):
        connection.request("POST", f"/proxy/k/{KEY}/v1/messages", b"body %d" % number, headers)
        assert connection.getresponse().read() == b'{"ok":true}'
    connection.close()
    assert [seen.body for seen in upstream.requests] == [b"body 0", b"body 1", b"body 2"]
    names = [[name.lower() for name, _ in seen.headers] for seen in upstream.requests]
    assert names == [["host", "accept-encoding", "content-length"]] * 3


def test_fields_behind_a_body_are_not_passed(proxy: Serving, upstream: RawUpstream) -> None:
    head = "POST /proxy/v1/messages HTTP/1.1\r\nHost: x\r\nanthropic-version: 1\r\nTransfer-Encoding: chunked\r\n"
    for key, status in ((f"X-Plimsoll-Key: {KEY}\r\n", b"200"), ("", b"401")):
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=5) as connection:
            trailers = f"X-Plimsoll-Key: {KEY}\r\nAuthorization: Bearer t\r\nConnection: anthropic-version\r\n"
            connection.sendall(f"{head}{key}\r\n2\r\n{{}}\r\n0\r\n{trailers}\r\n".encode())
            assert connection.recv(1000).split()[1] == status
    (seen,) = upstream.requests
    assert [name.lower() for name, _ in seen.headers] == ["host", "anthropic-version", "content-length"]


def test_pings_are_relayed_at_once(proxy: Serving, upstream: RawUpstream) -> None:
    ping = b"event: ping\ndata: {}\n\n"

    def ping_slowly(connection: Connection) -> None:
        connection.send_head("200 OK", ("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))
        for _ in range(5):
            time.sleep(0.1)
            connection.send_chunk(ping + f"{time.monotonic():.4f}\n".encode())
        connection.end_chunks()

    upstream.script = ping_slowly
    delays = []
    with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        connection.sendall(f"POST /proxy/k/{KEY}/v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n".encode())
        received = b""
        while not received.endswith(b"0\r\n\r\n"):
            part = connection.recv(10_000)
            received += part
            if ping in part:
                sent_at = float(part.split(ping, 1)[1].split(b"\n", 1)[0])
                delays.append(time.monotonic() - sent_at)
    assert len(delays) == 5
    assert max(delays) < 0.05


def test_an_upload_is_streamed_not_gathered(proxy: Serving, upstream: RawUpstream) -> None:
    with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
        head = f"POST /proxy/k/{KEY}/v1/files HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        connection.sendall(b"5\r\nfirst\r\n")
        seen = upstream.wait_for_request()
        assert seen.method == "POST"  # the head is there while the body is still being written
        connection.sendall(b"6\r\nsecond\r\n0\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200")
    assert (seen.body, seen.is_chunked) == (b"firstsecond", True)


def test_a_slow_reader_holds_the_upstream_back(proxy: Serving, upstream: RawUpstream) -> None:
    sent = [0]

    def flood(connection: Connection) -> None:
        connection.send_head("200 OK", ("transfer-encoding", "chunked"))
        for _ in range(1000):
            connection.send_chunk(b"x" * 65536)
            sent[0] += 65536
        connection.end_chunks()

    upstream.script = flood
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        connection.connect(("127.0.0.1", proxy.port))
        connection.sendall(f"GET /proxy/k/{KEY}/v1/x HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        time.sleep(1.0)
        held_at = sent[0]
        time.sleep(0.5)
        assert sent[0] == held_at < 20_000_000


def test_pages_keep_their_own_headers(proxy: Serving) -> None:
    answered = proxy.ask("/proxying", method="GET")
    assert answered.body == b"a page"
    assert answered.header("x-request-id")
    assert answered.header("date")
