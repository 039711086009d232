"""Sets of many films: what their rows say, and what a second run does."""

from __future__ import annotations

import contextlib
import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragdex
from decoding.filming import number_in, numbered
from fragdex.data import VideoSet, film_listing, set_parts, write_set
from fragdex.data.film_listing import ListedFilm
from fragdex.data.set_file import SetFile
from fragdex.data.set_names import Known, SetNames
from fragdex.data.set_parts import groups_of, small_init
from fragdex.errors import DamagedIndex, FragdexError, SourceChanged, SourceNotFound
from fragdex.indexing.making import index_source
from fragdex.indexing.reading import Head
from fragdex.seeking.numbering import Numbering, SyncStarts
from fragdex.sources import open_source
from fragdex.testing import RangeServer
from object_store import environment_of, object_store

FIXTURES = Path(__file__).parents[2] / "fixtures"
FOUR = ["a.mp4", "b.mp4", "more/c.mp4", "more/deep/d.MOV"]


@pytest.fixture
def folder(tmp_path):
    """Four films, something else, and a file that is none."""
    (tmp_path / "films" / "more" / "deep").mkdir(parents=True)
    for number, name in enumerate(FOUR):
        film = numbered(20 + number, 10, keys=5 + number, size=(64, 16))
        (tmp_path / "films" / name).write_bytes(film)
    (tmp_path / "films" / "notes.txt").write_text("no film")
    (tmp_path / "films" / "broken.mp4").write_bytes(b"no film")
    return tmp_path / "films"


def names(path):
    return [video.path for video in VideoSet(path)]


@pytest.mark.parametrize("way", ["set let go", "pickled", "rested", "select"])
def test_frames_of_a_remote_film_outlive_their_set(tmp_path, way):
    film = numbered(12, 10, keys=4, size=(64, 16))
    with RangeServer({"/a.mp4": film}) as server:
        write_set([server.at("/a.mp4")], tmp_path / "set.parquet")
        videos = VideoSet(tmp_path / "set.parquet")
        if way == "select":
            videos = videos.select([0])
        frames = videos.frames(0)
        if way == "pickled":
            frames = pickle.loads(pickle.dumps(frames))  # noqa: S301
        elif way == "rested":
            frames.rest()
        del videos
        gc.collect()
        with frames:
            assert [number_in(one[..., 0]) for one in frames[[0, 11]].data] == [0, 11]


def test_an_initialization_segment_is_that_of_a_parse_of_its_own():
    """For every fixture: the moov that was parsed for the index gives the same bytes."""
    seen = 0
    for path in sorted(FIXTURES.iterdir()):
        with (
            contextlib.suppress(FragdexError, StopIteration, IsADirectoryError),
            open_source(path) as source,
        ):
            index = index_source(source, exact=True, head=(head := Head()))
            track = next(one for one in index.tracks if one.kind == "video")
            expected = small_init(index, track, source, Head())
            assert small_init(index, track, source, head) == expected, path
            seen += head.moov is not None and expected is not None
    assert seen > 20


@given(
    st.lists(st.tuples(st.none() | st.integers(0, 9 << 20), st.none() | st.just(1)), max_size=80),
    st.integers(1, 4),
)
def test_small_local_films_are_indexed_together(films, workers):
    work = [(ListedFilm(str(n), one[0], None, one[1]), None, str(n)) for n, one in enumerate(films)]
    batches = list(set_parts._batches(work, len(work), workers))
    assert [one for batch in batches for one in batch] == work
    several = [[film for film, _, _ in batch] for batch in batches if len(batch) > 1]
    assert all(film.mtime_ns and film.size is not None for batch in several for film in batch)
    assert all(sum(film.size for film in batch) <= 16 << 20 for batch in several)
    assert len(work) < 4 * workers or len(batches) >= 4 * workers


def test_groups_are_where_decoding_begins():
    """For every fixture: each frame is in the group of the sync sample that it is decoded from."""
    seen = 0
    for path in sorted(FIXTURES.iterdir()):
        try:
            track = next(t for t in fragdex.index(path, exact=True).tracks if t.kind == "video")
            samples = track.samples
        except (FragdexError, StopIteration, IsADirectoryError):
            continue
        numbering = Numbering(track, samples)
        if not len(numbering):
            continue
        starts = SyncStarts(samples)
        expected = {}
        for number, sample in enumerate(numbering.sample.tolist()):
            expected.setdefault(starts.of(sample), []).append(number)
        groups = groups_of(samples, numbering)
        assert groups.frame.tolist() == [min(expected[start]) for start in sorted(expected)]
        assert groups.frames.tolist() == [len(expected[start]) for start in sorted(expected)]
        ends = [
            max(int(numbering.ticks[n] + numbering.durations[n]) for n in expected[start])
            for start in sorted(expected)
        ]
        assert groups.end.tolist() == ends
        assert (groups.bytes <= groups.stop - groups.offset).all()
        assert groups.bytes.sum() <= samples.size.sum()
        seen += 1
    assert seen > 50


def test_a_set_of_a_folder(folder):
    reported = {}
    summary = write_set(folder, folder.parent / "set.parquet", each=reported.__setitem__, jobs=2)
    assert (summary.films, summary.indexed, summary.unchanged, summary.gone) == (5, 4, 0, 0)
    assert list(summary.broken) == ["films/broken.mp4"]
    assert reported == {f"films/{name}": None for name in FOUR} | summary.broken
    videos = VideoSet(folder.parent / "set.parquet")
    assert videos.broken == summary.broken
    assert names(folder.parent / "set.parquet") == [f"films/{name}" for name in FOUR]
    assert [video.frames for video in videos] == [20, 21, 22, 23]
    assert [video.duration for video in videos] == [2.0, 2.1, 2.2, 2.3]
    assert videos.groups(1).frame.tolist() == [0, 6, 12, 18]
    with videos.frames(2, format="gray") as frames:
        assert [number_in(frame[..., 0]) for frame in frames[[20, 3]].data] == [20, 3]
        # the set has all that is needed to begin: nothing but the group is read
        assert frames.source.requests == len(frames.plan([20, 3]).reads)
    # films may be elsewhere, beside the set or not
    folder.rename(folder.parent / "moved")
    with pytest.raises(SourceNotFound):
        videos.frames(0)
    os.symlink(folder.parent / "moved", folder.parent / "elsewhere")
    (folder.parent / "root").mkdir()
    os.symlink(folder.parent / "moved", folder.parent / "root" / "films")
    assert len(VideoSet(folder.parent / "set.parquet", root=folder.parent / "root").frames(0)) == 20


def test_a_set_is_small_when_it_is_pickled(folder):
    write_set(folder, folder.parent / "set.parquet")
    videos = VideoSet(folder.parent / "set.parquet").select(lambda video: video.frames > 20)
    data = pickle.dumps(videos)
    assert len(data) < 1000
    assert list(copy.deepcopy(videos)) == list(videos)
    assert [video.frames for video in videos.select([2, 0])] == [23, 21]


def test_a_second_run_indexes_what_is_new_or_changed(folder, monkeypatch):
    path = folder.parent / "set.parquet"
    write_set(folder, path)
    before = path.read_bytes()
    again = write_set(folder, path)
    assert (again.indexed, again.unchanged, len(again.broken)) == (0, 4, 1)
    assert path.read_bytes() == before
    (folder / "b.mp4").write_bytes(numbered(9, 10, keys=5, size=(64, 16)))
    (folder / "broken.mp4").write_bytes(numbered(8, 10, keys=5, size=(64, 16)))
    (folder / "a.mp4").unlink()
    third = write_set(folder, path)
    assert (third.films, third.indexed, third.unchanged, third.gone) == (4, 2, 2, 1)
    assert [v.frames for v in VideoSet(path)] == [9, 8, 22, 23]


KILLED = """
import os, signal, sys
from fragdex.data import set_parts, write_set
set_parts.GROUP_ROWS = 1
done = []
def each(name, error):
    done.append(name)
    if len(done) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
write_set(sys.argv[1], sys.argv[2], jobs=1, each=each)
"""


def test_a_run_that_is_killed_goes_on(folder):
    path = folder.parent / "set.parquet"
    ended = subprocess.run([sys.executable, "-c", KILLED, folder, path], check=False)
    assert ended.returncode == -signal.SIGKILL
    assert not path.exists()
    summary = write_set(folder, path)
    assert (summary.indexed, summary.unchanged) == (2, 2)
    assert names(path) == [f"films/{name}" for name in FOUR]
    assert sorted(os.listdir(folder.parent)) == [folder.name, path.name]


def test_a_run_that_fails_keeps_what_it_has(folder):
    path = folder.parent / "set.parquet"

    def each(name, error):
        if name.endswith("c.mp4"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_set(folder, path, each=each, jobs=1)
    summary = write_set(folder, path)
    assert summary.unchanged == 3


WORDS = st.text("ab/é\U0001f600\uffff", min_size=1, max_size=3)
NUMBERS = st.none() | st.integers(0, 2)
FILM = st.builds(ListedFilm, WORDS, NUMBERS, st.none() | st.sampled_from("xy"), NUMBERS)


@settings(max_examples=100)
@given(
    st.lists(st.tuples(WORDS, FILM), max_size=12),
    st.lists(st.lists(st.tuples(FILM, st.none() | st.just("broken")), max_size=4), max_size=4),
)
def test_names_in_a_file_are_those_of_dicts(tmp_path_factory, films, files):
    folder = tmp_path_factory.mktemp("names")
    (folder / "of a run that was killed.names").touch()
    names, saved = SetNames(str(folder)), {}
    with pytest.MonkeyPatch.context() as patched, contextlib.closing(names):
        patched.setattr("fragdex.data.set_names._PAGE", 2)
        names.add_films(films)
        for number, rows in enumerate(files):
            plain = [
                {"path": film.name, "size": film.size, "etag": film.etag,
                 "mtime_ns": film.mtime_ns, "error": error}
                for film, error in rows
            ]  # fmt: skip
            names.add_rows(number, 5, plain)
            saved |= {row["path"]: (number, 5 + at, row) for at, row in enumerate(plain)}
        known = {
            name: Known(row["size"], row["etag"], row["mtime_ns"])
            for name, (_, _, row) in saved.items()
            if row["error"] is None
        }
        there = dict(films)
        changed = [
            (there[name], known.get(name), name)
            for name in sorted(there)
            if name not in known or not known[name].same_as(there[name])
        ]
        assert names.counts() == (len(there), len(changed), len(known.keys() - there.keys()))
        assert list(names.changed()) == changed
        places = [saved[name][:2] for name in sorted(there) if name in saved]
        assert list(names.places()) == places
        assert len(os.listdir(folder)) == 1
    assert not os.listdir(folder)


def test_a_set_of_many_parts_opens_few_of_them(folder, monkeypatch):
    from pyarrow import parquet

    opened = weakref.WeakSet()

    class Seen(SetFile):
        def __init__(self, path):
            super().__init__(path)
            opened.add(self)
            assert len(opened) <= 3

    path, plain = folder.parent / "set.parquet", folder.parent / "plain.parquet"
    write_set(folder, plain)
    monkeypatch.setattr(set_parts, "GROUP_ROWS", 1)
    monkeypatch.setattr(set_parts, "_OPEN", 1)
    monkeypatch.setattr(set_parts, "SetFile", Seen)
    write_set([folder / name for name in FOUR[::2]], path)
    summary = write_set(folder, path)  # rows of the set, and between them those of parts
    assert (summary.indexed, summary.unchanged) == (2, 2)
    assert len(SetFile(str(path)).ends) == 5
    whole, others = (parquet.read_table(one) for one in (path, plain))
    assert whole.equals(others)


@pytest.mark.parametrize("rows", [1, 2, 3, 9])
def test_a_new_set_is_put_together_without_unpacking_it(folder, monkeypatch, rows):
    path, plain = folder.parent / "set.parquet", folder.parent / "plain.parquet"
    monkeypatch.setattr(set_parts, "GROUP_ROWS", rows)
    with monkeypatch.context() as patched:
        patched.setattr(set_parts, "_group", None)  # by which parts are unpacked
        write_set(folder, path)
    write_set([folder / name for name in FOUR[::2]], plain)
    write_set(folder, plain)  # row by row, from a set and from parts
    assert SetFile(str(path)).ends == SetFile(str(plain)).ends
    whole, others = (list(SetFile(str(one)).pieces(None)) for one in (path, plain))
    assert [first for first, _ in whole] == [first for first, _ in others]
    assert all(one.equals(other) for (_, one), (_, other) in zip(whole, others, strict=True))


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes there")
def test_a_name_that_parquet_cannot_hold_is_told(folder):
    (folder / os.fsdecode(b"caf\xe9.mp4")).write_bytes((folder / "a.mp4").read_bytes())
    summary = write_set(folder, folder.parent / "set.parquet")
    assert summary.indexed == 4
    assert "not UTF-8" in summary.broken["films/caf\\udce9.mp4"]


def test_row_groups_are_small(folder, monkeypatch):
    monkeypatch.setattr(set_parts, "GROUP_ROWS", 2)
    path = folder.parent / "set.parquet"
    write_set(folder, path)
    videos = VideoSet(path)
    assert [video.path for video in videos[1:]] == [video.path for video in videos][1:]
    assert videos.select([3, -4])[0] == videos[3]
    with pytest.raises(IndexError):
        videos[4]
    frames = {}
    for numbers, spans in videos.select([3, 0, 2]).spans():
        frames |= dict(zip(numbers.tolist(), spans.frames.tolist(), strict=True))
    assert frames == {0: 23, 1: 20, 2: 22}
    assert len(videos._file.ends) == 3
    assert [len(videos.frames(number)) for number in range(4)] == [20, 21, 22, 23]


def test_what_is_no_set_is_refused(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    (tmp_path / "a.parquet").write_bytes(b"PAR1 and so on")
    parquet.write_table(pa.table({"path": ["a.mp4"]}), tmp_path / "b.parquet")
    for name in ("a.parquet", "b.parquet"):
        with pytest.raises(DamagedIndex, match=name):
            VideoSet(tmp_path / name)
        with pytest.raises(DamagedIndex):
            write_set(FIXTURES / "open-gop.mp4", tmp_path / name)
    with pytest.raises(SourceNotFound, match="no video"):
        write_set(tmp_path, tmp_path / "c.parquet")
    with pytest.raises(FileNotFoundError):
        VideoSet(tmp_path / "d.parquet")


def test_row_groups_are_those_of_any_writer(folder, tmp_path):
    """A footer is read in pieces: each is what pyarrow reads at once."""
    from pyarrow import parquet

    path = folder.parent / "set.parquet"
    write_set(folder, path)
    table = SetFile(str(path)).read(0)
    other = tmp_path / "other.parquet"
    for options in (
        {"row_group_size": 1}, {"row_group_size": 2, "write_page_index": True, "version": "1.0"},
        {"row_group_size": 9, "compression": "none", "use_dictionary": False},
    ):  # fmt: skip
        parquet.write_table(table, other, **options)
        file, whole = SetFile(str(other)), parquet.ParquetFile(other)
        assert len(file.ends) == whole.num_row_groups
        assert file.ends[-1] == 5
        for group in range(len(file.ends)):
            assert file.read(group).equals(whole.read_row_group(group))
            names = ["path", "tracks.list.element.gops.list.element.frame"]
            assert file.read(group, names).equals(whole.read_row_group(group, names))
    parquet.write_table(table.slice(0, 0), other)
    assert len(VideoSet(other)) == 0


@settings(max_examples=150)
@given(st.integers(0, 2**32), st.integers(1, 4), st.binary(max_size=4))
def test_a_damaged_set_is_refused_or_read(small_set, place, size, other):
    path, whole = small_set
    damaged = bytearray(whole)
    place %= len(whole)
    damaged[place : place + size] = other
    path.write_bytes(damaged)
    try:
        videos = VideoSet(path)
        len(videos), videos.broken, list(videos)
        write_set(FIXTURES / "open-gop.mp4", path)
    except (FragdexError, OSError):
        pass


@pytest.fixture(scope="module")
def small_set(tmp_path_factory):
    path = tmp_path_factory.mktemp("set") / "set.parquet"
    write_set([FIXTURES / "open-gop.mp4", FIXTURES / "frag-cmaf.mp4"], path)
    return path, path.read_bytes()


def test_a_film_that_changed_is_refused(folder):
    path = folder.parent / "set.parquet"
    write_set(folder, path)
    videos = VideoSet(path)
    film = folder / "a.mp4"
    data = film.read_bytes()
    film.write_bytes(data[:-8] + bytes(8))
    os.utime(film, ns=(1, 1))
    with pytest.raises(SourceChanged, match=r"a\.mp4"):
        videos.frames(0)
    film.write_bytes(data + bytes(8))
    with pytest.raises(SourceChanged):
        videos.frames(0)


def test_films_of_a_server(tmp_path):
    films = {f"{number}.mp4": numbered(20, 10, keys=5, size=(64, 16)) for number in range(2)}
    with RangeServer(films) as server:
        urls = [server.at(name) for name in films]
        summary = write_set(urls, tmp_path / "set.parquet")
        assert summary.indexed == 2
        before = len(server.requests)
        assert write_set(urls, tmp_path / "set.parquet").unchanged == 2
        assert len(server.requests) - before == 2
        videos = VideoSet(tmp_path / "set.parquet")
        before = len(server.requests)
        with videos.frames(1, format="gray") as frames:
            assert number_in(frames[7].data[..., 0]) == 7
            assert len(server.requests) - before == 1
        films["1.mp4"] += bytes(8)
        with videos.frames(1) as frames, pytest.raises(SourceChanged):
            frames[7]
        assert write_set(urls, tmp_path / "set.parquet").indexed == 1


def test_buckets_and_file_systems_are_listed_and_read(tmp_path):
    from fsspec.implementations.memory import MemoryFileSystem
    from obstore.store import MemoryStore

    film = numbered(12, 10, keys=5, size=(64, 16))
    store, filesystem = MemoryStore(), MemoryFileSystem()
    for name in ("x/a.mp4", "x/y/b 1%.mp4", "x/y/c.txt", "z.mov"):
        store.put(name, film)
        filesystem.pipe("/data/" + name, film)
    for options, start in (({"store": store}, ""), ({"filesystem": filesystem}, "/data/")):
        listed = {
            what: sorted(
                one.name.removeprefix(start) for one in film_listing.listed(what, **options)
            )
            for what in (start + "x", start + "**/*.mp4", start + "x/*.mp4", start + "z.mov")
        }
        assert [*listed.values()] == [
            ["x/a.mp4", "x/y/b 1%.mp4"], ["x/a.mp4", "x/y/b 1%.mp4"], ["x/a.mp4"], ["z.mov"],
        ]  # fmt: skip
        path = tmp_path / f"{len(start)}.parquet"
        assert write_set(start + "x", path, **options).indexed == 2
        assert write_set(start + "x", path, **options).unchanged == 2
        videos = VideoSet(path, **options)
        for number in (0, 1):
            with videos.frames(number, format="gray") as frames:
                assert number_in(frames[8].data[..., 0]) == 8
        with pytest.raises(SourceNotFound):
            list(film_listing.listed(start + "nothing", **options))


def test_a_set_of_a_bucket_by_its_url(tmp_path, monkeypatch):
    httpx = pytest.importorskip("httpx")
    with object_store() as address:
        for name, value in environment_of(address).items():
            monkeypatch.setenv(name, value)
        httpx.put(f"{address}/films").raise_for_status()
        film = numbered(40, 10, keys=8, size=(64, 16))
        for name in ("train/a.mp4", "train/x/b 1.mp4", "test/c.mp4"):
            httpx.put(f"{address}/films/{name}", content=film).raise_for_status()
        for what in ("s3://films/train/**", "s3://films/train", "s3://films/train/**/*.mp4"):
            assert write_set(what, tmp_path / "set.parquet").films == 2
        assert write_set(what, tmp_path / "set.parquet").unchanged == 2
        videos = VideoSet(tmp_path / "set.parquet")
        assert [video.path for video in videos] == [
            "s3://films/train/a.mp4", "s3://films/train/x/b 1.mp4",
        ]  # fmt: skip
        windows = fragdex.data.Windows(videos, frames=8, format="gray")
        groups = videos.groups(1)
        for window in (8, 5, 9):
            sample = windows[window]
            assert [number_in(one[..., 0]) for one in sample["frames"]] == sample[
                "numbers"
            ].tolist()
            decoded, size, requests = sample["cost"].tolist()
            assert (decoded, requests) == (8, 1)
            assert size <= 1.05 * groups.bytes[window - 5]


def test_the_command(folder, monkeypatch):
    pytest.importorskip("typer")
    monkeypatch.chdir(folder.parent)

    def call(*words):
        return subprocess.run(
            [sys.executable, "-m", "fragdex", "index", *words],
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    done = call("films", "-o", "set.parquet", "--jobs", "2")
    assert done.returncode == 2
    assert done.stdout == "set.parquet: 5 videos, 4 indexed, 1 broken\n"
    assert done.stderr.startswith("fragdex: films/broken.mp4: ")
    (folder / "broken.mp4").unlink()
    done = call("films/**", "-o", "set.parquet")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "set.parquet: 4 videos, 0 indexed, 4 unchanged\n"
    assert call("films", "-o", "set.parquet", "--samples").returncode == 2


def test_the_library_and_its_data_sets_import_nothing_that_is_not_needed():
    program = "import sys, fragdex; {} print([n for n in sys.modules if n in {}])"
    for first, names in (
        ("", ["fragdex.data", "pyarrow", "torch"]),
        ("import fragdex.data;", ["pyarrow", "torch", "fsspec", "obstore", "httpx", "av"]),
    ):
        done = subprocess.run(
            [sys.executable, "-c", program.format(first, names)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == "[]\n"
