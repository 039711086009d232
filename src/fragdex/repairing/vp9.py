"""Frames of VP9 (VP9 bitstream specification, 6.1 and Annex B), which do not say where they end.

A sample is a frame, or a superframe: hidden frames with a shown one, and an index of their sizes at
the end. Frames of one encoder begin alike: the first bytes say profile, type, and which references
are renewed and used. Between two samples of sound, each place with the first bytes of frames of the
good file is taken for a frame, unless the index of a superframe says that it is inside of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fragdex.fragments.table import SampleTable
from fragdex.repairing.between import Between, Fits
from fragdex.repairing.syntax import HOLE, FoundSample, Window, occurrences

HEAD: Final = 4
"""First bytes in which frames are alike."""
_MARKER: Final = 0x80
_EXISTING, _NOT_KEY = 0x08, 0x04
"""Bits of the first byte: show_existing_frame, and frame_type (6.2); of profiles 0 to 2."""
_PROFILE_3: Final = 0x30
MOST_IN_ONE: Final = 8
"""Frames of a superframe."""
MOST_FRAMES: Final = 64
"""Samples between two of sound."""


class Vp9(Between):
    """VP9 between samples that say where they end.

    Args:
        heads: the first `HEAD` bytes of each.
    """

    def __init__(self, samples: SampleTable, heads: Sequence[bytes]) -> None:
        super().__init__(samples)
        self._longest_chunk = self.longest // 4
        self._largest = int(samples.size.max(initial=0))
        self._heads = {head for head in heads if len(head) == HEAD and is_frame(head)}
        self.lengths = []  # of sizes that vary, none is more likely than a nearer end

    def may_start(self, window: Window, at: int) -> bool:
        """As `Between.may_start`."""
        return window.take(at, HEAD) in self._heads

    def split(self, window: Window, start: int, stop: int, fits: Fits) -> list[int] | None:
        """As `Between.split`: at each place where a frame begins like those of the good file."""
        size = stop - start
        if not 0 < size <= self.longest or not self.may_start(window, start):
            return None
        data = window.take(start, size)
        if HOLE in data and not self.holes:
            return None
        sizes = samples_in(data, sorted(at for h in self._heads for at in occurrences(data, h)))
        if sizes is None or not 0 < len(sizes) <= MOST_FRAMES:
            return []
        return sizes if fits(len(sizes)) else None

    def is_usual(self, sizes: Sequence[int], size: int) -> bool:
        """As `Between.is_usual`."""
        return max(sizes) <= 2 * self._largest if sizes else size <= self._longest_chunk

    def sample(self, window: Window, at: int, size: int) -> FoundSample:
        """As `Between.sample`: a key frame is a sync sample."""
        return FoundSample(at + size, sync=not window.take(at, 1)[0] & _NOT_KEY)


def is_frame(head: bytes) -> bool:
    """Whether a frame that is coded may begin so; of profile 3 none is looked for."""
    first = head[0] if head else 0
    return first & 0xC0 == _MARKER and first & _PROFILE_3 != _PROFILE_3 and not first & _EXISTING


def samples_in(data: bytes, places: Sequence[int]) -> list[int] | None:
    """Sizes of the samples of frames that begin at some places; None: superframes contradict it."""
    if list(places[:1]) != [0]:
        return None
    sizes: list[int] = []
    edges = [*places, len(data)]
    begin = 0
    for number in range(1, len(edges)):
        stop = edges[number]
        frames = superframe(data[begin:stop])
        if frames is None:
            # a superframe may begin here and end further on
            later = edges[number + 1 : number + MOST_IN_ONE]
            if any(superframe(data[begin:end]) for end in later):
                continue
        elif len(frames) > 1 and begin + frames[0] not in edges:
            return None
        sizes.append(stop - begin)
        begin = stop
    return sizes


def superframe(data: bytes) -> list[int] | None:
    """Sizes of the frames of a superframe that fills these bytes; None: no superframe (B.3)."""
    last = data[-1] if data else 0
    if last & 0xE0 != 0xC0:
        return None
    count, width = (last & 7) + 1, (last >> 3 & 3) + 1
    whole = 2 + count * width
    if len(data) <= whole or data[-whole] != last:
        return None
    index = data[1 - whole : -1]
    sizes = [int.from_bytes(index[at : at + width], "little") for at in range(0, len(index), width)]
    return sizes if sum(sizes) + whole == len(data) and all(sizes) else None
