"""docs/libraries.md: folders as Immich and Jellyfin lay them out, and the addresses of the page."""

import re
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import fragdex

httpx = pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

from fragdex.origin.application import OriginSettings  # noqa: E402
from fragdex.origin.titles import Titles  # noqa: E402
from origin.serving import NGINX, behind_nginx, serving  # noqa: E402

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/libraries.md"
FILM = ROOT / "fixtures/faststart.mp4"
IMMICH = (
    "library/admin/2026/2026-05-04/IMG_0042.MOV",
    "upload/6ba7b810-9dad-11d1-80b4-00c04fd430c8/1f/ec/1fecd5a2-e8a1-4bb9-9f0c-d6b3a1c3f6e7.mp4",
)
JELLYFIN = "Movies/Night Walk (2024)/Night Walk (2024).mp4"


def page():
    names = {}
    for block in re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        exec(block, names)
    return names


def laid_out(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(FILM, folder / name)


def samples_of(client, playlist):
    """The samples of the pictures that a playlist leads to, one after the other."""
    base = playlist.rpartition("/")[0]
    (name,) = re.findall(r"^v\d\.m3u8$", client.get(playlist).text, re.MULTILINE)
    media = client.get(f"{base}/{name}").text
    names = re.findall(r'URI="([^"]+\.mp4)"', media)[:1]
    names += re.findall(r"^[^#].*$", media, re.MULTILINE)
    return samples(b"".join(client.get(f"{base}/{one}").content for one in names))


def samples(data):
    table = fragdex.index(data, exact=True).video.samples
    places = zip(table.offset.tolist(), table.size.tolist(), strict=True)
    return [data[start : start + size] for start, size in places]


@pytest.mark.parametrize("name", IMMICH)
def test_an_asset_of_immich_plays_in_its_original_quality(tmp_path, name):
    laid_out(tmp_path, *IMMICH)
    with serving(Titles(tmp_path)) as client:
        address = page()["address"]("/data/" + name, origin=str(client.base_url).rstrip("/"))
        assert samples_of(client, address) == samples(FILM.read_bytes())


def test_jellyfin_gets_addresses_that_are_signed(tmp_path):
    films, library = tmp_path / "films", tmp_path / "library"
    laid_out(films, JELLYFIN, "Movies/Another.mp4")
    captions = "1\n00:00:00,000 --> 00:00:01,000\nHello\n"
    (films / JELLYFIN).with_suffix(".en.srt").write_text(captions)
    with serving(Titles(films), OriginSettings(secret="sesame")) as client:
        page()["write_library"](films, library, str(client.base_url).rstrip("/"), "sesame")
        entry = (library / JELLYFIN).with_suffix(".strm")
        assert sorted(library.rglob("*.strm")) == [library / "Movies/Another.strm", entry]
        address = entry.read_text().strip()
        assert samples_of(client, address) == samples(FILM.read_bytes())
        assert 'TYPE=SUBTITLES,GROUP-ID="subtitles",NAME="en"' in client.get(address).text
        other = address.replace("Night%20Walk%20%282024%29", "Another")
        assert client.get(other).status_code in (403, 404)
        assert client.get("/" + JELLYFIN + "/hls/master.m3u8").status_code in (403, 404)


class Immich(BaseHTTPRequestHandler):
    """Answers as Immich does to who is logged in, and to who is not."""

    def do_GET(self):
        allowed = "immich_access_token=right" in self.headers.get("Cookie", "")
        self.send_response(200 if allowed else 401)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_):
        pass


@NGINX
def test_nginx_lets_in_whom_immich_lets_in(tmp_path):
    films = tmp_path / "films"
    laid_out(films, *IMMICH)
    immich = ThreadingHTTPServer(("127.0.0.1", 0), Immich)
    threading.Thread(target=immich.serve_forever, daemon=True).start()
    with serving(Titles(films)) as origin:
        ports = {8080: origin.base_url.port, 2283: immich.server_address[1]}
        with behind_nginx(tmp_path, PAGE, ports) as front:
            address = page()["address"]("/data/" + IMMICH[0], origin="/original")
            assert front.get(address).status_code == 401
            front.cookies["immich_access_token"] = "right"
            assert samples_of(front, address) == samples(FILM.read_bytes())
            assert front.get("/logged-in").status_code == 404
    immich.shutdown()
    immich.server_close()
