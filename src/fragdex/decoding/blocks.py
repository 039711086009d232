"""Two seconds of decoded sound: the unit in which sound is decoded and kept.

A block holds the samples whose decode time lies in its two seconds of the media timeline, decoded
by a fresh decoder that was given the samples before them for warming up. So it is the same whoever
decodes it, and when (docs/decisions/0015).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.decoding.codec import TrackCodec, is_short_of_memory, packet_of
from fragdex.decoding.mixing import Floats, mixed
from fragdex.fragments.table import SampleTable
from fragdex.seeking.track import TrackIndex

__all__ = [
    "BLOCK_SECONDS",
    "MOST_PACKET",
    "Block",
    "Piece",
    "decode_block",
    "decoded",
    "packets",
    "positions",
    "wanted",
]

BLOCK_SECONDS = 2
MOST_PACKET = 16 << 20
"""Bytes of a sample: no frame of sound is larger."""
MOST_PACKETS = 20_000
"""Samples of a block: Opus has 800 of 2.5 ms, and nobody has shorter ones."""
MOST_DECODED = 1 << 24
"""Decoded samples of a block: a hostile frame can claim 65,535 in some bytes."""

ReadRanges = Callable[[Sequence[ByteRange]], list[bytes | None]]
"""Ranges of the file → their bytes; None where the file has them not."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Sound without a hole.

    Attributes:
        start: number of its first sample, counted at its rate from presentation time 0.
        data: shape (samples, channels).
        rate: samples a second.
    """

    start: int
    data: Floats
    rate: int


@dataclass(slots=True)
class Block:
    """What came of two seconds.

    Attributes:
        pieces: in the order in which they are laid down.
        gaps: [start, stop) in ticks of cts, and why.
    """

    pieces: list[Piece] = field(default_factory=list)
    gaps: list[tuple[int, int, str]] = field(default_factory=list)


def wanted(
    tables: Sequence[SampleTable], low: int, high: int, before: int
) -> Iterator[tuple[SampleTable, int]]:
    """The samples to decode for the block [low, high) of dts, and how many only warm up.

    Args:
        tables: samples in decode order, those of at least `before` ticks in front included.
    """
    for table in tables:
        body = np.flatnonzero((table.dts >= low) & (table.dts < high))
        if not len(body):
            continue
        first, last = int(body[0]), int(body[-1]) + 1
        begin = first
        floor = int(table.dts[first]) - before
        while begin and floor <= int(table.dts[begin - 1]) <= int(table.dts[begin]):
            begin -= 1
        yield table.rows(slice(begin, last)), first - begin


def positions(track: TrackIndex, cts: int, rate: int) -> int:
    """Number of the sample at a composition time, counted from presentation time 0.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> positions(fragdex.index(movie()).track(1), 0, 48000)
    0
    """
    exact = (cts + track.shift) * rate / track.timescale
    return math.floor(exact + Fraction(1, 2))


def packets(table: SampleTable, warm: int, raw: bool) -> Iterator[tuple[int, int, int, int, bool]]:
    """What is decoded at once: offset, size, cts, duration, and whether it only warms up."""
    rows = zip(
        *(c.tolist() for c in (table.offset, table.size, table.cts, table.duration)), strict=True
    )
    if not raw:
        for number, (offset, size, cts, duration) in enumerate(rows):
            yield offset, size, cts, duration, number < warm
        return
    # PCM has a sample for each moment: those that follow one another in file and time are one.
    stop, end = table.offset + table.size, table.cts + table.duration
    together = (stop[:-1] == table.offset[1:]) & (end[:-1] == table.cts[1:])
    edges = [warm, *(np.flatnonzero(~together) + 1).tolist(), len(table)]
    edges = sorted({edge for edge in edges if edge >= warm})
    for first, last in pairwise(edges):
        yield (
            int(table.offset[first]),
            int(stop[last - 1] - table.offset[first]),
            int(table.cts[first]),
            int(end[last - 1] - table.cts[first]),
            False,
        )


def decode_block(
    track: TrackIndex,
    codec: TrackCodec,
    parts: Sequence[tuple[SampleTable, int]],
    read: ReadRanges,
    channels: int,
) -> Block:
    """Decode what `wanted` told; whatever cannot be is a gap."""
    block = Block()
    left = MOST_DECODED
    for table, warm in parts:
        if len(table) > MOST_PACKETS and not codec.raw:
            cut = table.rows(slice(MOST_PACKETS, len(table)))
            block.gaps.append((int(cut.cts.min()), int(cut.cts.max()) + 1, "too many samples"))
            table = table.rows(slice(0, MOST_PACKETS))
        chosen = list(packets(table, warm, codec.raw))
        bytes_of = read([ByteRange.of(offset, size) for offset, size, *_ in chosen])
        run = _Run(track, block)
        decoder = codec.fresh()
        for (_, size, cts, duration, warms), data in zip(chosen, bytes_of, strict=True):
            if warms:
                for _frame in decoded(decoder, data)[0]:
                    pass
                continue
            frames, why = decoded(decoder, data if size <= MOST_PACKET else None)
            for frame in frames:
                left -= frame.samples
                if left < 0:
                    why = "more sound than such a span can hold"
                    break
                run.add(cts, mixed(frame, channels), frame.sample_rate)
                cts += round(Fraction(frame.samples * track.timescale, frame.sample_rate))
            if why:
                block.gaps.append((cts, cts + max(1, duration), why))
        run.close()
    return block


def decoded(decoder: Any, data: bytes | None) -> tuple[list[Any], str]:
    """Frames of a packet, and why there are none."""
    import av

    if data is None:
        return [], "missing from the file"
    if not data:
        return [], ""
    try:
        frames = decoder.decode(packet_of(data))
    except (av.FFmpegError, ValueError) as error:
        if isinstance(error, MemoryError) and is_short_of_memory():
            raise
        return [], "damaged"
    return [frame for frame in frames if frame.sample_rate and frame.samples], ""


class _Run:
    """Lays frames one behind the other, and begins anew where their times leave a hole.

    Ticks are often coarser than samples: up to two of them, sound follows the frame before.
    """

    def __init__(self, track: TrackIndex, block: Block) -> None:
        self._track, self._block = track, block
        self._parts: list[Floats] = []
        self._start = self._at = self._rate = 0

    def add(self, cts: int, data: Floats, rate: int) -> None:
        own = positions(self._track, cts, rate)
        slack = max(2, math.ceil(Fraction(2 * rate, self._track.timescale)))
        if rate != self._rate or abs(own - self._at) > slack:
            self.close()
            self._start = self._at = own
            self._rate = rate
        self._parts.append(data)
        self._at += len(data)

    def close(self) -> None:
        if self._parts:
            piece = Piece(self._start, np.concatenate(self._parts), self._rate)
            self._block.pieces.append(piece)
            self._parts = []
