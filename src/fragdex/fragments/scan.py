"""Reading a file's boxes in one pass, sans-IO: pieces in, fragments out.

`Scan.feed` takes pieces of any size and keeps header, moov, moof, sidx and mfra bytes, never media
bytes. `Scan.need` names the bytes it waits for, so that a reader that can jump may skip the rest.
Whole, piece by piece or cut off anywhere: what is complete gives the same answer.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from fragdex.box_header import read_header
from fragdex.byterange import ByteRange
from fragdex.errors import FormatError, LimitExceeded, MalformedBox
from fragdex.fragments import headers, hop
from fragdex.fragments.headers import Rows, Walked, code
from fragdex.fragments.resolve import TrackState
from fragdex.fragments.scan_state import FTYP, MOOF, MOOV, Captured, Gathered, all_of
from fragdex.fragments.track_info import SampleDefaults

__all__ = ["FTYP", "MDAT", "META", "MOOF", "MOOV", "SIDX", "Captured", "Scan"]

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
"""Boxes that stand at the top level of files in the field; a file without any is no MP4."""


class Scan(Gathered):
    r"""One pass over a file, or over the part of it from `start` on.

    Args:
        start: position of the first box.
        defaults: track_ID → trex of an initialization segment that is known beforehand.
        states: track_ID → where tracks go on that are known beforehand.

    Attributes:
        position: of the next box header that is not read yet.
        size: of the file, where it is known: a box too large to be kept is refused at once, if
            the file holds all of it.
        stopped: the error at which the pass had to stop, or None.

    What it keeps on the way are the attributes of `Gathered`.

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
        super().__init__(defaults, states)
        self.position = start
        self.stopped: FormatError | None = None
        self.to_end: tuple[int, int] | None = None
        self._carry = bytearray()
        self._closed = False
        self._too_large: tuple[int, LimitExceeded] | None = None
        self._want = 8
        self._fed = start

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
        header = read_header(head)
        if header is None:
            self._want = 8
        elif status == headers.TO_END:
            self.to_end = (self.position, int.from_bytes(header.type, "big"))
            self._want = MAX_WHOLE_BOX
        elif header.form == "cut":
            self._want = 16
        elif header.size > MAX_WHOLE_BOX:
            error = LimitExceeded(
                "a box that must be read whole is too large",
                path=header.type.decode("latin-1"),
                offset=self.position,
                expected=f"at most {MAX_WHOLE_BOX} bytes",
                found=header.size,
            )
            self._too_large = self.position + header.size, error
            self._carry += head
            if self.size is not None:
                self.refuse_the_large(self.size)
        else:
            self._want = header.size

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
        kept = all_of(view, sizes) or hop.join(view, offsets, sizes)
        self.take_buffered(kept, _moved(met.top, base))

    def go_on_from(self, other: Scan) -> None:
        """Stand where another pass stands, which went on from here."""
        self.position = other.position
        self.stopped, self.to_end = other.stopped, other.to_end
        self._carry[:] = other._carry
        self._too_large, self._want = other._too_large, other._want
        self._fed = max(self._fed, other._fed)
        if self.size is not None:
            self.refuse_the_large(self.size)

    def close_last(self, size: int) -> None:
        """Give the last box, whose size of 0 means "to the end", the size that it has (4.2.2)."""
        if self.to_end is None or self._closed:
            return
        at, kind = self.to_end
        row = np.zeros(1, headers.ROW)
        row["offset"], row["type"] = at, kind
        row["size"], row["header"] = size - at, 8
        if kind == MDAT:
            self.note_top(row)
            self.sections[-1].add(row, None, self.findings)
        elif _kept(kind) and len(self._carry) == size - at:
            whole = bytearray(self._carry)
            whole[:4] = len(whole).to_bytes(4, "big")
            row["whole"] = True
            self._carry.clear()
            self.take_buffered(whole, row)
        self._closed = True

    @property
    def fed(self) -> int:
        """Where the last piece ended."""
        return self._fed

    @property
    def waiting_for(self) -> int:
        """Type of the box that is not whole yet, or 0."""
        header = read_header(self._carry)
        return int.from_bytes(header.type, "big") if header is not None else 0

    @property
    def carried(self) -> int:
        """Bytes of a box that is not whole yet."""
        return len(self._carry)


def _moved(rows: Rows, by: int) -> Rows:
    if not by or not len(rows):
        return rows
    rows = rows.copy()
    rows["offset"] += by
    return rows


def _kept(kind: int) -> bool:
    return kind in _WHOLE
