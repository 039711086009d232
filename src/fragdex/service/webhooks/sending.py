"""One request to a receiver: to a public address, within a time, no redirect followed."""

from __future__ import annotations

import http.client
import ipaddress
import re
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from fragdex.outgoing import (
    Address,
    AddressRefused,
    PinnedHTTP,
    PinnedHTTPS,
    Resolve,
    checked_address,
    cut_after,
    is_public,
)

MAX_URL: Final = 2048
_READ: Final = 4096
"""Bytes of a response that are read."""
_SHOWN: Final = 1000
"""Characters of it that are shown."""
_PRINTED: Final = re.compile(r"[^\x20-\x7e]+")
_SECONDS: Final = re.compile("[0-9]{1,9}")


class NotSent(Exception):
    """There was no response; the text says why, to the tenant."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a receiver answered.

    Attributes:
        body: the beginning of it, as printable ASCII.
        retry_after: seconds, where it asks for them.
    """

    status: int
    body: str
    retry_after: float | None = None

    @property
    def accepted(self) -> bool:
        """Whether the delivery has arrived."""
        return 200 <= self.status <= 299


def need_url(url: str, networks: Sequence[str]) -> tuple[bool, str, int, str]:
    """Whether a URL is of TLS, its host, its port and its request target.

    Args:
        networks: not public, and allowed; without any, only `https` is taken.

    Raises:
        ValueError: no delivery may be sent there.

    >>> need_url("https://example.org/hook?a=1", ())
    (True, 'example.org', 443, '/hook?a=1')
    """
    if len(url) > MAX_URL or any(ord(char) <= 32 or ord(char) > 126 for char in url):
        raise ValueError("the URL is not encoded, or too long")
    parts = urlsplit(url)
    host, port = (parts.hostname or "").rstrip("."), parts.port
    schemes = ("https", "http") if networks else ("https",)
    if parts.scheme not in schemes:
        raise ValueError(f"a URL with {' or '.join(schemes)} is expected")
    if not host or port == 0:
        raise ValueError("the URL names no host")
    if parts.username is not None or parts.password is not None:
        raise ValueError("the URL has credentials; receivers check the signature instead")
    tls = parts.scheme == "https"
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return tls, host, port or (443 if tls else 80), target


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends deliveries.

    Attributes:
        seconds: that a request may take, its response included.
        networks: not public, and allowed, such as `10.0.0.0/8`.
        resolve: as `socket.getaddrinfo`.
        tls: whom to trust; the system's authorities where it is None.
    """

    seconds: float
    networks: Sequence[str] = ()
    resolve: Resolve = socket.getaddrinfo
    tls: ssl.SSLContext | None = None

    def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """The response to a delivery; its body is read as far as it may be shown.

        Raises:
            NotSent: there was none.
        """
        deadline = time.monotonic() + self.seconds
        try:
            is_tls, host, port, target = need_url(url, self.networks)
        except ValueError as error:
            raise NotSent(str(error)) from None
        try:
            allowed = self._allowed if is_tls else self._inside
            address = checked_address(host, port, allowed, self.resolve)
        except AddressRefused as error:
            more = "" if is_tls else "; `http` is for the networks of `webhook_networks` alone"
            raise NotSent(f"{error}{more}") from None
        left = max(0.001, deadline - time.monotonic())
        connection = (
            PinnedHTTPS(host, port, address, left, self.tls)
            if is_tls
            else PinnedHTTP(host, port, address, left)
        )
        try:
            with cut_after(connection, left):
                connection.request("POST", target, body=body, headers=dict(headers))
                return _answer(connection.getresponse())
        except ssl.SSLCertVerificationError as error:
            raise NotSent(f"the certificate of {host}: {error.verify_message}") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            if time.monotonic() >= deadline:
                raise NotSent(f"no response within {self.seconds:g} s") from None
            raise NotSent(f"{host} could not be reached: {type(error).__name__}") from None

    def _inside(self, address: Address) -> bool:
        mapped = getattr(address, "ipv4_mapped", None) or address
        return any(mapped in ipaddress.ip_network(network) for network in self.networks)

    def _allowed(self, address: Address) -> bool:
        return is_public(address) or self._inside(address)


def _answer(response: http.client.HTTPResponse) -> Answer:
    try:
        body = response.read(_READ)
    except (OSError, http.client.HTTPException):
        body = b""  # the status says what counts
    text = _PRINTED.sub(" ", body.decode("ascii", "replace"))[:_SHOWN]
    asked = (response.getheader("Retry-After") or "").strip()
    seconds = float(asked) if _SECONDS.fullmatch(asked) else None
    return Answer(response.status, text, seconds)
