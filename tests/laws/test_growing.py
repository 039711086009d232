"""A file cut off anywhere gives what is complete; grown again, it gives everything."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import parse
from fragdex.errors import FormatError
from fragdex.fragments.table import FragmentFlags
from fragdex.indexing import native
from fragdex.testing import made_movie, movie
from fragdex.testing.files import make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import Moov
from laws import brute
from strategies.files import files


def opened(data):
    """The index, or None where nothing could be indexed."""
    try:
        return fragdex.index(data, exact=True)
    except FormatError:
        return None


def cuts(film):
    """Places to cut a file: anywhere, and at the edges of its boxes and their headers."""
    boxes = native.walk(memoryview(film.data), 0).top["offset"].tolist()
    edges = {at + inside for at in boxes for inside in (0, 4, 8)} | {len(film.data)}
    return st.sampled_from(sorted(edges)) | st.integers(0, len(film.data))


@st.composite
def cut_files(draw, *, most=1, several=True):
    """A file, and one or more places to cut it, rising."""
    film = draw(files(several=several))
    return film, sorted(draw(st.lists(cuts(film), min_size=1, max_size=most)))


@given(cut_files(several=False))
def test_what_is_complete_is_there(cut_file):
    film, (cut,) = cut_file
    index = opened(film.data[:cut])
    true = film.truth
    if index is None:
        assert cut < len(film.data)
        assert not any(f.stop <= cut for f in true.fragments)
        return
    moov_at = [s for s, p in zip(film.spans, film.parts, strict=True) if isinstance(p, Moov)]
    if moov_at and moov_at[0][1] > cut:
        return  # without the moov its defaults are unknown
    whole = fragdex.index(film.data, exact=True)
    assume(not brute.restarts(whole))
    for track in index.tracks:
        kept, expected = real_rows(track), real_rows(whole.track(track.id))
        # An mdat in front of the next moof is taken for one more of the fragment before it.
        done = [row for row in expected if row["offset"] + row["size"] <= cut]
        assert kept[: len(done)] == done
        assert len(kept) <= len(done) + 1
    if not index.complete:
        assert index.resume_offset <= cut
        assert any(f.code == "truncated" for f in index.findings)


def real_rows(track):
    """The rows of a track's table that stand for a moof, as dicts.

    Without the marks of what stands behind a fragment or in later ones: that is still to come.
    """
    table = track.fragments
    columns = table.rows((table.flags & FragmentFlags.VIRTUAL) == 0).columns()
    marks = FragmentFlags.BETWEEN | FragmentFlags.BESIDE
    columns["flags"] = columns["flags"] & ~np.uint32(marks)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


@pytest.fixture
def places(request):
    """places(film, first): where a film is cut, from a place on, one after the other.

    At each byte by `./dev test --all`; else next to where each box begins and its fields do, which
    decide what is known, and at some places between them.
    """

    def places_of(film, first):
        if request.config.getoption("full_product"):
            return range(first, len(film.data) + 1)
        starts = {at for box in parse(film.data) for at in starts_of(box)} | {len(film.data)}
        near = {at + by for at in starts for by in (-1, 0, 1, 4, 8, 12, 16)}
        between = range(first, len(film.data), 29)
        return [at for at in sorted(near.union(between)) if first <= at <= len(film.data)]

    return places_of


def starts_of(box):
    """Where a box begins, and each one inside."""
    return [box.offset, *(at for child in box.children for at in starts_of(child))]


@pytest.mark.parametrize("tracks", [1, 2])
def test_a_fragment_after_its_media_data_outlasts_a_cut_in_that_of_the_next(tracks, places):
    film = made_movie(3, tracks=tracks, samples=1)
    parts = [replace(p, mdat_first=True) if isinstance(p, Fragment) else p for p in film.parts]
    film = make_file(*parts)
    whole = fragdex.index(film.data, exact=True)
    for cut in places(film, film.truth.fragments[0].stop):
        index = fragdex.index(film.data[:cut], exact=True)
        for track in index.tracks:
            expected = real_rows(whole.track(track.id))
            done = [row for row in expected if row["offset"] + row["size"] <= cut]
            assert real_rows(track) == done, cut
        brute.same(index.extend(film.data), whole)


@given(cut_files())
def test_extending_equals_indexing_the_whole(cut_file):
    film, (cut,) = cut_file
    index = opened(film.data[:cut])
    assume(index is not None)
    brute.same(index.extend(film.data), fragdex.index(film.data, exact=True))


@pytest.mark.parametrize("begin", [0, 1, 40_000, 41_000])
@pytest.mark.parametrize("lasts", [0, 100, 200, 400, 410, 600])
def test_who_is_shown_is_decided_by_all_that_came(begin, lasts):
    whole = bytearray(movie(3, edit=begin))
    at = whole.index(b"elst") + 12
    whole[at : at + 4] = lasts.to_bytes(4, "big")
    data = bytes(whole)
    expected = fragdex.index(data, exact=True)
    for cut in expected.track(1).fragments.offset.tolist():
        brute.same(fragdex.index(data[:cut], exact=True).extend(data), expected)


@given(cut_files(most=4))
def test_growing_step_by_step(cut_file):
    film, steps = cut_file
    grown = None
    for cut in [*steps, len(film.data)]:
        anew = opened(film.data[:cut])
        if anew is None or grown is None:
            # A start that says too little is refused, however it came.
            grown = anew
        else:
            grown = grown.extend(film.data[:cut])
            brute.same(grown, anew)


def test_every_cut_of_a_recording(places):
    film = made_movie(2, tracks=2, samples=1)
    whole = fragdex.index(film.data, exact=True)
    first = film.truth.fragments[0].moof
    for cut in places(film, first):
        index = fragdex.index(film.data[:cut], exact=True)
        done = [f for f in film.truth.fragments if f.stop <= cut]
        assert len(index.track(1).fragments) == len(done)
        assert index.resume_offset == (done[-1].stop if done else first)
        assert index.complete == (cut == index.resume_offset)
        brute.same(index.extend(film.data), whole)
