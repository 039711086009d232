"""Segments that wait for nothing: their boxes are made, their bytes are in the system's memory.

Such a request costs one read into a buffer, and one copy of the samples out of it. It is answered
where it arrives, without a change of thread; all others take the general way.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.errors import FragdexError
from fragdex.fragments.table import Int64
from fragdex.indexing import native
from fragdex.origin.titles import Film
from fragdex.views.view import Block, Scattered, SourceRange, Sources, View

LARGEST: Final = 2 << 20
"""Bytes that are read where requests arrive: half a millisecond at most."""
_WASTE: Final = 4
"""How many times the wanted bytes are read to have them at one go."""


class PreparedSegment:
    """A segment of a local film, ready to be answered at once.

    Attributes:
        film: that it is of.
        view: what it is.
        size: bytes that preparing it holds in memory.
        headers: of its answer, as ASGI has them.
    """

    __slots__ = ("_known", "_lead", "_number", "_sizes", "_span", "_starts", "film", "headers",
                 "size", "view")  # fmt: skip

    def __init__(
        self, film: Film, view: View, number: int, lead: bytes, places: Block,
        headers: Sequence[tuple[bytes, bytes]],
    ) -> None:  # fmt: skip
        self.film, self.view, self.headers = film, view, headers
        self._number, self._known = number, view.sources[0]
        if isinstance(places, Scattered):
            starts, sizes = places.start, places.size
        else:
            assert isinstance(places, SourceRange)
            starts = np.array([places.range.start], np.int64)
            sizes = np.array([places.range.size], np.int64)
        self._span = ByteRange(int(starts.min()), int((starts + sizes).max()))
        # made bytes stand in the same buffer, in front of what is read
        self._lead = lead
        moved = starts - self._span.start + len(lead)
        self._starts: Int64 = np.concatenate([[0], moved]).astype(np.int64)
        self._sizes: Int64 = np.concatenate([[len(lead)], sizes]).astype(np.int64)
        self.size = len(lead) + self._starts.nbytes + self._sizes.nbytes + 1024

    @classmethod
    def of(
        cls, film: Film, view: View, headers: Sequence[tuple[bytes, bytes]]
    ) -> PreparedSegment | None:
        """Prepare a segment; None: it is too large, or its samples are too far apart."""
        if view.size > LARGEST or len(view.sources) != 1:
            return None
        number = film.package.sources.index(view.sources[0])
        blocks = list(view.blocks())
        if len(blocks) != 2 or not isinstance(blocks[0], bytes):
            return None
        if not isinstance(blocks[1], (Scattered, SourceRange)):
            return None
        segment = cls(film, view, number, blocks[0], blocks[1], headers)
        wanted = view.size - len(blocks[0])
        return segment if segment._span.size <= min(_WASTE * wanted, LARGEST) else None

    def read(self, buffer: memoryview) -> bytes | None:
        """Its bytes, if they are in memory, and of the film that was indexed.

        Args:
            buffer: to read into, of twice `LARGEST`.
        """
        try:
            opened = self.film.idle.pop()
        except IndexError:
            return None
        lead, span = len(self._lead), self._span
        source = opened[self._number]
        try:
            there = source.read_resident(span, buffer[lead : lead + span.size])
            if there:
                with Sources([self._known], [source]) as sources:
                    sources.source(0)  # is the one that was indexed
        except FragdexError:
            there = False  # the general way says what it is, in its words
        self.film.give_back(opened)
        if not there:
            return None
        buffer[:lead] = self._lead
        return native.join(buffer, self._starts, self._sizes)
