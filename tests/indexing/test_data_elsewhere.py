"""Samples of a fragment lie in any mdat of the file; its extent reaches to them (8.8.4)."""

import re

import pytest

import fragdex
from fragdex.muxing.kinds import described
from fragdex.seeking import plan
from fragdex.testing import made_movie

MADE = made_movie(4)
PIECES = [MADE.data[start:stop] for start, stop in MADE.spans]
INIT, FRAGMENTS = b"".join(PIECES[:2]), PIECES[2:]
MOOFS = [part[: int.from_bytes(part[:4], "big")] for part in FRAGMENTS]
MDATS = [part[len(moof) :] for part, moof in zip(FRAGMENTS, MOOFS, strict=True)]
ORDERS = {
    "two moofs, one mdat": "M0 M1 D01 M2 M3 D23",
    "two moofs, two mdats": "M0 M1 D0 D1 M2 M3 D2 D3",
    "all moofs in front": "M0 M1 M2 M3 D0123",
    "all media in front": "D0123 M0 M1 M2 M3",
    "crossed": "M0 D1 M1 D0 D3 M2 M3 D2",
    "each behind the next moof": "M0 M1 D0 M2 D1 M3 D2 D3",
}


def arranged(order):
    """The movie with its moofs and mdats in this order; `D01` is one mdat of two fragments."""
    at, moofs, payloads = len(INIT), {}, {}
    for word in order.split():
        if word[0] == "M":
            moofs[int(word[1:])] = at
            at += len(MOOFS[int(word[1:])])
        else:
            at += 8
            for number in map(int, word[1:]):
                payloads[number] = at
                at += len(MDATS[number]) - 8
    out = INIT
    for word in order.split():
        if word[0] == "M":
            moof = bytearray(MOOFS[int(word[1:])])
            place = moof.index(b"trun") + 12
            offset = payloads[int(word[1:])] - moofs[int(word[1:])]
            moof[place : place + 4] = offset.to_bytes(4, "big", signed=True)
            out += moof
        else:
            payload = b"".join(MDATS[number][8:] for number in map(int, word[1:]))
            out += (len(payload) + 8).to_bytes(4, "big") + b"mdat" + payload
    return out


def media(data):
    """The bytes of each sample."""
    samples = fragdex.index(data, exact=True).track(1).samples
    places = zip(samples.offset.tolist(), samples.size.tolist(), strict=True)
    return [data[at : at + size] for at, size in places]


@pytest.fixture(params=ORDERS, scope="module")
def data(request):
    return arranged(ORDERS[request.param])


def test_extents_hold_the_samples_and_nothing_is_odd(data):
    index = fragdex.index(data, exact=True)
    assert not index.findings
    assert media(data) == media(MADE.data)
    rows = index.track(1).fragments
    assert (rows.offset <= rows.data_start).all()
    assert (rows.data_stop <= rows.offset + rows.size).all()
    assert (rows.offset <= rows.moof_offset).all()


@pytest.mark.parametrize("span", [(0, 0.1), (0.3, 0.5), (0.7, 0.8), (0, 9)])
@pytest.mark.parametrize("turns", [0, 8])
def test_ranges_play_alone(data, span, turns, monkeypatch):
    monkeypatch.setattr(plan, "MOST_TURNS", turns)
    index = fragdex.index(data, exact=True)
    ranges = index.span(*span)
    assert ranges.plays
    # What is not in the ranges is not needed: with it gone, each moof in them has its samples.
    kept = bytearray(b"\xff" * len(data))
    for part in (*ranges.init, *ranges.media):
        kept[part.start : part.stop] = data[part.start : part.stop]
    samples = index.track(1).samples
    rows = index.track(1).fragments
    for row in range(len(rows)):
        moof = int(rows.moof_offset[row])
        if any(part.start <= moof < part.stop for part in ranges.media):
            first = int(rows.sample_start[row])
            for n in range(first, first + int(rows.sample_count[row])):
                at, size = int(samples.offset[n]), int(samples.size[n])
                assert kept[at : at + size] == data[at : at + size]


def test_segments_of_a_playlist_do_not_cut_fragments(data):
    index = fragdex.index(data, exact=True)
    text = index.export("hls", segment_duration=0).decode()
    ranges = [(int(at), int(at) + int(n)) for n, at in re.findall(r"BYTERANGE:(\d+)@(\d+)", text)]
    rows = index.track(1).fragments
    for start, size in zip(rows.offset.tolist(), rows.size.tolist(), strict=True):
        assert any(low <= start and start + size <= high for low, high in ranges)
    seconds = [float(length) for length in re.findall(r"EXTINF:([\d.]+)", text)]
    assert sum(seconds) == pytest.approx(0.8)


@pytest.mark.parametrize("kind", ["clip", "fragmented", "tracks"])
@pytest.mark.parametrize("exact", [True, False])
def test_copies_have_every_sample(data, kind, exact):
    index = fragdex.index(data, exact=True)
    view = described(index, kind, source=data, exact=exact).read(source=data)
    assert media(view) == media(MADE.data)
    assert not fragdex.index(view, exact=True).findings
