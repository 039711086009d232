"""Files on a server: what their own index spares, and when it is not believed."""

from __future__ import annotations

import pytest

import fragdex
from fragdex.boxes import build, make_box, parse
from fragdex.testing import Faults, RangeServer
from fragdex.testing.files import Brand, Mfra, Other, Sidx, make_file
from fragdex.testing.fragments import Fragment
from fragdex.testing.tracks import NON_SYNC, SYNC, Moov, Run, Sample, Track, Traf

pytest.importorskip("httpx")

COUNT = 20
SECOND = tuple(Sample(2500, 1, NON_SYNC if n else SYNC) for n in range(25))
"""One fragment is about 60 KiB: no read of the start reaches over many of them."""


def fragments(count=COUNT, tracks=1, first=0):
    return [
        Fragment(tuple(Traf(1 + t, (Run(SECOND),), tfdt=25 * (first + n)) for t in range(tracks)))
        for n in range(count)
    ]


def film(*, sidx=None, mfra=None, count=COUNT, tracks=1, behind=()):
    """A film of a fragment a second, with one of the indexes, or both."""
    parts = [Brand(), Moov(tuple(Track(1 + n, "video", 25, trex=(1, 0, 0)) for n in range(tracks)))]
    if sidx is not None:
        parts.append(sidx)
    parts += fragments(count, tracks)
    parts += behind
    if mfra is not None:
        parts.append(mfra)
    return make_file(*parts).data


def covering(count, each=1):
    """A sidx behind ftyp and moov, a reference for every `each` fragments."""
    return Sidx(1, tuple((3 + n, 3 + min(n + each, count)) for n in range(0, count, each)))


def asked(data, **options):
    """The index by URL, and the requests that the server saw."""
    with RangeServer(data, faults=options.pop("faults", None)) as server:
        index = fragdex.index(server.url, **options)
        requests = list(server.requests)
    return index, requests


def same_answers(index, data, times=(0.0, 0.5, 7.3, 19.9)):
    """A seek leads to the same bytes as with the index of every sample."""
    exact = fragdex.index(data, exact=True)
    for track in exact.tracks:
        for time in times:
            ours, theirs = index.track(track.id).seek(time), track.seek(time)
            assert ours.time == theirs.time
            assert ours.range.stop == theirs.range.stop
            assert ours.range.start >= theirs.range.start - 1000


def test_a_sidx_at_the_front_takes_one_request():
    data = film(sidx=covering(COUNT))
    index, requests = asked(data)
    assert (index.how.method, index.exact) == ("sidx", False)
    assert len(requests) <= 2
    assert index.how.bytes_read < len(data) / 10
    assert index.findings == ()
    same_answers(index, data)


def test_a_sidx_and_an_mfra_behind_its_reach():
    data = film(sidx=covering(COUNT), mfra=Mfra())
    index, requests = asked(data)
    assert index.how.method == "sidx"
    assert len(requests) <= 2
    assert index.complete
    same_answers(index, data)


def test_what_a_short_sidx_leaves_out_is_walked():
    data = film(sidx=covering(COUNT - 4))
    index, _ = asked(data)
    assert [f.code for f in index.findings] == ["sidx-short"]
    assert len(index.track(1).fragments) == COUNT
    assert index.complete
    same_answers(index, data)
    assert index.track(1).stop == fragdex.index(data, exact=True).track(1).stop


@pytest.mark.parametrize("lie", [{"size_error": 40}, {"size_error": -8}], ids=str)
def test_a_sidx_whose_places_are_wrong_is_not_believed(lie):
    honest = covering(COUNT)
    data = film(sidx=Sidx(honest.track, honest.covers, **lie))
    index, _ = asked(data)
    assert index.exact
    assert any(f.code.startswith("sidx") for f in index.findings)
    assert len(index.track(1).fragments) == COUNT


def test_references_that_hold_several_fragments():
    data = film(sidx=covering(COUNT, each=4))
    index, _ = asked(data)
    assert index.how.method == "sidx"
    assert len(index.track(1).fragments) == COUNT // 4
    exact = fragdex.index(data, exact=True).track(1)
    for time in (0.0, 5.5, 11.9, 19.9):
        place, right = index.track(1).seek(time).range, exact.seek(time).range
        assert place.start <= right.start < right.stop <= place.stop


def test_an_mfra_at_the_end_takes_three_requests():
    data = film(mfra=Mfra())
    index, requests = asked(data)
    assert (index.how.method, index.exact) == ("mfra", False)
    assert len(requests) <= 3
    assert len(index.track(1).fragments) == COUNT
    assert index.complete
    same_answers(index, data)


def test_an_mfra_over_two_tracks():
    data = film(mfra=Mfra(), tracks=2)
    index, requests = asked(data)
    assert index.how.method == "mfra"
    assert len(requests) <= 3
    same_answers(index, data)


def test_an_mfra_that_lies_is_not_believed():
    data = film(mfra=Mfra(offset_error=16))
    index, _ = asked(data)
    assert index.exact
    assert any(f.code.startswith("mfra") for f in index.findings)
    same_answers(index, data)


def test_an_mfra_that_is_no_mfra():
    """The mfro at the end points at bytes that are none."""
    data = bytearray(film(mfra=Mfra()))
    at = data.rfind(b"tfra") - 4
    data[at + 8] = 77  # a version that nobody defined
    index, _ = asked(bytes(data))
    assert index.exact
    assert len(index.track(1).fragments) == COUNT
    data[-4:] = (12345).to_bytes(4, "big")
    assert asked(bytes(data))[0].exact


def test_fragments_that_came_behind_the_mfra_are_found():
    """A recording that was closed, and then went on."""
    closed = film(mfra=Mfra(), count=8)
    boxes = [box for box in parse(film(count=14)) if box.type in ("moof", "mdat")][16:]
    more = build(boxes)
    index, _ = asked(closed + more)
    assert len(index.track(1).fragments) == 14
    assert index.complete


def test_exact_reads_every_fragment_and_no_media():
    data = film(sidx=covering(COUNT), mfra=Mfra())
    index, requests = asked(data, exact=True)
    assert index.exact
    assert index.how.method == "boxes"
    assert len(requests) + 2 >= COUNT
    assert index.track(1).sample_count == 25 * COUNT
    assert index.track(1).sync_samples == fragdex.index(data, exact=True).track(1).sync_samples


def test_padding_behind_the_last_fragment_is_no_fragment():
    data = film(sidx=covering(COUNT), behind=[Other(make_box("free", data=bytes(100_000)))])
    index, _ = asked(data)
    assert index.how.method == "sidx"
    assert index.complete
    assert len(index.track(1).fragments) == COUNT


def test_the_budget_holds_for_the_walk_behind_a_short_sidx():
    data = film(sidx=covering(COUNT - 10))
    with pytest.raises(fragdex.FragdexError, match="budget"):
        asked(data, max_requests=4)


def test_a_server_that_ignores_ranges_is_left():
    with pytest.raises(fragdex.FragdexError):
        asked(film(sidx=covering(COUNT)), faults=Faults(ignore_range=True))


def test_a_hierarchy_is_followed_to_its_leaves():
    """A sidx of two sidx boxes, each in front of its ten fragments (8.16.3)."""
    leaf = [Sidx(1, tuple((at + n, at + n + 1) for n in range(10))) for at in (4, 15)]
    data = make_file(
        Brand(),
        Moov((Track(1, "video", 25, trex=(1, 0, 0)),)),
        Sidx(1, ((3, 14), (14, 25)), nested=frozenset({0, 1})),
        leaf[0],
        *fragments(10),
        leaf[1],
        *fragments(10, first=10),
    ).data
    index, requests = asked(data)
    assert index.how.method == "sidx"
    assert len(index.track(1).fragments) == COUNT
    assert len(requests) <= 3
    same_answers(index, data)


def test_a_sidx_that_cannot_be_read_is_passed_over():
    data = bytearray(film(sidx=covering(COUNT)))
    data[data.find(b"sidx") + 4] = 9  # a version that nobody defined
    index, _ = asked(bytes(data))
    assert index.exact
    assert index.track(1).sample_count == 25 * COUNT


def test_a_sidx_of_another_segment_is_not_believed():
    """Its first reference leads into the media data."""
    data = bytearray(film(sidx=covering(COUNT)))
    at = data.find(b"sidx") - 4
    data[at + 28 : at + 36] = (9).to_bytes(8, "big")  # first_offset of version 1
    index, _ = asked(bytes(data))
    assert index.exact
    assert "sidx-lie" in {finding.code for finding in index.findings}


def test_an_mfra_of_one_fragment_in_three():
    """Seeks lead to a fragment in front of the wanted one, and never behind it."""
    data = film(mfra=Mfra(every=3))
    index, _ = asked(data)
    exact = fragdex.index(data, exact=True).track(1)
    for time in (0.0, 4.2, 10.0, 17.9):
        hit, right = index.track(1).seek(time), exact.seek(time)
        assert hit.time <= right.time
        assert hit.range.start <= right.range.start


def test_a_file_with_an_mfra_and_no_init_segment():
    """Seconds mean nothing without a timescale, but the places are known."""
    data = make_file(*fragments(), Mfra()).data
    index, _ = asked(data)
    assert len(index.track(1).fragments) == COUNT
    with pytest.raises(fragdex.FragdexError):
        index.track(1).seek(1)


@pytest.mark.parametrize("cut", [0, 10, 70_000])
def test_a_server_that_never_tells_the_length(cut):
    whole = film()
    data = whole[: len(whole) - cut]
    index, requests = asked(data, faults=Faults(unknown_total=True))
    assert (index.file.size, index.complete) == (len(data), not cut)
    same_answers(index, data, (0.0, 7.3))
    assert sum(one.range == "bytes=-1" for one in requests) <= 1
