"""How loud a sound is: peaks for waveforms (BBC's audiowaveform), and loudness (EBU R 128)."""

from __future__ import annotations

import json
import math
import operator
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import chain
from typing import Any, Final, overload

import numpy as np
import numpy.typing as npt

from fragdex.decoding.sound_stream import LONGEST_SECONDS, Gap, SoundStream, finite
from fragdex.errors import LimitExceeded
from fragdex.record import record
from fragdex.seeking.model import Index
from fragdex.sources import SourceLike

MOST_VALUES = 1 << 26
"""Minima and maxima of one answer."""
MOST_SAMPLES = (1 << 31) - 1
"""Samples of a pixel: what the format has room for."""
MOST_ZOOMS = 32
SILENCE = 1 << 16
"""Samples of silence that are looked at together."""

Values = npt.NDArray[Any]


@record(frozen=True, slots=True, eq=False)
class Peaks:
    r"""The least and the greatest sample of each pixel of a waveform.

    Attributes:
        rate: samples a second.
        samples_per_pixel: of one channel; the last pixel may stand for fewer.
        bits: 8 or 16.
        values: int8 or int16 of shape (pixels, channels, 2): minimum and maximum.
        gaps: what could not be decoded, and is silence here.

    >>> made = Peaks(8000, 256, 8, np.array([[[-3, 5]]], np.int8))
    >>> made.json()
    b'{"version":2,"channels":1,"sample_rate":8000,"samples_per_pixel":256,"bits":8,"length":1,"data":[-3,5]}\n'
    >>> made.dat().hex(" ", -4)
    '02000000 01000000 401f0000 00010000 01000000 01000000 fd05'
    """

    rate: int
    samples_per_pixel: int
    bits: int
    values: Values
    gaps: tuple[Gap, ...] = ()

    def json(self) -> bytes:
        """As audiowaveform's JSON, version 2."""
        length, channels, _ = self.values.shape
        head = {
            "version": 2, "channels": channels, "sample_rate": self.rate,
            "samples_per_pixel": self.samples_per_pixel, "bits": self.bits, "length": length,
            "data": self.values.ravel().tolist(),
        }  # fmt: skip
        return json.dumps(head, separators=(",", ":")).encode() + b"\n"

    def dat(self) -> bytes:
        """As audiowaveform's binary data, version 2, little-endian."""
        length, channels, _ = self.values.shape
        flags = 1 if self.bits == 8 else 0
        head = struct.pack("<iIiiIi", 2, flags, self.rate, self.samples_per_pixel, length, channels)
        return head + self.values.astype(f"<i{self.bits // 8}").tobytes()


@overload
def peaks(
    index: Index, source: SourceLike, *, samples_per_pixel: int = ..., bits: int = ...,
    split: bool = ..., track: int | None = ..., init: bytes | None = ...,
) -> Peaks: ...  # fmt: skip
@overload
def peaks(
    index: Index, source: SourceLike, *, samples_per_pixel: Sequence[int], bits: int = ...,
    split: bool = ..., track: int | None = ..., init: bytes | None = ...,
) -> tuple[Peaks, ...]: ...  # fmt: skip
def peaks(
    index: Index,
    source: SourceLike,
    *,
    samples_per_pixel: int | Sequence[int] = 256,
    bits: int = 8,
    split: bool = False,
    track: int | None = None,
    init: bytes | None = None,
) -> Peaks | tuple[Peaks, ...]:
    """The waveform of a track: the least and the greatest sample of each pixel.

    Pixel n begins n × `samples_per_pixel` samples after presentation time 0; where nothing is
    heard, it is silence. The sound is decoded once, whatever its length and the number of zooms.
    Values are those of audiowaveform: 16 bits, the mean of all channels rounded towards zero, and
    for 8 bits a 256th of that, rounded likewise.

    Args:
        index: of the file.
        source: the file, in any form that `fragdex.open_source` takes.
        samples_per_pixel: 2 or more; several: as many answers, of one pass.
        bits: 8 or 16.
        split: each channel by itself, in the order of the file; else their mean.
        track: track_ID; None: the first audio track.
        init: the initialization segment, for segments that have none.

    Raises:
        TrackNotFound: no such track, or it is not audio.
        UndecodableMedia: all of it is encrypted, or nothing of it can be decoded.
        LimitExceeded: more than two days of sound, or 67 million values.
        ValueError: `samples_per_pixel` or `bits` that are not supported.
        MissingExtra: PyAV is not installed (extra `media`).

    >>> import fragdex
    >>> made = fragdex.decoding.peaks(
    ...     fragdex.index("fixtures/aac.m4a"), "fixtures/aac.m4a", samples_per_pixel=[512, 4096]
    ... )
    >>> [one.samples_per_pixel for one in made], made[0].values.shape[1:]
    ([512, 4096], (1, 2))
    """
    several = not isinstance(samples_per_pixel, (int, np.integer))
    zooms = [
        operator.index(one)
        for one in (samples_per_pixel if isinstance(samples_per_pixel, Sequence)
                    else [samples_per_pixel])
    ]  # fmt: skip
    if not 1 <= len(zooms) <= MOST_ZOOMS or not all(2 <= one <= MOST_SAMPLES for one in zooms):
        raise ValueError(f"samples_per_pixel: 1 to {MOST_ZOOMS} numbers of 2 or more, not {zooms}")
    if bits not in (8, 16):
        raise ValueError(f"bits: 8 or 16, not {bits}")
    own = [one for one in sorted(set(zooms)) if not any(_divides(a, one) for a in zooms)]
    with SoundStream(index, source, track=track, init=init) as stream:
        measured = _measured(stream, own, split)
    if not all(np.isfinite(values).all() for values in measured.values()):
        # once more where a broken stream gave no numbers: to look at each sample costs more
        with SoundStream(index, source, track=track, init=init) as stream:
            measured = _measured(stream, own, split, mends=True)
    for one in sorted(set(zooms) - set(own)):
        below = max(a for a in measured if _divides(a, one))
        measured[one] = _coarser(measured[below], one // below)
    waveforms = tuple(
        Peaks(stream.rate, one, bits, _quantized(measured[one], bits, split), stream.gaps)
        for one in zooms
    )
    return waveforms if several else waveforms[0]


def _divides(small: int, large: int) -> bool:
    return small < large and large % small == 0


def _measured(
    stream: SoundStream, asked: list[int], split: bool, mends: bool = False
) -> dict[int, Values]:
    """Minima and maxima of a whole stream, by samples of a pixel."""
    zooms = {one: _Zoom(one) for one in asked}
    at, channels, count = 0, 1, 1
    for start, rows in stream.rows():
        count = len(rows)
        channels = count if split else 1
        _feed_silence(zooms, start - at, channels)
        mixed = _mixed([finite(row) for row in rows] if mends else rows, split)
        for zoom in zooms.values():
            zoom.feed(mixed)
        at = start + len(rows[0])
    end = stream.track.stop
    if stream.rate and end is not None:
        last = min(round(end.fraction * stream.rate), LONGEST_SECONDS * stream.rate)
        _feed_silence(zooms, last - at, channels)
    # the mean is taken of few numbers here, not of all samples
    scale = np.float32(1 if split else 1 / count)
    return {one: zoom.finish(channels) * scale for one, zoom in zooms.items()}


def _mixed(rows: list[Values], split: bool) -> list[Values]:
    """The channels, or their sum as the only one."""
    if split or len(rows) == 1:
        return rows
    total = rows[0] + rows[1]
    for row in rows[2:]:
        total += row
    return [total]


def _feed_silence(zooms: dict[int, _Zoom], count: int, channels: int) -> None:
    silence = np.zeros((channels, min(max(count, 0), SILENCE)), np.float32)
    for begin in range(0, count, SILENCE):
        for zoom in zooms.values():
            zoom.feed(list(silence[:, : count - begin]))


class _Zoom:
    """Minima and maxima of one number of samples a pixel."""

    def __init__(self, samples: int) -> None:
        self.samples = samples
        self._parts: list[Values] = []
        self._values = 0
        self._filled = 0  # samples of the pixel that is not full
        self._open: Values | None = None

    def feed(self, rows: list[Values]) -> None:
        """Take samples, those of each channel as a row."""
        at, count = 0, len(rows[0])
        if self._filled:
            at = min(self.samples - self._filled, count)
            self._part([row[:at] for row in rows])
        whole = (count - at) // self.samples
        if whole:
            stop = at + whole * self.samples
            starts = np.arange(0, stop - at, self.samples)
            extremes = np.empty((whole, len(rows), 2), np.float32)
            for channel, row in enumerate(rows):
                cut = row[at:stop]
                np.minimum.reduceat(cut, starts, out=extremes[:, channel, 0])
                np.maximum.reduceat(cut, starts, out=extremes[:, channel, 1])
            self._keep(extremes)
            at = stop
        if at < count:
            self._part([row[at:] for row in rows])

    def finish(self, channels: int) -> Values:
        """Shape (pixels, channels, 2), float32."""
        if self._open is not None:
            self._keep(self._open[None])
        empty = np.zeros((0, channels, 2), np.float32)
        return np.concatenate([empty, *self._parts])

    def _part(self, rows: list[Values]) -> None:
        if not len(rows[0]):
            return
        extremes = np.array([(row.min(), row.max()) for row in rows], np.float32)
        if self._open is not None:
            extremes[:, 0] = np.minimum(extremes[:, 0], self._open[:, 0])
            extremes[:, 1] = np.maximum(extremes[:, 1], self._open[:, 1])
        self._open = extremes
        self._filled += len(rows[0])
        if self._filled == self.samples:
            self._keep(extremes[None])
            self._open, self._filled = None, 0

    def _keep(self, pixels: Values) -> None:
        self._values += pixels.size
        if self._values > MOST_VALUES:
            raise LimitExceeded(
                "the waveform has too many pixels", advice="ask for more samples_per_pixel"
            )
        self._parts.append(pixels)


def _coarser(values: Values, by: int) -> Values:
    """`by` pixels as one."""
    if not len(values):
        return values
    firsts = np.arange(0, len(values), by)
    low = np.minimum.reduceat(values[:, :, 0], firsts, axis=0)
    high = np.maximum.reduceat(values[:, :, 1], firsts, axis=0)
    return np.stack([low, high], axis=2)


def _quantized(values: Values, bits: int, split: bool) -> Values:
    """Whole numbers: rounding commutes with least and greatest, so it is done here alone."""
    scaled = values * np.float32(32768)
    whole = np.clip(np.rint(scaled) if split else np.trunc(scaled), -32768, 32767)
    return whole.astype(np.int16) if bits == 16 else np.trunc(whole / 256).astype(np.int8)


_INTEGRATED: Final = "lavfi.r128.I"
_RANGE: Final = "lavfi.r128.LRA"
_PEAK: Final = "lavfi.r128.true_peak"
_UNGATED: Final = -70.0  # LUFS; nothing below counts (ITU-R BS.1770-4), and so silence is reported
_HALF_STEP: Final = 0.0005  # of the true peaks that the filter reports
_LONGEST_HOLE: Final = 4  # seconds: longer ones are gated, and change nothing


@record(frozen=True, slots=True)
class Loudness:
    """How loud a sound is.

    Attributes:
        integrated: LUFS (ITU-R BS.1770-4), None of silence, and of what is shorter than 400 ms.
        range: LU (EBU Tech 3342); None where `integrated` is.
        true_peak: dBTP, None of silence.

    >>> Loudness(-23.0, 7.5, -1.2).integrated
    -23.0
    """

    integrated: float | None
    range: float | None
    true_peak: float | None


def loudness(
    index: Index,
    source: SourceLike,
    *,
    track: int | None = None,
    init: bytes | None = None,
) -> Loudness:
    """Measure a track: integrated loudness, loudness range and true peak.

    In its own channels: those of surround sound are weighted as ITU-R BS.1770-4 says, its low
    frequency effects left out; one channel counts as one.

    Args:
        index: of the file.
        source: the file, in any form that `fragdex.open_source` takes.
        track: track_ID; None: the first audio track.
        init: the initialization segment, for segments that have none.

    Raises:
        TrackNotFound: no such track, or it is not audio.
        UndecodableMedia: all of it is encrypted, or nothing of it can be decoded.
        LimitExceeded: more than two days of sound.
        MissingExtra: PyAV is not installed (extra `media`).

    >>> import fragdex
    >>> fragdex.decoding.loudness(
    ...     fragdex.index("fixtures/aac.m4a"), "fixtures/aac.m4a"
    ... ).integrated < 0
    True
    """
    with SoundStream(index, source, track=track, init=init) as stream:
        pieces = _without_holes(stream)
        first = next(pieces, None)
        if first is None:
            return Loudness(None, None, None)
        return measured(chain([first], pieces), rate=stream.rate, layout=stream.layout)


def _without_holes(stream: SoundStream) -> Iterator[np.ndarray[Any, Any]]:
    at = 0
    for piece in stream.pieces():
        hole = min(piece.start - at, _LONGEST_HOLE * piece.rate)
        if hole > 0:
            yield np.zeros((hole, piece.data.shape[1]), np.float32)
        yield piece.data
        at = piece.start + len(piece.data)


def measured(
    sound: Iterable[np.ndarray[Any, Any]], *, rate: int = 48_000, layout: str = "stereo"
) -> Loudness:
    """Measure a sound, by FFmpeg's `ebur128`.

    Args:
        sound: float32 of shape (samples, channels), in pieces of any length.
        layout: FFmpeg's name of the channels.
    """
    import av.filter

    graph = av.filter.Graph()
    base = Fraction(1, rate)
    source = graph.add_abuffer(sample_rate=rate, format="flt", layout=layout, time_base=base)
    meter = graph.add("ebur128", "peak=true:metadata=1:framelog=quiet")
    sink = graph.add("abuffersink")
    source.link_to(meter)
    meter.link_to(sink)
    graph.configure()
    integrated, spread, peak, length = _UNGATED, 0.0, 0.0, 0
    # the last tenth of a second is shorter and would not be reported
    silence = np.zeros((rate // 5, len(av.AudioLayout(layout).channels)), np.float32)
    for piece in chain(sound, (silence,)):
        if not len(piece):
            continue
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(piece, np.float32).reshape(1, -1), format="flt", layout=layout
        )
        frame.sample_rate, frame.pts, frame.time_base = rate, length, base
        length += len(piece)
        source.push(frame)
        for report in _reports(sink):
            peak = max(peak, float(report[_PEAK]))
            if piece is not silence:
                integrated, spread = float(report[_INTEGRATED]), float(report[_RANGE])
    counts = integrated > _UNGATED
    return Loudness(
        integrated if counts else None,
        spread if counts else None,
        round(20 * math.log10(peak + _HALF_STEP), 2) if peak > 0 else None,
    )


def _reports(sink: Any) -> Iterator[Mapping[str, str]]:
    """What the filter says with what can be pulled."""
    import av

    while True:
        try:
            metadata = sink.pull().metadata
        except (av.error.BlockingIOError, av.error.EOFError):
            return
        if _INTEGRATED in metadata:
            yield metadata
