"""The data that a page was given, as records of its render have them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["encoded", "recorded"]

_LONG: Final = 2000  # bytes


def encoded(data: Any) -> bytes:
    """Data as a page reads them.

    >>> encoded({"title": "Hi"})
    b'{"title": "Hi"}'
    """
    return json.dumps(data, allow_nan=False).encode()


def recorded(data: Mapping[str, Any] | None) -> tuple[Mapping[str, Any] | None, str | None]:
    """Data, None where they are long or there are none, and the SHA-256 of what the page reads.

    >>> recorded({"title": "Hi"})[0], recorded({"title": "Hi" * 1000})[0], recorded(None)
    ({'title': 'Hi'}, None, (None, None))
    """
    if data is None:
        return None, None
    text = encoded(data)
    return data if len(text) <= _LONG else None, hashlib.sha256(text).hexdigest()
