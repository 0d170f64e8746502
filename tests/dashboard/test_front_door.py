"""The layer before Django: limits, ids, the log line, headers on what Django never sees."""

import asyncio
import json
import logging
import re
from collections.abc import Coroutine, Mapping
from typing import Any

import pytest
from django.conf import settings

from dashboard import front_door
from dashboard.asgi import build_application
from dashboard.front_door import BODY_LIMIT_BYTES, BodyRules, FrontDoor, KeyFinding, Message, Receive, Scope, Send
from dashboard.middleware import security_headers
from dashboard.places import name_address

HEADERS = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'"}


def run(walk: Coroutine[Any, Any, None]) -> None:
    asyncio.run(walk)


class Client:
    """One request as a server would hand it over; `parts` is the body as it arrives."""

    def __init__(
        self, path: str = "/page/", *parts: bytes, method: str = "POST", headers: Mapping[str, str] = {}
    ) -> None:
        self.scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"secret=yes",
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
        }
        self.parts = list(parts) or [b""]
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        if self.parts:
            return {"type": "http.request", "body": self.parts.pop(0), "more_body": bool(self.parts)}
        await asyncio.sleep(3600)
        raise AssertionError("nobody waits that long")

    async def send(self, message: Message) -> None:
        self.sent.append(message)

    async def ask(self, application: Any) -> "Client":
        await application(self.scope, self.receive, self.send)
        return self

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {bytes(name).decode(): bytes(value).decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent[1:])


class StalledClient(Client):
    async def receive(self) -> Message:
        await asyncio.sleep(3600)
        raise AssertionError("nobody waits that long")


class SlowClient(Client):
    """Declares its body, and sends a part of `size` bytes every 20 ms."""

    def __init__(self, path: str = "/page/", *, address: str = "192.0.2.1", parts: int = 1000, size: int = 1) -> None:
        super().__init__(path, *[b"a" * size] * parts, headers={"Content-Length": str(parts * size)})
        self.scope["client"] = (address, 1)

    async def receive(self) -> Message:
        await asyncio.sleep(0.02)
        return await super().receive()


async def echo_length(scope: Scope, receive: Receive, send: Send) -> None:
    """Reads the whole body, as Django does, and stops when the client is gone."""
    length, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        length += len(message["body"])
        more = message["more_body"]
    await send({"type": "http.response.start", "status": 200, "headers": [(b"x-content-type-options", b"own")]})
    await send({"type": "http.response.body", "body": str(length).encode()})


def make_door(application: Any = echo_length, **options: Any) -> FrontDoor:
    return FrontDoor(application, headers=HEADERS, **{"max_in_flight": 10, "max_sending": 5, **options})


def test_body_within_the_limit_passes() -> None:
    async def walk() -> None:
        client = await Client("/page/", b"a" * BODY_LIMIT_BYTES).ask(make_door())
        assert (client.status, client.body) == (200, str(BODY_LIMIT_BYTES).encode())

    run(walk())


def test_declared_length_over_the_limit_is_refused_before_the_application_runs() -> None:
    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the application was called")

    async def walk() -> None:
        client = await Client(headers={"Content-Length": str(BODY_LIMIT_BYTES + 1)}).ask(make_door(never))
        assert (client.status, client.body) == (413, b"The request body is larger than 5 MiB.\n")

    run(walk())


def test_chunked_body_is_counted_while_it_arrives() -> None:
    async def walk() -> None:
        client = Client("/api/v1/things", *[b"x" * 1024 * 1024] * 1000)
        await client.ask(make_door())
        assert client.status == 413
        assert json.loads(client.body) == {"detail": "The request body is larger than 5 MiB."}
        assert len(client.parts) == 1000 - 6  # read to the limit and not a part further

    run(walk())


def test_longest_prefix_decides_the_limit() -> None:
    async def walk() -> None:
        door = make_door(bodies=BodyRules(limits={"/v1/": 10, "/v1/large/": 20}))
        assert (await Client("/v1/x", b"a" * 11).ask(door)).status == 413
        assert (await Client("/v1/large/x", b"a" * 20).ask(door)).status == 200
        assert (await Client("/v1/large/x", b"a" * 21).ask(door)).status == 413

    run(walk())


@pytest.mark.parametrize("path", ["/v1/logs", "/ingest/otlp/v1/logs"])
def test_otlp_clients_are_refused_in_their_own_way(path: str) -> None:
    async def walk() -> None:
        told = "The request body is larger than 20 MiB."
        length = {"Content-Length": str(20 * 1024 * 1024 + 1)}
        spelt = await Client(path, headers=length | {"Content-Type": "application/json"}).ask(make_door())
        assert (spelt.status, json.loads(spelt.body)) == (413, {"message": told})
        packed = await Client(path, headers=length | {"Content-Type": "application/x-protobuf"}).ask(make_door())
        assert (packed.status, packed.headers["content-type"]) == (413, "application/x-protobuf")
        assert packed.body == b"\x12" + bytes([len(told)]) + told.encode()  # google.rpc.Status, its message alone

    run(walk())


def test_what_the_application_sends_after_a_refusal_is_dropped() -> None:
    async def stubborn(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"late"})

    async def walk() -> None:
        client = await Client("/page/", b"a" * 11, b"b").ask(make_door(stubborn, bodies=BodyRules(limits={"/": 10})))
        assert [message["type"] for message in client.sent] == ["http.response.start", "http.response.body"]
        assert client.status == 413

    run(walk())


def test_stalled_body_is_refused_and_a_waiting_application_is_not() -> None:
    async def patient(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(receive(), 0.2)  # waiting for the client to leave
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def walk() -> None:
        impatient = BodyRules(prompt_seconds=0.01, stall_seconds=0.05)
        stalled = StalledClient(headers={"Content-Length": "10"})
        assert (await stalled.ask(make_door(bodies=impatient))).status == 408
        assert (await Client("/page/").ask(make_door(patient, bodies=impatient))).status == 204

    run(walk())


def test_body_that_trickles_is_refused_although_it_never_stalls() -> None:
    async def walk() -> None:
        rules = BodyRules(prompt_seconds=0.01, stall_seconds=5, grace_seconds=0.2, bytes_per_second=1000)
        client = await SlowClient(size=1).ask(make_door(bodies=rules))
        assert client.status == 408
        assert client.parts  # given up before the end
        assert (await SlowClient(size=100, parts=30).ask(make_door(bodies=rules))).status == 200

    run(walk())


def test_time_in_which_the_application_does_not_read_is_not_held_against_the_client() -> None:
    async def slow_reader(scope: Scope, receive: Receive, send: Send) -> None:
        async def receive_late() -> Message:
            await asyncio.sleep(0.3)
            return await receive()

        await echo_length(scope, receive_late, send)

    async def walk() -> None:
        rules = BodyRules(prompt_seconds=0.01, grace_seconds=0.2, bytes_per_second=10_000)
        client = Client("/page/", b"a", b"b", b"c", headers={"Content-Length": "3"})
        assert (await client.ask(make_door(slow_reader, bodies=rules))).status == 200

    run(walk())


SLOW_RULES = BodyRules(prompt_seconds=0.05, stall_seconds=30, grace_seconds=30)


def test_bodies_under_way_hold_no_place_of_requests_that_are_there() -> None:
    async def walk() -> None:
        door = make_door(max_in_flight=8, max_sending=2, bodies=SLOW_RULES)
        trickling = [
            asyncio.create_task(SlowClient(path, address=f"192.0.2.{number}").ask(door))
            for number in range(8)
            for path in ("/page/", "/v1/logs", "/v1/logs")
        ]
        await asyncio.sleep(0.3)
        assert (door.work.taken, door.telemetry.taken) == (0, 0)
        for path in ("/page/", "/v1/logs", "/api/v1/ingest/hooks"):
            assert (await Client(path, b"prompt", headers={"Content-Length": "6"}).ask(door)).status == 200
        assert (await Client(method="GET").ask(door)).status == 200
        refused = [task.result() for task in trickling if task.done()]
        assert {client.status for client in refused} == {503}
        assert len(trickling) - len(refused) == door.slow_bodies.taken == 8
        for task in trickling:
            task.cancel()
        await asyncio.gather(*trickling, return_exceptions=True)
        assert door.slow_bodies.taken == 0

    run(walk())


@pytest.mark.parametrize("by", ["address", "key"])
def test_one_client_gets_a_share_of_the_places_for_slow_bodies(by: str) -> None:
    async def check_key(scope: Scope) -> KeyFinding:
        return KeyFinding(client=f"key of {scope['path']}") if by == "key" else KeyFinding()

    async def walk() -> None:
        door = make_door(max_in_flight=8, bodies=SLOW_RULES, check_key=check_key)
        own = [
            SlowClient("/api/v1/mine", address=f"192.0.2.{number}" if by == "key" else "192.0.2.1")
            for number in range(6)
        ]
        others = SlowClient("/api/v1/other", address="198.51.100.1", parts=20)
        tasks = [asyncio.create_task(client.ask(door)) for client in own]
        await asyncio.sleep(0.3)
        assert door.slow_bodies.taken == 2  # a quarter
        assert [client.status for client in own if client.sent] == [503] * 4
        assert (await others.ask(door)).status == 200
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    run(walk())


def test_one_address_leaves_places_for_others() -> None:
    async def walk() -> None:
        release = asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            await release.wait()
            await echo_length(scope, receive, send)

        def ask(address: str) -> "asyncio.Task[Client]":
            client = Client(method="GET")
            client.scope["client"] = (address, 1)
            return asyncio.create_task(client.ask(door))

        door = make_door(slow, max_in_flight=8)
        asked = [ask("192.0.2.1") for _ in range(8)] + [ask("192.0.2.2")]
        await asyncio.sleep(0.01)
        release.set()
        assert [client.status for client in await asyncio.gather(*asked)] == [200] * 7 + [503, 200]

    run(walk())


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::ffff", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("testclient", "testclient"),
    ],
)
def test_a_client_is_counted_by_its_address_or_its_network(address: str, name: str) -> None:
    assert name_address(address) == name


@pytest.mark.parametrize(("status", "retry_after"), [(401, None), (503, "1")])
def test_key_is_checked_before_the_body_is_read(status: int, retry_after: str | None) -> None:
    async def check_key(scope: Scope) -> KeyFinding:
        return KeyFinding(refusal=(status, "No."))

    async def walk() -> None:
        client = Client("/v1/logs", b"a", b"b", headers={"Content-Length": "2", "Content-Type": "application/json"})
        await client.ask(make_door(check_key=check_key))
        assert (client.status, json.loads(client.body)) == (status, {"message": "No."})
        assert client.headers.get("retry-after") == retry_after
        assert client.parts == [b"a", b"b"]

    run(walk())


def test_body_that_took_long_is_not_refused_for_a_busy_moment() -> None:
    async def walk() -> None:
        async def work(scope: Scope, receive: Receive, send: Send) -> None:
            await echo_length(scope, receive, send)
            await asyncio.sleep(0.4 if scope["method"] == "GET" else 0)

        door = make_door(work, max_in_flight=1, bodies=SLOW_RULES)
        slow = asyncio.create_task(SlowClient(parts=25).ask(door))
        await asyncio.sleep(0.4)
        busy = asyncio.create_task(Client(method="GET").ask(door))
        assert (await slow).status == 200
        assert (await busy).status == 200

    run(walk())


def test_client_that_does_not_take_its_answer_loses_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front_door, "ANSWER_STALL_SECONDS", 0.05)

    class Deaf(Client):
        async def send(self, message: Message) -> None:
            await asyncio.sleep(3600)
            await super().send(message)

    async def walk() -> None:
        door = make_door()
        with pytest.raises(TimeoutError):
            await Deaf(method="GET").ask(door)
        assert door.work.taken == 0

    run(walk())


def test_static_files_hold_no_place_of_pages() -> None:
    async def walk() -> None:
        release = asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"].startswith("/static/"):
                await release.wait()
            await echo_length(scope, receive, send)

        door = make_door(slow, max_in_flight=2)
        files = [asyncio.create_task(Client("/static/large.js", method="GET").ask(door)) for _ in range(3)]
        await asyncio.sleep(0.01)
        assert (await Client(method="GET").ask(door)).status == 200
        release.set()
        assert [client.status for client in await asyncio.gather(*files)] == [200, 200, 503]

    run(walk())


def test_senders_of_telemetry_leave_room_for_pages() -> None:
    async def walk() -> None:
        release = asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["path"] == "/v1/logs":
                await release.wait()
            await echo_length(scope, receive, send)

        door = make_door(slow, max_sending=2)
        waiting = [asyncio.create_task(Client("/v1/logs").ask(door)) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await Client("/api/v1/ingest/hooks").ask(door)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert (await Client("/sessions/").ask(door)).status == 200
        release.set()
        assert [client.status for client in await asyncio.gather(*waiting)] == [200, 200]
        assert (await Client("/v1/logs").ask(door)).status == 200
        assert (door.work.taken, door.telemetry.taken) == (0, 0)

    run(walk())


def test_too_many_at_once_are_told_to_come_back_and_probes_are_still_answered() -> None:
    async def walk() -> None:
        release = asyncio.Event()

        async def slow(scope: Scope, receive: Receive, send: Send) -> None:
            if not scope["path"].startswith("/health/"):
                await release.wait()
            await echo_length(scope, receive, send)

        door = make_door(slow, max_in_flight=2)
        waiting = [asyncio.create_task(Client().ask(door)) for _ in range(2)]
        await asyncio.sleep(0)
        refused = await Client("/api/v1/me").ask(door)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert "detail" in json.loads(refused.body)
        for probe in ("/health/live", "/health/ready"):
            assert (await Client(probe, method="GET").ask(door)).status == 200
        release.set()
        assert [client.status for client in await asyncio.gather(*waiting)] == [200, 200]
        assert (await Client().ask(door)).status == 200
        assert door.work.taken == 0

    run(walk())


def test_every_answer_has_an_id_and_the_headers_without_doubling_them() -> None:
    async def walk() -> None:
        client = await Client("/page/", b"abc").ask(make_door())
        assert client.headers["x-content-type-options"] == "own"
        assert client.headers["content-security-policy"] == "default-src 'none'"
        assert re.fullmatch(r"[0-9a-f]{16}", client.headers["x-request-id"])
        names = [name for name, _ in client.sent[0]["headers"]]
        assert len(names) == len(set(names))
        refused = await Client(headers={"Content-Length": "99999999"}).ask(make_door())
        assert refused.headers["content-security-policy"] == "default-src 'none'"

    run(walk())


def test_one_log_line_without_query_string_and_secrets(caplog: pytest.LogCaptureFixture) -> None:
    async def walk() -> None:
        await Client("/sign-in/link/pls_" + "a" * 43 + "/", b"abc").ask(make_door())

    with caplog.at_level(logging.INFO, logger="dashboard.front_door"):
        run(walk())
    (record,) = caplog.records
    told = vars(record)
    assert (told["method"], told["path"], told["status"]) == ("POST", "/sign-in/link/pls_***/", 200)
    assert told["bytes_out"] == 1
    assert told["ms"] >= 0
    assert "secret" not in str(told)


def test_failing_application_is_logged_and_counted_out(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: Scope, receive: Receive, send: Send) -> None:
        raise RuntimeError("broken")

    async def walk() -> None:
        door = make_door(broken)
        with pytest.raises(RuntimeError):
            await Client().ask(door)
        assert door.work.taken == 0

    with caplog.at_level(logging.INFO, logger="dashboard.front_door"):
        run(walk())
    assert vars(caplog.records[0])["status"] == 0


def test_lifespan_is_answered_and_websockets_are_refused() -> None:
    async def walk() -> None:
        events = iter(["lifespan.startup", "lifespan.shutdown"])
        sent: list[str] = []

        async def receive() -> Message:
            return {"type": next(events)}

        async def send(message: Message) -> None:
            sent.append(message["type"])

        await make_door()({"type": "lifespan"}, receive, send)
        await make_door()({"type": "websocket"}, receive, send)
        assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]

    run(walk())


def test_static_files_are_compressed_cached_for_ever_and_carry_the_headers() -> None:
    manifest = json.loads((settings.STATIC_ROOT / "staticfiles.json").read_text())
    script = next(hashed for name, hashed in manifest["paths"].items() if name == "plotly/plotly.min.js")

    async def walk() -> None:
        url = f"{settings.STATIC_URL}{script}"
        client = await Client(url, method="GET", headers={"Accept-Encoding": "gzip"}).ask(build_application())
        assert client.status == 200
        assert client.headers["content-encoding"] == "gzip"
        assert "immutable" in client.headers["cache-control"]
        assert "access-control-allow-origin" not in client.headers
        for name, value in security_headers().items():
            assert client.headers[name.lower()] == value
        assert len(client.body) == int(client.headers["content-length"])

    run(walk())
