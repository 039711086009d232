"""Why players built on Media Source Extensions (MSE) refuse a file that a playlist names.

Their byte stream format wants positions that count from the moof and a decode time in each track
fragment (W3C, ISO BMFF Byte Stream Format, 4); a file of its own plays without.
"""

from __future__ import annotations

import numpy as np

from fragdex.fragments.findings import Finding, Findings
from fragdex.fragments.table import FragmentFlags
from fragdex.seeking.model import FragmentIndex

__all__ = ["playback_findings"]

_REFUSED = "players based on Media Source Extensions (hls.js, dash.js, Shaka Player …) refuse them"


def playback_findings(index: FragmentIndex) -> tuple[Finding, ...]:
    """What keeps MSE players from playing the segments that `hls` and `dash` name.

    Of an index taken from a sidx or mfra nothing is known: make it with `exact=True`.

    Returns: findings, one a track and reason; empty where nothing is known to be in the way.

    >>> import fragdex
    >>> from fragdex.testing import movie
    >>> playback_findings(fragdex.index(movie()))
    ()
    """
    found = Findings()
    for flag, code, message in (
        (
            FragmentFlags.DECLARED_BASE,
            "declared-base-offset",
            f"fragments declare a base_data_offset: {_REFUSED}; fragdex extract "
            "--fragmented makes a copy that plays",
        ),
        (FragmentFlags.NO_TFDT, "no-tfdt", f"fragments have no tfdt: {_REFUSED}"),
    ):
        for track in index.tracks:
            rows = np.flatnonzero(track.fragments.flags & np.uint32(flag))
            if len(rows):
                first = int(track.fragments.offset[rows[0]])
                found.add(code, message, offset=first, track=track.id, count=len(rows))
    return found.all()
