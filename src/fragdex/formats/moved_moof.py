"""A moof at a new place: positions that count from the file become positions from the moof.

Players of MediaSource refuse declared base offsets, so a copy declares default-base-is-moof
instead (ISO/IEC 14496-12, 8.8.7). That changes the size of the moof, and its data offsets follow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from fragdex.boxes import Box, build
from fragdex.boxes.fragments import BASE_DATA_OFFSET, DATA_OFFSET, DEFAULT_BASE_IS_MOOF
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError

__all__ = ["Run", "moved_moof", "rebased", "runs_of"]

OFFSETS = range(-(1 << 31), 1 << 31)
"""What a data_offset can hold."""


class Run(NamedTuple):
    """Where the samples of a trun lie: its track, its first byte in the file, its bytes."""

    track: int
    start: int
    size: int


def rebased(moof: Box, stale: Collection[int]) -> Box:
    """The moof without declared base offsets; data offsets are still those of the source.

    Args:
        stale: track_IDs whose positions count from the moof, whatever is declared.

    >>> from fragdex.boxes import make_box
    >>> tfhd = make_box("tfhd", flags=1, track_ID=1, base_data_offset=800)
    >>> moof = make_box("moof", children=[make_box("traf", children=[tfhd])])
    >>> hex(rebased(moof, ()).find("traf/tfhd")["flags"])
    '0x20000'
    """
    children = [_rebased(child, stale) if child.type == "traf" else child for child in moof]
    if all(new is old for new, old in zip(children, moof, strict=True)):
        return moof
    return moof.replace(children=children)


def _rebased(traf: Box, stale: Collection[int]) -> Box:
    tfhd = traf.find("tfhd")
    if tfhd is None or tfhd.opaque:
        return traf
    if not (tfhd["flags"] & BASE_DATA_OFFSET or tfhd["track_ID"] in stale):
        return traf
    based = tfhd["flags"] & BASE_DATA_OFFSET
    flags = tfhd["flags"] & ~BASE_DATA_OFFSET | DEFAULT_BASE_IS_MOOF
    children: list[Box] = []
    first = bool(based)
    for child in traf:
        if child.type == "tfhd":
            child = child.replace(flags=flags)
        elif child.type == "trun":
            # A first run without a data_offset lies at the base that is no longer declared.
            if first and not child["flags"] & DATA_OFFSET:
                child = child.replace(flags=child["flags"] | DATA_OFFSET)
            first = False
        children.append(child)
    return traf.replace(children=children)


def moved_moof(
    old: Box,
    new: Box,
    to: int,
    moved: Callable[[int], int],
    stale: Collection[int],
    fragment: ByteRange | None = None,
) -> Box:
    """A moof with the data offsets and auxiliary offsets of its new place.

    Args:
        old: as parsed from the source, with its place there.
        new: the same after `rebased`; boxes may have been put into its trafs.
        to: its byte in the new file.
        moved: the new place of a byte of the source that is not in this moof.
        stale: as for `rebased`.
        fragment: bytes of the source from the moof to the end of its media data; auxiliary
            offsets that lie in it counted from the start of the file alone are meant so.

    Raises:
        BuildError: an offset does not fit into its field any more.
    """
    inside = _Inside(old, new)

    def place(position: int) -> int:
        return to + inside.of(position) if position in inside.range else moved(position)

    children: list[Box] = []
    first = True
    for before, after in zip(old, new, strict=True):
        if after.type == "traf":
            after = _placed(before, after, first, old.offset, to, place, stale, fragment)
            first = False
        children.append(after)
    return new.replace(children=children)


def _base(traf: Box, first: bool, moof: int, stale: Collection[int]) -> int | None:
    """What data offsets count from; None: the end of the data of the traf before (8.8.7.1)."""
    tfhd = traf.find("tfhd")
    if tfhd is None or tfhd.opaque:
        return None
    flags = tfhd["flags"]
    if tfhd["track_ID"] in stale:
        return moof
    if flags & BASE_DATA_OFFSET:
        return int(tfhd["base_data_offset"])
    return moof if first or flags & DEFAULT_BASE_IS_MOOF else None


def _placed(
    before: Box,
    after: Box,
    first: bool,
    moof: int,
    to: int,
    place: Callable[[int], int],
    stale: Collection[int],
    fragment: ByteRange | None,
) -> Box:
    base = _base(before, first, moof, stale)
    if base is None:
        return after
    offsets = [trun.get("data_offset", 0) for trun in before.find_all("trun")]
    children: list[Box] = []
    number = 0
    for child in after:
        if child.type == "trun":
            if child["flags"] & DATA_OFFSET:
                offset = place(base + offsets[number]) - to
                if offset not in OFFSETS:
                    raise BuildError(
                        "media data is too far from its moof",
                        path="moof/traf/trun",
                        offset=moof,
                        expected="a data_offset of 32 bits",
                        found=offset,
                    )
                child = child.replace(data_offset=offset)
            number += 1
        elif child.type == "saio" and not child.opaque and len(child["entries"]):
            child = _auxiliary(child, base, moof, to, place, fragment)
        children.append(child)
    return after.replace(children=children)


def _auxiliary(
    saio: Box,
    base: int,
    moof: int,
    to: int,
    place: Callable[[int], int],
    fragment: ByteRange | None,
) -> Box:
    """Auxiliary offsets (8.7.9): they count from the base of the traf, or from the file's start."""
    entries: Any = saio["entries"].copy()
    limit = 1 << (64 if saio["version"] else 32)
    for row, offset in enumerate(entries["offset"].tolist()):
        absolute = fragment is not None and offset in fragment and base + offset not in fragment
        new = place(offset) if absolute else place(base + offset) - to
        if not 0 <= new < limit:
            raise BuildError(
                "an auxiliary offset does not fit any more",
                path="moof/traf/saio",
                offset=moof,
                expected=f"0 to {limit - 1}",
                found=new,
            )
        entries["offset"][row] = new
    return saio.replace(entries=entries)


class _Inside:
    """Where the bytes of a moof go when boxes inside of it change their sizes."""

    def __init__(self, old: Box, new: Box) -> None:
        self.range = ByteRange(old.offset, old.offset + old.size)
        self._parts: list[tuple[int, int]] = []
        at = old.header_size
        for before, after in zip(old, new, strict=True):
            self._parts.append((before.offset, at))
            if after.type == "traf":
                inner, left = at + before.header_size, list(before)
                for child in after:
                    # A box that was put in pairs with none of the source.
                    if left and left[0].type == child.type:
                        self._parts.append((left.pop(0).offset, inner))
                    inner += len(build(child, parent="traf"))
            at += len(build(after, parent="moof"))

    def of(self, position: int) -> int:
        """Bytes from the start of the new moof."""
        start, at = max(
            (part for part in self._parts if part[0] <= position),
            default=(self.range.start, 0),
        )
        return at + position - start


def runs_of(
    moof: Box, at: int, default_sizes: Mapping[int, int], stale: Collection[int] = ()
) -> Iterator[Run]:
    """The runs of a moof that stands at byte `at`, by the rule (8.8.7.1, 8.8.8.1).

    Args:
        default_sizes: track_ID → default_sample_size of its trex.
        stale: as for `rebased`.

    >>> from fragdex.boxes import parse
    >>> from fragdex.testing import movie
    >>> moof = next(box for box in parse(movie(1)) if box.type == "moof")
    >>> [run.start == moof.stop + 8 for run in runs_of(moof, moof.offset, {})]
    [True]
    """
    end = at
    for number, traf in enumerate(moof.find_all("traf")):
        tfhd = traf.find("tfhd")
        base = _base(traf, number == 0, at, stale)
        end = base = end if base is None else base
        if tfhd is None or tfhd.opaque:
            continue
        track = tfhd["track_ID"]
        default = tfhd.get("default_sample_size", default_sizes.get(track, 0))
        for trun in traf.find_all("trun"):
            start = base + trun["data_offset"] if "data_offset" in trun else end
            samples = trun["samples"]
            names = samples.dtype.names or ()
            sized = "sample_size" in names
            size = int(samples["sample_size"].sum()) if sized else default * trun["sample_count"]
            end = start + size
            yield Run(track, start, size)
