"""Image files as clients use them: announce, upload, look up, show, list, delete."""

import hashlib

import pytest

from fragdex.service.records.identifiers import md5_text
from service.images.conftest import SVG, claimed_png, made

FILES = "/api/v1/image_files"
PNG = made("PNG")


def dashed(data):
    return md5_text(hashlib.md5(data).digest())


def post(client, **fields):
    return client.post(FILES, json=fields)


def upload(client, image_id, data, start=0, total=None, stop=None, form="bytes {}-{}/{}"):
    stop = len(data) if stop is None else stop
    span = form.format(start, stop - 1, len(data) if total is None else total)
    return client.post(
        f"{FILES}/{image_id}/upload",
        content=data[start:stop],
        # published clients call every body JSON
        headers={"Content-Range": span, "Content-Type": "application/json"},
    )


def whole(client, data=PNG, filename="a.png", **fields):
    """A complete image of this data; the record."""
    image = post(client, filename=filename, byte_size=len(data), **fields).json()
    answer = client.post(f"{FILES}/{image['id']}/upload", content=data)
    assert answer.status_code == 201, answer.text
    return answer.json()


def varied(number):
    return made("PNG", (100 + number, 10))


def test_POST_announces_and_answers_201(client):
    data = varied(1)
    answer = post(client, filename="a.png", byte_size=len(data), md5=dashed(data).upper())
    assert answer.status_code == 201
    record = answer.json()
    assert answer.headers["location"] == f"{FILES}/{record['id']}.json"
    assert record["md5"] == dashed(data)
    assert record["byte_size"] == len(data)
    assert (record["complete"], record["next_byte"], record["status"]) == (False, 0, "created")
    assert record["mime_type"] == "image/png"
    assert "path" not in record


def test_POST_of_a_known_md5_answers_200_with_the_record_that_is_there(server, client):
    data = varied(2)
    hexadecimal = hashlib.md5(data).hexdigest()
    first = post(client, filename="a.png", byte_size=len(data), md5=hexadecimal)
    again = post(client, filename="b.png", byte_size=len(data), md5=dashed(data))
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["id"] == first.json()["id"]
    others = post(server.stranger, filename="a.png", byte_size=len(data), md5=dashed(data))
    assert others.status_code == 201


def test_POST_of_an_md5_announced_with_another_size_is_another_record(client):
    md5 = hashlib.md5(b"unknown").hexdigest()
    first = post(client, filename="a.png", byte_size=10, md5=md5)
    other = post(client, filename="a.png", byte_size=11, md5=md5)
    assert (first.status_code, other.status_code) == (201, 201)


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"filename": "a.bmp"}, "#/filename"),
        ({"filename": "a"}, "#/filename"),
        ({"filename": "a.png", "mime_type": "text/html"}, "#/mime_type"),
        ({"filename": ""}, "#/filename"),
        ({"filename": "a\x00.png"}, "#/filename"),
        ({"filename": "a.png", "byte_size": -1}, "#/byte_size"),
        ({"filename": "a.png", "byte_size": False}, "#/byte_size"),
        ({"filename": "a.png", "byte_size": "12"}, "#/byte_size"),
        ({"filename": "a.png", "md5": "x" * 32}, "#/md5"),
        ({"filename": "a.png", "width": -1}, "#/width"),
    ],
)
def test_POST_of_what_breaks_a_rule_names_the_field(client, fields, pointer):
    answer = post(client, **{"byte_size": 10, **fields})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == pointer


def test_POST_over_the_limit_is_413_with_the_limit(client):
    answer = post(client, filename="a.png", byte_size=(16 << 20) + 1)
    assert answer.status_code == 413
    assert answer.json()["limit"] == 16 << 20


@pytest.mark.parametrize("form", ["bytes {}-{}/{}", "bytes={}-{}/{}"])
def test_upload_in_chunks_is_202_until_the_last(client, form):
    data = varied(3 + ("=" in form))  # another image for each form
    image = post(client, filename="a.png", byte_size=len(data), md5=dashed(data)).json()
    before = client.get(f"{FILES}/{image['id']}/upload")
    assert (before.status_code, before.json()["next_byte"]) == (404, 0)
    first = upload(client, image["id"], data, 0, stop=50, form=form)
    assert first.status_code == 202
    assert (first.json()["next_byte"], first.json()["status"]) == (50, "uploading")
    assert client.get(f"{FILES}/{image['id']}/upload").json()["next_byte"] == 50
    gap = upload(client, image["id"], data, 60, form=form)
    assert (gap.status_code, gap.json()["next_byte"]) == (409, 50)
    again = upload(client, image["id"], data, 0, stop=60, form=form)
    assert again.status_code == 202, "published clients start again at byte 0"
    last = upload(client, image["id"], data, 60, form=form)
    assert last.status_code == 201
    assert last.json()["complete"]
    after = client.get(f"{FILES}/{image['id']}/upload")
    assert (after.status_code, after.json()) == (200, last.json())


def test_upload_of_another_md5_is_422_and_starts_over(client):
    data = varied(20)
    image = post(client, filename="a.png", byte_size=len(data), md5=dashed(b"other")).json()
    answer = upload(client, image["id"], data)
    assert (answer.status_code, answer.json()["next_byte"]) == (422, 0)
    assert client.get(f"{FILES}/{image['id']}/upload").json()["next_byte"] == 0


def test_upload_of_another_total_is_422(client):
    image = post(client, filename="a.png", byte_size=100).json()
    assert upload(client, image["id"], bytes(50), total=200).status_code == 422


@pytest.mark.parametrize(
    ("data", "filename"),
    [
        (SVG, "evil.png"),
        (b"<html><script>alert(1)</script>", "evil.svg"),
        (made("GIF"), "a.jpg"),
        (claimed_png(50_000, 50_000), "huge.png"),
        (b"nothing", "a.webp"),
    ],
)
def test_bytes_that_are_not_what_was_announced_are_422_and_not_kept(client, data, filename):
    image = post(client, filename=filename, byte_size=len(data)).json()
    answer = client.post(f"{FILES}/{image['id']}/upload", content=data)
    assert answer.status_code == 422, answer.text
    assert client.get(f"{FILES}/{image['id']}.json").json()["complete"] is False
    early = client.get(f"{FILES}/{image['id']}")
    assert (early.status_code, early.json()["state"]) == (409, "created")


@pytest.mark.parametrize(
    ("data", "mime_type", "size"),
    [
        (made("JPEG", (50, 40), orientation=6), "image/jpeg", (40, 50)),
        (made("PNG", (51, 40)), "image/png", (51, 40)),
        (made("WEBP", (52, 40)), "image/webp", (52, 40)),
        (SVG, "image/svg+xml", (30, 20)),
    ],
)
def test_GET_gives_the_bytes_with_the_right_type(client, data, mime_type, size):
    record = whole(client, data, filename="a", mime_type=mime_type, width=1, height=1)
    assert (record["width"], record["height"]) == size
    assert record["md5"] == dashed(data)
    assert client.get(f"{FILES}/md5/{dashed(data)}").json() == record
    assert client.get(f"{FILES}/md5/{hashlib.md5(data).hexdigest().upper()}").json() == record
    assert client.get(f"{FILES}/{record['id']}.json").json() == record
    answer = client.get(f"{FILES}/{record['id']}")
    assert answer.status_code == 200
    assert answer.content == data
    assert answer.headers["content-type"] == mime_type
    assert answer.headers["etag"] == f'"{dashed(data)}"'
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "sandbox" in policy
    assert "script-src" not in policy
    head = client.head(f"{FILES}/{record['id']}")
    assert (head.status_code, head.headers["content-length"]) == (200, str(len(data)))
    part = client.get(f"{FILES}/{record['id']}", headers={"Range": "bytes=1-3"})
    assert (part.status_code, part.content) == (206, data[1:4])


def test_an_image_of_no_bytes_is_complete_at_once(client):
    record = post(client, filename="a.png", byte_size=0).json()
    assert record["complete"]
    assert record["md5"] == dashed(b"")
    assert client.get(f"{FILES}/{record['id']}").content == b""


def test_GET_lists_newest_first_by_pages_and_status(server):
    client = server.stranger
    ids = [whole(client, varied(n))["id"] for n in (30, 31, 32)]
    ids.append(post(client, filename="a.png", byte_size=9).json()["id"])
    ids.reverse()
    first = client.get(FILES, params={"limit": 3}).json()
    rest = client.get(FILES, params={"limit": 200, "cursor": first["next_cursor"]}).json()
    listed = [one["id"] for one in first["image_files"] + rest["image_files"]]
    assert listed[:4] == ids
    assert rest["next_cursor"] is None
    ready = client.get(FILES, params={"status": "ready"}).json()["image_files"]
    assert [one["id"] for one in ready] == ids[1:]
    waiting = client.get(FILES, params={"status": "created"}).json()["image_files"]
    assert waiting[0]["id"] == ids[0]
    assert client.get(FILES, params={"status": "uploading"}).json()["image_files"] == []
    for odd in ({"status": "x"}, {"limit": 0}, {"limit": 201}, {"cursor": "%"}, {"cursor": "eA"}):
        assert client.get(FILES, params=odd).status_code == 422, odd


def test_DELETE_removes_the_record_and_its_bytes_with_the_last_use(client):
    data = varied(40)
    first, second = whole(client, data), whole(client, data)
    assert first["id"] != second["id"]
    assert client.delete(f"{FILES}/{first['id']}").status_code == 204
    assert client.get(f"{FILES}/{first['id']}.json").status_code == 404
    assert client.get(f"{FILES}/{second['id']}").content == data
    assert client.delete(f"{FILES}/{second['id']}").status_code == 204
    assert client.get(f"{FILES}/md5/{dashed(data)}").status_code == 404
    assert client.delete(f"{FILES}/{second['id']}").status_code == 404


def test_DELETE_of_an_unfinished_upload(client):
    image = post(client, filename="a.png", byte_size=100).json()
    upload(client, image["id"], bytes(100), 0, stop=50)
    assert client.delete(f"{FILES}/{image['id']}").status_code == 204
    assert upload(client, image["id"], bytes(100)).status_code == 404


def test_another_tenants_image_is_not_found(server):
    record = whole(server.client, varied(50))
    stranger = server.stranger
    for method, path in (
        ("GET", f"{FILES}/{record['id']}"),
        ("HEAD", f"{FILES}/{record['id']}"),
        ("GET", f"{FILES}/{record['id']}.json"),
        ("GET", f"{FILES}/{record['id']}/upload"),
        ("POST", f"{FILES}/{record['id']}/upload"),
        ("GET", f"{FILES}/md5/{record['md5']}"),
        ("DELETE", f"{FILES}/{record['id']}"),
    ):
        assert stranger.request(method, path).status_code == 404, (method, path)
    assert server.client.get(f"{FILES}/{record['id']}").status_code == 200


@pytest.mark.parametrize("odd", ["x", "%00", "undefined", "..%2f..%2fetc", "a" * 5000])
def test_an_id_that_was_never_given_is_not_found(client, odd):
    assert client.get(f"{FILES}/{odd}").status_code == 404
    assert client.get(f"{FILES}/{odd}.json").status_code == 404
    assert client.get(f"{FILES}/md5/{odd}").status_code in (404, 422)


def test_a_URL_token_shows_an_image_to_a_page_without_a_key(server):
    record = whole(server.client, varied(51))
    url = f"{server.url}{FILES}/{record['id']}"
    token = server.client.post("/api/v1/url-token", json={"url": url}).json()["token"]
    assert server.anyone.get(f"{url}?token={token}").status_code == 200
    assert server.anyone.get(f"{url}.json?token={token}").status_code == 403


def test_POST_again_with_its_Idempotency_Key_is_the_same_image(client):
    asked = {"json": {"filename": "a.png", "byte_size": 7}, "headers": {"Idempotency-Key": "one"}}
    first, again = client.post(FILES, **asked), client.post(FILES, **asked)
    assert first.json() == again.json()
    assert again.headers["location"] == first.headers["location"]
