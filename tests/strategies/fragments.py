"""Hypothesis strategies for fragments: each rule for bases, flags in every mixture, several mdats.

Times that jump, several trafs of one track and ids that no moov knows are drawn as well.
"""

from __future__ import annotations

import functools

from hypothesis import strategies as st

from fragdex.box_header import SizeForm
from fragdex.boxes import Box, make_box
from fragdex.boxes.fragments import (
    BASE_DATA_OFFSET,
    DATA_OFFSET,
    DEFAULT_BASE_IS_MOOF,
    DEFAULT_SAMPLE_DURATION,
    DURATION_IS_EMPTY,
    FIRST_SAMPLE_FLAGS,
    SAMPLE_DURATION,
)
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import NON_SYNC, SYNC, Run, Sample, Traf

# sample_depends_on says nothing of sync: both kinds carry it, and bits that nobody reads.
_FLAGS = (SYNC, NON_SYNC, 0, 0x00010000, 0x01000000, 0xFFFEFFFF, 0xFFFFFFFF)
# How the trafs of one fragment say where their data is.
_BASES = ("moof", "moof", "explicit", "implicit", "mixed", "stale", "undeclared")


# Made once: a strategy that is made at every draw costs more than the draw.
_EVEN = st.booleans()
_BITS4 = st.integers(0, 15)
_BITS3 = st.integers(0, 7)
ANY_FLAGS = st.sampled_from(_FLAGS)
_FEW = st.sampled_from([False, False, False, True])
_FORMS: st.SearchStrategy[SizeForm] = st.sampled_from(["compact", "compact", "large"])
_TO_3, _TO_60, _1_TO_3 = st.integers(0, 3), st.integers(0, 60), st.integers(1, 3)
_GAPS = st.sampled_from([0, 0, 3])
_TRAILING = st.sampled_from([0, 0, 5])


@functools.cache
def samples(*, least: int = 0) -> st.SearchStrategy[Sample]:
    """One sample: now and then of no bytes or no duration, shown early, late or never near.

    >>> from hypothesis import find
    >>> find(samples(), lambda sample: sample.size > 5).size
    6
    """
    return st.builds(
        Sample,
        size=st.integers(least, 40),
        duration=st.integers(0, 50) | st.sampled_from([100, 1001]),
        flags=st.sampled_from(_FLAGS),
        offset=st.integers(0, 100) | st.integers(-60, -1) | st.sampled_from([2**31, 2**31 - 1]),
    )


@functools.cache
def _sample_lists(least: int) -> st.SearchStrategy[tuple[Sample, ...]]:
    return st.lists(samples(least=least), max_size=4).map(tuple)


def _boxes_before() -> st.SearchStrategy[tuple[Box, ...]]:
    lead = st.sampled_from(
        [
            make_box("styp", major_brand="msdh", compatible_brands=("msdh",)),
            make_box("emsg", version=1, scheme_id_uri="urn:x", timescale=1000),
            make_box("prft", reference_track_ID=1),
        ]
    )
    return st.lists(lead, max_size=2).map(tuple)


def _boxes_between() -> st.SearchStrategy[tuple[Box, ...]]:
    filler = st.sampled_from([make_box("free", data=bytes(3)), make_box("skip", data=b"")])
    return st.just(()) | st.tuples(filler)


_BEFORE, _BETWEEN = _boxes_before(), _boxes_between()


@st.composite
def _runs(draw: st.DrawFn, *, glued: bool, least: int, mdats: int) -> tuple[Run, ...]:
    """Runs of one traf; with `glued` the first one may do without a data_offset."""
    runs: list[Run] = []
    for number in range(draw(_TO_3)):
        flags = draw(_BITS4) * SAMPLE_DURATION  # the lowest of four bits side by side
        if draw(_EVEN):
            flags |= FIRST_SAMPLE_FLAGS
        attached = (number or glued) and draw(_EVEN)
        if not attached:
            flags |= DATA_OFFSET
        runs.append(
            Run(
                draw(_sample_lists(least)),
                flags,
                version=int(draw(_EVEN)),
                first_sample_flags=draw(ANY_FLAGS),
                gap=0 if attached else draw(_GAPS),
                # The data of an attached run follows that of the run before.
                mdat=runs[-1].mdat
                if attached and runs
                else (0 if attached else draw(st.integers(0, mdats - 1))),
            )
        )
    return tuple(runs)


@st.composite
def fragments(
    draw: st.DrawFn, ids: tuple[int, ...], *, time: int | None = None, odd: bool = True
) -> Fragment:
    """A fragment of some of these tracks.

    Args:
        ids: track ids to choose from; one may have several trafs.
        time: about where its decode times lie; None: anywhere.
        odd: bases that are wrong or undeclared, which readers repair, as well.

    >>> from hypothesis import find
    >>> len(find(fragments((1, 2)), lambda fragment: len(fragment.trafs) == 2).trafs)
    2
    """
    base = draw(st.sampled_from(_BASES if odd else _BASES[:5]))
    repaired = base in ("stale", "undeclared")
    mdats = 1 if repaired or base in ("implicit", "mixed") else draw(st.sampled_from([1, 1, 2, 3]))
    trafs: list[Traf] = []
    for _ in range(draw(_1_TO_3)):
        follows = bool(trafs and trafs[-1].runs)
        trafs.append(draw(_trafs(ids, follows, base, time, mdats)))
    order = None
    flat = [run for traf in trafs for run in traf.runs]
    if base == "moof" and draw(_EVEN):
        order = tuple(draw(_order(flat)))
    # The field's rule is told from the standard's by data that would lie outside of the mdat.
    return Fragment(
        tuple(trafs),
        before=draw(_BEFORE),
        between=draw(_BETWEEN),
        mdats=mdats if any(run.samples for run in flat) or draw(_EVEN) else 0,
        mdat_first=not repaired and draw(_FEW),
        order=order,
        moof_form=draw(_FORMS),
        mdat_form=draw(_FORMS),
        trailing=0 if repaired else draw(_TRAILING),
    )


@st.composite
def _trafs(
    draw: st.DrawFn, ids: tuple[int, ...], follows: bool, base: str, time: int | None, mdats: int
) -> Traf:
    flags = draw(_BITS3) * DEFAULT_SAMPLE_DURATION  # the lowest of three bits side by side
    undeclared, place, stale = False, "moof", 0
    if base == "mixed":
        base = draw(st.sampled_from(["moof", "explicit", "implicit"]))
    if base == "moof":
        flags |= DEFAULT_BASE_IS_MOOF
    elif base == "explicit":
        flags |= BASE_DATA_OFFSET
        place = draw(st.sampled_from(["moof", "data"]))
    elif base == "stale":
        flags |= BASE_DATA_OFFSET
        stale = draw(st.sampled_from([2**40, 10**7]))
    elif base == "undeclared":
        undeclared = True
    attachable = (base == "explicit" and place == "data") or (base == "implicit" and follows)
    least = 1 if stale or undeclared else 0
    runs = draw(_runs(glued=attachable, least=least, mdats=mdats))
    if not runs and draw(_EVEN):
        flags |= DURATION_IS_EMPTY
    version = int(draw(_EVEN))
    near = st.integers(0, 200) if time is None else st.integers(max(0, time - 3), time + 8)
    far = st.integers(0, 2**32 - 1) if version == 0 else st.integers(-(2**61), 2**61)
    times = near if time is not None else near | far
    return Traf(
        draw(st.sampled_from(ids)),
        runs,
        flags,
        draw(_TO_60),
        max(least, draw(_TO_60)),
        draw(ANY_FLAGS),
        tfdt=draw(st.none() | times | times),
        tfdt_version=version,
        tfxd=draw(st.none() | st.none() | times),
        base=place,
        stale=stale,
        undeclared=undeclared,
    )


@st.composite
def _order(draw: st.DrawFn, flat: list[Run]) -> list[int]:
    """Numbers of runs, those without data_offset behind the one before them."""
    units: list[list[int]] = []
    for number, run in enumerate(flat):
        if run.flags & DATA_OFFSET or not units:
            units.append([number])
        else:
            units[-1].append(number)
    return [number for unit in draw(st.permutations(units)) for number in unit]
