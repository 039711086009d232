"""The frames of a track as a table: number ↔ time ↔ bytes, for tools that label them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np

from fragdex.errors import TrackNotFound
from fragdex.formats.sample_csv import refuse_unheld
from fragdex.seeking.model import Index, Track
from fragdex.seeking.numbering import Numbering, Order

COLUMNS = ("frame", "time", "ticks", "duration", "timescale", "sync", "sample", "offset", "size")
"""Of CSV, and the keys of JSON."""


def write(
    index: Index,
    *,
    track: int | None = None,
    order: Order = "presentation",
    hidden: bool = False,
) -> bytes:
    """A line a frame, as `fragdex.Frames` numbers them; lines end with a line feed.

    `time` is when a frame is shown, in seconds as the nearest double; `ticks` says it exactly, and
    `duration` for how long, in units of 1 / `timescale` seconds. `sync` is 1 for a sync sample.
    `sample` counts samples in decode order; `offset` and `size` are its bytes in the file.

    Args:
        track: track_ID; None: the first with pictures.
        order: of the numbers: `presentation`, or `decode`.
        hidden: whether what the edit list hides has numbers, too.

    Raises:
        TrackNotFound: there is no such track, or none with pictures.
        InexactIndex: the index holds fragments only.
        ValueError: there is no such order.

    >>> import fragdex
    >>> index = fragdex.index("fixtures/open-gop.mp4")
    >>> write(index).splitlines()[2]
    b'1,0.04,512,512,12800,0,2,887,35'
    """
    lines = (",".join(map(repr, row)) for row in _rows(index, track, order, hidden))
    return "".join(f"{line}\n" for line in (",".join(COLUMNS), *lines)).encode()


def write_json(
    index: Index,
    *,
    track: int | None = None,
    order: Order = "presentation",
    hidden: bool = False,
) -> bytes:
    """The same rows as a JSON object: `track`, `timescale` and `frames`, a list of objects.

    Args:
        track, order, hidden: as `write`.

    Raises: as `write`.

    >>> import fragdex
    >>> json.loads(write_json(fragdex.index("fixtures/open-gop.mp4")))["frames"][1]["time"]
    0.04
    """
    chosen = _chosen(index, track)
    rows = _rows(index, track, order, hidden)
    names = [name for name in COLUMNS if name != "timescale"]
    frames = []
    timescale: int | float = chosen.timescale
    for row in rows:
        fields = dict(zip(COLUMNS, row, strict=True))
        timescale = fields["timescale"]
        frames.append({name: fields[name] for name in names} | {"sync": bool(fields["sync"])})
    document = {"track": chosen.id, "timescale": timescale, "frames": frames}
    return json.dumps(document, separators=(",", ":")).encode()


def _rows(
    index: Index, track: int | None, order: Order, hidden: bool
) -> Iterator[tuple[int | float, ...]]:
    if order not in ("presentation", "decode"):
        raise ValueError(f"order is presentation or decode, not {order!r}")
    chosen = _chosen(index, track)
    refuse_unheld([chosen], index.file.size)
    samples = chosen.samples
    numbering = Numbering(chosen, samples, size=index.file.size, order=order, hidden=hidden)
    count, wanted = len(numbering), numbering.sample
    columns = (
        np.arange(count), numbering.ticks / numbering.timescale, numbering.ticks,
        numbering.durations, np.full(count, numbering.timescale), numbering.sync.astype(np.int64),
        wanted, samples.offset[wanted], samples.size[wanted],
    )  # fmt: skip
    return zip(*(column.tolist() for column in columns), strict=True)


def _chosen(index: Index, track: int | None) -> Track:
    if track is not None:
        return index.track(track)
    pictures = [one for one in index.tracks if one.kind == "video" and one.timescale]
    if not pictures:
        raise TrackNotFound("there is no video track")
    return next((one for one in pictures if len(one.sync_samples)), pictures[0])
