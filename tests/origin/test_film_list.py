"""The list of films: of a folder and of a bucket, page by page, as a page and as JSON."""

import os
import time
from datetime import datetime

import pytest

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")
obstore = pytest.importorskip("obstore")

from obstore.store import MemoryStore  # noqa: E402

from fragdex.origin import film_list  # noqa: E402
from fragdex.origin.addresses import signed  # noqa: E402
from fragdex.origin.application import OriginSettings  # noqa: E402
from fragdex.origin.titles import Titles  # noqa: E402
from fragdex.testing import movie  # noqa: E402
from origin.serving import serving  # noqa: E402

FILMS = ["a.mp4", "a/b & c.mp4", "a/d/e.MOV", "a/f.mp4", "a0.m4a", "ä.mp4"]
OTHERS = ["a/notes.txt", ".hidden.mp4", "a/.git/x.mp4", "low,high.mp4", "z/readme"]
JSON = {"accept": "application/json"}
FILM = movie(2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("films")
    for name in (*FILMS, *OTHERS):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(FILM)
    (root.parent / "outside.mp4").write_bytes(FILM)
    (root / "b.mp4").symlink_to(root.parent / "outside.mp4")
    (root / "a/again").symlink_to(root)
    (root / os.fsdecode(b"\xff.mp4")).write_bytes(FILM)
    return root


@pytest.fixture(scope="module")
def bucket():
    store = MemoryStore()
    for name in (*FILMS, *OTHERS):
        store.put(name, FILM)
    return store


@pytest.fixture(scope="module", params=["folder", "bucket"])
def client(request, folder, bucket):
    titles = Titles(folder) if request.param == "folder" else Titles("s3://films", store=bucket)
    with serving(titles) as client:
        yield client


def pages(client, limit, address="/"):
    """All films, by the addresses of the next pages."""
    answer = client.get(f"{address}?limit={limit}", headers=JSON)
    while True:
        assert answer.status_code == 200, answer.text
        page = answer.json()
        assert len(page["films"]) <= limit
        yield page["films"]
        if page["next"] is None:
            return
        answer = client.get(answer.url.join(page["next"]), headers=JSON)


@pytest.mark.parametrize("limit", [1, 2, 4, len(FILMS), 1000])
def test_every_film_is_on_one_page(client, limit):
    listed = list(pages(client, limit))
    assert [one["name"] for films in listed for one in films] == FILMS
    assert len(listed) == -(-len(FILMS) // limit)
    for one in (one for films in listed for one in films):
        assert one["bytes"] == len(FILM)
        written = datetime.fromisoformat(one["modified"]).timestamp()
        assert abs(time.time() - written) < 3600


def test_the_addresses_of_the_list_play(client):
    (films,) = pages(client, 100)
    page = client.get("/", headers={"accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["vary"] == "Accept"
    assert page.headers["cache-control"] == "public, max-age=60"
    for one in films:
        assert f'href="{one["url"]}"' in page.text
    more = client.get("/?limit=2").text
    assert 'href="?after=a%2Fb+%26+c.mp4&amp;limit=2" rel="next"' in more


def test_films_are_looked_for_in_bounded_steps(client, monkeypatch):
    monkeypatch.setattr(film_list, "_LOOKED_AT", 3)
    listed = list(pages(client, 100))
    assert [one["name"] for films in listed for one in films] == FILMS
    assert len(listed) > 3


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "after=" + 1025 * "a"])
def test_what_is_no_page(client, query):
    assert client.get(f"/?{query}").status_code == 400


def test_the_list_of_signed_films_is_signed(folder):
    until = int(time.time()) + 60
    with serving(Titles(folder), OriginSettings(secret="secret")) as client:
        address = f"/{signed('secret', '', until)}/"
        listed = [one for films in pages(client, 2, address) for one in films]
        assert [one["name"] for one in listed] == FILMS
        at = client.get(address)
        assert at.headers["cache-control"].startswith("private")
        for one in listed:
            film = client.get(at.url.join(one["url"]))
            assert film.status_code == 200
            assert "All videos" not in film.text
        late = signed("secret", "", int(time.time()) - 1)
        other = signed("other", "", until)
        of_a_film = signed("secret", "a.mp4", until)
        for wrong in (late, other, of_a_film):
            assert client.get(f"/{wrong}/").status_code == 403
        # that of the list opens no film by itself
        assert client.get(f"{address}a.mp4/").status_code == 403
        assert client.get("/").status_code == 404
    with serving(Titles(folder), OriginSettings(listed=False)) as client:
        assert client.get("/").status_code == 404


def test_what_has_no_list(monkeypatch):
    with serving(Titles("https://127.0.0.1:1/films")) as client:
        answer = client.get("/")
        assert (answer.status_code, "by their names" in answer.text) == (404, True)
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "us-east-1"}
    keys |= {"AWS_ENDPOINT": "http://127.0.0.1:1", "AWS_ALLOW_HTTP": "true"}
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    with serving(Titles("s3://none", retries=0)) as client:
        assert client.get("/").status_code == 502
