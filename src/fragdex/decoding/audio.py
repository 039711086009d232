"""The sound of any span of a file, by ranges through its index."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from fragdex.decoding.open_track import fetched
from fragdex.decoding.sound_stream import (
    BLOCK_SECONDS,
    MARGIN,
    AudioTrack,
    Block,
    Floats,
    Gap,
    SoundPiece,
    decode_block,
    joined,
    needed,
    positions,
    resampled,
    span_of,
    wanted,
)
from fragdex.errors import LimitExceeded, UndecodableMedia
from fragdex.fragments.table import SampleTable
from fragdex.seeking.model import Index
from fragdex.seeking.times import TimeLike, exact_time
from fragdex.sources import SourceLike

__all__ = ["AudioOptions", "AudioReader", "Gap", "SoundArray", "audio"]

SoundArray: TypeAlias = npt.NDArray[np.int16] | npt.NDArray[np.float32]
"""Samples of sound: int16, or float32 with full scale at 1."""


class AudioOptions(TypedDict, total=False):
    """What `audio` takes by name, with its defaults.

    Attributes:
        track: track_ID; None: the first audio track.
        rate: samples a second.
        channels: 1 or 2.
        dtype: int16 or float32.
        init: the initialization segment; None: it is read.
    """

    track: int | None
    rate: int
    channels: int
    dtype: npt.DTypeLike
    init: bytes | None


KEPT_BLOCKS = 24
"""Decoded blocks that are kept: 48 seconds, what a slice and its borders need."""
AT_ONCE = 16
"""Seconds that are put together at once: bounds the memory in addition to the answer."""
MOST_VALUES = 1 << 31
"""Values of one answer: twelve hours at 48 kHz."""


def audio(
    index: Index,
    source: SourceLike,
    start: TimeLike,
    stop: TimeLike,
    *,
    track: int | None = None,
    rate: int = 16000,
    channels: int = 1,
    dtype: npt.DTypeLike = np.int16,
    init: bytes | None = None,
) -> SoundArray:
    """The decoded sound of a span, read by ranges.

    Sample n of the answer is shown at start + n / rate seconds, whatever the file's own rate,
    edit lists and start are; where nothing is shown, it is silence. Any span equals the same span
    cut out of the whole.

    Args:
        index: of the file; where a sidx or mfra made it, the headers of all fragments are read
            for one that tells more, so use an exact one for a remote file.
        source: the file, in any form that `fragdex.open_source` takes.
        start: a presentation time as `Track.seek` takes it, rounded to a sample.
        stop: likewise, exclusive.
        track: track_ID; None: the first audio track.
        rate: samples a second.
        channels: 1 or 2; more are mixed to that.
        dtype: int16, or float32 with full scale at 1.
        init: the initialization segment, for segments that have none.

    Returns: shape (samples,) for one channel, (samples, 2) for two.

    Raises:
        TrackNotFound: no such track, or it is not audio.
        UndecodableMedia: some of the span is encrypted, its codec is unknown, or nothing of it
            could be decoded; `start` and `stop` are the span. Damaged parts next to sound are
            silence; `AudioReader` reports them.
        ValueError: stop lies before start, or a rate, number of channels or dtype that is not
            supported.
        MissingExtra: PyAV is not installed (extra `media`).

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie()
    >>> fragdex.decoding.audio(fragdex.index(data), data, 0, 1)
    Traceback (most recent call last):
    ...
    fragdex.errors.TrackNotFound: there is no audio track
    """
    with AudioReader(
        index, source, track=track, rate=rate, channels=channels, dtype=dtype, init=init
    ) as reader:
        samples = reader.read(start, stop)
        gaps = reader.gaps(start, stop)
        closed = [gap for gap in gaps if gap.reason.startswith("encrypted")]
        if gaps and (closed or not samples.any()):
            gaps = tuple(closed) or gaps
            first, last = gaps[0].start, max(gap.stop for gap in gaps)
            raise UndecodableMedia(
                f"the sound of track {reader.track.id} cannot be decoded: {gaps[0].reason}",
                start=max(first, float(exact_time(start))),
                stop=min(last, float(exact_time(stop))),
            )
        return samples


class AudioReader(AudioTrack):
    """Sound of one track, for many spans: decoded blocks are kept for the next one.

    Attributes:
        track: the `Track` that is read.
        samples: its `TrackSamples`.
        rate, channels: of what `read` gives.

    Args and errors as of `audio`, and `centre`: a centre channel first, where people speak; the
    others are mixed in 20 dB lower. A context manager; a source that it opened is closed with it.
    For one thread at a time.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie()
    >>> AudioReader(fragdex.index(data), data)
    Traceback (most recent call last):
    ...
    fragdex.errors.TrackNotFound: there is no audio track
    """

    def __init__(
        self,
        index: Index,
        source: SourceLike,
        *,
        track: int | None = None,
        rate: int = 16000,
        channels: int = 1,
        dtype: npt.DTypeLike = np.int16,
        init: bytes | None = None,
        centre: bool = False,
    ) -> None:
        self.rate, self.channels, self._dtype = rate, channels, np.dtype(dtype)
        self._centre = centre
        if channels not in (1, 2) or not 1000 <= rate <= 384_000:
            raise ValueError("1 or 2 channels, and 1,000 to 384,000 samples a second")
        if self._dtype not in (np.dtype(np.int16), np.dtype(np.float32)):
            raise ValueError("sound is int16 or float32")
        super().__init__(index, source, track=track, init=init)
        self._block_ticks = BLOCK_SECONDS * self.track.timescale
        self._before = math.ceil(self._codec.memory * self.track.timescale)
        self._blocks: OrderedDict[int, Block] = OrderedDict()
        self._gaps: dict[int, list[Gap]] = {}

    def read(self, start: TimeLike, stop: TimeLike) -> npt.NDArray[Any]:
        """The sound from `start` to `stop` (exclusive), times as `Track.seek` takes them.

        Raises: ValueError, LimitExceeded (an answer of more than 2^31 values); and what reading
        the source raises, but for a file that ends too early.
        """
        times = exact_time(start), exact_time(stop)
        if math.inf in map(abs, times):
            raise ValueError(f"a span needs a finite start and end, not {start} to {stop}")
        first, last = (round(time * self.rate) for time in times)
        if last < first:
            raise ValueError(f"the span ends ({stop}) before it starts ({start})")
        if (last - first) * self.channels > MOST_VALUES:
            raise LimitExceeded("the span is too long for one array", found=last - first)
        answer = np.zeros((last - first, self.channels), self._dtype)
        step = AT_ONCE * self.rate
        for at in range(first, last, step):
            until = min(at + step, last)
            heard = self._span(at, until)
            if heard is None:
                continue
            if self._dtype == np.int16:
                np.multiply(heard, np.float32(32768), out=heard)
                heard = np.clip(np.rint(heard, out=heard), -32768, 32767)
            answer[at - first : until - first] = heard
        return answer[:, 0] if self.channels == 1 else answer

    def tables(self, start: TimeLike, stop: TimeLike) -> list[SampleTable]:
        """The samples whose bytes `read` decodes for the sound from `start` to `stop`.

        In decode order, those that warm up the decoder included.
        """
        low, high = (Fraction(exact_time(time)) for time in (start, stop))
        parts = self._parts(self._numbers(*self._margins(low, high)))
        return [table for number in sorted(parts) for table, _ in parts[number]]

    def gaps(self, start: TimeLike, stop: TimeLike) -> tuple[Gap, ...]:
        """What could not be decoded between `start` and `stop`, as far as it was read."""
        begin, end = exact_time(start), exact_time(stop)
        every = (gap for gaps in self._gaps.values() for gap in gaps)
        ordered = sorted(every, key=lambda gap: gap.start)
        return tuple(joined([g for g in ordered if g.stop > begin and g.start < end]))

    def _span(self, start: int, stop: int) -> Floats | None:
        """Samples [start, stop) of the wanted rate; None where there is only silence."""
        low, high = self._margins(Fraction(start, self.rate), Fraction(stop, self.rate))
        blocks = self._read_blocks(low, high)
        pieces = [piece for block in blocks for piece in block.pieces]
        answer: Floats | None = None
        for rate in sorted({piece.rate for piece in pieces}):
            first, last = needed(start, stop, rate, self.rate)
            laid = self._laid([p for p in pieces if p.rate == rate], first, last, rate)
            part = resampled(laid, first, start, stop, rate, self.rate)
            answer = part if answer is None else answer + part
        return answer

    def _margins(self, low: Fraction, high: Fraction) -> tuple[int, int]:
        """The ticks between which the sound of a span of seconds is decoded."""
        margin = Fraction(MARGIN) + Fraction(1, 10)
        return self._ticks(low - margin), self._ticks(high + margin) + 1

    def _ticks(self, seconds: Fraction) -> int:
        return math.floor(seconds * self.track.timescale - self.track.shift)

    def _laid(self, pieces: Sequence[SoundPiece], first: int, last: int, rate: int) -> Floats:
        """Pieces of one rate on one strip, later ones over earlier ones."""
        strip = np.zeros((last - first, self.channels), np.float32)
        slack = max(2, math.ceil(Fraction(2 * rate, self.track.timescale)))
        end = None
        for piece in pieces:
            if end is not None and 0 < piece.start - end[0] <= slack:
                # Rounding to ticks left this hole: what was heard last is held.
                low, high = max(end[0], first), min(piece.start, last)
                if low < high:
                    strip[low - first : high - first] = end[1]
            low, high = max(piece.start, first), min(piece.start + len(piece.data), last)
            if low < high:
                strip[low - first : high - first] = piece.data[
                    low - piece.start : high - piece.start
                ]
            end = piece.start + len(piece.data), piece.data[-1]
        begin, finish = self._shown
        if begin is not None:
            place = positions(self.track, begin, rate)
            strip[: max(0, min(place - first, last - first))] = 0
        if finish is not None:
            place = positions(self.track, finish, rate)
            strip[max(0, place - first) :] = 0
        return strip

    def _read_blocks(self, low: int, high: int) -> list[Block]:
        """The blocks with sound between two times of the media timeline, in ticks."""
        numbers = self._numbers(low, high)
        missing = sorted(numbers - self._blocks.keys())
        if missing:
            self._decode(missing)
        for number in sorted(numbers):
            self._blocks.move_to_end(number)
        blocks = [self._blocks[number] for number in sorted(numbers)]
        while len(self._blocks) > KEPT_BLOCKS:
            self._blocks.popitem(last=False)
        return blocks

    def _numbers(self, low: int, high: int) -> set[int]:
        """The blocks of the samples between two times, in ticks."""
        numbers: set[int] = set()
        for table in self.samples.between(low, high):
            numbers.update(np.unique(table.dts // self._block_ticks).tolist())
        return numbers

    def _parts(self, numbers: Iterable[int]) -> dict[int, list[tuple[SampleTable, int]]]:
        """The samples of blocks, and how many of them only warm up."""
        size = self._block_ticks
        tables = {
            number: list(self.samples.between(number * size - self._before, (number + 1) * size))
            for number in numbers
        }
        return {
            number: list(wanted(tables[number], number * size, (number + 1) * size, self._before))
            for number in tables
        }

    def _decode(self, numbers: Sequence[int]) -> None:
        every = {
            number: [one for table, warm in part for one in self.clear_parts(table, warm)]
            for number, part in self._parts(numbers).items()
        }
        parts = {
            number: [(table, warm) for table, warm, why in part if not why]
            for number, part in every.items()
        }
        data = fetched(self._source, [table for part in parts.values() for table, _ in part])
        for number in numbers:
            block = decode_block(
                self.track, self._codec, parts[number], data.ranges, self.channels,
                centre=self._centre,
            )  # fmt: skip
            for table, warm, why in every[number]:
                if why and warm < len(table):
                    block.gaps.append((*span_of(table.rows(slice(warm, len(table)))), why))
            self._blocks[number] = block
            if block.gaps:
                self._gaps[number] = joined([self._gap(*gap) for gap in block.gaps])
