"""Places for what goes on at once in a web process: so many in all, and a share of them for each client."""

import ipaddress
import math
from collections import Counter
from contextlib import ExitStack


class Places:
    """A client may be known by several names, its address and its key: each has its share."""

    def __init__(self, most: int, *, share: float) -> None:
        self.most = most
        self.most_each = math.ceil(most * share)
        self.taken = 0
        self._by_client: Counter[str] = Counter()

    def has_room(self, clients: tuple[str, ...]) -> bool:
        return self.taken < self.most and all(self._by_client[client] < self.most_each for client in clients)

    def take(self, clients: tuple[str, ...], until: ExitStack) -> bool:
        """Takes a place for as long as `until` is open; False when there is none."""
        if not self.has_room(clients):
            return False
        self.taken += 1
        self._by_client.update(clients)
        until.callback(self._release, clients)
        return True

    def _release(self, clients: tuple[str, ...]) -> None:
        self.taken -= 1
        for client in clients:
            self._by_client[client] -= 1
            if not self._by_client[client]:
                del self._by_client[client]


def name_address(host: str) -> str:
    """An IPv6 client has a whole /64 of addresses: all of them are one."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host[:100]
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((int(address), 64), strict=False))
