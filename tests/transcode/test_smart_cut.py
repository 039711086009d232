"""Clips without hidden pictures: what is copied is the source's, what is encoded is close to it."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from fractions import Fraction
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import parse
from fragdex.errors import BuildError
from fragdex.fragments.table import SampleTable
from fragdex.transcode.seams import LEAST_PSNR, psnr
from fragdex.transcode.smart_cut import plan
from fragdex.views.copies import ClipRequest, clip_view

av = pytest.importorskip("av")

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
FILMS = [
    *("faststart", "frag-cmaf", "frag-all-sync", "open-gop", "one-gop", "avc3", "negative-cts"),
    *("variable-rate", "ntsc", "start-7s", "intra-refresh", "hevc-aac", "hvc1", "frag-hvc1"),
]


@cache
def index_of(name: str) -> fragdex.Index:
    return fragdex.index(str(FIXTURES / f"{name}.mp4"), exact=True)


@cache
def pictures_of(name: str) -> list[Any]:
    """All pictures of a film in the order of showing."""
    return [frame for _, frame in decoded(str(FIXTURES / f"{name}.mp4"), edits=False)[0]]


def decoded(what: str | bytes, *, edits: bool = True) -> tuple[list[Any], Fraction]:
    """Times and pictures, and the duration that libavformat gives the track."""
    file = what if isinstance(what, str) else io.BytesIO(what)
    with av.open(file, options={} if edits else {"ignore_editlist": "1"}) as container:
        stream = container.streams.video[0]
        frames = [(frame.pts * frame.time_base, frame) for frame in container.decode(stream)]
        return frames, Fraction(stream.duration or 0) * stream.time_base


def smart(name: str, start: Any, stop: Any) -> tuple[bytes, Any]:
    index = index_of(name)
    with fragdex.open_source(index.file.name) as source:
        view, clip = clip_view(index, source, ClipRequest(start, stop, smart=True))
        return view.read(source=source), clip


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(FILMS), st.integers(0, 999), st.integers(1, 1000))
@example("ntsc", 20, 1)  # begins a quarter of a tick before the first picture ends
def test_pictures_are_those_of_the_source_and_none_is_hidden(name, at, length) -> None:
    track = index_of(name).video
    first, last = track.start.fraction, track.stop.fraction
    start = first + (last - first) * Fraction(at, 1000)
    data, clip = smart(name, start, start + (last - start) * Fraction(length, 1000))
    order = np.argsort(track.samples.cts, kind="stable")
    cts = track.samples.cts[order].tolist()
    times = [(c + track.shift) / track.timescale for c in cts]
    # A picture is shown for one tick of its track at least.
    low, high = (round(at * track.timescale - track.shift) for at in (clip.start, clip.stop))
    shown = [
        number
        for number, tick in enumerate(cts)
        if tick < max(high, low + 1) and (number + 1 == len(cts) or cts[number + 1] > low)
    ]
    pictures, duration = decoded(data)
    made = fragdex.index(data, exact=True).video
    # As many with an edit list as without, and not one more in the file.
    assert len(pictures) == len(shown) == made.sample_count
    assert len(decoded(data, edits=False)[0]) == len(shown)
    tick = Fraction(1, min(track.timescale, 1_000_000))
    for (time, picture), number in zip(pictures, shown, strict=True):
        assert abs(time - (max(times[number], clip.start) - clip.start)) <= tick
        assert psnr(pictures_of(name)[number], picture) >= LEAST_PSNR
    ours = made.stop.fraction - made.start.fraction
    assert abs(ours - duration) <= tick
    assert abs(ours - exact_duration(name, clip)) <= tick
    # What is not encoded is in the source, bit for bit.
    source = Path(index_of(name).file.name).read_bytes()
    inside = [source[o : o + n] for o, n in rows_of(track.samples)]
    copied = sum(data[o : o + n] in inside for o, n in rows_of(made.samples))
    assert copied >= len(shown) - clip.encoded


def exact_duration(name: str, clip: Any) -> Fraction:
    """Of the pictures of the clip that copies all."""
    copy = fragdex.clip(index_of(name), start=clip.start, stop=clip.stop)
    video = fragdex.index(copy, exact=True).video
    return video.stop.fraction - video.start.fraction


def rows_of(samples: SampleTable) -> list[tuple[int, int]]:
    return list(zip(samples.offset.tolist(), samples.size.tolist(), strict=True))


@pytest.mark.skipif(shutil.which("ffprobe") is None, reason="ffprobe is not installed")
@pytest.mark.parametrize("name", ["faststart", "hevc-aac"])
def test_a_third_reader_counts_and_times_the_same(name: str, tmp_path: Path) -> None:
    data, clip = smart(name, 0.6, 1.7)
    path = tmp_path / "clip.mp4"
    path.write_bytes(data)
    asked = ["-show_entries", "stream=duration,nb_read_frames,codec_type", "-count_frames"]
    command = ["ffprobe", "-v", "error", *asked, "-of", "json", str(path)]
    done = subprocess.run(command, check=True, capture_output=True)
    assert done.stderr == b""
    video, audio = json.loads(done.stdout)["streams"]
    assert int(video["nb_read_frames"]) == fragdex.index(data, exact=True).video.sample_count
    assert Fraction(video["duration"]) == clip.stop - clip.start == Fraction(11, 10)
    # Sound is cut to the sample.
    rate = index_of(name).audio.info.sample_rate
    assert abs(Fraction(audio["duration"]) - Fraction(11, 10)) <= Fraction(1, rate)


def test_the_command_and_the_view_cut_alike(tmp_path: Path, capfd: Any) -> None:
    from fragdex.__main__ import main

    name = str(FIXTURES / "faststart.mp4")
    path = tmp_path / "clip.mp4"
    assert main(["extract", name, "0.6", "1.7", "--smart", "-o", str(path)]) == 0
    assert "pictures re-encoded" in capfd.readouterr().out
    view = fragdex.clip(index_of("faststart"), start=0.6, stop=1.7, smart=True)
    assert path.read_bytes() == view.read() == smart("faststart", 0.6, 1.7)[0]
    again = fragdex.clip(index_of("faststart"), start=0.6, stop=1.7)
    assert view.etag != again.etag


def test_avc_has_one_sample_entry_and_hevc_two() -> None:
    for name, entries in (("faststart", 1), ("hevc-aac", 2)):
        data, clip = smart(name, 0.6, 1.7)
        assert clip.encoded > 0
        moov = next(box for box in parse(data) if box.type == "moov")
        stsd = moov.find("trak/mdia/minf/stbl/stsd")
        assert len(stsd.children) == entries
        if entries == 1:
            assert len(stsd.find("avc1/avcC")["sequenceParameterSets"]) == 2


def test_a_cut_at_a_sync_sample_encodes_nothing() -> None:
    data, clip = smart("faststart", 0.48, 2)
    assert clip.encoded == 0
    assert fragdex.index(data, exact=True).video.sample_count == 38


def test_a_film_that_cannot_be_cut_so_is_refused_with_the_reason() -> None:
    for name, reason in (("encrypted", "encrypted"), ("av1-opus", "not AVC or HEVC")):
        with pytest.raises(BuildError, match=reason):
            smart(name, 0.2, 0.7)


@st.composite
def groups(draw: st.DrawFn) -> SampleTable:
    """Groups of pictures, each decoded in any order behind its first, some with leading ones."""
    cts: list[int] = []
    sync: list[bool] = []
    for _ in range(draw(st.integers(1, 5))):
        size = draw(st.integers(1, 7))
        order = draw(st.permutations(range(size)))
        key = draw(st.integers(0, min(2, size - 1))) if cts else 0
        order = [key, *(number for number in order if number != key)]
        cts += [len(cts) + number for number in order]
        sync += [True, *[False] * (size - 1)]
    count = len(cts)
    return SampleTable.of(
        {
            "offset": range(count),
            "size": [1] * count,
            "dts": range(count),
            "cts": cts,
            "duration": [1] * count,
            "sync": sync,
        }
    )


@given(groups(), st.data())
def test_a_plan_has_every_picture_of_the_span_once_and_no_other(samples, data) -> None:
    low = data.draw(st.integers(0, len(samples) - 1))
    high = data.draw(st.integers(low + 1, len(samples) + 2))
    allowed = data.draw(st.sets(st.integers(0, len(samples))))
    made = plan(samples, low, high, allowed.__contains__)
    parts = [samples.cts[part].tolist() for part in (made.head, made.copied, made.tail)]
    assert sorted(chain(*parts)) == list(range(low, min(high, len(samples))))
    head, copied, tail = parts
    assert head == sorted(head)
    assert tail == sorted(tail)
    assert max(head, default=-1) < min(copied, default=len(samples))
    assert max(copied, default=-1) < min(tail, default=len(samples))
    if copied:
        # What is copied is decoded without gaps but for pictures shown before its first.
        numbers = made.copied.tolist()
        assert numbers[0] in allowed
        assert samples.sync[numbers[0]]
        between = set(range(numbers[0], numbers[-1])) - set(numbers)
        assert all(samples.cts[number] < copied[0] for number in between)
