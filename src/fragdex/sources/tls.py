"""TLS as httpx has it, but made at the first https connection.

Reading the certificates of all authorities takes about 70 ms of a processor, more than everything
else before the first byte of an http:// object.
"""

from __future__ import annotations

import ssl
from functools import cached_property
from typing import Any

__all__ = ["TLSWhenNeeded"]


class TLSWhenNeeded(ssl.SSLContext):
    """Hands every connection to the context that httpx makes by itself: verified, by host name.

    >>> TLSWhenNeeded(ssl.PROTOCOL_TLS_CLIENT).verify_mode
    <VerifyMode.CERT_REQUIRED: 2>
    """

    _protocols: list[str] | None = None

    @cached_property
    def _real(self) -> ssl.SSLContext:
        import httpx

        real = httpx.create_ssl_context()
        if self._protocols is not None:
            real.set_alpn_protocols(self._protocols)
        return real

    def set_alpn_protocols(self, alpn_protocols: Any) -> None:
        """Remember the protocols for the first connection."""
        self._protocols = list(alpn_protocols)

    def wrap_socket(self, *args: Any, **more: Any) -> ssl.SSLSocket:
        """A verified connection over a socket."""
        return self._real.wrap_socket(*args, **more)

    def wrap_bio(self, *args: Any, **more: Any) -> ssl.SSLObject:
        """A verified connection inside of another one, as behind an https proxy."""
        return self._real.wrap_bio(*args, **more)
