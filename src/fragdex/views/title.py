"""A title: its renditions, and whether players can change between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import numpy as np

from fragdex.views.renditions import Rendition
from fragdex.views.subtitles import Subtitles

__all__ = ["Growth", "Title", "uneven"]

LATE: Final = 1e-3
"""Seconds that segments may begin apart: times of different timescales are rounded."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How a title grows.

    Attributes:
        target: seconds that no segment is expected to exceed; the same from the first one on.
        ended: whether nothing comes any more.
        began: when its time 0 was, in UTC.
        changed: when its files were last written, in UTC.
    """

    target: int
    ended: bool
    began: datetime
    changed: datetime


@dataclass(frozen=True, slots=True, eq=False)
class Title:
    """The renditions that are one film.

    Attributes:
        renditions: video first, then audio, each in the order of files and tracks.
        subtitles: text, first of tracks, then of caption files.
        growth: how it grows; None: it does not.
    """

    renditions: tuple[Rendition, ...]
    subtitles: tuple[Subtitles, ...] = ()
    growth: Growth | None = None

    def in_single_files(self) -> Title:
        """The same with one file for each rendition."""
        texts = [
            one
            if one.rendition is None
            else replace(one, rendition=replace(one.rendition, single_file=True))
            for one in self.subtitles
        ]
        own = tuple(replace(one, single_file=True) for one in self.renditions)
        return replace(self, renditions=own, subtitles=tuple(texts))

    def of(self, kind: str) -> list[Rendition]:
        """The renditions of video or audio."""
        return [one for one in self.renditions if one.kind == kind]


def uneven(renditions: Sequence[Rendition]) -> tuple[str, ...]:
    """Where segments of video renditions do not begin at one time.

    Players change between renditions where segments begin; without a common moment they stall.
    """
    found = []
    first = renditions[0] if renditions else None
    for other in renditions[1:]:
        assert first is not None
        mine, theirs = (one.edges[:-1] / one.timescale for one in (first, other))
        both = min(len(mine), len(theirs))
        different = np.flatnonzero(np.abs(mine[:both] - theirs[:both]) > LATE)
        apart = float(mine[different[0]]) if len(different) else None
        if apart is None and len(mine) != len(theirs):
            apart = float(max(mine, theirs, key=len)[both])
        if apart is not None:
            found.append(
                f"key frames of {first.title} and {other.title} do not agree from "
                f"{apart:.3f} s on, so that players cannot change between them there"
            )
    return tuple(found)
