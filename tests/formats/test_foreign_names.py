"""Names inside an index or a set of a stranger lead nowhere, unless that is asked for."""

from __future__ import annotations

import base64
import json
import pickle
import shutil
import socket
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fragdex
from fragdex.bridges.clip_table import ClipTable
from fragdex.bridges.film_codec import FilmChunks
from fragdex.bridges.film_column import frames_of
from fragdex.bridges.references import references
from fragdex.byterange import ByteRange
from fragdex.data import VideoSet, Windows, write_set
from fragdex.decoding.codec import open_container
from fragdex.errors import SourceChanged, SourceError
from fragdex.formats import fidx
from fragdex.seeking.model import Index
from fragdex.seeking.origin import FileInfo
from fragdex.testing import RangeServer

FILM = Path(__file__).parents[2] / "fixtures" / "open-gop.mp4"


@pytest.fixture
def listener():
    """A server on loopback, and the connections that it got."""
    server = socket.create_server(("127.0.0.1", 0))
    met = []

    def accept():
        while True:
            try:
                met.append(server.accept()[0].close())
            except OSError:
                return

    threading.Thread(target=accept, daemon=True).start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}/latest/meta-data", met
    server.close()


@pytest.fixture
def folder(tmp_path):
    """A folder that came from elsewhere, beside which there is a film of ours."""
    shutil.copy2(FILM, tmp_path / "own.mp4")
    (tmp_path / "there" / "deep").mkdir(parents=True)
    shutil.copy2(FILM, tmp_path / "there" / "deep" / "film.mp4")
    return tmp_path / "there"


def outside(folder, address):
    own = folder.parent / "own.mp4"
    return [
        str(own), f"file://{own}", f"FILE://{own}", address, "../own.mp4",
        "deep/../../own.mp4", str(folder / ".." / "own.mp4"), "s3://bucket/own.mp4",
        f"memory://{own}", "//127.0.0.1/own.mp4", f"{folder}-twin/own.mp4",
    ]  # fmt: skip


def saved_elsewhere(folder, name):
    """An index that names its media so, as a stranger sends it."""
    index = fragdex.index(FILM, exact=True)
    named = Index(FileInfo(name), index.how, index.periods)
    (folder / "evil.fidx").write_bytes(fidx.write(named, samples=True))
    return folder / "evil.fidx"


def set_elsewhere(folder, name):
    write_set(str(FILM), folder / "own.parquet")
    table = pq.read_table(folder / "own.parquet")
    column = table.schema.get_field_index("path")
    pq.write_table(
        table.set_column(column, table.schema.field(column), pa.array([name])),
        folder / "foreign.parquet",
    )
    return folder / "foreign.parquet"


def test_a_set_names_films_below_its_folder_alone(folder, listener, monkeypatch):
    monkeypatch.chdir(folder)
    address, met = listener
    for name in outside(folder, address):
        with pytest.raises(SourceError, match="outside"):
            VideoSet(set_elsewhere(folder, name)).frames(0)
    assert met == []
    for name in ("deep/film.mp4", str(folder / "deep" / "film.mp4"), "deep/../deep/film.mp4"):
        with VideoSet(set_elsewhere(folder, name)).frames(0) as frames:
            assert frames[0].data.any()
    own = set_elsewhere(folder, str(folder.parent / "own.mp4"))
    for asked in ({"follow": True}, {"root": folder.parent}):
        with VideoSet(own, **asked).frames(0) as frames:
            assert frames[0].data.any()


@pytest.fixture
def ways(folder):
    """Each way into the files of a set, as options, and how a path of this machine is named."""
    fsspec = pytest.importorskip("fsspec")
    obstore = pytest.importorskip("obstore")
    local = fsspec.filesystem("file")
    top = folder.parent
    below = fsspec.filesystem("dir", path=str(top), fs=local)
    return {
        "plain": ({}, str),
        "filesystem": ({"filesystem": local}, str),
        "filesystem of a folder": (
            {"filesystem": below}, lambda path: str(Path(path).relative_to(top)),
        ),
        "store": ({"store": obstore.store.LocalStore("/")}, lambda path: str(path).lstrip("/")),
        "store of a folder": (
            {"store": obstore.store.LocalStore(top)}, lambda path: str(Path(path).relative_to(top)),
        ),
    }  # fmt: skip


def first_picture(videos):
    with videos.frames(0) as frames:
        return frames[0].data


def first_bytes(videos):
    with videos.source(0) as source:
        return source.read(ByteRange(0, 8))


@pytest.mark.parametrize("rooted", [False, True])
@pytest.mark.parametrize(
    "way",
    ["plain", "filesystem", "filesystem of a folder", "store", "store of a folder"],
)
def test_no_way_to_open_a_set_leads_out_of_its_folder(folder, ways, way, rooted, monkeypatch):
    """Whatever opens its names: a set from a stranger could name anything."""
    monkeypatch.chdir(folder)
    options, named = ways[way]
    if rooted:
        options = {**options, "root": named(folder)}
    (folder / "away").symlink_to(folder.parent)
    (folder / "link.mp4").symlink_to(folder.parent / "own.mp4")
    shutil.copy2(FILM, folder.parent / "film.mp4")
    own = named(folder.parent / "own.mp4")
    here = named(folder)
    # a name in a store may as well be seen from root, where there is nothing
    why = "outside|there is no" if rooted and not own.startswith("/") else "outside"
    for name in (
        own, f"{here}/../own.mp4", f"{here}/deep/../../own.mp4", f"{here}/away/own.mp4",
        f"{here}/link.mp4", f"{here}/away/there/../own.mp4", f"{here}-twin/own.mp4",
        f"file://{folder.parent}/own.mp4", "../own.mp4",
    ):  # fmt: skip
        videos = VideoSet(set_elsewhere(folder, name), **options)
        for opened in (first_picture, first_bytes):
            with pytest.raises(SourceError, match=why):
                opened(videos)
        if "root" not in options and options:
            # nor where the way in is named later
            with pytest.raises(SourceError, match="outside"):
                VideoSet(set_elsewhere(folder, name)).frames(0, **options)
    inside = [f"{here}/deep/film.mp4"] + ["deep/film.mp4"] * (
        rooted or way in ("plain", "filesystem")
    )
    for name in inside:
        with VideoSet(set_elsewhere(folder, name), **options).frames(0) as frames:
            assert frames[0].data.any()
    with VideoSet(set_elsewhere(folder, own), follow=True, **ways[way][0]).frames(0) as frames:
        assert frames[0].data.any()


@pytest.mark.parametrize("rooted", [False, True])
@pytest.mark.parametrize("column", ["clip", "frames"])
def test_a_table_of_clips_is_made_of_files_below_the_set_alone(folder, column, rooted):
    """What Lance, Ray and Daft are given, here and in their workers."""
    (folder / "away").symlink_to(folder.parent)
    (folder / "link.mp4").symlink_to(folder.parent / "own.mp4")
    options = {"root": folder} if rooted else {}

    def table_of(name, **more):
        videos = VideoSet(set_elsewhere(folder, name), **options, **more)
        return ClipTable(Windows(videos, frames=2), [column])

    for name in (str(folder.parent / "own.mp4"), "../own.mp4", "link.mp4", "away/own.mp4"):
        for table in (table_of(name), pickle.loads(pickle.dumps(table_of(name)))):  # noqa: S301
            with pytest.raises(SourceError, match="outside"):
                table.reader(0, 1).read_all()
    assert len(table_of("deep/film.mp4").reader(0, 1).read_all()) == 1
    assert len(table_of("../own.mp4", follow=True).reader(0, 1).read_all()) == 1


@pytest.mark.parametrize("shape", [str, lambda name: {"path": name, "bytes": None}])
def test_a_column_of_paths_opens_files_below_its_root_alone(folder, listener, shape, monkeypatch):
    """A table from a stranger could name anything in its column of videos."""
    monkeypatch.chdir(folder)
    address, met = listener
    (folder / "away").symlink_to(folder.parent)
    (folder / "link.mp4").symlink_to(folder.parent / "own.mp4")
    inside = ["deep/film.mp4", str(folder / "deep" / "film.mp4")]
    for name in (*outside(folder, address), "link.mp4", "away/own.mp4"):
        with pytest.raises(SourceError, match="outside"):
            frames_of(shape(name), root=folder)
    for name in (*outside(folder, address), *inside):
        with pytest.raises(SourceError, match="which folder"):
            frames_of(shape(name))
    # an index names its media: below the root it stands where the index is
    for name in (str(folder.parent / "own.mp4"), "../own.mp4", address):
        saved = saved_elsewhere(folder, name)
        for value in (shape("evil.fidx"), {"path": None, "bytes": saved.read_bytes()}):
            with pytest.raises(SourceError):
                frames_of(value, root=folder)[0].data.any()
    assert met == []
    for name in inside:
        assert frames_of(shape(name), root=folder)[0].data.any()
    own = str(folder.parent / "own.mp4")
    for asked in ({"follow": True}, {"root": folder.parent}, {"root": folder, "follow": True}):
        assert frames_of(shape(own), **asked)[0].data.any()
    assert frames_of({"path": own, "bytes": FILM.read_bytes()})[0].data.any()


def test_the_codec_of_references_opens_nothing(folder, listener):
    """It has an index of a stranger, which names the video; the bytes come from elsewhere."""
    address, met = listener
    film = FILM.read_bytes()
    refs = references(film, "s3://films/a.mp4")["refs"]
    known = json.loads(refs["frames/zarr.json"])["codecs"][0]["configuration"]
    _, at, size = refs["frames/c/0/0/0/0"]
    index = fragdex.index(FILM, exact=True)
    for name in outside(folder, address):
        named = fidx.write(Index(FileInfo(name), index.how, index.periods), samples=True)
        packed = base64.b64encode(zlib.compress(named)).decode()
        chunks = FilmChunks({**known, "index": packed})
        assert chunks.decoded(film[at : at + size]).any()
        with pytest.raises(SourceChanged):
            chunks.decoded(film[at : at + size - 1])
    assert met == []


def test_a_playlist_opens_nothing(folder, listener):
    """FFmpeg would open what it names."""
    av = pytest.importorskip("av")
    address, met = listener
    (folder / "link.mp4").symlink_to(folder.parent / "own.mp4")
    for name in (*outside(folder, address), "link.mp4", str(folder / "deep" / "film.mp4")):
        for kind, text in (
            ("m3u8", f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{name}\n#EXT-X-ENDLIST\n"),
            ("ffconcat", f"ffconcat version 1.0\nfile '{name}'\n"),
        ):
            (folder / f"list.{kind}").write_text(text)
            with (
                (folder / f"list.{kind}").open("rb") as file,
                pytest.raises(av.FFmpegError),
                open_container(file) as opened,
            ):
                next(opened.demux())
    assert met == []


@pytest.mark.parametrize("kind", ["filesystem", "store"])
def test_a_set_of_a_bucket_needs_the_folder_of_its_files(folder, kind):
    """The folder of the set itself is not there."""
    if kind == "filesystem":
        fsspec = pytest.importorskip("fsspec")
        files = fsspec.filesystem("memory")
        for name in ("films/a.mp4", "other/a.mp4"):
            files.pipe_file(f"/{name}", FILM.read_bytes())
    else:
        obstore = pytest.importorskip("obstore")
        files = obstore.store.MemoryStore()
        for name in ("films/a.mp4", "other/a.mp4"):
            obstore.put(files, name, FILM.read_bytes())
    options = {kind: files}
    for name in ("films/a.mp4", "other/a.mp4"):
        videos = set_elsewhere(folder, name)
        with pytest.raises(SourceError, match="root="):
            VideoSet(videos, **options).frames(0)
        for more in ({"root": ""}, {"follow": True}):
            with VideoSet(videos, **options, **more).frames(0) as frames:
                assert frames[0].data.any()
    for name in ("films/a.mp4", "a.mp4"):
        with VideoSet(set_elsewhere(folder, name), root="films", **options).frames(0) as frames:
            assert frames[0].data.any()
    for name in ("/other/a.mp4", "films/../other/a.mp4", "../other/a.mp4", "films\\..\\other/a.mp4",
                 "memory://other/a.mp4"):  # fmt: skip
        with pytest.raises(SourceError, match="outside"):
            VideoSet(set_elsewhere(folder, name), root="films", **options).frames(0)


def test_a_link_of_a_folder_counts_as_what_it_leads_to(folder, monkeypatch):
    """Of an index as of a set: whoever packed the folder made the links as well."""
    monkeypatch.chdir(folder)
    (folder.parent / "other" / "deep").mkdir(parents=True)
    shutil.copy2(FILM, folder.parent / "other" / "film.mp4")
    (folder / "film.mp4").symlink_to(folder.parent / "own.mp4")
    (folder / "d").symlink_to(folder.parent / "other" / "deep")
    for name in ("film.mp4", f"{folder}/film.mp4", "d/../film.mp4", f"{folder}/d/../film.mp4"):
        index = fragdex.open_index(saved_elsewhere(folder, name))
        with pytest.raises(SourceError, match="outside"):
            fragdex.Frames(index)[0]
        with pytest.raises(SourceError, match="outside"):
            VideoSet(set_elsewhere(folder, name)).frames(0)


def test_a_set_leads_to_the_origin_of_its_root_alone(folder, listener):
    address, met = listener
    with RangeServer({"/films/a.mp4": FILM.read_bytes()}) as server:
        root = server.at("/films")
        for name in ("a.mp4", server.at("/films/a.mp4")):
            with VideoSet(set_elsewhere(folder, name), root=root).frames(0) as frames:
                assert frames[0].data.any()
        for name in (str(FILM), f"file://{FILM}", address):
            with pytest.raises(SourceError, match="outside"):
                VideoSet(set_elsewhere(folder, name), root=root).frames(0)
    assert met == []


def test_a_set_that_this_process_wrote_names_what_it_was_given(folder):
    write_set(str(FILM), folder / "own.parquet")
    with VideoSet(folder / "own.parquet").frames(0) as frames:
        assert frames[0].data.any()


def test_an_index_names_media_below_its_folder_alone(folder, listener, monkeypatch):
    monkeypatch.chdir(folder)
    address, met = listener
    for name in outside(folder, address):
        file = saved_elsewhere(folder, name)
        for opened in (fragdex.open_index(file), fragdex.open_index(file.read_bytes())):
            assert opened.file.name == name
            with pytest.raises(SourceError, match="outside"):
                fragdex.view(opened, "fragmented").read()
            with pytest.raises(SourceError, match="outside"):
                opened.track(1).seek(1.0, verified=True)
            assert fragdex.view(opened, source=FILM).read(source=FILM)
    assert met == []
    inside = saved_elsewhere(folder, str(folder / "deep" / "film.mp4"))
    assert fragdex.view(fragdex.open_index(inside), "fragmented").read()
    own = saved_elsewhere(folder, str(folder.parent / "own.mp4"))
    assert fragdex.view(fragdex.open_index(own, follow=True), "fragmented").read()


@pytest.mark.parametrize(
    "command", ["view", "extract", "peaks", "thumbnail", "loudness", "transcribe"]
)
def test_commands_follow_an_index_only_where_they_are_told(folder, listener, command):
    address, met = listener
    rest = {
        "extract": ["0", "1", "-o", "c.mp4"],
        "thumbnail": ["0", "-o", "c.jpg"],
        "view": ["-o", "c.mp4"],
        "peaks": ["-o", "c.dat"],
    }.get(command, [])

    def run(name, *more):
        file = saved_elsewhere(folder, name)
        arguments = [sys.executable, "-m", "fragdex", command, str(file), *rest, *more]
        return subprocess.run(arguments, cwd=folder, check=False, capture_output=True, text=True)

    for name in (str(folder.parent / "own.mp4"), address):
        done = run(name)
        assert done.returncode == 2, done.stdout
        assert "outside" in done.stderr
        assert "--follow" in done.stderr
    assert met == []
    if command in ("view", "extract"):
        assert run(str(folder.parent / "own.mp4"), "--follow").returncode == 0
        assert run("deep/film.mp4").returncode == 0
