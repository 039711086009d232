"""The laws of views: any range, a size known beforehand, the same bytes, never a mixture."""

import hashlib
import os
import random
import re
from datetime import timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fragdex
from fragdex.byterange import ByteRange
from fragdex.errors import (
    BuildError,
    FragdexError,
    NoSyncSample,
    SourceChanged,
    SourceNotFound,
    TruncatedInput,
)
from fragdex.muxing.kinds import described
from fragdex.muxing.view import sizes_of
from fragdex.sources import Source
from fragdex.testing import movie
from strategies.files import files

FIXTURES = Path(__file__).parents[2] / "fixtures"
KINDS = ("faststart", "fragmented", "clip", "tracks", "init", "segment", "timeline")
MOVIES = st.builds(
    movie,
    st.integers(1, 12),
    tracks=st.integers(1, 3),
    samples=st.integers(1, 5),
    fps=st.integers(1, 30),
    reordered=st.booleans(),
    edit=st.none() | st.integers(0, 9000),
    fragmented=st.booleans(),
)
FILES = [
    path
    for path in sorted(FIXTURES.iterdir())
    if path.suffix in {".mp4", ".m4a", ".mov", ".3gp"} and not path.name.startswith("cut-")
]


HIDDEN = "edit list hides all|none of the samples|no track shows anything after time 0"


def made(data, kind="fragmented", **options):
    try:
        return described(fragdex.index(data, exact=True), kind, source=data, **options)
    except NoSyncSample as error:
        assume(re.search(HIDDEN, str(error)) is None)
        raise


@pytest.mark.parametrize("kind", KINDS)
def test_a_film_whose_edit_list_hides_all_of_it_is_refused_as_that(kind):
    data = movie(1, samples=1, fps=1, edit=1000)
    with pytest.raises(NoSyncSample, match=HIDDEN):
        described(fragdex.index(data, exact=True), kind, source=data)


def hashes(data, track):
    places = zip(track.samples.offset.tolist(), track.samples.size.tolist(), strict=True)
    return [hashlib.md5(data[at : at + size]).hexdigest() for at, size in places]


class Counted(Source):
    """Bytes whose reads are noted."""

    def __init__(self, data):
        super().__init__("counted", size=len(data))
        self.data, self.ranges = data, []

    def read_up_to(self, range):
        self.ranges.append(self._spend(range))
        return self.data[range.start : range.stop]


@given(MOVIES, st.sampled_from(KINDS), st.data())
def test_any_range_is_that_of_the_whole(data, kind, draw):
    view = made(data, kind, segment_duration=draw.draw(st.sampled_from([None, 0.1, 1, 4])))
    whole = view.read(source=data)
    assert len(whole) == view.size == sizes_of(view.parts())
    for _ in range(5):
        a, b = sorted(draw.draw(st.integers(0, view.size + 3)) for _ in range(2))
        assert view.read(ByteRange(a, b), source=data) == whole[a:b]
    with view.open(source=data) as file:
        at = draw.draw(st.integers(0, view.size))
        file.seek(at)
        assert file.read(7) == whole[at : at + 7]


@given(MOVIES)
def test_every_sample_once_with_its_times(data):
    source = fragdex.index(data, exact=True)
    view = made(data)
    copy = view.read(source=data)
    own = fragdex.index(copy, exact=True)
    assert not [f for f in own.findings if f.code != "sync-reordered"]
    kept = {track.id for track in own.tracks}
    for old in source.tracks:
        if old.id not in kept:
            (named,) = (one for one in view.findings if f"track {old.id} " in one)
            assert not old.sample_count or re.search(HIDDEN, named)
            continue
        new = own.track(old.id)
        assert hashes(copy, new) == hashes(data, old)
        shown = old.samples.cts + round(old.shift)
        assert (new.samples.cts + round(new.shift)).tolist() == shown.tolist()
        assert (new.samples.cts >= new.samples.dts).all()
        assert new.samples.sync.tolist() == old.samples.sync.tolist()


@given(files(), st.sampled_from(KINDS))
def test_odd_files_are_told_or_right(file, kind):
    index = fragdex.index(file.data, exact=True)
    try:
        view = described(index, kind, source=file.data)
    except (FragdexError, IndexError):
        return
    try:
        assert len(view.read(source=file.data)) == view.size
    except TruncatedInput:
        assert any(f.code in {"truncated", "data-outside"} for f in index.findings)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_fixtures(path):
    data = path.read_bytes()
    index = fragdex.index(path, exact=True)
    try:
        view = fragdex.view(index)
    except (BuildError, NoSyncSample):
        return  # several periods, or no samples at all
    copy = view.read()
    own = fragdex.index(copy, exact=True)
    for new in own.tracks:
        old = index.track(new.id)
        assert hashes(copy, new) == hashes(data, old)
        if old.start is not None and new.start is not None:
            assert abs(old.start.fraction - new.start.fraction) <= 1 / min(old.timescale, 1000)
            assert abs(old.stop.fraction - new.stop.fraction) <= 1 / min(old.timescale, 1000)
    generator = random.Random(7)
    for _ in range(20):
        a, b = sorted(generator.randrange(view.size) for _ in range(2))
        assert view.read(ByteRange(a, b)) == copy[a:b]


# FFmpeg shows pictures of fragments with negative composition offsets late, joins raw sound at
# will, follows base offsets that lead nowhere, and takes partial sync samples (stps) for others.
OTHERWISE = {
    *("frag-all-sync", "frag-negative-cts", "frag-prft", "frag-cmaf", "frag-tfdt-over-32-bits"),
    *("frag-hvc1", "frag-global-sidx-stale-base", "mulaw", "mpeg2"),
}
PLAIN = [path for path in FILES if path.stem not in OTHERWISE and "pcm" not in path.stem]


@pytest.mark.parametrize("path", PLAIN, ids=lambda path: path.stem)
def test_ffmpeg_sees_the_same_packets(path):
    av = pytest.importorskip("av")

    def packets(what):
        with av.open(what) as container:
            by_stream = {}
            for packet in container.demux():
                kind = packet.stream.type
                if packet.size and packet.pts is not None and kind in {"video", "audio"}:
                    time = round(float(packet.pts * packet.time_base), 3)
                    row = (time, hashlib.md5(bytes(packet)).hexdigest(), packet.is_keyframe)
                    by_stream.setdefault(packet.stream.index, []).append(row)
            return by_stream

    try:
        view = fragdex.view(fragdex.index(path, exact=True))
    except (BuildError, NoSyncSample):
        return
    with view.open() as file:
        copy = packets(file)
    source = packets(str(path))
    for stream, old in source.items():
        assert [p[1:] for p in copy[stream]] == [p[1:] for p in old]
        apart = [a[0] - b[0] for a, b in zip(copy[stream], old, strict=True)]
        assert max(map(abs, apart)) < 0.0015


def test_size_and_etag_need_no_media():
    data = movie(40, tracks=2, samples=25)
    source = Counted(data)
    index = fragdex.index(data, exact=True)
    view = fragdex.view(index, source=source)
    assert view.size > len(data) // 2
    assert view.etag.startswith('"')
    init = [(part.start, part.stop) for part in index.periods[0].init]
    assert [(part.start, part.stop) for part in source.ranges] == init


def test_a_range_in_the_middle_makes_the_boxes_that_it_touches(monkeypatch):
    from fragdex.muxing.segments import Fragments

    numbers = []
    parts = Fragments.parts
    monkeypatch.setattr(
        Fragments, "parts", lambda self, number: numbers.append(number) or parts(self, number)
    )
    data = movie(200, samples=5, fps=5)
    view = made(data, segment_duration=1)
    view.read(ByteRange.of(view.size // 2, 10), source=data)
    assert len(numbers) == 1


def test_a_range_of_a_copy_looks_at_few_of_its_parts():
    data = movie(3000, tracks=2, samples=1, fps=5)
    view = made(data, "tracks")
    numbers = []
    make = view.make
    object.__setattr__(view, "make", lambda number: numbers.append(number) or make(number))
    view.read(ByteRange.of(view.size // 2, 10), source=data)
    assert len(numbers) == 1
    assert len(view.starts) > 5


def test_the_same_recipe_has_one_tag():
    data = movie(20, samples=5)
    tags = {made(data, segment_duration=s).etag for s in (1, 1.0, "1")}
    assert len(tags) == 1
    others = {
        made(data, segment_duration=2).etag,
        made(data, "faststart").etag,
        made(data, "clip").etag,
    }
    assert not tags & others
    assert len(others) == 3


@given(MOVIES, st.sampled_from([0.2, 1, 3.3, 10]))
def test_segments_are_the_fragments_of_the_file(data, seconds):
    view = made(data, segment_duration=seconds)
    whole = fragdex.index(view.read(source=data), exact=True)
    index = fragdex.index(data, exact=True)
    fragments = whole.tracks[0].fragments
    init = described(index, "init", source=data, segment_duration=seconds).read(source=data)
    pieces = [
        described(index, "segment", source=data, segment_duration=seconds, number=n).read(
            source=data
        )
        for n in range(len(fragments))
    ]
    with pytest.raises(IndexError):
        described(index, "segment", source=data, segment_duration=seconds, number=len(fragments))
    joined = fragdex.index(b"".join([init, *pieces]), exact=True)
    kept = {track.id for track in whole.tracks}
    for old in index.tracks:
        if old.id not in kept:
            assert any(f"track {old.id} " in sentence for sentence in view.findings)
            continue
        times = joined.track(old.id).samples.cts + round(joined.track(old.id).shift)
        assert times.tolist() == (old.samples.cts + round(old.shift)).tolist()


def test_fragments_last_about_as_long_as_wanted():
    data = movie(30, samples=10, fps=10)  # a sync sample each second
    for seconds, lengths in ((1, {1}), (4, {4, 2}), (2.4, {2}), (2.6, {3}), (100, {30})):
        view = made(data, segment_duration=seconds).read(source=data)
        track = fragdex.index(view, exact=True).track(1)
        starts = (track.fragments.cts_min / track.timescale).tolist()
        assert {b - a for a, b in pairwise([*starts, 30])} <= lengths


def test_faststart_moves_the_moov_and_nothing_else():
    for name in ("moov-last", "faststart", "hybrid"):
        path = FIXTURES / f"{name}.mp4"
        data = path.read_bytes()
        index = fragdex.index(path, exact=True)
        copy = fragdex.view(index, "faststart").read()
        assert copy.index(b"moov") < copy.index(b"mdat")
        if data.index(b"moov") < data.index(b"mdat"):
            assert copy == data
        own = fragdex.index(copy, exact=True)
        for old in index.tracks:
            assert hashes(copy, own.track(old.id)) == hashes(data, old)


def test_a_source_that_changed_gives_no_bytes(tmp_path):
    path = tmp_path / "movie.mp4"
    data = movie(40, samples=25)
    path.write_bytes(data)
    view = fragdex.view(fragdex.index(path, exact=True))
    whole = view.read()
    with view.open() as file:
        assert file.read(100) == whole[:100]
        path.write_bytes(data[:-5] + b"other")
        os.utime(path, ns=(1, 1))
        with pytest.raises(SourceChanged):
            file.read(1 << 20)
    with pytest.raises(SourceChanged):
        view.read(ByteRange(0, 10_000))
    path.unlink()
    with pytest.raises(SourceNotFound):
        view.read(ByteRange(0, 10_000))


def test_what_cannot_be_said_is_refused():
    data = movie(2)
    with pytest.raises(ValueError, match="no kind 'other': expected one of faststart"):
        made(data, "other")
    with pytest.raises(ValueError, match="longer than 0 s"):
        made(data, segment_duration=0)
    with pytest.raises(FragdexError, match="no track 9"):
        made(data, tracks=[9])
    with pytest.raises(SourceNotFound, match="source="):
        fragdex.view(fragdex.index(data, exact=True))


def test_no_sync_sample_at_all_is_told():
    data = movie(3, samples=4)
    index = fragdex.index(data, exact=True)
    index.track(1).samples.sync[:] = False
    with pytest.raises(NoSyncSample, match="no sync sample"):
        fragdex.view(index, source=data)


def test_one_sync_sample_in_an_hour_is_one_fragment():
    data = movie(1, samples=3600, fps=1)
    view = made(data)
    own = fragdex.index(view.read(source=data), exact=True)
    assert len(own.track(1).fragments) == 1
    assert np.diff(own.track(1).samples.dts).min() > 0


def test_a_clip_takes_times_of_any_form():
    data = movie(8, samples=5, fps=5)
    asked = [("1.5", "0:03"), (1.5, 3), (timedelta(seconds=1.5), Fraction(3))]
    views = [made(data, "clip", start=start, stop=stop) for start, stop in asked]
    assert len({view.read(source=data) for view in views}) == 1
    assert len({view.etag for view in views}) == 1
