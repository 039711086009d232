"""What a source says of the parts of samples (`subs`, ISO/IEC 14496-12, 8.7.7), for copies.

Each entry goes with its sample, out of sample tables and out of fragments, into either.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from fragdex.boxes import Box
from fragdex.fragments.table import Int64
from fragdex.muxing.between import Trafs, said_of
from fragdex.muxing.plan import PlannedTrack
from fragdex.record import record

_HEAD = 16
"""Bytes of a subs without entries."""


@record(frozen=True, slots=True, eq=False)
class Subsamples:
    """The subs of one version and flags, of the samples of a track.

    Attributes:
        version, flags: of the boxes.
        place: int64 number of each sample that has an entry, rising.
        entries: of each, its bytes without the sample_delta.
    """

    version: int
    flags: int
    place: Int64
    entries: tuple[bytes, ...]

    def rows(self, which: slice | Int64, count: int) -> Subsamples:
        """The same of some of so many samples."""
        numbers = np.arange(count)[which]
        return _placed(self.version, self.flags, self.place, self.entries, numbers)

    def sizes(self, low: Int64, high: Int64) -> Int64:
        """Bytes of the box of runs of samples (high exclusive); 0 where none has an entry."""
        behind = np.cumsum([0, *(4 + len(entry) for entry in self.entries)])
        first, last = (np.searchsorted(self.place, edge) for edge in (low, high))
        return np.where(last > first, _HEAD + behind[last] - behind[first], 0)

    def box(self, low: int, high: int) -> bytes:
        """The subs of samples `low` to `high` (exclusive); nothing where none has an entry."""
        first, last = np.searchsorted(self.place, [low, high]).tolist()
        if first == last:
            return b""
        deltas = np.diff(self.place[first:last], prepend=low - 1).tolist()
        pairs = zip(deltas, self.entries[first:last], strict=True)
        body = b"".join(struct.pack(">I", delta) + entry for delta, entry in pairs)
        head = self.version << 24 | self.flags
        return struct.pack(">I4sII", _HEAD + len(body), b"subs", head, last - first) + body


def with_subsamples(part: PlannedTrack, trak: Box | None, trafs: Trafs) -> PlannedTrack:
    """A track with what its source says of the parts of its samples; of made ones nothing."""
    if part.unit or not len(part):
        return part
    found: dict[tuple[int, int], dict[int, bytes]] = {}
    if trak is not None:
        for box in trak.find_all("mdia/minf/stbl/subs"):
            _take(box, 0, found)
    for first, _, boxes in said_of(part.track, trafs):
        for box in boxes:
            _take(box, first, found)
    if not found:
        return part
    said = []
    for (version, flags), entries in found.items():
        place = np.array(sorted(entries), np.int64)
        data = tuple(entries[n] for n in place.tolist())
        one = _placed(version, flags, place, data, part.source_numbers)
        kept = [n for n, at in enumerate(one.place.tolist()) if at not in part.made]
        if kept:
            told = tuple(one.entries[n] for n in kept)
            said.append(replace(one, place=one.place[kept], entries=told))
    return replace(part, subsamples=tuple(said))


def joined_subsamples(parts: Sequence[tuple[int, Sequence[Subsamples]]]) -> tuple[Subsamples, ...]:
    """Those of tracks one after the other."""
    joined: dict[tuple[int, int], Subsamples] = {}
    base = 0
    for count, several in parts:
        for one in several:
            own = replace(one, place=one.place + base)
            if before := joined.get(key := (one.version, one.flags)):
                place = np.concatenate([before.place, own.place])
                own = replace(own, place=place, entries=before.entries + own.entries)
            joined[key] = own
        base += count
    return tuple(joined.values())


def _placed(
    version: int, flags: int, place: Int64, entries: tuple[bytes, ...], numbers: Int64
) -> Subsamples:
    """Entries of numbered samples for those of a list of numbers, by the places there."""
    at = np.minimum(np.searchsorted(place, numbers), len(place) - 1)
    has = np.flatnonzero(place[at] == numbers) if len(place) else np.zeros(0, np.int64)
    return Subsamples(version, flags, has, tuple(entries[n] for n in at[has].tolist()))


def _take(box: Box, first: int, found: dict[tuple[int, int], dict[int, bytes]]) -> None:
    """Note the entries of a box whose samples count from `first`."""
    if box.opaque or box.type != "subs":
        return
    version, flags = int(box["version"]), int(box["flags"])
    known = found.setdefault((version, flags), {})
    form, number = (">IBBI" if version else ">HBBI"), first - 1
    names = ("subsample_size", "subsample_priority", "discardable", "codec_specific_parameters")
    for entry in box["entries"]:
        number += entry["sample_delta"]
        parts = entry["subsamples"]
        rows = (struct.pack(form, *(part[name] for name in names)) for part in parts)
        known[number] = struct.pack(">H", len(parts)) + b"".join(rows)
