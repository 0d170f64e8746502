"""`plimsoll watch` as a process: what it says, how it ends, and what it does without."""

import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dashboard.push.server import Away, Server
from tests.dashboard.running import environment_for
from tests.services import free_port

CONSOLE = [sys.executable, "-P", "-m", "dashboard.console", "watch"]
KEY = "plk_" + "k" * 40


def run_watch(folder: Path, *arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
    told = environment_for(folder, PLIMSOLL_CLIENT_FOLDER=str(folder / "client"), **settings)
    return subprocess.run([*CONSOLE, *arguments], env=told, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("arguments", "settings", "sentence"),
    [
        ([], {}, "specify the server"),
        (["--server", "https://plimsoll.example"], {}, "and the API key"),
        (["--server", "http://plimsoll.example"], {"PLIMSOLL_KEY": KEY}, "expected https"),
        (["--server", "https://plimsoll.example", "--key", "plk_x\ny"], {}, "invalid key"),
    ],
)
def test_what_is_missing_is_named(
    tmp_path: Path, arguments: list[str], settings: dict[str, str], sentence: str
) -> None:
    done = run_watch(tmp_path, *arguments, **settings)
    assert done.returncode == 2
    assert sentence in done.stderr


def test_once_ends_with_one_while_the_server_is_away(tmp_path: Path) -> None:
    done = run_watch(tmp_path, "--once", "--server", f"http://127.0.0.1:{free_port()}", PLIMSOLL_KEY=KEY)
    assert done.returncode == 1
    assert done.stderr.count("cannot reach") == 1  # not with every try
    assert KEY not in done.stdout + done.stderr


def test_help_says_that_others_can_see_the_key(tmp_path: Path) -> None:
    done = run_watch(tmp_path, "--help")
    assert done.returncode == 0
    assert "Other users of this machine can see" in done.stdout


def test_it_runs_without_django() -> None:
    asked = "import sys, dashboard.push.watch_program; print([name for name in sys.modules if 'django' in name])"
    done = subprocess.run([sys.executable, "-P", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class _Silent(BaseHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def untrusted_port(tmp_path: Path) -> Iterator[int]:
    """A TLS server whose certificate nobody vouches for."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(1).not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
    file = tmp_path / "server.pem"
    form = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    signed = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    file.write_bytes(signed + key.private_bytes(serialization.Encoding.PEM, *form))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Silent)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


def test_certificate_that_cannot_be_trusted_is_named(untrusted_port: int) -> None:
    with pytest.raises(Away, match="certificate is not trusted"):
        Server(f"https://localhost:{untrusted_port}", KEY).ask_rules()
