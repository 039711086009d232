"""Programs: how the C extension reads fragments that look alike while it walks past them.

A program is the places that the declared layouts give for one fragment, and the defaults that hold
where a field is missing; `_native_programs.h` names its numbers. What programs read becomes the
same rows as `shapes` makes in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct

from fragdex.fragments.track_info import SampleDefaults
from fragdex.indexing.batch import SAMPLE_DEFAULTS, Plain, PlainTrack
from fragdex.indexing.headers import Shaped
from fragdex.indexing.runs import DEPENDS, DEPENDS_AND_SYNC, RunKind
from fragdex.indexing.traf_shapes import Place, Shape, Traf

MAX_SLOTS = 1 << 12
"""Tracks whose rows programs make."""
_TRAF = Struct("23q")
_NOWHERE = -1


def program(
    shape: Shape, defaults: Mapping[int, SampleDefaults], slots: dict[int, int]
) -> bytes | None:
    """The program of a shape.

    Args:
        shape: of fragments.
        defaults: the trex of each track.
        slots: track_ID → number of its rows; new ones are added.

    Returns: None where a default is not known, or the tracks are too many.
    """
    parts = []
    for traf in shape.trafs:
        slot = slots.setdefault(traf.track, len(slots))
        trex = defaults.get(traf.track)
        is_known = trex is not None or all(
            f"default_sample_{n}" in traf.cells for n in SAMPLE_DEFAULTS
        )
        if not is_known or slot >= MAX_SLOTS:
            return None
        parts.append(_packed(traf, shape.places, trex or SampleDefaults(0, 0, 0), slot))
    return b"".join(parts)


def _packed(traf: Traf, places: tuple[Place, ...], trex: SampleDefaults, slot: int) -> bytes:
    cells, run = traf.cells, traf.run

    def place(name: str) -> int:
        number = cells.get(name)
        return _NOWHERE if number is None else places[number][0]

    return _TRAF.pack(
        slot,
        traf.flags,
        place("baseMediaDecodeTime"),
        8 if traf.time else 4,
        place("data_offset"),
        traf.count,
        traf.rows_at,
        *RunKind(run.version, run.flags).columns,
        place("default_sample_duration"),
        trex.duration,
        place("default_sample_size"),
        trex.size,
        place("default_sample_flags"),
        trex.flags,
        place("first_sample_flags"),
        run.version,
        DEPENDS_AND_SYNC,
        DEPENDS,
    )


def rows_of_tracks(shaped: Shaped, slots: Mapping[int, int]) -> Plain:
    """What programs read, by track_ID."""
    rows: Plain = {}
    for track, slot in slots.items():
        if slot < len(shaped.tracks) and shaped.tracks[slot][0]:
            rows[track] = PlainTrack.from_bytes(track, *shaped.tracks[slot])
    return rows
