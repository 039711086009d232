"""The stores and connections that the films of a set share in this process."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from typing import Any

from fragdex.data.film_listing import split_url
from fragdex.sources.http import client_for
from fragdex.sources.objects import store_for

__all__ = ["Connections"]


class Connections:
    """One store for each bucket and one client for HTTP, instead of new ones for each film.

    They last as long as somebody holds this: the set, or frames of one of its films. Another
    process makes its own.

    >>> Connections().options("a.mp4", {"timeout": 5.0})
    {'timeout': 5.0}
    """

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._stores: dict[str, Any] = {}
        self._client: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"_pid": -1, "_stores": {}, "_client": None}

    def options(self, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """How a film is opened: what was given, with a store or client that is shared."""
        if self._pid != os.getpid():  # those belong to the process that was forked
            self._pid, self._stores, self._client = os.getpid(), {}, None
        found = dict(options)
        if found.get("store") is not None or found.get("filesystem") is not None:
            return found
        timeout = found.get("timeout", 30.0)
        bucket = split_url(name)
        if bucket is not None:
            address = bucket[0] + "/"
            if address not in self._stores:
                self._stores[address] = store_for(address, found.get("retries", 3), timeout)
            found["store"] = self._stores[address]
        elif name.startswith(("http://", "https://")) and found.get("client") is None:
            if self._client is None:
                self._client = client_for(timeout)
                weakref.finalize(self, _close, self._client, self._pid)
            found["client"] = self._client
        return found


def _close(client: Any, pid: int) -> None:
    if os.getpid() == pid:
        client.close()
