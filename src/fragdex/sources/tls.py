"""TLS whose certificates are read at the first connection that needs them: 40 ms a client."""

from __future__ import annotations

import ssl
from functools import cached_property
from typing import Any


def tls_when_needed(trust_env: bool = True) -> ssl.SSLContext:
    """What a client of httpx is given as `verify`: connections are verified as by its default.

    Args:
        trust_env: whether SSL_CERT_FILE and SSL_CERT_DIR have a say, as in httpx.
    """
    context = _TLSWhenNeeded(ssl.PROTOCOL_TLS_CLIENT)
    context.trust_env = trust_env
    return context


class _TLSWhenNeeded(ssl.SSLContext):
    """Hands every connection to the context that httpx makes by itself: verified, by host name."""

    trust_env = True
    _protocols: list[str] | None = None

    @cached_property
    def _real(self) -> ssl.SSLContext:
        import httpx

        real = httpx.create_ssl_context(trust_env=self.trust_env)
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
