"""`fragdex.tables`: the tables of an index by the names that users have for them."""

import pytest

import fragdex
from fragdex import tables


@pytest.mark.parametrize("name", ["frag-cmaf.mp4", "open-gop.mp4"])
def test_the_tables_of_a_track_are_those(name, root):
    index = fragdex.index(root / "fixtures" / name)
    for track in index.tracks:
        assert isinstance(track.fragments, tables.FragmentTable)
        assert isinstance(track.sync_samples, tables.SyncTable)
        assert isinstance(track.samples, tables.SampleTable)
        virtual = (track.fragments.flags & tables.FragmentFlags.VIRTUAL) != 0
        assert virtual.all() == (name == "open-gop.mp4")


@pytest.mark.parametrize("exact", [True, False])
def test_what_is_unknown_is_null(exact, root):
    """An index from a sidx has read no fragments, and knows none of their samples."""
    with_sidx = root / "fixtures" / "frag-global-sidx.mp4"
    track = fragdex.index(with_sidx, exact=exact).tracks[0]
    unknown = track.fragments.sample_count == tables.NULL
    assert (~unknown if exact else unknown).all()
