"""The films that are open in this process: the last few, with one cache."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from fragdex.data.video_set import VideoSet
from fragdex.frames import FrameCache, Frames

__all__ = ["OpenFilms"]

RESTING_FILMS: Final = 64
RESTING_FRAMES: Final = 400_000
"""Of all films that rest; each takes some 100 bytes."""


class OpenFilms:
    """Films of a set, opened when they are wanted.

    Args:
        videos: the set.
        cache: bytes of pictures and samples that all of them hold.
        most: films that keep their decoders. Others rest: opening them again would take longer
            than decoding a window.
        options: as `fragdex.Frames` takes them.

    Nothing that is open goes to another process.
    """

    def __init__(self, videos: VideoSet, cache: int, most: int, options: Mapping[str, Any]) -> None:
        self._videos, self._most, self._options = videos, most, dict(options)
        self._cache = FrameCache(cache)
        self._open: OrderedDict[int, Frames] = OrderedDict()
        self._resting: OrderedDict[int, Frames] = OrderedDict()
        self._pid = os.getpid()

    def frames(self, video: int) -> Frames:
        """The frames of a film.

        Raises: as `VideoSet.frames`.
        """
        if self._pid != os.getpid():
            # Files and decoders of the other process are not touched.
            self._open, self._resting = OrderedDict(), OrderedDict()
            self._cache = FrameCache(self._cache.limit)
            self._pid = os.getpid()
        found = self._open.pop(video, None)
        if found is None:
            found = self._resting.pop(video, None)
            while len(self._open) >= self._most:
                self._rest(*self._open.popitem(last=False))
        if found is None:
            found = self._videos.frames(video, cache=self._cache, **self._options)
        self._open[video] = found
        return found

    def _rest(self, video: int, frames: Frames) -> None:
        frames.rest()
        self._resting[video] = frames
        while (
            len(self._resting) > RESTING_FILMS
            or sum(map(len, self._resting.values())) > RESTING_FRAMES
        ):
            self._resting.popitem(last=False)[1].close()

    def close(self) -> None:
        """Close all of them."""
        for films in (self._open, self._resting):
            while films:
                films.popitem()[1].close()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_open": OrderedDict(), "_resting": OrderedDict(), "_pid": -1}
