"""Files of a few boxes that repeat one thing as often as is asked: what a reader costs with size.

A reader whose time or memory grows faster than the bytes, or with a number that a file claims,
shows it here: take one dimension at a count, four times the count, sixteen times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from repeats.claims import CLAIMS
from repeats.fragments import FRAGMENTS
from repeats.indexes import INDEXES
from repeats.movies import MOVIES


def _name(make: Callable[[int], bytes]) -> str:
    return make.__name__.replace("_", "-")


_MAKERS = {_name(make): make for make in (*MOVIES, *FRAGMENTS, *INDEXES, *CLAIMS)}

DIMENSIONS: Mapping[str, str] = MappingProxyType(
    {name: (make.__doc__ or "").partition("\n")[0] for name, make in _MAKERS.items()}
)
"""Every dimension by name, and what a file of it repeats.

>>> DIMENSIONS["tracks"]
'Tracks of one moov, of one sample each.'
"""

CLAIMED = frozenset(map(_name, CLAIMS))
"""Those dimensions whose files claim more than their bytes hold.

>>> "runs-of-nothing" in CLAIMED
True
"""


def repeated(dimension: str, count: int) -> bytes:
    """A file that repeats one thing.

    Most are files that a reader must take; some are damaged, or pass a limit where the count is
    large: then a reader must say so, and at no greater cost.

    Args:
        dimension: one of `DIMENSIONS`.
        count: how often, at least 1; the file's size grows linearly with it.

    Raises:
        KeyError: there is no such dimension.

    >>> import fragdex
    >>> len(fragdex.index(repeated("tracks", 3)).tracks)
    3
    """
    return _MAKERS[dimension](count)


def repeated_to(dimension: str, size: int) -> bytes:
    """A file of about so many bytes that repeats one thing.

    Args:
        dimension: one of `DIMENSIONS`.
        size: bytes, met as nearly as whole repetitions allow; at least what one takes.

    Raises:
        KeyError: there is no such dimension.

    >>> 9000 < len(repeated_to("tracks", 10_000)) < 11_000
    True
    """
    few, more = len(repeated(dimension, 1)), len(repeated(dimension, 1001))
    each = (more - few) / 1000
    return repeated(dimension, max(1, round(1 + (size - few) / each)))
