"""Hypothesis strategies for whole indexes, small but of every shape that a form has to carry.

Tables are derived from drawn samples one by one, so that they can be held against a search over
all samples.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from fragdex.byterange import ByteRange
from fragdex.digest import Digest
from fragdex.fragments.findings import Finding
from fragdex.fragments.table import NULL, FragmentFlags, FragmentTable, SampleTable, SyncTable
from fragdex.fragments.track_info import Edit, Encryption, Movie, SampleDefaults, TrackInfo
from fragdex.seeking.model import (
    FileInfo,
    How,
    Index,
    Period,
    SampleGroup,
    Track,
)

texts = st.text(max_size=12)
codes = st.text("abcdefghijklmnopqrstuvwxyz0123456789 ©", min_size=4, max_size=4)
counts = st.integers(0, 2**40)


def edits() -> st.SearchStrategy[tuple[Edit, ...]]:
    """Edit lists: often none, empty edits in front of others.

    >>> from hypothesis import find
    >>> find(edits(), lambda found: len(found) == 1)[0].duration
    0
    """
    one = st.builds(
        Edit,
        duration=st.integers(0, 10_000),
        media_time=st.integers(-1, 10_000),
        rate=st.sampled_from([1.0, 0.0, 2.5]),
    )
    return st.lists(one, max_size=3).map(tuple)


@st.composite
def track_infos(draw: st.DrawFn, track_id: int = 1, *, timescale: int | None = None) -> TrackInfo:
    """What a moov could say of a track.

    >>> from hypothesis import Phase, find, settings
    >>> drawn = settings(phases=[Phase.generate])
    >>> find(track_infos(7), lambda info: True, settings=drawn).id
    7
    """
    kinds = [("video", "vide"), ("audio", "soun"), ("text", "text"), ("metadata", "meta")]
    kind, handler = draw(st.sampled_from(kinds))
    picture = kind == "video"
    size = st.integers(1, 8192)
    return TrackInfo(
        track_id,
        handler,
        kind,
        draw(st.sampled_from([1, 25, 1000, 44_100, 90_000])) if timescale is None else timescale,
        draw(codes),
        draw(st.none() | st.sampled_from(["avc1.64001f", "mp4a.40.2", "wvtt"])),
        draw(counts),
        draw(size) if picture else None,
        draw(size) if picture else None,
        draw(st.integers(1, 8)) if kind == "audio" else None,
        draw(st.integers(8000, 192_000)) if kind == "audio" else None,
        16 if kind == "audio" else None,
        draw(st.none() | st.sampled_from(["eng", "deu"])),
        draw(edits()),
        draw(st.none() | st.builds(Encryption, codes, st.none() | texts, st.none() | counts)),
        draw(st.none() | st.builds(SampleDefaults, counts, counts, counts)),
    )


@st.composite
def sample_tables(draw: st.DrawFn, *, most: int = 24) -> SampleTable:
    """Samples in decode order: reordered pictures, gaps between them, any of them sync.

    >>> from hypothesis import Phase, find, settings
    >>> drawn = settings(max_examples=2000, phases=[Phase.generate])
    >>> len(find(sample_tables(), lambda table: len(table) == 2, settings=drawn))
    2
    """
    rows = draw(
        st.lists(
            st.tuples(
                st.integers(0, 5000),  # duration
                st.integers(-2000, 8000),  # composition offset
                st.integers(0, 300),  # size
                st.booleans(),  # sync
                st.integers(0, 3),  # bytes of others in front
            ),
            max_size=most,
        )
    )
    offset, dts = draw(st.integers(0, 10_000)), draw(st.integers(-5000, 2**40))
    columns: dict[str, list[Any]] = {column.name: [] for column in SampleTable.schema()}
    for duration, composition_offset, size, sync, gap in rows:
        offset += gap
        row = (offset, size, dts, dts + composition_offset, duration, sync)
        for values, value in zip(columns.values(), row, strict=True):
            values.append(value)
        offset += size
        dts += duration
    return SampleTable.of(columns)


def tables_from_samples(
    samples: SampleTable, cuts: Sequence[int], *, head: int = 0
) -> tuple[FragmentTable, SyncTable]:
    """Fragment and sync table of samples, row by row, as plainly as they are defined.

    Args:
        samples: in decode order.
        cuts: numbers of the samples at which a fragment begins, besides the first.
        head: bytes of a moof and an mdat's header in front of each fragment; 0 makes virtual
            fragments.

    >>> fragments, sync = tables_from_samples(SampleTable.empty(), [])
    >>> len(fragments), len(sync)
    (0, 0)
    """
    edges = sorted({0, *cuts, len(samples)})
    rows: list[dict[str, int]] = []
    syncs: list[dict[str, int]] = []
    for start, stop in itertools.pairwise(edges):
        part = samples.rows(slice(start, stop))
        first, last = int(part.offset.min()), int((part.offset + part.size).max())
        own = np.flatnonzero(part.sync)
        rows.append(
            {
                "offset": first - head,
                "size": last - first + head,
                "moof_offset": first - head if head else NULL,
                "data_start": first,
                "data_stop": last,
                "dts": int(part.dts[0]),
                "duration": int(part.duration.sum()),
                "cts_min": int(part.cts.min()),
                "cts_end": int((part.cts + part.duration).max()),
                "sample_start": start,
                "sample_count": stop - start,
                "first_sync": int(own[0]) if len(own) else -1,
                "flags": int(FragmentFlags(0) if head else FragmentFlags.VIRTUAL),
            }
        )
        syncs += [
            {
                "cts": int(part.cts[number]),
                "dts": int(part.dts[number]),
                "step": 0,
                "count": 1,
                "sample": start + int(number),
                "sample_step": 0,
                "fragment": len(rows) - 1,
            }
            for number in own
        ]
    syncs.sort(key=lambda row: (row["cts"], row["sample"]))
    return (
        FragmentTable.of({c.name: [r[c.name] for r in rows] for c in FragmentTable.schema()}),
        SyncTable.of({c.name: [r[c.name] for r in syncs] for c in SyncTable.schema()}),
    )


@st.composite
def _tracks(draw: st.DrawFn, info: TrackInfo, movie_timescale: int, period: int) -> Track:
    samples = draw(sample_tables())
    places = st.integers(1, max(len(samples) - 1, 1))
    cuts = sorted(draw(st.sets(places, max_size=4 if len(samples) > 1 else 0)))
    head = draw(st.sampled_from([0, 96]))
    # Make room for a moof and an mdat's header in front of each fragment.
    fragment_of_sample = np.searchsorted(cuts, np.arange(len(samples)), side="right")
    samples = replace(samples, offset=samples.offset + head * (fragment_of_sample + 1))
    fragments, sync = tables_from_samples(samples, cuts, head=head)
    groups = st.builds(
        SampleGroup, st.sampled_from(["rap ", "roll"]), counts, counts, st.integers(-99, 99)
    )
    return Track(
        info,
        fragments,
        sync,
        shift=info.shift(movie_timescale),
        period=period,
        exact=True,
        groups=tuple(draw(st.lists(groups, max_size=2))),
        samples=samples,
    )


@st.composite
def indexes(draw: st.DrawFn, *, max_periods: int = 2, max_tracks: int = 3) -> Index:
    """Whole exact indexes with samples, up to two periods of up to three tracks.

    >>> from hypothesis import Phase, find, settings
    >>> settings = settings(max_examples=2000, phases=[Phase.generate])
    >>> find(indexes(), lambda index: len(index.tracks) == 2, settings=settings).exact
    True
    """
    periods = []
    for number in range(draw(st.integers(0, max_periods))):
        ids = draw(st.lists(st.integers(1, 2**32 - 1), max_size=max_tracks, unique=True))
        infos = tuple(draw(track_infos(track_id)) for track_id in ids)
        timescale = draw(st.sampled_from([0, 600, 1000, 90_000]))
        known = infos[: draw(st.integers(0, len(infos)))]
        movie = Movie(timescale, draw(counts), draw(st.booleans()), known)
        start = draw(counts)
        init = [ByteRange(start, start + draw(counts)) for _ in range(draw(st.integers(0, 2)))]
        tracks = tuple(draw(_tracks(info, timescale, number)) for info in infos)
        periods.append(Period(number, tuple(init), movie, tracks))
    digests = st.binary(min_size=16, max_size=16).map(Digest)
    how = st.builds(How, st.just("boxes"), st.booleans(), texts, counts, counts, counts)
    finding = st.builds(
        Finding, texts, texts, st.none() | counts, st.none() | texts, st.none() | counts, counts
    )
    return Index(
        draw(
            st.builds(FileInfo, texts, st.none() | counts, st.none() | digests, st.none() | texts)
        ),
        draw(how),
        periods,
        findings=draw(st.lists(finding, max_size=3)),
        complete=draw(st.booleans()),
        resume_offset=draw(counts),
    )
