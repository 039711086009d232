"""Damage, truncation, edit lists, several sample entries, other processes, remote faults."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import fragdex
from decoding.filming import MATRICES, number_in, numbered, shown_by, with_several_sets
from fragdex.boxes import build, make_box, parse
from fragdex.decoding.pictures import PictureReader
from fragdex.errors import FragdexError, SourceChanged, TrackNotFound, UndecodableMedia
from fragdex.frames import decode_runs
from fragdex.muxing.clip import clip
from fragdex.testing import Faults, RangeServer, edit
from frames.linear import linear, planes, same

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def plain():
    """90 pictures that say their number, a key frame every 30."""
    return numbered(90, 30, keys=30, bframes=2, fragmented=False)


def numbers_in(batch):
    return [number_in(np.asarray(frame)[..., 0]) for frame in batch]


def test_frames_say_their_own_number(plain):
    with fragdex.Frames(plain, format="gray") as frames:
        assert numbers_in(frames[5:80:7]) == list(range(5, 80, 7))
        assert numbers_in(frames[[-1, 3, 3, 0]]) == [89, 3, 3, 0]
        assert numbers_in(frames.at([2.99, Fraction(1, 30), -1, 99])) == [89, 1, 0, 89]
        assert numbers_in(frames.between(1, 1.2)) == [30, 31, 32, 33, 34, 35]
        assert numbers_in(frames.between(1, Fraction(37, 30))) == [30, 31, 32, 33, 34, 35, 36]
        assert numbers_in(frames.between(0, 1, fps=4)) == [0, 7, 15, 22]
        assert numbers_in(frames.between(5, 9)) == [] == numbers_in(frames[[]])
        assert [number_in(frame.data[..., 0]) for frame in frames] == list(range(90))
        assert frames.key_frames.tolist() == [0, 30, 60]
        assert [frames.closest_key_frame(at) for at in (0.4, 1.4, 1.5, 1.6, 9)] == [
            0,
            30,
            30,
            60,
            60,
        ]
        assert frames.at(1).number == 30
        assert frames.at("0:02").number == 60
        assert frames[7].time == Fraction(7, 30)
        assert frames[7].duration == Fraction(1, 30)
        for wrong in (90, -91, [3, 90]):
            with pytest.raises(IndexError, match="there is no frame"):
                frames[wrong]


def test_decode_order_is_that_of_the_samples(plain):
    with fragdex.Frames(plain, format="gray", order="decode") as frames:
        cts = frames.track.samples.cts
        expected = np.argsort(np.argsort(cts)).tolist()
        assert numbers_in(frames[:]) == expected
        assert (frames.ticks - frames.ticks.min() == cts - cts.min()).all()
        assert frames.at(0.5).number == expected.index(15)


def test_arrays_go_to_other_libraries_without_a_copy(plain):
    with fragdex.Frames(plain, size=(64, 32)) as frames:
        batch = frames[:4]
        assert batch.data.shape == (4, 32, 64, 3)
        assert batch.data.dtype == np.uint8
        taken = np.from_dlpack(batch)
        assert np.shares_memory(taken, batch.data)
        assert np.asarray(batch) is batch.data
    for name, kind, channels in (("rgb16", np.uint16, 3), ("gray16", np.uint16, 1)):
        with fragdex.Frames(plain, format=name) as frames:
            assert frames[:1].data.dtype == kind
            assert frames[:1].data.shape[-1] == channels


def test_a_plan_says_what_is_read():
    source = fragdex.open_source(FIXTURES / "open-gop.mp4")
    frames = fragdex.Frames(source)
    plan = frames.plan([40, 41, 2])
    requests, read = source.requests, source.bytes_read
    frames[[40, 41, 2]]
    assert source.requests - requests == len(plan.reads)
    assert source.bytes_read - read == plan.bytes < source.size
    assert (plan.frames, plan.runs) == (3, 2)
    assert 3 < plan.decoded < 20


@pytest.mark.parametrize("name", MATRICES)
def test_frames_are_shown_as_the_file_says(name):
    matrix, shown = MATRICES[name]
    film = shown_by(numbered(4, 30, keys=4), matrix)
    upright = fragdex.Frames(film).at(0.1).data
    coded = fragdex.Frames(film, rotate=False).at(0.1).data
    assert np.array_equal(upright, shown(coded))
    sized = fragdex.Frames(film, size=upright.shape[1::-1]).at(0.1).data
    assert np.array_equal(sized, upright)


def test_damage_costs_its_group_and_no_other(plain):
    film = bytearray(plain)
    samples = fragdex.index(bytes(film), exact=True).track(1).samples
    at, size = int(samples.offset[31]), int(samples.size[31])
    assert samples.sync[30:32].tolist() == [True, False]
    film[at : at + size] = bytes(size)
    with fragdex.Frames(bytes(film), format="gray", damaged="blank", cache=0) as frames:
        batch = frames[:]
        assert set(batch.missing) == set(range(31, 60))
        good = [n for n in range(90) if n not in batch.missing]
        assert [number_in(batch.data[n, ..., 0]) for n in good] == good
        assert not batch.data[sorted(batch.missing)].any()
    with fragdex.Frames(bytes(film), format="gray") as frames:
        with pytest.raises(UndecodableMedia, match=r"frames 40 of track 1.*damaged") as raised:
            frames[[3, 40]]
        assert raised.value.start == pytest.approx(40 / 30)
        assert numbers_in(frames[60:]) == list(range(60, 90))


def test_what_is_cut_off_is_no_frame():
    data = (FIXTURES / "faststart.mp4").read_bytes()
    samples = fragdex.index(data, exact=True).track(1).samples
    cut = data[: int(samples.offset[30]) + 3]
    with fragdex.Frames(cut) as frames, fragdex.Frames(data) as whole:
        assert len(frames) == 30
        same_times = np.flatnonzero(np.isin(whole.ticks, frames.ticks))
        assert np.array_equal(frames[:].data, whole[same_times].data)


@pytest.mark.parametrize("name", ["start-7s.mp4", "video-late.mp4", "frag-negative-cts.mp4"])
def test_times_are_those_of_the_index(name):
    with fragdex.Frames(FIXTURES / name) as frames:
        track = frames.track
        expected = sorted(track.presentation(cts).fraction for cts in track.samples.cts.tolist())
        assert [Fraction(t, frames.timescale) for t in frames.ticks.tolist()] == expected
        assert frames[:3].exact_times == expected[:3]
        assert frames.durations.sum() == pytest.approx(float(track.stop.fraction - expected[0]))


def test_what_an_edit_list_hides_is_no_frame():
    name = FIXTURES / "made" / "elst-several.mp4"
    index = fragdex.index(name, exact=True)
    track = index.track(1)
    from fragdex.seeking.numbering import Numbering

    every = Numbering(track, track.samples, hidden=True)
    shown = Numbering(track, track.samples)
    hidden = set(every.sample.tolist()) - set(shown.sample.tolist())
    spans = [
        (s.media_time, s.media_time + (s.stop - s.start) * track.timescale) for s in track.segments
    ]
    for sample in range(len(track.samples)):
        cts, until = (int(track.samples.cts[sample]), int(track.samples.duration[sample]))
        inside = any(cts < stop and cts + until > start for start, stop in spans)
        assert inside == (sample not in hidden)
    assert 0 < len(shown) < len(every)


def test_each_period_has_its_frames():
    index = fragdex.index(FIXTURES / "two-inits.mp4", exact=True)
    for period in index.periods:
        track = next(t for t in period.tracks if t.kind == "video")
        with fragdex.Frames(FIXTURES / "two-inits.mp4", index, track) as frames:
            assert len(frames) == 50
            assert frames[::7].data.any()
            again = pickle.loads(pickle.dumps(frames))  # noqa: S301  # our own
            assert len(again[::25]) == 2


@pytest.mark.parametrize("samples", [True, False])
def test_a_saved_index_gives_the_same_frames(tmp_path, samples):
    film = FIXTURES / "open-gop.mp4"
    fragdex.index(film, exact=True).save(tmp_path / "film.fidx", samples=samples)
    with fragdex.Frames(film, tmp_path / "film.fidx") as frames, fragdex.Frames(film) as others:
        assert np.array_equal(frames[::3].data, others[::3].data)
    with pytest.raises(SourceChanged, match="is not the file that was indexed"):
        fragdex.Frames(FIXTURES / "faststart.mp4", tmp_path / "film.fidx")


def _elsewhere(frames, numbers, answers):
    answers.put(frames[numbers].data)


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_frames_go_to_other_processes(method):
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"{sys.platform} has no {method}")
    context = multiprocessing.get_context(method)
    with fragdex.Frames(FIXTURES / "open-gop.mp4", threads=2) as frames:
        expected = frames[[30, 4]].data
        answers = context.Queue()
        child = context.Process(target=_elsewhere, args=(frames, [30, 4], answers))
        child.start()
        assert np.array_equal(answers.get(timeout=120), expected)
        child.join(60)
        assert child.exitcode == 0


FORKED = """
import gc, os, sys, fragdex

frames = fragdex.Frames(sys.argv[1], threads=2, cache=int(sys.argv[2]))
for start in (0, 11):
    frames[start : start + 11]  # long enough for a decoder with threads
child = os.fork()
if not child:
    if sys.argv[3] == "use":
        print(frames[12:23].data.sum())
    del frames
    gc.collect()
    sys.exit()
print(os.waitpid(child, 0)[1], frames[12:23].data.sum())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("task", ["use", "leave"])
@pytest.mark.parametrize("cache", [0, 1 << 26])
def test_a_forked_process_ends_though_decoders_with_threads_waited(task, cache):
    command = [sys.executable, "-c", FORKED, str(FIXTURES / "open-gop.mp4"), str(cache), task]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    lines = done.stdout.split()
    assert lines[-2] == "0"
    assert lines[:-2] == ([lines[-1]] if task == "use" else [])


def test_frames_of_an_open_source_stay_here(plain):
    frames = fragdex.Frames(fragdex.open_source(plain))
    with pytest.raises(TypeError, match="give its path or URL"):
        pickle.dumps(frames)


def test_no_pictures_and_options_that_are_none(plain):
    with pytest.raises(TrackNotFound):
        fragdex.Frames(FIXTURES / "aac.m4a")
    with pytest.raises(UndecodableMedia, match="encrypted"):
        fragdex.Frames(FIXTURES / "encrypted.mp4")
    for wrong in (
        {"format": "rgba"}, {"order": "file"}, {"damaged": "skip"}, {"threads": 0}, {"cache": -1},
        {"size": (0, 4)},
    ):  # fmt: skip
        with pytest.raises(ValueError):
            fragdex.Frames(plain, **wrong)
    with fragdex.Frames(plain) as frames:
        for start, stop, fps in ((2, 1, None), (0, 1, 0), (0, float("inf"), 5)):
            with pytest.raises(ValueError):
                frames.between(start, stop, fps=fps)
        with pytest.raises(TypeError, match="whole numbers"):
            frames[[1.5]]


def test_a_window_of_a_remote_file_is_two_requests(plain):
    with RangeServer(plain) as server, fragdex.Frames(server.url, format="gray") as frames:
        source = frames.source
        before = source.requests
        assert numbers_in(frames[40:56]) == list(range(40, 56))
        assert source.requests - before <= 2
        before = source.requests
        assert numbers_in(frames[44:50]) == list(range(44, 50))
        assert source.requests == before


@pytest.mark.parametrize("threads", [1, 2])
def test_parameter_sets_of_later_samples_are_not_used_for_earlier_ones(threads):
    film = with_several_sets()
    for cache in (0, 1 << 24):
        with fragdex.Frames(film, format="gray", threads=threads, cache=cache) as frames:
            for number in (3, 13, 5, 25, 16, 22, 0, 19, 29, 9):
                assert numbers_in(frames[[number]]) == [number]
            for window in (slice(15, 25), slice(5, 15), slice(0, 30), slice(0, 10)):
                assert numbers_in(frames[window]) == list(range(30))[window]


@pytest.mark.parametrize("start", ["progressive", "large moov", "moov behind", "fragmented"])
def test_opening_a_remote_file_reads_its_moov_once(plain, start):
    film, requests = plain, 1
    if start == "fragmented":
        film = numbered(90, 30, keys=30, fragmented=True)
    elif start == "large moov":
        film, requests = numbered(9000, 30, size=(64, 16), fragmented=False), 2
    if start in ("progressive", "large moov"):
        view = fragdex.view(fragdex.index(film), "faststart", source=film)
        film = view.read(source=film)
        moov = next(box for box in parse(film) if box.type == "moov")
        assert (moov.size > 1 << 16) == (start == "large moov")
    with RangeServer(film) as server, fragdex.Frames(server.url, format="gray") as frames:
        if start in ("progressive", "large moov"):
            assert frames.source.requests == requests
            read = [request.range for request in server.requests]
            assert len(read) == len(set(read)) == requests
        whole = fragdex.Frames(film, format="gray")[-3:].data
        assert np.array_equal(frames[-3:].data, whole)


@pytest.mark.parametrize(("gap", "reads"), [(0, 30), (1 << 20, 1)])
def test_what_was_read_is_decoded_while_the_rest_is_read(monkeypatch, gap, reads):
    monkeypatch.setattr(decode_runs, "REMOTE_GAP", gap)
    film = numbered(120, 30, keys=4, bframes=0, fragmented=False)
    asked = list(range(1, 120, 4))
    decoded = []
    with (
        RangeServer(film, faults=Faults(single_ranges=True)) as server,
        fragdex.Frames(server.url, format="gray", threads=2, connections=1) as frames,
    ):
        read_many = frames.source.read_many

        def noted(ranges):
            decoded.append(frames.decoded)
            return read_many(ranges)

        monkeypatch.setattr(frames.source, "read_many", noted)
        assert len(frames.plan(asked).reads) == reads
        before = frames.source.requests
        assert numbers_in(frames[asked]) == asked
        assert frames.source.requests - before == reads
    assert decoded[0] == 0
    assert decoded == [0] if reads == 1 else decoded[-1] >= 30


FAULTS = {
    "short": {"short_answers": 700},
    "partial": {"partial_answers": 700},
    "misplaced": {"misplaced": 3},
    "etag": {"changing_etag": True},
    "length": {"changing_length": True},
    "no ranges": {"ignore_range": True},
    "busy": {"status": 503},
    "busy once": {"status": 503, "times": 1},
    "dropped": {"drop_connections": True},
    "dropped once": {"drop_connections": True, "times": 1},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_of_faulty_servers_come_right_frames_or_an_error(plain, fault):
    with (
        RangeServer(plain) as server,
        fragdex.Frames(server.url, format="gray", retries=1, timeout=5) as frames,
    ):
        server.faults = Faults(after=len(server.requests), **FAULTS[fault])
        for asked in ([80, 10], [45], list(range(20, 34))):
            try:
                assert numbers_in(frames[asked]) == asked
            except FragdexError:
                assert fault not in ("busy once", "dropped once")


def joined(one, other):
    """Two fragmented films as one track with a sample entry for each (ISO/IEC 14496-12, 8.5.2)."""
    first, second = parse(one), parse(other)
    length = fragdex.index(one, exact=True).track(1).fragments
    ticks = int(length.cts_end.max())
    path = ("trak", "mdia", "minf", "stbl", "stsd")
    moov = next(box for box in second if box.type == "moov")
    theirs = moov.find("/".join(path)).children

    def both(box, names):
        if not names:
            return box.replace(children=[*box.children, *theirs], entry_count=2)
        children = [both(b, names[1:]) if b.type == names[0] else b for b in box.children]
        return box.replace(children=children)

    def moved(moof):
        (traf,) = (box for box in moof.children if box.type == "traf")
        size = len(build(moof))
        children = []
        for box in traf.children:
            if box.type == "tfhd":
                box = box.replace(flags=box["flags"] | 2, sample_description_index=2)
            elif box.type == "tfdt":
                time = box["baseMediaDecodeTime"] + ticks
                box = box.replace(baseMediaDecodeTime=time)
            children.append(box)
        grown = moof.replace(
            children=[traf.replace(children=children) if b is traf else b for b in moof.children]
        )
        more = len(build(grown)) - size
        children = [
            b.replace(data_offset=b["data_offset"] + more) if b.type == "trun" else b
            for b in children
        ]
        return moof.replace(
            children=[traf.replace(children=children) if b is traf else b for b in moof.children]
        )

    pieces = [both(box, path) if box.type == "moov" else box for box in first if box.type != "mfra"]
    pieces += [
        moved(box) if box.type == "moof" else box for box in second if box.type in ("moof", "mdat")
    ]
    data = b""
    for box in pieces:
        raw = {id(b): one for b in first} | {id(b): other for b in second}
        if box.type == "mdat":
            data += raw[id(box)][box.offset : box.stop]
        else:
            data += build(box)
    return data


def test_two_sample_entries_and_a_change_of_size():
    small = numbered(20, 25, keys=10, size=(128, 32))
    large = numbered(20, 25, keys=10, size=(256, 64), bframes=0)
    film = joined(small, large)
    parts = [linear(small), linear(large)]
    with fragdex.Frames(film, format="yuv", hidden=True) as frames:
        assert len(frames) == 40
        for number in (39, 0, 25, 19, 20, 3):
            assert same(frames[number].data, parts[number // 20][number % 20]), number
        with pytest.raises(UndecodableMedia, match=r"several sizes.*size="):
            frames[[3, 30]]
    with fragdex.Frames(film, format="gray", size=(256, 48)) as frames:
        assert numbers_in(frames[::3]) == [n % 20 for n in range(0, 40, 3)]


def each_in_its_chunk(stco, samples):
    entries = np.zeros(len(samples), stco["entries"].dtype)
    entries["chunk_offset"] = samples.offset
    return stco.replace(entries=entries, entry_count=len(entries))


def with_entries(film, switch, second=lambda entry: entry):
    """The film with a second sample entry, from sample `switch` on; a chunk for each sample."""
    samples = fragdex.index(film, exact=True).track(1).samples

    tables = "moov/trak/mdia/minf/stbl"
    entries = np.zeros(2, fragdex.boxes.find(parse(film), f"{tables}/stsc")["entries"].dtype)
    entries["first_chunk"] = 1, switch + 1
    entries["samples_per_chunk"] = 1
    entries["sample_description_index"] = 1, 2

    def doubled(stsd):
        (entry,) = stsd.children
        return stsd.replace(children=[entry, second(entry)], entry_count=2)

    assert parse(film)[-1].type == "moov"
    film = edit(edit(film, f"{tables}/stsd", doubled), f"{tables}/stsc", entries=entries)
    return edit(film, f"{tables}/stco", lambda stco: each_in_its_chunk(stco, samples))


def with_square_pixels(entry):
    kept = [box for box in entry.children if box.type not in ("pasp", "btrt")]
    return entry.replace(children=[*kept, make_box("pasp", hSpacing=1, vSpacing=1)])


@pytest.mark.parametrize("second", [lambda entry: entry, with_square_pixels])
@pytest.mark.parametrize("switch", [7, 10])
def test_entries_that_decode_alike_are_changed_anywhere(switch, second):
    plain = numbered(24, 25, keys=10, fragmented=False)
    film = with_entries(plain, switch, second)
    expected = linear(plain)
    with fragdex.Frames(film, format="yuv", hidden=True, cache=0) as frames:
        assert len(frames) == 24
        for number in (23, 9, 6, 8, 7, 5, 12):
            assert same(frames[number].data, expected[number]), number
    with PictureReader(fragdex.index(film), film) as pictures:
        for number in (8, 9, 23, 3, 11):
            shown = planes(pictures.at(number / 25 + 0.001).frame)
            assert same(shown, expected[number]), number


def test_more_sample_entries_than_ffmpeg_reads():
    """A decoder is given the one that it needs."""

    def changed(box):
        if box.type == "stsd":
            return box.replace(children=[box.children[0]] * 1100, entry_count=1100)
        return box.replace(children=[changed(child) for child in box.children])

    plain = numbered(12, 25, keys=10, fragmented=False)
    moov = parse(plain)[-1]
    film = plain[: moov.offset] + build(changed(moov))
    expected = linear(plain)
    with fragdex.Frames(film, format="yuv", hidden=True) as frames:
        assert same(frames[11].data, expected[11])
    assert fragdex.decoding.thumbnail(fragdex.index(film), film, 0).width == 256


def test_pictures_of_every_sample_entry():
    small = numbered(20, 25, keys=10, size=(128, 32))
    large = numbered(20, 25, keys=10, size=(256, 64), bframes=0)
    film = joined(small, large)
    parts = [linear(small), linear(large)]
    index = fragdex.index(film)
    for order in ((3, 25, 12, 39, 20, 19), range(40)):
        with PictureReader(index, film) as pictures:
            for number in order:
                shown = planes(pictures.at(number / 25 + 0.001).frame)
                assert same(shown, parts[number // 20][number % 20]), number
    assert fragdex.decoding.thumbnail(index, film, 1.2).width == 256
    assert fragdex.decoding.thumbnail(index, film, 0.1).width == 128


def with_empty(film, which):
    """The film with samples of no bytes: pictures that an encoder left out."""

    def changed(box):
        if box.type == "stsz":
            sizes = box["entries"].copy()
            sizes["entry_size"][which] = 0
            return box.replace(entries=sizes)
        if box.type == "stco":
            return each_in_its_chunk(box, samples)
        if box.type == "stsc":
            entries = box["entries"][:1].copy()
            entries["first_chunk"] = entries["samples_per_chunk"] = 1
            return box.replace(entries=entries)
        if box.type in ("moov", "trak", "mdia", "minf", "stbl"):
            return box.replace(children=[changed(child) for child in box.children])
        return box

    samples = fragdex.index(film, exact=True).track(1).samples
    boxes = parse(film)
    return film[: boxes[-1].offset] + build(changed(boxes[-1]))


def clip_of(index, film):
    """All of it in fragments."""
    parts = clip(index, lambda part: film[part.start : part.stop], 0, 9, fragmented=True)
    return b"".join(p if isinstance(p, bytes) else film[p.start : p.stop] for p in parts.pieces)


def test_before_a_sample_of_no_bytes_the_picture_stays():
    film = with_empty(numbered(24, 25, keys=10, bframes=0, fragmented=False), [6, 7, 12, 23])
    expected = linear(film)
    index = fragdex.index(film, exact=True)
    with fragdex.Frames(film, index, format="yuv", hidden=True) as frames:
        assert len(frames) == len(expected) == 20
        for frame in frames[::-1]:
            assert same(frame.data, expected[frame.number]), frame.number
        assert frames.at(7.5 / 25).number == 5
    pieces = [
        fragdex.view(index, "fragmented", source=film).read(source=film),
        clip_of(index, film),
        fragdex.view(index, "faststart", source=film).read(source=film),
    ]
    for piece in pieces:
        assert all(map(same, linear(piece), expected))
        times = fragdex.Frames(piece).times
        assert np.allclose(times, frames.times, atol=1e-4)
