"""Which sample description samples use, where a track has several, as runs of samples.

Each traf names one in its tfhd, or that of the trex holds (8.8.7). Most tracks have a single one:
of others the moofs are read once more. Of samples that the moov names its stsc says it (8.7.4);
runs are kept where some descriptions are encrypted and others are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from fragdex.boxes import Box, find_all, parse
from fragdex.fragments.table import FragmentTable, Int64
from fragdex.fragments.track_info import DESCRIPTION, SampleGroup
from fragdex.indexing import native
from fragdex.indexing.batch import decode
from fragdex.indexing.moov import plain_init

if TYPE_CHECKING:
    from fragdex.indexing.samples import MoofBytes

AT_ONCE: Final = 8192
"""Moofs that are read together."""


def several_descriptions(moov: bytes, stbls: Mapping[int, Box]) -> dict[int, int]:
    """track_ID → the description that its trex names, of tracks that have more than one."""
    boxes = (
        parse(plain_init(moov))
        if moov and (not stbls or any(map(_several, stbls.values())))
        else ()
    )
    traks = {
        trak.find("tkhd").get("track_ID"): trak  # type: ignore[union-attr]
        for trak in find_all(boxes, "moov/trak")
        if trak.find("tkhd") is not None
    }
    trexs = {
        trex.get("track_ID"): int(trex.get("default_sample_description_index", 1))
        for trex in find_all(boxes, "moov/mvex/trex")
    }
    return {
        track: trexs.get(track, 1)
        for track, trak in traks.items()
        if _several(trak.find("mdia/minf/stbl"))
    }


def _several(stbl: Box | None) -> bool:
    return stbl is not None and len(stbl.find_all("stsd/*")) > 1


def descriptions_of_fragments(
    track: int, fragments: FragmentTable, moofs: MoofBytes, default: int, before: int
) -> tuple[SampleGroup, ...]:
    """Runs of samples that use one description.

    Args:
        before: samples of the track before them.
    """
    numbers: list[Int64] = []
    counts: list[Int64] = []
    for start in range(0, len(fragments), AT_ONCE):
        buffer = memoryview(moofs(fragments.moof_offset[start : start + AT_ONCE])[0])
        met = native.walk(buffer, 0, 1 << 62, inside=True)
        batch = decode(buffer, met.top, met.inner, 0, {}, details=True)
        assert batch.descriptions is not None
        mine = batch.trafs.track == track
        samples = np.bincount(batch.runs.traf, batch.runs.count, len(mine)).astype(np.int64)
        named = batch.descriptions[mine]
        numbers.append(np.where(named == 0, default, named))
        counts.append(samples[mine])
    if not numbers:
        return ()
    return _runs(np.concatenate(numbers), np.concatenate(counts), before)


def descriptions_of_tables(stbl: Box, samples: int) -> tuple[SampleGroup, ...]:
    """The same of so many samples that the moov names."""
    stsc = stbl.find("stsc")
    rows = None if stsc is None else stsc.get("entries")
    if rows is None or not len(rows) or not samples:
        return ()
    chunk, each, number = (
        rows[name].astype(np.int64)
        for name in ("first_chunk", "samples_per_chunk", "sample_description_index")
    )
    ends = np.append(np.cumsum(np.maximum(np.diff(chunk), 0) * each[:-1]), samples)
    return _runs(number, np.diff(np.clip(ends, 0, samples), prepend=0), 0)


def _runs(each: Int64, count: Int64, before: int) -> tuple[SampleGroup, ...]:
    """Runs out of how many samples use which description, one after the other."""
    each, count = each[count > 0], count[count > 0]
    heads = np.flatnonzero(np.diff(each, prepend=-1))
    starts = np.cumsum(count) - count + before
    edges = [*starts[heads].tolist(), before + int(count.sum())]
    return tuple(
        SampleGroup(DESCRIPTION, low, high - low, number)
        for low, high, number in zip(edges, edges[1:], each[heads].tolist(), strict=False)
    )
