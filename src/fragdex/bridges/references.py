"""A video as a zarr array in which nothing is stored: references to the bytes of each chunk.

The references are kerchunk's (version 1), with the metadata of zarr v3: a group with the arrays
`frames` (time, y, x, channel) and `time` (seconds). A chunk is one range of the film: the samples
that its frames are decoded from, and what lies between them. The codec `fragdex.film`
(`fragdex.bridges.film_codec`) decodes it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import zlib
from copy import copy
from dataclasses import replace
from typing import Any, Final, Literal, Unpack

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.data.set_parts import small_init
from fragdex.errors import BuildError
from fragdex.formats.fidx import write
from fragdex.formats.window import can_start
from fragdex.frames import Frames
from fragdex.indexing.reading import Head
from fragdex.seeking.model import Index
from fragdex.seeking.track import Track
from fragdex.sources import SourceLike, SourceOptions

CODEC: Final = "fragdex.film"
DIGEST_BYTES: Final = 8
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
            all other bytes. Without it, it refuses bytes that are no samples of the sizes that the
            index knows.
        options: passed on to `open_source`.

    Returns: a dict for `fo=`, or `json.dump`: all that the codec needs is in it, the samples of
    the track too.

    Raises:
        BuildError: the video has no frames, several sample entries, or frames too far apart in the
            file to be one range.
        And what `fragdex.Frames` raises.

    >>> made = references("fixtures/open-gop.mp4", "s3://films/open-gop.mp4")
    >>> made["refs"]["frames/c/1/0/0/0"]
    ['s3://films/open-gop.mp4', 1117, 579]
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
        "zarr.json": _json({"zarr_format": 3, "node_type": "group", "attributes": {}}),
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


def digest(data: bytes) -> str:
    """What tells the bytes of a chunk from all others.

    >>> digest(b"abc")
    'd8bb14d833d59559'
    """
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
            if not can_start(film.track, film.source.read(ByteRange.of(*place))):
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

    Where two are, one has a few bytes more of what lies before it.
    """
    used: set[int] = set()
    chunks = []
    for one in ranges:
        start, stop = one.start, one.stop
        while stop - start in used:
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
