"""What lower rooms offer to an index.

`index.save`, `index.export` and `index.extend` are done by rooms below this one (formats, build),
which this room must not import. They put their functions here when they are imported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["offer", "offered"]

_OFFERS: dict[str, Callable[..., Any]] = {}


def offer(name: str, function: Callable[..., Any]) -> None:
    """Put a function under a name.

    >>> offer("example", len)
    """
    _OFFERS[name] = function


def offered(name: str) -> Callable[..., Any]:
    """The function under a name.

    Raises:
        LookupError: the room that offers it was never imported.

    >>> offer("example", len)
    >>> offered("example")("abc")
    3
    """
    try:
        return _OFFERS[name]
    except KeyError:
        raise LookupError(f"nothing offers {name!r}; import fragdex.build first") from None
