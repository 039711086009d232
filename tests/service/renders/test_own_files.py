"""Files of the service as sources of a page: by ranges, of the render's own tenant alone."""

import io

import pytest
from PIL import Image

from fragdex.errors import Unavailable
from fragdex.rendering.site import Answer, Blocked
from fragdex.service.renders.workspaces import MAX_BYTES, OwnFiles
from fragdex.service.web.in_process import InProcess
from service.serving import API
from service.working import fixture_bytes, uploaded

SITE = "http://site.localhost"
FILM = fixture_bytes("frag-global-sidx-video.mp4", salt="own files")


@pytest.fixture(scope="module")
def own(server):
    return OwnFiles(server.context, server.tenant)


@pytest.fixture(scope="module")
def film(server):
    """The id of a film that is a track of itself, and came as it is."""
    id = uploaded(server.client, FILM)["id"]
    answer = server.client.post(f"{API}/unprocessed_files/{id}/process")
    assert answer.json()["status"] == "complete"
    return id


def picture():
    out = io.BytesIO()
    Image.effect_noise((9, 9), 50).save(out, "PNG")
    return out.getvalue()


def fetch(own, path, **headers):
    return own.fetch(f"{SITE}{API}/{path}", headers)


@pytest.mark.parametrize("place", ["files", "unprocessed_files", "isobmff_files"])
def test_a_film_is_read_whole_and_by_ranges(own, film, place):
    whole = fetch(own, f"{place}/{film}")
    assert (whole.status, whole.body) == (200, FILM)
    assert whole.headers["accept-ranges"] == "bytes"
    part = fetch(own, f"{place}/{film}", Range="bytes=10-19")
    assert (part.status, part.body) == (206, FILM[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(FILM)}"
    last = fetch(own, f"{place}/{film}", range="bytes=-5")
    assert (last.status, last.body) == (206, FILM[-5:])
    beyond = fetch(own, f"{place}/{film}", Range=f"bytes={len(FILM)}-")
    assert (beyond.status, beyond.headers["content-range"]) == (416, f"bytes */{len(FILM)}")


def test_tracks_are_picked_by_kind(server, own, film):
    for number, kind in ((7, "audio"), (-1, "video")):
        body = {"file_id": film, "track_id": number, "type": kind, "byte_size": 3}
        server.client.post(f"{API}/isobmff_tracks", json=body)
        sent = server.client.post(f"{API}/isobmff_tracks/{film}/{number}/upload", content=b"abc")
        assert sent.status_code == 201
    assert fetch(own, f"files/{film}?type=video").body == FILM
    sound = fetch(own, f"isobmff_files/{film}?type=audio")
    assert (sound.body, sound.headers["content-type"]) == (b"abc", "audio/mp4")
    for path in (f"isobmff_tracks/{film}/7", f"files/{film}/tracks/7"):
        assert fetch(own, path).body == b"abc"
    assert fetch(own, f"isobmff_tracks/{film}/9").status == 404


def test_pictures_and_captions(server, own):
    data = picture()
    id = uploaded(server.client, data, "a.png", "image_files")["id"]
    for path in (f"files/{id}", f"image_files/{id}"):
        answer = fetch(own, path)
        assert (answer.body, answer.headers["content-type"]) == (data, "image/png")
    words = b"WEBVTT\n\n00:01.000 --> 00:02.000\nword\n"
    id = uploaded(server.client, words, "a.vtt", "caption_files")["id"]
    assert fetch(own, f"files/{id}").body == fetch(own, f"caption_files/{id}").body == words


def test_what_is_anothers_or_nothing_is_404_and_noted(server, own, film):
    theirs = uploaded(server.stranger, picture(), "a.png", "image_files")["id"]
    for path in (
        f"image_files/{theirs}", f"files/{theirs}", f"isobmff_files/{theirs}", "files/1",
        f"renders/{film}.mp4", f"image_files/{film}", f"caption_files/{film}",
    ):  # fmt: skip
        answer = fetch(own, path)
        assert (answer.status, answer.body) == (404, b"no such file"), path
        assert own.reads[f"{API}/{path}"] is None
    for path in (
        f"files/{film}.json", f"isobmff_tracks/{film}", "files/%2e%2e/x",
        "files/../../etc/passwd", f"files/{theirs}/index", f"image_files/{theirs}.json",
    ):  # fmt: skip
        answer = fetch(own, path)
        assert (answer.status, answer.body[:1]) == (404, b"{"), path
        assert own.reads[f"json {API}/{path}"] is None
    assert isinstance(fetch(OwnFiles(server.context, "nobody"), f"files/{film}"), Answer)
    assert fetch(OwnFiles(server.context, "nobody"), f"files/{film}").status == 404


def test_records_are_those_that_a_client_of_the_tenant_gets(server, own, film):
    image = uploaded(server.client, picture(), "c.png", "image_files")
    as_json = {"Content-Type": "application/json"}
    for path in (
        f"files/{film}", f"files/{film}/index", f"isobmff_files/{film}", f"files/{image['id']}",
        f"files/md5/{image['md5']}", f"image_files/{image['id']}.json",
        f"isobmff_files/{film}/seek?time_ms=0",
    ):  # fmt: skip
        response = server.client.get(f"{API}/{path}", headers=as_json)
        answer = fetch(own, path, **as_json)
        assert (answer.status, answer.body.strip()) == (200, response.content.strip()), path
        theirs = fetch(OwnFiles(server.context, "nobody"), path, **as_json)
        assert theirs.status == 404, path
    # programs name JSON also where they want media
    assert fetch(own, f"image_files/{image['id']}", **as_json).body.startswith(b"\x89PNG")


@pytest.mark.parametrize("path", ["files", "renders?limit=9", "isobmff_files/", "", "keys"])
def test_a_page_finds_only_what_it_was_told_of(own, path):
    with pytest.raises(Blocked, match="lists and events are not served to pages"):
        fetch(own, path, accept="application/json")


def test_events_have_no_end_and_are_not_for_pages(own, film):
    with pytest.raises(Blocked, match="lists and events are not served to pages"):
        fetch(own, f"files/{film}/progress")


def test_a_record_that_changed_does_not_hold(server):
    first = OwnFiles(server.context, server.tenant)
    id = uploaded(server.client, picture(), "d.png", "image_files")["id"]
    assert fetch(first, f"image_files/{id}.json").status == 200
    assert OwnFiles(server.context, server.tenant).holds(first.reads)
    assert not OwnFiles(server.context, "nobody").holds(first.reads)
    server.client.delete(f"{API}/image_files/{id}")
    assert not OwnFiles(server.context, server.tenant).holds(first.reads)


def test_a_record_that_cannot_be_read_now_does_not_hold(own, film, monkeypatch):
    assert fetch(own, f"files/{film}.json").status == 404
    assert fetch(own, f"files/{film}/index").status == 200
    reads = {path: sha256 for path, sha256 in own.reads.items() if film in path}

    def busy(*_):
        raise Unavailable("not now")

    monkeypatch.setattr(InProcess, "get", busy)
    assert not own.holds(reads)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.org/api/v1/files/1",
        "http://site.localhost/files/1",
        "http://site.localhost:81/api/v1/files/1",
        "http://user@site.localhost/api/v1/files/1",
        "http://[/api/v1/files/1",
    ],
)
def test_other_urls_are_not_its_own(own, url):
    assert not own.knows(url)
    with pytest.raises(Blocked):
        own.fetch(url, {})


def test_what_was_read_holds_as_long_as_the_bytes_are_there(server):
    data = picture()
    id = uploaded(server.client, data, "b.png", "image_files")["id"]
    first = OwnFiles(server.context, server.tenant)
    fetch(first, f"files/{id}")
    fetch(first, "files/01900000-0000-7000-8000-000000000000")
    assert OwnFiles(server.context, server.tenant).holds(first.reads)
    assert not OwnFiles(server.context, "nobody").holds(first.reads)
    server.client.delete(f"{API}/image_files/{id}")
    assert not OwnFiles(server.context, server.tenant).holds(first.reads)


def test_what_is_large_is_read_by_ranges_alone(server):
    data = bytes(MAX_BYTES + 1)
    id = uploaded(server.client, data, "large.mkv")["id"]
    own = OwnFiles(server.context, server.tenant)
    with pytest.raises(Blocked, match="by ranges"):
        fetch(own, f"files/{id}")
    part = fetch(own, f"files/{id}", Range="bytes=0-")
    assert len(part.body) == MAX_BYTES
    assert part.headers["content-range"] == f"bytes 0-{MAX_BYTES - 1}/{MAX_BYTES + 1}"
