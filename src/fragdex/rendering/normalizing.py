"""One gain that makes a sound as loud as it should be (EBU R 128)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from fragdex.decoding.loudness import measured

if TYPE_CHECKING:
    import numpy as np

__all__ = ["CEILING", "Normalized", "normalized"]

CEILING: Final = -1.0
"""dBTP that no sound is raised above (EBU R 128, 2023)."""

Sound = Callable[[], "Iterable[np.ndarray[Any, Any]]"]


@dataclass(frozen=True, slots=True)
class Normalized:
    """How loud a sound was, and what was done about it.

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

        >>> Normalized(-30.0, -20.0).gain_to(-23), Normalized(-30.0, -4.0).gain_to(-23)
        (7.0, 3.0)
        """
        if self.integrated is None or self.true_peak is None:
            return 0.0
        return round(min(target - self.integrated, CEILING - self.true_peak), 2)


def normalized(sound: Sound, target: float) -> tuple[Normalized, Iterator[np.ndarray[Any, Any]]]:
    """A sound at a loudness: measured, and changed by one gain.

    Args:
        sound: begins it, each time it is called.
        target: LUFS.
    """
    import numpy as np

    before = measured(sound())
    found = Normalized(before.integrated, before.true_peak)
    gain = found.gain_to(target)
    factor = np.float32(10 ** (gain / 20))
    changed = Normalized(found.integrated, found.true_peak, gain)
    return changed, (piece * factor for piece in sound())
