"""Prompts go to the recorder of this account only: other accounts, symbolic links and open folders are refused."""

import asyncio
import hashlib
import http.client
import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.utils import timezone

from dashboard.health import Check, read_health
from dashboard.proxy import private_socket
from dashboard.proxy.feed import Feed
from dashboard.proxy.inbox import Inbox, InUse
from dashboard.proxy.private_socket import NotPrivate, connect_privately
from dashboard.proxy.wire import find_socket_path
from tests.dashboard.proxy.talking import Client, make_usage, stream_answer, write_events
from tests.dashboard.proxy.test_feed import ids, make_exchange, run, take, wait_for_empty
from tests.dashboard.running import running_plimsoll, wait_until
from tests.fakes.raw_upstream import Connection, RawUpstream

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another account")
# Listens at the path of its first argument as another account, and writes down what it receives.
EAVESDROPPER = """
import os, pathlib, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
path, heard = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
os.umask(0)
path.parent.mkdir(mode=0o777, exist_ok=True)
listening = socket.socket(socket.AF_UNIX)
listening.bind(str(path))
listening.listen(8)
heard.write_bytes(b"")
while True:
    sender, _ = listening.accept()
    while data := sender.recv(65536):
        with heard.open("ab") as file:
            file.write(data)
"""


class Listener:
    """Stands in for another account's recorder: keeps what it receives."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        self.received = b""
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(path))
        self._listening.listen(8)
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                sender, _ = self._listening.accept()
            except OSError:
                return
            with sender:
                while data := sender.recv(65536):
                    self.received += data

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Shorter than pytest's own: a plain socket must fit."""
    with tempfile.TemporaryDirectory(prefix="p-") as name:
        yield Path(name)


def open_to_group(path: Path) -> None:
    path.parent.chmod(0o770)


def open_to_everybody(path: Path) -> None:
    path.parent.chmod(0o777)


def link_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.symlink_to("elsewhere")


def link_socket(path: Path) -> None:
    path.rename(path.with_name("other.sock"))
    path.symlink_to("other.sock")


def give_folder_away(path: Path) -> None:
    os.chown(path.parent, NOBODY, NOBODY)


def give_socket_away(path: Path) -> None:
    os.chown(path, NOBODY, NOBODY)


NOT_OURS = [
    open_to_group,
    open_to_everybody,
    link_folder,
    link_socket,
    pytest.param(give_folder_away, marks=needs_root),
    pytest.param(give_socket_away, marks=needs_root),
]


@pytest.mark.parametrize("spoil", NOT_OURS)
def test_nothing_is_sent_to_a_socket_that_is_not_private(short_folder: Path, spoil: Callable[[Path], None]) -> None:
    path = find_socket_path(short_folder)
    listener = Listener(path)
    spoil(path)

    async def walk() -> None:
        feed = Feed(path)
        feed.offer(make_exchange(1))
        await asyncio.sleep(0.5)
        assert feed.waiting_count == 1
        await feed.close()

    run(walk())
    listener.close()
    assert listener.received == b""


def test_a_listener_of_another_account_is_refused(short_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder could be exchanged between the checks and the connection."""
    path = find_socket_path(short_folder)
    listener = Listener(path)
    monkeypatch.setattr(private_socket, "require_private_socket", lambda _path: None)
    connect_privately(path).close()
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    if hasattr(socket, "SO_PEERCRED"):
        with pytest.raises(NotPrivate, match="another account"):
            connect_privately(path)
    listener.close()


def test_the_socket_of_a_long_data_path_is_in_the_data_folder(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["a-rather-long-name"] * 8)
    path = find_socket_path(deep)
    assert len(os.fsencode(path)) > 107
    assert path.is_relative_to(deep)
    left = set(Path(tempfile.gettempdir()).glob("plimsoll-*"))

    async def walk() -> None:
        inbox, feed = Inbox(path), Feed(path)
        assert stat.S_ISSOCK(path.lstat().st_mode)
        assert stat.S_IMODE(path.lstat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        feed.offer(make_exchange(1))
        assert ids(await take(inbox, 1)) == ["exchange-msg_1"]
        await wait_for_empty(feed)
        with pytest.raises(InUse):
            Inbox(path)
        await feed.close()
        await asyncio.sleep(0.01)
        inbox.close()

    run(walk())
    assert not path.exists()
    assert all(name.name.startswith("plimsoll-bytecode") for name in _list_new(left))


def _list_new(left: set[Path]) -> set[Path]:
    """Other tests may work with long paths at the same time: their folders are gone in a moment."""
    time.sleep(0.2)
    return {path for path in set(Path(tempfile.gettempdir()).glob("plimsoll-*")) - left if (path / "f").is_symlink()}


def test_a_recorder_closes_an_open_folder_and_refuses_a_link(short_folder: Path) -> None:
    path = find_socket_path(short_folder)
    path.parent.mkdir(mode=0o755)
    Inbox(path).close()
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    link_folder(path)
    with pytest.raises(InUse, match="symbolic link"):
        Inbox(path)


@needs_root
def test_a_recorder_refuses_a_folder_of_another_account(short_folder: Path) -> None:
    path = find_socket_path(short_folder)
    path.parent.mkdir()
    give_folder_away(path)
    with pytest.raises(InUse, match="another account"):
        Inbox(path)


@pytest.mark.django_db
@pytest.mark.parametrize("spoil", NOT_OURS)
def test_health_says_when_the_recorder_is_not_ours(
    short_folder: Path, spoil: Callable[[Path], None], settings: pytest.FixtureRequest
) -> None:
    settings.DATA = short_folder  # type: ignore[attr-defined]
    path = find_socket_path(short_folder)
    listener = Listener(path)
    assert _check_recorder().is_ok
    spoil(path)
    found = _check_recorder()
    listener.close()
    assert (found.is_ok, found.is_vital) == (False, False)
    assert found.finding.startswith("not in use; calls are forwarded but not recorded: ")


def _check_recorder() -> Check:
    return next(check for check in read_health(timezone.now()).checks if check.name == "recorder")


@needs_root
@pytest.mark.sqlite_only
def test_another_account_receives_no_prompt_of_a_server_with_a_long_data_path(
    prepared: Path, short_folder: Path
) -> None:
    """A socket of another account, where earlier versions had theirs for such paths, hears nothing of a real server."""
    folder = prepared.joinpath(*["a-rather-long-name"] * 8)
    folder.mkdir(parents=True)
    data = (prepared / "data").rename(folder / "data")
    name = hashlib.sha256(os.fsencode(data.resolve())).hexdigest()[:16]
    shared = Path(tempfile.gettempdir()) / f"plimsoll-{os.getuid()}-{name}"
    short_folder.chmod(0o777)
    heard = short_folder / "heard"
    attacker = subprocess.Popen([sys.executable, "-I", "-c", EAVESDROPPER, str(shared / "recorder.sock"), str(heard)])
    try:
        wait_until(heard.exists, seconds=10, what="the other account to listen")
        with RawUpstream(answer) as upstream, running_plimsoll(folder, PLIMSOLL_UPSTREAM=upstream.url) as up:
            talk = Client(messages=[{"role": "user", "content": "the plan of the harbour"}])
            connection = http.client.HTTPConnection("127.0.0.1", up.port, timeout=30)
            connection.request("POST", "/proxy/v1/messages", json.dumps(talk.body()), talk.headers)
            assert connection.getresponse().read().endswith(b"\n\n")
            connection.close()
            wait_until(lambda: stat.S_ISSOCK(_mode(find_socket_path(data))), seconds=20, what="the recorder")
            time.sleep(1.5)
        assert b"the plan of the harbour" not in heard.read_bytes()
    finally:
        attacker.kill()
        attacker.wait()
        for left in (shared / "recorder.sock", shared):
            left.unlink(missing_ok=True) if left.is_socket() else left.rmdir()


def answer(connection: Connection) -> None:
    connection.stream([write_events(stream_answer("msg_1", make_usage(written=5_000)))])


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return 0
