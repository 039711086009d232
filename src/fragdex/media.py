"""Pictures and sound of a file, by what a user names: `fragdex.media` (extra `media`).

    fragdex.media.thumbnail("movie.mp4", "1:02:03").data

Each takes media (path, URL, bytes, file) and, with `index=`, an index of them, which spares making
one; or an index alone, whose media are where it says. The engines are in `fragdex.decoding`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

from fragdex.decoding.audio import SoundArray
from fragdex.decoding.audio import audio as audio_of
from fragdex.decoding.picture_files import QUALITY, At, Fit, PictureFormat, Thumbnail
from fragdex.decoding.picture_files import thumbnail as thumbnail_of
from fragdex.decoding.sound_levels import Loudness, Peaks
from fragdex.decoding.sound_levels import loudness as loudness_of
from fragdex.decoding.sound_levels import peaks as peaks_of
from fragdex.decoding.storyboards import Storyboard
from fragdex.decoding.storyboards import storyboard as storyboard_of
from fragdex.formats.media_or_index import MediaOrIndex, known_and_media
from fragdex.indexing.making import index as index_media
from fragdex.indexing.making import index_source
from fragdex.seeking.model import Index
from fragdex.seeking.times import TimeLike
from fragdex.sources import Source, open_source

__all__ = [
    "Loudness",
    "Peaks",
    "Storyboard",
    "Thumbnail",
    "audio",
    "loudness",
    "peaks",
    "storyboard",
    "thumbnail",
]

Result = TypeVar("Result")


def thumbnail(
    what: MediaOrIndex,
    time: TimeLike,
    *,
    index: Index | None = None,
    at: At = "key_frame",
    width: int | None = None,
    height: int | None = None,
    fit: Fit = "contain",
    format: PictureFormat = "jpeg",
    quality: int = QUALITY,
    track: int | None = None,
) -> Thumbnail:
    """The picture of a moment as JPEG, WebP, AVIF or PNG.

    Args:
        what: media, or an index of them.
        time: a presentation time as `Track.seek` takes it.
        index: of the media; None: it is made.
        at: `key_frame`, the nearest one, whose bytes alone are read; or `frame`, the picture that
            is shown at the time.
        width, height: pixels of the result; None: what follows from the other, or its own size.
        fit: with both: `contain`, `cover` or `fill`.
        format: `jpeg`, `webp`, `avif` or `png`.
        quality: 1 to 100; PNG ignores it.
        track: track_ID; None: the first with pictures.

    Raises: as `fragdex.decoding.picture_files.thumbnail`.

    >>> made = thumbnail("fixtures/frag-cmaf.mp4", 1.5, width=64)
    >>> made.media_type, made.width, made.height
    ('image/jpeg', 64, 48)
    """
    return _opened(
        what,
        index,
        lambda known, source: thumbnail_of(
            known,
            source,
            time,
            at=at,
            width=width,
            height=height,
            fit=fit,
            format=format,
            quality=quality,
            track=track,
        ),
    )


def storyboard(
    what: MediaOrIndex,
    *,
    index: Index | None = None,
    every: TimeLike = 10,
    width: int = 160,
    columns: int = 10,
    rows: int = 10,
    format: PictureFormat = "jpeg",
    quality: int = 75,
    track: int | None = None,
) -> Storyboard:
    """Small pictures of a whole file on sprite sheets, and the lists that players find them by.

    Args:
        what: media, or an index of them.
        index: of the media; None: it is made.
        every: seconds from one picture to the next.
        width: pixels of a picture.
        columns, rows: pictures on a sheet.
        format: `jpeg`, `webp`, `avif` or `png`.
        quality: 1 to 100; PNG ignores it.
        track: track_ID; None: the first with pictures.

    Returns: a context manager; its sheets are decoded when they are used.

    Raises: as `fragdex.decoding.storyboards.storyboard`.

    >>> with storyboard("fixtures/frag-cmaf.mp4", every=1, width=64) as made:
    ...     made.sheet_count
    1
    """
    known, place = known_and_media(what, index)
    return storyboard_of(
        index_media(place) if known is None else known,
        place,
        every=every,
        width=width,
        columns=columns,
        rows=rows,
        format=format,
        quality=quality,
        track=track,
    )


def audio(
    what: MediaOrIndex,
    start: TimeLike = 0,
    stop: TimeLike | None = None,
    *,
    index: Index | None = None,
    track: int | None = None,
    rate: int = 16000,
    channels: int = 1,
    dtype: npt.DTypeLike = np.int16,
) -> SoundArray:
    """The decoded sound of a span: sample n is heard at start + n / rate seconds.

    Args:
        what: media, or an index of them.
        start: a presentation time as `Track.seek` takes it.
        stop: likewise, exclusive; None or infinity: to the end.
        index: of the media; None: it is made.
        track: track_ID; None: the first audio track.
        rate: samples a second.
        channels: 1 or 2; more are mixed to that.
        dtype: int16, or float32 with full scale at 1.

    Returns: shape (samples,) for one channel, (samples, 2) for two.

    Raises: as `fragdex.decoding.audio.audio`.

    >>> audio("fixtures/frag-cmaf.mp4", 0.5, 1).shape
    (8000,)
    """

    def decoded(known: Index, source: Source) -> SoundArray:
        end = _end(known) if stop is None or stop == math.inf else stop
        return audio_of(
            known, source, start, end, track=track, rate=rate, channels=channels, dtype=dtype
        )

    return _opened(what, index, decoded)


@overload
def peaks(
    what: MediaOrIndex, *, index: Index | None = ..., samples_per_pixel: int = ...,
    bits: int = ..., split: bool = ..., track: int | None = ...,
) -> Peaks: ...  # fmt: skip
@overload
def peaks(
    what: MediaOrIndex, *, index: Index | None = ..., samples_per_pixel: Sequence[int],
    bits: int = ..., split: bool = ..., track: int | None = ...,
) -> tuple[Peaks, ...]: ...  # fmt: skip
def peaks(
    what: MediaOrIndex,
    *,
    index: Index | None = None,
    samples_per_pixel: int | Sequence[int] = 256,
    bits: int = 8,
    split: bool = False,
    track: int | None = None,
) -> Peaks | tuple[Peaks, ...]:
    """The waveform of a track: the least and the greatest sample of each pixel.

    Args:
        what: media, or an index of them.
        index: of the media; None: it is made.
        samples_per_pixel: 2 or more; several: as many answers, of one pass.
        bits: 8 or 16.
        split: each channel by itself; else their mean.
        track: track_ID; None: the first audio track.

    Raises: as `fragdex.decoding.sound_levels.peaks`.

    >>> peaks("fixtures/frag-cmaf.mp4", samples_per_pixel=4800).bits
    8
    """
    return _opened(
        what,
        index,
        lambda known, source: peaks_of(
            known,
            source,
            samples_per_pixel=samples_per_pixel,
            bits=bits,
            split=split,
            track=track,
        ),
    )


def loudness(
    what: MediaOrIndex, *, index: Index | None = None, track: int | None = None
) -> Loudness:
    """How loud a track is: integrated loudness, loudness range and true peak (BS.1770-4).

    Args:
        what: media, or an index of them.
        index: of the media; None: it is made.
        track: track_ID; None: the first audio track.

    Raises: as `fragdex.decoding.sound_levels.loudness`.

    >>> type(loudness("fixtures/frag-cmaf.mp4")).__name__
    'Loudness'
    """
    return _opened(what, index, lambda known, source: loudness_of(known, source, track=track))


def _opened(
    what: MediaOrIndex, index: Index | None, make: Callable[[Index, Source], Result]
) -> Result:
    """The result of a function of the index and the open media."""
    known, place = known_and_media(what, index)
    source = open_source(place)
    try:
        return make(index_source(source) if known is None else known, source)
    finally:
        if source is not place:
            source.close()


def _end(index: Index) -> Fraction:
    ends = [track.stop.fraction for track in index.tracks if track.stop is not None]
    return max(ends, default=Fraction(0))
