"""What the fuzzer found, each as the smallest input that shows it."""

import math
import re
import tracemalloc

import numpy as np
import pytest

import fragdex
from fragdex.boxes import build, make_box
from fragdex.errors import DamagedIndex, LimitExceeded, NotISOBMFF
from fragdex.formats import fidx, sample_csv
from fragdex.fragments.table import FragmentFlags, SyncTable
from fragdex.indexing import periods
from fragdex.seeking.forms import FORMS
from fragdex.seeking.model import Index, Period, Track
from fragdex.testing import movie
from repeats import repeated

MANY = 1 << 22


def changed(box, make):
    """A box and everything in it, rebuilt; `make` gives a box, None to keep it, () to drop it."""
    other = make(box)
    if other is not None:
        return other
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
        for box in fragdex.boxes.parse(movie(fragments=3, samples=5))
    )  # fmt: skip
    track = fragdex.index(data).track(1)
    times = [math.inf, -math.inf, 1e30, float(track.start), float(track.stop)]
    hits = track.seek_many(times)
    assert hits.cts.tolist() == [track.seek(time).cts for time in times]
    assert hits.fragment.tolist() == [track.seek(time).fragment for time in times]


@pytest.mark.parametrize("size", [1, 50, 10_000])
def test_a_traf_without_tfhd_is_left_out_whole_and_in_pieces(size):
    """Where all trafs of a piece look alike, the missing box was not looked for."""
    boxes = list(fragdex.boxes.parse(movie(fragments=4, samples=3)))
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
    boxes = fragdex.boxes.parse(movie(fragments=1, samples=3))
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
        ({"step": 1, "count": 2, "sample": fragdex.tables.NULL}, "which samples"),
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
    endless = Track(track.info, track.fragments, sync)
    hostile = Period(0, period.init, period.movie, (endless,))
    saved = fidx.write(Index(index.file, index.how, [hostile]))
    with pytest.raises(DamagedIndex, match=rule):
        fidx.verify(saved)


@pytest.mark.parametrize("code", ["stts", "stsc", "stsz", "stco", "stss"])
def test_a_sample_table_of_an_unknown_version_is_passed_over(code):
    def younger(box):
        if box.type == code:
            data = bytearray(build(box))
            data[8] = 9
            return fragdex.boxes.parse_box(bytes(data), "stbl")
        return None

    data = build([changed(box, younger) for box in fragdex.boxes.parse(movie(fragmented=False))])
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

    data = build([changed(box, claim) for box in fragdex.boxes.parse(movie(fragmented=False))])
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

    film = movie(edit=1000)
    boxes = [changed(box, claim) for box in fragdex.boxes.parse(film)]
    assert any(box.find("trak/edts/elst") for box in boxes)
    index = fragdex.index(build(boxes))
    assert index.periods[0].movie.duration == 0
    assert index.track(1).info.media_duration == 0
    assert [edit.duration for edit in index.track(1).info.edits] == [0]
    assert fidx.read(index.export("fidx")).track(1).info == index.track(1).info


@pytest.mark.parametrize("time", [2**61 + 1, 2**62, 2**63 - 1, 2**63, 2**63 + 2**61])
def test_a_decode_time_whose_sums_leave_64_bits_is_noted_and_ignored(time):
    """The ends of such fragments wrapped, and lay before their starts."""
    data = b"".join(
        build(changed(box, lambda b: b.replace(baseMediaDecodeTime=time)
                      if b.type == "tfdt" else None))
        for box in fragdex.boxes.parse(movie(fragments=3, samples=5))
    )  # fmt: skip
    index = fragdex.index(data, exact=True)
    table = index.track(1).fragments
    assert (table.cts_end > table.cts_min).all()
    assert table.flags.tolist() == [FragmentFlags.NO_TFDT] * 3
    assert "far-tfdt" in [finding.code for finding in index.findings]
    assert fidx.read(index.export("fidx", samples=True)).track(1).samples == index.track(1).samples


@pytest.mark.parametrize("field", ["duration", "size"])
def test_samples_that_add_up_beyond_64_bits_are_refused(field):
    """Runs of 2^24 samples without a byte each: their sums wrapped."""

    def many(box):
        if box.type == "tfhd":
            words = {"default_sample_duration": 0, "default_sample_size": 0}
            # Durations from 2^31 on are corrections backwards.
            most = 2**31 if field == "duration" else 2**32
            words[f"default_sample_{field}"] = most - 1
            return make_box("tfhd", flags=0x20018, track_ID=box["track_ID"], **words)
        if box.type == "traf":
            run = make_box("trun", flags=0, sample_count=2**24)
            inner = [changed(child, many) for child in box.children if child.type != "trun"]
            return box.replace(children=(*inner, *[run] * 40))
        return None

    data = build([changed(box, many) for box in fragdex.boxes.parse(movie(fragments=1))])
    with pytest.raises(LimitExceeded, match=r"last too long|more bytes than any file"):
        fragdex.index(data)


@pytest.mark.parametrize("edits", [[(0, 2**62)], [(2**63 - 1, -1)] * 9 + [(0, 0)]])
def test_an_edit_list_that_leads_out_of_64_bits_says_nothing(edits):
    """Forms that write whole ticks failed on it."""
    rows = [(duration, time, 1, 0) for duration, time in edits]
    elst = make_box("elst", version=1, entries=rows)

    def edited(box):
        if box.type == "mvhd":
            return box.replace(timescale=1)
        if box.type == "trak":
            return box.replace(children=(*box.children, make_box("edts", children=[elst])))
        return None

    index = fragdex.index(
        build([changed(box, edited) for box in fragdex.boxes.parse(movie(fragments=2))]), exact=True
    )
    assert index.track(1).shift == 0
    for form in FORMS:
        assert index.export(form)
    assert fidx.read(index.export("fidx")).track(1).shift == 0


def test_doubts_about_sync_samples_read_a_moof_once(monkeypatch):
    """Every track parsed the whole moof, so that a moof of many tracks took minutes."""
    parsed, read = [], periods._runs
    monkeypatch.setattr(periods, "_runs", lambda moof: parsed.append(1) or read(moof))
    for tracks in (50, 200):
        parsed.clear()
        # sync samples that depend on others (8.8.3.1): without any, no moof is read for doubts
        data = re.sub(  # default_sample_flags are the last field
            rb"(trex.{20}).{4}",
            lambda trex: trex[1] + b"\x01\0\0\0",
            repeated("trafs", tracks),
            flags=re.DOTALL,
        )
        index = fragdex.index(data)
        assert len(index.tracks) == tracks
        assert "sync-depends" in {finding.code for finding in index.findings}
        assert len(parsed) == 1


@pytest.mark.parametrize("fragments", [2, 3, 6])
def test_decode_times_that_fall_back_make_an_index_that_can_be_saved(fragments):
    """Sync samples in order of time counted backwards in one run, which no saved index may hold."""
    times = iter(range(1000 * fragments, 0, -1000))
    data = build([
        changed(box, lambda b: b.replace(baseMediaDecodeTime=next(times))
                if b.type == "tfdt" else None)
        for box in fragdex.boxes.parse(movie(fragments=fragments, samples=1, edit=0))
    ])  # fmt: skip
    track = fragdex.index(data, exact=True).track(1)
    assert track.sync_samples.sample.tolist() == [*range(fragments)][::-1]
    index = fragdex.index(data, exact=True)
    fidx.verify(index)
    assert fidx.read(index.export("fidx")).track(1).sync_samples == track.sync_samples


def test_a_plan_does_not_write_out_millions_of_samples_that_take_no_bytes():
    """A file of a kilobyte that claims 2^24 samples in one run took a gigabyte."""

    def many(box):
        if box.type == "tfhd":
            words = {"default_sample_duration": 1, "default_sample_size": 0}
            return make_box("tfhd", flags=0x20018, track_ID=box["track_ID"], **words)
        return make_box("trun", flags=0, sample_count=2**24) if box.type == "trun" else None

    index = fragdex.index(
        build([changed(b, many) for b in fragdex.boxes.parse(movie(fragments=1))])
    )
    assert index.track(1).sample_count == 2**24
    tracemalloc.start()
    try:
        plan = index.plan(1.0)
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert plan.samples[1] is None
    assert peak < 4 << 20


def test_samples_in_front_of_the_moov_may_be_all_there_is():
    """The last moof of a recording that broke off had no mdat behind the moov to look at."""
    boxes = {box.type: box for box in fragdex.boxes.parse(movie(fragments=1, samples=3))}
    front = [build(boxes[code]) for code in ("ftyp", "mdat", "moov")]
    samples = len(front[0]) + 8 - sum(map(len, front))
    moof = changed(
        boxes["moof"], lambda box: box.replace(data_offset=samples) if box.type == "trun" else None
    )
    data = b"".join([*front, build(moof)])
    track = fragdex.index(data, exact=True).track(1)
    assert track.fragments.data_start.tolist() == [len(front[0]) + 8]
    assert len(track.samples) == 3


def _claiming(samples, size, media, fragments=1):
    """Fragments of one run each, told by defaults alone, all of the same media data."""
    parts = []
    for box in fragdex.boxes.parse(movie(fragments=fragments, samples=1)):
        if box.type == "mdat":
            parts.append(make_box("mdat", data=bytes(media)))
            continue
        parts.append(changed(box, lambda b: _claim(b, samples, size)))
    return build(parts)


def _claim(box, samples, size):
    if box.type == "tfhd":
        words = {"default_sample_duration": 1, "default_sample_size": size}
        return make_box("tfhd", flags=0x20018, track_ID=box["track_ID"], **words)
    if box.type == "trun":
        return make_box("trun", flags=1, sample_count=samples, data_offset=84)
    return () if box.type == "tfdt" else None


@pytest.mark.parametrize(
    ("samples", "size", "media", "fragments"),
    [(2**24, 0, 100, 1), (2**24, 1, 100, 1), (2**19, 0, 2**16, 1), (2**16, 0, 0, 40)],
    ids=["nothing", "outside", "more-than-media", "many"],
)
def test_samples_are_not_written_out_that_no_bytes_stand_for(samples, size, media, fragments):
    """A file of a kilobyte that claims 2^24 samples in one run took 700 MB for a line of CSV."""
    index = fragdex.index(_claiming(samples, size, media, fragments))
    assert index.track(1).sample_count == samples * fragments
    for ask in (
        lambda: index.track(1).samples,
        lambda: index.export("csv"),
        lambda: index.export("torchcodec"),
        lambda: index.export("arrow", of="samples"),
        lambda: index.export("fidx", samples=True),
    ):
        tracemalloc.start()
        try:
            with pytest.raises(LimitExceeded) as caught:
                ask()
        finally:
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert peak < 8 << 20
        assert caught.value.path == "moof/traf/trun"
        assert caught.value.offset == index.track(1).fragments.moof_offset[0]
    assert index.track(1).rates.frame_rate


def test_samples_of_one_byte_each_are_written_out():
    media = 2**19
    index = fragdex.index(_claiming(media, 1, media))
    assert len(index.track(1).samples) == media
    assert index.export("csv").count(b"\n") == media + 1


def test_lines_of_samples_are_written_a_few_fragments_at_a_time(monkeypatch):
    data = movie(fragments=9, samples=7)
    whole = fragdex.index(data, exact=True).export("csv")
    asked = []
    samples_of = fragdex.Track.samples_of

    def noted(track, start, stop):
        asked.append((start, stop))
        return samples_of(track, start, stop)

    monkeypatch.setattr(sample_csv, "AT_ONCE", 20)
    monkeypatch.setattr(fragdex.Track, "samples_of", noted)
    assert fragdex.index(data, exact=True).export("csv") == whole
    assert len(asked) > 3
    assert max(stop - start for start, stop in asked) <= 3


def test_lines_of_many_tracks_that_claim_the_same_bytes_are_not_written():
    """Each track of a file of half a megabyte claimed half a million samples of one byte."""
    index = fragdex.index(repeated("samples-of-one-number", 500))
    assert sum(track.sample_count for track in index.tracks) > 10 * index.file.size
    with pytest.raises(LimitExceeded, match="more samples than the file has bytes") as caught:
        index.export("csv")
    assert caught.value.path == "moov/trak/mdia/minf/stbl"
