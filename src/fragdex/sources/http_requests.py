"""Requests for one URL: redirects, credentials, and connections that can be woken."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fragdex.errors import SourceError
from fragdex.sources.answers import RETRIED
from fragdex.sources.tls import TLSWhenNeeded

if TYPE_CHECKING:
    import httpx

__all__ = ["Requests", "client_for"]

MAX_REDIRECTS = 10
"""Redirects followed for one request; browsers stop at 20, and no CDN needs more than three."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})

# what belongs to one request and is not carried to the next
_OWN_FIELDS = frozenset({"range", "if-range", "host", "accept-encoding"})


class Requests:
    """GETs one URL, from where its redirects led before.

    Args:
        timeout: seconds that each step of a request may take.
        headers: of every request.
        client: asked in place of our own; it is not closed, and not woken.
        over: whether reads are ended, so that new connections are woken at once.

    Attributes:
        shown: the URL as messages have it: passwords and signatures have no place there.

    Raises:
        SourceError: it is no URL.
    """

    def __init__(
        self,
        url: str,
        timeout: float,
        headers: Mapping[str, str],
        client: httpx.Client | None,
        over: Callable[[], bool],
    ) -> None:
        import httpx

        self._httpx = httpx
        try:
            self._url = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise SourceError(f"this is not a URL: {error}") from error
        self.shown = str(
            self._url.copy_with(username=None, password=None, query=None, fragment=None)
        )
        self._timeout, self._headers = timeout, dict(headers)
        self._mine = client is None
        self._client = client or client_for(timeout)
        self._landed: httpx.Request | None = None  # where redirects ended
        self._over = over
        self._lock = threading.Lock()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def send(self, own: Mapping[str, str], count: Callable[[], None]) -> httpx.Response:
        """The answer at the end of the redirects; its body is not read yet.

        Args:
            own: fields of this request alone.
            count: called before each request; what it raises ends them.

        Raises:
            SourceError: it is redirected too often.
        """
        landed = self._landed
        response = self._try(landed, own, count)
        status = response.status_code
        if landed is not None and 400 <= status < 500 and status not in RETRIED | {416}:
            # what a redirect led to may have been lent for a while only: ask where it began
            response.close()
            self._landed = None
            response = self._try(None, own, count)
        for _ in range(MAX_REDIRECTS):
            if response.status_code not in _REDIRECTS or response.next_request is None:
                return response
            response.close()
            self._landed = response.next_request
            response = self._try(self._landed, own, count)
        response.close()
        raise SourceError(
            f"{self.shown} is redirected too often",
            expected=f"at most {MAX_REDIRECTS} redirects",
            found="one more",
        )

    def interrupt(self) -> None:
        """Wake reads that wait for their server; a client that was given is left alone."""
        with self._lock:
            for one in self._sockets:
                _shut(one)

    def close(self) -> None:
        """Close the connections, unless they belong to a client that was given."""
        if self._mine:
            self._client.close()

    def _try(
        self, landed: httpx.Request | None, own: Mapping[str, str], count: Callable[[], None]
    ) -> httpx.Response:
        count()
        extensions: dict[str, Any] = {"trace": self._note_connection} if self._mine else {}
        options: dict[str, Any] = {"stream": True, "follow_redirects": False}
        if landed is None:
            request = self._client.build_request(
                "GET",
                self._url,
                headers={**self._headers, **own},
                timeout=self._timeout,
                extensions=extensions,
            )
        else:
            # the client took credentials out of a redirect to elsewhere; they stay out
            kept = {k: v for k, v in landed.headers.items() if k.lower() not in _OWN_FIELDS}
            request = self._httpx.Request(
                "GET",
                landed.url,
                headers={**kept, **own},
                extensions=landed.extensions | extensions,
            )
            if _origin(landed.url) != _origin(self._url):
                options["auth"] = None
        return self._client.send(request, **options)

    def _note_connection(self, event: str, info: Mapping[str, Any]) -> None:
        """Keep the sockets of our own client, so that reads that wait can be woken."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            found = info["return_value"].get_extra_info("socket")
            if found is not None:
                with self._lock:
                    self._sockets.add(found)
                if self._over():
                    _shut(found)


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        # Not SSLSocket's own method: that takes the state away which the reader uses.
        socket.socket.shutdown(one, socket.SHUT_RDWR)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def client_for(timeout: float) -> httpx.Client:
    """A client as sources make it for themselves; several may share one.

    >>> client_for(30.0).follow_redirects
    False
    """
    import httpx

    return httpx.Client(
        verify=TLSWhenNeeded(ssl.PROTOCOL_TLS_CLIENT), timeout=timeout, follow_redirects=False
    )
