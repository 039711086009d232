"""Looking at the pictures of a track, in a process of its own where that may take long."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import fragdex
from fragdex import FragmentIndex, Source, open_index
from fragdex.errors import TrackNotFound
from fragdex.service.indexing.child import reading
from fragdex.service.processes.channel import Channel, opened

__all__ = ["main", "true_time"]


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


def main(channel: Channel) -> None:
    """Look at pictures of a file; its index is handed over where one is known."""

    def verified(
        size: int, known: bool, track: int, kind: str, time: str, files: list[int] | None = None
    ) -> dict[str, Any]:
        given = list(files or [])
        index = None
        if known:
            with opened(given.pop(0), "index") as file:
                index = open_index(file)
        with reading(channel, size, given) as source:
            found = true_time(
                index or fragdex.index(source, exact=True), source, track, kind, Fraction(time)
            )
        return {"time": str(found)}

    channel.serve({"verified": verified})
