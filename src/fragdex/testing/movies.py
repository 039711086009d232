"""Small valid movies in one line, for examples and tests."""

from __future__ import annotations

from fragdex.boxes.fragments import (
    DATA_OFFSET,
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)
from fragdex.fragments.track_info import Edit
from fragdex.testing.descriptions import NON_SYNC, SYNC, Run, Sample, Traf
from fragdex.testing.files import Brand, Chunks, Part, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.ready_indexes import Mfra, Sidx
from fragdex.testing.tracks import Moov, Track
from fragdex.testing.truth import Made

__all__ = ["made_movie", "movie"]

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
    found = []
    for number in range(samples):
        flags = NON_SYNC if number else SYNC
        offset = 0
        if reordered:
            # The sync picture is shown first of all; the ones behind it by groups of four.
            whole = (samples - 1) // 4 * 4
            offset = 1000 * (REORDERED[(number - 1) % 4] if 0 < number <= whole else DELAY)
        found.append(Sample(100 + 7 * ((group + number) % 5), 1000, flags, offset))
    return tuple(found)


def _sounds(fragments: int, samples: int, fps: int) -> list[tuple[Sample, ...]]:
    """Frames of 1024 ticks at 48 kHz, those that begin while a fragment's pictures are shown."""
    found, begun = [], 0
    for number in range(1, fragments + 1):
        until = -(-number * samples * 48000 // (fps * 1024))
        found.append((Sample(20, 1024),) * (until - begun))
        begun = until
    return found


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
