"""Where a team's requests may go: what an address may look like, and which machines behind its name may be reached.

A name is resolved once, every address it has is judged, and the connection is made to one of those: dashboard.hooks.
sending never asks for the name again, so a name that changes its mind meanwhile changes nothing.
"""

import ipaddress
import re
import socket
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from dashboard.environment import PrivateNetworks

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
LONGEST_URL = 500
_LOWEST_FREE_PORT = 1024
_WEB_PORTS = frozenset({80, 443})
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_ASSIGNED_IPV6 = ipaddress.ip_network("2000::/3")  # all that is given out to the public
# Addresses that lead on to another one inside them: 6to4 and its relays, Teredo.
_TUNNELS = tuple(map(ipaddress.ip_network, ("192.88.99.0/24", "2002::/16", "2001::/32")))


class TargetRefused(Exception):
    """Nothing was connected to. The message is a sentence for whoever gave the address."""


class NameNotKnown(OSError):
    """The resolver has no address for it; that may change. The message is a sentence."""


@dataclass(frozen=True)
class Target:
    """`host` as it is asked for and named in TLS; `path` with its query."""

    is_tls: bool
    host: str
    port: int
    path: str

    @property
    def host_header(self) -> str:
        shown = f"[{self.host}]" if ":" in self.host else self.host
        return shown if self.port == (443 if self.is_tls else 80) else f"{shown}:{self.port}"


def read_target(url: str) -> Target:
    """Judged as far as it can be without asking for the name. Raises TargetRefused."""
    if len(url) > LONGEST_URL:
        raise TargetRefused(f"The URL is longer than {LONGEST_URL} characters.")
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url or "#" in url:
        raise TargetRefused("The URL contains invalid characters. Use plain ASCII without spaces, # or \\.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise TargetRefused("Enter a URL such as https://hooks.example/plimsoll.") from None
    _check_parts(parts)
    is_tls = parts.scheme == "https"
    port = (443 if is_tls else 80) if port is None else port
    if port not in _WEB_PORTS and port < _LOWEST_FREE_PORT:
        raise TargetRefused(f"Port {port} is not one for the web: 80, 443 and those from {_LOWEST_FREE_PORT:,} are.")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    target = Target(is_tls, parts.hostname or "", port, path)
    if (literal := _read_literal(target.host)) is not None:
        _judge(target, literal)
    return target


def resolve_target(target: Target) -> tuple[Address, ...]:
    """Every address of the name, in the resolver's order. One that may not be reached refuses them all."""
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise NameNotKnown(f"The name {target.host} is not known.") from None
    addresses = tuple(dict.fromkeys(ipaddress.ip_address(each[4][0]) for each in found))
    for address in addresses:
        _judge(target, address)
    return addresses


def _check_parts(parts: SplitResult) -> None:
    if parts.scheme not in ("http", "https"):
        raise TargetRefused("The URL must start with https://.")
    if parts.scheme == "http" and not _permitted():
        raise TargetRefused("The URL must start with https://. Plain http is not encrypted.")
    if "@" in parts.netloc:
        raise TargetRefused("The URL must not contain a user name or password. Put a secret into the path instead.")
    host = parts.hostname or ""
    if _read_literal(host) is None and not _is_name(host):
        raise TargetRefused("The URL has no valid host name.")


def _is_name(host: str) -> bool:
    """Numbers in other spellings (2130706433, 0x7f.1, 0177.0.0.1) are addresses, and mean to hide which."""
    last = host.rpartition(".")[2]
    return _HOST.fullmatch(host) is not None and ".." not in host and _NUMBER.fullmatch(last) is None


def _read_literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _judge(target: Target, address: Address) -> None:
    meant = _unwrap(address)
    allowed = _permitted().holds(meant)
    if not allowed and not _is_public(meant):
        raise TargetRefused(
            f"{target.host} leads into a private network or to this machine itself, which is not reached from here "
            "unless the operator allows it (PLIMSOLL_WEBHOOK_PRIVATE)."
        )
    if not target.is_tls and not allowed:
        raise TargetRefused("Plain http is only sent into networks that the operator allows. Use https.")


def _unwrap(address: Address) -> Address:
    """An IPv4 address that is written as one of IPv6 is judged as what it is."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _is_public(address: Address) -> bool:
    """NAT64, link-local, metadata, documentation, carrier and reserved ranges are all outside of what is left here."""
    if isinstance(address, ipaddress.IPv6Address) and (address not in _ASSIGNED_IPV6 or address.scope_id):
        return False
    is_tunnel = any(address in network for network in _TUNNELS)
    return address.is_global and not address.is_multicast and not address.is_reserved and not is_tunnel


def _permitted() -> PrivateNetworks:
    permitted: PrivateNetworks = settings.WEBHOOK_PRIVATE
    return permitted
