"""Reading a file's boxes in one pass, sans-IO: pieces in, fragments out.

`Scan.feed` takes pieces of any size and keeps header, moov, moof, sidx and mfra bytes, never media
bytes. `Scan.need` names the bytes it waits for, so that a reader that can jump may skip the rest.
Whole, piece by piece or cut off anywhere: what is complete gives the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fragdex.boxes import Box
from fragdex.byterange import ByteRange
from fragdex.errors import FormatError, LimitExceeded, MalformedBox
from fragdex.fragments import headers, hop
from fragdex.fragments.findings import Findings
from fragdex.fragments.headers import Boxes, Fits, Rows, Walked, code
from fragdex.fragments.moov import read_moov
from fragdex.fragments.resolve import TrackState
from fragdex.fragments.sample_runs import names_samples
from fragdex.fragments.sections import Section, read_batch
from fragdex.fragments.shapes import Shapes
from fragdex.fragments.table import Int64
from fragdex.fragments.tracks import Movie, SampleDefaults, read_movie, sample_tables

__all__ = ["Captured", "Scan"]

MAX_WHOLE_BOX = 1 << 28
"""Bytes of one moov, moof, sidx or mfra; a day of one-frame fragments has a moov under 64 MiB."""
MAX_TOP_LEVEL = 1 << 24
"""Boxes at the top level; a day of one-frame fragments at 50 a second has half of that."""

MAX_CAPTURED = 1 << 18
"""ftyp, moov, sidx and mfra boxes; a day of one-second segments with a sidx each is below it."""

FTYP, MOOV, MOOF, MDAT, META, SIDX, MFRA = map(
    code, ("ftyp", "moov", "moof", "mdat", "meta", "sidx", "mfra")
)
_WHOLE = frozenset(np.frombuffer(headers.WHOLE, ">u4").tolist())
MEDIA_TYPES = frozenset(
    code(name)
    for name in (
        *("ftyp", "styp", "moov", "moof", "mdat", "sidx", "mfra", "free", "skip"),
        *("emsg", "prft", "meta", "uuid", "pdin", "wide"),
    )
)
"""Boxes that stand at the top level of files in the field; a file without any is no MP4."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A top-level box that was kept whole: ftyp, moov, sidx or mfra."""

    offset: int
    type: int
    data: bytes


@dataclass(slots=True)
class _Pending:
    top: Rows
    buffer: memoryview
    moofs: Boxes
    first: int
    section: Section


class Scan:
    r"""One pass over a file, or over the part of it from `start` on.

    Args:
        start: position of the first box.
        defaults: track_ID → trex of an initialization segment that is known beforehand.
        states: track_ID → where tracks go on that are known beforehand.

    Attributes:
        position: of the next box header that is not read yet.
        captured: ftyp, moov, sidx and mfra boxes, in file order.
        movies: each moov as it was captured, parsed, and its values.
        sections: fragments, grouped by the moov that governs them.
        shapes: of the fragments, as far as they are known.
        size: of the file, where it is known: memory is reserved by it, and a box too large to be
            kept is refused at once, if the file holds all of it.
        findings: odd things met on the way.
        stopped: the error at which the pass had to stop, or None.

    >>> scan = Scan()
    >>> scan.feed(b"\0\0\0\x08free")
    >>> scan.position
    8
    """

    def __init__(
        self,
        start: int = 0,
        defaults: Mapping[int, SampleDefaults] | None = None,
        states: dict[int, TrackState] | None = None,
    ) -> None:
        self.position = start
        self.findings = Findings()
        self.shapes = Shapes()
        self.size: int | None = None
        self.captured: list[Captured] = []
        self.sections = [Section(-1, states or {})]
        self.stopped: FormatError | None = None
        self.to_end: tuple[int, int] | None = None
        self.damaged: list[int] = []
        self.damaged_tracks: list[FormatError] = []
        self._defaults = defaults
        self._carry = bytearray()
        self._too_large: tuple[int, LimitExceeded] | None = None
        self._want = 8
        self._fed = start
        self._pending: list[_Pending] = []
        self._top: list[Rows] = []
        self._top_count = 0
        self._moofs: list[tuple[Int64, Int64]] = []
        self._moof_count = 0
        self.movies: list[tuple[Captured, Box, Movie]] = []
        self._blobs: list[tuple[memoryview, Int64]] = []

    @property
    def need(self) -> ByteRange | None:
        """The bytes without which nothing goes on; None where the pass is over."""
        over = self.stopped is not None or self.cut_off
        if over or (self.to_end and not _kept(self.to_end[1])):
            return None
        return ByteRange(self.position + len(self._carry), self.position + self._want)

    def feed(self, data: bytes | bytearray | memoryview, offset: int | None = None) -> None:
        """Take a piece of the file.

        Args:
            data: bytes in any amount.
            offset: their place in the file; None: directly behind the piece before. It may lie
                before what is needed (bytes known already are passed over), never behind.

        Raises:
            ValueError: bytes between the needed ones and this piece are missing.
            LimitExceeded: a box to keep is larger than a named limit.
        """
        view = memoryview(data).cast("B")
        at = self._fed if offset is None else offset
        self._fed = at + len(view)
        self.refuse_the_large(self._fed)
        wanted = self.position + len(self._carry)
        if at > wanted and self.need is not None:
            raise ValueError(f"bytes {wanted} to {at} are missing")
        view = view[max(0, wanted - at) :]
        while len(view) and self.need is not None:
            piece = view
            if self._carry:
                taken = view[: self._want - len(self._carry)]
                self._carry += taken
                view = view[len(taken) :]
                if len(self._carry) < self._want:
                    return
                piece = memoryview(bytes(self._carry))
                self._carry.clear()
                reached = self._pass(piece)
                view = view[max(0, reached - len(piece)) :]
            else:
                reached = self._pass(piece)
                view = view[len(view) :]
            self._carry[:] = piece[reached : reached + 16] if self.cut_off else piece[reached:]

    def _pass(self, piece: memoryview) -> int:
        """Pass the boxes of a piece that begins at `position`; what stays waits for `_want` bytes.

        Returns how far it came; behind the piece where a box that is not kept reaches out of it.
        """
        begin, at = self.position, 0
        while True:
            met = hop.walk(piece, at)
            at = met.position
            self._take_piece(piece, met, begin)
            self.position = begin + at
            if met.status != headers.FULL:
                self.stand(self.position, met.status, piece[at : at + 16])
                return at

    def stand(self, position: int, status: int, head: memoryview | bytes) -> None:
        """Say where a walk stopped and why; `head` is what is there of the next header."""
        self.position = position
        self._want = 8
        # Bytes that were kept of a box belong to a walk that this one replaces.
        self._carry.clear()
        if status == headers.MALFORMED:
            self._stop_at(head)
        elif status in (headers.PARTIAL, headers.TO_END):
            self._want_more(head, status)

    def _want_more(self, head: memoryview | bytes, status: int) -> None:
        if len(head) < 8:
            self._want = 8
            return
        size, kind = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:8], "big")
        if status == headers.TO_END:
            self.to_end = (self.position, kind)
            self._want = MAX_WHOLE_BOX
            return
        if size == 1:
            if len(head) < 16:
                self._want = 16
                return
            size = int.from_bytes(head[8:16], "big")
        if size > MAX_WHOLE_BOX:
            error = LimitExceeded(
                "a box that must be kept is too large",
                path=kind.to_bytes(4, "big").decode("latin-1"),
                offset=self.position,
                expected=f"at most {MAX_WHOLE_BOX} bytes",
                found=size,
            )
            self._too_large = self.position + size, error
            self._carry += head
            if self.size is not None:
                self.refuse_the_large(self.size)
            return
        self._want = size

    @property
    def cut_off(self) -> bool:
        """Whether the pass is over at a box too large to be kept, as far as the file is known."""
        return self._too_large is not None

    def refuse_the_large(self, size: int) -> None:
        """Raise where a box too large to be kept is whole in a file of so many bytes.

        Where the file ends before, it is cut off as any other box.
        """
        if self._too_large is not None and self._too_large[0] <= size:
            raise self._too_large[1]

    def _stop_at(self, head: memoryview | bytes) -> None:
        size = int.from_bytes(head[:4], "big")
        self.stopped = MalformedBox(
            "a box is smaller than its own header",
            path=bytes(head[4:8]).decode("latin-1"),
            offset=self.position,
            expected="a size of at least 8 bytes",
            found=size,
        )

    def _take_piece(self, view: memoryview, met: Walked, base: int) -> None:
        """Keep the whole boxes of a piece that will not stay."""
        whole = met.top["whole"]
        offsets, sizes = met.top["offset"][whole], met.top["size"][whole]
        kept = _all_of(view, sizes) or hop.join(view, offsets, sizes)
        self.take_kept(kept, _moved(met.top, base))

    def take_kept(self, kept: bytes | bytearray, top: Rows, fits: Fits | None = None) -> None:
        """Take rows with places in the file, and the bytes of their whole boxes joined."""
        whole = top["whole"]
        offsets, sizes = top["offset"][whole], top["size"][whole]
        places = np.cumsum(sizes) - sizes
        self._split(memoryview(kept).toreadonly(), top, Boxes(places, sizes, offsets, fits))

    def take(self, view: memoryview, met: Walked) -> None:
        """Take what a walk over the whole file met; its bytes stay readable in `view`."""
        whole = met.top["whole"]
        offsets = met.top["offset"][whole]
        self._split(view, met.top, Boxes(offsets, met.top["size"][whole], offsets, met.fits))

    def _note_top(self, top: Rows) -> None:
        self._top.append(top)
        self._top_count += len(top)
        if self._top_count > MAX_TOP_LEVEL:
            raise LimitExceeded(
                "the file has too many boxes",
                offset=int(top["offset"][0]),
                expected=f"at most {MAX_TOP_LEVEL}",
                found=f"more than {self._top_count}",
            )

    def _split(self, buffer: memoryview, top: Rows, whole: Boxes) -> None:
        """Hand on captured boxes, and the fragments between one moov and the next.

        Args:
            buffer: holds the whole boxes.
            top: rows of all top-level boxes, places in the file.
            whole: those of them that are kept.
        """
        if not len(top):
            return
        self._note_top(top)
        types = top["type"][top["whole"]]
        is_moof = types == MOOF
        start = 0
        for index in np.flatnonzero(~is_moof).tolist():
            at = int(whole.places[index])
            data = _all_of(buffer, whole.sizes) or bytes(buffer[at : at + int(whole.sizes[index])])
            captured = Captured(int(whole.offsets[index]), int(types[index]), data)
            self._capture(captured)
            if captured.type == MOOV:
                split = int(np.searchsorted(top["offset"], captured.offset))
                before = start + np.flatnonzero(is_moof[start:index])
                self._fragments(buffer, top[:split], whole.some(before))
                # Shapes were counted through; behind a moov they are looked for again.
                start, top, whole = index, top[split:], whole._replace(fits=None)
                self._begin(captured)
        if start or not is_moof.all():
            whole = whole.some(start + np.flatnonzero(is_moof[start:]), kept=whole.fits)
        self._fragments(buffer, top, whole)

    def _capture(self, captured: Captured) -> None:
        self.captured.append(captured)
        if len(self.captured) > MAX_CAPTURED:
            raise LimitExceeded(
                "the file has too many boxes to keep",
                path=captured.type.to_bytes(4, "big").decode("latin-1"),
                offset=captured.offset,
                expected=f"at most {MAX_CAPTURED}",
                found=f"more than {MAX_CAPTURED}",
            )

    def _begin(self, moov: Captured) -> None:
        """A moov: fragments behind it are read with its defaults."""
        box, errors, lost = read_moov(moov.data, moov.offset, self.findings)
        self.damaged_tracks += errors
        movie = read_movie(box)
        stbls = {track: stbl for track, stbl in sample_tables(box).items() if track not in lost}
        # Where the moov names samples too, those come first; the end of the file sorts it out.
        hybrid = any(names_samples(stbl) for stbl in stbls.values())
        self.sections.append(Section(len(self.movies), deferred=hybrid, stbls=stbls))
        self.movies.append((moov, box, movie))
        self._defaults = _defaults_of(movie)

    def _fragments(self, buffer: memoryview, top: Rows, moofs: Boxes) -> None:
        """Hand on the moofs of a stretch."""
        section = self.sections[-1]
        count = len(moofs.places)
        if not count:
            section.add(top, None, self.findings)
            return
        self._moofs.append((moofs.offsets, moofs.sizes))
        self._blobs.append((buffer, moofs.places))
        pending = _Pending(top, buffer, moofs, self._moof_count, section)
        self._moof_count += count
        if self._defaults is None:
            # The moov may still come; its defaults are needed to read any fragment.
            section.deferred = True
            self._pending.append(pending)
        else:
            self._decode(pending, self._defaults)

    def settle(self) -> None:
        """Read the fragments that waited for a moov; called once the file has ended."""
        defaults = _defaults_of(self.movies[0][2]) if self.movies else {}
        for pending in self._pending:
            self._decode(pending, defaults)
        self._pending.clear()

    def _decode(self, one: _Pending, defaults: Mapping[int, SampleDefaults]) -> None:
        places, sizes, _, fits = one.moofs
        batch = read_batch(one.buffer, places, sizes, one.first, defaults, self.shapes, fits)
        if self.size:
            one.section.done = min(1.0, one.top["offset"][-1] / self.size)
        one.section.add(one.top, batch, self.findings)
        if batch.damaged.any():
            self.damaged.extend((np.flatnonzero(batch.damaged) + one.first).tolist())

    def tops(self) -> list[Rows]:
        """Rows of every top-level box that was passed, with places in the file, in file order."""
        return self._top

    def moofs(self) -> tuple[Int64, Int64]:
        """Offset in the file and size of every moof."""
        if not self._moofs:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if len(self._moofs) > 1:
            self._moofs = [tuple(np.concatenate(c) for c in zip(*self._moofs, strict=True))]  # type: ignore[list-item]
        return self._moofs[0]

    @property
    def moof_count(self) -> int:
        """Fragments that were met."""
        return self._moof_count

    def close_last(self, size: int) -> None:
        """Give the last box, whose size of 0 means "to the end", the size that it has."""
        if self.to_end is not None:
            row = np.zeros(1, headers.ROW)
            row["offset"], row["type"] = self.to_end
            row["size"], row["header"] = size - self.to_end[0], 8
            self._note_top(row)
            self.sections[-1].add(row, None, self.findings)

    def moof_bytes(self) -> list[tuple[memoryview, Int64]]:
        """Buffers and the places of the moofs in them, in file order."""
        return self._blobs

    @property
    def fed(self) -> int:
        """Where the last piece ended."""
        return self._fed

    @property
    def waiting_for(self) -> int:
        """Type of the box that is not whole yet, or 0."""
        return int.from_bytes(self._carry[4:8], "big") if len(self._carry) >= 8 else 0

    @property
    def carried(self) -> int:
        """Bytes of a box that is not whole yet."""
        return len(self._carry)


def _all_of(buffer: memoryview, sizes: Int64) -> bytes | None:
    """What a buffer looks into, where that is bytes of one box alone: they need not be copied."""
    read = buffer.obj
    alone = len(sizes) == 1 and int(sizes[0]) == len(buffer)
    return read if alone and type(read) is bytes and len(read) == len(buffer) else None


def _moved(rows: Rows, by: int) -> Rows:
    if not by or not len(rows):
        return rows
    rows = rows.copy()
    rows["offset"] += by
    return rows


def _kept(kind: int) -> bool:
    return kind in _WHOLE


def _defaults_of(movie: Movie) -> dict[int, SampleDefaults]:
    return {track.id: track.defaults for track in movie.tracks if track.defaults is not None}
