"""Thumbnails, storyboards, waveforms and loudness of an origin."""

import io
import json
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path

import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from PIL import Image

import fragdex
from decoding.filming import numbered
from fragdex.errors import SourceChanged
from fragdex.origin.previews import Preview, PreviewMaker, TooManyWaiting, preview_of
from fragdex.origin.titles import Titles
from fragdex.testing import check_dash, check_hls, movie
from origin.serving import serving

FIXTURES = Path(__file__).parents[2] / "fixtures"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    for name in ("faststart.mp4", "aac.m4a", "encrypted.mp4"):
        shutil.copy(FIXTURES / name, folder / name)
    (folder / "long.mp4").write_bytes(numbered(75, 1, keys=75))
    return folder


@pytest.fixture(scope="module")
def client(folder):
    with serving(Titles(folder, segment_duration=1)) as client:
        yield client


def test_thumbnails(client):
    address = "/faststart.mp4/thumbnail.png?t=1.2&w=32"
    answer = client.get(address)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png")
    assert Image.open(io.BytesIO(answer.content)).width == 32
    tag = {"if-none-match": answer.headers["etag"]}
    assert client.get(address, headers=tag).status_code == 304
    part = client.get(address, headers={"range": "bytes=1-3"})
    assert (part.status_code, part.content) == (206, b"PNG")
    # what the query does not decide is not part of the tag
    assert client.get(f"{address}&other=1").headers["etag"] == answer.headers["etag"]
    exact = client.get("/faststart.mp4/thumbnail.jpg?t=0.52&exact=true")
    picture = fragdex.decoding.thumbnail(
        fragdex.index(FIXTURES / "faststart.mp4"), FIXTURES / "faststart.mp4", 0.52, at="frame"
    )
    assert exact.content == picture.data


def test_storyboards(client):
    text = client.get("/faststart.mp4/storyboard.vtt?every=0.5&width=64&columns=2&rows=1").text
    names = list(dict.fromkeys(re.findall(r"^(\S+?)#xywh=", text, re.MULTILINE)))
    assert len(names) > 1
    path = FIXTURES / "faststart.mp4"
    with fragdex.decoding.storyboard(
        fragdex.index(path), path, every=0.5, width=64, columns=2, rows=1
    ) as board:
        for name, sheet in zip(names, board.sheets(), strict=True):
            answer = client.get(f"/faststart.mp4/{name}")
            assert answer.headers["content-type"] == "image/jpeg"
            assert answer.content == sheet.data
    assert client.get(f"/faststart.mp4/{names[0].replace('-0', '-99')}").status_code == 404


def test_playlists_name_the_storyboard(client):
    text = client.get("/faststart.mp4/hls/master.m3u8").text
    (line,) = [line for line in text.splitlines() if line.startswith("#EXT-X-IMAGE-STREAM-INF")]
    images = client.get("/faststart.mp4/hls/" + re.search(r'URI="(.*?)"', line)[1])
    assert images.status_code == 200
    (sheet,) = [one for one in images.text.splitlines() if one[0] != "#"]
    assert client.get(f"/faststart.mp4/hls/{sheet}").headers["content-type"] == "image/jpeg"

    def read(name):
        # the sheets lie above the playlists, and so outside of what is checked
        folder = "" if name.startswith("storyboard") else "hls/"
        return client.get(f"/faststart.mp4/{folder}{name}").raise_for_status().content

    assert check_hls(text, read) == []
    manifest = client.get("/faststart.mp4/dash/manifest.mpd")
    assert "thumbnail_tile" in manifest.text
    media = re.search(r'media="(\.\./storyboard.*?)"', manifest.text)[1]
    assert client.get(f"/faststart.mp4/dash/{media.replace('$Number$', '0')}").status_code == 200
    assert check_dash(manifest.content, read) == []


def test_waveforms_and_loudness(client):
    path = FIXTURES / "aac.m4a"
    index = fragdex.index(path)
    waveform = fragdex.decoding.peaks(index, path, samples_per_pixel=1024, bits=16)
    query = "samples_per_pixel=1024&bits=16"
    assert client.get(f"/aac.m4a/peaks.json?{query}").content == waveform.json()
    assert client.get(f"/aac.m4a/peaks.dat?{query}").content == waveform.dat()
    assert json.loads(client.get("/aac.m4a/peaks.json").content)["samples_per_pixel"] == 256
    loudness = client.get("/aac.m4a/loudness.json").json()
    assert loudness["integrated"] == fragdex.decoding.loudness(index, path).integrated


@pytest.mark.parametrize(
    ("address", "status", "why"),
    [
        ("faststart.mp4/thumbnail.jpg?w=1e9", 400, "w: expected 1 to 4,096"),
        ("faststart.mp4/thumbnail.jpg?w=99999", 400, "w: expected 1 to 4,096"),
        ("faststart.mp4/thumbnail.jpg?exact=yes", 400, "exact: expected true or false"),
        ("faststart.mp4/thumbnail.jpg?track=9", 404, "no track 9"),
        ("long.mp4/thumbnail.jpg?t=70&exact=true", 422, "too far away"),
        ("faststart.mp4/storyboard.vtt?every=0", 400, "every: more than 0"),
        ("faststart.mp4/storyboard.vtt?every=0.00001", 422, "too many tiles"),
        ("faststart.mp4/storyboard-0.jpg?columns=50&rows=50", 400, "columns × rows"),
        ("faststart.mp4/storyboard-0.jpg?columns=0", 400, "columns: expected 1"),
        ("aac.m4a/storyboard.vtt", 404, "no video track"),
        ("aac.m4a/peaks.json?samples_per_pixel=1", 400, "samples_per_pixel: expected 2"),
        ("aac.m4a/peaks.json?bits=12", 400, "bits: expected 8 or 16"),
        ("aac.m4a/peaks.json?track=77", 404, "no audio track 77"),
        ("encrypted.mp4/thumbnail.jpg", 422, "encrypted"),
    ],
)
def test_queries_that_ask_for_too_much(client, address, status, why):
    answer = client.get(f"/{address}")
    assert (answer.status_code, why in answer.text) == (status, True), answer.text
    assert answer.headers["cache-control"] == "no-store"


def test_a_waveform_is_as_fine_as_it_may_be():
    index = fragdex.index(FIXTURES / "aac.m4a")
    fine = preview_of(index, "peaks.json", {}).recipe[3]
    assert fine == 256
    with pytest.raises(KeyError):
        preview_of(index, "peaks.xml", {})


def described(make, kind="picture", number=0):
    index = fragdex.index(movie(2))
    return Preview("text/plain", index, ["test", number], kind, make)


def test_previews_are_made_once_and_few_at_a_time():
    begun, go_on = threading.Semaphore(0), threading.Event()

    def make(_):
        begun.release()
        assert go_on.wait(30)
        return b"made"

    maker = PreviewMaker(pictures=1, waiting=2)
    film = lambda: nullcontext(movie(2))  # noqa: E731
    first = maker.view(described(make), film)
    assert begun.acquire(timeout=30)
    assert maker.view(described(make), film) is first
    maker.view(described(make, number=1), film)
    with pytest.raises(TooManyWaiting):
        maker.view(described(make, number=2), film)
    # sound waits in a line of its own
    sound = maker.view(described(lambda _: b"sound", "sound", 3), film)
    go_on.set()
    assert first.result(30).read() == b"made"
    assert sound.result(30).read() == b"sound"
    assert maker.view(described(make), film).done()
    maker.close()


def test_a_preview_of_another_film_is_refused():
    def fails(_):
        raise ValueError("nothing of this can be decoded")

    for make in (lambda _: b"", fails):
        with pytest.raises(SourceChanged):
            described(make).view(movie(3))


def test_many_ask_for_one_thumbnail(client):
    with ThreadPoolExecutor(8) as threads:
        pictures = list(threads.map(
            lambda _: client.get("/faststart.mp4/thumbnail.webp?t=1&w=48").content, range(16)
        ))  # fmt: skip
    assert len(set(pictures)) == 1
    assert Fraction(*Image.open(io.BytesIO(pictures[0])).size) == Fraction(4, 3)
