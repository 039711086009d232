"""Box headers: what a walk over them gives, and which boxes it treats how.

A header is a size, a type, a 64-bit size where the first is 1, and the user type of a uuid box
(ISO/IEC 14496-12, 4.2.2).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = [
    "DESCEND",
    "DONE",
    "FULL",
    "MALFORMED",
    "PARTIAL",
    "PASSED",
    "ROW",
    "TO_END",
    "WHOLE",
    "Int64",
    "Mask",
    "Rows",
    "Walked",
    "code",
]

ROW = np.dtype(
    [
        ("offset", "i8"),
        ("size", "i8"),
        ("type", "u4"),
        ("header", "u1"),
        ("depth", "u1"),
        ("damaged", "?"),
        ("whole", "?"),
    ]
)
"""One box: offset in the buffer, size with header, type as a big-endian number, header length,
depth (0: top level), whether its inside breaks the rules (then no rows of it follow), and whether
it is one of `WHOLE` at the top level."""

DONE, PARTIAL, MALFORMED, FULL, TO_END = range(5)
"""Why a walk stopped: at the end; at a box that is not whole in the buffer; at an impossible
header; after `max_rows`; at a box of size 0, which reaches to the end of the file."""

DESCEND = b"mooftraf"
"""Containers whose inside is walked."""
WHOLE = b"moofmoovsidxmfraftyp"
"""Top-level boxes that are only passed when they lie whole in the buffer."""
PASSED = b"mfhd"
"""Boxes inside fragments that no one asks for; each fragment has one."""

Rows: TypeAlias = npt.NDArray[np.void]
Int64: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


def code(name: str) -> int:
    """A four-letter code as the number that `ROW` holds.

    >>> hex(code("moof"))
    '0x6d6f6f66'
    """
    return int.from_bytes(name.encode("latin-1"), "big")


class Walked(NamedTuple):
    """What one stretch of a walk met.

    Attributes:
        top: rows (`ROW`) of the top-level boxes that were passed, in file order.
        inner: rows of what stands inside the fragments among them, likewise; not of `PASSED`.
        position: of the next header; it may lie behind the buffer, where a box that need not be
            whole reaches out of it.
        status: why the walk stopped.
    """

    top: Rows
    inner: Rows
    position: int
    status: int
