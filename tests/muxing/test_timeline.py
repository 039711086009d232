"""Files one behind the other: every sample once, at its file's place, and nothing hidden shown."""

import hashlib
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import fragdex
from fragdex.byterange import ByteRange
from fragdex.errors import BuildError, FragdexError, NoSyncSample, SourceChanged
from fragdex.testing import movie

FIXTURES = Path(__file__).parents[2] / "fixtures"


MOVIES = st.builds(
    movie,
    st.integers(1, 6),
    samples=st.integers(1, 5),
    fps=st.integers(1, 30),
    reordered=st.booleans(),
    edit=st.none() | st.integers(0, 9000),
    fragmented=st.booleans(),
)
TITLES = st.lists(MOVIES, min_size=1, max_size=4)
SOUND = st.lists(
    st.builds(movie, st.integers(1, 6), tracks=st.integers(2, 3), fragmented=st.booleans()),
    min_size=2,
    max_size=4,
)


def joined(files, **options):
    indexes = [fragdex.index(data, exact=True) for data in files]
    try:
        return fragdex.join(indexes, source=list(files), **options)
    except NoSyncSample as error:
        assume("hides all" not in str(error))
        raise


def hashes(data, samples):
    places = zip(samples.offset.tolist(), samples.size.tolist(), strict=True)
    return [hashlib.md5(data[at : at + size]).hexdigest() for at, size in places]


@given(TITLES, st.data())
def test_any_range_is_that_of_the_whole(files, draw):
    view = joined(files, segment_duration=draw.draw(st.sampled_from([None, 0.1, 1, 4])))
    whole = view.read(source=files)
    assert len(whole) == view.size
    for _ in range(5):
        a, b = sorted(draw.draw(st.integers(0, view.size + 3)) for _ in range(2))
        assert view.read(ByteRange(a, b), source=files) == whole[a:b]


@given(TITLES)
def test_every_sample_once_with_its_times(files):
    view = joined(files).read(source=files)
    index = fragdex.index(view, exact=True)
    assert not [f for f in index.findings if f.code != "sync-reordered"]
    new = index.track(1)
    shown = new.samples.cts + round(new.shift)
    tick = Fraction(1, new.timescale)
    at, reached = 0, Fraction(0)
    for number, data in enumerate(files):
        old = fragdex.index(data, exact=True).track(1)
        many = len(old.samples)
        mine = slice(at, at + many)
        assert hashes(view, new.samples.rows(mine)) == hashes(data, old.samples)
        times = [
            Fraction(cts + round(old.shift), old.timescale) for cts in old.samples.cts.tolist()
        ]
        first = max(min(times), 0)
        moved = [Fraction(t, new.timescale) - reached + first for t in shown[mine].tolist()]
        # hidden pictures take a tick each; the last one may be on show where the file begins
        hidden = sorted(t for t in times if t < 0 and number and reached)
        if hidden and 0 not in times:
            hidden.pop()
        for was, is_ in zip(times, moved, strict=True):
            wanted = was if was >= 0 or not (number and reached) else Fraction(0)
            if was in hidden:
                wanted = (hidden.index(was) - len(hidden)) * tick
            assert abs(wanted - is_) <= tick
        at += many
        reached += old.stop.fraction - first
    assert at == len(new.samples)
    assert (np.diff(new.samples.dts) > 0).all()
    assert (new.samples.cts >= new.samples.dts).all()


@given(SOUND)
def test_sound_stays_with_its_pictures(files):
    """Access units are never lost where nothing hides them, and each keeps its distance."""
    view = joined(files)
    index = fragdex.index(view.read(source=files), exact=True)
    sources = [fragdex.index(data, exact=True) for data in files]
    pictures = index.track(1)
    begins, at = [], 0
    for source in sources:
        begins.append(Fraction(int(pictures.samples.cts[at]), pictures.timescale))
        at += len(source.track(1).samples)
    for lane in index.tracks[1:]:
        times = (lane.samples.cts + round(lane.shift)).tolist()
        expected = [
            begin + Fraction(cts, 48000)
            for begin, source in zip(begins, sources, strict=True)
            for track in source.tracks
            if track.id == lane.id
            for cts in track.samples.cts.tolist()
        ]
        assert len(times) == len(expected)
        for time, wanted in zip(times, expected, strict=True):
            assert abs(Fraction(time, lane.timescale) - wanted) <= Fraction(1, lane.timescale)


def test_priming_is_cut_and_the_end_is_not_late():
    """Of AAC with priming, the second file's is left out: the sound goes on with its pictures."""
    path = FIXTURES / "faststart.mp4"
    index = fragdex.index(path, exact=True)
    data = fragdex.join([index, index]).read()
    own = fragdex.index(data, exact=True)
    sound, source = own.track(2), index.track(2)
    assert source.samples.cts[0] + source.shift < 0
    media = path.read_bytes()
    assert hashes(data, sound.samples) == [
        *hashes(media, source.samples),
        *hashes(media, source.samples)[1:],
    ]
    assert own.track(1).stop.seconds == sound.stop.seconds == 4.0


@pytest.mark.parametrize("name", ["faststart", "hevc-aac", "open-gop", "frag-vp9-opus"])
def test_ffmpeg_shows_the_pictures_of_both(name):
    av = pytest.importorskip("av")

    def pictures(what):
        with av.open(what) as container:
            return [
                (round(float(frame.time), 3), hashlib.md5(frame.to_ndarray().data).hexdigest())
                for frame in container.decode(video=0)
            ]

    index = fragdex.index(FIXTURES / f"{name}.mp4", exact=True)
    with fragdex.join([index, index]).open() as file:
        shown = pictures(file)
    source = pictures(str(FIXTURES / f"{name}.mp4"))
    assert [picture for _, picture in shown] == [picture for _, picture in source] * 2
    later = [at for at, _ in shown[len(source) :]]
    apart = {round(at - first, 3) for at, (first, _) in zip(later, source, strict=True)}
    assert max(apart) - min(apart) < 0.0015


def test_hidden_pictures_of_a_later_file_are_shown_for_a_tick():
    """A clip that begins between sync samples: what its edit list hides takes no time."""
    path = FIXTURES / "faststart.mp4"
    index = fragdex.index(path, exact=True)
    clip = fragdex.clip(index, start=0.8, stop=1.8).read()
    part = fragdex.index(clip, exact=True)
    hidden = int((part.track(1).samples.cts + part.track(1).shift < 0).sum())
    assert hidden
    data = fragdex.join([index, part], source=[path, clip]).read(source=[path, clip])
    track = fragdex.index(data, exact=True).track(1)
    shown = np.sort(track.samples.cts + round(track.shift))
    joint = 2 * track.timescale
    assert shown[50:].tolist()[: hidden + 2] == [
        *range(joint - hidden, joint),
        joint,
        joint + track.timescale // 25,
    ]


FILMS = sorted(path.name for path in FIXTURES.glob("*.mp4"))


def clips_of(film, *edges):
    """Clips of a film between parts of its length, one after the other: bytes and index."""
    index = fragdex.index(film, exact=True)
    if index.duration is None:
        pytest.skip("nothing says how long it is")
    try:
        times = [edge * Fraction(index.duration) for edge in edges]
        clips = [
            fragdex.clip(index, a, b, source=film).read(source=film) for a, b in pairwise(times)
        ]
        whole = joined(clips).read(source=clips)
    except FragdexError as error:
        if "would begin before" in str(error):
            raise
        pytest.skip(str(error))
    return whole, fragdex.index(whole, exact=True)


@pytest.mark.parametrize("name", FILMS)
def test_what_was_cut_is_joined_again(name):
    """Each access unit of sound once, and never two pictures at a time."""
    cut = Fraction(Random(name).randint(20, 80), 100)
    try:
        film = (FIXTURES / name).read_bytes()
        source, (data, index) = fragdex.index(film, exact=True), clips_of(film, 0, 1)
    except FragdexError as error:
        pytest.skip(str(error))
    again, parts = clips_of(film, 0, cut, 1)
    for track in parts.tracks:
        new, old = track.samples, index.track(track.id).samples
        if track.kind == "audio":
            assert hashes(again, new) == hashes(data, old)
        elif track.kind == "video":
            own = source.track(track.id).samples.cts
            assert len(new) - len(np.unique(new.cts)) <= len(own) - len(np.unique(own))


@pytest.mark.parametrize("name", ["negative-cts.mp4", "mpeg1-eac3.mp4", "faststart.mp4"])
def test_clips_shorter_than_an_access_unit_are_joined_again(name):
    """… which both neighbours of such a clip may have, too: each is there once, at its time."""
    film = (FIXTURES / name).read_bytes()
    data, index = clips_of(film, 0, 1)
    for cut in (Fraction(1, 100), Fraction(14, 100), Fraction(28, 100)):
        edges = [0, cut, cut + Fraction(1, 100), cut + Fraction(2, 100), Fraction(9, 10), 1]
        again, parts = clips_of(film, *edges)
        for track in parts.tracks:
            if track.kind == "audio":
                new, old = track.samples, index.track(track.id).samples
                assert hashes(again, new) == hashes(data, old)
                assert np.abs(np.diff(new.cts) - np.diff(old.cts)).max() < track.timescale // 200


def test_a_file_of_sound_that_has_no_access_unit_of_its_own_is_named():
    film = (FIXTURES / "aac.m4a").read_bytes()
    index = fragdex.index(film, exact=True)
    clips = [
        fragdex.clip(index, a, b, source=film).read(source=film)
        for a, b in ((0, 0.20), (0.20, 0.21), (0.21, 0.5))
    ]
    with pytest.raises(BuildError, match=r"file 2 .*shorter than an access unit"):
        joined(clips)


@pytest.mark.parametrize("name", ["frag-text", "frag-ttml", "text"])
def test_texts_are_shown_with_the_pictures_of_their_own_file(name):
    """… though they begin before these, or last longer."""
    film = (FIXTURES / f"{name}.mp4").read_bytes()
    view = joined([film, film])
    index, source = fragdex.index(view.read(source=[film] * 2), exact=True), fragdex.index(film)

    def shown(index, kind):
        track = next(track for track in index.tracks if track.kind == kind)
        ticks = track.samples.cts + round(track.shift)
        return ticks / track.timescale, (ticks + track.samples.duration) / track.timescale

    begins, ends = shown(source, "video")
    begin, end = begins.min(), ends.max()
    pictures, _ = shown(index, "video")
    second = pictures[len(begins) :].min()
    own, until = shown(source, "text")
    texts, stops = shown(index, "text")
    lasting = until > own
    whole = lasting & (own >= begin) & (until <= end)
    for at in (pictures.min(), second):
        for first, last in zip(own[whole], until[whole], strict=True):
            here = np.abs(texts - (first - begin + at)) < 0.0015
            assert np.abs(stops[here] - (last - begin + at)).min() < 0.0015
    assert (stops[texts < second - 0.0015] < second + 0.0015).all()
    cut = ((until > end) | (own < begin))[lasting].any()
    assert cut == any("outside of its pictures" in one for one in view.findings)


def test_gaps_stay_or_close_by_choice():
    files = [movie(2, samples=25), movie(2, samples=25)]

    def times(**options):
        view = joined(files, **options)
        track = fragdex.index(view.read(source=files), exact=True).track(1)
        starts = track.fragments.cts_min / track.timescale
        ends = track.fragments.cts_end / track.timescale
        return starts.tolist(), ends.tolist()

    assert times(segment_duration=1) == ([0, 1, 2, 3], [1, 2, 3, 4])
    assert times(segment_duration=1, starts=[1, "0:08"]) == ([1, 2, 8, 9], [2, 3, 9, 10])
    with pytest.raises(BuildError, match=r"file 2 would begin before file 1 has ended.*2.000 s"):
        joined(files, starts=[0, 1.5])
    with pytest.raises(BuildError, match="would begin before"):
        joined(files, starts="source")
    for starts, message in (([0], "1 starts for 2"), (["no", 1], "no"), ([0, -1], "0 s or later")):
        with pytest.raises(ValueError, match=message):
            joined(files, starts=starts)


def test_recordings_of_one_clock_keep_their_times():
    first = FIXTURES / "faststart.mp4"
    later = FIXTURES / "start-7s.mp4"
    indexes = [fragdex.index(path, exact=True) for path in (first, later)]
    data = fragdex.join(indexes, starts="source").read()
    track = fragdex.index(data, exact=True).track(1)
    begin = indexes[1].track(1).start.seconds - indexes[0].track(1).start.seconds
    times = np.sort(track.samples.cts + round(track.shift)) / track.timescale
    many = len(indexes[0].track(1).samples)
    assert abs(times[many] - begin) < 1e-3
    assert begin > 5


def test_several_configurations_are_several_sample_entries():
    """Other picture sizes of one codec follow each other; other codecs and sound do not."""
    av = pytest.importorskip("av")
    names = ["faststart", "ntsc"]
    indexes = [fragdex.index(FIXTURES / f"{name}.mp4", exact=True) for name in names]
    view = fragdex.join(indexes, tracks=[1])
    moov = fragdex.boxes.parse(view.read(ByteRange(0, 4096)))[1]
    entries = moov.find("trak/mdia/minf/stbl/stsd").children
    assert len(entries) == 2
    sizes = []
    for index in indexes:
        with av.open(index.file.name) as container:
            sizes += [(f.width, f.height) for f in container.decode(video=0)]
    with view.open() as file, av.open(file) as container:
        assert [(f.width, f.height) for f in container.decode(video=0)] == sizes


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("hevc-aac", "expected avc1.*found h"),
        ("surround", "channels"),
    ],
)
def test_what_cannot_be_joined_is_named(other, message):
    indexes = [fragdex.index(FIXTURES / f"{name}.mp4", exact=True) for name in ("faststart", other)]
    with pytest.raises(BuildError, match=message) as caught:
        fragdex.join(indexes)
    assert other in str(caught.value)


def test_periods_of_one_file_are_a_timeline():
    data = movie(3) + movie(2)
    index = fragdex.index(data, exact=True)
    assert len(index.periods) == 2
    for number in (0, 1):
        period = fragdex.view(index, period=number, source=data)
        track = fragdex.index(period.read(source=data), exact=True).track(1)
        assert hashes(period.read(source=data), track.samples) == hashes(
            data, index.periods[number].track(1).samples
        )
    view = fragdex.join(index, source=data)
    track = fragdex.index(view.read(source=data), exact=True).track(1)
    assert len(track.samples) == 25
    with pytest.raises(BuildError, match=r"fixtures/two-inits.mp4, period 1 .*vp09"):
        fragdex.join(fragdex.index(FIXTURES / "two-inits.mp4", exact=True))


def test_the_same_recipe_has_one_tag_and_a_changed_file_none(tmp_path):
    names = [tmp_path / "a.mp4", tmp_path / "b.mp4"]
    for number, name in enumerate(names):
        name.write_bytes(movie(3 + number))
    indexes = [fragdex.index(name, exact=True) for name in names]
    view = fragdex.join(indexes)
    assert view.etag == fragdex.join(indexes, segment_duration="4").etag
    others = [
        fragdex.join(indexes[::-1]).etag,
        fragdex.join(indexes, starts=[0, 60]).etag,
        fragdex.join(indexes, segment_duration=1).etag,
    ]
    assert len({view.etag, *others}) == 4
    whole = view.read()
    names[1].write_bytes(movie(9))
    assert view.read(ByteRange(0, 900)) == whole[:900]  # of the first file alone
    with pytest.raises(SourceChanged):
        view.read()


def test_a_thousand_files_are_not_open_at_once(tmp_path):
    import resource

    data = movie(1)
    names = [tmp_path / f"{number}.mp4" for number in range(150)]
    for name in names:
        name.write_bytes(data)
    indexes = [fragdex.index(name, exact=True) for name in names]
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        view = fragdex.join(indexes)
        whole = view.read()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    track = fragdex.index(whole, exact=True).track(1)
    assert len(track.samples) == 150 * 5
    gaps = {b - a for a, b in pairwise(track.samples.dts.tolist())}
    assert gaps == {1000}


def test_several_indexes_are_for_timelines():
    index = fragdex.index(movie(1), exact=True)
    with pytest.raises(ValueError, match="one index"):
        fragdex.view([index, index])
    with pytest.raises(ValueError, match="at least one"):
        fragdex.join([])


def test_a_view_is_indexed_and_packaged_as_a_file():
    """A timeline as HLS and DASH: segments have the samples of its files."""
    files = [movie(3, tracks=2), movie(2, tracks=2)]
    view = joined(files)
    media = view.as_source(source=files)
    index = fragdex.index(media, exact=True)
    assert (index.file.etag, index.file.size) == (view.etag, view.size)
    package = fragdex.package(index, source=media, segment_duration=1)
    one = package.title.renditions[0]
    init = package[f"{one.name}/init.mp4"].read(source=media)
    names = [f"{one.name}/{segment.time}.m4s" for segment in one.segments]
    data = b"".join([init, *(package[name].read(source=media) for name in names)])
    table = fragdex.index(data, exact=True).track(1).samples
    sources = [fragdex.index(data, exact=True).track(1).samples for data in files]
    assert hashes(data, table) == [
        md5 for data, samples in zip(files, sources, strict=True) for md5 in hashes(data, samples)
    ]
    with pytest.raises(SourceChanged):
        package[names[0]].read(source=joined(files, starts=[0, 9]).as_source(source=files))


def test_a_view_of_named_files_needs_no_more(tmp_path):
    path = tmp_path / "movie.mp4"
    path.write_bytes(movie(4, fragmented=False))
    view = fragdex.view(fragdex.index(path))
    assert fragdex.index(view, exact=True).track(1).sample_count == 20
    assert fragdex.sources.md5(view).hex == hashlib.md5(view.read()).hexdigest()
