"""Runs of samples and track fragments described as data.

What a description leaves to defaults is worked out here by plain Python, sample by sample: trun
over tfhd over trex, and first_sample_flags over the first sample's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from fragdex.boxes import Box
from fragdex.boxes.fragments import (
    DATA_OFFSET,
    DEFAULT_BASE_IS_MOOF,
    DEFAULT_SAMPLE_DURATION,
    DEFAULT_SAMPLE_FLAGS,
    DEFAULT_SAMPLE_SIZE,
    FIRST_SAMPLE_FLAGS,
    SAMPLE_COMPOSITION_TIME_OFFSET,
    SAMPLE_DURATION,
    SAMPLE_FLAGS,
    SAMPLE_SIZE,
)

__all__ = ["NON_SYNC", "SYNC", "Run", "Sample", "Traf", "TrueSample", "default_of", "effective"]

SYNC = 0x02000000
"""Sample flags of a picture that needs no other (sample_depends_on 2)."""
NON_SYNC = 0x01010000
"""Sample flags of a picture that needs others (sample_depends_on 1, sample_is_non_sync_sample)."""

ALL_COLUMNS = DATA_OFFSET | SAMPLE_DURATION | SAMPLE_SIZE | SAMPLE_FLAGS


class TrueSample(NamedTuple):
    """What is true of one sample: bytes from the start of the file, ticks of the media timeline.

    >>> TrueSample(0, 8, 0, 0, 1, True).size
    8
    """

    offset: int
    size: int
    dts: int
    cts: int
    duration: int
    sync: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample as its writer knows it; a run writes down what its flags name.

    Attributes:
        size: bytes.
        duration: ticks.
        flags: 32 bits of sample flags (ISO/IEC 14496-12, 8.8.3.1).
        offset: composition offset in ticks, as the 32 bits of the field would be read.

    >>> Sample(size=100).duration
    1
    """

    size: int = 16
    duration: int = 1
    flags: int = SYNC
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A trun.

    Attributes:
        samples: in decode order.
        flags: of the trun: what stands in it. What does not is taken from the defaults.
        version: 0: composition offsets are unsigned, from 2^31 up meant as signed; 1: signed.
        first_sample_flags: written where the flags name it.
        gap: unused bytes before the run's data.
        mdat: number of the fragment's mdat that holds the data.

    >>> len(Run((Sample(), Sample())).samples)
    2
    """

    samples: tuple[Sample, ...]
    flags: int = ALL_COLUMNS
    version: int = 0
    first_sample_flags: int = SYNC
    gap: int = 0
    mdat: int = 0


@dataclass(frozen=True, slots=True)
class Traf:
    """A traf: one track's part of a fragment.

    Attributes:
        track: track_ID.
        runs: in file order.
        flags: of the tfhd; the defaults below are written where they name them.
        tfdt: decode time of its first sample; None: no tfdt.
        tfdt_version: 0 or 1.
        tfxd: the same in PIFF's own box, or None.
        base: what base_data_offset leads to where it is written: "moof" or "data".
        stale: bytes by which the written base_data_offset is wrong.
        undeclared: positions count from the moof though nothing says so; a reader can only tell
            where those that the rule gives lie outside of every mdat up to the next moof.
        extra: boxes behind the runs, such as senc.

    >>> Traf(1, (Run((Sample(),)),)).tfdt
    0
    """

    track: int
    runs: tuple[Run, ...]
    flags: int = DEFAULT_BASE_IS_MOOF
    default_sample_duration: int = 0
    default_sample_size: int = 0
    default_sample_flags: int = 0
    tfdt: int | None = 0
    tfdt_version: int = 1
    tfxd: int | None = None
    base: str = "moof"
    stale: int = 0
    undeclared: bool = False
    extra: tuple[Box, ...] = ()


def default_of(traf: Traf, defaults: Mapping[int, tuple[int, int, int]]) -> tuple[int, int, int]:
    """Duration, size and flags: tfhd over trex (8.8.7.1)."""
    duration, size, flags = defaults.get(traf.track, (0, 0, 0))
    return (
        traf.default_sample_duration if traf.flags & DEFAULT_SAMPLE_DURATION else duration,
        traf.default_sample_size if traf.flags & DEFAULT_SAMPLE_SIZE else size,
        traf.default_sample_flags if traf.flags & DEFAULT_SAMPLE_FLAGS else flags,
    )


def effective(run: Run, traf: Traf, defaults: Mapping[int, tuple[int, int, int]]) -> list[Sample]:
    """The run's samples as a reader must understand them: trun, tfhd, trex."""
    duration, size, flags = default_of(traf, defaults)
    found = []
    for number, sample in enumerate(run.samples):
        own = sample.flags if run.flags & SAMPLE_FLAGS else flags
        if number == 0 and run.flags & FIRST_SAMPLE_FLAGS:
            own = run.first_sample_flags
        found.append(
            Sample(
                sample.size if run.flags & SAMPLE_SIZE else size,
                sample.duration if run.flags & SAMPLE_DURATION else duration,
                own,
                sample.offset if run.flags & SAMPLE_COMPOSITION_TIME_OFFSET else 0,
            )
        )
    return found
