"""Where calls go: the upstreams the operator named, and how an address below /proxy is read. No Django here."""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote_to_bytes, urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from dashboard.environment import BadSetting, read_text

DEFAULT_UPSTREAM = "https://api.anthropic.com"
ROOT = b"/proxy"
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
# What is left of an address and still begins like Plimsoll's own part of one (//k/, /K/): it was meant as that.
_LIKE_OWN_PART = re.compile(rb"[/\\\s]*[ku]\s*(?:[/\\]|$)", re.IGNORECASE)
_LIKE_OWN_KEY = re.compile(rb"pl[ksi]_[A-Za-z0-9_-]{8}")
MOST_DECODINGS = 4
_STEPS = frozenset({b".", b".."})
_HINT = "expected https://host, or http:// on this machine; several as name=address, separated by spaces"


class NoSuchPlace(Exception):
    """An address below /proxy that leads nowhere; the message is for people."""


class BadPath(Exception):
    """A path that an upstream could read as one outside of its own folder; the message is for people."""


@dataclass(frozen=True, slots=True)
class Place:
    """What an address says: the key in it, if any, the upstream's address, and the path there as it was written."""

    key: str | None
    upstream: str
    path: bytes


def read_upstreams(name: str) -> dict[str, str]:
    """Addresses by name, the first one first: it is meant where no name is given."""
    found: dict[str, str] = {}
    for part in read_text(name, DEFAULT_UPSTREAM).replace(",", " ").split():
        label, equals, address = part.partition("=")
        if not equals or "/" in label:
            label, address = "default", part
        if not _NAME.fullmatch(label):
            raise BadSetting(
                f"{name}: {label!r} is not a valid upstream name (lower-case letters, digits and hyphens)."
            )
        if label in found:
            raise BadSetting(f"{name}: duplicate upstream name {label!r}; {_HINT}.")
        found[label] = _check_address(name, address)
    return found


def _check_address(name: str, address: str) -> str:
    try:
        parts = urlsplit(address)
        is_usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_usable = False
    if not is_usable or parts.scheme not in ("http", "https") or parts.query or parts.fragment:
        raise BadSetting(f"{name}={address!r}: {_HINT}.")
    if "@" in parts.netloc:
        raise BadSetting(f"{name}: an upstream's URL must not contain a password: callers send their own credentials.")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise BadSetting(f"{name}={address!r}: calls carry credentials, so plain http is for this machine only.")
    return address.rstrip("/")


@lru_cache(maxsize=1024)
def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@lru_cache(maxsize=64)
def find_way_out(upstream: str) -> str | None:
    """The proxy that the operator's network has before the world, from the usual variables; None where none is needed.
    aiohttp's own `trust_env` would read passwords from ~/.netrc too."""
    parts = urlsplit(upstream)
    ways = getproxies_environment()
    if not ways or is_loopback(parts.hostname or "") or proxy_bypass(parts.netloc):
        return None
    return ways.get(parts.scheme) or ways.get("all")


def find_place(raw_path: bytes, upstreams: Mapping[str, str]) -> Place:
    """`/proxy[/k/KEY][/u/NAME]/path`, these two in either order; the path is left as it was written. Raises
    NoSuchPlace and BadPath."""
    rest = raw_path.removeprefix(ROOT)
    said: dict[bytes, bytes] = {}
    while (mark := rest[:3]) in (b"/k/", b"/u/") and mark not in said:
        said[mark], slash, rest = rest[3:].partition(b"/")
        rest = slash + rest
    _check_path(rest)
    name = said[b"/u/"].decode("ascii", "replace") if b"/u/" in said else next(iter(upstreams))
    if name not in upstreams:
        raise NoSuchPlace(f"Unknown upstream {name[:40]!r}. Upstreams are configured by the operator.")
    key = unquote_to_bytes(said[b"/k/"]).decode("utf-8", "replace") if b"/k/" in said else None
    return Place(key, upstreams[name], rest or b"/")


@lru_cache(maxsize=512)
def _check_path(path: bytes) -> None:
    """Raises NoSuchPlace for a path with a key in it, and BadPath for one that would lead out of the upstream. It is
    judged as an upstream could read it: decoded, and again behind a gateway that decodes too."""
    read = _decode(path)
    if _LIKE_OWN_PART.match(read) or (b"pl" in read and _LIKE_OWN_KEY.search(read)):
        raise NoSuchPlace(
            "A key or an upstream name is only accepted as /proxy/k/KEY/u/NAME/path, in lower case "
            "and with single slashes. The request was not forwarded."
        )
    # An upstream may be a folder of a gateway: what lies beside it was not opened.
    if b"." in read and any(_is_step(segment) for segment in read.replace(b"\\", b"/").split(b"/")):
        raise BadPath("Paths with .. segments are not forwarded.")


def _decode(path: bytes) -> bytes:
    """Raises BadPath. Every turn may shorten the path by no more than two bytes, so there are only a few."""
    for _ in range(MOST_DECODINGS):
        decoded = unquote_to_bytes(path)
        if decoded == path:
            return path
        path = decoded
    raise BadPath("Paths that are percent-encoded repeatedly are not forwarded.")


def _is_step(segment: bytes) -> bool:
    """Some servers leave out what follows a semicolon, and blanks, before they take the step."""
    return segment.partition(b";")[0].strip() in _STEPS
