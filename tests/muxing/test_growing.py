"""Packages of a file that grows: what is announced stays, to the byte."""

import re
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import build, make_box
from fragdex.errors import BuildError, FragdexError, NoSyncSample
from fragdex.testing import check_dash, check_hls, movie
from strategies.recordings import fragment_starts, recording, recordings

FIXTURES = Path(__file__).parents[2] / "fixtures"
MPD = "{urn:mpeg:dash:schema:mpd:2011}"
BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def lines(package, name):
    return package[name].read().decode().splitlines()


def announced(package, data):
    """Bytes of each media segment and initialization segment that a package names."""
    names = [name for name in package if name.endswith((".m4s", "init.mp4"))]
    return {name: package[name].read(source=data) for name in names}


def grown(whole, sizes, **options):
    """Packages of the first bytes of a file, with those bytes; none where nothing is complete."""
    index = None
    for size in sizes:
        data = whole[:size]
        try:
            index = fragdex.index(data, exact=True) if index is None else index.extend(data)
            yield data, fragdex.package(index, source=data, growing=True, **options)
        except FragdexError as error:
            text = str(error)
            reasons = ("complete", "no samples", "sync sample", "edit list hides all")
            assert any(one in text for one in reasons), text


MOVIES = st.builds(
    movie,
    st.integers(2, 8),
    tracks=st.integers(1, 2),
    samples=st.integers(1, 4),
    fps=st.integers(1, 5),
    reordered=st.booleans(),
    edit=st.none() | st.integers(0, 2000),
)


@given(MOVIES, st.sampled_from([None, 1, 3]), st.data())
def test_what_is_announced_is_what_the_whole_has(whole, seconds, data):
    sizes = sorted(data.draw(st.lists(st.integers(100, len(whole)), max_size=3)))
    try:
        ended = fragdex.package(
            fragdex.index(whole, exact=True),
            source=whole,
            segment_duration=seconds,
            growing="ended",
        )
    except NoSyncSample:
        reject()  # the edit list hides all of a track
    final = announced(ended, whole)
    plain = fragdex.package(
        fragdex.index(whole, exact=True), source=whole, segment_duration=seconds
    )
    assert announced(plain, whole) == final
    for part, package in grown(whole, [*sizes, len(whole)], segment_duration=seconds):
        now = announced(package, part)
        assert now.items() <= final.items()
        # a segment that was announced is read from the file as it is now
        assert announced(package, whole) == now
        for one in package.title.renditions:
            name = f"{one.name}.m3u8"
            mine, last = lines(package, name), lines(ended, name)
            assert mine == last[: len(mine)]
            assert (last[-1], "#EXT-X-ENDLIST" in mine) == ("#EXT-X-ENDLIST", False)
            assert "#EXT-X-PLAYLIST-TYPE:EVENT" in mine


@pytest.mark.parametrize(
    "name", ["frag-default-base", "frag-every-frame", "frag-text", "frag-hevc-aac"]
)
def test_files_that_really_grow(name, tmp_path):
    whole = (FIXTURES / f"{name}.mp4").read_bytes()
    path = tmp_path / "live.mp4"
    ended = fragdex.package(fragdex.index(whole, exact=True), source=whole, segment_duration=0.5)
    final = announced(ended, whole)
    index, seen, reached = None, {}, 0
    for size in range(len(whole) // 8, len(whole) + 1, len(whole) // 8):
        with path.open("ab") as file:
            file.write(whole[path.stat().st_size : size])
        try:
            index = fragdex.index(path, exact=True) if index is None else index.extend(path)
            package = fragdex.package(index, segment_duration=0.5, growing=True, began=BEGAN)
        except FragdexError:
            continue
        now = {name: package[name] for name in package if name.endswith((".m4s", "init.mp4"))}
        assert {name: view.read() for name, view in now.items()}.items() <= final.items()
        tags = {name: view.etag for name, view in now.items()}
        assert seen.items() <= tags.items()
        seen, reached = tags, reached + 1
        read = lambda name: package[name].read()  # noqa: B023, E731
        text = package["master.m3u8"].read().decode()
        broken = {one.rule for one in check_hls(text, read=read)}
        assert broken <= {"extinf-real", "target-exceeded"}
        mpd = package["manifest.mpd"].read()
        # how long the last one lasts, what follows would say
        assert {one.rule for one in check_dash(mpd, read=read)} <= {"duration-real"}
        root = ET.fromstring(mpd)
        assert root.get("type") == "dynamic"
        assert root.get("availabilityStartTime") == "2026-01-02T03:04:05.000Z"
        assert root.get("mediaPresentationDuration") is None
    assert reached


def test_the_target_duration_stays():
    whole = movie(12, samples=5, fps=5)
    targets = set()
    for _, package in grown(whole, range(800, len(whole), 700), segment_duration=2):
        (target,) = re.findall(r"TARGETDURATION:(\d+)", "\n".join(lines(package, "v1.m3u8")))
        targets.add(target)
    assert targets == {"2"}


def test_the_end_of_growth():
    data = movie(8, samples=5, fps=5)
    package = fragdex.package(fragdex.index(data, exact=True), source=data, growing="ended")
    assert lines(package, "v1.m3u8")[-1] == "#EXT-X-ENDLIST"
    root = ET.fromstring(package["manifest.mpd"].read())
    assert (root.get("type"), root.get("mediaPresentationDuration")) == ("static", "PT8S")


def test_nothing_is_complete_yet():
    data = movie(1, samples=5, fps=5)
    with pytest.raises(BuildError, match="no segment is complete"):
        fragdex.package(fragdex.index(data, exact=True), source=data, growing=True)


RECORDINGS = recordings(
    seconds=16, jumps=[0, 0, 0, 0, 1, 7, 20, 4000, 86400 * 365, -3, -1], fragments=(3, 8)
)


@given(RECORDINGS, st.sampled_from([None, 1, 4]), st.data())
def test_no_segment_exceeds_the_promised_target(whole, seconds, data):
    index = fragdex.index(whole, exact=True)
    if len(index.periods) > 1:
        reject()  # its clock began again
    starts = fragment_starts(index)
    sizes = data.draw(st.lists(st.sampled_from(starts), min_size=1, max_size=5))
    keeps_its_target(whole, seconds, sizes)


@pytest.mark.parametrize("seconds", [None, 1, 4])
def test_sound_that_begins_again_before_the_pictures_is_cut_at_its_gap(seconds):
    # the sound's sample nearest to the first picture behind the gap lies behind its own gap, too
    whole = recording(1, [(True, 5, 0, 0), (True, 1, 1, 0), (True, 14, 7, 0), (True, 9, 0, 0)])
    keeps_its_target(whole, seconds, fragment_starts(fragdex.index(whole, exact=True)))


def keeps_its_target(whole, seconds, sizes):
    """Segments stay as they were while a recording grows, and none is longer than promised."""
    index = fragdex.index(whole, exact=True)
    plain = fragdex.package(index, source=whole, segment_duration=seconds)
    final = announced(plain, whole)
    ended = fragdex.package(index, source=whole, segment_duration=seconds, growing="ended")
    assert announced(ended, whole) == final
    steps = list(grown(whole, sorted({*sizes, len(whole)}), segment_duration=seconds))
    for part, package in [*steps, (whole, ended)]:
        assert announced(package, part).items() <= final.items()
        for one in package.title.renditions:
            mine, last = lines(package, f"{one.name}.m3u8"), lines(ended, f"{one.name}.m3u8")
            assert mine == last[: len(mine)]
            (target,) = (int(line.partition(":")[2]) for line in mine if "TARGETDUR" in line)
            lasts = [float(line[8:-1]) for line in mine if line.startswith("#EXTINF:")]
            assert all(int(seconds + 0.5) <= target for seconds in lasts), (target, lasts)
            expected = float(one.edges[-1] - one.edges[0]) / one.timescale
            if package is not ended:
                assert abs(sum(lasts) - expected) < 0.001 + float(one.gaps[-1]) / one.timescale
    text = ended["master.m3u8"].read().decode()
    broken = {v.rule for v in check_hls(text, read=lambda name: ended[name].read())}
    assert broken <= {"extinf-real"}


def parts_of(package, one, data):
    """Bytes of the parts of a rendition that are complete, in order."""
    names = [f"{one.name}/part-{number}.m4s" for number in range(one.part_count)]
    assert f"{one.name}/part-{one.part_count}.m4s" not in package
    return [package[name].read(source=data) for name in names]


@given(RECORDINGS | MOVIES, st.sampled_from([None, 1, 4]), st.data())
def test_segments_are_their_parts_and_parts_stay(whole, seconds, data):
    index = fragdex.index(whole, exact=True)
    if len(index.periods) > 1:
        reject()  # its clock began again
    starts = fragment_starts(index)
    sizes = data.draw(st.lists(st.sampled_from(starts), min_size=1, max_size=5))
    try:
        stored = fragdex.package(index, source=whole, segment_duration=seconds)
    except NoSyncSample:
        reject()  # the edit list hides all of a track
    final = {}
    for one in stored.title.renditions:
        final[one.name] = parts_of(stored, one, whole)
        names = [name for name in stored if re.fullmatch(rf"{one.name}/\d+\.m4s", name)]
        segments = b"".join(stored[name].read(source=whole) for name in names)
        assert b"".join(final[one.name]) == segments
    options = {"segment_duration": seconds, "low_latency": True}
    for part, package in grown(whole, sorted({*sizes, len(whole)}), **options):
        promised = package.title.promised.part
        for one in package.title.renditions:
            mine = parts_of(package, one, part)
            assert mine == final[one.name][: len(mine)]
            text = package.reloaded(f"{one.name}.m3u8").read().decode().splitlines()
            hint = f'#EXT-X-PRELOAD-HINT:TYPE=PART,URI="{one.name}/part-{len(mine)}.m4s"'
            assert hint in text
            listed = [line for line in text if line.startswith("#EXT-X-PART:")]
            places = [n for n, line in enumerate(text) if line.startswith("#EXT-X-PART:")]
            samples = [one.media, *([one.open] if one.open is not None else [])]
            ticks = max(int(media.durations.max()) for media in samples)
            # one sample may last longer than a part
            longest = max(ticks, int(promised * one.timescale))
            for n, line in zip(places, listed, strict=True):
                lasts = float(re.search(r"DURATION=([\d.]+)", line)[1])
                assert lasts <= longest / one.timescale + 1e-6
                is_last = not text[n + 1].startswith(("#EXT-X-PART:", "#EXT-X-PRELOAD"))
                assert is_last or lasts > promised - Fraction(2 * ticks, one.timescale)


def test_lists_of_pictures_with_captions_end_with_a_whole_segment_at_first():
    whole = movie(4, samples=5, fps=5)
    index = fragdex.index(whole, exact=True)
    at = int(index.tracks[0].samples.offset[0])
    marked = whole[: at + 9] + b"\xb5\x00\x31GA94\x03" + whole[at + 17 :]
    for data, may_look in ((whole, False), (marked, True)):
        # the last second may go on
        package = fragdex.package(
            index, source=data, growing=True, low_latency=True, segment_duration=0.5
        )
        lines = package["master.m3u8"].read().decode()
        # players then look into segments for captions before they play, and into the last one too
        assert ("CLOSED-CAPTIONS=NONE" not in lines) == may_look
        plain = package["v1.m3u8"].read().decode()
        assert ("#EXT-X-PRELOAD-HINT" not in plain) == may_look
        assert "#EXT-X-PRELOAD-HINT" in package.reloaded("v1.m3u8").read().decode()


def test_when_pictures_were_made_is_in_the_manifest():
    whole = movie(4, samples=5, fps=5)
    at = whole.index(b"moof") - 4
    made = datetime(2026, 3, 4, 5, 6, 7, 500_000, UTC)
    ntp = int((made - datetime(1900, 1, 1, tzinfo=UTC)).total_seconds() * (1 << 32))
    clock = make_box("prft", reference_track_ID=1, ntp_timestamp=ntp, media_time=10)
    data = whole[:at] + build(clock) + whole[at:]
    index = fragdex.index(data, exact=True)
    package = fragdex.package(
        index, source=data, growing=True, low_latency=True, segment_duration=0.5
    )
    mpd = ET.fromstring(package["manifest.mpd"].read())
    reference = mpd.find(".//{*}ProducerReferenceTime")
    assert reference.get("presentationTime") == "10"
    assert reference.get("wallClockTime") == "2026-03-04T05:06:07.500Z"


FIRST, SECOND = movie(4, samples=5, fps=5), movie(5, samples=5, fps=5, edit=200)
WITH_SOUND = movie(5, samples=5, fps=5, tracks=2)
AGAIN = movie(6, samples=5, fps=5, moov=False)


@pytest.mark.parametrize(
    ("parts", "listed"),
    [
        ((FIRST, SECOND), 2),
        ((FIRST, SECOND, FIRST), 3),
        ((FIRST, AGAIN), 2),
        ((FIRST, WITH_SOUND, FIRST), 1),
        ((FIRST, SECOND[:-500] + FIRST), 2),
    ],
    ids=["moov", "two moovs", "clock", "other tracks", "torn"],
)
def test_a_recorder_that_restarts_takes_nothing_away(parts, listed):
    whole = b"".join(parts)
    index = fragdex.index(whole, exact=True)
    cuts = fragment_starts(index)
    last, seen, text = None, {}, []
    for part, package in grown(whole, sorted({*cuts, len(whole)}), segment_duration=1):
        now = announced(package, part)
        tags = {name: package[name].etag for name in now}
        assert seen.items() <= tags.items()
        assert last is None or last.items() <= now.items()
        assert announced(package, whole) == now
        mine = lines(package, "v1.m3u8")
        is_over = "#EXT-X-ENDLIST" in text
        assert mine == text if is_over else mine[: len(text)] == text
        last, seen = now, tags
        text = mine
    ended = fragdex.package(index, source=whole, segment_duration=1, growing="ended")
    assert last.items() <= announced(ended, whole).items()
    assert lines(ended, "v1.m3u8").count("#EXT-X-DISCONTINUITY") == listed - 1
    assert {name: ended[name].etag for name in seen} == seen
    broken = {
        v.rule
        for v in check_hls("\n".join(lines(ended, "master.m3u8")), read=lambda n: ended[n].read())
    }
    assert broken <= {"extinf-real"}
