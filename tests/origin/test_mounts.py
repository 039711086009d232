"""The origin inside of Starlette, FastAPI and Django; below prefixes and behind proxies."""

import asyncio
import re
import shutil
import sys
import types
from pathlib import Path
from urllib.parse import urljoin

import pytest

pytest.importorskip("httpx")
pytest.importorskip("starlette")

from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from fragdex.errors import SourceNotFound
from fragdex.origin import make_app

FIXTURES = Path(__file__).parents[2] / "fixtures"
FILM = "frag-cmaf.mp4"
PATHS = (
    f"{FILM}/hls/master.m3u8", f"{FILM}/dash/manifest.mpd", f"{FILM}/",
    f"{FILM}/clip.mp4?start=0&end=1", f"{FILM}/fragmented.mp4", f"{FILM}/faststart.mp4",
    "healthz", "", f"{FILM}/thumbnail.jpg", "nothing.mp4/hls/master.m3u8",
)  # fmt: skip


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    shutil.copy(FIXTURES / FILM, folder)
    (folder / "a b").mkdir()
    shutil.copy(FIXTURES / FILM, folder / "a b" / "c:d?.mp4")
    return folder


def starlette(films):
    return Starlette(routes=[Mount("/a/media", app=make_app(films))])


def fastapi(films):
    app = pytest.importorskip("fastapi").FastAPI()
    app.mount("/a/media", make_app(films))

    @app.get("/mine")
    def mine():
        return "theirs"

    return app


def django(films):
    """Django passes no mounts on: a function of its asgi.py chooses by the path."""
    pytest.importorskip("django")
    from django.conf import settings
    from django.core.asgi import get_asgi_application
    from django.http import HttpResponse
    from django.urls import path

    urls = sys.modules["urls_of_a_test"] = types.ModuleType("urls_of_a_test")
    urls.urlpatterns = [path("mine", lambda request: HttpResponse('"theirs"'))]
    if not settings.configured:
        settings.configure(ROOT_URLCONF=urls.__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="test")
    theirs, ours = get_asgi_application(), make_app(films, prefix="/a/media")

    async def application(scope, receive, send):
        chosen = ours if scope.get("path", "").startswith("/a/media") else theirs
        await chosen(scope, receive, send)

    return application


def proxied(films):
    """A proxy that takes the prefix away, and tells nobody."""
    inside = make_app(films)

    async def proxy(scope, receive, send):
        if scope["type"] == "http":
            scope = scope | {"path": scope["path"].removeprefix("/a/media") or "/"}
        await inside(scope, receive, send)

    return proxy


def told(films):
    """A server that is told the prefix (root_path) behind a proxy that takes it away."""
    inside = make_app(films)

    async def server(scope, receive, send):
        path = scope.get("path", "").removeprefix("/a/media")
        await inside(scope | {"root_path": "/a/media", "path": path or "/"}, receive, send)

    return server


@pytest.mark.parametrize("around", [starlette, fastapi, django, proxied, told])
def test_it_answers_as_by_itself(films, around):
    # Django's handler has no lifespan: no `with`
    one, other = TestClient(make_app(films)), TestClient(around(films))
    for path in PATHS:
        expected, answer = one.get(f"/{path}"), other.get(f"/a/media/{path}")
        assert (answer.status_code, answer.content) == (expected.status_code, expected.content)
        assert answer.headers.get("etag") == expected.headers.get("etag")
    playlist = other.get(f"/a/media/{FILM}/hls/v1.m3u8").text
    segment = next(line for line in playlist.splitlines() if line.endswith(".m4s"))
    for _ in range(2):  # the second time from what is prepared
        answer = other.get(f"/a/media/{FILM}/hls/{segment}")
        assert answer.content == one.get(f"/{FILM}/hls/{segment}").content
    for name in (FILM, "a%20b/c:d%3F.mp4"):
        moved = other.get(f"/a/media/{name}?x=1", follow_redirects=False)
        assert moved.status_code == 308
        there = urljoin(f"http://testserver/a/media/{name}?x=1", moved.headers["location"])
        assert there == f"http://testserver/a/media/{name}/?x=1"
        assert other.get(there).status_code == 200
    home = re.search(r'href="([^"]+)">All videos', other.get(f"/a/media/{FILM}/").text)[1]
    assert urljoin(f"/a/media/{FILM}/", home) == "/a/media/"
    part = other.get(f"/a/media/{FILM}/faststart.mp4", headers={"Range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, b"ftyp")
    if around in (fastapi, django):
        assert other.get("/mine").text == '"theirs"'


@pytest.mark.parametrize("around", [starlette, fastapi, django])
def test_the_place_of_the_mount_without_a_slash_leads_to_the_list(films, around):
    answer = TestClient(around(films)).get("/a/media", headers={"Accept": "application/json"})
    assert answer.url.path == "/a/media/"
    names = [one["name"] for one in answer.json()["films"]]
    assert names == ["a b/c:d?.mp4", FILM]
    for one in answer.json()["films"]:
        assert TestClient(around(films)).get(f"/a/media/{one['url']}").status_code == 200


def test_nothing_that_a_proxy_tells_is_believed(films):
    headers = {
        "X-Forwarded-Host": "elsewhere.test", "X-Forwarded-Proto": "https",
        "X-Forwarded-Prefix": "/elsewhere", "Forwarded": "host=elsewhere.test",
    }  # fmt: skip
    client = TestClient(make_app(films), follow_redirects=False)
    for path in (*PATHS, FILM):
        plain, claimed = client.get(f"/{path}"), client.get(f"/{path}", headers=headers)
        assert claimed.content == plain.content
        assert "elsewhere" not in str(claimed.headers)
        assert plain.headers.get("location") == claimed.headers.get("location")


def test_a_closed_one_holds_no_film_open(films):
    app = make_app(films)
    client = TestClient(app)
    assert client.get(f"/{FILM}/hls/v1/0.m4s").status_code == 200
    (film,) = app._titles._films.values()
    app.close()
    assert film.forgotten
    assert not film.idle
    assert client.get(f"/{FILM}/hls/v1/0.m4s").status_code == 200
    app.close()


def test_what_is_no_folder_and_no_prefix(tmp_path):
    with pytest.raises(SourceNotFound):
        make_app(tmp_path / "none")
    for prefix in ("films", "/films/"):
        with pytest.raises(ValueError, match="prefix"):
            make_app(tmp_path, prefix=prefix)
    with pytest.raises(TypeError, match="did you mean prefix"):
        make_app(tmp_path, prefx="/films")


def test_a_server_closes_it_at_the_end(films):
    app = make_app(films)
    with TestClient(app) as client:
        client.get(f"/{FILM}/hls/master.m3u8")
        (film,) = app._titles._films.values()
    assert film.forgotten
    assert asyncio.iscoroutinefunction(app.__call__)
