"""A film whose moov is lost: every sample is found again, none is invented, times are its own."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from random import Random

import av
import numpy as np
import pytest
from tests.repairing.broken import (
    FIXTURES,
    Film,
    check_no_invention,
    film,
    proved_samples_of,
    samples_of,
)

import fragdex
from fragdex.errors import Unprocessable
from fragdex.testing import Faults, RangeServer

WHOLE = (
    *("moov-last.mp4", "faststart.mp4", "ntsc.mp4", "one-gop.mp4", "all-intra.mp4", "open-gop.mp4"),
    *("hevc-aac.mp4", "hvc1.mp4", "avc3.mp4", "av1-opus.mp4", "pcm.mov", "pcm.mp4", "pcm-24.mov"),
    *("pcm-float.mp4", "quicktime.mov", "negative-cts.mp4", "audio-late.mp4", "psp.mp4", "aac.m4a"),
    *("surround.mp4", "track-ids.mp4", "timescale-10m.mp4", "start-7s.mp4", "one-frame.mp4"),
    "vp9-flac.mp4",
)


@pytest.mark.parametrize("name", WHOLE)
def test_each_sample_is_found_with_its_times(name: str) -> None:
    good = film(name)
    broken = good.without_moov()
    repair = fragdex.repair(broken, good.data)
    check_no_invention(good, broken, repair)
    assert samples_of(repair) == good.truth
    start, stop = good.moov
    assert repair.lost == 0 or 0 < repair.lost - (stop - start) < 64
    mended = repair.index(broken)
    for track in good.index.tracks:
        wanted, repaired_samples = track.samples, mended.track(track.id).samples
        for column in ("dts", "cts", "sync"):
            assert np.array_equal(getattr(wanted, column), getattr(repaired_samples, column)), (
                column
            )
        assert mended.track(track.id).start == track.start
        assert mended.track(track.id).codec == track.codec


@pytest.mark.parametrize(
    ("name", "proved"),
    [
        ("av1-opus.mp4", 5),  # hidden frames are in front of some
        ("hevc-aac.mp4 + av1-opus.mp4", 50),
        ("open-gop.mp4 + av1-opus.mp4", 50),
        ("moov-last.mp4 + av1-opus.mp4", 46),  # a message is in front of the first key frame
        ("intra-refresh.mp4 + av1-opus.mp4", 5),  # messages are in front of some
        ("pcm.mov", 50),
    ],
)
def test_pictures_that_may_begin_in_the_sound_before_them_are_guessed(
    name: str, proved: int
) -> None:
    """They are found all the same; only what none of the good file is longer than is proved."""
    good = film(name)
    broken = good.without_moov()
    repair = fragdex.repair(broken, good.data)
    pictures = repair.tracks[0]
    assert samples_of(repair)[pictures.id] == good.truth[pictures.id]
    assert pictures.proved == len(proved_samples_of(repair)[pictures.id]) == proved
    guesses = {span.what for span in repair.spans if span.state == "guessed"}
    doubts = [line for line in repair.findings if "may begin in it" in line]
    assert ("samples after sound that does not say where it ends" in guesses) == bool(doubts)
    assert bool(doubts) == (proved < pictures.samples)


@pytest.mark.parametrize("name", ["no-edit-list.mp4", "three-audio.mp4", "tags.mp4", "cover.mp4"])
def test_what_cannot_be_told_is_said_and_nothing_invented(name: str) -> None:
    good = film(name)
    broken = good.without_moov()
    check_no_invention(good, broken, fragdex.repair(broken, good.data))


def test_another_film_of_the_same_camera_says_as_much() -> None:
    good, other = film("moov-last.mp4"), film("faststart.mp4")
    repair = fragdex.repair(good.without_moov(), other.data)
    assert samples_of(repair) == good.truth


def test_the_source_is_not_copied() -> None:
    good = film("moov-last.mp4")
    repair = fragdex.repair(good.without_moov(), good.data)
    start, stop = good.mdat
    (part,) = [part for part in repair.view.parts() if not isinstance(part, bytes)]
    assert (part.range.start, part.range.stop) == (start, stop)  # type: ignore[union-attr]
    again = fragdex.repair(good.without_moov(), good.data)
    assert again.view.etag == repair.view.etag


def test_a_film_of_another_kind_finds_nothing() -> None:
    with pytest.raises(Unprocessable, match="same camera"):
        fragdex.repair(film("hevc-aac.mp4").without_moov()[:2000], film("avc3.mp4").data)


def test_a_remote_file_is_read_by_ranges_that_resume_and_progress_rises() -> None:
    good = film("moov-last.mp4")
    broken, seen = good.without_moov(), []
    with RangeServer(broken, faults=Faults(short_answers=len(broken) // 2, times=3)) as server:
        repair = fragdex.repair(
            server.url,
            good.data,
            progress=lambda done, size: seen.append((done, size)),
            retries=5,
        )
    assert samples_of(repair) == good.truth
    assert seen == sorted(seen)
    assert seen[-1] == (len(broken), len(broken))


def film_with_opus(path: Path, rate: int, seed: int) -> Film:
    """Pictures of a fixture, so many a second, and packets that are like no others."""
    random = Random(seed)
    with av.open(str(FIXTURES / "moov-last.mp4")) as given, av.open(str(path), "w") as out:
        pictures = out.add_stream_from_template(given.streams.video[0])
        sound = out.add_stream("libopus", rate=48000)
        out.start_encoding()
        heard = 0
        for number, picture in enumerate(p for p in given.demux(video=0) if p.size):
            while heard * rate < number * 50:
                packet = av.Packet(b"\x78" + random.randbytes(random.randrange(60, 90)))
                packet.pts = packet.dts = heard * 960
                packet.duration, packet.time_base, packet.stream = 960, Fraction(1, 48000), sound
                out.mux_one(packet)
                heard += 1
            picture.pts = picture.dts = number
            picture.duration, picture.time_base, picture.stream = 1, Fraction(1, rate), pictures
            out.mux_one(picture)
    return film(str(path))


@pytest.mark.parametrize("rate", [60, 25])
def test_packets_between_pictures_are_counted_by_the_pace(tmp_path: Path, rate: int) -> None:
    """A single one is found; where one of two begins is known only if nothing else is like it."""
    good, other = (film_with_opus(tmp_path / f"{seed}.mp4", rate, seed) for seed in (1, 2))
    repair = fragdex.repair(good.without_moov(), other.data)
    pictures, sound = (samples_of(repair)[number] for number in (1, 2))
    assert pictures == good.truth[1]
    assert sound.items() <= good.truth[2].items()
    if rate == 60:
        assert sound == good.truth[2]
    else:
        assert len(sound) >= len(good.truth[2]) // 4
        assert "in no sample" in " ".join(repair.findings)
