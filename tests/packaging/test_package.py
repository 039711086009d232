"""HLS and DASH: what playlists say of segments is what segments are."""

import re
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import find_all, parse
from fragdex.errors import BuildError, NoSyncSample
from fragdex.muxing.segments import STYP
from fragdex.packaging import playlists
from fragdex.testing import check_cmaf, check_dash, check_hls, movie

FIXTURES = Path(__file__).parents[2] / "fixtures"
MPD = "{urn:mpeg:dash:schema:mpd:2011}"
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
PLAYED = ["faststart", "moov-last", "frag-default-base", "hevc-aac", "audio-late", "video-late"]


def packaged(data, **options):
    try:
        return fragdex.package(fragdex.index(data, exact=True), source=data, **options)
    except NoSyncSample as error:
        assume("hides all" not in str(error))
        raise


def played(text):
    """(seconds, address) of the segments of a media playlist."""
    lines = text.decode().splitlines()
    segments = []
    for line, behind in pairwise(lines):
        if line.startswith("#EXTINF:"):
            segments.append((Fraction(line[8:].rstrip(",")), behind))
    return segments


def on_timeline(data):
    """Presentation times and ends, in ticks, of the samples of one track, less its edit list."""
    track = fragdex.index(data, exact=True).tracks[0]
    samples = track.samples
    shown = (samples.cts + round(track.shift)).tolist()
    return track, sorted(zip(shown, samples.duration.tolist(), strict=True))


@given(MOVIES, st.sampled_from([None, 0.3, 1, 4]))
@example(
    movie(12, samples=5, fps=30, edit=8999), 4
)  # 44 hidden pictures before one on show for a tick
def test_players_need_no_time_before_zero(data, seconds):
    """Browsers drop what is before 0, and all up to the next key picture with it."""
    index = fragdex.index(data, exact=True)
    package = packaged(data, segment_duration=seconds)
    for one in package.title.of("video"):
        pieces = [package[name].read(source=data) for _, name in played(package["v1.m3u8"].read())]
        init = package["v1/init.mp4"].read()
        track, rows = on_timeline(b"".join([init, *pieces]))
        scale = track.timescale
        own = index.track(one.track.id)
        was = (own.samples.cts + round(own.shift)).tolist()
        ends = [*sorted(was)[1:], max(was) + int(own.samples.duration[was.index(max(was))])]
        begun = [(max(at, 0), end) for at, end in zip(sorted(was), ends, strict=True) if end > 0]
        hidden = len(was) - len(begun)
        shown = [Fraction(at, scale) for at, _ in rows]
        assert shown[0] >= 0
        assert len(shown) == len(was)
        assert one.media.hidden == hidden
        # all that is hidden is over within half a millisecond; the rest is where it was
        assert all(at < Fraction(1, 2000) for at in shown[:hidden])
        for at, (real, _) in zip(shown[hidden:], begun, strict=True):
            assert 0 <= at - Fraction(real, own.timescale) <= Fraction(1, 2000)
        assert [at for at, _ in rows] == sorted({at for at, _ in rows})


@given(MOVIES, st.sampled_from([None, 0.3, 1, 4]))
def test_what_the_playlist_says_is_what_segments_are(data, seconds):
    package = packaged(data, segment_duration=seconds)
    for one in package.title.renditions:
        init = package[f"{one.name}/init.mp4"].read(source=data)
        segments = played(package[f"{one.name}.m3u8"].read(source=data))
        pieces = [package[name].read(source=data) for _, name in segments]
        track, whole = on_timeline(b"".join([init, *pieces]))
        end = Fraction(max(at + long for at, long in whole), track.timescale)
        # hidden samples at the beginning last as long as others
        reached = Fraction(int(one.edges[0]) + min(whole[0][0], 0), track.timescale)
        assert abs(sum(s for s, _ in segments) - (end - reached)) <= Fraction(1, 1_000_000)
        for number, ((lasts, name), piece) in enumerate(zip(segments, pieces, strict=True)):
            _, rows = on_timeline(init + piece)
            start = Fraction(rows[0][0], track.timescale)
            assert name == f"{one.name}/{max(rows[0][0], 0)}.m4s"
            if number:
                assert abs(start - reached) <= Fraction(1, 1_000_000)
            reached += lasts
            assert len(piece) == one.segments[number].size
            moofs = [box for box in parse(piece) if box.type == "moof"]
            # what begins a millisecond or more after the title has a fragment without samples first
            late = number == 0 and rows[0][0] - one.edges[0] > one.timescale // 1000
            first, last = one.made.firsts[number : number + 2]
            assert len(moofs) == last - first + late
            assert len(find_all(moofs, "moof/traf")) == len(moofs)
        assert set(package) >= {name for _, name in segments}


@given(MOVIES)
def test_the_manifest_names_the_same_segments(data):
    package = packaged(data, segment_duration=1)
    root = ET.fromstring(package["manifest.mpd"].read(source=data))
    seen = {}
    for representation in root.iter(f"{MPD}Representation"):
        time, names = 0, []
        for entry in representation.iter(f"{MPD}S"):
            time = int(entry.get("t", time))
            for _ in range(int(entry.get("r", 0)) + 1):
                names.append(f"{representation.get('id')}/{time}.m4s")
                time += int(entry.get("d"))
        seen[representation.get("id")] = names
    for one in package.title.renditions:
        listed = [name for _, name in played(package[f"{one.name}.m3u8"].read(source=data))]
        assert seen.pop(one.name) == listed
    assert not seen


@given(MOVIES)
def test_bandwidth_is_that_of_the_dearest_segment(data):
    package = packaged(data, segment_duration=1)
    text = package["master.m3u8"].read(source=data).decode()
    for line, uri in re.findall(r"#EXT-X-STREAM-INF:(.*)\n(.*)", text):
        peak = int(re.search(r"(?<!-)BANDWIDTH=(\d+)", line)[1])
        one = package.title.renditions[int(uri[1:-5]) - 1 if uri[0] == "v" else 0]
        target = max(1, int(max(s.seconds for s in one.segments) + Fraction(1, 2)))
        most = max(
            (8 * s.size / s.seconds for s in one.segments if 2 * s.seconds >= target), default=0
        )
        assert peak >= most


def test_an_iframe_playlist_ends_behind_the_first_picture():
    data = movie(6, samples=5, fps=5)
    package = packaged(data, segment_duration=1)
    text = package["v1-iframes.m3u8"].read(source=data).decode()
    assert "#EXT-X-I-FRAMES-ONLY" in text
    pairs = re.findall(r"#EXT-X-BYTERANGE:(\d+)@0\n(.*)", text)
    assert len(pairs) == 6
    for size, name in pairs:
        piece = package[name].read(source=data)
        samples = fragdex.index(package["v1/init.mp4"].read() + piece, exact=True).track(1).samples
        init = package["v1/init.mp4"].size
        assert int(samples.offset[0] + samples.size[0]) - init == int(size)


def test_names_that_are_not_there():
    package = packaged(movie(3), segment_duration=1)
    for name in (
        *("", "v1", "v2.m3u8", "v1/", "v1/init.mp5", "v1/1.m4s", "v1/01.m4s", "v1/00.m4s"),
        *("v1/-0.m4s", "v1/²/.m4s", "a1-iframes.m3u8", "v1/0.m4s/x", "../master.m3u8", "v1/²‎.m4s"),
    ):
        with pytest.raises(KeyError):
            package[name]


@pytest.mark.parametrize("growing", [False, True])
def test_it_is_a_mapping_and_is_saved_as_a_folder(tmp_path, growing):
    films = {}
    for name, size in (("low", 5), ("high", 10)):
        films[name] = tmp_path / f"{name}.mp4"
        films[name].write_bytes(movie(8, samples=size, fps=size))
    indexes = [fragdex.index(path, exact=True) for path in films.values()]
    package = fragdex.package(indexes, segment_duration=2, growing=growing)
    assert isinstance(package, Mapping)
    assert len(package) == len([*package]) == len(dict(package))
    assert "v2/init.mp4" in package
    assert "v3/init.mp4" not in package
    assert {package: 1}[package] == 1
    package.save(tmp_path / "a" / "b")
    package.save(tmp_path / "c", source=[*films.values()])
    for name, view in package.items():
        data = view.read()
        assert (tmp_path / "a" / "b" / name).read_bytes() == data
        assert (tmp_path / "c" / name).read_bytes() == data
    with pytest.raises(ValueError, match="1 sources are given for 2 files"):
        package.save(tmp_path / "d", source=[films["low"]])


def test_a_playlist_is_written_once(monkeypatch):
    package = packaged(movie(5, samples=5, fps=5), segment_duration=1)
    calls = []
    for name in ("multivariant", "manifest", "media_writer", "iframes"):
        plain = getattr(playlists, name)
        monkeypatch.setattr(
            playlists, name, lambda *args, plain=plain: (calls.append(1), plain(*args))[1]
        )
    lists = [name for name in package if name.endswith((".m3u8", ".mpd"))]
    first = {name: (package[name].read(), package[name].etag) for name in lists}
    assert len(calls) == len(lists)
    assert {name: (package[name].read(), package[name].etag) for name in lists} == first
    assert len(calls) == len(lists)


@given(MOVIES, st.sampled_from([None, 0.3, 1]))
def test_a_single_file_has_the_same_segments_as_ranges(data, seconds):
    package = packaged(data, segment_duration=seconds)
    single = packaged(data, segment_duration=seconds, single_file=True)
    assert not any(name.endswith((".m4s", "/init.mp4")) for name in single)
    for one in package.title.renditions:
        whole = single[f"{one.name}.mp4"].read(source=data)
        init = package[f"{one.name}/init.mp4"].read(source=data)
        assert whole.startswith(init)
        segments = [package[f"{one.name}/{s.time}.m4s"].read(source=data) for s in one.segments]
        plain = [piece.removeprefix(STYP) for piece in segments]
        text = single[f"{one.name}.m3u8"].read(source=data).decode()
        assert f'#EXT-X-MAP:URI="{one.name}.mp4",BYTERANGE="{len(init)}@0"' in text
        entries = re.findall(r"#EXT-X-BYTERANGE:(\d+)@(\d+)\n(.*)", text)
        assert {name for _, _, name in entries} == {f"{one.name}.mp4"}
        ranges = [slice(int(at), int(at) + int(size)) for size, at, _ in entries]
        assert [whole[part] for part in ranges] == plain
        assert ranges[-1].stop == len(whole)
        root = ET.fromstring(single["manifest.mpd"].read(source=data))
        base = root.find(f".//{MPD}Representation[@id='{one.name}']/{MPD}SegmentBase")
        first, last = map(int, base.get("indexRange").split("-"))
        assert base.find(f"{MPD}Initialization").get("range") == f"0-{len(init) - 1}"
        (sidx,) = parse(whole[first : last + 1])
        assert sidx["references"]["referenced_size"].tolist() == [len(piece) for piece in plain]
        assert last + 1 == ranges[0].start
        # the file alone is the track
        assert on_timeline(whole)[1] == on_timeline(b"".join([init, *plain]))[1]


def test_a_growing_title_has_no_single_files():
    with pytest.raises(ValueError, match="a file for each segment"):
        packaged(movie(3), single_file=True, growing=True)


FILES = [
    path
    for path in sorted(FIXTURES.iterdir())
    if path.suffix in {".mp4", ".m4a", ".mov"} and not path.name.startswith("cut-")
]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_rules_of_hls_and_cmaf(path):
    try:
        package = fragdex.package(fragdex.index(path, exact=True), segment_duration=1)
    except (BuildError, NoSyncSample):
        return  # no video and audio
    broken = check_hls(
        package["master.m3u8"].read().decode(), read=lambda name: package[name].read()
    )
    # a track that begins after the title has a first segment that begins before its media
    late = any(one.made.time[0] > one.edges[0] for one in package.title.renditions)
    assert [one for one in broken if not (late and one.rule == "extinf-real")] == []
    single = fragdex.package(fragdex.index(path, exact=True), segment_duration=1, single_file=True)
    broken = check_hls(single["master.m3u8"].read().decode(), read=lambda name: single[name].read())
    assert [one for one in broken if not (late and one.rule == "extinf-real")] == []
    text = single["manifest.mpd"].read().decode()
    assert check_dash(text, read=lambda name: single[name].read()) == []
    for rendition in package.title.renditions:
        init = package[f"{rendition.name}/init.mp4"].read()
        segments = [package[f"{rendition.name}/{s.time}.m4s"].read() for s in rendition.segments]
        broken = [one for one in check_cmaf(init, segments) if one.rule != "sample-duration"]
        assert broken == []


def test_a_trimmed_film(tmp_path):
    path = tmp_path / "trimmed.mp4"
    index = fragdex.index(FIXTURES / "faststart.mp4", exact=True)
    path.write_bytes(fragdex.clip(index, start=0.75).read())
    test_the_rules_of_hls_and_cmaf(path)
    index = fragdex.index(path, exact=True)
    (one,) = fragdex.package(index).title.of("video")
    assert one.media.hidden > 0
    # what cannot be seen makes no more pictures a second
    whole = fragdex.package(fragdex.index(FIXTURES / "faststart.mp4", exact=True))
    assert abs(one.frame_rate - whole.title.of("video")[0].frame_rate) < 1
    for growing in (False, "ended", True):
        package = packaged(movie(9, samples=5, fps=5, edit=3500), growing=growing)
        master = package["master.m3u8"].read().decode()
        # a film that grows is played from where it is live
        assert ("#EXT-X-START" in master) == (growing is not True)


def test_a_title_that_begins_late():
    package = fragdex.package(fragdex.index(FIXTURES / "frag-tfdt-over-32-bits.mp4", exact=True))
    text = package["v1.m3u8"].read()
    assert sum(seconds for seconds, _ in played(text)) < 3
    root = ET.fromstring(package["manifest.mpd"].read())
    template = next(root.iter(f"{MPD}SegmentTemplate"))
    first = next(root.iter(f"{MPD}S"))
    assert template.get("presentationTimeOffset") == first.get("t")
    assert root.get("mediaPresentationDuration").startswith("PT2")


def test_renditions_of_several_files():
    low, high = movie(8, samples=5, fps=5), movie(8, samples=10, fps=10)
    other = movie(5, samples=8, fps=5)
    package = fragdex.package(
        [fragdex.index(low, exact=True), fragdex.index(high, exact=True)],
        source=[low, high],
        segment_duration=2,
    )
    assert [one.name for one in package.title.renditions] == ["v1", "v2"]
    assert package.findings == ()
    names = [
        line for line in package["master.m3u8"].read().decode().splitlines() if line[:1] != "#"
    ]
    assert names == ["v1.m3u8", "v2.m3u8"]
    assert len(ET.fromstring(package["manifest.mpd"].read()).findall(f".//{MPD}AdaptationSet")) == 1
    uneven = fragdex.package(
        [fragdex.index(low, exact=True), fragdex.index(other, exact=True)],
        source=[low, other],
        segment_duration=2,
    )
    assert "do not agree" in uneven.findings[0]
    assert len(ET.fromstring(uneven["manifest.mpd"].read()).findall(f".//{MPD}AdaptationSet")) == 2


def test_sound_of_several_languages():
    path = FIXTURES / "frag-two-languages.mp4"
    package = fragdex.package(fragdex.index(path, exact=True))
    text = package["master.m3u8"].read().decode()
    media = re.findall(r"#EXT-X-MEDIA:(.*)", text)
    assert len(media) == 2
    assert len({re.search('NAME="(.*?)"', line)[1] for line in media}) == 2
    assert sum("DEFAULT=YES" in line for line in media) == 1
    assert re.search(r'#EXT-X-STREAM-INF:.*CODECS="avc1[^,]*,mp4a[^"]*".*AUDIO="audio"', text)


@pytest.mark.parametrize("name", PLAYED)
@pytest.mark.parametrize("playlist", ["master.m3u8", "v1.m3u8", "single"])
def test_ffmpeg_plays_it_on_the_timeline_of_the_file(name, playlist, tmp_path):
    av = pytest.importorskip("av")
    path = FIXTURES / f"{name}.mp4"
    single, playlist = playlist == "single", playlist.replace("single", "master.m3u8")
    package = fragdex.package(
        fragdex.index(path, exact=True), segment_duration=1, single_file=single
    )
    for part in package:
        (tmp_path / part).parent.mkdir(exist_ok=True)
        with (tmp_path / part).open("wb") as file:
            package[part].write_to(file)

    def packets(what, kind, **options):
        with av.open(str(what), options=options) as container:
            stream = next((s for s in container.streams if s.type == kind), None)
            return [
                (round(float(p.pts * p.time_base), 2), bytes(p))
                for p in container.demux(stream)
                if stream is not None and p.size
            ]

    for kind in ("video", "audio"):
        by_ffmpeg = packets(tmp_path / playlist, kind, allowed_extensions="ALL")
        if by_ffmpeg or playlist == "master.m3u8":
            assert by_ffmpeg == packets(path, kind)


def test_what_cannot_be_packaged_is_refused():
    with pytest.raises(BuildError, match="no samples of video or audio"):
        packaged(movie(0))
