"""Decoded sound of a track: in blocks of two seconds, or all of it in one pass.

A block holds the samples whose decode time lies in its two seconds of the media timeline, decoded
by a fresh decoder that was given the samples before them for warming up. So it is the same whoever
decodes it, and when (docs/decisions/0015). What looks at a whole track needs no blocks: one decoder
goes through it, so that it costs little more than decoding.

Decoded frames become float32 columns of one or two channels. Loudness is kept: a channel that goes
to both sides goes to each at its own level, and a mix of several is scaled so that it cannot pass
full scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange
from fragdex.decoding.codec import TrackCodec, is_short_of_memory, packet_of
from fragdex.decoding.open_track import FAR, OpenTrack, TrackSamples, fetched
from fragdex.errors import LimitExceeded, TrackNotFound, UndecodableMedia
from fragdex.fragments.table import Int64, SampleTable
from fragdex.fragments.track_info import DESCRIPTION
from fragdex.record import record
from fragdex.seeking.model import Index, Track, one_period_of
from fragdex.seeking.track import presented
from fragdex.sources import SourceLike

Floats = npt.NDArray[np.float32]

_HALF = 0.5**0.5
# Left and right share of each channel (ITU-R BS.775-3, Annex 4); the low frequency effects are
# left out, as there.
_SHARES = {
    "FL": (1.0, 0.0), "FR": (0.0, 1.0), "FC": (_HALF, _HALF), "LFE": (0.0, 0.0),
    "BL": (_HALF, 0.0), "BR": (0.0, _HALF), "SL": (_HALF, 0.0), "SR": (0.0, _HALF),
    "BC": (0.5, 0.5), "FLC": (1.0, 0.0), "FRC": (0.0, 1.0), "DL": (1.0, 0.0), "DR": (0.0, 1.0),
}  # fmt: skip
_ASIDE = 0.1
"""Share of the channels next to a centre, where speech is wanted: 20 dB less."""
_FULL_SCALE = {np.dtype(np.int16): 2.0**15, np.dtype(np.int32): 2.0**31}


def mixed(frame: Any, channels: int, *, centre: bool = False) -> Floats:
    """The samples of a PyAV audio frame.

    Args:
        centre: a centre channel first, where people speak; the others 20 dB lower.

    Returns: shape (samples, channels), full scale is 1.
    """
    own = columns(frame)
    count = own.shape[1]
    if count == channels:
        return own
    if count == 1:
        return np.repeat(own, channels, axis=1)
    left, right = _sides(frame, own, centre)
    if channels == 1:
        return ((left + right) * np.float32(0.5))[:, None]
    return np.stack([left, right], axis=1)


def columns(frame: Any) -> Floats:
    """The samples of a PyAV audio frame in its own channels: shape (samples, channels)."""
    array = frame.to_ndarray()
    count = len(frame.layout.channels)
    array = array.T if frame.format.is_planar else array.reshape(-1, count)
    if array.dtype == np.uint8:
        levels: Floats = (array.astype(np.float32) - 128) / np.float32(128)
        return levels
    scale = _FULL_SCALE.get(array.dtype, 1.0)
    values: Floats = array.astype(np.float32, copy=False)
    if scale != 1.0:
        values /= np.float32(scale)
    return finite(values)


def finite(values: Floats) -> Floats:
    """What a broken stream decodes to must not spread through a mix or a filter."""
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = np.isfinite(values.sum())
    return values if is_finite else np.nan_to_num(values, nan=0.0, posinf=1.0, neginf=-1.0)


def planes(frame: Any) -> list[Floats]:
    """The samples of each channel of a PyAV audio frame, without a copy where that can be.

    What a broken stream decodes to is still in them: infinities, and values that are not numbers.
    """
    if frame.format.name == "fltp":
        return [np.frombuffer(plane, np.float32, frame.samples) for plane in frame.planes]
    return list(np.ascontiguousarray(columns(frame).T))


def _sides(frame: Any, own: Floats, centre: bool) -> tuple[Floats, Floats]:
    names = [channel.name for channel in frame.layout.channels]
    if len(names) == 2:
        return own[:, 0], own[:, 1]
    shares = [_SHARES.get(name, (0.5, 0.5)) for name in names]
    if centre and "FC" in names:
        shares = [
            share if name == "FC" else (_ASIDE * share[0], _ASIDE * share[1])
            for name, share in zip(names, shares, strict=True)
        ]
    sides = []
    for side in (0, 1):
        total = sum(share[side] for share in shares) or 1.0
        mix = np.zeros(len(own), np.float32)
        for place, share in enumerate(shares):
            if share[side]:
                mix += own[:, place] * np.float32(share[side] / total)
        sides.append(mix)
    return sides[0], sides[1]


MARGIN = 0.05
"""Seconds of input on both sides of the wanted span: longer than the filter."""


def needed(start: int, stop: int, have: int, want: int) -> tuple[int, int]:
    """Samples [low, high) of rate `have` that make samples [start, stop) of rate `want`."""
    if have == want:
        return start, stop
    common = math.gcd(have, want)
    step, out = have // common, want // common
    margin = -(-int(have * MARGIN) // step) * step
    return start // out * step - margin, -(-stop // out) * step + margin


def resampled(data: Floats, low: int, start: int, stop: int, have: int, want: int) -> Floats:
    """Samples [start, stop) of rate `want`.

    Args:
        data: shape (samples, channels) of rate `have`: exactly what `needed` tells.
        low: number of its first sample.
    """
    if have == want:
        return data
    import av

    layout = "mono" if data.shape[1] == 1 else "stereo"
    resampler: Any = av.AudioResampler(format="fltp", layout=layout, rate=want)
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(data.T), format="fltp", layout=layout)
    frame.sample_rate = have
    parts = [part.to_ndarray() for part in (*resampler.resample(frame), *resampler.resample(None))]
    first = start - low * want // have
    whole = np.concatenate(parts, axis=1)[:, first : first + stop - start]
    columns: Floats = whole.T
    return columns


BLOCK_SECONDS = 2
MOST_PACKET = 16 << 20
"""Bytes of a sample: no frame of sound is larger."""
MOST_PACKETS = 20_000
"""Samples of a block: Opus has 800 of 2.5 ms, and nobody has shorter ones."""
MOST_DECODED = 1 << 24
"""Decoded samples of a block: a hostile frame can claim 65,535 in some bytes."""

ReadRanges = Callable[[Sequence[ByteRange]], list[bytes | None]]
"""Ranges of the file → their bytes; None where the file has them not."""


@record(frozen=True, slots=True)
class SoundPiece:
    """Sound without a hole.

    Attributes:
        start: number of its first sample, counted at its rate from presentation time 0.
        data: shape (samples, channels).
    """

    start: int
    data: Floats
    rate: int


@record(slots=True)
class Block:
    """What came of two seconds.

    Attributes:
        pieces: in the order in which they are laid down.
        gaps: [start, stop) in ticks of cts, and why.
    """

    pieces: list[SoundPiece] = field(default_factory=list)
    gaps: list[tuple[int, int, str]] = field(default_factory=list)


def wanted(
    tables: Sequence[SampleTable], low: int, high: int, before: int
) -> Iterator[tuple[SampleTable, int]]:
    """The samples to decode for the block [low, high) of dts, and how many only warm up."""
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


def span_of(table: SampleTable) -> tuple[int, int]:
    """Ticks from which to which samples are shown."""
    return int(table.cts.min()), int((table.cts + np.maximum(table.duration, 1)).max())


def positions(track: Track, cts: int, rate: int) -> int:
    """Number of the sample at a composition time, counted from presentation time 0."""
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
    track: Track,
    codec: TrackCodec,
    parts: Sequence[tuple[SampleTable, int]],
    read: ReadRanges,
    channels: int,
    *,
    centre: bool = False,
) -> Block:
    """Decode what `wanted` told, mixed as by `mixed`; whatever cannot be is a gap."""
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
                run.add(cts, mixed(frame, channels, centre=centre), frame.sample_rate)
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
    """Lays frames one after the other, and starts again where their times leave a hole.

    Ticks are often coarser than samples: up to two of them, sound follows the frame before.
    """

    def __init__(self, track: Track, block: Block) -> None:
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
            piece = SoundPiece(self._start, np.concatenate(self._parts), self._rate)
            self._block.pieces.append(piece)
            self._parts = []


@record(frozen=True, slots=True)
class Gap:
    """A span without sound, because its samples cannot be had.

    Attributes:
        start, stop: seconds of presentation time (exclusive).
        reason: why, in some words.

    >>> Gap(1.0, 2.5, "missing from the file").stop
    2.5
    """

    start: float
    stop: float
    reason: str


class AudioTrack(OpenTrack):
    """A track of sound that is open for decoding.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> data = movie()
    >>> AudioTrack(fragdex.index(data), data)
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
        init: bytes | None = None,
    ) -> None:
        super().__init__(index, _chosen(index, track), source, init)
        self._shown = _shown(self.track, self._period.movie, self._codec.skip)
        self.samples = TrackSamples(self._index, self.track, self._source)
        self._closed = _encrypted_times(self.track, self.samples)
        self._opened()

    def clear_parts(
        self, table: SampleTable, warm: int = 0
    ) -> Iterator[tuple[SampleTable, int, str]]:
        """Stretches of samples that are clear, or encrypted.

        Args:
            warm: how many of the first ones only warm up the decoder.

        Returns: each with how many of it only warm up, and why it cannot be decoded, or "".
        """
        if not len(self._closed):
            yield table, warm, ""
            return
        is_closed = np.searchsorted(self._closed, table.dts, side="right") % 2 == 1
        edges = [0, *(np.flatnonzero(np.diff(is_closed)) + 1).tolist(), len(table)]
        for low, high in pairwise(edges):
            if low < high:
                left = min(max(warm - low, 0), high - low)
                yield table.rows(slice(low, high)), left, self._why if is_closed[low] else ""

    def _gap(self, low: int, high: int, why: str) -> Gap:
        """That of a span of ticks of cts."""
        shown = self.track.presentation
        return Gap(shown(low).seconds, shown(high).seconds, why)

    @property
    def _why(self) -> str:
        encryption = self.track.info.encryption
        return f"encrypted ({(encryption and encryption.scheme) or 'unknown scheme'})"


def _encrypted_times(track: Track, samples: TrackSamples) -> Int64:
    """Decode times at which encrypted samples begin and end, in turns."""
    encryption = track.info.encryption
    if encryption is None or not track.is_encrypted():
        return np.zeros(0, np.int64)
    if not track.has_clear_samples:
        return np.array([-FAR])
    starts, times = track.fragments.sample_start, track.fragments.dts

    def time(number: int) -> int:
        row = int(np.searchsorted(starts, number, side="right")) - 1
        inside = number - int(starts[row])
        if not inside:
            return int(times[row])
        table = samples.rows(row, row + 1)
        return int(table.dts[inside]) if inside < len(table) else FAR

    runs = [
        (one.sample_start, one.sample_start + one.sample_count)
        for one in track.groups
        if one.grouping_type == DESCRIPTION and one.value in encryption.descriptions
    ]
    return np.array([time(number) for run in runs for number in run], np.int64)


def joined(gaps: Sequence[Gap]) -> list[Gap]:
    """Gaps that touch, and have one reason, as one."""
    gaps_joined: list[Gap] = []
    for gap in gaps:
        last = gaps_joined[-1] if gaps_joined else None
        if last is not None and last.reason == gap.reason and gap.start <= last.stop + 0.05:
            gaps_joined[-1] = Gap(last.start, max(last.stop, gap.stop), gap.reason)
        else:
            gaps_joined.append(gap)
    return gaps_joined


def _chosen(index: Index, track: int | None) -> Track:
    sounds = presented(index.tracks, "audio")
    if track is None:
        if not sounds:
            raise TrackNotFound("there is no audio track")
        one_period_of(sounds)
        chosen = sounds[0]
    else:
        chosen = index.track(track)
        if chosen.kind != "audio":
            sounds = [t for t in index.tracks if t.kind == "audio"]
            names = ", ".join(str(t.id) for t in sounds) or "none"
            raise TrackNotFound(
                f"track {track} is not an audio track",
                expected=f"one of {names}",
                found=chosen.kind,
            )
    if not chosen.timescale:
        raise TrackNotFound(f"the timescale of track {chosen.id} is unknown, so it has no times")
    return chosen


def _shown(track: Track, movie: Any, skip: int) -> tuple[int | None, int | None]:
    """First (inclusive) and last (exclusive) tick of cts that the edit list shows; None: all."""
    edits = [edit for edit in track.info.edits if edit.media_time >= 0]
    if not edits:
        first = min((int(c) for c in track.fragments.cts_min[:1]), default=0)
        return (first + skip * track.timescale // 48000 if skip else None), None
    begin = edits[0].media_time
    # Of several edits only the first is applied, as in the whole library: what follows stays.
    whole = len(edits) > 1 or track.info.edits[-1] is not edits[0] or not edits[0].duration
    if whole or movie.fragmented or not movie.timescale:
        return begin, None
    ticks = Fraction(edits[0].duration * track.timescale, movie.timescale)
    return begin, begin + math.ceil(ticks)


LONGEST_SECONDS = 48 * 3600
"""Sound beyond is that of a broken or hostile file; a day of surveillance fits."""
AT_ONCE = 1 << 15
"""Decoded samples of a piece: those of a few channels stay in the processor's cache."""
SAMPLES_AT_ONCE = 1 << 12
"""Samples of the file whose bytes are read together."""
_NEVER = 1 << 62
"""No sample lies beyond."""
ROWS_AT_ONCE = 64
"""Rows of the fragment table whose samples are requested together."""


class SoundStream(AudioTrack):
    """All sound of a track in order.

    Attributes:
        rate: samples a second, as its first frame has them; 0 before that.
        layout: FFmpeg's name of its channels, likewise.

    Args and errors as of `AudioTrack`; UndecodableMedia also of a track that is
    encrypted in all its parts; of another one, what is encrypted is a gap.
    """

    def _opened(self) -> None:
        if not self.track.has_clear_samples:
            self.close()
            raise UndecodableMedia(f"the sound of track {self.track.id} is encrypted")
        self.rate, self.layout = 0, ""
        self._gaps: list[Gap] = []

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """What could not be decoded, as far as `pieces` went."""
        return tuple(joined(self._gaps))

    def pieces(self) -> Iterator[SoundPiece]:
        """Sound, in the order of its times, none twice: of one rate, in the channels of `layout`.

        A sample is counted from presentation time 0. What the edit list hides is left out, and so
        is what lies before presentation time 0. Between two pieces may be a hole.

        Raises:
            LimitExceeded: the track claims to last longer than two days.
            UndecodableMedia: nothing of it can be decoded.
            And what reading the source raises, but for a file that ends too early.
        """
        for start, rows in self.rows():
            yield SoundPiece(start, finite(np.array(rows).T), self.rate)

    def rows(self) -> Iterator[tuple[int, list[Floats]]]:
        """The same as the number of the first sample, and the samples of each channel.

        What a broken stream decodes to is still in them, as `planes` says.

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
                    self._gaps.append(self._gap(cts, cts + max(1, duration), why))
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
            step = AT_ONCE if self._codec.raw else SAMPLES_AT_ONCE
            for table, _, why in self.clear_parts(
                self.samples.rows(row, min(row + ROWS_AT_ONCE, rows))
            ):
                if why:
                    self._gaps.append(self._gap(*span_of(table), why))
                    continue
                for first in range(0, len(table), step):
                    yield table.rows(slice(first, first + step))

    def _packets(self, table: SampleTable) -> Iterable[tuple[int, int, bytes | None]]:
        """Composition time, duration and bytes of what is decoded at once."""
        fetched_bytes = fetched(self._source, [table])
        if self._codec.raw:
            chosen = list(packets(table, 0, raw=True))
            parts = fetched_bytes.parts((offset, size) for offset, size, *_ in chosen)
            rows = zip(chosen, parts, strict=True)
            return [(cts, duration, data) for (_, _, cts, duration, _), data in rows]
        sizes = table.size.tolist()
        parts = fetched_bytes.parts(zip(table.offset.tolist(), sizes, strict=True))
        if max(sizes, default=0) > MOST_PACKET:
            parts = [None if size > MOST_PACKET else part
                     for part, size in zip(parts, sizes, strict=True)]  # fmt: skip
        return zip(table.cts.tolist(), table.duration.tolist(), parts, strict=True)
