"""The start of a file: read once, for the scan and for the indexes that stand there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from fragdex.build.steps import FIRST_GUESS, READ_AHEAD, feed, needed, read_there
from fragdex.byterange import ByteRange
from fragdex.fragments.bounds import MDAT, MOOF
from fragdex.fragments.findings import Finding
from fragdex.fragments.headers import DONE
from fragdex.fragments.hop_plain import WHOLE_CODES, header_at
from fragdex.fragments.scan import MOOV, Scan
from fragdex.sources import Source

__all__ = ["Head"]


@dataclass(slots=True)
class Head:
    """What was read of a file's start, and what speaks against the indexes in it.

    Attributes:
        pieces: (offset, bytes) of what was read, in order.
        doubts: why a sidx or mfra was not believed.
    """

    pieces: list[tuple[int, bytes | memoryview]] = field(default_factory=list)
    doubts: tuple[Finding, ...] = ()

    def read(self, source: Source, scan: Scan) -> None:
        """Read until the first fragment, media data or the end is met."""
        view = None if source.remote else source.view()
        if view is not None:
            self._look(source, view, scan)
            return
        ahead = FIRST_GUESS if source.remote else READ_AHEAD
        seen = 0
        while True:
            need = needed(source, scan)
            if need is None:
                return
            tops = scan.tops()
            kinds = {kind for top in tops[seen:] for kind in top["type"].tolist()}
            seen = len(tops)
            if kinds & {MOOF, MDAT} or scan.waiting_for == MOOF:
                return
            # The header behind a box tells whether it ends where a fragment begins.
            data = self.piece(
                source, ByteRange(need.start, max(need.stop + 32, need.start + ahead))
            )
            if not feed(source, scan, data, need.start):
                return
            ahead = READ_AHEAD

    def _look(self, source: Source, view: memoryview, scan: Scan) -> None:
        """Take all that stands before the first fragment or media data at once."""
        at = read = 0
        scan.size = len(view)
        while True:
            status, size, kind, header = header_at(view, at, len(view))
            if status != DONE:
                stop = min(at + 16, len(view))
                break
            stop = at + header
            if kind == MDAT:
                read += header
            if kind in (MOOF, MDAT) or not size or size > len(view) - at:
                break
            if kind == MOOV and size > FIRST_GUESS:
                # A large moov names samples; it is read where it is mapped.
                break
            read += size if kind in WHOLE_CODES else header
            at += size
        source.note_read(read)
        self.pieces.append((0, view[:stop]))
        scan.feed(view[:stop], 0)

    def piece(self, source: Source, wanted: ByteRange) -> bytes:
        """Read a range, or as much of it as there is, and remember it."""
        data = read_there(source, wanted)
        self.pieces.append((wanted.start, data))
        return data

    def at(self, offset: int, size: int) -> bytes | None:
        """Bytes that were read already, or None.

        >>> head = Head([(0, b"abcd"), (4, b"efgh")])
        >>> head.at(2, 4), head.at(6, 4)
        (b'cdef', None)
        """
        found = b""
        for start, data in self.pieces:
            here = offset + len(found) - start
            if 0 <= here < len(data):
                found += bytes(data[here : here + size - len(found)])
        return found if len(found) == size else None

    def read_again(self, source: Source, ranges: Iterable[ByteRange]) -> bytes:
        """The bytes of ranges, one behind the other; what was read already costs no request.

        Raises: what reading the source raises.
        """
        parts = (self.at(part.start, part.size) or source.read(part) for part in ranges)
        return b"".join(parts)
