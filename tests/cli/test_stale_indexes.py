"""A saved index whose media file has changed is refused, and never answered from."""

import os

import pytest

import fragdex
from fragdex.errors import SourceChanged
from fragdex.formats import fidx
from fragdex.testing import movie

COMMANDS = {
    "seek": ("seek", "a.fidx", "0.5"),
    "plan": ("plan", "a.fidx", "0.5"),
    "info": ("info", "a.fidx"),
    "extract": ("extract", "a.fidx", "0", "1", "-o", "clip.mp4"),
    "view": ("view", "a.fidx", "-o", "made.mp4"),
    "package": ("package", "a.fidx", "-o", "made"),
    "plot": ("plot", "a.fidx", "-o", "a.html"),
    "index": ("index", "a.fidx", "--json"),
}


@pytest.fixture
def saved(call, files, tmp_path):
    assert call("index", "a.mp4", "--samples").code == 0
    return tmp_path / "a.mp4"


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_of_another_size(call, saved, command):
    assert call(*COMMANDS[command]).code == 0
    saved.write_bytes(movie(fragments=7))
    ran = call(*COMMANDS[command])
    assert (ran.code, ran.out) == (2, "")
    assert "a.mp4 is not the file that was indexed, or it has changed since" in ran.err
    assert "index it again" in ran.err
    assert call(*COMMANDS[command], "--ignore-mtime").code == 2


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_with_another_date(call, saved, command):
    """The same bytes, as verify finds: they are taken where the user says so."""
    status = saved.stat()
    os.utime(saved, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    ran = call(*COMMANDS[command])
    assert (ran.code, ran.out) == (2, "")
    assert "--ignore-mtime" in ran.err
    assert call("verify", "a.mp4", "a.fidx").out == "a.fidx: OK\n"
    assert call(*COMMANDS[command], "--ignore-mtime").code == 0


def test_the_file_beside_an_index_comes_first(call, saved, tmp_path):
    """Both were moved together: what the recorded path leads to now does not matter."""
    (tmp_path / "moved").mkdir()
    for name in ("a.mp4", "a.fidx"):
        os.rename(tmp_path / name, tmp_path / "moved" / name)
    saved.write_bytes(movie(fragments=2))
    assert call("seek", "moved/a.fidx", "0.5").code == 0
    ran = call("extract", "moved/a.fidx", "0", "1", "-o", "clip.mp4")
    assert ran.code == 0, ran.err


def test_an_index_without_its_file_answers(call, saved):
    saved.unlink()
    assert call("seek", "a.fidx", "0.5").code == 0


def test_a_recording_that_grows_is_the_same_file(call, tmp_path):
    data = movie(fragments=4)
    (tmp_path / "a.mp4").write_bytes(data[:-100])
    assert call("index", "a.mp4").code == 0
    (tmp_path / "a.mp4").write_bytes(data)
    assert call("seek", "a.fidx", "0").code == 0
    (tmp_path / "a.mp4").write_bytes(data[:500])
    assert call("seek", "a.fidx", "0").code == 2


def test_the_library_compares_what_it_is_given(tmp_path):
    media, saved = tmp_path / "a.mp4", tmp_path / "b.fidx"
    media.write_bytes(movie())
    fragdex.index(media).save(saved)
    assert fragdex.open_index(saved, media=media).file.mtime_ns == media.stat().st_mtime_ns
    os.utime(media, ns=(0, 1))
    with pytest.raises(SourceChanged, match="modification time"):
        fragdex.open_index(saved, media=media)
    assert fragdex.open_index(saved, media=media, ignore_mtime=True)
    with fragdex.open_source(media) as source, pytest.raises(SourceChanged):
        fragdex.open_index(saved, media=source)


def test_an_index_of_an_older_version_is_opened(tmp_path):
    """It has no modification time: the size alone is compared."""
    media = tmp_path / "a.mp4"
    media.write_bytes(movie())
    index = fragdex.index(media.read_bytes())
    data = fidx.write(index)
    assert b"mtime_ns" not in data
    assert fragdex.open_index(data, media=media).file.mtime_ns is None
    media.write_bytes(movie(fragments=9))
    with pytest.raises(SourceChanged, match="bytes"):
        fragdex.open_index(data, media=media)
