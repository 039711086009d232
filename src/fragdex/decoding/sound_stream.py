"""All sound of a track, decoded once from its first sample to its last.

What looks at a whole track needs no blocks: one decoder goes through it, so that it costs little
more than decoding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from fragdex.decoding.audio_track import AudioTrack, Gap, joined
from fragdex.decoding.blocks import MOST_PACKET, Piece, decoded, packets, positions
from fragdex.decoding.fetching import fetched
from fragdex.decoding.mixing import columns
from fragdex.errors import LimitExceeded, UndecodableMedia
from fragdex.fragments.table import SampleTable
from fragdex.seeking.model import FragmentIndex
from fragdex.sources import SourceLike

__all__ = ["LONGEST_SECONDS", "SoundStream"]

LONGEST_SECONDS = 48 * 3600
"""Sound beyond is that of a broken or hostile file; a day of surveillance fits."""
AT_ONCE = 1 << 16
"""Decoded samples of a piece."""
SAMPLES_AT_ONCE = 1 << 12
"""Samples of the file whose bytes are read together."""
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
        shift, half = self.track.shift, self.track.timescale * self.track.shift.denominator
        self._scale = shift.denominator, shift.numerator, half, 2 * half

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
        reached = 0
        for start, frame in self._frames():
            data = columns(frame)
            low, high = max(reached, self._edge(0)), start + len(data)
            if self._shown[1] is not None:
                high = min(high, self._edge(1))
            if high > LONGEST_SECONDS * self.rate:
                raise LimitExceeded("the sound is too long", found=f"{high / self.rate:.0f} s")
            low = max(low, start)
            if low < high:
                reached = high
                yield Piece(low, data[low - start : high - start], self.rate)
        if not reached and self._gaps:
            first = self.gaps[0]
            raise UndecodableMedia(
                f"the sound of track {self.track.id} cannot be decoded: {first.reason}",
                start=first.start,
                stop=self.gaps[-1].stop,
            )

    def _edge(self, which: int) -> int:
        tick = self._shown[which]
        return max(0, positions(self.track, tick, self.rate)) if tick is not None else 0

    def _frames(self) -> Iterator[tuple[int, Any]]:
        """Number of the first sample, and a PyAV frame of many samples without a hole."""
        import av

        decoder, fifo = self._codec.fresh(), av.AudioFifo()
        start = at = total = slack = 0
        resampler: Any = None
        for table in self._tables():
            for cts, duration, data in self._packets(table):
                frames, why = decoded(decoder, data)
                for number, frame in enumerate(frames):
                    if resampler is None:
                        self.rate, self.layout = frame.sample_rate, frame.layout.name
                        resampler = av.AudioResampler(frame.format, frame.layout, self.rate)
                        slack = max(2, math.ceil(Fraction(2 * self.rate, self.track.timescale)))
                    own = at if number else self._place(cts)
                    if abs(own - at) > slack:
                        if fifo.samples:
                            yield start, fifo.read()
                        start = at = own
                    frame.pts = None
                    before = fifo.samples
                    try:
                        fifo.write(frame)
                    except ValueError:  # another format, rate or layout than the first
                        for part in resampler.resample(frame):
                            part.pts = None
                            fifo.write(part)
                    at += fifo.samples - before
                    total += fifo.samples - before
                if why:
                    shown = self.track.presentation
                    stop = cts + max(1, duration)
                    self._gaps.append(Gap(shown(cts).seconds, shown(stop).seconds, why))
                while fifo.samples >= AT_ONCE:
                    yield start, fifo.read(AT_ONCE)
                    start += AT_ONCE
                if total > LONGEST_SECONDS * max(self.rate, 1):
                    raise LimitExceeded("the file holds more sound than two days")
        if fifo.samples:
            yield start, fifo.read()

    def _place(self, cts: int) -> int:
        """As `positions`, in whole numbers: it is asked for each sample of the file."""
        denominator, numerator, half, below = self._scale
        return (2 * (cts * denominator + numerator) * self.rate + half) // below

    def _tables(self) -> Iterator[SampleTable]:
        rows = len(self.track.fragments)
        for row in range(0, rows, ROWS_AT_ONCE):
            table = self.samples.rows(row, min(row + ROWS_AT_ONCE, rows))
            step = AT_ONCE if self._codec.raw else SAMPLES_AT_ONCE
            for first in range(0, len(table), step):
                yield table.rows(slice(first, first + step))

    def _packets(self, table: SampleTable) -> Iterator[tuple[int, int, bytes | None]]:
        """Composition time, duration and bytes of what is decoded at once."""
        chosen = list(packets(table, 0, self._codec.raw))
        held = fetched(self._source, [table])
        parts = held.parts((offset, size) for offset, size, *_ in chosen)
        for (_, size, cts, duration, _), data in zip(chosen, parts, strict=True):
            yield cts, duration, data if size <= MOST_PACKET else None
