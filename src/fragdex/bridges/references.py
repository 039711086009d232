"""A video as a zarr array in which nothing is stored: references to the bytes of each chunk.

The references are kerchunk's (version 1), with the metadata of zarr v3: a group with the arrays
`frames` (time, y, x, channel) and `time` (seconds), or with the array `sound` (time, channel). A
chunk is one range of the film: the samples that it is decoded from, and what lies between them. The
codec `fragdex.film` (`fragdex.bridges.film_codec`) decodes it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final, Literal, Unpack

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.data.set_parts import small_init
from fragdex.decoding.audio import AudioReader
from fragdex.decoding.open_track import fetched, stretches
from fragdex.errors import BuildError
from fragdex.formats.fidx import open_index, write
from fragdex.fragments.table import SampleTable
from fragdex.frames import Frames
from fragdex.indexing.access import can_start
from fragdex.indexing.making import index_source
from fragdex.indexing.reading import Head
from fragdex.seeking.model import Index
from fragdex.seeking.track import Track
from fragdex.sources import Source, SourceLike, SourceOptions, open_source

CODEC: Final = "fragdex.film"
DIGEST_BYTES: Final = 8
LONGEST_SOUND: Final = 3600
"""Seconds of a chunk of sound."""
_LONGEST_CHUNK: Final = 64 << 20


def references(
    what: SourceLike,
    url: str,
    *,
    index: Index | str | os.PathLike[str] | None = None,
    track: int | None = None,
    frames: int | None = None,
    format: Literal["rgb", "gray"] = "rgb",
    digests: bool = False,
    **options: Unpack[SourceOptions],
) -> dict[str, Any]:
    """References to a video, for fsspec's `ReferenceFileSystem`.

    Args:
        what: the video, in any form that `fragdex.open_source` takes.
        url: by which the references name it.
        index: of it, or the path of a saved one; None: it is made.
        track: track_ID; None: the first with pictures.
        frames: of a chunk; None: as many as most groups of pictures have.
        format: `rgb` or `gray`, uint8.
        digests: read the video once, and store a digest of each chunk, so that the codec refuses
            all other bytes. Without it, it refuses bytes that are not samples of the sizes that the
            index knows.
        options: passed on to `open_source`.

    Returns: a dict for `fo=`, or `json.dump`: all that the codec needs is in it, the samples of
    the track too.

    Raises:
        BuildError: the video has no frames, several sample entries, or frames too far apart in the
            file to be one range.
        And what `fragdex.Frames` raises.
    """
    with Frames(what, index, track, format=format, **options) as film:
        if not len(film):
            raise BuildError(f"track {film.track.id} has no frames")
        chosen, source = film.track, film.source
        init = small_init(film.index, chosen, source, Head())
        if init is None:
            raise BuildError(f"track {chosen.id} has several sample entries, and a codec has one")
        count = frames or _usual_group(film)
        ranges = [
            _one_range(film, first, min(first + count, len(film)))
            for first in range(0, len(film), count)
        ]
        ranges = _of_own_lengths(ranges, source.size)
        configuration = {
            "index": _packed(write(_alone(film.index, chosen, url), samples=True)),
            "init": _packed(init),
            "track": chosen.id,
            "frames": count,
            "format": format,
            "offsets": [one.start for one in ranges],
            "lengths": [one.size for one in ranges],
            "digests": [digest(source.read(one)) for one in ranges] if digests else [],
        }
        shape, times = film.shape, film.times
    refs: dict[str, Any] = {
        "zarr.json": _GROUP,
        "frames/zarr.json": _array(
            shape, (count, *shape[1:]), "uint8", ("time", "y", "x", "channel"),
            {"name": CODEC, "configuration": configuration},
        ),
        "time/zarr.json": _array(
            (len(times),), (len(times),), "float64", ("time",),
            {"name": "bytes", "configuration": {"endian": "little"}}, {"units": "s"},
        ),
        "time/c/0": "base64:" + base64.b64encode(times.astype("<f8").tobytes()).decode(),
    }  # fmt: skip
    for number, one in enumerate(ranges):
        refs[f"frames/c/{number}/0/0/0"] = [url, one.start, one.size]
    return {"version": 1, "refs": refs}


def sound_references(
    what: SourceLike,
    url: str,
    *,
    index: Index | str | os.PathLike[str] | None = None,
    track: int | None = None,
    rate: int | None = None,
    channels: int | None = None,
    dtype: Literal["int16", "float32"] = "int16",
    seconds: float = 10,
    **options: Unpack[SourceOptions],
) -> dict[str, Any]:
    """References to the sound of a video, for fsspec's `ReferenceFileSystem`.

    The array `sound` has the shape (samples, channels); its attribute `rate` says how many samples
    a second has. Sample n is shown at n / rate seconds of presentation time, as from
    `fragdex.media.audio`.

    Args:
        what, url, index, options: as of `references`.
        track: track_ID; None: the first with sound.
        rate: samples a second; None: that of the track.
        channels: 1 or 2; None: as many as the track has, 2 at most. More are mixed.
        dtype: int16, or float32 with full scale at 1.
        seconds: of a chunk, an hour at most. A chunk is one range, so that it includes the pictures
            between its sound.

    The sound is read once: a chunk has a digest of its samples, and other bytes are refused.

    Returns: as `references`.

    Raises:
        BuildError: the track has no sound, or several sample entries, or a chunk has too many
            bytes.
        ValueError: the seconds of a chunk are not above 0 and up to 3,600.
        And what `fragdex.decoding.AudioReader` raises.
    """
    if not 0 < seconds <= LONGEST_SOUND:
        raise ValueError(f"seconds of a chunk are above 0, and up to {LONGEST_SOUND}")
    with open_source(what, **options) as source:
        head = Head()
        if isinstance(index, Index):
            known = index
        else:
            known = (
                index_source(source, exact=True, head=head) if index is None else open_index(index)
            )
        with AudioReader(known, source, track=track) as reader:
            chosen = reader.track
        if chosen.is_encrypted() or not chosen.stop:
            what_it_is = "is encrypted" if chosen.is_encrypted() else "has no samples"
            raise BuildError(f"track {chosen.id} {what_it_is}")
        init = small_init(known, chosen, source, head)
        if init is None:
            raise BuildError(f"track {chosen.id} has several sample entries, and a codec has one")
        configuration: dict[str, Any] = {
            "index": _packed(write(_alone(known, chosen, url), samples=True)),
            "init": _packed(init),
            "track": chosen.id,
            "rate": rate or chosen.info.sample_rate or chosen.timescale,
            "channels": channels or min(chosen.info.channel_count or 1, 2),
            "dtype": dtype,
        }
        rate = int(configuration["rate"])
        count = max(round(seconds * rate), 1)
        length = round(chosen.stop.fraction * rate)
        ranges = []
        with sound_reader(configuration, known, source, init) as reader:
            for first in range(0, length, count):
                last = min(first + count, length)
                tables = reader.tables(Fraction(first, rate), Fraction(last, rate))
                parts = [part for table in tables for part in stretches(table)]
                begin = min((part.start for part in parts), default=0)
                one = ByteRange(begin, max((part.stop for part in parts), default=begin))
                if one.size > _LONGEST_CHUNK:
                    raise BuildError(
                        f"the sound from {first / rate:.3f} to {last / rate:.3f} s lies in "
                        f"{one.size:,} bytes of the file",
                        advice="make chunks of fewer seconds",
                    )
                ranges.append(one)
        ranges = _of_own_lengths(ranges, source.size)
        digests = []
        for one in ranges:
            table = samples_within(chosen, one)
            parts = list(stretches(table))
            read = fetched(source, [table]).ranges(parts)
            digests.append(digest(b"".join(part or b"" for part in read)))
        configuration |= {
            "samples": count,
            "length": length,
            "offsets": [one.start for one in ranges],
            "lengths": [one.size for one in ranges],
            "digests": digests,
        }
    shape = (length, configuration["channels"])
    refs: dict[str, Any] = {
        "zarr.json": _GROUP,
        "sound/zarr.json": _array(
            shape, (count, shape[1]), dtype, ("time", "channel"),
            {"name": CODEC, "configuration": configuration}, {"rate": rate},
        ),
    }  # fmt: skip
    for number, one in enumerate(ranges):
        if one.size:  # chunks without a reference are silence
            refs[f"sound/c/{number}/0"] = [url, one.start, one.size]
    return {"version": 1, "refs": refs}


def sound_reader(
    configuration: Mapping[str, Any], index: Index, source: Source, init: bytes
) -> AudioReader:
    """What decodes the chunks of these settings."""
    names = ("track", "rate", "channels", "dtype")
    return AudioReader(index, source, init=init, **{name: configuration[name] for name in names})


def samples_within(track: Track, place: ByteRange) -> SampleTable:
    """The samples of a track that lie in a range of the file, by their places."""
    offset, stop = track.samples.offset, track.samples.offset + track.samples.size
    inside = np.flatnonzero((offset >= place.start) & (stop <= place.stop))
    return track.samples.rows(inside[np.argsort(offset[inside], kind="stable")])


def digest(data: bytes) -> str:
    """What tells the bytes of a chunk from all others."""
    return hashlib.blake2b(data, digest_size=DIGEST_BYTES).hexdigest()


def _usual_group(film: Frames) -> int:
    lengths, counts = np.unique(film.chunks[0], return_counts=True)
    return int(lengths[len(counts) - 1 - np.argmax(counts[::-1])])


def _one_range(film: Frames, first: int, stop: int) -> ByteRange:
    window = film.index.window(film.track, first, stop)
    if not film.source.remote:  # from afar it would be a read for each chunk; the codec looks
        samples = film.track.samples.rows(window.samples[window.starts])
        places = zip(samples.offset.tolist(), samples.size.tolist(), strict=True)
        for number, place in zip(window.samples[window.starts], places, strict=True):
            if not can_start(film.track.info, film.source.read(ByteRange.of(*place))):
                raise BuildError(
                    f"no decoder can start at sample {int(number) + 1} of track {film.track.id}, "
                    "which is marked sync",
                    advice="encode the video again",
                )
    one = ByteRange(window.ranges[0].start, window.ranges[-1].stop)
    if one.size > max(_LONGEST_CHUNK, 2 * window.size):
        raise BuildError(
            f"frames {window.first} to {window.stop} lie in {one.size:,} bytes of the file, of "
            f"which {window.size:,} are theirs",
            advice="make a file first whose samples lie together (fragdex view)",
        )
    return one


def _of_own_lengths(ranges: list[ByteRange], size: int | None) -> list[ByteRange]:
    """Ranges of which no two are as long: a codec knows a chunk by its length alone.

    Where two are, one has a few bytes more of what lies before it. Empty ones stay empty.
    """
    used: set[int] = set()
    chunks = []
    for one in ranges:
        start, stop = one.start, one.stop
        while start != stop and stop - start in used:
            if start:
                start -= 1
            elif size is None or stop < size:
                stop += 1
            else:
                raise BuildError("the chunks have no ranges of different lengths")
        used.add(stop - start)
        chunks.append(ByteRange(start, stop))
    return chunks


def _alone(index: Index, track: Track, url: str) -> Index:
    """The index of one track, without names of this machine."""
    period, alone = index.periods[track.period], copy(track)
    alone.period = 0
    return Index(
        replace(index.file, name=url, mtime_ns=None),
        index.how,
        [replace(period, number=0, tracks=(alone,))],
        complete=index.complete,
    )


def _packed(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data, 9)).decode()


def _array(
    shape: tuple[int, ...],
    chunk: tuple[int, ...],
    kind: str,
    names: tuple[str, ...],
    codec: dict[str, Any],
    attributes: dict[str, Any] | None = None,
) -> str:
    grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
    keys = {"name": "default", "configuration": {"separator": "/"}}
    return _json(
        {
            "zarr_format": 3,
            "node_type": "array",
            "shape": shape,
            "data_type": kind,
            "chunk_grid": grid,
            "chunk_key_encoding": keys,
            "fill_value": 0,
            "codecs": [codec],
            "attributes": attributes or {},
            "dimension_names": names,
        }
    )


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


_GROUP: Final = _json({"zarr_format": 3, "node_type": "group", "attributes": {}})
