"""The clip of everything is everything, and two clips that meet make the one of both."""

import hashlib
from fractions import Fraction

import pytest

import fragdex
from fragdex.errors import FragdexError
from fragdex.seeking.numbering import Numbering
from fragdex.testing import movie
from oracle.media_files import fixture_files, init_of

FILES = fixture_files()
EVERYTHING = -float("inf"), float("inf")


def is_one_film(index):
    """Whether it has one moov, and something to begin decoding at."""
    if len(index.periods) != 1 or not index.periods[0].init:
        return False
    return any(len(track.sync_samples) for track in index.tracks)


def frames(data, track, samples):
    """A digest of the bytes of each frame that is shown, in their order; of each text, if empty."""
    if track.kind == "text":
        places = zip(samples.offset.tolist(), samples.size.tolist(), strict=True)
        return [hashlib.md5(data[start : start + size]).hexdigest() for start, size in places]
    shown = Numbering(track, samples, size=len(data))
    places = zip(
        samples.offset[shown.sample].tolist(), samples.size[shown.sample].tolist(), strict=True
    )
    return [hashlib.md5(data[start : start + size]).hexdigest() for start, size in places]


def everything(data, index):
    """{track: digests} of what is played."""
    return {
        track.id: frames(data, track, track.samples)
        for track in index.tracks
        if track.kind in ("video", "audio", "text") and track.sample_count and track.info.enabled
    }


def clipped(data, index):
    """The same of the clip of everything, or the refusal's sentence."""
    try:
        made = fragdex.clip(index, *EVERYTHING, source=data).read()
    except FragdexError as error:
        return str(error)
    return everything(made, fragdex.index(made, exact=True))


def test_the_clip_of_everything_is_everything():
    for name, path in FILES.items():
        data = path.read_bytes()
        try:
            index = fragdex.index(data, exact=True, init=init_of(name) or None)
        except FragdexError:
            continue
        got = clipped(data, index)
        if isinstance(got, str):
            assert not is_one_film(index), (name, got)
            continue
        wanted = {key: frames for key, frames in everything(data, index).items() if frames}
        if any(track.info.encryption is not None for track in index.tracks):
            # Their clips are fragments, which begin with what an edit list hides.
            got = {key: frames[-len(wanted[key]) :] for key, frames in got.items()}
        assert wanted == got, name


@pytest.mark.parametrize("falls", [1, 5, 9])
def test_times_that_fall_back_are_everything_or_refused_by_name(falls):
    data = bytearray(movie(12, samples=3, fps=3))
    places = [at for at in range(len(data)) if data[at : at + 4] == b"tfdt"]
    for place in places[falls:]:
        field = slice(place + 8, place + 12 + 4 * data[place + 4])
        time = int.from_bytes(data[field], "big")
        data[field] = (time // 2).to_bytes(field.stop - field.start, "big")
    data = bytes(data)
    index = fragdex.index(data, exact=True)
    got = clipped(data, index)
    assert isinstance(got, str) or got == everything(data, index)


NAMES = [
    "all-intra.mp4",
    "open-gop.mp4",
    "variable-rate.mp4",
    "frag-default-base.mp4",
    "hybrid.mp4",
]


@pytest.mark.parametrize("name", NAMES)
def test_two_clips_that_meet_are_the_clip_of_both(name):
    data = FILES[name].read_bytes() if name in FILES else FILES[f"made/{name}"].read_bytes()
    index = fragdex.index(data, exact=True)
    shown = Numbering(index.video, index.video.samples)
    times = [Fraction(tick, shown.timescale) for tick in shown.ticks.tolist()]

    def digests(start, stop):
        made = fragdex.clip(index, start, stop, source=data).read()
        track = fragdex.index(made, exact=True).video
        return frames(made, track, track.samples)

    start, stop = times[0], times[len(times) // 2]
    whole = digests(start, stop)
    assert len(whole) == len(times) // 2
    for middle in times[2 : len(times) // 2 - 1 : 5]:
        assert digests(start, middle) + digests(middle, stop) == whole
