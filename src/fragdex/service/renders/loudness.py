"""How loud a sound is, and one gain that makes it as loud as it should be (EBU R 128)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy as np

__all__ = ["CEILING", "LOUDEST", "SOFTEST", "Loudness", "measured", "normalized"]

SOFTEST: Final = -70.0
LOUDEST: Final = -5.0
CEILING: Final = -1.0
"""dBTP that no sound is raised above (EBU R 128, 2023)."""
_INTEGRATED: Final = "lavfi.r128.I"
_PEAK: Final = "lavfi.r128.true_peak"
_RATE: Final = 48_000
_SECTION: Final = _RATE // 10  # in such parts the filter tells
_UNGATED: Final = -70.0  # LUFS; nothing below counts (ITU-R BS.1770-4), and so silence is told
_HALF_STEP: Final = 0.0005  # of what the filter tells of true peaks

Sound = Callable[[], "Iterable[np.ndarray[Any, Any]]"]


@dataclass(frozen=True, slots=True)
class Loudness:
    """How loud a sound is.

    Attributes:
        integrated: LUFS (ITU-R BS.1770-4), None of silence, and of what is shorter than 400 ms.
        true_peak: dBTP, None of silence.
        gain: dB that it was changed by since.
    """

    integrated: float | None
    true_peak: float | None
    gain: float = 0.0

    def gain_to(self, target: float) -> float:
        """The gain (dB) that brings it to a loudness, or as near as its true peak allows.

        >>> Loudness(-30.0, -20.0).gain_to(-23), Loudness(-30.0, -4.0).gain_to(-23)
        (7.0, 3.0)
        """
        if self.integrated is None or self.true_peak is None:
            return 0.0
        return round(min(target - self.integrated, CEILING - self.true_peak), 2)


def measured(sound: Iterable[np.ndarray[Any, Any]]) -> Loudness:
    """Measure a sound, by FFmpeg's `ebur128`.

    Args:
        sound: float32, n × 2, 48 kHz, in pieces of any length.
    """
    import av.filter
    import numpy as np

    graph = av.filter.Graph()
    source = graph.add_abuffer(
        sample_rate=_RATE, format="flt", layout="stereo", time_base=Fraction(1, _RATE)
    )
    meter = graph.add("ebur128", "peak=true:metadata=1:framelog=quiet")
    sink = graph.add("abuffersink")
    source.link_to(meter)
    meter.link_to(sink)
    graph.configure()
    integrated, peak, length = _UNGATED, 0.0, 0
    # of the last part, which is shorter, nothing would be told
    silence = np.zeros((2 * _SECTION, 2), np.float32)
    for piece in chain(sound, (silence,)):
        frame = av.AudioFrame.from_ndarray(
            np.ascontiguousarray(piece, np.float32).reshape(1, -1), format="flt", layout="stereo"
        )
        frame.sample_rate, frame.pts, frame.time_base = _RATE, length, Fraction(1, _RATE)
        length += len(piece)
        source.push(frame)
        for told in _told(sink):
            peak = max(peak, float(told[_PEAK]))
            if piece is not silence:
                integrated = float(told[_INTEGRATED])
    heard = peak > 0
    return Loudness(
        integrated if integrated > _UNGATED else None,
        round(20 * math.log10(peak + _HALF_STEP), 2) if heard else None,
    )


def _told(sink: Any) -> Iterator[Mapping[str, str]]:
    """What the filter tells with what can be pulled."""
    import av

    while True:
        try:
            told = sink.pull().metadata
        except (av.error.BlockingIOError, av.error.EOFError):
            return
        if _INTEGRATED in told:
            yield told


def normalized(sound: Sound, target: float) -> tuple[Loudness, Iterator[np.ndarray[Any, Any]]]:
    """A sound at a loudness: measured, and changed by one gain.

    Args:
        sound: begins it, each time it is called.
        target: LUFS.
    """
    import numpy as np

    found = measured(sound())
    gain = found.gain_to(target)
    factor = np.float32(10 ** (gain / 20))
    changed = Loudness(found.integrated, found.true_peak, gain)
    return changed, (piece * factor for piece in sound())
