"""`fragdex push`, `status` and `pull` against a running service."""

import json
import os
import re
import signal
from pathlib import Path

import pytest

import fragdex
from fragdex.cli import remote
from fragdex.cli.app import run
from fragdex.client import Client
from fragdex.client.procedures import files_of
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
    assert whole.findings == ()  # what the service makes has nothing odd about it
    tracks = [str(one["track_id"]) for one in record["tracks"] if one["track_id"] > 0]
    for track, kind in zip(tracks, kinds, strict=True):
        path = tmp_path / f"{track}.mp4"
        assert call("pull", record["id"], "-o", str(path), "--track", track)[0] == 0
        alone = fragdex.index(path)
        assert [one.kind for one in alone.tracks] == [kind]
        assert alone.findings == ()


def test_captions_and_pictures_keep_their_names(call, tmp_path, monkeypatch):
    words = tmp_path / "words.vtt"
    words.write_text("WEBVTT\n\n00:00.000 --> 00:01.000\nword\n")
    code, out, _ = call("push", str(words))
    id, status, name = out.rstrip("\n").split("\t")
    assert (code, status, name) == (0, "ready", str(words))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert call("pull", id)[0] == 0
    code, _, err = call("pull", id)
    assert code == 2
    assert "is there already" in err
    assert call("pull", id, "--overwrite")[0] == 0
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
    report = json.loads(out)
    assert report["words"] > 10
    assert report["engine"] == "moonshine"
    assert " --> " in captions.read_text()
    copy = tmp_path / "copy.mp4"
    code, _, err = call("transcribe", film, "-o", str(copy), *given)
    assert code == 0, err
    assert f"{copy}: {report['words']} words" in err
    assert [track.kind for track in fragdex.index(copy).tracks] == ["audio", "text"]
    code, out, _ = call("transcribe", film, *given)
    assert code == 0
    assert re.match(r"\d\.\d\d\d  \w", out)
    for option in (("--processes", "2"), ("--device", "cpu"), ("--strict",)):
        code, _, err = call("transcribe", film, *given, *option)
        assert code == 2
        assert f"{option[0]} does not go with --server" in err


@pytest.fixture
def interrupted(monkeypatch):
    """Ctrl+C as soon as a command waits for its job, and again where `again` is set."""
    follow, send = remote.follow, Client.send
    set_to = {"again": False}
    # in the background of a shell it is ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def following(*arguments):
        signal.raise_signal(signal.SIGINT)
        follow(*arguments)

    def sending(client, request):
        if request.path.endswith("/cancel") and set_to["again"]:
            signal.raise_signal(signal.SIGINT)
        return send(client, request)

    monkeypatch.setattr(remote, "follow", following)
    monkeypatch.setattr(Client, "send", sending)
    yield set_to
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("kind", ["renders", "transcriptions"])
def test_ctrl_c_cancels_the_job_of_a_command(call, served, tmp_path, interrupted, kind):
    page = tmp_path / "page.html"
    page.write_text("<p>")
    film = str(FIXTURES / "speech" / "pauses-flac.mp4")
    commands = {
        "renders": ("render", str(page), "-o", str(tmp_path / "a.mp4"), "--duration", "600"),
        "transcriptions": ("transcribe", film, "--language", "en"),
    }
    for again in (False, True):
        interrupted["again"] = again
        code, _, err = call(*commands[kind], "--server", served.url)
        record = served.client.get(f"/api/v1/{kind}").json()[kind][0]
        assert code == 130
        assert f"cancelling {kind[:-1]} {record['id']}" in err
        assert (f"{record['id']} was cancelled" in err) is not again
        ended = (record["problem"] or {}).get("detail") or record["status"]
        assert ended.endswith("cancelled") is not again
        served.client.delete(f"/api/v1/{kind}/{record['id']}")
    assert not (tmp_path / "a.mp4").exists()


PAGE = """<link rel=stylesheet href="css/a.css?v=1"><body style="width: 64px; height: 36px">
<script>for (const n of [1]) new Image().src = `pictures/${n}.png`; data = "no/such.json"</script>
<a href="../outside.txt">out</a> <img src=/%C3%A4%20b.png> .hidden.txt index.html"""
USED = ["css/a.css", "css/fonts/f.woff2", "pictures/1.png", "pictures/deep/2.png", "ä b.png"]


@pytest.fixture
def page(tmp_path):
    """A page with the files that it uses, and some that it does not."""
    folder = tmp_path / "home"
    for name in [*USED, "letters/private.txt", "letters/.key", "notes.txt", ".hidden.txt"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("@font-face { src: url('fonts/f.woff2') }")
    (tmp_path / "outside.txt").write_text("mine")
    (folder / "card.html").write_text(PAGE)
    return folder / "card.html"


def test_a_page_is_sent_with_the_files_that_it_names_and_no_others(page):
    files = files_of(page)
    assert sorted(files) == sorted(["index.html", *USED])
    assert files["index.html"] == page


def test_a_page_is_rendered_by_the_service(call, served, page, tmp_path, monkeypatch):
    pytest.importorskip("fragdex.rendering.browser.finding").find_engine()
    monkeypatch.chdir(tmp_path)
    given = ("--server", served.url, "--fps", "10")
    row = tmp_path / "row.json"
    row.write_text('{"title": "Hi"}')
    code, out, err = call(
        "render", str(page), "-o", "film.mp4", *given, "--duration", "0.5", "--start", "0.1",
        "--page-data", str(row), "--crf", "30", "--no-sound", "--scale", "2", "--json",
    )  # fmt: skip
    assert code == 0, err
    report = json.loads(out)
    assert (report["width"], report["height"], report["frames"]) == (128, 72, 4)
    assert (report["duration"], report["data"]) == (0.4, {"title": "Hi"})
    assert len(fragdex.index("film.mp4").tracks) == 1
    assert Path("film.mp4").stat().st_size == report["byte_size"]
    code, out, err = call("render", str(page), "-o", "n%d.jpeg", *given, "--duration", "0.2")
    assert code == 0, err
    assert out.startswith("n%d.jpeg: ")
    assert sorted(one.name for one in tmp_path.glob("n*.jpeg")) == ["n0.jpeg", "n1.jpeg"]
    page.with_name("index.html").write_text("<script>throw 'words'</script>")
    code, _, err = call("render", str(page.parent), "-o", "a.webp", *given, "--at", "0.1")
    assert code == 3
    assert "incomplete: words" in err
    assert Path("a.webp").read_bytes()[8:12] == b"WEBP"


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["card.html", "-o", "a.mp4", "--slices", "2"], "--slices does not go with --server"),
        (["card.html", "-o", "-"], "-o - does not go with --server"),
        (["card.html", "--dry-run"], "--dry-run does not go with --server"),
        (["card.html", "-o", "a.gif", "--crf", "3"], "--crf: does not apply to gif"),
        (["card.html", "-o", "a.png", "--start", "3"], "--start does not apply to a still"),
        (["card.html", "-o", "a.mp4", "--fps", "many"], "a number, or a fraction"),
        (["card.html", "-o", "a.mp4", "--at", "1"], "--at does not apply to a video"),
        (["https://example.org/", "-o", "a.mp4"], "only files and folders"),
        (["letters", "-o", "a.mp4"], "no index.html"),
        (["none.html", "-o", "a.mp4"], "none.html"),
        (["notes.txt", "-o", "a.mp4"], "no .tar.gz and no .zip"),
    ],
)
def test_what_cannot_be_rendered_there_is_said(call, served, page, arguments, what, monkeypatch):
    monkeypatch.chdir(page.parent)
    before = sorted(os.listdir())
    code, out, err = call("render", *arguments, "--server", served.url)
    assert (code, out) == (2, "")
    assert what in err
    assert sorted(os.listdir()) == before
