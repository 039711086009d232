"""Hypothesis strategies for whole files with known truth: fragmented, progressive, both, several.

Everything that the standard allows and that files in the field do is drawn: each rule for bases,
flags in every mixture, several trafs of one track, several mdats, an mdat before its moof, times
that jump, ids that no moov knows. Damage is made of them by `hostile_strategies`.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

from hypothesis import strategies as st

from fragdex.boxes import Box, make_box
from fragdex.boxes.box import SizeForm
from fragdex.boxes.tfhd import (
    BASE_DATA_OFFSET,
    DEFAULT_BASE_IS_MOOF,
    DEFAULT_SAMPLE_DURATION,
    DURATION_IS_EMPTY,
)
from fragdex.boxes.trun import (
    DATA_OFFSET,
    FIRST_SAMPLE_FLAGS,
    SAMPLE_DURATION,
)
from fragdex.fragments.tracks import Edit
from fragdex.testing.descriptions import NON_SYNC, SYNC, Run, Sample, Traf
from fragdex.testing.files import Brand, Chunks, Other, Part, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.ready_indexes import Mfra, Sidx
from fragdex.testing.tracks import Moov, Track
from fragdex.testing.truth import Made

__all__ = ["files", "fragmented_parts", "fragments", "progressive_parts", "samples", "tracks"]

_TIMESCALES = (1, 25, 600, 1000, 30_011, 44_100, 90_000, 10_000_000, 2**32 - 1)
# sample_depends_on says nothing of sync: both kinds carry it, and bits that nobody reads.
_FLAGS = (SYNC, NON_SYNC, 0, 0x00010000, 0x01000000, 0xFFFEFFFF, 0xFFFFFFFF)
# How the trafs of one fragment say where their data is.
_BASES = ("moof", "moof", "explicit", "implicit", "mixed", "stale", "undeclared")


# Made once: a strategy that is made at every draw costs more than the draw.
_EVEN = st.booleans()
_BITS4 = st.integers(0, 15)
_BITS3 = st.integers(0, 7)
_ANY_FLAGS = st.sampled_from(_FLAGS)
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


def edits() -> st.SearchStrategy[tuple[Edit, ...]]:
    """Edit lists as files have them: none, one, an empty one in front, too many.

    >>> from hypothesis import find
    >>> find(edits(), lambda found: len(found) == 2)[0].media_time
    -1
    """
    shown = st.builds(
        Edit,
        duration=st.integers(0, 5000),
        media_time=st.integers(0, 200) | st.just(2**33),
        rate=st.sampled_from([1.0, 1.0, 0.5]),
    )
    empty = st.builds(Edit, duration=st.integers(0, 5000), media_time=st.just(-1))
    return st.one_of(
        st.just(()),
        st.tuples(shown),
        st.tuples(empty, shown),
        st.tuples(empty, empty, shown),
        st.tuples(shown, empty, shown),
        st.tuples(empty),
    )


@functools.cache
def _sample_lists(least: int) -> st.SearchStrategy[tuple[Sample, ...]]:
    return st.lists(samples(least=least), max_size=4).map(tuple)


@st.composite
def tracks(draw: st.DrawFn, track_id: int) -> Track:
    """A track without samples in the moov.

    >>> from hypothesis import find
    >>> find(tracks(7), lambda track: track.trex is None).id
    7
    """
    return Track(
        track_id,
        draw(_KINDS),
        draw(_TICKS),
        draw(_EDITS),
        draw(_TREX),
        language=draw(_LANGUAGES),
    )


_KINDS = st.sampled_from(["video", "audio", "text"])
_TICKS = st.sampled_from(_TIMESCALES)
_EDITS = edits()
_TREX = st.none() | st.tuples(_TO_60, _TO_60, _ANY_FLAGS) | st.tuples(_TO_60, _TO_60, _ANY_FLAGS)
_LANGUAGES = st.sampled_from(["und", "eng"])


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
    found: list[Run] = []
    for number in range(draw(_TO_3)):
        flags = draw(_BITS4) * SAMPLE_DURATION  # the lowest of four bits side by side
        if draw(_EVEN):
            flags |= FIRST_SAMPLE_FLAGS
        attached = (number or glued) and draw(_EVEN)
        if not attached:
            flags |= DATA_OFFSET
        found.append(
            Run(
                draw(_sample_lists(least)),
                flags,
                version=int(draw(_EVEN)),
                first_sample_flags=draw(_ANY_FLAGS),
                gap=0 if attached else draw(_GAPS),
                # The data of an attached run follows that of the run before.
                mdat=found[-1].mdat
                if attached and found
                else (0 if attached else draw(st.integers(0, mdats - 1))),
            )
        )
    return tuple(found)


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
        draw(_ANY_FLAGS),
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


@st.composite
def fragmented_parts(draw: st.DrawFn, *, most: int = 4, odd: bool = True) -> list[Part]:
    """A movie of fragments: mostly with a moov in front, at times behind or without one."""
    ids = tuple(draw(st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=3, unique=True)))
    described = tuple(draw(tracks(track)) for track in ids)
    if odd and draw(_EVEN):
        ids = (*ids, 5)  # perhaps a track that no moov knows
    jumps = draw(_EVEN)
    body: list[Part] = []
    for number in range(draw(st.integers(0, most))):
        time = None if jumps else 100 * number
        body.append(draw(fragments(ids, time=time, odd=odd)))
        if draw(st.integers(0, 5)) == 0:
            body.append(Other(make_box("free", data=bytes(draw(st.integers(0, 9))))))
    moov = Moov(
        described,
        timescale=draw(st.sampled_from([600, 1000, 90_000])),
        form=draw(st.sampled_from(["compact", "large"])),
        trailing=draw(st.sampled_from([b"", b"", bytes(4)])),
    )
    where = draw(st.sampled_from(["front", "front", "front", "behind", "nowhere"]))
    if where == "nowhere" and not body:
        where = "front"
    parts: list[Part] = [Brand()] if draw(_EVEN) else []
    if where == "front":
        parts.append(moov)
    parts += body
    if where == "behind":
        parts.append(moov)
    return parts


@st.composite
def progressive_parts(draw: st.DrawFn, *, hybrid: bool | None = None) -> list[Part]:
    """A movie whose moov names the samples; at times with fragments behind them."""
    hybrid = draw(_EVEN) if hybrid is None else hybrid
    described: list[Track] = []
    for number in range(1, draw(st.integers(1, 3)) + 1):
        sizes = draw(st.sampled_from(["stsz", "constant", "4", "8", "16"]))
        sample = samples()
        if sizes == "constant":
            sample = samples(least=1).map(lambda s: Sample(9, s.duration, s.flags, s.offset))
        elif sizes == "4":
            sample = samples().map(lambda s: Sample(s.size % 16, s.duration, s.flags, s.offset))
        chunks = draw(st.lists(st.lists(sample, min_size=1, max_size=4).map(tuple), max_size=5))
        track = draw(tracks(number))
        fields: dict[str, Any] = {
            name: getattr(track, name) for name in ("id", "kind", "timescale", "edits", "trex")
        }
        described.append(
            Track(
                **fields,
                chunks=tuple(chunks),
                sizes=sizes,
                large_offsets=draw(_EVEN),
                ctts=draw(st.sampled_from([None, 0, 1])),
                stss=draw(_EVEN),
            )
        )
    every = [(track.id, n) for track in described for n in range(len(track.chunks))]
    if draw(_EVEN):
        every = list(draw(st.permutations(every)))
    cut = draw(st.integers(0, len(every)))
    media: list[Part] = [
        Chunks(
            tuple(order), draw(st.sampled_from([0, 2])), draw(st.sampled_from(["compact", "large"]))
        )
        for order in (every[:cut], every[cut:])
    ]
    moov = Moov(tuple(described), timescale=draw(st.sampled_from([600, 1000])), fragmented=hybrid)
    parts: list[Part] = [Brand(("isom",))]
    if hybrid:
        parts += [moov, *media]
        ids = tuple(track.id for track in described)
        parts += [draw(fragments(ids)) for _ in range(draw(st.integers(0, 2)))]
    else:
        media.insert(draw(st.integers(0, 2)), moov)
        parts += media
    return parts


@st.composite
def indexed_parts(draw: st.DrawFn) -> list[Part]:
    """A movie of fragments with ready-made indexes: sidx in front, mfra behind."""
    parts = draw(fragmented_parts(odd=False).filter(_has_moov_in_front))
    media = [n for n, part in enumerate(parts) if isinstance(part, Fragment)]
    moov = next(part for part in parts if isinstance(part, Moov))
    if draw(_EVEN) and media:
        # Each reference reaches to the next fragment, whatever lies between.
        edges = [n + 1 for n in (*media, len(parts))]
        covers = tuple(itertools.pairwise(edges))
        track = draw(st.sampled_from([track.id for track in moov.tracks]))
        parts.insert(media[0], Sidx(track, covers, version=draw(st.integers(0, 1))))
    if draw(_EVEN):
        parts.append(Mfra(every=draw(st.integers(1, 2)), version=1))
    return parts


def _has_moov_in_front(parts: list[Part]) -> bool:
    return any(isinstance(part, Moov) for part in parts[:2])


def files(*, several: bool = True) -> st.SearchStrategy[Made]:
    """Whole files of every kind.

    Args:
        several: also files with two moovs, one period behind the other.

    >>> from hypothesis import find
    >>> made = find(files(several=False), lambda made: made.truth.samples.get(1))
    >>> bool(made.truth.samples[1])
    True
    """
    one = st.one_of(fragmented_parts(), progressive_parts(), fragmented_parts(odd=False))
    whole = one.map(lambda parts: make_file(*parts))
    if not several:
        return whole
    first = fragmented_parts(most=2).filter(_has_moov_in_front)
    two = st.tuples(first, first).map(lambda both: make_file(*both[0], *both[1]))
    return st.one_of(whole, whole, whole, two)
