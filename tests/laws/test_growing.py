"""A file cut off anywhere gives what is complete; grown again, it gives everything."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.errors import FormatError
from fragdex.fragments.table import FragmentFlags
from fragdex.testing import made_movie
from fragdex.testing.file_strategies import files
from fragdex.testing.tracks import Moov
from laws import brute

OPEN = (
    "open: of files with odd fragments (no tfdt and a moof that is cut off, media data in front of "
    "its moof) a few cuts still extend to another table than the whole gives"
)


def opened(data):
    """The index, or None where nothing could be indexed."""
    try:
        return fragdex.index(data, exact=True)
    except FormatError:
        return None


@given(files(several=False), st.floats(0, 1))
def test_what_is_complete_is_there(made, where):
    cut = int(len(made.data) * where)
    found = opened(made.data[:cut])
    true = made.truth
    if found is None:
        assert cut < len(made.data)
        assert not any(f.stop <= cut for f in true.fragments)
        return
    whole = fragdex.index(made.data, exact=True)
    moov_at = [s for s, p in zip(made.spans, made.parts, strict=True) if isinstance(p, Moov)]
    if moov_at and moov_at[0][1] > cut:
        return  # without the moov its defaults are unknown
    for track in found.tracks:
        rows = track.fragments
        kept = brute.rows(rows.rows((rows.flags & FragmentFlags.VIRTUAL) == 0))
        all_rows = whole.track(track.id).fragments
        expected = brute.rows(all_rows.rows((all_rows.flags & FragmentFlags.VIRTUAL) == 0))
        done = [f for f in true.fragments if track.id in f.samples and f.stop <= cut]
        assert kept[: len(done)] == expected[: len(done)]
        assert len(kept) <= len(done) + 1
    if not found.complete:
        assert found.resume_offset <= cut
        assert any(f.code == "truncated" for f in found.findings)


@pytest.mark.xfail(strict=False, reason=OPEN)
@given(files(several=False), st.floats(0, 1))
def test_extending_equals_indexing_the_whole(made, where):
    cut = int(len(made.data) * where)
    found = opened(made.data[:cut])
    if found is None:
        return
    brute.same(found.extend(made.data), fragdex.index(made.data, exact=True))


@pytest.mark.xfail(strict=False, reason=OPEN)
@given(files(several=False), st.lists(st.floats(0, 1), max_size=4))
def test_growing_step_by_step(made, steps):
    found = None
    for cut in [*sorted(int(len(made.data) * step) for step in steps), len(made.data)]:
        found = opened(made.data[:cut]) if found is None else found.extend(made.data[:cut])
    brute.same(found, fragdex.index(made.data, exact=True))


def test_every_cut_of_a_recording():
    made = made_movie(3, tracks=2)
    whole = fragdex.index(made.data, exact=True)
    first = made.truth.fragments[0].moof
    for cut in range(first, len(made.data) + 1):
        found = fragdex.index(made.data[:cut], exact=True)
        done = [f for f in made.truth.fragments if f.stop <= cut]
        assert len(found.track(1).fragments) == len(done)
        assert found.resume_offset == (done[-1].stop if done else first)
        assert found.complete == (cut == found.resume_offset)
        brute.same(found.extend(made.data), whole)
