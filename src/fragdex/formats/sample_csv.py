"""Every sample as a line of CSV, in decode order; every frame by its number, as CSV and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.errors import LimitExceeded, TrackNotFound
from fragdex.fragments.table import NULL, SampleTable
from fragdex.indexing.samples import MAX_WITHOUT_BYTES
from fragdex.seeking.model import Index, Track, one_period_of
from fragdex.seeking.numbering import Numbering, Order
from fragdex.seeking.track import presented

ROWS_AT_ONCE = 16_384
"""So that the bytes of one turn (about 60 a row) stay in the processor's cache."""

Part = bytes | npt.NDArray[Any]


def text_rows(parts: Sequence[Part]) -> Iterator[bytes]:
    """Rows of decimal numbers and fixed text, as pieces that joined are the whole.

    Args:
        parts: what stands in each row, left to right: an array of integers or bools (as 0 and 1),
            one element a row, all of one length; or bytes that are the same in every row and hold
            no zero byte.
    """
    rows = next(len(part) for part in parts if not isinstance(part, bytes))
    for start in range(0, rows, ROWS_AT_ONCE):
        stop = min(start + ROWS_AT_ONCE, rows)
        blocks = [
            np.broadcast_to(np.frombuffer(part, np.uint8), (stop - start, len(part)))
            if isinstance(part, bytes)
            else _decimal(part[start:stop])
            for part in parts
        ]
        # Zero bytes stand before shorter numbers; they are dropped from all rows in one pass.
        yield np.concatenate(blocks, axis=1).tobytes().translate(None, b"\0")


def _decimal(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Digits right-aligned in rows of equal width, with zero bytes in front."""
    wide = values.astype(np.int64)
    negative = wide < 0
    # -(-2^63) wraps to itself, whose bits are 2^63 as an unsigned number: as intended.
    left = np.abs(wide).view(np.uint64)
    most = int(left.max())
    width = len(str(most))
    if most < 2**32:
        left = left.astype(np.uint32)  # division takes half the time
    signed = int(negative.any())
    text = np.zeros((len(left), width + signed), np.uint8)
    for place in range(width - 1, -1, -1):
        quotient = left // 10
        digit = (left - quotient * 10).astype(np.uint8) + 48
        if place != width - 1:
            digit *= left != 0
        text[:, place + signed] = digit
        left = quotient
    if signed:
        # The sign may stand left of the zero bytes: they vanish anyway.
        text[:, 0] = negative * np.uint8(45)
    return text


AT_ONCE = 1 << 17
"""Samples of whole fragments that are written out together."""

HEADER = "track_id,timescale,dts,pts,duration,size,pos,key"
"""The first line; `period` follows as a last column where there are several periods."""


def write(
    index: Index, *, presentation: bool = False, tracks: Iterable[int] | None = None
) -> bytes:
    """One line a sample, track after track, in decode order; lines end with a line feed.

    `dts`, `pts` and `duration` are ticks of the track's `timescale` on the media timeline: `pts`
    holds dts + composition offset. `pos` is the first byte in the file, `size` counts bytes, `key`
    is 1 for a sync sample.

    Args:
        presentation: add the edit list's shift to dts and pts.
        tracks: track ids to write; None: all.

    Raises:
        InexactIndex: the index holds fragments only.
        TrackNotFound: there is no such track.
        LimitExceeded: a track claims more samples than any bytes of the file stand for.
    """
    return b"".join(pieces(index, presentation=presentation, tracks=tracks))


def pieces(
    index: Index, *, presentation: bool = False, tracks: Iterable[int] | None = None
) -> Iterator[bytes]:
    """`write` piece by piece."""
    several = len(index.periods) > 1
    yield (HEADER + (",period" if several else "") + "\n").encode()
    wanted = None if tracks is None else set(tracks)
    for track_id in sorted(wanted or ()):
        if not any(track.id == track_id for track in index.tracks):
            index.track(track_id)  # raises
    chosen = [track for track in index.tracks if wanted is None or track.id in wanted]
    refuse_missing_samples(chosen, index.file.size)
    for track in chosen:
        yield from _lines(track, presentation, several)


def whole_ticks(shift: Fraction) -> int:
    """The nearest whole tick of a shift; halves go up."""
    return (2 * shift.numerator + shift.denominator) // (2 * shift.denominator)


def _lines(track: Track, presentation: bool, several: bool) -> Iterator[bytes]:
    shift = np.int64(whole_ticks(track.shift) if presentation else 0)
    end = f",{track.period}\n" if several else "\n"
    for samples in _blocks(track):
        columns = (
            samples.dts + shift,
            samples.cts + shift,
            samples.duration,
            samples.size,
            samples.offset,
            samples.sync,
        )
        separated = chain.from_iterable((b",", column) for column in columns)
        yield from text_rows([f"{track.id},{track.timescale}".encode(), *separated, end.encode()])


def refuse_missing_samples(tracks: Sequence[Track], size: int | None) -> None:
    """Refuse to write a line for each of samples that no byte of the file stands for.

    Raises:
        LimitExceeded: the tracks claim so many.
    """
    if size is None:
        stops = [int((t.fragments.offset + t.fragments.size).max(initial=0)) for t in tracks]
        size = max(stops, default=0)
    most = size + MAX_WITHOUT_BYTES
    claimed = sum(track.sample_count or 0 for track in tracks)
    if claimed > most:
        worst = max(tracks, key=lambda track: track.sample_count or 0)
        table = worst.fragments
        place = int(table.moof_offset[int(table.sample_count.argmax())])
        raise LimitExceeded(
            f"the tracks claim more samples than the file has bytes, track {worst.id} most of them",
            path="moov/trak/mdia/minf/stbl" if place == NULL else "moof/traf/trun",
            offset=None if place == NULL else place,
            expected=f"at most {most}",
            found=claimed,
        )


def _blocks(track: Track) -> Iterator[SampleTable]:
    """The samples of a track, those of some fragments at a time."""
    counts = track.fragments.sample_count
    if track.samples_ready or not track.has_samples or (counts == NULL).any():
        # They lie there as they are; or there are none, which raises.
        yield from filter(len, [track.samples])
        return
    turns = np.cumsum(counts) // AT_ONCE
    edges = [0, *(np.flatnonzero(np.diff(turns)) + 1).tolist(), len(counts)]
    for start, stop in pairwise(edges):
        yield from filter(len, [track.samples_of(start, stop)])


FRAME_COLUMNS = (
    "frame",
    "time",
    "ticks",
    "duration",
    "timescale",
    "sync",
    "sample",
    "offset",
    "size",
)
"""Of CSV, and the keys of JSON."""


def write_frames(
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
    """
    lines = (",".join(map(repr, row)) for row in _frame_rows(index, track, order, hidden))
    return "".join(f"{line}\n" for line in (",".join(FRAME_COLUMNS), *lines)).encode()


def write_frames_json(
    index: Index,
    *,
    track: int | None = None,
    order: Order = "presentation",
    hidden: bool = False,
) -> bytes:
    """The same rows as a JSON object: `track`, `timescale` and `frames`, a list of objects."""
    chosen = _chosen(index, track)
    rows = _frame_rows(index, track, order, hidden)
    names = [name for name in FRAME_COLUMNS if name != "timescale"]
    frames = []
    timescale: int | float = chosen.timescale
    for row in rows:
        fields = dict(zip(FRAME_COLUMNS, row, strict=True))
        timescale = fields["timescale"]
        frames.append({name: fields[name] for name in names} | {"sync": bool(fields["sync"])})
    document = {"track": chosen.id, "timescale": timescale, "frames": frames}
    return json.dumps(document, separators=(",", ":")).encode()


def _frame_rows(
    index: Index, track: int | None, order: Order, hidden: bool
) -> Iterator[tuple[int | float, ...]]:
    if order not in ("presentation", "decode"):
        raise ValueError(f"order is presentation or decode, not {order!r}")
    chosen = _chosen(index, track)
    refuse_missing_samples([chosen], index.file.size)
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
    pictures = presented([one for one in index.tracks if one.timescale], "video")
    if not pictures:
        raise TrackNotFound("there is no video track")
    one_period_of(pictures)
    return next((one for one in pictures if len(one.sync_samples)), pictures[0])
