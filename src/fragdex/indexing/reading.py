"""Let a source and a scan meet: who reads what, and in which steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from fragdex.boxes import Box
from fragdex.byterange import ByteRange
from fragdex.fragments.findings import Finding
from fragdex.indexing import headers, native
from fragdex.indexing.headers import DONE
from fragdex.indexing.native_plain import WHOLE_CODES, header_at
from fragdex.indexing.positions import MDAT, MOOF
from fragdex.indexing.remote import (
    FIRST_GUESS,
    READ_AHEAD,
    feed,
    needed,
    read_remote,
    read_there,
    step,
)
from fragdex.indexing.scan import MAX_WHOLE_BOX, MOOV, Scan
from fragdex.record import record
from fragdex.sources import Source


@record(slots=True)
class Head:
    """What was read of a file's start, and what speaks against the indexes in it.

    Attributes:
        pieces: (offset, bytes) of what was read, in order.
        doubts: why a sidx or mfra was not believed.
        moov: the first one and its place, as the scan parsed it (see `ScanState`).
        is_simple: whether the file is one of `simple_files`.
    """

    pieces: list[tuple[int, bytes | memoryview]] = field(default_factory=list)
    doubts: tuple[Finding, ...] = ()
    moov: tuple[int, Box] | None = None
    is_simple: bool = False

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
            # The header after a box tells whether it ends where a fragment begins.
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
        head = view[:stop]
        self.pieces.append((0, head))
        met = native.walk(head)
        scan.take(head, met)
        scan.stop_at(met.position, met.status, head[met.position : met.position + 16])

    def piece(self, source: Source, wanted: ByteRange) -> bytes:
        """Read a range, or as much of it as there is, and remember it."""
        data = read_there(source, wanted)
        self.pieces.append((wanted.start, data))
        return data

    def at(self, offset: int, size: int) -> bytes | None:
        """Bytes that were read already, or None."""
        piece = b""
        for start, data in self.pieces:
            here = offset + len(piece) - start
            if 0 <= here < len(data):
                piece += bytes(data[here : here + size - len(piece)])
        return piece if len(piece) == size else None

    def read_again(self, source: Source, ranges: Iterable[ByteRange]) -> bytes:
        """The bytes of ranges, one after the other; what was read already costs no request."""
        parts = (self.at(part.start, part.size) or source.read(part) for part in ranges)
        return b"".join(parts)


DENSE = 1 << 14
"""Bytes from one fragment to the next under which mapping beats one read a fragment: a page
fault costs more than a read, but maps the pages around it as well."""
STRETCH = 1 << 15
"""Rows met at once in a mapping: fewer cost more calls, more leave the processor's cache."""
PROBE_ROWS = 512
"""Rows read before it is decided how to continue."""
MOST_ROWS = 1 << 16
"""Rows met at once by reads; what they cost besides is nothing, but their moofs are kept."""


def read_on(source: Source, scan: Scan) -> None:
    """Hop through a source from where the scan stands to the end, in the cheapest way."""
    view = source.view()
    if view is not None:
        read_local(source, view, scan)
    else:
        read_all(source, scan)


def read_local(source: Source, view: memoryview, scan: Scan) -> None:
    """Hop through a file that can be mapped; media bytes are not touched."""
    size = scan.size = len(view)
    limited = source.max_bytes is not None or source.max_requests is not None
    if limited and source.fileno() is not None:
        # Each read is counted before it is made.
        while step(source, scan, 0):
            pass
        return
    if scan.waiting_for == MOOV:
        _waiting(source, scan, size)
    if not native.walks_files or source.fileno() is None or not _by_reads(source, size, scan):
        _by_mapping(source, view, scan)


def _waiting(source: Source, scan: Scan, size: int) -> None:
    """Pass a box whose header is known, by one read to where it stays; pages cost more."""
    need = scan.need
    scan.stop_at(scan.position, headers.DONE, b"")
    if need is not None and need.stop <= size and source.fileno() is not None:
        scan.feed(source.read(ByteRange(scan.position, need.stop)), scan.position)


def _by_reads(source: Source, size: int, scan: Scan) -> bool:
    """Two reads a fragment; False where the fragments turn out to be dense, after a few."""
    descriptor = source.fileno()
    assert descriptor is not None
    probe = PROBE_ROWS
    while True:
        met, kept, reads, count = native.walk_file(
            descriptor,
            scan.position,
            size,
            max_rows=MOST_ROWS,
            max_bytes=MAX_WHOLE_BOX,
            probe=probe,
            dense=DENSE,
            shapes=scan.shapes.programs,
            learn=scan.shapes.learner,
        )
        source.note_read(count, reads)
        scan.take_buffered(kept, met.top, met.shaped)
        head = b""
        if met.status not in (headers.DONE, headers.FULL, headers.DENSE) and met.position < size:
            head = source.read_up_to(ByteRange(met.position, min(met.position + 16, size)))
        scan.stop_at(met.position, met.status, head)
        if met.status == headers.DENSE:
            return False
        if met.status != headers.FULL:
            _rest(source, size, scan, met.status)
            return True
        probe = 0


def _by_mapping(source: Source, view: memoryview, scan: Scan) -> None:
    while True:
        shapes = scan.shapes
        met = native.walk(
            view, scan.position, STRETCH, shapes=shapes.programs, learn=shapes.learner
        )
        before = scan.box_bytes
        scan.take(view, met)
        source.note_read(scan.box_bytes - before)
        source.passed(min(met.position, len(view)))
        scan.stop_at(met.position, met.status, view[met.position : met.position + 16])
        if met.status != headers.FULL:
            _rest(source, len(view), scan, met.status)
            return


def _rest(source: Source, size: int, scan: Scan, status: int) -> None:
    """Give the scan the start of a box that the file does not hold whole, if it wants it."""
    need = scan.need
    if status in (headers.PARTIAL, headers.TO_END) and need is not None and need.start < size:
        scan.feed(source.read(ByteRange(need.start, min(need.stop, size))), need.start)


def read_all(source: Source, scan: Scan) -> None:
    """Hop through a source by reads, as few and as small as its fragments allow."""
    if source.remote:
        read_remote(source, scan)
    else:
        ahead = READ_AHEAD
        while step(source, scan, ahead):
            ahead = _guess(scan)
    if source.size is None:
        need = scan.need
        source.size = _end_of(source, scan.fed, None if need is None else need.start)


def _end_of(source: Source, low: int, high: int | None) -> int:
    """How long a source is that does not tell it: halved until it is known.

    Args:
        low: up to here bytes are there.
        high: here there is none; None: not known either.
    """
    ahead = READ_AHEAD
    while high is None:
        if source.read_up_to(ByteRange(low + ahead, low + ahead + 1)):
            low += ahead + 1
            ahead *= 2
        else:
            high = low + ahead
    # Most likely it ends where the skipped bytes end.
    at = high - 1
    while low < high and source.size is None:
        if source.read_up_to(ByteRange(at, at + 1)):
            low = at + 1
        else:
            high = at
        at = (low + high) // 2
    return low if source.size is None else source.size


def _guess(scan: Scan) -> int:
    """As much as the last fragment's moof took, and the headers around it."""
    size = scan.last_moof_size
    return size + 64 if size else READ_AHEAD
