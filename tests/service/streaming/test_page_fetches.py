"""What pages of published web components fetch: by a worker's render, and in a browser."""

import io
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

import forkserver
from fragdex.service.records import tables
from fragdex.service.records.identifiers import instant, new_id
from fragdex.speech.plan import TranscriptionPlan
from fragdex.speech.words import SliceTranscript, Word
from rendering.test_archives import tar_of
from service.console import films
from service.console.conftest import browser  # noqa: F401
from service.renders.conftest import chromium  # noqa: F401
from service.renders.working import Renderer
from service.serving import API, serving
from service.streaming import packaging_worker
from service.streaming.test_remote import far  # noqa: F401
from service.working import uploaded

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parent / "pages" / "fetching" / "index.html").read_bytes()
QUERY = "/film.mp4?signature=a%2Fb%3D&token=theirs&url=none"
"""What pages do not encode when they fill it in."""


class Site(BaseHTTPRequestHandler):
    """The page at an origin of its own, which has the key and signs."""

    def do_GET(self):
        self._answer(*((200, PAGE) if self.path == "/" else (404, b"")), "text/html")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.signed.append(body)
        response = self.server.client.post(f"{API}/url-token", content=body)
        self._answer(response.status_code, response.content, "application/json")

    def _answer(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.signed, server.url = [], f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def worker(folder, **settings):
    """A process that renders and serves nobody."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("FRAGDEX_")}
    settings = {f"FRAGDEX_{name.upper()}": text for name, text in settings.items()}
    engine = {name: os.environ[name] for name in ("FRAGDEX_CHROMIUM",) if name in os.environ}
    # it changes a module before others import it
    with forkserver.turned_off():
        child = subprocess.Popen(
            [sys.executable, packaging_worker.__file__, "--data", str(folder)],
            env={**kept, **engine, **settings},
        )
    try:
        yield
    finally:
        child.terminate()
        try:
            child.wait(60)
        finally:
            child.kill()


@pytest.fixture(scope="module")
def near(far, site, tmp_path_factory):  # noqa: F811
    """A service beside a worker, each of which packages what the far server has."""
    folder = tmp_path_factory.mktemp("near")
    host = far.url.removeprefix("https://")
    far.files[QUERY] = far.files["/film.mp4"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", far.certificate)
        patch.setattr(
            "fragdex.service.streaming.titles.AllowedHosts", packaging_worker.hosts_here()
        )
        with serving(folder, render_hosts=host, cors_origins=site.url) as served:
            site.client = served.client
            yield served


@pytest.fixture(scope="module")
def sent(far, near, tmp_path_factory):  # noqa: F811
    """The data that the page gets; its `assets/film.mp4` is the service's file."""
    path = films.film(tmp_path_factory.mktemp("own") / "film.mp4", 75, fragments="key")
    id = uploaded(near.client, path.read_bytes(), "film.mp4")["id"]
    assert near.client.post(f"{API}/unprocessed_files/{id}/process").json()["status"] == "complete"
    picture = io.BytesIO()
    Image.new("RGB", (9, 9), "#f00").save(picture, "PNG")
    words = b"WEBVTT\n\n00:01.000 --> 00:02.000\nword\n"
    return {
        "url": far.url + QUERY,
        "film": id,
        "image": uploaded(near.client, picture.getvalue(), "a.png", "image_files")["id"],
        "caption": uploaded(near.client, words, "a.vtt", "caption_files")["id"],
        "transcription": heard(near, id),
        "durationMs": 2000,
    }, path.read_bytes()


def heard(served, file_id):
    """A transcription of a word."""
    id, now = new_id(), instant()
    row = {"id": id, "tenant_id": served.tenant, "file_id": file_id, "track_id": 1}
    row |= {"status": "complete", "slices": 1, "engine": "pocketsphinx", "work_slice_ms": 30_000}
    row |= {
        "plan": TranscriptionPlan(1, 30_000, 0, 100, 0.0, "en", (0,)).as_json(),
        "duration_ms": 1000,
    }
    words = SliceTranscript(0, (Word("spoken", 0, 500),)).as_json()
    part = {"transcription_id": id, "number": 0, "heard": words, "completed_at": now}
    with served.context.database.write() as connection:
        added = row | {"created_at": now, "completed_at": now}
        connection.execute(tables.transcriptions.insert().values(**added))
        connection.execute(tables.transcription_slices.insert().values(**part))
    return id


def numbers_of(picture):
    """The numbers of the three films in a picture of height × width × 3."""
    numbers = []
    for top in (0, 180, 360):
        bits, others = (picture[top + y, 16:320:32, 1] > 127 for y in (30, 90))
        assert (bits != others).all()
        numbers.append(int("".join("1" if bit else "0" for bit in bits), 2))
    return numbers


def shown(n):
    return [n, 50 - n, 25 * (n // 25)]


def is_red(picture):
    red, green, blue = picture[150, 20].astype(int)
    return red > 200 and max(green, blue) < 60


def test_a_worker_renders_a_page_that_fetches_all_of_it(chromium, near, sent, far):  # noqa: F811
    data, film = sent
    host = far.url.removeprefix("https://")
    packed = tar_of(("index.html", PAGE), ("assets/film.mp4", film))
    renderer = Renderer(near.client, near)
    with worker(near.context.settings.data, render_hosts=host):
        record, video = renderer.rendered(
            site=packed, data=data, fps=25, width=None, height=None, work_slice_ms=1000
        )
    assert (record["width"], record["height"], record["duration_ms"]) == (320, 540, 2000)
    assert len(record["slices"]) == 2
    assert (record["blocked"], record["refused"], record["console"]) == ([], [], [])
    with av.open(io.BytesIO(video)) as container:
        pictures = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert [numbers_of(one) for one in pictures] == [shown(n) for n in range(50)]
    assert all(map(is_red, pictures))
    with av.open(io.BytesIO(video)) as container:
        sound = np.concatenate([one.to_ndarray()[0] for one in container.decode(audio=0)])
    tone = sound[24_000:72_000]
    assert np.sqrt((tone**2).mean()) == pytest.approx(0.2 / 2**0.5, rel=0.1)
    assert abs(np.fft.rfft(tone)).argmax() == films.TONES[0]  # a second: a bin is a hertz


def test_a_browser_fetches_all_of_it_with_tokens_of_a_signing_url(browser, near, sent, site):  # noqa: F811
    data, _ = sent
    page = browser.new_page()
    failures = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    data = data | {"host": near.url}
    page.add_init_script(f"window.EF_RENDER_DATA = {json.dumps(data)}")
    page.goto(site.url)
    for n in (0, 24, 25, 37, 49):
        page.evaluate("(n) => draw(n)", n)
        with Image.open(io.BytesIO(page.locator("canvas").screenshot())) as canvas:
            picture = np.asarray(canvas.convert("RGB"))
        assert numbers_of(picture) == shown(n)
        assert is_red(picture)
    assert failures == []
    # one token for all of the media by URL
    assert sum(b"/transcode" in one for one in site.signed) == 1
    page.close()
