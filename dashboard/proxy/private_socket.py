"""Unix sockets that only this account can offer or use, in folders whose path may be of any length. No Django here.

The socket lies in a folder of mode 0700 that belongs to this account. Before anything is sent, folder, socket and (on
Linux) the account of the listening process are checked: a socket of somebody else would receive whole prompts.
"""

import os
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LONGEST_ADDRESS_BYTES = 100  # the limit of the operating system is 103 to 107
_OTHER_ACCOUNTS = stat.S_IRWXG | stat.S_IRWXO
_PEER_CREDENTIALS = struct.Struct("3i")  # process, user, group


class NotPrivate(OSError):
    """Another account can offer or read the socket; the message is for people."""


def create_private_folder(folder: Path) -> None:
    """Raises NotPrivate for a symbolic link or a folder of another account."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if _read_own_status(folder).st_mode & _OTHER_ACCOUNTS:
        folder.chmod(0o700)
    require_private_folder(folder)


def require_private_folder(folder: Path) -> None:
    mode = _read_own_status(folder).st_mode
    if not stat.S_ISDIR(mode):
        raise NotPrivate(f"{folder} is not a folder.")
    if mode & _OTHER_ACCOUNTS:
        raise NotPrivate(f"{folder} is open to other accounts (mode {stat.S_IMODE(mode):04o}, expected 0700).")


def require_private_socket(path: Path) -> None:
    """Raises NotPrivate, or FileNotFoundError if there is no socket."""
    require_private_folder(path.parent)
    if not stat.S_ISSOCK(_read_own_status(path).st_mode):
        raise NotPrivate(f"{path} is not a socket.")


def listen_privately(path: Path) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    umask = os.umask(0o177)
    try:
        with _short_address(path) as address:
            listening.bind(address)
    except OSError:
        listening.close()
        raise
    finally:
        os.umask(umask)
    listening.listen(64)
    return listening


def connect_privately(path: Path) -> socket.socket:
    """Return a connected, non-blocking socket. Raises NotPrivate, or another OSError if nobody listens."""
    require_private_socket(path)
    connection = socket.socket(socket.AF_UNIX)
    connection.setblocking(False)  # connecting succeeds or fails at once: a full backlog is an error
    try:
        with _short_address(path) as address:
            connection.connect(address)
        _require_same_account(connection)
    except OSError:
        connection.close()
        raise
    return connection


def _read_own_status(path: Path) -> os.stat_result:
    """Does not follow symbolic links: one of our own may lead to a place that another account controls."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise NotPrivate(f"{path} is a symbolic link.")
    if status.st_uid != os.geteuid():
        raise NotPrivate(f"{path} belongs to another account (user id {status.st_uid}).")
    return status


def _require_same_account(connection: socket.socket) -> None:
    """Only Linux has a portable way to ask; elsewhere the checks of folder and socket must do."""
    if hasattr(socket, "SO_PEERCRED"):
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER_CREDENTIALS.size)
        user_id = _PEER_CREDENTIALS.unpack(data)[1]
        if user_id != os.geteuid():
            raise NotPrivate(f"The socket is served by another account (user id {user_id}).")


@contextmanager
def _short_address(path: Path) -> Iterator[str]:
    """Yield an address of the socket that is short enough: where necessary, through a symbolic link in a temporary
    folder of this account, which is needed only while binding or connecting."""
    if len(os.fsencode(path)) <= LONGEST_ADDRESS_BYTES:
        yield str(path)
        return
    longest_temporary = LONGEST_ADDRESS_BYTES - len("/plimsoll-12345678/f/") - len(os.fsencode(path.name))
    is_short = len(os.fsencode(tempfile.gettempdir())) <= longest_temporary
    with tempfile.TemporaryDirectory(prefix="plimsoll-", dir=None if is_short else "/tmp") as folder:  # noqa: S108 (mkdtemp)
        link = Path(folder) / "f"
        link.symlink_to(path.parent.absolute(), target_is_directory=True)
        yield str(link / path.name)
