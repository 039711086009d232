"""Requests to hosts that somebody else names: only to addresses that were looked at first.

A name is resolved once, all of its addresses are looked at, and the connection is made to one of
these: a name that points elsewhere a moment later changes nothing.
"""

from __future__ import annotations

import http.client
import ipaddress
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

log = logging.getLogger("fragdex.service")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolve = Callable[..., Iterable[tuple[object, ...]]]
"""As `socket.getaddrinfo`."""

# All that hosts of the IPv6 internet have (RFC 4291, 2.4; IANA's registry). Outside of it lie ways
# to write an IPv4 address, site-local addresses, and segments of routes.
_GLOBAL_UNICAST: Final = ipaddress.ip_network("2000::/3")

SPECIAL: Final = {
    ipaddress.ip_network(text): reachable
    for text, reachable in {
        "0.0.0.0/8": False,
        "10.0.0.0/8": False,
        "100.64.0.0/10": False,
        "127.0.0.0/8": False,
        "169.254.0.0/16": False,
        "172.16.0.0/12": False,
        "192.0.0.0/24": False,
        "192.0.0.9/32": True,
        "192.0.0.10/32": True,
        "192.0.2.0/24": False,
        "192.31.196.0/24": True,
        "192.52.193.0/24": True,
        "192.88.99.0/24": False,  # relays of 6to4 (RFC 7526)
        "192.168.0.0/16": False,
        "192.175.48.0/24": True,
        "198.18.0.0/15": False,
        "198.51.100.0/24": False,
        "203.0.113.0/24": False,
        "224.0.0.0/4": False,  # multicast, in a registry of its own
        "240.0.0.0/4": False,
        "::/128": False,
        "::1/128": False,
        "::ffff:0:0/96": False,
        "64:ff9b::/96": False,  # "reachable", but as the IPv4 address in it, which may be any
        "64:ff9b:1::/48": False,
        "100::/64": False,
        "100:0:0:1::/64": False,
        "2001::/23": False,
        "2001::/32": False,  # Teredo leads to an IPv4 address (RFC 4380)
        "2001:1::1/128": True,
        "2001:1::2/128": True,
        "2001:1::3/128": True,
        "2001:2::/48": False,
        "2001:3::/32": True,
        "2001:4:112::/48": True,
        "2001:10::/28": False,
        "2001:20::/28": True,
        "2001:30::/28": True,
        "2001:db8::/32": False,
        "2002::/16": False,  # 6to4 leads to an IPv4 address (RFC 3056)
        "2620:4f:8000::/48": True,
        "3fff::/20": False,
        "5f00::/16": False,
        "fc00::/7": False,
        "fe80::/10": False,
        "ff00::/8": False,  # multicast, in a registry of its own
    }.items()
}
"""Networks of IANA's Special-Purpose Address Registries, and whether they are globally reachable.

The narrowest network decides. It is kept here, as the standard library's differs between Pythons.
"""


class AddressRefused(Exception):
    """No connection is made: the name has no address, or one that may not be asked."""


def is_public(address: Address) -> bool:
    """Whether an address lies in the public internet, and cannot lead back from there."""
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        return is_public(mapped)
    if address.version == 6 and address not in _GLOBAL_UNICAST:
        return False
    around = [net for net in SPECIAL if net.version == address.version and address in net]
    return not around or SPECIAL[max(around, key=lambda net: net.prefixlen)]


def checked_address(
    host: str, port: int, allowed: Callable[[Address], bool], resolve: Resolve
) -> str:
    """The address to connect to.

    Raises:
        AddressRefused: the name has no address, or one of them is not `allowed`. Which of the two,
            and which address, the log says, and the caller does not learn: it would map the network
            by names.
    """
    refused = AddressRefused(f"{host} has no address, or one which is not public")
    try:
        resolved = list(resolve(host, port, type=socket.SOCK_STREAM))
        addresses = [str(place[0]) for *_, place in resolved if isinstance(place, tuple)]
        known = [ipaddress.ip_address(text.partition("%")[0]) for text in addresses]
    except (OSError, UnicodeError, ValueError):
        log.info("%s has no address", host)
        raise refused from None
    # One that leads inside is enough to distrust the name.
    inside = [text for text, one in zip(addresses, known, strict=True) if not allowed(one)]
    if inside:
        log.info("%s has the address %s, which is not public", host, inside[0])
        raise refused
    if not addresses:
        log.info("%s has no address", host)
        raise refused
    return addresses[0]


class PinnedHTTP(http.client.HTTPConnection):
    """A connection to one address; no name is resolved again."""

    def __init__(self, host: str, port: int, address: str, seconds: float) -> None:
        super().__init__(host, port, timeout=seconds)
        self._place = (address, port)

    def connect(self) -> None:
        """Connect to the address that was looked at."""
        self.sock = socket.create_connection(self._place, self.timeout)

    def cut(self) -> None:
        """End whatever is running."""
        sock = self.sock
        if sock is not None:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                return


class PinnedHTTPS(PinnedHTTP):
    """The same over TLS, under the name that its certificate must have."""

    default_port = http.client.HTTPS_PORT

    def __init__(
        self, host: str, port: int, address: str, seconds: float, tls: ssl.SSLContext | None = None
    ) -> None:
        super().__init__(host, port, address, seconds)
        self._name, self._tls = host, tls or ssl.create_default_context()

    def connect(self) -> None:
        """Connect to the address that was looked at, and shake hands."""
        # Set before the handshake, so that `cut` finds it.
        super().connect()
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._name)


@contextmanager
def cut_after(connection: PinnedHTTP, seconds: float) -> Iterator[None]:
    """Cut a connection that takes longer in all, and close it at the end.

    A server that sends a byte now and then would never run into the socket's own time-out.
    """
    watch = threading.Timer(seconds, connection.cut)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
        connection.close()
