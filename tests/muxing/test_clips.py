"""Clips of every fixture: pictures, sound and lengths are those of the asked span.

Of each fixture 12 clips, the same ones each time; `CLIPS=50 ./dev test tests/muxing` makes more.
What FFmpeg reads otherwise is listed with its reason, and held to be exactly that.
"""

import os
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("av", exc_type=ImportError)

import fragdex
from fragdex.errors import NoSyncSample
from fragdex.muxing.clip import clip
from muxing.agreement import FIXTURES, PATHS, Comparison, compare, compare_one, source_of

OTHERWISE = {
    "frag-av1-opus.mp4": "without an edit list FFmpeg takes the pre-skip of Opus off by itself",
    "frag-vp9-opus.mp4": "as frag-av1-opus.mp4",
    "frag-every-frame.mp4": "FFmpeg hears the last packet of the source at another place",
    "frag-pcm.mov": "all its sound is one packet, which FFmpeg drops where an edit begins in it",
}
"""Files in which FFmpeg finds a difference that is none of the clip."""


CLIPS = int(os.environ.get("CLIPS", "12"))
MANY = 50
"""Among so many clips each of those files has one with a difference."""


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_clips_of_each(path):
    if path.name in OTHERWISE:
        assert compare(path, MANY).wrong, "this exception is not needed"
    else:
        wrong = compare(path, CLIPS).wrong
        assert not wrong, "\n".join(wrong)


SHORT = [
    *("faststart", "frag-cmaf", "variable-rate", "ntsc", "start-7s", "negative-cts", "open-gop"),
    *("audio-late", "video-late", "timescale-10m", "no-edit-list", "av1-opus", "vp9-flac", "mjpeg"),
]


@settings(deadline=None)
@given(
    st.sampled_from(SHORT),
    st.fractions(0, 1, max_denominator=10_000),
    st.fractions(0, 3, max_denominator=1000).filter(bool),
)
def test_the_shortest_span_shows_what_is_on_show(name, at, ticks):
    """Spans of a few ticks of the pictures, and of parts of one."""
    source = source_of(FIXTURES / f"{name}.mp4")
    video = source.index.video
    first, last = video.start.fraction, video.stop.fraction
    start = first + (last - first) * min(at, Fraction(9999, 10000))
    result = Comparison()
    data = source.data
    got = clip(
        source.index,
        lambda part: bytes(data[part.start : part.stop]),
        start,
        start + ticks / video.timescale,
    )
    out = b"".join(p if isinstance(p, bytes) else data[p.start : p.stop] for p in got.pieces)
    compare_one(source, got, out, result)
    assert not result.wrong
    assert result.pictures


@pytest.mark.parametrize("path", sorted((FIXTURES / "made").glob("*.mp4")), ids=lambda p: p.name)
def test_a_clip_of_everything_has_every_picture(path):
    """Also where decode times fall back, so that fragments stand before those shown earlier."""
    data = path.read_bytes()
    index = fragdex.index(data, exact=True)
    held = {t.id: t.sample_count for t in index.tracks if t.kind == "video" and t.sample_count}
    if len(index.periods) > 1 or not held:
        return
    if not all(len(index.track(number).sync_samples) for number in held):
        with pytest.raises(NoSyncSample):
            fragdex.clip(index, -float("inf"), float("inf"), source=data)
        return
    made = fragdex.index(fragdex.clip(index, -float("inf"), float("inf"), source=data).read())
    assert {number: made.track(number).sample_count for number in held} == held


def test_there_is_something_to_compare():
    counts = [compare(path, 3) for path in PATHS if path.name in ("faststart.mp4", "frag-cmaf.mp4")]
    assert all(one.pictures and one.sound and one.samples and one.lengths for one in counts)
    assert not any(one.wrong for one in counts)
