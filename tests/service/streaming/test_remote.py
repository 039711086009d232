"""Media named by https URLs: packaged by ranges, from hosts that the operator allows."""

import functools
import io
import json
import re
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import av
import pytest

from fragdex.rendering.site import ORIGIN
from fragdex.rendering.web import AllowedHosts
from fragdex.service.renders.workspaces import OwnFiles
from fragdex.service.streaming import titles
from service.console import films
from service.console.conftest import browser  # noqa: F401
from service.serving import API, serving

NAME = "media.example.org"


class Ranges(BaseHTTPRequestHandler):
    """Files of the server's `files`, by ranges; paths that begin with `/to:` lead elsewhere."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path.startswith("/to:"):
            self._answer(302, b"", Location=self.path.removeprefix("/to:"))
            return
        data = self.server.files.get(self.path)
        if data is None:
            self._answer(404, b"")
            return
        start, stop = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        part = data[start : stop + 1]
        content_range = f"bytes {start}-{start + len(part) - 1}/{len(data)}"
        tag = f'"{hash(data)}"'
        self._answer(206, part, **{"Content-Range": content_range, "ETag": tag})

    def _answer(self, status, body, **headers):
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """A server of films under another name, with TLS."""
    folder = tmp_path_factory.mktemp("tls")
    path = folder / "film.mp4"
    films.film(path, 250, sound=True)
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    command += ["-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, check=True, capture_output=True, cwd=folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.certificate = str(folder / "cert.pem")
    server.trust = ssl.create_default_context(cafile=server.certificate)
    server.files, server.asked = {"/film.mp4": path.read_bytes()}, []
    server.url = f"https://{NAME}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def near(far, tmp_path_factory):
    """The service; names lead to this machine, which counts as public here."""

    def resolve(host, port, **_):
        return [(0, 0, 0, "", ("10.0.0.1" if host.startswith("inside") else "127.0.0.1", port))]

    hosts = functools.partial(
        AllowedHosts,
        reachable=lambda address: str(address) == "127.0.0.1",
        resolve=resolve,
        tls=far.trust,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(titles, "AllowedHosts", hosts)
        names = f"{NAME}:{far.server_port}", f"inside.example.org:{far.server_port}"
        with serving(tmp_path_factory.mktemp("near"), render_hosts=names) as served:
            yield served


def manifest_of(served, url):
    return served.client.get(f"{API}/transcode/manifest.json", params={"url": url})


def parts_of(served, manifest, rendition):
    """The initialization segment of a rendition and its segments, as published pages ask."""
    ends = manifest["endpoints"]

    def get(template, number=""):
        for name, value in {
            "rendition": rendition["id"],
            "segmentId": str(number),
            "src": manifest["sourceUrl"],
            "trackId": "undefined",
        }.items():
            template = template.replace("{" + name + "}", value)
        answer = served.client.get(template)
        assert answer.status_code == 200, answer.text
        return answer.content

    count = len(rendition["segmentDurationsMs"])
    return [get(ends["initSegment"]), *(get(ends["mediaSegment"], n) for n in range(1, count + 1))]


def test_each_packet_of_a_film_comes_through(far, near):
    answer = manifest_of(near, f"{far.url}/film.mp4")
    assert answer.status_code == 200, answer.text
    manifest = answer.json()
    assert manifest["durationMs"] == pytest.approx(10_000, abs=100)
    (video, scrub), (audio,) = manifest["videoRenditions"], manifest["audioRenditions"]
    assert (video["width"], video["height"], scrub["id"]) == (320, 180, "scrub")
    assert sum(video["segmentDurationsMs"]) == pytest.approx(10_000, abs=1)
    assert video["segmentDurationMs"] == max(video["segmentDurationsMs"])
    with av.open(io.BytesIO(far.files["/film.mp4"])) as source:
        sent = {"video": [], "audio": []}
        for packet in source.demux():
            if packet.size:
                sent[packet.stream.type].append((packet.is_keyframe, bytes(packet)))
    for kind, rendition in (("video", video), ("audio", audio)):
        with av.open(io.BytesIO(b"".join(parts_of(near, manifest, rendition)))) as played:
            played_packets = [bytes(packet) for packet in played.demux() if packet.size]
        assert played_packets == [data for _, data in sent[kind]]
    # the scrub rendition: the key pictures, at their times
    with av.open(io.BytesIO(b"".join(parts_of(near, manifest, scrub)))) as played:
        packets = [one for one in played.demux() if one.size]
    assert [bytes(one) for one in packets] == [data for key, data in sent["video"] if key]
    assert [float(one.pts * one.time_base) for one in packets] == pytest.approx(range(10))


def test_there_are_no_other_segments(far, near):
    url = f"{far.url}/film.mp4"
    for name in ("v1/0.m4s", "v1/99.m4s", "v1/01.m4s", "v7/1.m4s", "v1/init.m4s"):
        answer = near.client.get(f"{API}/transcode/{name}", params={"url": url})
        assert answer.status_code == 404, name


def test_a_film_that_changes_is_indexed_anew(far, near, tmp_path):
    url = f"{far.url}/changing.mp4"
    for pictures in (50, 75):
        films.film(tmp_path / "film.mp4", pictures)
        far.files["/changing.mp4"] = (tmp_path / "film.mp4").read_bytes()
        answer = near.client.get(f"{API}/transcode/v1/1.m4s", params={"url": url})
        assert answer.status_code == 200, answer.text
        assert manifest_of(near, url).json()["durationMs"] == pictures * 40


def test_a_film_that_many_ask_for_at_once_is_indexed_once(far, near, monkeypatch):
    far.files["/new.mp4"] = far.files["/film.mp4"]
    indexed, all_asked = [], threading.Event()
    make = titles.run_in_child

    def counted(*args, **how):
        indexed.append(how["name"])
        all_asked.wait()
        return make(*args, **how)

    monkeypatch.setattr(titles, "run_in_child", counted)
    url = f"{far.url}/new.mp4"
    flights = near.context.part(titles.RemoteTitles)._flights
    with ThreadPoolExecutor(6) as pool:
        asked = [pool.submit(manifest_of, near, url) for _ in range(6)]
        while flights._waiting[near.tenant, url] < 5:
            all_asked.wait(0.001)
        all_asked.set()
    assert {one.result().status_code for one in asked} == {200}
    assert indexed == [url]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://media.example.org/film.mp4", "only https"),
        ("https://other.example.org/film.mp4", "not on the operator's list"),
        ("file:///etc/passwd", "only https"),
        ("https://a:b@media.example.org/", "credentials"),
        ("{far}/none.mp4", "status 404"),
        ("{far}/text.mp4", ""),
        ("{far}/to:https://127.0.0.1/film.mp4", "not on the operator's list"),
        ("https://inside.example.org:{port}/film.mp4", "not public"),
        ("nonsense", "only https"),
    ],
)
def test_what_is_not_packaged(far, near, url, said):
    far.files["/text.mp4"] = b"no film at all, and a little more text" * 100
    url = url.replace("{far}", far.url).replace("{port}", str(far.server_port))
    answer = manifest_of(near, url)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]


def test_pages_of_renders_ask_with_their_own_rights(far, near):
    """No key: what they may ask is answered for the render's tenant."""
    own = OwnFiles(near.context, near.tenant)
    url = f"{far.url}/film.mp4"
    at = f"{ORIGIN}{API}/transcode"
    answer = own.fetch(f"{at}/manifest.json?url={url}", {"accept": "*/*"})
    assert answer.status == 200
    assert json.loads(answer.body)["sourceUrl"] == url
    segment = own.fetch(f"{at}/a1/1.m4s?url={url}&trackId=undefined", {})
    assert (segment.status, segment.body[4:8]) == (200, b"styp")


def test_a_page_in_a_browser_plays_it(far, near, browser):  # noqa: F811
    """With a URL token: it appends what it fetches."""
    media = manifest_of(near, f"{far.url}/film.mp4").json()["videoRenditions"][0]["mimeType"]
    token = near.client.post(f"{API}/url-token", json={"url": f"{API}/transcode"}).json()["token"]
    page = browser.new_page()
    page.goto(f"{near.url}/healthz")
    ends = page.evaluate(
        """async ({at, type}) => {
          const manifest = await (await fetch(at)).json();
          const rendition = manifest.videoRenditions[0];
          const url = (template, number) => template
            .replace("{rendition}", rendition.id).replace("{segmentId}", number)
            .replace("{src}", encodeURIComponent(manifest.sourceUrl)).replace("{trackId}", "");
          const video = document.createElement("video"), source = new MediaSource();
          video.src = URL.createObjectURL(source);
          await new Promise((done) => source.addEventListener("sourceopen", done));
          const buffer = source.addSourceBuffer(type);
          const addresses = [url(manifest.endpoints.initSegment, "")];
          rendition.segmentDurationsMs.forEach(
            (_, n) => addresses.push(url(manifest.endpoints.mediaSegment, n + 1)));
          for (const address of addresses) {
            const answer = await fetch(address);
            if (!answer.ok) throw new Error(await answer.text());
            buffer.appendBuffer(await answer.arrayBuffer());
            await new Promise((done) => buffer.addEventListener("updateend", done, {once: true}));
          }
          return [buffer.buffered.length, buffer.buffered.end(0)];
        }""",
        {"at": f"{near.url}{API}/transcode/manifest.json?url={far.url}/film.mp4&token={token}",
         "type": media},
    )  # fmt: skip
    assert ends == [1, pytest.approx(10, abs=0.1)]
