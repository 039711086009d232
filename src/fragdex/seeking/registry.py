"""What lower rooms do for an index.

`index.save`, `index.export`, `index.extend` and seeks that look at pictures are done by rooms below
this one (indexing, formats), which this room must not know. They put their functions here when they
are imported; a process that unpickled or opened an index may not have imported them yet, so that
their names stand here as text.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

_HOMES = {
    "export": "fragdex.formats.exporting",
    "extend": "fragdex.indexing.growing",
    "samples": "fragdex.formats.media_or_index",
    "save": "fragdex.formats.exporting",
    "seamed": "fragdex.transcode.smart_cut",
    "verifier": "fragdex.indexing.verified",
    "window_form": "fragdex.formats.window",
}
_OFFERS: dict[str, Callable[..., Any]] = {}


def offer(name: str, function: Callable[..., Any]) -> None:
    """Put a function under a name.

    >>> offer("example", len)
    """
    _OFFERS[name] = function


def offered(name: str) -> Callable[..., Any]:
    """The function under a name; the room that has it is imported where it was not yet.

    Raises:
        LookupError: there is no such name.

    >>> offer("example", len)
    >>> offered("example")("abc")
    3
    """
    if name not in _OFFERS and name in _HOMES:
        import_module(_HOMES[name])
    try:
        return _OFFERS[name]
    except KeyError:
        raise LookupError(f"nothing offers {name!r}") from None
