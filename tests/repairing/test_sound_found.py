"""Pictures with parameter sets among them, and sound between them, without any other film."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.repairing.broken import (
    DAMAGE,
    changed_by,
    check_samples,
    check_spans,
    film,
    samples_of,
)
from tests.repairing.test_damage import damage
from tests.repairing.test_rates import AVC, changed_sets, vui_of

import fragdex
from fragdex.errors import Unprocessable
from fragdex.muxing.movie import traks_of
from fragdex.repairing.pattern import parameter_sets

NAMES = ("moov-last.mp4", "hevc-aac.mp4", "ntsc.mp4", "one-gop.mp4", "negative-cts.mp4")


@cache
def without_moov(
    name: str, change: Callable[[bytes], bytes] = bytes
) -> tuple[bytes, dict[int, dict[int, int]]]:
    """An ftyp and an mdat, with parameter sets in front of sync samples; where samples are.

    Args:
        change: of a parameter set, what takes its place.
    """
    good = film(name)
    video = good.index.track("video")
    init = b"".join(good.data[part.start : part.stop] for part in good.index.periods[0].init)
    stsd = traks_of(fragdex.boxes.parse(init))[video.id].find("mdia/minf/stbl/stsd")
    assert stsd is not None
    sets = b"".join(
        len(unit).to_bytes(4, "big") + unit
        for unit in map(change, parameter_sets(stsd.children[0]))
    )
    syncs = set(video.samples.offset[video.samples.sync].tolist())
    start, stop = good.box(b"ftyp")
    ftyp, media = good.data[start:stop], b""
    truth: dict[int, dict[int, int]] = {number: {} for number in good.truth}
    samples = [(at, size, number) for number, of in good.truth.items() for at, size in of.items()]
    for at, size, number in sorted(samples):
        begin = len(ftyp) + 8 + len(media)
        sample = good.data[at : at + size]
        media += (sets if at in syncs and sets not in sample else b"") + sample
        truth[number][begin] = len(ftyp) + 8 + len(media) - begin
    return ftyp + (len(media) + 8).to_bytes(4, "big") + b"mdat" + media, truth


@pytest.mark.parametrize("name", NAMES)
def test_both_are_found_with_their_times(name: str) -> None:
    index = film(name).index
    broken, truth = without_moov(name)
    repair = fragdex.repair(broken)
    check_spans(broken, repair)
    assert samples_of(repair) == truth
    assert any("no good file says what the sound is" in sentence for sentence in repair.findings)
    mended = repair.index(broken)
    for kind in ("video", "audio"):
        mended_track, known = mended.track(kind), index.track(kind)
        assert (mended_track.codec or "")[4:] == (known.codec or "")[4:]
        assert mended_track.info.channel_count == known.info.channel_count
        steps, wanted = (
            (one.samples.dts - one.samples.dts[0]) / one.timescale for one in (mended_track, known)
        )
        assert steps.tolist() == pytest.approx(wanted.tolist())


def test_sound_that_lasts_longer_than_the_pictures_is_told() -> None:
    """Two tracks of one kind cannot be told apart."""
    broken, truth = without_moov("frag-two-languages.mp4")
    repair = fragdex.repair(broken)
    assert sum(len(samples) for samples in samples_of(repair).values()) == sum(
        map(len, truth.values())
    )
    assert any("that of several tracks" in sentence for sentence in repair.findings)


@pytest.mark.parametrize(("rate", "heard"), [(25, 44100), (30, 48000)])
def test_the_frames_of_sound_say_the_rate_of_pictures_that_have_no_clock(
    tmp_path: Path, rate: int, heard: int
) -> None:
    name = str(tmp_path / "long.mp4")
    encode(name, rate, heard, 40)
    broken, truth = without_moov(name, changed_sets(AVC, vui_of(None)))
    repair = fragdex.repair(broken)
    assert samples_of(repair) == truth
    assert repair.tracks[0].seconds == pytest.approx(40)
    assert repair.index(broken).track("audio").timescale == heard
    (guess, other) = repair.findings
    assert f"the rate is a guess: frames of sound (at {heard:,} Hz) say" in guess
    assert f"AAC at {heard:,} Hz" in other


def encode(name: str, rate: int, heard: int, seconds: int) -> None:
    """A film of AVC and AAC."""
    with av.open(name, "w") as out:
        video = out.add_stream("libx264", rate=rate, options={"preset": "ultrafast", "bf": "2"})
        video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
        sound = out.add_stream("aac", rate=heard, layout="stereo")
        noise = np.random.default_rng(1)
        for number in range(rate * seconds):
            picture = av.VideoFrame(64, 48, "yuv420p")
            for plane in picture.planes:
                plane.update(bytes([number % 200]) * plane.buffer_size)
            picture.pts, picture.time_base = number, Fraction(1, rate)
            out.mux(video.encode(picture))
            wave = noise.normal(0, 0.1, (2, heard // rate)).astype(np.float32)
            frame = av.AudioFrame.from_ndarray(wave, "fltp", "stereo")
            frame.sample_rate, frame.pts = heard, number * (heard // rate)
            out.mux(sound.encode(frame))
        out.mux(video.encode())
        out.mux(sound.encode())


@given(
    st.sampled_from(NAMES),
    *DAMAGE,
)
# A frame of AAC with foreign bytes ends early, and a picture with some is read as one.
@example("hevc-aac.mp4", "foreign", 0.10546875, 8, 0)
@example("moov-last.mp4", "foreign", 0.6839852651713004, 200, 155317469)
# A slice with foreign bytes is one of the picture before it.
@example("hevc-aac.mp4", "foreign", 0.8067005281618039, 8, 1535360813)
# What is left can be read as one frame of AAC, of another kind or with a picture in it.
@example("ntsc.mp4", "cut", 0.22205165183338327, 40, 0)
@example("ntsc.mp4", "cut", 0.2680746744569218, 64, 0)
# No picture is whole.
@example("negative-cts.mp4", "cut", 0.1325658066899088, 200, 0)
def test_nothing_is_invented(name: str, kind: str, where: float, size: int, seed: int) -> None:
    whole, truth = without_moov(name)
    first = whole.index(b"mdat") + 4
    start = first + int(where * (len(whole) - first - 1))
    broken = damage(whole, kind, start, min(start + size, len(whole)), seed)
    try:
        repair = fragdex.repair(broken)
    except Unprocessable:
        return
    check_spans(broken, repair)
    assert not any(span.state == "guessed" for span in repair.spans)
    samples = samples_of(repair)
    for track in repair.tracks:
        check_samples(repair, track, samples[track.id], truth, changed_by(kind, start, size))
