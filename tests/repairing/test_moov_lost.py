"""A film whose moov is lost: every sample is found again, none is invented, times are its own."""

from __future__ import annotations

import numpy as np
import pytest
from tests.repairing.broken import check_no_invention, film, samples_of

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
        wanted, found = track.samples, mended.track(track.id).samples
        for column in ("dts", "cts", "sync"):
            assert np.array_equal(getattr(wanted, column), getattr(found, column)), column
        assert mended.track(track.id).start == track.start
        assert mended.track(track.id).codec == track.codec


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
