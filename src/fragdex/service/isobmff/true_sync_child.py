"""Looking at the pictures of a track, in a process of its own where that may take long."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import fragdex
from fragdex import FragmentIndex, Source, open_index
from fragdex.errors import TrackNotFound
from fragdex.sandbox.channel import opened

__all__ = ["true_time", "verified"]


def true_time(
    index: FragmentIndex, source: Source, track_id: int, kind: str | None, time: Fraction
) -> Fraction:
    """The presentation time of the true sync sample for a moment; raises as a verified `seek`.

    Args:
        index: of the file `source`, which may call the track otherwise if it has only one.
    """
    named = [one for one in index.tracks if one.id == track_id and one.kind == kind]
    own = named or [one for one in index.tracks if one.kind == kind]
    if not own:
        raise TrackNotFound(f"the bytes of track {track_id} hold no such track")
    return Fraction(own[0].seek(time, verified=True, source=source).time.exact)


def verified(
    source: Source, known: int | None = None, *, track: int, kind: str, time: str
) -> dict[str, Any]:
    """Look at pictures of a file; its index is handed over open where one is known."""
    if known is None:
        index = fragdex.index(source, exact=True)
    else:
        with opened(known, "index") as file:
            index = open_index(file)
    return {"time": str(true_time(index, source, track, kind, Fraction(time)))}
