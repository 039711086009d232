"""Windows for any decoder: what is decoded of them are the frames of a linear decode."""

from __future__ import annotations

import io
import itertools
import threading
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import find_all, parse
from fragdex.errors import (
    BuildError,
    InexactIndex,
    NoSyncSample,
    SourceChanged,
    TrackNotFound,
    UndecodableMedia,
)
from fragdex.muxing.elementary_stream import annexb, obu
from fragdex.muxing.window import read_ahead
from fragdex.sources import open_source
from fragdex.testing import RangeServer
from frames.films import FILMS, made
from frames.linear import linear, planes, same
from frames.test_frames import PICTURES

FIXTURES = Path(__file__).parents[2] / "fixtures"
DEMUXERS = {"avc": "h264", "hvc": "hevc", "hev": "hevc"}


def decoded(data, format=None):
    with av.open(io.BytesIO(data), format=format) as container:
        return [[plane.copy() for plane in planes(one)] for one in container.decode(video=0)]


def forms_of(window, source):
    """The forms that a window has, each with FFmpeg's name of its demuxer."""
    yield window.mp4(source), None
    code = window.track.info.format
    if code[:3] in DEMUXERS:
        yield window.annexb(source), DEMUXERS[code[:3]]
    if code == "av01":
        yield window.obu(source), "obu"


def check(window, source, expected):
    for data, format in forms_of(window, source):
        pictures = decoded(data, format)
        assert len(pictures) == len(window.samples)
        for place, frame in zip(window.wanted, range(window.first, window.stop), strict=True):
            assert same(pictures[place], expected[frame]), (format, frame)


@pytest.mark.parametrize("name", PICTURES)
def test_windows_of_fixtures_are_frames_of_a_linear_decode(name):
    try:
        index = fragdex.index(FIXTURES / name, exact=True)
        frames, every = (fragdex.Frames(FIXTURES / name, index, hidden=h) for h in (False, True))
    except fragdex.FragdexError as error:
        pytest.skip(f"no pictures: {error}")
    if not len(frames):
        pytest.skip("no frames")
    track = frames.track
    shown = np.searchsorted(every.ticks, frames.ticks)
    pictures = linear(FIXTURES / name, track.id)
    expected = [pictures[number] for number in shown]
    chance = np.random.default_rng(4)
    for length in (1, 3, 16, len(frames)):
        first = int(chance.integers(0, max(len(frames) - length, 0) + 1))
        stop = min(first + length, len(frames))
        window = fragdex.index(FIXTURES / name, exact=True).window(
            track.id, first, stop, verified=True
        )
        check(window, FIXTURES / name, expected)


@settings(max_examples=8, deadline=None)
@given(st.data())
@pytest.mark.parametrize("name", FILMS)
def test_any_window_of_any_coding(name, data):
    film, expected = made(name)
    index = fragdex.index(film, exact=True)
    first = data.draw(st.integers(0, 59))
    stop = data.draw(st.integers(first + 1, min(first + 20, 60)))
    # intra refresh marks pictures sync that are right only after some time
    verified = "refresh" in name
    window = index.window("video", first, stop, verified=verified, source=film)
    check(window, film, expected)


@pytest.mark.parametrize("name", ["open-gop.mp4", "frag-hvc1.mp4", "frag-start-7s.mp4"])
def test_ranges_are_known_before_anything_is_read_and_are_all_that_is_read(name):
    index = fragdex.index(FIXTURES / name, exact=True)
    with open_source(FIXTURES / name) as source:
        window = index.window("video", 20, 24)
        assert source.requests == 0
        packets = window.packets(source)
        init = source.bytes_read
    assert sum(len(packet.data) for packet in packets) == window.size <= init
    data = (FIXTURES / name).read_bytes()
    held = b"".join(data[part.start : part.stop] for part in window.ranges)
    assert sorted(held) == sorted(b"".join(packet.data for packet in packets))
    assert packets[0].key
    times = sorted(packet.pts for packet in packets)
    assert [times[place] for place in window.wanted] == window.ticks.tolist()
    assert all(a.dts < b.dts for a, b in itertools.pairwise(packets))


@settings(max_examples=10)
@given(
    st.lists(st.integers(0, 46), max_size=9), st.integers(1, 4),
    st.sampled_from(["mp4", "annexb", "packets"]),
)  # fmt: skip
def test_windows_that_are_read_ahead_are_those_one_by_one(starts, together, form):
    data = (FIXTURES / "open-gop.mp4").read_bytes()
    index = fragdex.index(data)
    windows = [index.window("video", start, start + 4) for start in starts]
    with RangeServer(data) as server, open_source(server.url) as source:
        index.window("video", 0, 1).mp4(source)  # reads the initialization segment
        asked = len(server.requests)
        ahead = read_ahead(iter(windows), source, form=form, together=together)
        pairs = list(ahead)
        assert len(server.requests) - asked <= len(windows)
        assert [window for window, _ in pairs] == windows
        assert [data for _, data in pairs] == [getattr(window, form)(source) for window in windows]
        stopped = read_ahead(iter(windows), source, together=together)
        next(stopped, None)
        stopped.close()
    assert not any("fragdex-windows" in one.name for one in threading.enumerate())


def test_what_cannot_be_read_ahead_is_said():
    data = (FIXTURES / "open-gop.mp4").read_bytes()
    windows = [fragdex.index(data).window("video", 3, 5)]
    with pytest.raises(SourceChanged):
        list(read_ahead(windows, data + b"more"))
    with pytest.raises(BuildError, match="OBUs"):
        list(read_ahead(windows, data, form="obu"))
    with pytest.raises(ValueError, match="together"):
        list(read_ahead(windows, data, together=0))


@pytest.mark.parametrize("name", ["open-gop.mp4", "frag-start-7s.mp4", "frag-negative-cts.mp4"])
@pytest.mark.parametrize("keep_times", [False, True])
def test_times_are_those_of_the_film_or_begin_at_0(name, keep_times):
    window = fragdex.index(FIXTURES / name, exact=True).window("video", 20, 24)
    with av.open(io.BytesIO(window.mp4(keep_times=keep_times))) as container:
        times = [frame.pts * frame.time_base for frame in container.decode(video=0)]
    shown = [times[place] for place in window.wanted]
    expected = [Fraction(tick, window.timescale) for tick in window.ticks.tolist()]
    if keep_times:
        assert shown == expected
    else:
        assert times[0] == 0
        assert [at - shown[0] for at in shown] == [at - expected[0] for at in expected]


def test_the_small_file_shows_all_that_it_has(tmp_path):
    index = fragdex.index(FIXTURES / "open-gop.mp4")
    window = index.window("video", 20, 24)
    small = fragdex.index(window.mp4(), exact=True)
    track = small.video
    assert track.sample_count == len(window.samples) == len(fragdex.Frames(window.mp4(), small))
    assert np.flatnonzero(track.samples.sync).tolist() == window.starts.tolist() == [0]
    assert {box.type for box in find_all(parse(window.mp4()), "moov")[0].children} == {
        "mvhd", "trak",
    }  # fmt: skip


def test_times_choose_what_is_shown():
    index = fragdex.index(FIXTURES / "open-gop.mp4")
    window = index.window_at(index.video, 0.79, 0.83)
    assert (window.first, window.stop, window.times.tolist()) == (19, 21, [0.76, 0.8])
    assert index.window_at("video", "0:01", 9).stop == 50
    for wrong in ((1, 1), (2, 1), (float("nan"), 1)):
        with pytest.raises(ValueError, match=r"window has to end|NaN"):
            index.window_at("video", *wrong)
    with pytest.raises(IndexError, match="shows no frame"):
        index.window_at("video", 9, 10)


def test_a_saved_index_and_a_given_init_do_as_well(tmp_path):
    path = FIXTURES / "frag-cmaf.mp4"
    index = fragdex.index(path, exact=True)
    index.save(tmp_path / "a.fidx", samples=True)
    saved = fragdex.open_index(tmp_path / "a.fidx")
    init = b"".join(path.read_bytes()[part.start : part.stop] for part in index.periods[0].init)
    windows = [one.window("video", 10, 14) for one in (index, saved)]
    assert windows[0].mp4() == windows[1].mp4(path) == windows[1].mp4(path, init=init)
    with open_source(path) as source:
        windows[1].mp4(source, init=init)
        assert source.requests == 1


def test_flags_that_lie_are_noticed():
    path = FIXTURES / "all-sync-open-gop.mp4"
    index = fragdex.index(path, exact=True)
    with pytest.raises(NoSyncSample, match="verified=True"):
        index.window("video", 20, 24).mp4()
    window = index.window("video", 20, 24, verified=True)
    check(window, path, linear(path))


def test_what_has_no_windows_says_why(tmp_path):
    index = fragdex.index(FIXTURES / "open-gop.mp4")
    for wrong in ((-1, 3), (3, 3), (49, 51), (50, 51)):
        with pytest.raises(IndexError, match="from 0 to 50"):
            index.window("video", *wrong)
    with pytest.raises(TrackNotFound, match="no pictures"):
        fragdex.index(FIXTURES / "aac.m4a").window("audio", 0, 1)
    with pytest.raises(UndecodableMedia, match="encrypted"):
        fragdex.index(FIXTURES / "encrypted.mp4").window("video", 0, 1)
    window = index.window("video", 3, 5)
    with pytest.raises(BuildError, match="AV1"):
        window.obu()
    other = bytearray((FIXTURES / "open-gop.mp4").read_bytes())
    with pytest.raises(SourceChanged):
        window.mp4(bytes(other[:-1]))
    vp9 = fragdex.index(FIXTURES / "frag-vp9-opus.mp4", exact=True).window("video", 0, 2)
    with pytest.raises(BuildError, match="Annex B is for"):
        vp9.annexb()
    cut = (FIXTURES / "cut-in-mdat.mp4").read_bytes()
    with fragdex.Frames(cut) as frames, pytest.raises(IndexError):
        frames.index.window("video", 0, len(frames) + 1)
    sidx = fragdex.index(FIXTURES / "frag-global-sidx.mp4")
    if not sidx.exact:
        with pytest.raises(InexactIndex):
            sidx.window("video", 0, 1)


@given(st.binary(max_size=60), st.integers(1, 4))
def test_any_bytes_are_a_stream_of_units_or_refused(data, length_size):
    for make in (lambda: annexb([(data, [])], "avc", length_size), lambda: obu([(data, [])])):
        try:
            stream = make()
        except BuildError:
            continue
        assert len(stream) <= 5 * len(data) + 2


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=5), st.integers(1, 4))
def test_units_behind_lengths_become_units_behind_start_codes(units, length_size):
    units = [unit for unit in units if len(unit) < 1 << 8 * length_size and unit[0] & 31 != 9]
    data = b"".join(len(unit).to_bytes(length_size, "big") + unit for unit in units)
    expected = b"".join(b"\0\0\0\1" + unit for unit in (b"sets", *units))
    assert annexb([(data, [b"sets"])], "avc", length_size) == expected


def test_a_window_names_what_its_small_file_lacks() -> None:
    folder = Path(__file__).parents[2] / "fixtures"
    for name, what in (("made/emsg.mp4", "emsg"), ("tags.mp4", "mdta"), ("open-gop.mp4", "meta")):
        window = fragdex.index(folder / name, exact=True).window("video", 0, 2)
        said = window.left_out()
        assert any(what in one.what for one in said)
        assert all(one.code == "left-out" and one.why for one in said)
