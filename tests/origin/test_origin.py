"""The origin on a real socket: films of a folder as HLS, DASH and clips."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urljoin

import pytest

import fragdex
from fragdex.boxes import parse
from fragdex.muxing.kinds import described

httpx = pytest.importorskip("httpx")
uvicorn = pytest.importorskip("uvicorn")

from starlette.datastructures import Headers  # noqa: E402
from starlette.testclient import TestClient  # noqa: E402

from fragdex.muxing.view import View  # noqa: E402
from fragdex.origin.addresses import signed  # noqa: E402
from fragdex.origin.application import Origin, OriginSettings  # noqa: E402
from fragdex.origin.titles import IndexFiles, Titles  # noqa: E402
from fragdex.serving.answers import answer  # noqa: E402
from fragdex.testing import RangeServer, movie  # noqa: E402
from object_store import environment_of, object_store  # noqa: E402
from origin.serving import serving  # noqa: E402

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    (folder / "two").mkdir()
    for name in ("faststart", "three-audio", "encrypted", "rtp-hints"):
        shutil.copy(FIXTURES / f"{name}.mp4", folder / f"{name}.mp4")
    (folder / "two" / "low film.mp4").write_bytes(movie(8, samples=5, fps=5))
    (folder / "two" / "high.mp4").write_bytes(movie(8, samples=10, fps=10))
    (folder / "notes.txt").write_text("no film")
    (folder.parent / "outside.mp4").write_bytes(movie(2))
    (folder / "linked.mp4").symlink_to(folder.parent / "outside.mp4")
    return folder


@pytest.fixture(scope="module")
def client(folder):
    with serving(Titles(folder, segment_duration=1)) as client:
        yield client


def test_what_is_served_is_what_the_library_makes(client, folder):
    path = folder / "faststart.mp4"
    index = fragdex.index(path, exact=True)
    package = fragdex.package(index, segment_duration=1)
    for name in package:
        first = client.get(f"/faststart.mp4/hls/{name}")
        for _ in range(2):  # the second time without a change of thread
            again = client.get(f"/faststart.mp4/hls/{name}")
            assert (again.content, again.headers["etag"]) == (first.content, first.headers["etag"])
        if name not in ("master.m3u8", "manifest.mpd"):  # these name the storyboard as well
            assert first.headers["etag"] == package[name].etag
            assert first.content == package[name].read()
        assert (
            first.headers["content-type"].partition(";")[0]
            == package[name].media_type.partition(";")[0]
        )
        assert client.get(f"/faststart.mp4/dash/{name}").content == first.content
    for kind in ("fragmented", "faststart"):
        data = described(index, kind, segment_duration=1).read()
        assert client.get(f"/faststart.mp4/{kind}.mp4").content == data
    clip = client.get("/faststart.mp4/clip.mp4?start=0.5&end=1.25").content
    assert clip == fragdex.clip(index, start=0.5, stop=1.25).read()
    assert float(fragdex.index(clip, exact=True).track(1).stop) == 0.75
    assert "X-Findings" not in client.get("/faststart.mp4/clip.mp4").headers
    findings = client.get("/rtp-hints.mp4/clip.mp4?start=1").headers["X-Findings"]
    assert findings.split("; ")[0].startswith("track 3 (hint) is left out: ")


def test_thousands_of_tracks_that_are_left_out_are_no_header_that_proxies_refuse():
    findings = [f"track {n} (hint) is left out: \u2603\n" for n in range(4000)]
    view = View("video/mp4", (), "recipe", [1], lambda _: [b"a"], findings)
    shown = answer(view, Headers(), "HEAD", None, {}).headers["X-Findings"].split("; ")
    assert sum(map(len, shown)) < 1024
    assert shown[0] == "track 0 (hint) is left out: ??"
    assert shown[-1] == f"and {4001 - len(shown)} more"


def test_addresses_in_playlists_lead_to_files(client):
    def followed(path, seen):
        if path in seen:
            return
        answer = client.get(path)
        assert answer.status_code == 200, path
        seen.add(path)
        if path.endswith(".m3u8"):
            names = re.findall(r'URI="(.*?)"', answer.text)
            names += [line for line in answer.text.splitlines() if line and line[0] != "#"]
            for name in names:
                followed(f"{path.rpartition('/')[0]}/{name}", seen)

    seen = set()
    followed("/three-audio.mp4/hls/master.m3u8", seen)
    assert len(seen) > 8


def test_a_player_that_seeks_by_a_sidx_can(client, folder, tmp_path):
    film = folder / "two/high.mp4"
    command = [sys.executable, "-m", "fragdex", "index", str(film), "--embed"]
    subprocess.run([*command, "-o", str(tmp_path / "seekable.mp4")], check=True)
    view = client.get("/two/high.mp4/fragmented.mp4").content
    for data in (view, (tmp_path / "seekable.mp4").read_bytes()):
        boxes = list(parse(data))
        assert [box.type for box in boxes[:4]] == ["ftyp", "moov", "sidx", "moof"]
        (sidx,) = (box for box in boxes if box.type == "sidx")
        place, time = boxes[3].offset + sidx["first_offset"], sidx["earliest_presentation_time"]
        video = fragdex.index(data, exact=True).video
        rows = video.fragments
        assert len(sidx["references"]) > 1
        for entry in sidx["references"]:
            row = rows.moof_offset.tolist().index(place)
            assert not entry["reference_type"]
            assert (rows.first_sync[row], rows.cts_min[row]) == (0, time)
            place += int(entry["referenced_size"])
            time += int(entry["subsegment_duration"])
        assert place == len(data)
        assert len(video.samples) == 80


def test_ranges_and_tags(client):
    path = "/faststart.mp4/fragmented.mp4"
    whole = client.get(path)
    tag = whole.headers["etag"]
    part = client.get(path, headers={"range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, whole.content[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(whole.content)}"
    assert client.get(path, headers={"range": "bytes=-5"}).content == whole.content[-5:]
    assert client.get(path, headers={"if-none-match": tag}).status_code == 304
    for condition, status in ((tag, 206), ('"other"', 200)):
        headers = {"range": "bytes=0-0", "if-range": condition}
        assert client.get(path, headers=headers).status_code == status
    refused = client.get(path, headers={"range": "bytes=99999999-"})
    assert refused.status_code == 416
    assert refused.headers["content-range"] == f"bytes */{len(whole.content)}"
    assert refused.text == f"the range begins after the last of {len(whole.content)} bytes\n"
    head = client.head(path)
    assert (head.headers["content-length"], head.content) == (str(len(whole.content)), b"")
    assert whole.headers["cache-control"] == "public, max-age=3600"
    assert whole.headers["access-control-allow-origin"] == "*"
    assert client.options(path).status_code == 204


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("/none.mp4/hls/master.m3u8", 404, "there is no file 'none.mp4'; the front page lists"),
        ("/none.mp4", 404, "there is no file"),
        ("/faststart.mp4/nothing", 404, "'faststart.mp4' has no 'nothing': expected hls/master"),
        ("/two/low film.mp4/hls", 404, "'two/low film.mp4' has no 'hls'"),
        ("/faststart.mp4/no/thing", 404, "'faststart.mp4' has no 'no/thing'"),
        ("/faststart.mp4/hls/v9.m3u8", 404, "no v9.m3u8; hls/master.m3u8 names what it has"),
        ("/faststart.mp4/dash/v9.m4s", 404, "no v9.m4s; dash/manifest.mpd names what it has"),
        ("/faststart.mp4/hls/v1/5.m4s", 404, "no v1/5.m4s"),
        ("/faststart.mp4/clip.mp4?start=x", 400, "start: 'x' is not a time"),
        ("/faststart.mp4/clip.mp4?start=2&end=1", 400, "must end"),
        ("/faststart.mp4/clip.mp4?start=50&end=60", 422, "from 50 s to 60 s: it ends at 2 s"),
        ("/faststart.mp4/clip.mp4?tracks=x", 400, "tracks"),
        ("/faststart.mp4/clip.mp4?tracks=77", 404, "no track 77"),
        ("/encrypted.mp4/thumbnail.jpg", 422, "encrypted"),
        ("/notes.txt/hls/master.m3u8", 422, "not an ISO base media file"),
        ("/linked.mp4/fragmented.mp4", 404, "there is no file"),
        ("/%2e%2e/outside.mp4/fragmented.mp4", 404, "there is no file"),
        ("/two%2f..%2f..%2foutside.mp4/fragmented.mp4", 404, "there is no file"),
        ("/a%00b.mp4/fragmented.mp4", 404, "there is no file"),
        ("/" + "a," * 99 + "/hls/x", 404, "there is no file"),
    ],
)
def test_what_is_not_there_is_told(client, path, status, message):
    answer = client.get(path)
    assert answer.status_code == status
    assert message in answer.text
    assert answer.headers["cache-control"] == "no-store"


def test_the_pages(client):
    listing = client.get("/").text
    assert "two/low%20film.mp4/" in listing
    assert "notes" not in listing
    answer = client.get("/two/low film.mp4")
    assert answer.status_code == 308
    page = client.get(urljoin(str(answer.url), answer.headers["location"])).text
    assert 'src="fragmented.mp4"' in page


def test_renditions_with_commas(client):
    text = client.get("/two/low film.mp4,high.mp4/hls/master.m3u8").text
    assert [line for line in text.splitlines() if line[0] != "#"] == ["v1.m3u8", "v2.m3u8"]


def test_a_film_that_changes_is_served_anew(tmp_path):
    path = tmp_path / "film.mp4"
    path.write_bytes(movie(3))
    with serving(Titles(tmp_path)) as client:
        first = client.get("/film.mp4/fragmented.mp4")
        path.write_bytes(movie(5))
        os.utime(path, ns=(1, 1))
        second = client.get(
            "/film.mp4/fragmented.mp4", headers={"if-none-match": first.headers["etag"]}
        )
        assert second.status_code == 200
        assert second.content == fragdex.view(fragdex.index(path, exact=True)).read()
        path.unlink()
        assert client.get("/film.mp4/fragmented.mp4").status_code == 404


def test_few_films_stay_open(tmp_path):
    for number in range(6):
        (tmp_path / f"{number}.mp4").write_bytes(movie(3))
    titles = Titles(tmp_path, in_memory=2)
    for number in range(6):
        film = titles.open((f"{number}.mp4",))
        with titles.sources(film):
            pass
    assert len(titles._films) == 2
    assert sum(len(film.idle) for film in titles._films.values()) == 2


def test_indexes_are_kept(tmp_path):
    def playlist():
        opened = Titles(tmp_path / "films", indexes=IndexFiles(cache)).open(("film.mp4",))
        return opened.package["v1.m3u8"].read()

    (tmp_path / "films").mkdir()
    path = tmp_path / "films" / "film.mp4"
    path.write_bytes(movie(5, tracks=2))
    cache = tmp_path / "cache"
    text = playlist()
    (kept,) = cache.iterdir()
    assert playlist() == text
    kept.write_bytes(kept.read_bytes()[:-9])  # damaged: made anew
    assert (
        Titles(tmp_path / "films", indexes=IndexFiles(cache))
        .open(("film.mp4",))
        .package["v1.m3u8"]
        .read()
        == text
    )
    path.write_bytes(movie(7))
    os.utime(path, ns=(1, 1))
    assert playlist() != text


def test_indexes_beside_films(tmp_path):
    path = tmp_path / "film.mp4"
    path.write_bytes(movie(5, tracks=2))
    Titles(tmp_path).open(("film.mp4",))
    assert [one.name for one in tmp_path.iterdir()] == ["film.mp4"]
    Titles(tmp_path, indexes=IndexFiles(beside=True)).open(("film.mp4",))
    kept = tmp_path / "film.mp4.fidx"
    # one that somebody made is used, and one of other bytes is not
    index = fragdex.open_index(kept)
    assert Titles(tmp_path).open(("film.mp4",)).indexes[0].file == index.file
    path.write_bytes(movie(7, tracks=2))
    os.utime(path, ns=(1, 1))
    opened = Titles(tmp_path).open(("film.mp4",)).indexes[0]
    assert opened.file.size == path.stat().st_size


def test_segments_that_change_while_they_are_ready(tmp_path):
    path = tmp_path / "film.mp4"
    path.write_bytes(movie(4, samples=5, fps=5))
    with serving(Titles(tmp_path, segment_duration=1)) as client:
        address = "/film.mp4/hls/v1/0.m4s"
        first = client.get(address)
        assert client.get(address).content == first.content
        # in place: the file that is open changes under the segment that is ready
        path.write_bytes(movie(4, samples=6, fps=6))
        os.utime(path, ns=(1, 1))
        package = fragdex.package(fragdex.index(path, exact=True), segment_duration=1)
        second = client.get(address)
        assert second.content == package["v1/0.m4s"].read() != first.content
        assert second.headers["etag"] != first.headers["etag"]
        assert client.get(address, headers={"range": "bytes=4-7"}).content == b"styp"
        assert client.head(address).headers["content-length"] == str(len(second.content))
        path.unlink()
        assert client.get(address).status_code == 404


def test_captions_beside_a_film(tmp_path):
    def languages():
        text = client.get("/film.mp4/hls/master.m3u8").text
        return re.findall(r'TYPE=SUBTITLES.*?LANGUAGE="(.*?)"', text)

    (tmp_path / "film.mp4").write_bytes(movie(4))
    with serving(Titles(tmp_path)) as client:
        assert languages() == []
        text = "WEBVTT\n\n00:00.500 --> 00:01.000\n%s\n"
        (tmp_path / "film.fr.vtt").write_text(text % "Bonjour")
        (tmp_path / "film.de.srt").write_text("no captions")
        (tmp_path / "other.en.vtt").write_text(text % "Hello")
        assert languages() == ["fr"]
        playlists = re.findall(r'SUBTITLES.*?URI="(.*?)"', client.get(
            "/film.mp4/hls/master.m3u8").text)  # fmt: skip
        media = client.get(f"/film.mp4/hls/{playlists[0]}").text
        (segment, *_) = [line for line in media.splitlines() if line and line[0] != "#"]
        assert "Bonjour" in client.get(f"/film.mp4/hls/{segment}").text
        (tmp_path / "film.fr.vtt").unlink()
        assert languages() == []


def test_segments_of_a_bucket(tmp_path, monkeypatch):
    with object_store() as address:
        for name, value in environment_of(address).items():
            monkeypatch.setenv(name, value)
        httpx.put(f"{address}/films").raise_for_status()
        whole = movie(8, samples=5, fps=5)
        httpx.put(f"{address}/films/a/film.mp4", content=whole).raise_for_status()
        titles = Titles("s3://films/a", segment_duration=1)
        package = titles.open(("film.mp4",)).package
        local = fragdex.package(fragdex.index(whole, exact=True), source=whole, segment_duration=1)
        httpx.put(f"{address}/films/b.mp4", content=whole).raise_for_status()
        with serving(titles) as origin:
            # what is below the prefix alone, from a name on
            json = {"accept": "application/json"}
            assert [one["url"] for one in origin.get("/", headers=json).json()["films"]] == [
                "film.mp4/"
            ]
            assert origin.get("/?after=film.mp4", headers=json).json() == {
                "films": [],
                "next": None,
            }
            for name in [one for one in package if one.endswith(".m4s")]:
                with titles.sources(titles.open(("film.mp4",))) as (source,):
                    before = source.requests, source.bytes_read
                segment = origin.get(f"/film.mp4/hls/{name}").content
                assert segment == local[name].read(source=whole)
                # one read of the samples' bytes, and of no others
                assert source.requests - before[0] == 1
                assert source.bytes_read - before[1] <= len(segment)


@pytest.mark.parametrize("json_lines", [False, True])
def test_the_access_log(folder, json_lines):
    lines = []
    settings = OriginSettings(log=lines.append, log_json=json_lines)
    with serving(Titles(folder), settings) as client:
        size = len(client.get("/faststart.mp4/hls/master.m3u8?a=b%0a").content)
        assert client.get("/healthz").text == "ok\n"
        assert client.get("/healthz").headers["cache-control"] == "no-store"
        assert client.post("/faststart.mp4/hls/master.m3u8").status_code == 405
        assert client.get("/none.mp4/clip.mp4").status_code == 404
    assert len(lines) == 5
    if json_lines:
        line = json.loads(lines[0])
        assert line["target"] == "/faststart.mp4/hls/master.m3u8?a=b%0a"
        assert (line["method"], line["status"], line["bytes"]) == ("GET", 200, size)
        assert json.loads(lines[4])["status"] == 404
    else:
        assert f"127.0.0.1 GET /faststart.mp4/hls/master.m3u8?a=b%0a 200 {size} " in lines[0]
        assert " 404 " in lines[4]


def test_signed_addresses(folder):
    with serving(Titles(folder), OriginSettings(secret="secret")) as client:
        assert client.get("/").status_code == 404
        assert client.get("/faststart.mp4/hls/master.m3u8").status_code == 403
        good = signed("secret", "faststart.mp4", int(time.time()) + 60)
        answer = client.get(f"/{good}/faststart.mp4/hls/master.m3u8")
        assert answer.status_code == 200
        assert answer.headers["cache-control"].startswith("private")
        assert client.get(f"/{good}/faststart.mp4/hls/v1/init.mp4").status_code == 200
        assert client.get(f"/{good}/three-audio.mp4/hls/master.m3u8").status_code == 403
        late = signed("secret", "faststart.mp4", int(time.time()) - 1)
        assert client.get(f"/{late}/faststart.mp4/hls/master.m3u8").status_code == 403
        assert client.get(f"/{good[:-1]}é/faststart.mp4/hls/master.m3u8").status_code == 403


def test_films_of_another_server(folder):
    path = folder / "faststart.mp4"
    package = fragdex.package(fragdex.index(path, exact=True), segment_duration=1)
    with RangeServer({"films/film.mp4": path.read_bytes()}) as far:
        titles = Titles(far.at("films"), segment_duration=1)
        with serving(titles) as client:
            answer = client.get("/film.mp4/hls/v1/0.m4s")
            assert answer.content == package["v1/0.m4s"].read()
            assert client.get("/none.mp4/hls/v1.m3u8").status_code == 404


def test_how_long_a_film_of_another_server_is_trusted():
    first, second = movie(3), movie(5)
    files = {"films/film.mp4": first}
    with RangeServer(files) as far:
        trusting, asking = (Titles(far.at("films"), trust=trust) for trust in (1000, 0))
        for titles in (trusting, asking):
            assert titles.open(("film.mp4",)).indexes[0].file.size == len(first)
        far.content = {"films/film.mp4": second}
        assert trusting.open(("film.mp4",)).indexes[0].file.size == len(first)
        assert asking.open(("film.mp4",)).indexes[0].file.size == len(second)
        # whatever is read is checked all the same
        with serving(trusting) as client:
            assert client.get("/film.mp4/fragmented.mp4").content == fragdex.view(
                fragdex.index(second, exact=True), source=second
            ).read(source=second)


def test_the_command(folder):
    command = [sys.executable, "-m", "fragdex", "origin", str(folder), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            base = re.search(r"Serving (\S+)", process.stdout.readline())[1]
            assert httpx.get(f"{base}faststart.mp4/hls/master.m3u8", timeout=60).status_code == 200
            address = httpx.URL(base)
            for fields, status in ((b"Host: a", 200), (b"Host: a\r\nHost: b", 400), (b"A: b", 400)):
                with socket.create_connection((address.host, address.port), 20) as connection:
                    head = b"GET /healthz HTTP/1.1\r\nConnection: close\r\n" + fields
                    connection.sendall(head + b"\r\n\r\n")
                    assert connection.recv(100).startswith(b"HTTP/1.1 %d " % status), fields
        finally:
            process.terminate()
            process.wait(20)


def test_faststart_of_a_fragmented_film_is_a_classic_file(tmp_path):
    """It was the input itself, fragments and all: its moov stands in front already."""
    shutil.copy(FIXTURES / "frag-cmaf.mp4", tmp_path)
    with TestClient(Origin(Titles(str(tmp_path)))) as client:
        data = client.get("/frag-cmaf.mp4/faststart.mp4").content
    codes = [box.type for box in fragdex.boxes.parse(data)]
    assert "moof" not in codes
    assert codes.index("moov") < codes.index("mdat")
    was, now = fragdex.index(tmp_path / "frag-cmaf.mp4"), fragdex.index(data)
    assert now.how.method == "stbl"
    assert [len(t.samples) for t in now.tracks] == [len(t.samples) for t in was.tracks]


def test_a_film_that_cannot_be_read_is_a_message(tmp_path):
    (tmp_path / "bad.mp4").write_bytes(b"no film at all")
    with TestClient(Origin(Titles(str(tmp_path)))) as client:
        page = client.get("/bad.mp4/")
        assert page.status_code == 422
        assert "not an ISO base media file" in page.text
        assert "No picture" in client.get("/", headers={"Accept": "text/html"}).text
