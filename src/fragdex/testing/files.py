"""Whole files from described parts, together with what is true of them; small movies in one line.

made = make_file(Brand(), Moov((Track(),)), Fragment(...), Fragment(...), Mfra())
made.data, made.truth.periods[0].samples[1]
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

from fragdex.box_header import SizeForm
from fragdex.boxes import Box, build, make_box
from fragdex.boxes.fragments import (
    DATA_OFFSET,
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.fragments.track_info import Edit
from fragdex.record import record
from fragdex.testing.fragments import Fragment, Laid
from fragdex.testing.tracks import (
    NON_SYNC,
    SYNC,
    Made,
    Moov,
    Run,
    Sample,
    Track,
    Traf,
    TrueFragment,
    TruePeriod,
    TrueSample,
)


@record(frozen=True, slots=True)
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


@record(frozen=True, slots=True)
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
        return [
            s
            for spans_found in inside
            for s in samples[slice(*spans_found.get(part.track, (0, 0)))]
        ]

    def ticks(time: int) -> int:
        # Without a moov the track's timescale can only be the one that the sidx names.
        return int((time + shift) * Fraction(timescale, own or timescale or 1))

    starts, spans_found = [], [spans(*covered) for covered in part.covers]
    end = max((s.cts + s.duration for mine in spans_found for s in mine), default=0)
    for mine in reversed(spans_found):
        end = min((s.cts for s in mine), default=end)
        starts.append(end)
    starts.reverse()
    end = max((s.cts + s.duration for mine in spans_found for s in mine), default=0)
    rows = []
    for n, (first, last) in enumerate(part.covers):
        until = starts[n + 1] if n + 1 < len(starts) else end
        sap = int(bool(spans_found[n]) and spans_found[n][0].sync and part.sap_type > 0)
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


@record(frozen=True, slots=True)
class Brand:
    """An ftyp."""

    brands: tuple[str, ...] = ("iso6", "mp41")


@record(frozen=True, slots=True)
class Other:
    """Any other box, or raw bytes, between the parts."""

    box: Box | bytes


@record(frozen=True, slots=True)
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

    The first moov also applies to fragments before it.

    >>> from fragdex.testing.tracks import Run, Sample, Traf
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
            # What it lists lies before it; what stands after it moves back by its size.
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
    moovs: list[Moov | None] = []
    for part in parts:
        if isinstance(part, Moov):
            current = part
        moovs.append(current)
    return moovs


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
    places: dict[int, dict[int, list[int]]] = {}
    for number in numbers:
        moov = parts[number]
        assert isinstance(moov, Moov)
        places[number] = {track.id: [0] * len(track.chunks) for track in moov.tracks}
    for n, part in enumerate(parts):
        if not isinstance(part, Chunks) or not numbers:
            continue
        owner = max((number for number in numbers if number < n), default=numbers[0])
        at = edges[n] + (16 if part.form == "large" else 8)
        for track, chunk in part.order:
            at += part.gap
            places[owner][track][chunk] = at
            at += sum(sample.size for sample in _chunk(parts[owner], track, chunk))
    return places


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


DELAY = 2
"""Frames by which decoding is ahead of showing where pictures are reordered."""
REORDERED = (5, 2, 0, 1)
"""Composition offsets, in frames, of four pictures that are shown as the third, second, fourth
and first of them."""


def movie(
    fragments: int = 3,
    *,
    tracks: int = 1,
    samples: int = 5,
    fps: int = 25,
    reordered: bool = False,
    edit: int | None = None,
    fragmented: bool = True,
    moov: bool = True,
    sidx: bool = False,
    mfra: bool = False,
) -> bytes:
    """A small movie: fragments of pictures that begin with a sync sample each.

    Args:
        fragments: how many; in a progressive file, groups of pictures.
        tracks: 1: pictures; 2: sound as well; more: further sound.
        samples: pictures in each fragment.
        fps: pictures a second; the timescale is 1000 times that.
        reordered: pictures are shown in another order than they are decoded in.
        edit: an edit list that starts the presentation at this media time, in ticks.
        fragmented: False: one moov and one mdat.
        moov: False: fragments alone, as in a media segment.
        sidx: one in front of the fragments.
        mfra: one at the end.

    >>> import fragdex
    >>> index = fragdex.index(movie(fragments=3), exact=True)
    >>> len(index.track(1).fragments), index.track(1).sample_count
    (3, 15)
    """
    return made_movie(
        fragments,
        tracks=tracks,
        samples=samples,
        fps=fps,
        reordered=reordered,
        edit=edit,
        fragmented=fragmented,
        moov=moov,
        sidx=sidx,
        mfra=mfra,
    ).data


def made_movie(
    fragments: int = 3,
    *,
    tracks: int = 1,
    samples: int = 5,
    fps: int = 25,
    reordered: bool = False,
    edit: int | None = None,
    fragmented: bool = True,
    moov: bool = True,
    sidx: bool = False,
    mfra: bool = False,
) -> Made:
    """`movie`, together with what is true of it.

    >>> made_movie(1, samples=1).truth.samples[1][0].sync
    True
    """
    edits = () if edit is None else (Edit(0, edit),)
    pictures = [_pictures(n, samples, reordered) for n in range(fragments)]
    sounds = _sounds(fragments, samples, fps)
    if not fragmented:
        return _progressive(pictures, [sounds] * (tracks - 1), fps, edits, reordered)
    described = [Track(1, "video", fps * 1000, edits)]
    described += [Track(number, "audio", 48000) for number in range(2, tracks + 1)]
    parts: list[Part] = [Brand(), Moov(tuple(described))] if moov else []
    first = len(parts) + sidx
    if sidx:
        parts.append(Sidx(1, tuple((n, n + 1) for n in range(first, first + fragments))))
    columns = DATA_OFFSET | SAMPLE_DURATION | SAMPLE_SIZE | SAMPLE_FLAGS
    if reordered:
        columns |= SAMPLE_COMPOSITION_TIME_OFFSET
    heard = 0
    for number, group in enumerate(pictures):
        trafs = [Traf(1, (Run(group, columns),), tfdt=number * samples * 1000)]
        trafs += [Traf(track, (Run(sounds[number]),), tfdt=heard) for track in range(2, tracks + 1)]
        heard += sum(sample.duration for sample in sounds[number])
        parts.append(Fragment(tuple(trafs)))
    if mfra:
        parts.append(Mfra())
    return make_file(*parts)


def _pictures(group: int, samples: int, reordered: bool) -> tuple[Sample, ...]:
    pictures = []
    for number in range(samples):
        flags = NON_SYNC if number else SYNC
        offset = 0
        if reordered:
            # The sync picture is shown first of all; the ones after it by groups of four.
            whole = (samples - 1) // 4 * 4
            offset = 1000 * (REORDERED[(number - 1) % 4] if 0 < number <= whole else DELAY)
        pictures.append(Sample(100 + 7 * ((group + number) % 5), 1000, flags, offset))
    return tuple(pictures)


def _sounds(fragments: int, samples: int, fps: int) -> list[tuple[Sample, ...]]:
    """Frames of 1024 ticks at 48 kHz, those that begin while a fragment's pictures are shown."""
    sounds, begun = [], 0
    for number in range(1, fragments + 1):
        until = -(-number * samples * 48000 // (fps * 1024))
        sounds.append((Sample(20, 1024),) * (until - begun))
        begun = until
    return sounds


def _progressive(
    pictures: list[tuple[Sample, ...]],
    sounds: list[list[tuple[Sample, ...]]],
    fps: int,
    edits: tuple[Edit, ...],
    reordered: bool,
) -> Made:
    tracks = [
        Track(
            1,
            "video",
            fps * 1000,
            edits,
            chunks=tuple(pictures),
            ctts=0 if reordered else None,
        )
    ]
    for number, chunks in enumerate(sounds, 2):
        tracks.append(Track(number, "audio", 48000, chunks=tuple(chunks), stss=False))
    order = tuple((track.id, n) for n in range(len(pictures)) for track in tracks)
    return make_file(Brand(("isom",)), Moov(tuple(tracks), fragmented=False), Chunks(order))
