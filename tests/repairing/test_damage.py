"""Films that were cut off, or have holes: what is whole is kept, what is not is said."""

from __future__ import annotations

from functools import cache
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.repairing.broken import (
    DAMAGE,
    Film,
    changed_by,
    check_samples,
    check_spans,
    film,
    proved_samples_of,
    samples_of,
)

import fragdex
from fragdex.errors import Unprocessable
from fragdex.repairing.repair import Repair

NAMES = (
    *("moov-last.mp4", "hevc-aac.mp4", "av1-opus.mp4", "vp9-flac.mp4", "pcm.mov", "avc3.mp4"),
    "aac.m4a",
    # Pictures with and without others or messages in front of them, after sound without ends.
    *("open-gop.mp4 + av1-opus.mp4", "intra-refresh.mp4 + av1-opus.mp4"),
    *("all-intra.mp4 + av1-opus.mp4", "hevc-aac.mp4 + av1-opus.mp4"),
)
AROUND = 12
"""Samples of a track that may be lost with a hole, though their own bytes are there."""

known = cache(film)


def damaged(good: Film, kind: str, start: int, stop: int, seed: int = 0) -> bytes:
    return damage(good.without_moov(), kind, start, min(stop, good.mdat[1]), seed)


def damage(whole: bytes, kind: str, start: int, stop: int, seed: int = 0) -> bytes:
    data = bytearray(whole)
    if kind == "cut":
        return bytes(data[:start])
    data[start:stop] = (
        bytes(stop - start) if kind == "zeros" else Random(seed).randbytes(stop - start)
    )
    return bytes(data)


def repaired(broken: bytes, good: Film) -> Repair | None:
    """None where too little is left to find anything."""
    try:
        return fragdex.repair(broken, good.data)
    except Unprocessable:
        return None


@given(
    st.sampled_from(NAMES),
    *DAMAGE,
)
# The end of a picture behind frames that are not shown, after what was taken for sound.
@example("av1-opus.mp4", "zeros", 0.515625, 40, 0)
@example("av1-opus.mp4", "foreign", 0.6, 40, 24)
@example("av1-opus.mp4", "foreign", 0.25, 200, 10)
@example("av1-opus.mp4", "foreign", 0.83203125, 40, 0)
# The same of pictures that messages or parameter sets are in front of.
@example("open-gop.mp4 + av1-opus.mp4", "foreign", 0.480480665601294, 40, 1790797914)
@example("intra-refresh.mp4 + av1-opus.mp4", "foreign", 0.7528456497659246, 8, 567714892)
@example("all-intra.mp4 + av1-opus.mp4", "foreign", 0.005736754663880794, 64, 254640397)
@example("all-intra.mp4 + av1-opus.mp4", "zeros", 0.08487199515892163, 8, 3588440356)
# What is left of a picture looks like a parameter set.
@example("pcm.mov", "zeros", 0.0709904137128331, 200, 0)
# A frame of AAC with foreign bytes ends with the next one, or with a picture after it.
@example("aac.m4a", "foreign", 0.4182414645879796, 64, 3826919774)
@example("hevc-aac.mp4", "foreign", 0.2949007367679728, 64, 3830052272)
# The first bytes of a picture that is cut off can be read as such a frame.
@example("moov-last.mp4", "cut", 0.5826362354533804, 64, 0)
# The last byte of a checksum is 0: without it there is one as well.
@example("vp9-flac.mp4", "cut", 0.31278882998769086, 512, 0)
# All that follows foreign bytes can be taken for sound.
@example("all-intra.mp4 + av1-opus.mp4", "foreign", 0.14752255626881794, 1500, 1068055003)
def test_nothing_is_invented(name: str, kind: str, where: float, size: int, seed: int) -> None:
    good = known(name)
    first, last = good.mdat
    start = first + int(where * (last - first - 1))
    broken = damaged(good, kind, start, start + size, seed)
    repair = repaired(broken, good)
    if repair is None:
        return
    check_spans(broken, repair)
    repaired_samples, proved = samples_of(repair), proved_samples_of(repair)
    changed = changed_by(kind, start, size)
    for track in repair.tracks:
        truth = good.truth[track.id]
        assert len(proved[track.id]) == track.proved
        check_samples(repair, track, proved[track.id], good.truth, changed)
        # foreign bytes, and a few zeros, may look like samples that only their neighbours delimit
        invented = repaired_samples[track.id].items() - truth.items()
        if changed is None:
            assert not invented
        if track.proved:
            # a guessed picture that is none is the end of one
            assert len(invented) <= 1
            ends = {at + length: at for at, length in truth.items()}
            assert all(ends[at + length] < at for at, length in invented - proved[track.id].items())
        if kind == "zeros" and changed is None:
            for at, length in proved[track.id].items():
                assert broken[at : at + length] == good.data[at : at + length]
        if track.proved:
            stop = len(broken) if kind == "cut" else start + size
            whole = {
                at: length
                for at, length in truth.items()
                if at + length <= start or (at >= stop and kind != "cut")
            }
            assert len(whole.keys() - repaired_samples[track.id].keys()) <= AROUND


@pytest.mark.parametrize("name", NAMES)
def test_cut_off_anywhere_keeps_what_is_before(name: str) -> None:
    good = known(name)
    first, last = good.mdat
    kept = -1
    for stop in range(last, first, -max(1, (last - first) // 12)):
        repair = repaired(good.data[:stop], good)
        count = 0 if repair is None else sum(track.samples for track in repair.tracks)
        assert kept < 0 or count <= kept
        kept = count
        assert repair is None or repair.size == stop


def test_a_hole_is_said_and_the_film_goes_on_behind_it() -> None:
    good = known("moov-last.mp4")
    repair = fragdex.repair(damaged(good, "zeros", 2000, 2600), good.data)
    (lost,) = [span for span in repair.spans if span.state == "lost"]
    assert lost.start <= 2000 < 2600 <= lost.stop
    assert "in 1 place " in " ".join(repair.findings)
    video, sound = repair.tracks
    # sound and pictures go on together, to the length of a sample
    assert abs(video.seconds - sound.seconds) < 0.15


def test_a_small_hole_takes_no_time_from_the_film() -> None:
    good = known("moov-last.mp4")
    repair = fragdex.repair(damaged(good, "zeros", 2000, 2100), good.data)
    video = next(track for track in repair.tracks if track.kind == "video")
    assert abs(video.seconds - 2) < 0.2
