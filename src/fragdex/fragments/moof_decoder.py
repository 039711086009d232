"""Moofs decoded for their samples: once for all tracks in them, which ask one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from fragdex.boxes.fragments import DEFAULT_BASE_IS_MOOF
from fragdex.fragments import hop
from fragdex.fragments.batch import decode
from fragdex.fragments.positions import chained, run_starts
from fragdex.fragments.table import NULL, Int64
from fragdex.fragments.track_info import SampleDefaults

__all__ = ["DecodedMoofs", "MoofBytes", "MoofDecoder"]

MoofBytes = Callable[[Int64], tuple[bytes, Int64]]
"""Offsets of moofs in the file → their bytes joined, and the size of each."""

FEW_BYTES = 1 << 16
"""Moofs of so many bytes are kept decoded: a clip asks for the same rows several times."""
MANY_TRACKS = 8
"""Moofs of more tracks are kept decoded, however large: each track would decode all others."""


class DecodedMoofs:
    """What some moofs say of all their tracks.

    Args:
        joined: their bytes.
        offsets: of each in the file.
        defaults: track_ID → what its trex says.

    Attributes:
        size: bytes of the moofs.
        trafs, runs, details: what they say.
        unwritten: samples of each run that have no row of their own.
    """

    def __init__(
        self, joined: bytes, offsets: Int64, defaults: Mapping[int, SampleDefaults]
    ) -> None:
        buffer = memoryview(joined)
        met = hop.walk(buffer, 0, 1 << 62, inside=True)
        batch = decode(buffer, met.top, met.inner, 0, defaults, details=True)
        assert batch.details is not None
        self.size, self.offsets = len(joined), offsets
        self.trafs, self.runs, self.details = batch.trafs, batch.runs, batch.details
        self.unwritten = np.zeros(len(self.runs), np.int64)
        for group in self.details.groups:
            if not group.stride:
                self.unwritten[group.rows] = self.details.count[group.rows]
        self._trafs = _ByTrack(self.trafs.track)
        self._runs = _ByTrack(self.trafs.track[self.runs.traf])
        self._starts: tuple[bytes, Int64] | None = None

    @property
    def tracks(self) -> int:
        """How many tracks have a traf in them."""
        return self._trafs.count

    def of(self, track: int) -> tuple[Int64, Int64]:
        """The rows of `trafs` and of `runs` of one track, rising."""
        return self._trafs.rows(track), self._runs.rows(track)

    def starts(self, repaired: npt.NDArray[np.bool_]) -> Int64:
        """Where each run starts in the file.

        Args:
            repaired: of each moof: it is the base of all its trafs, whatever they say.

        Raises:
            LimitExceeded: the samples take more bytes than any file has.
        """
        known = repaired.tobytes()
        if self._starts is None or self._starts[0] != known:
            trafs = self.trafs
            relative, end = run_starts(self.runs, trafs)
            # Of all tracks, since an implicit base follows the traf before it.
            moof = self.offsets[trafs.moof]
            named = trafs.base != NULL
            first = np.diff(trafs.moof, prepend=-1) != 0
            from_moof = first | ((trafs.flags & DEFAULT_BASE_IS_MOOF) != 0)
            base = chained(named | from_moof, np.where(named, trafs.base, moof), end)
            base = np.where(repaired[trafs.moof], moof, base)
            self._starts = known, base[self.runs.traf] + relative
        return self._starts[1]


class _ByTrack:
    """Rows by the track that each is of."""

    def __init__(self, track: Int64) -> None:
        self._order = np.argsort(track, kind="stable")
        self._sorted = track[self._order]
        self.count = int(np.count_nonzero(np.diff(self._sorted))) + bool(len(track))

    def rows(self, track: int) -> Int64:
        first, stop = np.searchsorted(self._sorted, [track, track + 1]).tolist()
        return self._order[first:stop]


class MoofDecoder:
    """Decodes moofs, and keeps the last ones where others are likely to ask for them.

    Pickled, it takes along what it reads from, and nothing that it has decoded.
    """

    def __init__(self, moof_bytes: MoofBytes) -> None:
        self._moof_bytes = moof_bytes
        self._last: tuple[bytes, Mapping[int, SampleDefaults], DecodedMoofs] | None = None

    def __call__(self, offsets: Int64, defaults: Mapping[int, SampleDefaults]) -> DecodedMoofs:
        """The moofs at these offsets of the file, which must rise."""
        asked, last = offsets.tobytes(), self._last
        if last is not None and last[0] == asked and last[1] is defaults:
            return last[2]
        decoded = DecodedMoofs(self._moof_bytes(offsets)[0], offsets, defaults)
        keep = decoded.size <= FEW_BYTES or decoded.tracks > MANY_TRACKS
        self._last = (asked, defaults, decoded) if keep else None
        return decoded

    def __reduce__(self) -> tuple[object, ...]:
        return MoofDecoder, (self._moof_bytes,)
