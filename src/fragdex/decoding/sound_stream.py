"""All sound of a track, decoded once from its first sample to its last.

What looks at a whole track needs no blocks: one decoder goes through it, so that it costs little
more than decoding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from fragdex.decoding.audio_track import AudioTrack, Gap, joined
from fragdex.decoding.blocks import MOST_PACKET, Piece, packets, positions
from fragdex.decoding.codec import is_short_of_memory
from fragdex.decoding.fetching import fetched
from fragdex.decoding.mixing import Floats, finite, planes
from fragdex.errors import LimitExceeded, UndecodableMedia
from fragdex.fragments.table import SampleTable
from fragdex.seeking.model import FragmentIndex
from fragdex.sources import SourceLike

__all__ = ["LONGEST_SECONDS", "SoundStream"]

LONGEST_SECONDS = 48 * 3600
"""Sound beyond is that of a broken or hostile file; a day of surveillance fits."""
AT_ONCE = 1 << 15
"""Decoded samples of a piece: those of a few channels stay in the processor's cache."""
SAMPLES_AT_ONCE = 1 << 12
"""Samples of the file whose bytes are read together."""
_NEVER = 1 << 62
"""No sample lies beyond."""
ROWS_AT_ONCE = 64
"""Rows of the fragment table whose samples are asked for together."""


class SoundStream(AudioTrack):
    """All sound of a track in order.

    Attributes:
        rate: samples a second, as its first frame has them; 0 before that.
        layout: FFmpeg's name of its channels, likewise.

    Args and errors as of `AudioTrack`; UndecodableMedia also of an encrypted track.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie()
    >>> SoundStream(fragdex.index(data), data)
    Traceback (most recent call last):
    ...
    fragdex.errors.TrackNotFound: there is no audio track
    """

    def __init__(
        self,
        index: FragmentIndex,
        source: SourceLike,
        *,
        track: int | None = None,
        init: bytes | None = None,
    ) -> None:
        super().__init__(index, source, track=track, init=init)
        if self.track.info.encryption is not None:
            self.close()
            raise UndecodableMedia(f"the sound of track {self.track.id} is encrypted")
        self.rate, self.layout = 0, ""
        self._gaps: list[Gap] = []

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What could not be decoded, as far as `pieces` went."""
        return tuple(joined(self._gaps))

    def pieces(self) -> Iterator[Piece]:
        """Sound, in the order of its times, none twice: of one rate, in the channels of `layout`.

        A sample is counted from presentation time 0. What the edit list hides is left out, and so
        is what lies before presentation time 0. Between two pieces may be a hole.

        Raises:
            LimitExceeded: the track claims to last longer than two days.
            UndecodableMedia: nothing of it can be decoded.
            And what reading the source raises, but for a file that ends too early.
        """
        for start, rows in self.rows():
            yield Piece(start, finite(np.array(rows).T), self.rate)

    def rows(self) -> Iterator[tuple[int, list[Floats]]]:
        """The same as the number of the first sample, and the samples of each channel.

        What a broken stream decodes to is still in them, as `mixing.planes` says.

        Raises: as `pieces`.
        """
        reached, edges = 0, None
        for start, frame in self._frames():
            edges = edges or self._edges()
            low, high = max(reached, edges[0]), min(start + frame.samples, edges[1])
            if high > LONGEST_SECONDS * self.rate:
                raise LimitExceeded("the sound is too long", found=f"{high / self.rate:.0f} s")
            low = max(low, start)
            if low < high:
                reached = high
                yield low, [plane[low - start : high - start] for plane in planes(frame)]
        if not reached and self._gaps:
            first = self.gaps[0]
            raise UndecodableMedia(
                f"the sound of track {self.track.id} cannot be decoded: {first.reason}",
                start=first.start,
                stop=self.gaps[-1].stop,
            )

    def _edges(self) -> tuple[int, int]:
        """What the edit list shows, in samples."""
        low, high = (
            None if tick is None else max(0, positions(self.track, tick, self.rate))
            for tick in self._shown
        )
        return low or 0, _NEVER if high is None else high

    def _frames(self) -> Iterator[tuple[int, Any]]:
        """Number of the first sample, and a PyAV frame of many samples without a hole."""
        import av

        decode, packet, fifo = self._codec.fresh().decode, av.Packet, av.AudioFifo()
        start = at = total = slack = 0
        factor = shift = 0  # cts → number of a sample, as `positions`, in whole numbers
        below = 2 * self.track.timescale * self.track.shift.denominator
        resampler: Any = None
        for table in self._tables():
            # a turn for each frame of hours: what is done here is soon as much as decoding
            for cts, duration, data in self._packets(table):
                why, frames = "", list[Any]()
                try:
                    if data:
                        frames = decode(packet(data))
                    elif data is None:
                        why = "missing from the file"
                except (av.FFmpegError, ValueError) as error:
                    if isinstance(error, MemoryError) and is_short_of_memory():
                        raise
                    why = "damaged"
                is_first = True
                for frame in frames:
                    count = frame.samples
                    if not count:
                        continue
                    if resampler is None:
                        if not frame.sample_rate:
                            continue
                        self.rate, self.layout = frame.sample_rate, frame.layout.name
                        resampler = av.AudioResampler(frame.format, frame.layout, self.rate)
                        slack = max(2, math.ceil(Fraction(2 * self.rate, self.track.timescale)))
                        factor = 2 * self.rate * self.track.shift.denominator
                        shift = 2 * self.rate * self.track.shift.numerator + below // 2
                    if is_first:
                        own = (cts * factor + shift) // below
                        if not -slack <= own - at <= slack:
                            if fifo.samples:
                                yield start, fifo.read()
                            start = at = own
                        is_first = False
                    frame.pts = None
                    try:
                        fifo.write(frame)
                        at += count
                    except ValueError:  # another format, rate or layout than the first
                        if not frame.sample_rate:
                            continue
                        before = fifo.samples
                        for part in resampler.resample(frame):
                            part.pts = None
                            fifo.write(part)
                        at += fifo.samples - before
                if why:
                    shown = self.track.presentation
                    stop = cts + max(1, duration)
                    self._gaps.append(Gap(shown(cts).seconds, shown(stop).seconds, why))
                while at - start >= AT_ONCE:
                    yield start, fifo.read(AT_ONCE)
                    start += AT_ONCE
                    total += AT_ONCE
                    if total > LONGEST_SECONDS * self.rate:
                        raise LimitExceeded("the file holds more sound than two days")
        if fifo.samples:
            yield start, fifo.read()

    def _tables(self) -> Iterator[SampleTable]:
        rows = len(self.track.fragments)
        for row in range(0, rows, ROWS_AT_ONCE):
            table = self.samples.rows(row, min(row + ROWS_AT_ONCE, rows))
            step = AT_ONCE if self._codec.raw else SAMPLES_AT_ONCE
            for first in range(0, len(table), step):
                yield table.rows(slice(first, first + step))

    def _packets(self, table: SampleTable) -> Iterable[tuple[int, int, bytes | None]]:
        """Composition time, duration and bytes of what is decoded at once."""
        held = fetched(self._source, [table])
        if self._codec.raw:
            chosen = list(packets(table, 0, raw=True))
            parts = held.parts((offset, size) for offset, size, *_ in chosen)
            rows = zip(chosen, parts, strict=True)
            return [(cts, duration, data) for (_, _, cts, duration, _), data in rows]
        sizes = table.size.tolist()
        parts = held.parts(zip(table.offset.tolist(), sizes, strict=True))
        if max(sizes, default=0) > MOST_PACKET:
            parts = [None if size > MOST_PACKET else part
                     for part, size in zip(parts, sizes, strict=True)]  # fmt: skip
        return zip(table.cts.tolist(), table.duration.tolist(), parts, strict=True)
