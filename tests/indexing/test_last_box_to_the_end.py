"""The last box may have size 0: it reaches to the end of the file (ISO/IEC 14496-12, 4.2.2)."""

import pytest

import fragdex
from fragdex.muxing.kinds import described
from fragdex.testing import movie
from laws import brute


def moov_last(**options):
    """A movie whose moov stands behind its media, and the same with a size of 0."""
    data = movie(3, fragmented=False, **options)
    source = fragdex.view(fragdex.index(data), "tracks", source=data).read(source=data)
    boxes = fragdex.boxes.parse(source)
    moov = next(box for box in boxes if box.type == "moov")
    front = fragdex.index(source)
    # The moov goes behind the mdat, which stays where it is.
    filled = bytearray(source)
    filled[moov.offset + 4 : moov.offset + 8] = b"free"
    moov_bytes = source[moov.offset : moov.offset + moov.size]
    return bytes(filled) + moov_bytes, bytes(filled) + bytes(4) + moov_bytes[4:], front


@pytest.mark.parametrize("tracks", [1, 2])
def test_a_moov_to_the_end_is_read(tracks, tmp_path):
    sized, data, front = moov_last(tracks=tracks)
    indexer = fragdex.Indexer()
    for at in range(0, len(data), 100):
        indexer.feed(data[at : at + 100])
    path = tmp_path / "last.mp4"
    path.write_bytes(data)
    for index in (fragdex.index(data), indexer.finish(), fragdex.index(path)):
        brute.same(index, fragdex.index(sized))
        assert [t.samples for t in index.tracks] == [t.samples for t in front.tracks]
        assert index.complete


@pytest.mark.parametrize("kind", ["faststart", "fragmented", "clip", "tracks"])
def test_it_has_a_size_wherever_it_moves(kind):
    _, data, front = moov_last(tracks=2)
    view = described(fragdex.index(data), kind, source=data).read(source=data)
    index = fragdex.index(view, exact=True)
    assert not index.findings
    assert [t.sample_count for t in index.tracks] == [t.sample_count for t in front.tracks]
