"""When the frames of a track are shown: what `Frames` answers without decoding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from fragdex.errors import UndecodableMedia
from fragdex.fragments.table import Int64
from fragdex.frames.frame_track import FrameTrack
from fragdex.seeking.times import TimeLike
from fragdex.seeking.track import TrackIndex

__all__ = ["FrameTimes"]


class FrameTimes(ABC):
    """Numbers and times of the frames of an open track.

    >>> import fragdex
    >>> isinstance(fragdex.Frames("fixtures/open-gop.mp4"), FrameTimes)
    True
    """

    @abstractmethod
    def _ready(self) -> FrameTrack:
        """The open track."""

    @property
    def track(self) -> TrackIndex:
        """The track whose frames these are."""
        return self._ready().track

    def __len__(self) -> int:
        return len(self._ready().numbering)

    @property
    def ticks(self) -> Int64:
        """When each frame is shown, exact, in units of 1 / `timescale` seconds."""
        return self._ready().numbering.ticks

    @property
    def timescale(self) -> int:
        """Ticks a second."""
        return self._ready().numbering.timescale

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """When each frame is shown, in seconds of presentation time."""
        return self.ticks / self.timescale

    @property
    def durations(self) -> npt.NDArray[np.float64]:
        """For how long each frame is shown, in seconds: until the next one."""
        return self._ready().numbering.durations / self.timescale

    @property
    def sync(self) -> Int64:
        """Numbers of the frames that are sync samples."""
        return np.flatnonzero(self._ready().numbering.sync).astype(np.int64)

    def closest_sync(self, time: TimeLike) -> int:
        """The sync sample that is shown nearest to a time; of two as near, the earlier one.

        Raises:
            UndecodableMedia: no frame is a sync sample.
        """
        found = self._ready().numbering.closest_sync(time)
        if found is None:
            raise UndecodableMedia(f"track {self.track.id} has no sync sample among its frames")
        return found

    def numbers_at(self, times: Any) -> Int64:
        """The frame that is shown at each time: before the first that one, after the end the last.

        Args:
            times: an array of seconds, or times as `TrackIndex.seek` takes them.

        Raises:
            ValueError, TypeError: what is no time.
            IndexError: there are no frames.
        """
        if not len(self):
            raise IndexError("there are no frames")
        return self._ready().numbering.numbers_at(times)
