"""Hypothesis strategies for whole files with known truth: fragmented, progressive, both, several.

Everything that the standard allows and that files in the field do is drawn.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from fragdex.boxes import make_box
from fragdex.fragments.track_info import Edit
from fragdex.testing.files import Brand, Chunks, Mfra, Other, Part, Sidx, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import Made, Moov, Sample, Track
from strategies.fragments import ANY_FLAGS, fragments, samples

_TIMESCALES = (1, 25, 600, 1000, 30_011, 44_100, 90_000, 10_000_000, 2**32 - 1)
# Made once: a strategy that is made at every draw costs more than the draw.
_EVEN = st.booleans()
_TO_60 = st.integers(0, 60)


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
_TREX = st.none() | st.tuples(_TO_60, _TO_60, ANY_FLAGS) | st.tuples(_TO_60, _TO_60, ANY_FLAGS)
_LANGUAGES = st.sampled_from(["und", "eng"])


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
    parts += _told_apart(body)
    if where == "behind":
        parts.append(moov)
    return parts


def _told_apart(parts: Sequence[Part]) -> list[Part]:
    """The same parts; behind positions that no rule gives, no mdat stands in front of its moof.

    By the rule (8.8.7.1) those samples lie behind their own mdat. Where that leads into another
    one they are there: nothing tells that the moof was meant.
    """
    distinct: list[Part] = []
    undeclared = False
    for part in parts:
        if isinstance(part, Fragment):
            if undeclared and part.mdat_first:
                part = replace(part, mdat_first=False)
            undeclared = any(traf.undeclared for traf in part.trafs)
        distinct.append(part)
    return distinct


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
        parts += _told_apart([draw(fragments(ids)) for _ in range(draw(st.integers(0, 2)))])
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


def _decodes_alike(one: list[Part], other: list[Part]) -> bool:
    """Whether the second moov may repeat the first: then they are one movie."""
    mine, theirs = (
        {(t.id, t.kind, t.timescale) for p in parts if isinstance(p, Moov) for t in p.tracks}
        for parts in (one, other)
    )
    return mine <= theirs or theirs <= mine


def files(*, several: bool = True) -> st.SearchStrategy[Made]:
    """Whole files of every kind.

    Args:
        several: also files with two moovs, one period behind the other.

    >>> from hypothesis import Phase, find, settings
    >>> drawn = settings(max_examples=2000, phases=[Phase.generate])
    >>> made = find(files(several=False), lambda made: made.truth.samples.get(1), settings=drawn)
    >>> bool(made.truth.samples[1])
    True
    """
    one = st.one_of(fragmented_parts(), progressive_parts(), fragmented_parts(odd=False))
    whole = one.map(lambda parts: make_file(*parts))
    if not several:
        return whole
    first = fragmented_parts(most=2).filter(_has_moov_in_front)
    both = st.tuples(first, first).filter(lambda both: not _decodes_alike(*both))
    two = both.map(lambda both: make_file(*_told_apart([*both[0], *both[1]])))
    return st.one_of(whole, whole, whole, two)
