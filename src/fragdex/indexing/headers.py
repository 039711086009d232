"""Box headers: what a walk over them gives, and which boxes it treats how.

A header is a size, a type, a 64-bit size where the first is 1, and the user type of a uuid box
(ISO/IEC 14496-12, 4.2.2).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

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

DONE, PARTIAL, MALFORMED, FULL, TO_END, DENSE = range(6)
"""Why a walk stopped: at the end; at a box that is not whole in the buffer; at an impossible
header; after `max_rows`; at a box of size 0, which reaches to the end of the file; where fragments
stand too densely to be read one by one."""

DESCEND = b"mooftraf"
"""Containers whose inside is walked."""
WHOLE = b"moofmoovsidxmfraftyp"
"""Top-level boxes that are only passed when they lie whole in the buffer."""
PASSED = b"mfhd"
"""Boxes inside fragments that no one needs; each fragment has one."""

Rows: TypeAlias = npt.NDArray[np.void]
Int64: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]


def code(name: str) -> int:
    """A four-letter code as the number that `ROW` holds."""
    return int.from_bytes(name.encode("latin-1"), "big")


Packed: TypeAlias = tuple[tuple[bytes, bytes, bytes], ...]
"""Shapes of boxes: template, mask (a box has the shape if it has the template's bits wherever the
mask is set), and places: three int64 for each integer, its offset in the box, its width in bytes
(1 to 8), and whether it is signed."""
NO_SHAPE = 255
Programs: TypeAlias = tuple[tuple[bytes, bytes, bytes], ...]
"""The same with a program in place of places: how the C extension reads a box as it passes it."""
SHAPED = b"moof"
"""Boxes whose shapes are looked for."""


class Fits(NamedTuple):
    """Which of some shapes many boxes have.

    Attributes:
        which: of each box the number of its shape, or `NO_SHAPE`.
        cells: for each shape the integers of the boxes that have it, shape (places, boxes).
    """

    which: npt.NDArray[np.uint8]
    cells: list[Int64]


class Shaped(NamedTuple):
    """What programs read of many boxes.

    Attributes:
        shown: boxes that were looked at; missed: those of them that have none of the shapes.
        odd: whether some number is such that boxes must be read otherwise.
        wide: unsigned composition offsets of 2^31 or more, read as signed.
        met: how many boxes have each shape.
        tracks: by the number that programs give to a track its trafs and its sync samples, as
            the bytes of `PlainTrack`, and whether some of these are doubted; boxes are counted
            from 0.
    """

    shown: int
    missed: int
    odd: int
    wide: int
    met: tuple[int, ...]
    tracks: tuple[tuple[bytes, bytes, bool], ...]


class Kept(NamedTuple):
    """Top-level boxes that are kept whole, of some rows.

    Attributes:
        offsets, sizes: of each.
        others: (number among them, type) of those that are not moofs.
        whole_bytes: of them all; header_bytes: of the headers of all other boxes.
    """

    offsets: Int64
    sizes: Int64
    others: list[tuple[int, int]]
    whole_bytes: int
    header_bytes: int


class RowColumns(NamedTuple):
    """Where 32-bit columns stand in a row of samples, in bytes from its start; -1: nowhere.

    Attributes:
        stride: bytes of a row.
        duration, size, flags, offset: the columns; offsets are signed, the others are not.
        non_sync: bits of the flags of which a sync sample has none.
    """

    stride: int
    duration: int = -1
    size: int = -1
    flags: int = -1
    offset: int = -1
    non_sync: int = 0


class Sums(NamedTuple):
    """What runs of samples add up to.

    Attributes:
        size, duration: sums of the samples of each run; 0 where there is no column of sizes.
        cts_min: least composition time, from the run's start; 0 without a column of offsets.
        cts_end: greatest composition time + duration, likewise.
        negative: how many of its composition offsets are below 0.
        points: the sync samples that were requested, in order: rows of run, number in the run,
            decode and composition time from the run's start.
    """

    size: Int64
    duration: Int64
    cts_min: Int64
    cts_end: Int64
    negative: Int64
    points: Int64


class Extents(NamedTuple):
    """Where stretches of samples lie, and when they are shown.

    Attributes:
        data_start, data_stop: first byte, and after the last one (exclusive).
        cts_min, cts_end: least composition time, and greatest one + duration.
        dts, duration: decode time of the first sample, and sum of the durations.
    """

    data_start: Int64
    data_stop: Int64
    cts_min: Int64
    cts_end: Int64
    dts: Int64
    duration: Int64


class Boxes(NamedTuple):
    """Boxes that are kept: places in a buffer, sizes, places in the file, and what they say."""

    places: Int64
    sizes: Int64
    offsets: Int64
    shaped: Shaped | None = None

    def some(self, which: Int64, shaped: Shaped | None = None) -> Boxes:
        """Those that the row numbers name; `shaped`: what programs read of them."""
        return Boxes(self.places[which], self.sizes[which], self.offsets[which], shaped)


_NONE = np.zeros(0, np.int64)
NO_BOXES = Boxes(_NONE, _NONE, _NONE)


class Walked(NamedTuple):
    """What one stretch of a walk met.

    Attributes:
        top: rows (`ROW`) of the top-level boxes that were passed, in file order.
        inner: rows of what stands inside the fragments among them, likewise; not of `PASSED`.
        position: of the next header; it may lie after the buffer, where a box that need not be
            whole reaches out of it.
        status: why the walk stopped.
        shaped: what programs read of the `SHAPED` boxes among `top`, where the walk had some.
    """

    top: Rows
    inner: Rows
    position: int
    status: int
    shaped: Shaped | None = None
