"""What the fuzzer found, each as the smallest input that shows it."""

import math
import tracemalloc

import numpy as np
import pytest

import fragdex
from fragdex.boxes import build, make_box
from fragdex.errors import DamagedIndex, NotISOBMFF
from fragdex.formats import fidx
from fragdex.fragments.table import SyncTable
from fragdex.seeking.model import FragmentIndex, Period, TrackIndex
from fragdex.testing import movie

MANY = 1 << 22


def changed(box, make):
    """A box and everything in it, rebuilt; `make` gives a box, None to keep it, () to drop it."""
    made = make(box)
    if made is not None:
        return made
    if not box.children:
        return box
    kept = (changed(child, make) for child in box.children)
    return box.replace(children=tuple(child for child in kept if child != ()))


def fed(data, size):
    indexer = fragdex.Indexer()
    for at in range(0, len(data), size):
        indexer.feed(data[at : at + size])
    return indexer.finish()


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"this is not a video at all", b"\0" * 40, b"\0\0\0\x01moov" + b"\xff" * 8],
    ids=["nothing", "one-byte", "text", "zeros", "endless-moov"],
)
def test_what_is_no_mp4_is_refused(data):
    with pytest.raises(NotISOBMFF):
        fragdex.index(data)


def test_many_times_without_end_are_sought_like_one():
    """Ticks beyond 2^52 were cut, so that infinity lay before a file that starts at 2^60."""
    data = b"".join(
        build(changed(box, lambda b: b.replace(baseMediaDecodeTime=2**60 + b["baseMediaDecodeTime"])
                      if b.type == "tfdt" and b["version"] == 1 else None))
        for box in fragdex.parse(movie(fragments=3, samples=5))
    )  # fmt: skip
    track = fragdex.index(data).track(1)
    times = [math.inf, -math.inf, 1e30, float(track.start), float(track.end)]
    hits = track.seek_many(times)
    assert hits.cts.tolist() == [track.seek(time).cts for time in times]
    assert hits.fragment.tolist() == [track.seek(time).fragment for time in times]


@pytest.mark.parametrize("size", [1, 50, 10_000])
def test_a_traf_without_tfhd_is_left_out_whole_and_in_pieces(size):
    """Where all trafs of a piece look alike, the missing box was not looked for."""
    boxes = list(fragdex.parse(movie(fragments=4, samples=3)))
    moofs = [place for place, box in enumerate(boxes) if box.type == "moof"]
    for place in moofs[1:3]:
        boxes[place] = changed(boxes[place], lambda box: () if box.type == "tfhd" else None)
    data = build(boxes)
    whole, pieces = fragdex.index(data, exact=True), fed(data, size)
    assert [track.id for track in whole.tracks] == [track.id for track in pieces.tracks] == [1]
    assert whole.track(1).fragments == pieces.track(1).fragments
    assert whole.findings == pieces.findings
    assert [finding.count for finding in whole.findings] == [2]


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_moof_in_a_moof_brings_no_samples(place):
    """What looked like a traf's boxes was taken for those of the last traf, or of none."""
    boxes = fragdex.parse(movie(fragments=1, samples=3))
    moof = next(box for box in boxes if box.type == "moof")
    traf = moof.find("traf")
    outer = {
        0: [build(moof.find("mfhd")), build(moof)],
        1: [build(moof.find("mfhd")), build(moof), build(traf)],
        2: [build(moof.find("mfhd")), build(traf), build(moof)],
    }[place]
    body = b"".join(outer)
    data = (len(body) + 8).to_bytes(4, "big") + b"moof" + body
    index = fragdex.index(data + (5000).to_bytes(4, "big") + b"mdat" + bytes(4992))
    counts = [track.sample_count for track in index.tracks]
    assert counts == ([] if place == 0 else [3])


@pytest.mark.parametrize("fragments", [2, 40])
@pytest.mark.parametrize("code", ["tfhd", "tfdt", "trun"])
def test_a_version_that_nobody_defined_leaves_the_fragment_out(code, fragments):
    """Read as version 1 by one path and refused by the other: more samples told than given."""
    data = bytearray(movie(fragments=fragments, samples=3))
    data[data.rfind(code.encode()) + 4] = 36
    index = fragdex.index(bytes(data), exact=True)
    track = index.track(1)
    assert track.sample_count == len(track.samples) == 3 * (fragments - 1)
    assert "damaged-fragment" in {finding.code for finding in index.findings}


@pytest.mark.parametrize(
    ("run", "rule"),
    [
        ({"step": 2**40, "count": 2**40}, "64 bits"),
        ({"step": 1, "count": 2, "sample": fragdex.NULL}, "which samples"),
        ({"step": 1, "count": 2, "sample_step": 0}, "which samples"),
    ],
)
def test_runs_that_contradict_themselves_are_refused(run, rule):
    index = fragdex.index(movie(fragments=2))
    period, track = index.periods[0], index.track(1)
    run = {"cts": 0, "dts": 0, "sample": 0, "sample_step": 1} | run
    sync = SyncTable.of(
        {name: np.array([value]) for name, value in (run | {"fragment": 0}).items()}
    )
    endless = TrackIndex(track.info, track.fragments, sync)
    hostile = Period(0, period.init, period.movie, (endless,))
    saved = fidx.write(FragmentIndex(index.source, index.how, [hostile]))
    with pytest.raises(DamagedIndex, match=rule):
        fidx.verify(saved)


@pytest.mark.parametrize("code", ["stts", "stsc", "stsz", "stco", "stss"])
def test_a_sample_table_of_an_unknown_version_is_passed_over(code):
    def younger(box):
        if box.type == code:
            data = bytearray(build(box))
            data[8] = 9
            return fragdex.parse_box(bytes(data), "stbl")
        return None

    data = build([changed(box, younger) for box in fragdex.parse(movie(fragmented=False))])
    index = fragdex.index(data)
    assert len(index.tracks) == 1
    if code != "stsz":
        assert "opaque-table" in {finding.code for finding in index.findings}


def test_samples_of_a_claimed_number():
    """A thousand bytes that claim four million samples of one byte each cost no memory."""

    def claim(box):
        match box.type:
            case "stts":
                return make_box("stts", entries=[(MANY, 1)])
            case "stsz":
                return make_box("stsz", sample_size=1, sample_count=MANY)
            case "stsc":
                return make_box("stsc", entries=[(1, MANY, 1)])
            case "stco":
                return box.replace(entries=box["entries"][:1])
        return None

    data = build([changed(box, claim) for box in fragdex.parse(movie(fragmented=False))])
    assert len(data) < 10_000
    tracemalloc.start()
    try:
        fragdex.index(data)
    except fragdex.FragdexError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 16 << 20


def test_durations_beyond_every_column():
    """An mdhd, mvhd and elst that claim 2^63 ticks say nothing; the index goes through its file."""

    def claim(box):
        match box.type:
            case "mdhd" | "mvhd":
                return box.replace(version=1, duration=1 << 63)
            case "elst":
                return make_box("elst", version=1, entries=[(1 << 63, 0, 1, 0)])
        return None

    made = movie(edit=1000)
    boxes = [changed(box, claim) for box in fragdex.parse(made)]
    assert any(box.find("trak/edts/elst") for box in boxes)
    found = fragdex.index(build(boxes))
    assert found.periods[0].movie.duration == 0
    assert found.track(1).info.media_duration == 0
    assert [edit.duration for edit in found.track(1).info.edits] == [0]
    assert fidx.read(found.export("fidx")).track(1).info == found.track(1).info
