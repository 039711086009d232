"""sidx and mfra boxes over the parts of a made file, honest or lying."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from fragdex.boxes import Box, build, make_box
from fragdex.testing.descriptions import TrueSample
from fragdex.testing.truth import TruePeriod

__all__ = ["Mfra", "Sidx", "mfra_bytes", "sidx_bytes", "sidx_size"]


@dataclass(frozen=True, slots=True)
class Sidx:
    """A sidx over parts of the file, in the presentation time of one track.

    Attributes:
        track: reference_ID.
        covers: (first, last) part numbers of each reference, the last one exclusive.
        nested: numbers of the references that point to another sidx.
        version: 1 has 64-bit times.
        timescale: None: the track's.
        size_error: bytes added to each referenced_size: a lie.
        duration_error: ticks added to each subsegment_duration.
        sap_type: of a reference that starts with a sync sample; 0: not told.
    """

    track: int
    covers: tuple[tuple[int, int], ...]
    nested: frozenset[int] = frozenset()
    version: int = 1
    timescale: int | None = None
    size_error: int = 0
    duration_error: int = 0
    sap_type: int = 1


@dataclass(frozen=True, slots=True)
class Mfra:
    """An mfra with the first sync sample of each fragment, and its mfro.

    Attributes:
        tracks: track ids; None: every track that has one.
        every: only every so many fragments are listed.
        version: 1 has 64-bit times and offsets.
        offset_error: bytes added to each moof_offset: a lie.
    """

    tracks: tuple[int, ...] | None = None
    every: int = 1
    version: int = 1
    offset_error: int = 0


def sidx_size(part: Sidx) -> int:
    """Bytes that it takes."""
    return len(build(_sidx_box(part, 0, 0, [(0, 0, 0, 0, 0, 0)] * len(part.covers))))


def sidx_bytes(part: Sidx, number: int, edges: Sequence[int], period: TruePeriod) -> bytes:
    """Its bytes, as part `number` of a file whose parts begin at `edges`."""
    own = period.timescale(part.track)
    timescale = part.timescale or own
    shift = period.shift(part.track)
    samples = period.samples.get(part.track, [])

    def spans(first: int, last: int) -> list[TrueSample]:
        inside = (f.samples for f in period.fragments if first <= f.part < last)
        return [s for found in inside for s in samples[slice(*found.get(part.track, (0, 0)))]]

    def ticks(time: int) -> int:
        # Without a moov the track's timescale can only be the one that the sidx names.
        return int((time + shift) * Fraction(timescale, own or timescale or 1))

    starts, found = [], [spans(*covered) for covered in part.covers]
    end = max((s.cts + s.duration for mine in found for s in mine), default=0)
    for mine in reversed(found):
        end = min((s.cts for s in mine), default=end)
        starts.append(end)
    starts.reverse()
    end = max((s.cts + s.duration for mine in found for s in mine), default=0)
    rows = []
    for n, (first, last) in enumerate(part.covers):
        until = starts[n + 1] if n + 1 < len(starts) else end
        sap = int(bool(found[n]) and found[n][0].sync and part.sap_type > 0)
        rows.append(
            (
                int(n in part.nested),
                edges[last] - edges[first] + part.size_error,
                max(0, ticks(until) - ticks(starts[n]) + part.duration_error),
                sap,
                part.sap_type * sap,
                0,
            )
        )
    gap = edges[part.covers[0][0]] - edges[number + 1] if part.covers else 0
    first_time = max(0, ticks(starts[0])) if starts else 0
    return build(_sidx_box(part, first_time, gap, rows, timescale))


def _sidx_box(
    part: Sidx, time: int, gap: int, rows: Sequence[tuple[int, ...]], timescale: int = 0
) -> Box:
    return make_box(
        "sidx",
        version=part.version,
        reference_ID=part.track,
        timescale=timescale,
        earliest_presentation_time=time,
        first_offset=gap,
        references=rows,
    )


def mfra_bytes(part: Mfra, period: TruePeriod) -> bytes:
    """Its bytes, over the fragments of a period."""
    children = []
    for track in part.tracks if part.tracks is not None else sorted(period.samples):
        rows = []
        for fragment in period.fragments[:: part.every]:
            first, last = fragment.samples.get(track, (0, 0))
            mine = period.samples[track][first:last]
            sync = next((n for n, sample in enumerate(mine) if sample.sync), None)
            if sync is not None:
                place = fragment.moof + part.offset_error
                # Traf and run numbers are those of the usual fragment: one of each.
                traf = list(fragment.samples).index(track) + 1
                # 8.8.10.3: a presentation time, which cannot be negative
                time = max(0, round(mine[sync].cts + period.shift(track)))
                rows.append((time, place, traf, 1, sync + 1))
        if rows:
            children.append(make_box("tfra", version=part.version, track_ID=track, entries=rows))
    size = sum(len(build(child)) for child in children) + 8 + 16
    return build(make_box("mfra", children=[*children, make_box("mfro", size=size)]))
