"""PostgreSQL and Redis for one test run: own scratch folder, own free port, gone afterwards whatever happens."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from pwd import getpwnam
from typing import Any

import psycopg

START_SECONDS = 30
STOP_SECONDS = 10


class ServiceFailed(Exception):
    """A service did not start; the message carries its own last words."""


def find_postgresql() -> Path | None:
    """The folder of PostgreSQL's programs; Debian keeps them off the PATH, one folder per version."""
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return versions[-1].parent if versions else None


def find_redis() -> Path | None:
    found = shutil.which("redis-server")
    return Path(found) if found else None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _unprivileged_user() -> str | None:
    """PostgreSQL refuses to run as root; then it runs as its own user, or as nobody."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return getpwnam(name).pw_name
        except KeyError:
            continue
    raise ServiceFailed("PostgreSQL cannot run as root and there is no user postgres or nobody.")


class PostgresqlServer:
    """A PostgreSQL in a scratch folder, open to one user with a random password, that a test can kill and freeze."""

    def __init__(self, folder: Path, *, user: str | None, is_durable: bool) -> None:
        programs = find_postgresql()
        if programs is None:
            raise ServiceFailed("PostgreSQL is not installed.")
        self._folder, self._log = folder, folder / "log"
        self._as_user: dict[str, Any] = (
            {"user": user, "group": getpwnam(user).pw_gid, "extra_groups": []} if user else {}
        )
        password = secrets.token_urlsafe(16)
        secret, data, port = folder / "password", folder / "data", free_port()
        secret.write_text(password)
        if user:
            shutil.chown(secret, user)
        # fmt: off
        _run([programs / "initdb", "--pgdata", data, "--username", "plimsoll", "--pwfile", secret, "--encoding", "UTF8",
              "--auth", "scram-sha-256", "--locale", "C.UTF-8", "--no-sync"], cwd=folder, **self._as_user)
        # fmt: on
        self.url = f"postgresql://plimsoll:{password}@127.0.0.1:{port}/postgres"
        options: dict[str, object] = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        options |= {"fsync": "off", "max_connections": 200}  # test processes hold a pool each
        # What was committed survives a kill of the server only when it left its memory before the answer.
        options |= dict.fromkeys(("full_page_writes", "synchronous_commit"), "on" if is_durable else "off")
        self._command = [programs / "postgres", "-D", data, *(f"--{name}={value}" for name, value in options.items())]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = _start(self._command, self._folder, self._log, **self._as_user)
        _await(self._process, lambda: _answers_sql(self.url), self._log)

    def stop(self) -> None:
        """SIGINT is PostgreSQL's fast shutdown: it ends open connections instead of waiting for them."""
        if self._process is not None:
            self.signal(signal.SIGCONT)
            _stop(self._process, signal.SIGINT)

    def kill(self) -> None:
        """SIGQUIT: every process of it ends at once, and the next start recovers from the log."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def signal(self, number: signal.Signals) -> None:
        """To the server and the processes of its connections: SIGSTOP makes it silent, SIGCONT lets it go on."""
        assert self._process is not None
        told = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self._process.pid)], capture_output=True, check=False)
        for pid in (self._process.pid, *map(int, told.stdout.split())):
            with suppress(ProcessLookupError):
                os.kill(pid, number)


@contextmanager
def scratch_postgresql(*, is_durable: bool = False) -> Iterator[PostgresqlServer]:
    """Yield a server that runs, and is gone afterwards whatever happens."""
    user = _unprivileged_user()
    with _scratch_folder(user) as folder:
        server = PostgresqlServer(folder, user=user, is_durable=is_durable)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@contextmanager
def started_postgresql() -> Iterator[str]:
    """Yield the URL of a fresh PostgreSQL, open to one user with a random password."""
    with scratch_postgresql() as server:
        yield server.url


@contextmanager
def started_redis() -> Iterator[str]:
    """Yield the URL of an empty Redis that keeps nothing on disk."""
    program = find_redis()
    if program is None:
        raise ServiceFailed("Redis is not installed.")
    with _scratch_folder(None) as folder:
        port = free_port()
        command = [program, "--port", port, "--bind", "127.0.0.1", "--dir", folder, "--save", "", "--appendonly", "no"]
        with _running(command, folder, lambda: _answers_ping(port), stop_with=signal.SIGTERM):
            yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def _scratch_folder(owner: str | None) -> Iterator[Path]:
    """Not pytest's tmp_path: that lies in a folder only root may enter when root runs the tests."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-service-") as name:
        if owner:
            shutil.chown(name, owner)
        yield Path(name)


def _run(command: list[Any], **options: Any) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise ServiceFailed(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


@contextmanager
def _running(
    command: list[Any], folder: Path, answers: Callable[[], bool], *, stop_with: signal.Signals, **options: Any
) -> Iterator[None]:
    log = folder / "log"
    process = _start(command, folder, log, **options)
    try:
        _await(process, answers, log)
        yield
    finally:
        _stop(process, stop_with)


def _start(command: list[Any], folder: Path, log: Path, **options: Any) -> "subprocess.Popen[bytes]":
    with log.open("ab") as output:
        return subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the tests; the service ends after them
            **options,
        )


def _await(process: "subprocess.Popen[bytes]", answers: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not answers():
        if process.poll() is not None or time.monotonic() > deadline:
            raise ServiceFailed(f"{process.args!r} did not start:\n{log.read_text(errors='replace')}")
        time.sleep(0.05)


def _stop(process: "subprocess.Popen[bytes]", stop_with: signal.Signals) -> None:
    if process.poll() is not None:
        return
    process.send_signal(stop_with)
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers_sql(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _answers_ping(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")
    except OSError:
        return False
