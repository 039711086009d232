"""Clips without hidden pictures: what is copied is the source's, what is encoded is close to it."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import Box, parse
from fragdex.errors import BuildError
from fragdex.fragments.table import SampleTable
from fragdex.muxing.absence import left_of
from fragdex.seeking.numbering import Numbering
from fragdex.transcode import seams
from fragdex.transcode.smart_cut import plan

av = pytest.importorskip("av")

from transcode.smart_cuts import (  # noqa: E402
    FIXTURES,
    check,
    decoded,
    index_of,
    pictures_of,
    rows_of,
    samples_of,
    smart,
)

FILMS = [
    *("faststart", "frag-cmaf", "frag-all-sync", "open-gop", "one-gop", "avc3", "negative-cts"),
    *("variable-rate", "ntsc", "start-7s", "intra-refresh", "hevc-aac", "hvc1", "frag-hvc1"),
    *("av1-opus", "frag-av1-opus", "vp9-flac", "frag-vp9-opus", "mjpeg"),
]


@settings(deadline=None, max_examples=40)
@given(st.sampled_from(FILMS), st.integers(0, 999), st.integers(1, 1000))
@example("ntsc", 20, 1)  # begins a quarter of a tick before the first picture ends
@example("hvc1", 997, 2)  # lies between two ticks
@example("frag-all-sync", 994, 1)
@example("avc3", 994, 5)
@example("variable-rate", 228, 1)  # a picture that is shown for longer than its duration says
@example("variable-rate", 317, 50)  # no sample's duration reaches the end of the span
def test_pictures_are_those_of_the_source_and_none_is_hidden(name, at, length) -> None:
    check(f"{name}.mp4", Fraction(at, 1000), Fraction(length, 1000))


def test_a_picture_that_would_be_shown_for_less_than_a_tick_may_be_left_out() -> None:
    check("moov-reserved.mp4", Fraction(951, 1000), Fraction(592, 1000))


@pytest.mark.skipif(shutil.which("ffprobe") is None, reason="ffprobe is not installed")
@pytest.mark.parametrize("name", ["faststart", "hevc-aac", "av1-opus", "frag-vp9-opus"])
def test_a_third_reader_counts_and_times_the_same(name: str, tmp_path: Path) -> None:
    data, clip = smart(f"{name}.mp4", 0.6, 1.7)
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
    rate = index_of(f"{name}.mp4").audio.info.sample_rate
    assert abs(Fraction(audio["duration"]) - Fraction(11, 10)) <= Fraction(1, rate)


def test_the_command_and_the_view_cut_alike(tmp_path: Path, capfd: Any) -> None:
    from fragdex.__main__ import main

    name = str(FIXTURES / "faststart.mp4")
    path = tmp_path / "clip.mp4"
    assert main(["extract", name, "0.6", "1.7", "--smart", "-o", str(path)]) == 0
    assert "pictures re-encoded" in capfd.readouterr().out
    view = fragdex.clip(index_of("faststart.mp4"), start=0.6, stop=1.7, smart=True)
    assert path.read_bytes() == view.read() == smart("faststart.mp4", 0.6, 1.7)[0]
    again = fragdex.clip(index_of("faststart.mp4"), start=0.6, stop=1.7)
    assert view.etag != again.etag


def test_hevc_and_av1_have_two_sample_entries_and_others_one() -> None:
    for name, entries in (("faststart", 1), ("vp9-flac", 1), ("hevc-aac", 2), ("av1-opus", 2)):
        data, clip = smart(f"{name}.mp4", 0.6, 1.7)
        assert clip.encoded > 0
        assert smart(f"{name}.mp4", 0.6, 1.7)[0] == data
        moov = next(box for box in parse(data) if box.type == "moov")
        stsd = moov.find("trak/mdia/minf/stbl/stsd")
        assert len(stsd.children) == entries
        if name == "faststart":
            assert len(stsd.find("avc1/avcC")["sequenceParameterSets"]) == 2


def test_a_cut_at_a_sync_sample_encodes_nothing() -> None:
    data, clip = smart("faststart.mp4", 0.48, 2)
    assert clip.encoded == 0
    assert fragdex.index(data, exact=True).video.sample_count == 38


def test_a_film_that_cannot_be_cut_so_is_refused_with_the_reason() -> None:
    for name, reason in (("encrypted", "encrypted"), ("mpeg4-mp3", "not AVC, HEVC, AV1 or VP9")):
        with pytest.raises(BuildError, match=reason):
            smart(f"{name}.mp4", 0.2, 0.7)


@pytest.mark.parametrize("codec", seams.CODECS)
def test_noise_is_close_to_its_original_too(codec: str) -> None:
    draw = np.random.default_rng(1)
    pictures = [draw.integers(16, 235, (270, 320)).astype(np.uint8) for _ in range(3)]
    levels = {"AVCProfileIndication": 100, "AVCLevelIndication": 30, "general_level_idc": 30}
    settings = seams.SeamSettings(codec, Box("avcC", levels), False, Fraction(25), Fraction(1))
    seam = seams.encoded(
        lambda: iter(av.VideoFrame.from_ndarray(one, "yuv420p") for one in pictures), settings
    )
    assert seam.psnr >= seams.LEAST_PSNR
    assert seam.order.tolist() == [0, 1, 2]


def test_a_missing_encoder_is_named_with_what_to_do(monkeypatch: Any) -> None:
    (libvpx,) = seams._ENCODERS["vp9"]
    for encoder, reason in (
        (replace(libvpx, name="none"), "none of them"),
        (libvpx, "does not take"),
    ):
        monkeypatch.setitem(seams._ENCODERS, "vp9", (encoder,))
        with pytest.raises(BuildError) as caught:
            seams._encoder("vp9", "yuv420p16le")
        assert encoder.name in str(caught.value)
        assert reason in str(caught.value)
        assert "install a PyAV" in str(caught.value)


def test_pictures_that_stand_alone_and_cuts_at_sync_samples_need_no_encoder() -> None:
    for name in ("mjpeg.mp4", "prores.mov", "mpeg4-mp3.mp4", "mpeg2-ac3.mp4"):
        track = index_of(name).video
        begin = track.presentation(int(track.samples.cts[track.samples.sync][1])).fraction
        _, clip = smart(name, begin, track.stop)
        assert clip.encoded == 0


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
    cut_plan = plan(samples, low, high, allowed.__contains__)
    parts = [samples.cts[part].tolist() for part in (cut_plan.head, cut_plan.copied, cut_plan.tail)]
    assert sorted(chain(*parts)) == list(range(low, min(high, len(samples))))
    head, copied, tail = parts
    assert head == sorted(head)
    assert tail == sorted(tail)
    assert max(head, default=-1) < min(copied, default=len(samples))
    assert max(copied, default=-1) < min(tail, default=len(samples))
    if copied:
        # What is copied is decoded without gaps but for pictures shown before its first.
        numbers = cut_plan.copied.tolist()
        assert numbers[0] in allowed
        assert samples.sync[numbers[0]]
        between = set(range(numbers[0], numbers[-1])) - set(numbers)
        assert all(samples.cts[number] < copied[0] for number in between)


@pytest.mark.parametrize(
    "name",
    [
        *("faststart", "frag-cmaf", "open-gop", "one-gop", "avc3", "negative-cts", "start-7s"),
        *("variable-rate", "ntsc", "hevc-aac", "hvc1", "av1-opus", "vp9-flac"),
    ],
)
def test_what_is_removed_is_gone_and_all_around_it_stays(name: str) -> None:
    """Two spans in the middle of groups: every picture outside of them is shown, close to what it
    was or bit for bit, and no sample of theirs is in the file."""
    index = index_of(f"{name}.mp4")
    track = index.video
    shown = Numbering(track, track.samples)
    count = len(shown)
    times = [Fraction(tick, shown.timescale) for tick in shown.ticks.tolist()]
    gone = [(count // 4, count // 3), (count // 2 + 1, count // 2 + 4)]
    spans = [(times[first], times[last]) for first, last in gone]
    view = fragdex.clip(index, -inf, without=spans, smart=True, source=index.file.name)
    data = view.read()
    assert left_of(data, index, index.file.name, spans).findings == ()
    assert not any(" – " in one for one in view.findings), view.findings
    stay = [n for n in range(count) if not any(first <= n < last for first, last in gone)]
    pictures = decoded(data)[0]
    assert len(pictures) == len(stay) == fragdex.index(data, exact=True).video.sample_count
    alike = []
    for (time, picture), number in zip(pictures, stay, strict=True):
        earlier = sum(high - low for low, high in spans if low < times[number])
        apart = time - pictures[0][0] - (times[number] - earlier - times[0])
        assert abs(apart) <= Fraction(3, min(track.timescale, 90_000)), (number, float(apart))
        alike.append(seams.psnr(pictures_of(f"{name}.mp4")[number], picture))
    assert min(alike) >= seams.LEAST_PSNR
    rows = rows_of(fragdex.index(data, exact=True).video.samples)
    assert any(data[o : o + n] in samples_of(f"{name}.mp4") for o, n in rows)


def test_a_picture_that_begins_in_what_is_removed_is_not_shown_after_it() -> None:
    index = index_of("faststart.mp4")
    view = fragdex.clip(index, -inf, without=[(0.5, 1.01)], smart=True, source=index.file.name)
    assert "1.010 – 1.040 is left out: the picture shown there is removed (left-out)" in (
        view.findings
    )
