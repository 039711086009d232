"""Whether FFmpeg's packets of a track say the same as the samples of an index.

Position, size, dts, pts and key flag of every sample are compared. Before that, four things are
undone that FFmpeg does to all files alike; each is a rule that the comparison checks, not a
tolerance:

- Shift. From the most negative composition offset of a track, -s, FFmpeg makes pts - dts =
  offset + s: in fragments its pts is too large by s, in a progressive file its dts too small. It is
  taken back only where *every* packet is off by exactly the s that the samples themselves give.
- Groups. Samples of one constant size (PCM) come many to a packet. The packets must follow each
  other without a gap, and each must begin with a sample of ours and hold a whole number of them.
- Ends. Of a sample that runs past the end of the file FFmpeg gives the bytes that are there, or
  nothing. Only samples that are there as a whole are compared.
- Periods. FFmpeg takes no notice of a second moov; the samples of one track_ID of all periods are
  compared as one track.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

import fragdex

if TYPE_CHECKING:
    from oracle.ffmpeg_packets import Packet

COLUMNS = ("position", "size", "dts", "pts", "key")
POSITION, SIZE, DTS, PTS = range(4)

Rows = npt.NDArray[np.int64]


def samples_by_track(index: fragdex.Index) -> dict[int, fragdex.tables.SampleTable]:
    """The samples of each track_ID, all periods together."""
    tables: dict[int, list[fragdex.tables.SampleTable]] = {}
    for track in index.tracks:
        tables.setdefault(track.id, []).append(track.samples)
    return {key: fragdex.tables.SampleTable.concat(tables) for key, tables in tables.items()}


def disagreements(
    samples: fragdex.tables.SampleTable,
    packets: Sequence[Packet],
    *,
    size: int,
    fragmented: bool,
) -> set[str]:
    """What FFmpeg says otherwise: names of columns, or "packets" where they do not even match up.

    Args:
        samples: what the index says.
        packets: what FFmpeg says, in its order.
        size: bytes of the file.
        fragmented: the track has samples in fragments.
    """
    ours = np.stack([samples.offset, samples.size, samples.dts, samples.cts, samples.sync], axis=1)
    whole = samples.offset + samples.size <= size
    cut = set(samples.offset[~whole].tolist())
    theirs = np.array(
        [(p.pos, p.size, p.dts, p.pts, p.is_keyframe) for p in packets if p.pos not in cut],
        np.int64,
    ).reshape(-1, len(COLUMNS))
    ours = ours[whole]
    if len(theirs) < len(ours):
        ours = grouped(ours, theirs)
    if len(theirs) != len(ours):
        return {"packets"}
    offsets = samples.cts - samples.dts
    shift = max(0, -int(offsets.min())) if len(offsets) else 0
    column, move = (PTS, -shift) if fragmented else (DTS, shift)
    if ((theirs[:, column] + move) == ours[:, column]).all():
        theirs[:, column] += move
    return {
        name for name, wrong in zip(COLUMNS, (theirs != ours).any(axis=0), strict=True) if wrong
    }


def grouped(ours: Rows, theirs: Rows) -> Rows:
    """Samples of one constant size, put together as the packets are; unchanged if that fails."""
    if not len(theirs) or (ours[:, SIZE] != ours[0, SIZE]).any():
        return ours
    starts = np.flatnonzero(np.isin(ours[:, POSITION], theirs[:, POSITION]))
    together = ours[starts].copy()
    together[:, SIZE] = np.add.reduceat(ours[:, SIZE], starts)
    ends = ours[np.append(starts[1:], len(ours)) - 1]
    gapless = together[:, POSITION] + together[:, SIZE] == ends[:, POSITION] + ends[:, SIZE]
    return together if starts[0] == 0 and gapless.all() else ours
