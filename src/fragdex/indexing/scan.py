"""Reading a file's boxes in one pass, sans-IO: pieces in, fragments out.

`Scan.feed` takes pieces of any size and keeps header, moov, moof, sidx and mfra bytes, never media
bytes. `Scan.need` names the bytes it waits for, so that a reader that can jump may skip the rest.
Whole, piece by piece or cut off anywhere: what is complete gives the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fragdex.box_header import read_header
from fragdex.boxes import Box
from fragdex.boxes.limits import MAX_PERIODS
from fragdex.byterange import ByteRange
from fragdex.errors import FormatError, LimitExceeded, MalformedBox
from fragdex.fragments.findings import Findings
from fragdex.fragments.table import Int64
from fragdex.fragments.track_info import Movie, SampleDefaults
from fragdex.indexing import headers, native
from fragdex.indexing.fragment_batches import Section, read_batch
from fragdex.indexing.headers import NO_BOXES, Boxes, Kept, Rows, Shaped, Walked, code
from fragdex.indexing.moov import MAX_PLAIN, audit_tracks, plain_moov, read_moov, shortened_moov
from fragdex.indexing.movie import decoders, read_movie, sample_tables
from fragdex.indexing.progressive import names_samples
from fragdex.indexing.resolve import TrackState
from fragdex.indexing.shapes import Shapes
from fragdex.record import record

MAX_TOP_LEVEL = 1 << 24
"""Boxes at the top level; a day of one-frame fragments at 50 a second has half of that."""

MAX_CAPTURED = 1 << 18
"""ftyp, moov, sidx and mfra boxes; a day of one-second segments with a sidx each is below it."""

FTYP, MOOV, MOOF = map(code, ("ftyp", "moov", "moof"))


@record(frozen=True, slots=True)
class Captured:
    """A top-level box that was kept whole: ftyp, moov, sidx or mfra."""

    offset: int
    type: int
    data: bytes


@record(slots=True)
class _Pending:
    top: Rows
    buffer: memoryview
    moofs: Boxes
    first: int
    section: Section


class ScanState:
    """What a pass over a file has kept so far; media bytes are never among it.

    Args:
        defaults: track_ID → trex of an initialization segment that is known in advance.
        states: track_ID → where tracks continue that are known in advance.

    Attributes:
        captured: ftyp, moov, sidx and mfra boxes, in file order.
        brands: those of them that are ftyp.
        parts_clocks: whether a period begins where a clock begins again.
        movies: each moov as it was captured, and its values.
        moov: the first one and its place in the file, if it is neither compressed nor damaged.
        sections: fragments, grouped by the moov that governs them.
        shapes: of the fragments, as far as they are known.
        whole_bytes: of the boxes that were kept.
        box_bytes: of these, and of the headers of all others.
        moof_count: fragments that were met.
        damaged_tracks: why tracks of a moov cannot be read.
    """

    def __init__(
        self,
        defaults: Mapping[int, SampleDefaults] | None = None,
        states: dict[int, TrackState] | None = None,
    ) -> None:
        self.findings = Findings()
        self.shapes = Shapes()
        self.size: int | None = None
        self.captured: list[Captured] = []
        self.brands: list[Captured] = []
        self.parts_clocks = True
        self.movies: list[tuple[Captured, Movie]] = []
        self.moov: tuple[int, Box] | None = None
        self.sections = [Section(-1, states or {})]
        self.damaged: list[int] = []
        self.damaged_tracks: list[FormatError] = []
        self._govern(defaults)
        self._plain_room = MAX_PLAIN
        self._pending: list[_Pending] = []
        self._top: list[Rows] = []
        self._top_count = 0
        self.box_bytes = self.whole_bytes = 0
        self._moofs: list[tuple[Int64, Int64]] = []
        self.moof_count = 0
        self._blobs: list[tuple[memoryview, Int64]] = []

    def take_buffered(
        self, kept: bytes | bytearray, top: Rows, shaped: Shaped | None = None
    ) -> None:
        """Take rows with places in the file, and the bytes of their whole boxes joined."""
        whole = native.kept(top)
        places = np.cumsum(whole.sizes) - whole.sizes
        boxes = Boxes(places, whole.sizes, whole.offsets, shaped)
        self._split(memoryview(kept).toreadonly(), top, boxes, whole)

    def take(self, view: memoryview, met: Walked) -> None:
        """Take what a walk over the whole file met; its bytes stay readable in `view`."""
        whole = native.kept(met.top)
        boxes = Boxes(whole.offsets, whole.sizes, whole.offsets, met.shaped)
        self._split(view, met.top, boxes, whole)

    def note_top(self, top: Rows, whole: Kept) -> None:
        """Keep rows of top-level boxes; `whole`: those of them that are kept whole.

        Raises:
            LimitExceeded: the file has more than a named limit.
        """
        self._top.append(top)
        self._top_count += len(top)
        self.whole_bytes += whole.whole_bytes
        self.box_bytes += whole.whole_bytes + whole.header_bytes
        if self._top_count > MAX_TOP_LEVEL:
            raise LimitExceeded(
                "the file has too many boxes",
                offset=int(top["offset"][0]),
                expected=f"at most {MAX_TOP_LEVEL}",
                found=f"more than {self._top_count}",
            )

    def _split(self, buffer: memoryview, top: Rows, whole: Boxes, kept: Kept) -> None:
        """Hand on captured boxes, and the fragments between one moov and the next.

        Args:
            top: rows of all top-level boxes, places in the file.
            whole: those of them that are kept; kept: what else is known of them.
        """
        if not len(top):
            return
        self.note_top(top, kept)
        if not kept.others:
            self._fragments(buffer, top, whole)
            return
        is_moof = np.ones(len(whole.places), np.bool_)
        is_moof[[index for index, _ in kept.others]] = False

        def moofs(first: int, stop: int | None = None) -> Boxes:
            if len(kept.others) == len(is_moof):
                return NO_BOXES
            return whole.some(first + np.flatnonzero(is_moof[first:stop]), whole.shaped)

        start = 0
        for index, kind in kept.others:
            at = int(whole.places[index])
            data = all_of(buffer, whole.sizes) or bytes(buffer[at : at + int(whole.sizes[index])])
            captured = Captured(int(whole.offsets[index]), kind, data)
            self._capture(captured)
            if captured.type == MOOV:
                split = int(top["offset"].searchsorted(captured.offset))
                self._fragments(buffer, top[:split], moofs(start, index)._replace(shaped=None))
                # Fragments were counted through; after a moov they are read again.
                start, top, whole = index, top[split:], whole._replace(shaped=None)
                self._begin(captured)
        self._fragments(buffer, top, moofs(start))

    def _capture(self, captured: Captured) -> None:
        self.captured.append(captured)
        if captured.type == FTYP:
            self.brands.append(captured)
        if len(self.captured) > MAX_CAPTURED:
            raise LimitExceeded(
                "the file has too many boxes to keep",
                path=captured.type.to_bytes(4, "big").decode("latin-1"),
                offset=captured.offset,
                expected=f"at most {MAX_CAPTURED}",
                found=f"more than {MAX_CAPTURED}",
            )

    def _begin(self, moov: Captured) -> None:
        """A moov: fragments after it are read with its defaults."""
        if len(self.movies) >= MAX_PERIODS:
            raise LimitExceeded(
                "the file has too many movies",
                path="moov",
                offset=moov.offset,
                expected=f"at most {MAX_PERIODS}",
                found=f"more than {MAX_PERIODS}",
            )
        number = len(self.movies)
        if number and moov.data == self.movies[-1][0].data:
            # What stands between two moovs is governed by the first; this one says the same.
            before = self.sections[-1]
            self.sections.append(
                Section(
                    number,
                    deferred=True,
                    stbls=before.stbls,
                    decoders=before.decoders,
                    repeats=True,
                )
            )
            self.movies.append((replace(moov, data=self.movies[-1][0].data), self.movies[-1][1]))
            return
        data = self._plain(moov)
        box, errors, lost = read_moov(data, moov.offset, self.findings)
        self.damaged_tracks += errors
        if not number and not errors and data is moov.data:
            self.moov = moov.offset, box
        movie = read_movie(box, None if errors else data)
        lost |= audit_tracks(box, self.findings, lost)
        stbls = {track: stbl for track, stbl in sample_tables(box).items() if track not in lost}
        # Where the moov names samples too, those come first; the end of the file sorts it out.
        hybrid = any(names_samples(stbl) for stbl in stbls.values())
        section = Section(number, deferred=hybrid, stbls=stbls, decoders=decoders(box, data))
        before = self.sections[-1]
        if number and not hybrid and section.decoders == before.decoders:
            section.repeats = _timing(movie) == _timing(self.movies[-1][1])
            section.deferred = section.repeats
        self.sections.append(section)
        self.movies.append((moov, movie))
        self._govern(_defaults_of(movie))

    def _govern(self, defaults: Mapping[int, SampleDefaults] | None) -> None:
        """What comes is read with these defaults; None: they are not known yet."""
        self._defaults = defaults
        if defaults is not None:
            self.shapes.use(defaults)

    def _plain(self, moov: Captured) -> bytes:
        """The bytes of a moov, which may be compressed."""
        try:
            plain = plain_moov(moov.data, offset=moov.offset, room=self._plain_room)
        except FormatError as error:
            self.damaged_tracks.append(error)
            self.findings.add(
                "compressed-moov",
                f"{error.message}; its tracks are not known",
                offset=error.offset,
                path=error.path,
            )
            return moov.data
        self._plain_room -= 0 if plain is moov.data else len(plain)
        return plain

    def _fragments(self, buffer: memoryview, top: Rows, moofs: Boxes) -> None:
        """Hand on the moofs of a stretch."""
        section = self.sections[-1]
        count = len(moofs.places)
        if not count:
            section.add(top, None, self.findings)
            return
        self._moofs.append((moofs.offsets, moofs.sizes))
        self._blobs.append((buffer, moofs.places))
        pending = _Pending(top, buffer, moofs, self.moof_count, section)
        self.moof_count += count
        if self._defaults is None:
            # The moov may still come; its defaults are needed to read any fragment.
            section.deferred = True
            self._pending.append(pending)
        else:
            self._decode(pending, self._defaults)

    def settle(self) -> None:
        """Read the fragments that waited for a moov; called once the file has ended."""
        defaults = _defaults_of(self.movies[0][1]) if self.movies else {}
        for pending in self._pending:
            self._decode(pending, defaults)
        self._pending.clear()

    def _decode(self, one: _Pending, defaults: Mapping[int, SampleDefaults]) -> None:
        places, sizes, _, shaped = one.moofs
        batch = read_batch(one.buffer, places, sizes, one.first, defaults, self.shapes, shaped)
        one.section.add(one.top, batch, self.findings)
        if self.size:
            # What is settled next reaches as far as this.
            one.section.done = min(1.0, one.top["offset"][-1] / self.size)
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
    def last_moof_size(self) -> int:
        """Bytes of the last moof that was met, or 0."""
        return int(self._moofs[-1][1][-1]) if self._moofs else 0

    @property
    def last_moof(self) -> tuple[int, memoryview]:
        """Place in the file and bytes of the last moof that was met; there must be one."""
        (buffer, places), (offsets, sizes) = self._blobs[-1], self._moofs[-1]
        at = int(places[-1])
        return int(offsets[-1]), buffer[at : at + int(sizes[-1])]

    def moof_bytes(self) -> list[tuple[memoryview, Int64]]:
        """Buffers and the places of the moofs in them, in file order."""
        return self._blobs


def all_of(buffer: memoryview, sizes: Int64) -> bytes | None:
    """What a buffer looks into, where that is bytes of one box alone: they need not be copied."""
    read = buffer.obj
    alone = len(sizes) == 1 and int(sizes[0]) == len(buffer)
    return read if alone and type(read) is bytes and len(read) == len(buffer) else None


def _timing(movie: Movie) -> list[tuple[object, ...]]:
    """What else must agree for fragments after one moov to continue after another."""
    return [(t.id, t.defaults, t.shift(movie.timescale), t.rotation) for t in movie.tracks]


def _defaults_of(movie: Movie) -> dict[int, SampleDefaults]:
    return {track.id: track.defaults for track in movie.tracks if track.defaults is not None}


MAX_WHOLE_BOX = 1 << 28
"""Bytes of one moov, moof, sidx or mfra; a day of one-frame fragments has a moov under 64 MiB."""
MDAT, META, SIDX = map(code, ("mdat", "meta", "sidx"))
_WHOLE = frozenset(np.frombuffer(headers.WHOLE, ">u4").tolist())
MEDIA_TYPES = frozenset(
    code(name)
    for name in (
        *("ftyp", "styp", "moov", "moof", "mdat", "sidx", "mfra", "free", "skip"),
        *("emsg", "prft", "meta", "uuid", "pdin", "wide"),
    )
)
"""Boxes that stand at the top level of files in the field; a file without any is not an MP4."""


class Scan(ScanState):
    """One pass over a file, or over the part of it from `start` on.

    Args:
        start: position of the first box.
        defaults, states: as of `ScanState`, whose attributes it has, too.

    Attributes:
        position: of the next box header that is not read yet.
        size: of the file, where it is known: a box too large to be kept is refused at once, if
            the file holds all of it.
        fed: where the last piece ended.
        stopped: the error at which the pass had to stop, or None.
        cut_moov: place of a moov that the file ends in, as far as it was read; else None.
    """

    def __init__(
        self,
        start: int = 0,
        defaults: Mapping[int, SampleDefaults] | None = None,
        states: dict[int, TrackState] | None = None,
    ) -> None:
        super().__init__(defaults, states)
        self.position = start
        self.stopped: FormatError | None = None
        self.to_end: tuple[int, int] | None = None
        self.cut_moov: int | None = None
        self._carry = bytearray()
        self._closed = False
        self._too_large: tuple[int, LimitExceeded] | None = None
        self._want = 8
        self.fed = start

    @property
    def need(self) -> ByteRange | None:
        """The bytes without which nothing continues; None where the pass is over."""
        over = self.stopped is not None or self.cut_off
        if over or (self.to_end and not _kept(self.to_end[1])):
            return None
        return ByteRange(self.position + len(self._carry), self.position + self._want)

    def feed(self, data: bytes | bytearray | memoryview, offset: int | None = None) -> None:
        """Take a piece of the file.

        Args:
            data: bytes in any amount.
            offset: their place in the file; None: directly after the piece before. It may lie
                before what is needed (bytes known already are skipped), never after.

        Raises:
            ValueError: bytes between the needed ones and this piece are missing.
            LimitExceeded: a box to keep is larger than a named limit.
        """
        view = memoryview(data).cast("B")
        at = self.fed if offset is None else offset
        self.fed = at + len(view)
        self.refuse_the_large(self.fed)
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

        Returns how far it came; after the piece where a box that is not kept reaches out of it.
        """
        begin, at = self.position, 0
        while True:
            met = native.walk(piece, at)
            at = met.position
            whole = met.top["whole"]
            offsets, sizes = met.top["offset"][whole], met.top["size"][whole]
            kept = all_of(piece, sizes) or native.join(piece, offsets, sizes)
            rows = met.top
            if begin and len(rows):
                rows = rows.copy()
                rows["offset"] += begin
            self.take_buffered(kept, rows)
            self.position = begin + at
            if met.status != headers.FULL:
                self.stop_at(self.position, met.status, piece[at : at + 16])
                return at

    def stop_at(self, position: int, status: int, head: memoryview | bytes) -> None:
        """Say where a walk stopped and why; `head` is the available part of the next header."""
        self.position = position
        self._want = 8
        # Bytes that were kept of a box belong to a walk that this one replaces.
        self._carry.clear()
        header = read_header(head)
        if status == headers.MALFORMED:
            self.stopped = MalformedBox(
                "a box is smaller than its own header",
                path=bytes(head[4:8]).decode("latin-1"),
                offset=position,
                expected="a size of at least 8 bytes",
                found=int.from_bytes(head[:4], "big"),
            )
        elif status not in (headers.PARTIAL, headers.TO_END) or header is None:
            return
        elif status == headers.TO_END:
            self.to_end = (position, int.from_bytes(header.type, "big"))
            self._want = MAX_WHOLE_BOX
        elif header.form == "cut":
            self._want = 16
        elif header.size > MAX_WHOLE_BOX:
            error = LimitExceeded(
                "a box that must be read whole is too large",
                path=header.type.decode("latin-1"),
                offset=position,
                expected=f"at most {MAX_WHOLE_BOX} bytes",
                found=header.size,
            )
            self._too_large = position + header.size, error
            self._carry += head
            if self.size is not None:
                self.refuse_the_large(self.size)
        else:
            self._want = header.size

    def _take_cut_moov(self) -> None:
        """Take the complete boxes of a moov that the file ends in, after its media data."""
        is_moov = self.waiting_for == MOOV and not self.movies
        if not is_moov or not any((top["type"] == MDAT).any() for top in self.tops()):
            return  # there is nothing that it could describe
        whole = shortened_moov(bytes(self._carry))
        if whole is None:
            return
        row = np.zeros(1, headers.ROW)
        row["offset"], row["type"], row["whole"] = self.position, MOOV, True
        row["size"], row["header"] = len(whole), 8
        self.cut_moov = self.position
        self._carry.clear()
        self.take_buffered(whole, row)
        self.findings.add(
            "cut-moov",
            "the file ends inside the moov; its complete boxes are read",
            offset=self.cut_moov,
            path="moov",
        )

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

    def go_on_from(self, other: Scan) -> None:
        """Stand where another pass stands, which continued from here."""
        self.position = other.position
        self.stopped, self.to_end = other.stopped, other.to_end
        self._carry[:] = other._carry
        self._too_large, self._want = other._too_large, other._want
        self.fed = max(self.fed, other.fed)
        if self.size is not None:
            self.refuse_the_large(self.size)

    def close_last(self, size: int) -> None:
        """Give the last box, whose size of 0 means "to the end", the size that it has (4.2.2)."""
        if self.to_end is None and len(self._carry) == size - self.position:
            self._take_cut_moov()
        if self.to_end is None or self._closed:
            return
        at, kind = self.to_end
        row = np.zeros(1, headers.ROW)
        row["offset"], row["type"] = at, kind
        row["size"], row["header"] = size - at, 8
        if kind == MDAT:
            self.note_top(row, native.kept(row))
            self.sections[-1].add(row, None, self.findings)
        elif _kept(kind) and len(self._carry) == size - at:
            whole = bytearray(self._carry)
            whole[:4] = len(whole).to_bytes(4, "big")
            row["whole"] = True
            self._carry.clear()
            self.take_buffered(whole, row)
        self._closed = True

    def noise(self, size: int) -> int | None:
        """Where bytes begin that are not boxes, after the last one in a file of so many bytes.

        A type has letters that can be printed (4.2.2): where it has others, nothing was cut off.
        None: there are none, or the file has no movie before them.
        """
        if not (self.movies or self.moof_count):
            return None
        begin = None
        for top in reversed(self.tops()):
            odd = ~_printable(top["type"])
            # np.isin imports numpy.ma, which takes longer than all of this
            known = np.flatnonzero((top["type"][:, None] == _MEDIA_CODES).any(axis=1))
            after = (
                np.flatnonzero(odd)
                if not len(known)
                else known[-1] + np.flatnonzero(odd[known[-1] :])
            )
            if len(after):
                begin = int(top["offset"][after[0]])
            if len(known):
                break
        if begin is not None:
            return begin
        if self.position >= size or self.cut_moov is not None:
            return None
        if self.to_end is not None:
            return None if _printable(np.array([self.to_end[1]]))[0] else self.position
        head = bytes(self._carry[:8])
        if self.stopped is not None:
            head = bytes(4) + (self.stopped.path or "").encode("latin-1")
        if len(head) < 8:
            # Sizes below 16 MiB begin with zeros, up to three of them.
            is_noise = head[:1] > b"\0" or (len(head) >= 4 and not any(head[:4]))
            return self.position if is_noise else None
        return None if _printable(np.frombuffer(head, ">u4")[1:])[0] else self.position

    @property
    def waiting_for(self) -> int:
        """Type of the box that is not whole yet, or 0."""
        header = read_header(self._carry)
        return int.from_bytes(header.type, "big") if header is not None else 0

    @property
    def carried(self) -> int:
        """Bytes of a box that is not whole yet."""
        return len(self._carry)


_MEDIA_CODES = np.array(sorted(MEDIA_TYPES), np.uint32)


def _printable(types: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Which of these types have only letters that can be printed, and ©."""
    letters = types.astype(">u4").view(np.uint8).reshape(-1, 4)
    odd = (letters < 0x20) | ((letters > 0x7E) & (letters != 0xA9))
    return np.asarray(~odd.any(axis=1))


def _kept(kind: int) -> bool:
    return kind in _WHOLE
