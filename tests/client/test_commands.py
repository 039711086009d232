"""`fragdex push`, `status` and `pull` against a running service."""

import json
import os
import re
from pathlib import Path

import pytest

import fragdex
from fragdex.cli.app import run
from service.serving import serving

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("data"), job_workers=1) as one:
        yield one


@pytest.fixture
def call(served, capfd, monkeypatch):
    monkeypatch.setenv("FRAGDEX_URL", served.url)
    monkeypatch.setenv("FRAGDEX_KEY", served.key)

    def one(*arguments):
        code = run(arguments)
        out, err = capfd.readouterr()
        return code, out, err

    return one


def test_a_film_is_pushed_shown_and_pulled(call, tmp_path):
    code, out, err = call("push", str(FIXTURES / "frag-default-base.mp4"), "--wait", "--json")
    assert code == 0, err
    record = json.loads(out)
    assert record["status"] == "ready"
    code, out, _ = call("status", record["id"])
    assert (code, out.split("\t")[:3]) == (0, [record["id"], "file", "ready"])
    assert record["id"] in call("status", "--json")[1]
    kinds = [track.kind for track in fragdex.index(FIXTURES / "frag-default-base.mp4").tracks]
    code, out, _ = call("pull", record["id"], "-o", f"{tmp_path}/films/", "--json")
    assert code == 0
    (line,) = out.splitlines()
    whole = fragdex.index(json.loads(line)["file"])
    assert [track.kind for track in whole.tracks] == kinds
    tracks = [str(one["track_id"]) for one in record["tracks"] if one["track_id"] > 0]
    for track, kind in zip(tracks, kinds, strict=True):
        path = tmp_path / f"{track}.mp4"
        assert call("pull", record["id"], "-o", str(path), "--track", track)[0] == 0
        assert [one.kind for one in fragdex.index(path).tracks] == [kind]


def test_captions_and_pictures_keep_their_names(call, tmp_path, monkeypatch):
    words = tmp_path / "words.vtt"
    words.write_text("WEBVTT\n\n00:00.000 --> 00:01.000\nword\n")
    code, out, _ = call("push", str(words))
    id, status, name = out.rstrip("\n").split("\t")
    assert (code, status, name) == (0, "ready", str(words))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert call("pull", id)[0] == 0
    assert Path("words.vtt").read_bytes() == words.read_bytes()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["push", "missing.mp4"], "No such file"),
        (["push", "https://example.org/a.mp4"], "only files"),
        (["pull", "nothing"], "no such"),
        (["status", "nothing"], "no such"),
        (["pull", "a", "b", "-o", "one.mp4"], "several IDs need a folder"),
        (["status", "--key", "ef_wrong_key"], "key"),
    ],
)
def test_what_goes_wrong_is_said(call, arguments, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert what.lower() in err.lower()
    assert os.listdir(tmp_path) == []


def test_a_film_that_cannot_be_processed_says_why(call, tmp_path):
    path = tmp_path / "broken.mp4"
    path.write_bytes(b"\0\0\0\x18ftypisom" + bytes(5000))
    code, out, err = call("push", str(path), "--wait")
    assert (code, out.split("\t")[1]) == (2, "failed")
    assert err.startswith(f"fragdex: {path}: ")


def test_speech_is_transcribed_by_the_service(call, served, tmp_path):
    film = str(FIXTURES / "speech" / "pauses-flac.mp4")
    captions = tmp_path / "words.srt"
    given = ("--server", served.url, "--slice", "5")
    code, out, err = call("transcribe", film, "-o", str(captions), *given, "--json")
    assert code == 0, err
    told = json.loads(out)
    assert told["words"] > 10
    assert told["engine"] == "pocketsphinx"
    assert " --> " in captions.read_text()
    copy = tmp_path / "copy.mp4"
    code, _, err = call("transcribe", film, "-o", str(copy), *given)
    assert code == 0, err
    assert f"{copy}: {told['words']} words" in err
    assert [track.kind for track in fragdex.index(copy).tracks] == ["audio", "text"]
    code, out, _ = call("transcribe", film, *given)
    assert code == 0
    assert re.match(r"\d\.\d\d\d  \w", out)
    for option in (("--jobs", "2"), ("--device", "cpu"), ("--strict",)):
        code, _, err = call("transcribe", film, *given, *option)
        assert code == 2
        assert f"{option[0]} does not go with --server" in err
