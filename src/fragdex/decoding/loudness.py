"""How loud a sound is (EBU R 128)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import Any, Final

import numpy as np

from fragdex.decoding.sound_stream import SoundStream
from fragdex.seeking.model import Index
from fragdex.sources import SourceLike

__all__ = ["Loudness", "loudness", "measured"]

_INTEGRATED: Final = "lavfi.r128.I"
_RANGE: Final = "lavfi.r128.LRA"
_PEAK: Final = "lavfi.r128.true_peak"
_UNGATED: Final = -70.0  # LUFS; nothing below counts (ITU-R BS.1770-4), and so silence is reported
_HALF_STEP: Final = 0.0005  # of the true peaks that the filter reports
_LONGEST_HOLE: Final = 4  # seconds: longer ones are gated, and change nothing


@dataclass(frozen=True, slots=True)
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
        UndecodableMedia: it is encrypted, or nothing of it can be decoded.
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
        rate: samples a second.
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
