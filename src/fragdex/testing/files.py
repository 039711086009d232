"""Whole files from described parts, together with what is true of them.

made = make_file(Brand(), Moov((Track(),)), Fragment(...), Fragment(...), Mfra())
made.data, made.truth.periods[0].samples[1]
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from fragdex.box_header import SizeForm
from fragdex.boxes import Box, build, make_box
from fragdex.testing.descriptions import Sample
from fragdex.testing.fragments import Fragment, Laid
from fragdex.testing.ready_indexes import Mfra, Sidx, mfra_bytes, sidx_bytes, sidx_size
from fragdex.testing.tracks import Moov
from fragdex.testing.truth import Made, TrueFragment, TruePeriod

__all__ = [
    "Brand",
    "Chunks",
    "Other",
    "Part",
    "make_file",
]


@dataclass(frozen=True, slots=True)
class Brand:
    """An ftyp."""

    brands: tuple[str, ...] = ("iso6", "mp41")


@dataclass(frozen=True, slots=True)
class Other:
    """Any other box, or raw bytes, between the parts."""

    box: Box | bytes


@dataclass(frozen=True, slots=True)
class Chunks:
    """An mdat with chunks of samples that the last moov names.

    Attributes:
        order: (track_ID, number of the chunk) as they lie in the mdat.
        gap: unused bytes before each chunk.
        form: size form.
    """

    order: tuple[tuple[int, int], ...]
    gap: int = 0
    form: SizeForm = "compact"


Part: TypeAlias = Brand | Moov | Fragment | Chunks | Sidx | Mfra | Other


def make_file(*parts: Part) -> Made:
    """Write a file from its parts.

    Fragments before the first moov are governed by it, as those behind it are.

    >>> from fragdex.testing.descriptions import Run, Sample, Traf
    >>> from fragdex.testing.tracks import Track
    >>> made = make_file(Moov((Track(1),)), Fragment((Traf(1, (Run((Sample(size=5),)),)),)))
    >>> made.truth.samples[1]
    [TrueSample(offset=717, size=5, dts=0, cts=0, duration=1, sync=True)]
    """
    governing = _governing(parts)
    sizes = [_size(part, moov) for part, moov in zip(parts, governing, strict=True)]
    edges = [0]
    for size in sizes:
        edges.append(edges[-1] + size)
    pieces: list[bytes] = [b""] * len(parts)
    periods = [TruePeriod()]
    places = _chunk_places(parts, edges)
    next_dts: dict[int, int] = {}
    counted = 0
    owners: list[TruePeriod] = []
    for number, (part, moov) in enumerate(zip(parts, governing, strict=True)):
        if isinstance(part, Moov):
            if periods[-1].moov is not None and periods[-1].moov is not part:
                periods.append(TruePeriod())
                next_dts = {}
            periods[-1].moov = part
            own = places.get(number, {})
            pieces[number] = part.data(own)
            for track in part.tracks:
                true = track.truth(own.get(track.id, []))
                if true:
                    periods[-1].samples[track.id] = true
                    periods[-1].in_moov[track.id] = len(true)
                    next_dts[track.id] = true[-1].dts + true[-1].duration
        elif isinstance(part, Fragment):
            counted += 1
            laid = part.lay(edges[number], _defaults(moov), next_dts, counted)
            pieces[number] = laid.data
            next_dts = dict(laid.next_dts)
            _note(periods[-1], number, laid)
        elif isinstance(part, Brand):
            pieces[number] = _brand(part)
        elif isinstance(part, Other):
            pieces[number] = part.box if isinstance(part.box, bytes) else build(part.box)
        elif isinstance(part, Chunks):
            pieces[number] = _chunks(part, moov)
        elif isinstance(part, Mfra):
            # What it lists lies before it; what stands behind it moves back by its size.
            pieces[number] = mfra_bytes(part, periods[-1])
            edges[number + 1 :] = [edge + len(pieces[number]) for edge in edges[number + 1 :]]
        owners.append(periods[-1])
    for number, part in enumerate(parts):
        if isinstance(part, Sidx):
            pieces[number] = sidx_bytes(part, number, edges, owners[number])
    spans = tuple(itertools.pairwise(edges))
    assert [len(piece) for piece in pieces] == [stop - start for start, stop in spans]
    return Made(b"".join(pieces), tuple(periods), parts, spans)


def _governing(parts: Sequence[Part]) -> list[Moov | None]:
    """The moov that governs each part: the last before it, else the first of all."""
    current = next((part for part in parts if isinstance(part, Moov)), None)
    found: list[Moov | None] = []
    for part in parts:
        if isinstance(part, Moov):
            current = part
        found.append(current)
    return found


def _defaults(moov: Moov | None) -> dict[int, tuple[int, int, int]]:
    tracks = moov.tracks if moov is not None else ()
    return {track.id: track.trex for track in tracks if track.trex is not None}


def _size(part: Part, moov: Moov | None) -> int:
    if isinstance(part, Fragment):
        return part.size(_defaults(moov))
    if isinstance(part, Moov):
        return len(part.data({}))
    if isinstance(part, Sidx):
        return sidx_size(part)
    if isinstance(part, Mfra):
        return 0
    if isinstance(part, Brand):
        return len(_brand(part))
    if isinstance(part, Chunks):
        return len(_chunks(part, moov))
    return len(part.box if isinstance(part.box, bytes) else build(part.box))


def _brand(part: Brand) -> bytes:
    return build(make_box("ftyp", major_brand=part.brands[0], compatible_brands=tuple(part.brands)))


def _note(period: TruePeriod, part: int, laid: Laid) -> None:
    spans = {}
    for track, samples in laid.samples.items():
        known = period.samples.setdefault(track, [])
        spans[track] = (len(known), len(known) + len(samples))
        known.extend(samples)
    period.fragments.append(
        TrueFragment(part, laid.start, laid.moof, laid.stop, spans, dict(laid.next_dts))
    )


def _chunk_places(parts: Sequence[Part], edges: Sequence[int]) -> dict[int, dict[int, list[int]]]:
    """Number of each moov → track_ID → places of the chunks.

    An mdat's chunks belong to the moov before it that is nearest, or to the first of all.
    """
    numbers = [n for n, part in enumerate(parts) if isinstance(part, Moov)]
    found: dict[int, dict[int, list[int]]] = {}
    for number in numbers:
        moov = parts[number]
        assert isinstance(moov, Moov)
        found[number] = {track.id: [0] * len(track.chunks) for track in moov.tracks}
    for n, part in enumerate(parts):
        if not isinstance(part, Chunks) or not numbers:
            continue
        owner = max((number for number in numbers if number < n), default=numbers[0])
        at = edges[n] + (16 if part.form == "large" else 8)
        for track, chunk in part.order:
            at += part.gap
            found[owner][track][chunk] = at
            at += sum(sample.size for sample in _chunk(parts[owner], track, chunk))
    return found


def _chunk(moov: Part | None, track: int, chunk: int) -> tuple[Sample, ...]:
    assert isinstance(moov, Moov)
    return next(t for t in moov.tracks if t.id == track).chunks[chunk]


def _chunks(part: Chunks, moov: Moov | None) -> bytes:
    payload = bytearray()
    for track, chunk in part.order:
        payload += b"\xee" * part.gap
        for sample in _chunk(moov, track, chunk):
            word = b"%d/%d;" % (track, chunk)
            payload += (word * (sample.size // len(word) + 1))[: sample.size]
    return build(make_box("mdat", data=bytes(payload), size_form=part.form))
