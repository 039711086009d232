"""`fragdex package` writes the files that `fragdex.package` describes."""

import json
import os

import pytest

import fragdex
from fragdex.sources import files as local_files
from fragdex.testing import movie


def written(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def described(*paths, **options):
    package = fragdex.package([fragdex.index(path, exact=True) for path in paths], **options)
    return {name: package[name].read() for name in package}


@pytest.mark.parametrize("name", ["b.mp4", "progressive.mp4", "sidx.mp4"])
def test_a_file(call, files, tmp_path, name):
    ran = call("package", name, "-o", "made", "--segment-duration", "0.4")
    assert (ran.code, ran.err) == (0, "")
    assert written(tmp_path / "made") == described(tmp_path / name, segment_duration="0.4")
    assert ran.out.startswith(f"made: {name} as v1")


def test_single_files(call, files, tmp_path):
    ran = call("package", "b.mp4", "-o", "made", "--single-file")
    assert (ran.code, ran.err) == (0, "")
    assert written(tmp_path / "made") == described(tmp_path / "b.mp4", single_file=True)
    assert (tmp_path / "made" / "v1.mp4").is_file()


@pytest.mark.parametrize("how", [["--samples"], []], ids=" ".join)
def test_from_a_saved_index(call, files, tmp_path, how):
    call("index", "b.mp4", *how, "-o", "saved")
    ran = call("package", "saved", "-o", "made", "--segment-duration", "all")
    assert ran.code == 0, ran.err
    assert written(tmp_path / "made") == described(tmp_path / "b.mp4", segment_duration=None)


def test_renditions_that_do_not_agree_are_named_on_stderr(call, tmp_path):
    (tmp_path / "low.mp4").write_bytes(movie(8, samples=5, fps=5))
    (tmp_path / "high.mp4").write_bytes(movie(5, samples=8, fps=5))
    ran = call("package", "low.mp4", "high.mp4", "-o", "made", "--segment-duration", "2", "--json")
    assert ran.code == 0
    value = json.loads(ran.out)
    assert ran.err == f"fragdex: {value['findings'][0]}\n"
    assert "do not agree" in ran.err
    files = written(tmp_path / "made")
    assert files == described(tmp_path / "low.mp4", tmp_path / "high.mp4", segment_duration=2)
    assert value["files"] == ["low.mp4", "high.mp4"]
    assert value["renditions"] == ["v1", "v2"]
    assert value["written"] == len(files)
    assert value["size"] == sum(map(len, files.values()))


def test_one_track(call, files, tmp_path):
    assert call("package", "b.mp4", "-o", "made", "-t", "2").code == 0
    assert {name.partition("/")[0] for name in written(tmp_path / "made")} == {
        "master.m3u8",
        "manifest.mpd",
        "a1",
        "a1.m3u8",
    }


def test_no_playlist_names_what_is_not_there_yet(call, files, tmp_path, monkeypatch):
    """Each file is whole or not there, and whoever is interrupted left no playlist."""
    real, left = local_files.write_file, []

    def until_full(path, pieces):
        if os.path.basename(path) == "master.m3u8":
            left.extend(written(tmp_path / "made"))
        return real(path, pieces)

    monkeypatch.setattr(local_files, "write_file", until_full)
    assert call("package", "b.mp4", "-o", "made").code == 0
    named = set(written(tmp_path / "made")) - {"master.m3u8", "manifest.mpd"}
    assert named <= set(left)


def test_an_input_is_not_overwritten(call, files, tmp_path):
    (tmp_path / "made" / "v1").mkdir(parents=True)
    place = tmp_path / "made" / "v1" / "init.mp4"
    place.write_bytes(files["a.mp4"])
    ran = call("package", place, "-o", "made")
    assert ran.code == 2
    assert "would be overwritten" in ran.err
    assert written(tmp_path / "made") == {"v1/init.mp4": files["a.mp4"]}


def test_over_http_within_a_budget(call, files):
    pytest.importorskip("httpx")
    from fragdex.testing import RangeServer

    with RangeServer({"/b.mp4": files["b.mp4"]}) as server:
        assert call("package", server.url, "-o", "made").code == 0
        ran = call("package", server.url, "-o", "other", "--max-bytes", "2000")
        assert ran.code == 2
        assert "fault" not in ran.err
