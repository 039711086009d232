"""How fragments follow one another in a file: how far apart, and how large their headers are."""

from __future__ import annotations

from collections import deque

from fragdex.build.steps import READ_AHEAD
from fragdex.byterange import ByteRange
from fragdex.fragments.headers import Rows
from fragdex.fragments.scan import FTYP, MDAT, MOOF, MOOV, Scan

__all__ = ["LARGEST_WINDOW", "REQUEST_BYTES", "Pace"]

RECENT = 8
"""Fragments that are looked at."""
ROWS = 4 * RECENT
"""Boxes that are looked at of many that were met together."""
SPARE = 16
"""Bytes read beside the largest headers of late: a few samples more, a longer mdat header."""
DENSE = 4
"""Where reading everything takes up to so many times the bytes of the headers, it is read."""
REQUEST_BYTES = 128
"""Bytes of an answer that tell where its range lies, when several are asked for at once."""
LARGEST_WINDOW = 1 << 19
"""Bytes of a read where everything is read."""
FIRST_WINDOW = 1 << 17
APART = frozenset((FTYP, MOOV, MDAT))
"""What is not part of the headers of a fragment, or is their end."""
SMALL_BOX = 1 << 12
"""A box that is no mdat is read over up to this size, as one that belongs to the next moof."""


class Pace:
    """The last fragments of a pass.

    Args:
        before: what is known from elsewhere in the file; until more is known, this is as there.

    >>> Pace().ahead()
    4096
    """

    def __init__(self, before: Pace | None = None) -> None:
        self._moofs: deque[int] = deque(before._moofs if before else (), RECENT)
        self._heads: deque[int] = deque(before._heads if before else (), RECENT)
        self._stride = before.stride if before else 0.0
        self._window = 0
        self._edge: int | None = None
        if before:
            self._moofs.clear()

    def note(self, top: Rows) -> None:
        """Take the rows of boxes that were passed, in file order."""
        moof = False
        rows = top[-ROWS:]
        fields = (rows[name].tolist() for name in ("offset", "size", "type", "header"))
        for offset, size, kind, header in zip(*fields, strict=True):
            if self._edge is None or offset < self._edge:
                self._edge = offset
            if kind == MOOF:
                moof = True
                self._moofs.append(offset)
            elif kind in APART or size > SMALL_BOX:
                if moof and kind == MDAT:
                    self._heads.append(offset + header - self._edge)
                moof, self._edge = False, offset + size

    @property
    def known(self) -> int:
        """Fragments whose headers are known."""
        return len(self._heads)

    @property
    def stride(self) -> float:
        """Bytes from one moof to the next; 0 where that is not known."""
        if len(self._moofs) > 2:
            self._stride = (self._moofs[-1] - self._moofs[0]) / (len(self._moofs) - 1)
        return self._stride

    @property
    def head(self) -> int:
        """Bytes from the end of the media data to behind the next mdat's header.

        As many as were enough each time of late: a second request for the rest of a moof costs
        more than some bytes of media beside the others.
        """
        return max(self._heads, default=READ_AHEAD - SPARE) + SPARE

    @property
    def dense(self) -> bool:
        """Whether everything is read, since fragments are small beside their headers."""
        return 0 < self.stride <= DENSE * (self.head + REQUEST_BYTES)

    def ahead(self) -> int:
        """Bytes to ask for next."""
        if not self.dense:
            self._window = 0
            return self.head
        self._window = min(max(2 * self._window, FIRST_WINDOW), LARGEST_WINDOW)
        return self._window

    def behind(self, need: ByteRange, scan: Scan) -> int:
        """Where to stop reading that begins with what a scan needs."""
        if scan.carried and not self.dense:
            # The rest of a moof, and the header behind it.
            return need.stop + SPARE
        return need.start + self.ahead()

    def expected(self, size: int) -> float:
        """Bytes of headers in so many bytes of the file."""
        return size / self.stride * self.head if self.stride else 0.0
