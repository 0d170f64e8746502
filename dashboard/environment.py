"""Small typed readers of environment variables: a bad value is refused by name, never guessed at."""

import ipaddress
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import SplitResult, urlsplit


class BadSetting(Exception):
    """A variable holds something Plimsoll cannot use; the message is for the person who set it."""


@dataclass(frozen=True)
class PrivateNetworks:
    """Networks that are not the public's, and may be reached all the same. Nothing in it: none may."""

    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.networks)

    def holds(self, address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
        return any(address in network for network in self.networks)


# Of this machine and of private networks. Link-local ones hold the metadata of clouds: they are named or not reached.
_ALL_PRIVATE = ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7")


def read_text(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def read_int(name: str, default: int, *, low: int, high: int) -> int:
    text = read_text(name)
    if not text:
        return default
    if not text.isascii() or not text.isdecimal() or not low <= int(text[:12]) <= high:
        raise BadSetting(f"{name}={text!r}: expected a whole number from {low} to {high}.")
    return int(text)


def read_flag(name: str, *, default: bool) -> bool:
    text = read_text(name).lower()
    if not text:
        return default
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off"):
        return False
    raise BadSetting(f"{name}={text!r}: expected 1 or 0 (or true/false, yes/no, on/off).")


def read_choice(name: str, default: str, *, choices: tuple[str, ...]) -> str:
    text = read_text(name, default)
    if text not in choices:
        raise BadSetting(f"{name}={text!r}: expected one of {', '.join(choices)}.")
    return text


def read_origin(name: str) -> SplitResult | None:
    """An absolute http(s) address without path, query or credentials, such as https://plimsoll.example."""
    text = read_text(name)
    if not text:
        return None
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise BadSetting(f"{name}={text!r}: expected an address such as https://plimsoll.example, without a path.")
    return parts._replace(path="")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def read_service(name: str, default: str) -> str:
    """The address of a service that is sent secrets: https, or plain http on this machine alone. A path may follow."""
    text = read_text(name, default)
    try:
        parts = urlsplit(text)
        host = parts.hostname or ""
        is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
        usable = bool(host) and is_safe and (parts.port is None or parts.port > 0)
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or "@" in parts.netloc:
        raise BadSetting(f"{name}={text!r}: expected an address such as {default} (plain http only on this machine).")
    return text.rstrip("/")


def read_networks(name: str) -> PrivateNetworks:
    """Networks separated by commas, such as 10.0.0.0/8; "allow" for all private ones."""
    text = read_text(name)
    parts = _ALL_PRIVATE if text.lower() == "allow" else [part.strip() for part in text.split(",") if part.strip()]
    try:
        return PrivateNetworks(tuple(ipaddress.ip_network(part) for part in parts))
    except ValueError:
        raise BadSetting(f"{name}={text!r}: expected networks such as 10.0.0.0/8,192.168.1.5, or allow.") from None


def read_folder(name: str, default: Path) -> Path:
    """An absolute folder, created for its owner alone (0700) where it does not exist yet."""
    folder = Path(read_text(name, str(default))).expanduser()
    if not folder.is_absolute():
        folder = Path.cwd() / folder
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise BadSetting(f"{name}={str(folder)!r}: cannot be used as a folder ({error.strerror}).") from None
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadSetting(f"{name}={str(folder)!r}: this user has no write permission.")
    return folder


def read_places(name: str, default: Sequence[Path]) -> tuple[Path, ...]:
    """Folders that need not exist, separated as in PATH. Set to nothing or to "off": none."""
    text = os.environ.get(name)
    if text is None:
        return tuple(default)
    parts = [] if text.strip().lower() == "off" else [part.strip() for part in text.split(os.pathsep)]
    try:
        return tuple(dict.fromkeys(Path(part).expanduser().absolute() for part in parts if part))
    except (RuntimeError, ValueError):
        raise BadSetting(f"{name}={text!r}: expected folders separated by {os.pathsep!r}, or off.") from None


def find_transcript_folders() -> list[Path]:
    """Where Claude Code keeps them: its own folder, the one it was told, and the one of systems that follow XDG."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 (Path.home raises where nobody has one)
    told = read_text("CLAUDE_CONFIG_DIR")
    xdg = Path(read_text("XDG_CONFIG_HOME", str(home / ".config")), "claude")
    folders = [home / ".claude", *([Path(told)] if told else []), *([xdg] if (xdg / "projects").is_dir() else [])]
    return [folder / "projects" for folder in dict.fromkeys(folders) if folder.is_absolute()]


def read_secret(name: str, kept_in: Path) -> str:
    """The variable's value, or a secret made once and kept in a file only its owner can read (0600)."""
    if text := read_text(name):
        if len(text) < 32:
            raise BadSetting(f"{name}: too short, expected at least 32 random characters.")
        return text
    return _read_or_create(kept_in, secrets.token_urlsafe(64))


def read_host_id(kept_in: Path) -> str:
    """Return an id of this data folder, created once: host names are not unique, least of all those of containers."""
    return _read_or_create(kept_in, secrets.token_hex(8))


def _read_or_create(path: Path, text: str) -> str:
    """Return what the file holds; `text`, where this call created it (0600)."""
    if not path.exists():
        fresh = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as file:
            file.write(text)
        try:
            os.link(fresh, path)  # fails when another process was first: then its text is the one
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return path.read_text().strip()
