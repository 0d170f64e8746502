"""Nothing is sent where it must not go; what is sent is signed, whole, once, and over in time."""

import ipaddress
import re
import socket
import ssl
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from pytest_django import Settings

from dashboard.environment import BadSetting, PrivateNetworks, read_networks
from dashboard.hooks.sending import LONGEST_REPLY_BYTES, SendFailed, Sending
from dashboard.hooks.signing import SIGNATURE, sign
from dashboard.hooks.targets import TargetRefused, read_target
from tests.dashboard.hooks.conftest import Resolver
from tests.fakes.raw_upstream import Connection, RawUpstream

# Refused as they are written: nobody is even asked for a name.
HOSTILE_URLS = [
    "http://hooks.example/",  # can be read on the way
    "ftp://hooks.example/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:6379/_FLUSHALL",
    "//hooks.example/",
    "https://",
    "https:///path",
    "https://user:secret@hooks.example/",
    "https://hooks.example@169.254.169.254/",
    "https://hooks.example#@127.0.0.1/",
    "https://hooks.example\\@127.0.0.1/",
    "https://hooks.example:22/",
    "https://hooks.example:25/",
    "https://hooks.example:0/",
    "https://hooks.example:99999/",
    "https://hooks.example/a b",
    "https://hooks.example/\r\nX: y",
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://1.2.3.4.0x7f/",
    "https://0.0.0.0/",
    "https://169.254.169.254/latest/meta-data/",
    "https://10.1.2.3/",
    "https://172.16.0.1/",
    "https://192.168.0.1/",
    "https://100.64.0.1/",
    "https://224.0.0.1/",
    "https://240.0.0.1/",
    "https://255.255.255.255/",
    "https://192.88.99.1/",
    "https://[::]/",
    "https://[::1]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[::127.0.0.1]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[64:ff9b:1::a00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/",
    "https://[2001:db8::1]/",
    "https://[fe80::1]/",
    "https://[fe80::1%25eth0]/",
    "https://[fec0::1]/",
    "https://[fd00:ec2::254]/",
    "https://[ff02::1]/",
    "https://\uff11\uff12\uff17.0.0.1/",
    "https://ho\u200boks.example/",
    "https://localhost\u3002/",
    f"https://hooks.example/{'x' * 500}",
]

# Names that look well and lead elsewhere; one such address among good ones is enough.
HOSTILE_ANSWERS = [
    ["127.0.0.1"],
    ["169.254.169.254"],
    ["10.0.0.7"],
    ["0.0.0.0"],
    ["::1"],
    ["::ffff:10.0.0.7"],
    ["64:ff9b::a9fe:a9fe"],
    ["fd12::1"],
    ["fe80::1"],
    ["93.184.215.14", "192.168.1.1"],
    ["2606:2800:21f:cb07:6820:80da:af6b:8b2c", "::1"],
]


def post(url: str, body: bytes = b"{}", *, limit_seconds: float = 5.0) -> Any:
    return Sending(url, body, {}, limit_seconds=limit_seconds).start().wait()


@pytest.mark.parametrize("url", HOSTILE_URLS)
def test_hostile_address_is_refused_without_a_question_or_a_connection(
    url: str, resolver: Resolver, connects: list[Any]
) -> None:
    with pytest.raises(TargetRefused):
        read_target(url)
    with pytest.raises(SendFailed) as failure:
        post(url)
    assert failure.value.is_refused
    assert (resolver.asked, connects) == ([], [])


@pytest.mark.parametrize("answer", HOSTILE_ANSWERS)
def test_name_that_leads_into_a_private_network_is_never_connected_to(
    answer: list[str], resolver: Resolver, connects: list[Any]
) -> None:
    resolver.answers = [answer]
    with pytest.raises(SendFailed, match="private network") as failure:
        post("https://hooks.example/x")
    assert failure.value.is_refused
    assert connects == []


def test_name_is_asked_for_once_and_the_checked_address_is_the_one_connected_to(
    resolver: Resolver, connects: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rebinding: public when it is checked, private ever after."""
    resolver.answers = [["93.184.215.14"], ["127.0.0.1"]]
    seen: list[Any] = []

    def connect(address: Any, timeout: float) -> socket.socket:
        seen.append(address)
        raise ConnectionRefusedError(111, "Connection refused")

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(SendFailed, match="could not be reached"):
        post("https://hooks.example/x")
    assert (seen, resolver.asked, connects) == ([("93.184.215.14", 443)], ["hooks.example"], [])
    with pytest.raises(SendFailed, match="private network"):
        post("https://hooks.example/x")
    assert len(seen) == 1


def test_metadata_address_stays_closed_where_private_networks_are_open(
    private_allowed: PrivateNetworks, connects: list[Any]
) -> None:
    assert private_allowed.holds(ipaddress.ip_address("10.0.0.1"))
    for url in ("http://169.254.169.254/", "http://[::ffff:169.254.169.254]/", "http://[fe80::1]/", "http://0.0.0.0/"):
        with pytest.raises(SendFailed, match="private network"):
            post(url)
    with pytest.raises(SendFailed, match="Plain http"):
        post("http://93.184.215.14/")
    assert connects == []


def test_operator_names_single_networks(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLIMSOLL_WEBHOOK_PRIVATE", "10.1.0.0/16, ::1")
    settings.WEBHOOK_PRIVATE = read_networks("PLIMSOLL_WEBHOOK_PRIVATE")
    assert read_target("http://10.1.2.3:8080/a?b=c").host_header == "10.1.2.3:8080"
    assert read_target("https://[::1]/").host_header == "[::1]"
    with pytest.raises(TargetRefused):
        read_target("https://10.2.0.1/")
    monkeypatch.setenv("PLIMSOLL_WEBHOOK_PRIVATE", "10.1.2.3/8")
    with pytest.raises(BadSetting, match="PLIMSOLL_WEBHOOK_PRIVATE"):
        read_networks("PLIMSOLL_WEBHOOK_PRIVATE")


def test_redirect_is_not_followed(receiver: RawUpstream, connects: list[Any]) -> None:
    receiver.script = lambda connection: connection.answer(
        b"", ("location", "http://169.254.169.254/latest/"), status="302 Found"
    )
    with pytest.raises(SendFailed, match="redirect") as failure:
        post(receiver.url)
    assert failure.value.status == 302
    assert [address[0] for address in connects] == ["127.0.0.1"]
    assert len(receiver.requests) == 1


def test_request_is_whole_and_names_the_host_it_was_given(receiver: RawUpstream, resolver: Resolver) -> None:
    resolver.answers = [["127.0.0.1"]]
    port = receiver.url.rpartition(":")[2]
    reply = post(f"http://hooks.example:{port}/in?x=%20y", b'{"a": 1}')
    seen = receiver.requests[0]
    assert (reply.status, reply.body) == (200, b'{"ok":true}')
    assert (seen.method, seen.target, seen.body) == ("POST", "/in?x=%20y", b'{"a": 1}')
    assert (seen.header("host"), seen.header("content-type")) == (f"hooks.example:{port}", "application/json")


def test_long_answer_is_not_read_to_its_end(receiver: RawUpstream) -> None:
    receiver.script = lambda connection: connection.answer(b"x" * 2**20)
    assert post(receiver.url).body is None
    receiver.script = lambda connection: connection.answer(b"x" * LONGEST_REPLY_BYTES)
    assert len(post(receiver.url).body) == LONGEST_REPLY_BYTES


@pytest.mark.parametrize("part", ["nothing", "head", "body"])
def test_time_is_limited_in_all_even_when_bytes_drip(receiver: RawUpstream, part: str) -> None:
    over = threading.Event()

    def drip(connection: Connection) -> None:
        if part == "body":
            connection.send_head("200 OK", ("content-length", "1000"))
        while not over.wait(0.02):
            if part != "nothing":
                connection.send(b"H" if part == "head" else b" ")

    receiver.script = drip
    begun = time.monotonic()
    with pytest.raises(SendFailed, match="No response within"):
        post(receiver.url, limit_seconds=0.3)
    assert time.monotonic() - begun < 2
    over.set()


def test_handshake_that_drips_is_hung_up_on(resolver: Resolver, private_allowed: PrivateNetworks) -> None:
    """Not only is nobody kept waiting: the thread behind it ends as well."""
    assert private_allowed
    resolver.answers = [["127.0.0.1"]]
    is_gone = threading.Event()

    def drip(listening: socket.socket) -> None:
        with listening.accept()[0] as plain:
            plain.recv(65536)
            plain.sendall(b"\x16\x03\x03\x40\x00")  # a record of 16,384 bytes begins
            try:
                for _ in range(16_000):
                    plain.sendall(b"\x00")
                    time.sleep(0.02)
            except OSError:
                is_gone.set()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=drip, args=(listening,), daemon=True).start()
        with pytest.raises(SendFailed, match="No response within"):
            post(f"https://hooks.example:{listening.getsockname()[1]}/", limit_seconds=0.3)
        assert is_gone.wait(60)


def test_resolver_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, connects: list[Any]) -> None:
    over, left = threading.Event(), threading.Event()

    def hang(*_: Any, **__: Any) -> list[Any]:
        over.wait(10)
        left.set()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.215.14", 443))]

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    with pytest.raises(SendFailed, match="No response within"):
        post("https://hooks.example/", limit_seconds=0.1)
    over.set()
    assert left.wait(5)
    assert connects == []  # what comes too late is not sent after all


def test_answer_that_is_not_http_is_told(receiver: RawUpstream) -> None:
    receiver.script = lambda connection: connection.send(b"SSH-2.0-x\r\n")
    with pytest.raises(SendFailed, match="not HTTP"):
        post(receiver.url)


def make_certificate(folder: Path, name: str) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
    signed = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True).sign(
        key, hashes.SHA256()
    )
    pem = serialization.Encoding.PEM
    written = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / f"{name}.pem"
    file.write_bytes(written + signed.public_bytes(pem))
    return file


def test_certificate_is_checked_against_the_name_though_the_address_is_pinned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resolver: Resolver, private_allowed: PrivateNetworks
) -> None:
    assert private_allowed
    file = make_certificate(tmp_path, "hooks.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    resolver.answers = [["127.0.0.1"]]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    names: list[str | None] = []
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        threading.Thread(target=serve_tls, args=(listening, context), daemon=True).start()
        assert post(f"https://hooks.example:{port}/").status == 204
        with pytest.raises(SendFailed, match="certificate"):
            post(f"https://other.example:{port}/")
    assert names == ["hooks.example", "other.example"]


def serve_tls(listening: socket.socket, context: ssl.SSLContext) -> None:
    for _ in range(2):
        plain, _ = listening.accept()
        try:
            with context.wrap_socket(plain, server_side=True) as secured:
                while not secured.recv(65536).endswith(b"{}"):
                    pass
                secured.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        except OSError:
            plain.close()


def test_signature_is_checked_by_the_snippet_of_the_documentation() -> None:
    text = (Path(__file__).resolve().parents[3] / "docs" / "hooks.md").read_text()
    snippet = next(code for code in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "def is_genuine" in code)
    names: dict[str, Any] = {}
    exec(snippet, names)
    now = datetime.now(UTC)
    header = sign("plw_secret", b'{"a": 1}', at=now)
    is_genuine = names["is_genuine"]
    assert SIGNATURE in text
    assert is_genuine("plw_secret", header, b'{"a": 1}')
    assert not is_genuine("plw_secret", header, b'{"a": 2}')
    assert not is_genuine("plw_other", header, b'{"a": 1}')
    assert not is_genuine("plw_secret", sign("plw_secret", b"{}", at=now - timedelta(minutes=6)), b"{}")
    assert not is_genuine("plw_secret", "nonsense", b"{}")
