"""A title that is made by windows is the one that is made of the whole, at each step."""

import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragdex
from fragdex.boxes import build, make_box, parse
from fragdex.errors import BuildError, NoSyncSample
from fragdex.packaging import growing
from fragdex.packaging.continued import Continued
from fragdex.packaging.periods import Periods
from fragdex.sources import open_source
from fragdex.testing import movie
from muxing.test_growing import grown
from origin.stepping import Stepping
from strategies.recordings import eventful, fragment_starts, recordings

RECORDINGS = recordings(
    seconds=3, jumps=[0] * 12 + [1, 7, 4000, 86400 * 365, -3], fragments=(15, None), late=2
)
MOVIES = st.builds(
    movie,
    st.integers(12, 30),
    tracks=st.integers(1, 3),
    samples=st.integers(1, 4),
    fps=st.integers(1, 4),
    reordered=st.booleans(),
    edit=st.none() | st.integers(0, 2000),
)


def places(whole):
    """Where the fragments of a file begin, and its end."""
    return [*fragment_starts(fragdex.index(whole, exact=True)), len(whole)]


def media(package):
    """Initialization segments, segments and parts by their names."""
    names = [name for name in package if name.endswith((".m4s", "init.mp4"))]
    for one in package.title.renditions:
        names += [f"{one.name}/part-{number}.m4s" for number in range(one.part_count)]
    return {name: package[name] for name in names}


def lists(package):
    """The playlists, as players get them who load them first, again, and without what they have."""
    names = [f"{one.name}.m3u8" for one in package.title.renditions]
    again = [package.reloaded(name, skip=skip) for name in names for skip in (False, True)]
    more = [name for name in package if name.endswith("-iframes.m3u8")]
    for name in names:
        last, _ = package.last_part(name)
        again += [package.reloaded(name, segment=n) for n in range(max(last - 3, 0), last + 2)]
    return [*(package[name] for name in [*names, *more]), *again]


def both(package, name, **asked):
    """A list, and the same without the segments that players have."""
    return [package.reloaded(name, skip=skip, **asked).read().decode() for skip in (False, True)]


@contextmanager
def windows(surplus, at_once):
    """Windows of other sizes."""
    with (
        mock.patch.object(growing, "SURPLUS", surplus),
        mock.patch.object(growing, "AT_ONCE", at_once),
    ):
        yield


def steps(path, whole, sizes, always=False, **options):
    """At each size the package of the whole and that of windows; none where one has to be whole.

    Args:
        always: whether none has to.
    """
    title, index = None, None
    path.write_bytes(b"")
    for size in sizes:
        with path.open("ab") as file:
            file.write(whole[path.stat().st_size : size])
        with open_source(path) as source:
            index = fragdex.index(source, exact=True)
            about = {"segment_duration": 1, "began": None} | options
            try:
                true = fragdex.package(
                    index, source=source, growing=True, low_latency=True, **about
                )
            except (BuildError, NoSyncSample):
                assert title is None
                continue
            whole_of = lambda _, index=index: index  # noqa: E731
            try:
                if title is None:
                    title = growing.GrowingTitle([index], [source], whole_of, **about)
                else:
                    title.grow([source], whole_of)
            except growing.Irregular:
                if always:
                    raise
                return
            yield source, true, title.package


@given(
    RECORDINGS | MOVIES | eventful(RECORDINGS | MOVIES),
    st.sampled_from([None, 1, 3]),
    st.integers(1, 5),
    st.integers(5, 30),
    st.data(),
)
def test_windows_give_what_the_whole_gives(whole, seconds, surplus, at_once, data):
    if len(fragdex.index(whole, exact=True).periods) > 1:
        return  # its clock began again
    sizes = data.draw(st.lists(st.sampled_from(places(whole)), max_size=4))
    with TemporaryDirectory() as folder, windows(surplus, at_once):
        path = Path(folder, "live.mp4")
        every = steps(path, whole, sorted({*sizes, len(whole)}), segment_duration=seconds)
        for source, true, made in every:
            assert_same(source, true, made)


def assert_same(source, true, made):
    """Two packages are equal, segment by segment, list by list and tag by tag."""
    expected, found = media(true), media(made)
    assert [*found] == [*expected]
    for name, view in expected.items():
        assert (found[name].etag, found[name].size) == (view.etag, view.size)
        assert found[name].read(source=source) == view.read(source=source)
    for one, other in zip(lists(true), lists(made), strict=True):
        assert (one.read(), one.etag) == (other.read(), other.etag)
    for one in true.title.renditions:
        name = f"{one.name}.m3u8"
        assert made.progress(name) == true.progress(name)
    for one in true.title.periods[-1].renditions:
        hinted = f"{one.name}/part-{one.part_count}.m4s"
        assert made.is_next_part(hinted) == true.is_next_part(hinted)
    assert timelines(made) == timelines(true)
    assert made.findings == true.findings


@given(eventful(RECORDINGS | MOVIES), st.sampled_from([None, 1, 3]), st.data())
def test_events_stay_where_they_are_announced(whole, seconds, data):
    """Be it in a segment or in a part of one, and when the recording ends."""
    index = fragdex.index(whole, exact=True)
    if len(index.periods) > 1:
        return  # its clock began again
    sizes = data.draw(st.lists(st.sampled_from(places(whole)), max_size=4))
    options = {"segment_duration": seconds, "low_latency": True}
    packages = [one for _, one in grown(whole, sorted({*sizes, len(whole)}), **options)]
    if not packages:
        return
    packages.append(fragdex.package(index, source=whole, growing="ended", **options))
    seen = {}
    for package in packages:
        now = {name: (view.read(source=whole), view.etag) for name, view in media(package).items()}
        assert seen.items() <= now.items()
        seen = now
    read = {name: content for name, (content, _) in seen.items()}
    for one in packages[-1].title.renditions:
        segments = b"".join(read[f"{one.name}/{time}.m4s"] for time in one.times)
        parts = b"".join(read[f"{one.name}/part-{n}.m4s"] for n in range(one.part_count))
        assert parts == segments
    parts = (content for name, content in read.items() if "/part-" in name)
    assert sum(content.count(b"emsg") for content in parts) == whole.count(b"emsg")


EVENT = make_box(
    "emsg", version=1, scheme_id_uri="urn:a", value="1", timescale=10, presentation_time=5,
    event_duration=5, id=1, message_data=b"x",
)  # fmt: skip


def periods(tracks):
    """Recordings of a recorder that begins again, each time with a moov."""
    part = st.builds(
        movie,
        st.integers(0, 12) | st.integers(12, 30),
        tracks=st.just(tracks),
        samples=st.integers(1, 4),
        fps=st.integers(1, 4),
        reordered=st.booleans(),
    )
    return st.lists(part, min_size=2, max_size=5).map(b"".join)


SEVERAL = st.integers(1, 2).flatmap(periods)


@given(
    SEVERAL | eventful(SEVERAL),
    st.sampled_from([None, 1, 3]),
    st.integers(1, 5),
    st.integers(5, 30),
    st.data(),
)
def test_the_last_of_several_periods_grows(whole, seconds, surplus, at_once, data):
    begins = [part.stop for one in fragdex.index(whole, exact=True).periods for part in one.init]
    sizes = data.draw(st.lists(st.sampled_from([*places(whole), *begins]), max_size=5))
    with TemporaryDirectory() as folder, windows(surplus, at_once):
        path = Path(folder, "live.mp4")
        options = {"segment_duration": seconds, "always": True}
        for source, true, made in steps(path, whole, sorted({*sizes, len(whole)}), **options):
            assert_same(source, true, made)


def timelines(package):
    """The segments and events of the manifest."""
    names = "<Period", "Template", "<S ", "InbandEventStream"
    text = package["manifest.mpd"].read().decode()
    return [line.strip() for line in text.splitlines() if any(name in line for name in names)]


@pytest.mark.parametrize("tracks", [1, 2])
def test_a_recording_of_any_length_is_kept(tmp_path, tracks):
    whole = movie(40, samples=5, fps=5, tracks=tracks)
    sizes, text = places(whole), ""
    for _, _, made in steps(tmp_path / "live.mp4", whole, sizes):
        (one, *_) = made.title.renditions
        now = made["v1.m3u8"].read().decode()
        # only the tail of a list is made again: what is kept is in all that follow
        known = one.kept.text.decode() if isinstance(one, Continued) else ""
        assert known in now
        assert text in now
        text = known
    assert one.kept.count > 20
    assert one.rest.count < 20


def cost_of_an_append(path, whole, sizes):
    """Calls, bytes that are read and samples at hand when a fragment comes, with all lists.

    Args:
        sizes: of the file when it is opened, and then.
    """
    *before, last = sizes
    path.write_bytes(whole[: before[-1]])
    options = {"segment_duration": 1, "began": None}
    with open_source(path) as source:
        index = fragdex.index(source, exact=True)
        title = growing.GrowingTitle([index], [source], lambda _: index, **options)
    with path.open("ab") as file:
        file.write(whole[before[-1] : last])
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    with open_source(path) as source:
        sys.setprofile(count)
        try:
            package = title.grow([source], None)
            package["manifest.mpd"].read()
            for one in package.title.renditions:
                package.reloaded(f"{one.name}.m3u8")
                package.reloaded(f"{one.name}.m3u8", skip=True)
        finally:
            sys.setprofile(None)
        samples = sum(len(one.samples) for window in title.windows for one in window.tracks)
        return calls, source.bytes_read, samples


@pytest.mark.parametrize("with_events", [False, True])
def test_an_append_costs_what_has_come(tmp_path, with_events):
    whole = movie(400, samples=5, fps=5, tracks=2)
    if with_events:
        whole = build(box for one in parse(whole) for box in [*[EVENT] * (one.type == "moof"), one])
    sizes = places(whole)
    path = tmp_path / "live.mp4"
    short = cost_of_an_append(path, whole, sizes[:41])
    long = cost_of_an_append(path, whole, sizes[:401])
    for early, late in zip(short, long, strict=True):
        assert late <= 1.5 * early


@pytest.mark.parametrize("seconds", [1, 2, 5, 60])
def test_an_append_costs_nothing_for_the_periods_before(tmp_path, seconds):
    """However long the last one is, from its first fragment on."""
    path, part = tmp_path / "live.mp4", movie(61, samples=5, fps=5, tracks=2)
    last = places(part)
    costs = []
    for count in (60, 400):
        before = movie(count, samples=5, fps=5, tracks=2)
        both_ = [len(before) + at for at in last[seconds : seconds + 2]]
        costs.append(cost_of_an_append(path, before + part, both_))
    for early, late in zip(*costs, strict=True):
        assert late <= 1.1 * early


def test_what_is_over_is_packaged_once(tmp_path):
    """When the moov comes that ends a period, and not with what comes afterwards."""
    parts = [movie(20, samples=5, fps=5 + number) for number in range(4)]
    whole, packaged = b"".join(parts), []
    original = Periods.then

    def then(self, indexes, media, numbers, asked, over=False):
        packaged.extend(numbers if over else ())
        return original(self, indexes, media, numbers, asked, over)

    with mock.patch.object(Periods, "then", then):
        *_, (_, _, made) = steps(tmp_path / "live.mp4", whole, places(whole), always=True)
    assert len(made.title.periods) == 4
    # `package` has all of them as one
    assert packaged == [0, 1, 2]


@given(RECORDINGS | MOVIES, st.sampled_from([None, 1, 3]), st.data())
def test_lists_lead_a_player_through_every_part(whole, seconds, data):
    """Whatever comes between two lists, and whenever the recording ends."""
    index = fragdex.index(whole, exact=True)
    if len(index.periods) > 1:
        return  # its clock began again
    sizes = data.draw(st.lists(st.sampled_from(places(whole)), max_size=9))
    options = {"segment_duration": seconds, "low_latency": True}
    packages = [one for _, one in grown(whole, sorted({*sizes, len(whole)}), **options)]
    if not packages:
        return
    packages.append(fragdex.package(index, source=whole, growing="ended", **options))
    for one in packages[0].title.renditions:
        player, at = Stepping(f"{one.name}.m3u8"), 0
        player.take(*both(packages[0], player.name))
        first = one.part_count - one.open_count
        if player.named:
            first = int(player.named[0].partition("part-")[2].removesuffix(".m4s"))
        while not player.ended:
            at = data.draw(st.integers(at, len(packages) - 1))
            asked = player.asks()
            while not asked.are_met(packages[at], player.name):
                at += 1
            player.take(*both(packages[at], player.name, segment=asked.segment))
        total = packages[-1].title.renditions[packages[0].title.renditions.index(one)].part_count
        assert player.named == [f"{one.name}/part-{n}.m4s" for n in range(first, total)]
