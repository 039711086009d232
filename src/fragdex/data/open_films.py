"""The films that are open in this process: the last few, with one cache."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from fragdex.data.video_set import VideoSet
from fragdex.frames import FrameCache, Frames

__all__ = ["OpenFilms"]

RESTING_BYTES: Final = 40_000_000
"""Of all films that rest: their indexes, numbers and times."""
_BYTES_OF_FILM, _BYTES_OF_FRAME = 20_000, 100


class OpenFilms:
    """Films of a set, opened when they are wanted.

    Args:
        videos: the set.
        cache: bytes of pictures and samples that all of them hold.
        most: films whose files are open, and decoders that are kept. Other films rest: making
            ready what is known of them would take longer than decoding a window.
        options: as `fragdex.Frames` takes them.

    Nothing that is open goes to another process.
    """

    def __init__(self, videos: VideoSet, cache: int, most: int, options: Mapping[str, Any]) -> None:
        self._videos, self._most, self._options = videos, most, dict(options)
        self._cache = FrameCache(cache, most * options.get("threads", 1) + 1)
        self._open: OrderedDict[int, Frames] = OrderedDict()
        self._resting: OrderedDict[int, Frames] = OrderedDict()
        self._resting_bytes = 0
        self._pid = os.getpid()

    def frames(self, video: int) -> Frames:
        """The frames of a film.

        Raises: as `VideoSet.frames`.
        """
        if self._pid != os.getpid():
            # Files and decoders of the other process are not touched.
            self._open, self._resting = OrderedDict(), OrderedDict()
            self._resting_bytes = 0
            self._pid = os.getpid()
        found = self._open.pop(video, None)
        if found is None:
            found = self._resting.pop(video, None)
            self._resting_bytes -= 0 if found is None else _bytes_of(found)
            while len(self._open) >= self._most:
                self._rest(*self._open.popitem(last=False))
        if found is None:
            found = self._videos.frames(video, cache=self._cache, **self._options)
        self._open[video] = found
        return found

    def _rest(self, video: int, frames: Frames) -> None:
        frames.rest()
        self._resting[video] = frames
        self._resting_bytes += _bytes_of(frames)
        while self._resting_bytes > RESTING_BYTES:
            _, oldest = self._resting.popitem(last=False)
            self._resting_bytes -= _bytes_of(oldest)
            oldest.close()

    def close(self) -> None:
        """Close all of them."""
        for films in (self._open, self._resting):
            while films:
                films.popitem()[1].close()
        self._resting_bytes = 0

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": OrderedDict(), "_resting": OrderedDict(), "_pid": -1}


def _bytes_of(frames: Frames) -> int:
    return _BYTES_OF_FILM + _BYTES_OF_FRAME * len(frames)
