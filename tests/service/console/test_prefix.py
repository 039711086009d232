"""The service behind a proxy that puts a path before all of its own: every link carries it."""

import io
import json
import uuid
from contextlib import contextmanager
from urllib.parse import urljoin

import pytest
from PIL import Image

import fragdex
from fragdex.formats import export
from fragdex.rendering.site import ORIGIN
from fragdex.service.renders.workspaces import OwnFiles
from service.console.conftest import Opened
from service.proxying import proxying
from service.serving import API, client_of, serving
from service.working import fixture_bytes

TRACKS = {"video": "frag-global-sidx-video.mp4", "audio": "frag-audio.m4a"}


@contextmanager
def behind(folder, prefix, strips):
    """(the proxy, the service, a client that asks through the proxy)."""
    with (
        proxying(prefix, strips=strips) as proxy,
        serving(folder, public_url=proxy.url) as served,
        client_of(proxy.url.removesuffix(prefix), served.key) as client,
    ):
        proxy.target = served.address
        yield proxy, served, client


@pytest.fixture(
    scope="module",
    params=[("/media", True), ("/media", False), ("/api", False), ("/a/b.c", True)],
    ids=lambda one: f"{one[0]}-{'stripped' if one[1] else 'whole'}",
)
def placed(request, tmp_path_factory):
    prefix, strips = request.param
    with behind(tmp_path_factory.mktemp("placed"), prefix, strips) as (proxy, served, client):
        yield prefix, proxy, served, client
        assert proxy.strays == []


def picture():
    out = io.BytesIO()
    Image.frombytes("RGB", (4, 4), uuid.uuid4().bytes * 3).save(out, "PNG")
    return out.getvalue()


def test_every_Location_leads_to_the_record(placed):
    prefix, _, _, client = placed
    data = picture()
    bodies = {
        "image_files": {"filename": "a.png", "byte_size": len(data)},
        "caption_files": {"filename": "a.vtt", "byte_size": 9, "md5": uuid.uuid4().hex},
        "unprocessed_files": {"filename": "a.mp4", "byte_size": 9, "md5": uuid.uuid4().hex},
        "files": {"filename": "b.png", "byte_size": len(data), "type": "image"},
        "isobmff_files": {"filename": "a.mp4", "md5": uuid.uuid4().hex},
        "renders": {"html": "<p>"},
    }
    for family, body in bodies.items():
        headers = {"Idempotency-Key": uuid.uuid4().hex, "Accept": "application/json"}
        for _ in range(2):
            answer = client.post(f"{prefix}{API}/{family}", json=body, headers=headers)
            assert answer.status_code == 201, answer.text
            assert answer.headers["location"].startswith(f"{prefix}{API}/{family}/")
        record = client.get(answer.headers["location"], headers=headers)
        assert record.json()["id"] == answer.json()["id"]
    track = {"file_id": record_id(client, prefix), "track_id": 1, "type": "video", "byte_size": 1}
    answer = client.post(f"{prefix}{API}/isobmff_tracks", json=track)
    # nothing was sent yet: 409 of the bytes, and no 404 of the path
    assert client.get(answer.headers["location"]).status_code == 409


def record_id(client, prefix):
    body = {"filename": "a.mp4", "md5": uuid.uuid4().hex}
    return client.post(f"{prefix}{API}/isobmff_files", json=body).json()["id"]


def test_problems_and_the_document_name_places_below_it(placed):
    prefix, proxy, _, client = placed
    problem = client.get(f"{prefix}{API}/files/nothing").json()
    assert problem["type"] == f"{prefix}/docs#not-found"
    docs = client.get(problem["type"])
    assert docs.status_code == 200
    assert 'id="not-found"' in docs.text
    document = client.get(urljoin(str(docs.url), "openapi.json")).json()
    assert [one["url"] for one in document["servers"]] == [proxy.url]
    path = next(path for path in document["paths"] if path.endswith("/files"))
    assert client.get(document["servers"][0]["url"] + path).status_code == 200
    for path in ("/healthz", "/readyz", "/metrics", "/"):
        assert client.get(prefix + path).status_code == 200
        assert client.head(prefix + path).status_code == 200


def test_a_token_opens_what_its_URL_names_below_it(placed):
    prefix, proxy, _, client = placed
    data = picture()
    body = {"filename": "a.png", "byte_size": len(data), "type": "image"}
    place = client.post(f"{prefix}{API}/files", json=body).headers["location"]
    assert client.post(f"{place}/upload", content=data).status_code == 201
    root = proxy.url.removesuffix(prefix)
    for url in (place, root + place, place.removeprefix(prefix)):
        token = client.post(f"{prefix}{API}/url-token", json={"url": url}).json()["token"]
        with client_of(root) as anyone:
            assert anyone.get(place, params={"token": token}).content == data
            assert anyone.get(f"{place}0", params={"token": token}).status_code == 403
    token = client.post(f"{prefix}{API}/url-token", json={"url": f"{root}/else"}).json()["token"]
    with client_of(root) as anyone:
        assert anyone.get(place, params={"token": token}).status_code == 403


def test_playlists_lead_to_bytes_below_it(placed):
    """From the playlist of all tracks, without a header, to the bytes of each."""
    prefix, proxy, _, client = placed
    at = f"{prefix}{API}"
    file_id = record_id(client, prefix)
    tracks = {kind: fixture_bytes(name, salt=uuid.uuid4()) for kind, name in TRACKS.items()}
    for number, (kind, data) in enumerate(tracks.items(), 1):
        body = {"file_id": file_id, "track_id": number, "type": kind, "byte_size": len(data)}
        new_track = client.post(f"{at}/isobmff_tracks", json=body)
        assert (
            client.post(f"{new_track.headers['location']}/upload", content=data).status_code == 201
        )
    index = {
        str(number): {**one, "track": number}
        for number, data in enumerate(tracks.values(), 1)
        for one in json.loads(export(fragdex.index(data, exact=True), "json")).values()
    }
    place = f"{at}/isobmff_files/{file_id}/index/upload"
    assert client.post(place, json=index).status_code == 201
    for below, opened in (("files", "files"), ("isobmff_files", None)):
        place = f"{at}/{below}/{file_id}"
        token = {}
        if opened:
            signed = client.post(f"{at}/url-token", json={"url": place}).json()["token"]
            token = {"token": signed}
        with client_of(proxy.url.removesuffix(prefix)) as anyone:
            asker = anyone if opened else client
            first = asker.get(f"{place}/index", params={"format": "hls", **token})
            ends = [*walk(asker, first)]
        assert {answer.content for answer in ends} == set(tracks.values())


def walk(client, playlist):
    """Every answer that is not a playlist, of all that a playlist leads to."""
    assert playlist.status_code == 200, playlist.text
    named = {line for line in playlist.text.splitlines() if line and not line.startswith("#")}
    named |= {
        line.partition('URI="')[2].partition('"')[0]
        for line in playlist.text.splitlines()
        if 'URI="' in line
    }
    for one in named:
        answer = client.get(urljoin(str(playlist.url), one))
        if answer.headers["content-type"].startswith("application/vnd.apple"):
            yield from walk(client, answer)
        else:
            yield answer


def test_the_path_alone_leads_to_the_page(placed):
    prefix, proxy, _, client = placed
    answer = client.get(prefix)
    if proxy.strips:
        assert answer.status_code == 200  # the proxy asks for `/`
    else:
        assert (answer.status_code, answer.headers["location"]) == (308, f"{prefix}/")


def test_the_page_asks_for_nothing_beside_it(browser, film, tmp_path):
    with behind(tmp_path / "data", "/media", True) as (proxy, served, _):
        page = browser.new_page()
        try:
            opened = Opened(page, type("Below", (), {"url": proxy.url, "key": served.key}))
            opened.unlock().send(film.fragmented)
            page.reload()  # a deep link
            opened.ready("fragmented.mp4")
            page.get_by_role("link", name="Interface").click()
            page.get_by_role("heading", name="fragdex").wait_for()
            assert opened.wrong == []
        finally:
            page.close()
        assert proxy.strays == []
        assert any("/upload" in path for path in proxy.asked)
        assert any(path.endswith("/media/docs") for path in proxy.asked)


def test_pages_of_renders_read_files_below_the_prefix(placed):
    """A manifest names its segments there; beside the prefix is another's."""
    prefix, proxy, served, client = placed
    data = picture()
    body = {"filename": "a.png", "byte_size": len(data)}
    id = client.post(f"{prefix}{API}/image_files", json=body).json()["id"]
    client.post(f"{prefix}{API}/image_files/{id}/upload", content=data)
    own = OwnFiles(served.context, served.tenant)
    for url in (f"{proxy.url}{API}", f"{ORIGIN}{API}"):
        assert own.fetch(f"{url}/image_files/{id}", {}).body == data
        assert own.fetch(f"{url}/image_files/{id}.json", {}).status == 200
    assert not own.knows(f"{proxy.url.removesuffix(prefix)}{API}/image_files/{id}")
    assert not own.knows(f"{ORIGIN}{prefix}{API}/image_files/{id}")
