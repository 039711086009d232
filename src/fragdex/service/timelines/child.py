"""What reads the fragments of a timeline in a process of its own, bounded in time and memory."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import fragdex
from fragdex import ByteRange, Source
from fragdex.seeking.model import SourceInfo
from fragdex.views.view import SourceRange, View

__all__ = ["indexes"]


def indexes(source: Source, *, sizes: list[int], starts: str | None) -> dict[str, Any]:
    """Make the indexes of members and of the timeline that they make up, every sample known.

    Args:
        source: the members one behind the other, each an MP4 in fragments.
        sizes: bytes of each.
        starts: as of `fragdex.view`.

    Returns the names of the `files`: one for each member, and that of the timeline.

    Raises:
        FragdexError: as `fragdex.index` and `fragdex.view`.
    """
    known = SourceInfo("", source.size, etag=source.etag)
    members, found, at = [], [], 0
    for size in sizes:
        part = [SourceRange(0, ByteRange.of(at, size))]
        view = View("video/mp4", [known], ["member", at], [size], partial(_only, part))
        members.append(view.as_source(source=source))
        found.append(fragdex.index(members[-1], exact=True))
        at += size
    whole = fragdex.view(found, "timeline", source=members, starts=starts)
    found.append(fragdex.index(whole.as_source(source=members), exact=True))
    names = [f"{number}.fidx" for number in range(len(found))]
    for name, index in zip(names, found, strict=True):
        index.save(Path(name), samples=True)
    return {"files": names}


def _only(part: list[SourceRange], _: int) -> list[SourceRange]:
    return part
