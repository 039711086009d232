"""Reading a file's boxes in one pass, sans-IO: pieces in, fragments out.

`Scan.feed` takes pieces of any size and keeps header, moov, moof, sidx and mfra bytes, never media
bytes. `Scan.need` names the bytes it waits for, so that a reader that can jump may skip the rest.
Whole, piece by piece or cut off anywhere: what is complete gives the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fragdex.boxes import Box, parse_box
from fragdex.byterange import ByteRange
from fragdex.errors import FormatError, LimitExceeded, MalformedBox
from fragdex.fragments import hop
from fragdex.fragments.batch import Batch, decode
from fragdex.fragments.hop import code
from fragdex.fragments.table import Int64
from fragdex.fragments.tracks import Movie, SampleDefaults, read_movie

__all__ = ["Captured", "Scan", "Section"]

MAX_WHOLE_BOX = 1 << 28
"""Bytes of one moov, moof, sidx or mfra; a day of one-frame fragments has a moov under 64 MiB."""
MAX_TOP_LEVEL = 1 << 24
"""Boxes at the top level; a day of one-frame fragments at 50 a second has half of that."""

FTYP, MOOV, MOOF, MDAT, SIDX, MFRA = map(code, ("ftyp", "moov", "moof", "mdat", "sidx", "mfra"))
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
class Section:
    """The fragments that one moov governs.

    Attributes:
        moov: number of the moov in the file, or -1 where none came before.
        batches: what its fragments say, in file order.
    """

    moov: int
    batches: list[Batch] = field(default_factory=list)


@dataclass(slots=True)
class _Pending:
    buffer: memoryview
    rows: npt.NDArray[np.void]
    first: int
    section: Section


class Scan:
    r"""One pass over a file, or over the part of it from `start` on.

    Args:
        start: position of the first box.
        defaults: track_ID → trex of an initialization segment that is known beforehand.

    Attributes:
        position: of the next box header that is not read yet.
        captured: ftyp, moov, sidx and mfra boxes, in file order.
        movies: each moov as it was captured, parsed, and its values.
        sections: fragments, grouped by the moov that governs them.
        stopped: the error at which the pass had to stop, or None.

    >>> scan = Scan()
    >>> scan.feed(b"\0\0\0\x08free")
    >>> scan.position
    8
    """

    def __init__(
        self, start: int = 0, defaults: Mapping[int, SampleDefaults] | None = None
    ) -> None:
        self.position = start
        self.captured: list[Captured] = []
        self.sections = [Section(-1)]
        self.stopped: FormatError | None = None
        self.to_end: tuple[int, int] | None = None
        self.damaged: list[int] = []
        self._defaults = defaults
        self._carry = bytearray()
        self._want = 8
        self._fed = start
        self._pending: list[_Pending] = []
        self._top: list[tuple[Int64, Int64, npt.NDArray[np.uint32]]] = []
        self._top_count = 0
        self._moofs: list[tuple[Int64, Int64]] = []
        self._moof_count = 0
        self.movies: list[tuple[Captured, Box, Movie]] = []
        self._blobs: list[tuple[memoryview, Int64]] = []

    @property
    def need(self) -> ByteRange | None:
        """The bytes without which nothing goes on; None where the pass is over."""
        if self.stopped is not None or (self.to_end and not _kept(self.to_end[1])):
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
            self._carry += piece[reached:]

    def _pass(self, piece: memoryview) -> int:
        """Pass the boxes of a piece that begins at `position`; what stays waits for `_want` bytes.

        Returns how far it came; behind the piece where a box that is not kept reaches out of it.
        """
        begin, at = self.position, 0
        while True:
            rows, at, status = hop.walk(piece, at)
            self._take_piece(piece, rows, begin)
            self.position = begin + at
            if status == hop.FULL:
                continue
            self.stand(self.position, status, piece[at : at + 16])
            return at

    def stand(self, position: int, status: int, head: memoryview | bytes) -> None:
        """Say where a walk stopped and why; `head` is what is there of the next header."""
        self.position = position
        self._want = 8
        if status == hop.MALFORMED:
            self._stop_at(head)
        elif status in (hop.PARTIAL, hop.TO_END):
            self._want_more(head, status)

    def _want_more(self, head: memoryview | bytes, status: int) -> None:
        if len(head) < 8:
            self._want = 8
            return
        size, kind = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:8], "big")
        if status == hop.TO_END:
            self.to_end = (self.position, kind)
            self._want = MAX_WHOLE_BOX
            return
        if size == 1:
            if len(head) < 16:
                self._want = 16
                return
            size = int.from_bytes(head[8:16], "big")
        if size > MAX_WHOLE_BOX:
            raise LimitExceeded(
                "a box that must be kept is too large",
                path=kind.to_bytes(4, "big").decode("latin-1"),
                offset=self.position,
                expected=f"at most {MAX_WHOLE_BOX} bytes",
                found=size,
            )
        self._want = size

    def _stop_at(self, head: memoryview | bytes) -> None:
        size = int.from_bytes(head[:4], "big")
        self.stopped = MalformedBox(
            "a box is smaller than its own header",
            path=bytes(head[4:8]).decode("latin-1"),
            offset=self.position,
            expected="a size of at least 8 bytes",
            found=size,
        )

    def _take_piece(self, view: memoryview, rows: npt.NDArray[np.void], base: int) -> None:
        """Keep the moofs of a piece that will not stay; positions become those in the copy."""
        kinds, depth = rows["type"], rows["depth"]
        if not (kinds == MOOF).any():
            self.take(view, rows, base)
            return
        whole = (depth == 0) & hop.is_whole(kinds)
        at, size = rows["offset"][whole], rows["size"][whole]
        self.take_kept(hop.join(view, at, size), self._moved(rows, base))

    @staticmethod
    def _moved(rows: npt.NDArray[np.void], by: int) -> npt.NDArray[np.void]:
        if not by:
            return rows
        rows = rows.copy()
        rows["offset"] += by
        return rows

    def take_kept(self, kept: bytes, rows: npt.NDArray[np.void]) -> None:
        """Take rows with places in the file, and the bytes of their whole boxes joined."""
        whole = (rows["depth"] == 0) & hop.is_whole(rows["type"])
        sizes = rows["size"][whole]
        places = np.cumsum(sizes) - sizes
        shift = np.concatenate([[0], rows["offset"][whole] - places])[np.cumsum(whole)]
        moved = rows.copy()
        moved["offset"] -= shift
        self._note_top(rows)
        self._split(memoryview(kept), moved, shift)

    def take(self, view: memoryview, rows: npt.NDArray[np.void], base: int) -> None:
        """Take rows whose boxes stay readable in `view`, which begins at `base` of the file."""
        self._note_top(self._moved(rows, base))
        self._split(view, rows, np.full(len(rows), base, np.int64))

    def _note_top(self, rows: npt.NDArray[np.void]) -> None:
        top = rows[rows["depth"] == 0]
        self._top.append((top["offset"].copy(), top["size"].copy(), top["type"].copy()))
        self._top_count += len(top)
        if self._top_count > MAX_TOP_LEVEL:
            raise LimitExceeded(
                "the file has too many boxes",
                offset=int(top["offset"][0]),
                expected=f"at most {MAX_TOP_LEVEL}",
                found=f"more than {self._top_count}",
            )

    def _split(self, buffer: memoryview, rows: npt.NDArray[np.void], shift: Int64) -> None:
        """Hand on captured boxes, and the fragments between one moov and the next."""
        kinds = rows["type"]
        special = np.flatnonzero(
            (rows["depth"] == 0)
            & ((kinds == FTYP) | (kinds == MOOV) | (kinds == SIDX) | (kinds == MFRA))
        )
        start = 0
        for index in special.tolist():
            row = rows[index]
            at = int(row["offset"])
            self.captured.append(
                Captured(
                    at + int(shift[index]),
                    int(row["type"]),
                    bytes(buffer[at : at + int(row["size"])]),
                )
            )
            if row["type"] == MOOV:
                self._fragments(buffer, rows[start:index], shift[start:index])
                start = index
                self._begin(self.captured[-1])
        self._fragments(buffer, rows[start:], shift[start:])

    def _begin(self, moov: Captured) -> None:
        """A moov: fragments behind it are read with its defaults."""
        box = parse_box(moov.data, offset=moov.offset)
        movie = read_movie(box)
        self.sections.append(Section(len(self.movies)))
        self.movies.append((moov, box, movie))
        self._defaults = _defaults_of(movie)

    def _fragments(self, buffer: memoryview, rows: npt.NDArray[np.void], shift: Int64) -> None:
        moof = (rows["depth"] == 0) & (rows["type"] == MOOF)
        if not moof.any():
            return
        at = rows["offset"][moof]
        self._moofs.append((at + shift[moof], rows["size"][moof].copy()))
        self._blobs.append((buffer, at))
        first = self._moof_count
        self._moof_count += len(at)
        pending = _Pending(buffer, rows, first, self.sections[-1])
        if self._defaults is None:
            # The moov may still come; its defaults are needed to read any fragment.
            self._pending.append(pending)
        else:
            self._decode(pending, self._defaults)

    def settle(self) -> None:
        """Read the fragments that waited for a moov; called once the file has ended."""
        defaults = _defaults_of(self.movies[0][2]) if self.movies else {}
        for pending in self._pending:
            self._decode(pending, defaults)
        self._pending.clear()

    def _decode(self, pending: _Pending, defaults: Mapping[int, SampleDefaults]) -> None:
        batch = decode(pending.buffer, pending.rows, pending.first, defaults)
        pending.section.batches.append(batch)
        if batch.damaged.any():
            self.damaged.extend((np.flatnonzero(batch.damaged) + pending.first).tolist())

    def top_level(self) -> tuple[Int64, Int64, npt.NDArray[np.uint32]]:
        """Offset, size and type of every top-level box that was passed, in file order."""
        if not self._top:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint32)
        if len(self._top) > 1:
            self._top = [tuple(np.concatenate(c) for c in zip(*self._top, strict=True))]  # type: ignore[list-item]
        return self._top[0]

    def moofs(self) -> tuple[Int64, Int64]:
        """Offset in the file and size of every moof."""
        if not self._moofs:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        if len(self._moofs) > 1:
            self._moofs = [tuple(np.concatenate(c) for c in zip(*self._moofs, strict=True))]  # type: ignore[list-item]
        return self._moofs[0]

    def moof_bytes(self) -> list[tuple[memoryview, Int64]]:
        """Buffers and the places of the moofs in them, in file order."""
        return self._blobs

    @property
    def waiting_for(self) -> int:
        """Type of the box that is not whole yet, or 0."""
        return int.from_bytes(self._carry[4:8], "big") if len(self._carry) >= 8 else 0

    @property
    def carried(self) -> int:
        """Bytes of a box that is not whole yet."""
        return len(self._carry)


def _kept(kind: int) -> bool:
    return kind.to_bytes(4, "big") in (hop.WHOLE[i : i + 4] for i in range(0, len(hop.WHOLE), 4))


def _defaults_of(movie: Movie) -> dict[int, SampleDefaults]:
    return {track.id: track.defaults for track in movie.tracks if track.defaults is not None}
