"""Timecode and chapters of a clip are those of its span, or the clip says what it leaves out."""

import io
from fractions import Fraction
from pathlib import Path

import av
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import find_all, parse
from fragdex.muxing.copies import ClipRequest, clip_view
from fragdex.muxing.kinds import described
from muxing.timecoded import COUNTER, DAY, DROP, NEGATIVE, chapter_at, counter_at, film

FIXTURES = Path(__file__).parents[2] / "fixtures"
RATES = [(25, 1, 25), (30000, 1001, 30), (60000, 1001, 60), (12800, 512, 25), (600, 20, 30)]
"""Ticks a second, ticks of a frame, and frames that make a second of timecode."""


@st.composite
def films(draw):
    """A film of two seconds, with timecode samples and chapters."""
    scale, duration, frames = draw(st.sampled_from(RATES))
    flags = draw(st.sampled_from([0, DROP, DAY, DROP | DAY, NEGATIVE, COUNTER]))
    most = 24 * 3600 * frames
    least = -most if flags & NEGATIVE else 0
    values = st.integers(least, most) | st.integers(most - 20, most - 1)
    samples = [
        (draw(values), duration * many)
        for many in draw(st.lists(st.integers(1, 40), min_size=1, max_size=4))
    ]
    if draw(st.booleans()):
        samples[-1] = (samples[-1][0], 100 * scale)
    starts = draw(st.lists(st.integers(0, 2 * 10**7), max_size=4))
    return film(
        samples,
        scale=scale,
        duration=duration,
        frames=frames,
        flags=flags,
        late=draw(st.none() | st.integers(0, duration * 3)),
        chapters=[(start, f"chapter {number}") for number, start in enumerate(starts)],
        fragments=10,
        tracks=2,
        edit=draw(st.sampled_from([None, 2000])),
    )


def clipped(data, start, stop, **options):
    """A clip as a file, its index, and where in the source its time 0 is."""
    index = fragdex.index(data, exact=True)
    request = ClipRequest(start, stop, **options)
    with fragdex.open_source(data) as source:
        view, clipped = clip_view(index, source, request)
        out = view.read(source=data)
    clip = fragdex.index(out, exact=True)
    shown = min(one.start.fraction for one in clip.tracks if one.kind in ("video", "audio"))
    return view, out, clip, clipped.start - shown


@settings(max_examples=50)
@given(films(), st.fractions(0, 1), st.fractions(Fraction(1, 50), 1), st.booleans())
def test_each_moment_of_a_clip_has_the_timecode_and_chapter_of_the_source(
    data, start, length, fragmented
):
    source = fragdex.index(data, exact=True)
    view, out, clip, first = clipped(data, start, start + length, fragmented=fragmented)
    assert view.findings == ()
    end = clip.track(1).stop.fraction
    tick = Fraction(1, min(one.timescale for one in clip.tracks))
    old = source.track(1)
    frames = (old.presentation(int(cts)).fraction for cts in old.samples.cts)
    begin = clip.track(1).start.fraction  # in fragments, timecode begins with a picture
    for time in (time - first for time in frames):
        if begin <= time < end - 2 * tick:
            # times of a clip are rounded to its ticks
            shown = [counter_at(out, clip, max(time + off, 0)) for off in (-tick, 0, tick)]
            assert counter_at(data, source, first + time) in shown
    chapters, left = (one.periods[0].movie.chapters for one in (source, clip))
    for step in range(20):
        time = end * step / 20
        shown = {chapter_at(left, time + Fraction(off, 10**7)) for off in (-2, 0, 2)}
        assert chapter_at(chapters, first + time) in shown
    # references name tracks that are here
    ids = {one.id for one in clip.tracks}
    for tref in find_all(parse(out), "moov/trak/tref"):
        assert all(set(map(int, box["track_IDs"])) <= ids for box in tref.children)


def told_by_ffmpeg(data):
    """Timecode of the pictures, and (start in seconds, title) of chapters."""
    with av.open(io.BytesIO(data)) as opened:
        code = opened.streams.video[0].metadata.get("timecode")
        rows = [
            (float(one["start"] * one["time_base"]), one["metadata"]["title"])
            for one in opened.chapters()
        ]
    return code, rows


@pytest.mark.parametrize("fragmented", [False, True])
@pytest.mark.parametrize(
    ("rate", "flags", "value", "wanted"),
    [
        ((12800, 512, 25), 0, 90000, "01:00:00:20"),
        ((30000, 1001, 30), DROP, 107892 - 24 + 1800, "01:01:00;02"),
        ((25, 1, 25), DAY, 24 * 3600 * 25 - 10, "00:00:00:10"),
    ],
)
def test_ffmpeg_reads_the_timecode_of_the_first_picture(rate, flags, value, wanted, fragmented):
    scale, duration, frames = rate
    sizes = {"fps": 30 if frames == 30 else 25, "fragments": 10}
    data = film(
        [(value, 100 * scale)], scale=scale, duration=duration, frames=frames, flags=flags, **sizes
    )
    start = Fraction(24 * 1001, 30000) if frames == 30 else Fraction(4, 5)
    _, out, _, _ = clipped(data, start, 2, fragmented=fragmented and frames != 30)
    assert told_by_ffmpeg(out)[0] == wanted


def test_ffmpeg_reads_timecode_and_chapters_that_it_wrote():
    data = (FIXTURES / "timecode.mov").read_bytes()
    assert told_by_ffmpeg(data)[0] == "01:00:00:00"
    # in fragments, the first picture is the sync sample at 0.48 s
    for fragmented, wanted in ((False, "01:00:00:20"), (True, "01:00:00:12")):
        _, out, _, _ = clipped(data, 0.8, 2, fragmented=fragmented)
        assert told_by_ffmpeg(out)[0] == wanted
    data = (FIXTURES / "chapters.mp4").read_bytes()
    for start, titles in ((0.5, ["first", "second"]), (1.5, ["second"])):
        for fragmented in (False, True):
            _, out, clip, first = clipped(data, start, 1.8, fragmented=fragmented)
            wanted = list(zip([0, pytest.approx(1 - float(first))], titles, strict=False))
            assert told_by_ffmpeg(out)[1] == wanted
            listed = clip.periods[0].movie.chapters
            assert [(one.seconds, one.title) for one in listed] == wanted


def test_a_view_says_what_it_leaves_out():
    hints = (FIXTURES / "rtp-hints.mp4").read_bytes()
    codes = (FIXTURES / "timecode.mov").read_bytes()
    none = film([(7, 50)], scale=25, duration=0, frames=25)
    for data, kind, words in (
        (hints, "clip", ["track 3 (hint)", "track 4 (hint)"]),
        (hints, "fragmented", ["track 3 (hint)", "track 4 (hint)"]),
        (codes, "fragmented", ["track 3 (timecode)"]),
        (codes, "clip", []),
        (codes, "faststart", []),
        (none, "clip", ["track 9 (timecode)"]),
    ):
        index = fragdex.index(data, exact=True)
        findings = described(index, kind, source=data).findings
        assert [one.partition(" is left out: ")[0] for one in findings] == words
    for name, words in (("timecode.mov", "track 3 (timecode)"), ("chapters.mp4", "track 3 (text)")):
        path = FIXTURES / name
        findings = fragdex.package(fragdex.index(path, exact=True), source=path).findings
        assert [one.partition(" is left out: ")[0] for one in findings] == [words]


def test_a_clip_of_whole_fragments_is_not_widened_by_its_timecode(fragmented_timecode):
    data = fragmented_timecode
    view, _, clip, _ = clipped(data, 1, 1.4, fragmented=True)
    assert clip.track(1).sample_count < 25
    assert [one.partition(" is left out: ")[0] for one in view.findings] == ["track 2 (timecode)"]
    # made of samples, it has one
    view, out, _, _ = clipped(data, 1, 1.4)
    assert view.findings == ()
    assert told_by_ffmpeg(out)[0] == "01:00:01:00"


@pytest.fixture(scope="module")
def fragmented_timecode():
    """A fragmented QuickTime film whose timecode is one sample in the first fragment."""
    out = io.BytesIO()
    with (
        av.open(str(FIXTURES / "timecode.mov")) as film,
        av.open(out, "w", "mov", {"movflags": "frag_keyframe+empty_moov"}) as copy,
    ):
        pictures = film.streams.video[0]
        stream = copy.add_stream_from_template(pictures)
        stream.metadata["timecode"] = "01:00:00:00"
        for packet in film.demux(pictures):
            if packet.dts is not None:
                packet.stream = stream
                copy.mux(packet)
    return out.getvalue()
