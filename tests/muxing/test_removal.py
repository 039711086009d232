"""A film without a part of it: what stays is shown as before, what goes is named, or is gone."""

import hashlib
import io
from fractions import Fraction
from itertools import pairwise, takewhile
from math import inf

import numpy as np
import pytest

import fragdex
from fragdex.errors import BuildError, FragdexError, NoSyncSample
from fragdex.fragments.table import SampleTable
from fragdex.seeking.numbering import Numbering
from fragdex.testing import movie
from muxing.agreement import decoded_pictures
from oracle.media_files import fixture_files, init_of

av = pytest.importorskip("av")
FILES = fixture_files()
DECODED = ("faststart.mp4", "frag-hevc-aac.mp4", "frag-negative-cts.mp4", "av1-opus.mp4")


def digests(data, samples: SampleTable):
    places = zip(samples.offset.tolist(), samples.size.tolist(), strict=True)
    return [hashlib.md5(data[start : start + size]).hexdigest() for start, size in places]


def shown(data, track):
    """(time, digest) of each picture that is shown, in their order."""
    samples = track.samples
    numbers = Numbering(track, samples, size=len(data))
    known = digests(data, samples)
    times = [Fraction(tick, numbers.timescale) for tick in numbers.ticks.tolist()]
    return list(zip(times, (known[n] for n in numbers.sample.tolist()), strict=True))


def films():
    """(name, bytes, index) of fixtures that a progressive file of their own could hold."""
    for name, path in FILES.items():
        data = path.read_bytes()
        try:
            index = fragdex.index(data, exact=True, init=init_of(name) or None)
        except FragdexError:
            continue
        track = index.video
        has_init = len(index.periods) == 1 and index.periods[0].init
        if has_init and track is not None and track.sample_count > 6:
            yield name, data, index


def middle(pictures):
    """A span of the middle third, from a picture to a picture."""
    first, last = len(pictures) // 3, 2 * len(pictures) // 3
    return first, last, (pictures[first][0], pictures[last][0])


def removed(index, data, span):
    """The film without a span; None where what the film is makes that impossible."""
    try:
        return fragdex.clip(index, -inf, without=[span], source=data)
    except NoSyncSample:
        if sum(index.video.samples.sync.tolist()) < 3:
            return None
        raise
    except BuildError as error:
        if "fragments" in str(error):
            return None
        raise


def rest(pictures, first, last, kept):
    """Those around a span of which an output shows as many: a few next to it may be gone, too."""
    alike = (one[1] == other[1] for one, other in zip(pictures[:first], kept, strict=False))
    before = sum(takewhile(bool, alike))
    behind = len(kept) - before
    assert behind <= len(pictures) - last
    return pictures[:before] + pictures[len(pictures) - behind :]


def test_nothing_of_a_span_is_left_and_what_stays_is_shown_as_before():
    """Every fixture: no sample of the span of any track; each picture around it at its time."""
    shorter = exact = 0
    for name, data, index in films():
        pictures = shown(data, index.video)
        if len(pictures) < 6:
            continue
        first, last, span = middle(pictures)
        view = removed(index, data, span)
        if view is None:
            continue
        out = view.read()
        after = fragdex.index(out, exact=True)
        edits = [one.track for one in after.findings if one.code == "many-edits"]
        assert {after.track(one).kind for one in edits} <= {"timecode"}, name
        got = shown(out, after.video)
        wanted = rest(pictures, first, last, got)
        assert [one for _, one in got] == [one for _, one in wanted], name
        gone = len(wanted) < len(pictures) - (last - first)
        assert gone == any(" – " in one for one in view.findings), (name, view.findings)
        # each side keeps its pace, and they follow each other
        steps = [b - a for (a, _), (b, _) in pairwise(got)]
        paces = {b - max(a, 0) for (a, _), (b, _) in pairwise(pictures)}
        slack = Fraction(2, after.video.timescale)
        assert all(any(abs(step - pace) <= slack for pace in paces) for step in steps), name
        shorter += gone
        exact += not gone
        for track in after.tracks:
            if track.kind == "timecode":
                continue
            source = index.track(track.id)
            known = digests(data, source.samples)
            begins = [source.presentation(int(at)).fraction for at in source.samples.cts]
            inside = {one for at, one in zip(begins, known, strict=True)
                      if span[0] <= at < span[1]}  # fmt: skip
            outside = {one for at, one in zip(begins, known, strict=True)
                       if not span[0] <= at < span[1]}  # fmt: skip
            assert not (inside - outside) & {*digests(out, track.samples)}, (name, track.id)
    assert shorter > 10
    assert exact > 3


@pytest.mark.parametrize("name", DECODED)
def test_another_decoder_sees_the_same_pictures(name):
    data = FILES[name].read_bytes()
    index = fragdex.index(data, exact=True)
    pictures = decoded_pictures(data, index.video.id)
    times = shown(data, index.video)
    first, last = len(times) // 3, 2 * len(times) // 3
    made = fragdex.clip(data, without=[(times[first][0], times[last][0])]).read()
    after = fragdex.index(made).video
    decoded = decoded_pictures(made, after.id)
    kept = rest(times, first, last, shown(made, after))
    wanted = [pictures[times.index(one)][1] for one in kept]
    assert [one for _, one in decoded] == wanted
    assert len(wanted) > 10


def test_several_spans_in_any_order():
    data = movie(8, samples=5, fps=5, tracks=2)
    pictures = [one for _, one in shown(data, fragdex.index(data).video)]
    made = fragdex.clip(data, without=[(5, "0:06"), (1, 2), (1.6, 2.4)]).read()
    wanted = pictures[:5] + pictures[15:25] + pictures[30:]
    assert [one for _, one in shown(made, fragdex.index(made).video)] == wanted


def test_pictures_that_are_not_presented_take_nothing_with_them():
    """A second track of pictures, disabled as FFmpeg writes it, with one sync sample in all."""
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        for group in (5, 100):
            stream = container.add_stream("libx264", rate=10)
            stream.width = stream.height = 64
            stream.options = {"x264-params": f"keyint={group}:scenecut=0:bframes=0"}
        for number in range(20):
            picture = np.full((96, 64), 10 * number, np.uint8)
            for stream in container.streams:
                container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, format="yuv420p")))
        for stream in container.streams:
            container.mux(stream.encode())
    index = fragdex.index(file.getvalue(), exact=True)
    assert [bool(track.info.auxiliary) for track in index.tracks] == [False, True]
    view = fragdex.clip(index, without=[(0.5, 1)], source=file.getvalue())
    after = fragdex.index(view.read())
    assert after.video.stop.seconds == 1.5
    assert not any(" – " in one for one in view.findings)


def test_what_cannot_be_removed():
    data = movie(4, samples=5, fps=5)
    with pytest.raises(ValueError, match="must end"):
        fragdex.clip(data, without=[(2, 1)])
    with pytest.raises(NoSyncSample, match="nothing would be left"):
        fragdex.clip(data, without=[(0, 3), (2, 9)])
    with pytest.raises(BuildError, match="fragments"):
        fragdex.clip(FILES["frag-encrypted.mp4"], without=[(0.2, 0.4)])


def test_nothing_removed_is_everything():
    data = FILES["faststart.mp4"].read_bytes()
    made = fragdex.clip(data, without=[(50, 60)]).read()
    tracks = [fragdex.index(one).video for one in (data, made)]
    assert [one for _, one in shown(data, tracks[0])] == [one for _, one in shown(made, tracks[1])]
