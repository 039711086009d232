"""An upload that arrives in pieces: `Indexer`, told as its users meet it."""

import hashlib

import pytest

import fragdex
from fragdex.errors import MalformedBox, NotISOBMFF, TruncatedInput
from fragdex.indexing import scan
from fragdex.indexing.scan import Scan
from fragdex.testing import made_movie, movie
from laws import brute
from repeats import repeated

DATA = movie(4, tracks=2)


def test_the_index_is_there_at_the_last_byte():
    indexer = fragdex.Indexer(md5=True)
    for at in range(0, len(DATA), 777):
        indexer.feed(DATA[at : at + 777])
        assert indexer.position >= min(at, len(DATA))
    index = indexer.finish()
    brute.same(index, fragdex.index(DATA))
    assert index.file.md5 == hashlib.md5(DATA).hexdigest()
    assert index.file.size == len(DATA)


def test_media_may_be_jumped_over():
    indexer = fragdex.Indexer()
    fed = 0
    while (need := indexer.need) is not None and need.start < len(DATA):
        indexer.feed(DATA[need.start : need.stop], need.start)
        fed += need.size
    assert fed < len(DATA) / 2
    brute.same(indexer.finish(len(DATA)), fragdex.index(DATA))


def test_what_is_fed_twice_counts_once():
    indexer = fragdex.Indexer()
    indexer.feed(DATA[:500])
    indexer.feed(DATA[300:], 300)
    brute.same(indexer.finish(), fragdex.index(DATA))


def test_a_gap_in_what_is_needed_is_refused():
    indexer = fragdex.Indexer()
    indexer.feed(DATA[:10])
    with pytest.raises(ValueError, match="missing"):
        indexer.feed(DATA[2000:], 2000)


def test_to_be_hashed_bytes_must_follow_each_other():
    indexer = fragdex.Indexer(md5=True)
    indexer.feed(DATA[:10])
    with pytest.raises(ValueError, match="must follow"):
        indexer.feed(DATA[11:], 11)


def test_an_upload_that_broke_off_goes_on_later():
    fragments = made_movie(4, tracks=2).truth.fragments
    indexer = fragdex.Indexer()
    indexer.feed(DATA[: fragments[2].stop + 50])
    index = indexer.finish()
    assert not index.complete
    assert index.resume_offset == fragments[2].stop
    assert len(index.track(1).fragments) == 3
    brute.same(index.extend(DATA), fragdex.index(DATA))


@pytest.mark.parametrize("start", [0, 4, 30])
def test_an_upload_that_said_nothing_is_refused(start):
    indexer = fragdex.Indexer()
    indexer.feed(DATA[:start])
    with pytest.raises((NotISOBMFF, TruncatedInput)):
        indexer.finish()


def test_segments_are_read_with_their_init():
    film = made_movie(4)
    start = film.truth.fragments[0].start
    indexer = fragdex.Indexer(init=film.data[:start])
    indexer.feed(film.data[start:])
    index = indexer.finish()
    assert index.track(1).timescale == 25000
    assert len(index.track(1).fragments) == 4


def test_strict_raises_at_the_first_damage():
    at = DATA.rindex(b"trun") + 8
    damaged = DATA[:at] + b"\xff" * 4 + DATA[at + 4 :]
    lenient, strict = fragdex.Indexer(), fragdex.Indexer(strict=True)
    for indexer in (lenient, strict):
        indexer.feed(damaged)
    assert [finding.code for finding in lenient.finish().findings] == ["damaged-fragment"]
    with pytest.raises(MalformedBox):
        strict.finish()


def test_small_pieces_are_read_together(monkeypatch):
    """Every piece of 64 bytes that ended a fragment was read by itself."""
    data = repeated("fragments", 400)
    batches = []
    read = scan.read_batch
    monkeypatch.setattr(scan, "read_batch", lambda *a: batches.append(a) or read(*a))
    indexer = fragdex.Indexer()
    for at in range(0, len(data), 64):
        indexer.feed(data[at : at + 64])
    index = indexer.finish()
    assert len(index.track(1).fragments) == 400
    assert len(batches) < len(data) / 2000


def test_what_is_needed_is_known_after_every_small_piece():
    data = movie(fragments=3)
    indexer = fragdex.Indexer()
    for at in range(0, len(data), 5):
        known = Scan()
        known.feed(data[:at])
        assert (indexer.need, indexer.position) == (known.need, known.position)
        indexer.feed(data[at : at + 5])
    assert indexer.position == len(data)
    assert len(indexer.finish().track(1).fragments) == 3
