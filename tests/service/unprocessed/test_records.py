"""Unprocessed files over HTTP: announced, sent, looked up, listed, deleted; both databases."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.serving import API
from service.working import UNKNOWN, announced, fixture_bytes, md5_of, uploaded

FILES = f"{API}/unprocessed_files"


def some_bytes(size=1000):
    return uuid.uuid4().bytes * (size // 16 + 1)


def test_post_announces_a_file(server):
    data = some_bytes()
    body = {"md5": md5_of(data).upper(), "filename": "ein Film.mp4", "byte_size": len(data)}
    answer = server.client.post(FILES, json=body)
    assert answer.status_code == 201
    record = answer.json()
    assert answer.headers["Location"] == f"{FILES}/{record['id']}"
    assert record["md5"] == str(uuid.UUID(md5_of(data)))
    assert (record["byte_size"], record["next_byte"], record["complete"]) == (len(data), 0, False)
    assert (record["filename"], record["status"]) == ("ein Film.mp4", "created")
    assert server.client.get(answer.headers["Location"]).json() == record


def test_post_of_an_md5_that_is_there_gives_the_record_again(server):
    data = some_bytes()
    record = announced(server.client, data)
    again = server.client.post(
        FILES, json={"md5": record["md5"], "filename": "b.mp4", "byte_size": len(data)}
    )
    assert (again.status_code, again.json()) == (200, record)


def test_many_who_announce_the_same_bytes_get_one_record(server):
    data = some_bytes()
    with ThreadPoolExecutor(8) as pool:
        ids = {r["id"] for r in pool.map(lambda _: announced(server.client, data), range(16))}
    assert len(ids) == 1


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"md5": "x" * 32}, "#/md5"),
        ({"md5": None}, "#/md5"),
        ({"filename": ""}, "#/filename"),
        ({"byte_size": -1}, "#/byte_size"),
    ],
)
def test_a_field_that_breaks_a_rule_is_422_and_named(server, change, pointer):
    body = {"md5": "0" * 32, "filename": "a.mp4", "byte_size": 1, **change}
    answer = server.client.post(FILES, json=body)
    assert answer.status_code == 422
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]


def test_a_file_over_the_limit_is_413_with_the_limit(server):
    body = {"md5": "0" * 32, "filename": "a.mp4", "byte_size": 2**30 + 1}
    answer = server.client.post(FILES, json=body)
    assert answer.status_code == 413
    assert answer.json()["limit"] == 2**30


@pytest.mark.parametrize("written", [str.upper, str.lower, lambda t: str(uuid.UUID(t))])
def test_get_by_md5_in_any_writing(server, written):
    data = some_bytes()
    record = announced(server.client, data)
    assert server.client.get(f"{FILES}/md5/{written(md5_of(data))}").json() == record
    assert server.stranger.get(f"{FILES}/md5/{md5_of(data)}").status_code == 404


def test_bytes_come_in_chunks(server):
    data = some_bytes(1000)
    record = announced(server.client, data)
    upload = f"{FILES}/{record['id']}/upload"
    missing = server.client.get(upload)
    assert (missing.status_code, missing.json()["next_byte"]) == (404, 0)
    half = {"Content-Range": f"bytes 0-499/{len(data)}"}
    answer = server.client.post(upload, content=data[:500], headers=half)
    assert (answer.status_code, answer.json()["next_byte"]) == (202, 500)
    assert answer.json()["status"] == "uploading"
    missing = server.client.get(upload)
    assert (missing.status_code, missing.json()["next_byte"]) == (404, 500)
    rest = {"Content-Range": f"bytes 500-{len(data) - 1}/{len(data)}"}
    answer = server.client.post(upload, content=data[500:], headers=rest)
    assert (answer.status_code, answer.json()["complete"]) == (201, True)
    assert server.client.get(upload).json() == answer.json()


def test_wrong_bytes_are_422_and_the_upload_begins_anew(server):
    data = some_bytes()
    record = announced(server.client, data)
    upload = f"{FILES}/{record['id']}/upload"
    answer = server.client.post(upload, content=bytes(len(data)))
    assert (answer.status_code, answer.json()["next_byte"]) == (422, 0)
    assert server.client.post(upload, content=data).status_code == 201


@pytest.mark.parametrize("size", [1, 100, 4096, 1 << 20])
@pytest.mark.parametrize("name", ["frag-cmaf.mp4", "faststart.mp4", "moov-last.mp4", "aac.m4a"])
def test_the_index_is_there_with_the_last_byte(server, name, size):
    data = fixture_bytes(name, salt=f"{size} {server.url}")
    size = max(size, len(data) // 20)
    record = announced(server.client, data)
    for at in range(0, len(data), size):
        assert not record["fragment_index_complete"]
        part = data[at : at + size]
        place = {"Content-Range": f"bytes {at}-{at + len(part) - 1}/{len(data)}"}
        answer = server.client.post(f"{FILES}/{record['id']}/upload", content=part, headers=place)
        record = answer.json()
    assert answer.status_code == 201
    assert record["fragment_index_complete"]


@pytest.mark.parametrize("name", ["cut-in-mdat.mp4", "cut-moov-last.mp4", "dash-segment-1.m4s"])
def test_a_broken_file_is_taken_and_has_no_index(server, name):
    record = uploaded(server.client, fixture_bytes(name, salt=server.url))
    assert record["complete"]
    assert not record["fragment_index_complete"]


def test_no_bytes_are_complete_at_once(server):
    record = announced(server.client, b"")
    assert (record["complete"], record["status"]) == (True, "failed")
    assert record["problem"]["detail"] == "the file is empty"
    body = {"md5": "0" * 32, "filename": "a.mp4", "byte_size": 0}
    assert server.client.post(FILES, json=body).status_code == 422


def test_lists_go_newest_first_by_pages_and_by_status(server):
    sent = [uploaded(server.client, some_bytes())["id"] for _ in range(3)]
    waiting = announced(server.client, some_bytes())["id"]
    ids, cursor = [], None
    while True:
        query = {"limit": 2, "status": "complete"} | ({"cursor": cursor} if cursor else {})
        page = server.client.get(FILES, params=query).json()
        assert len(page["unprocessed_files"]) <= 2
        ids += [record["id"] for record in page["unprocessed_files"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert ids == sorted(ids, reverse=True)
    assert set(sent) <= set(ids)
    assert waiting not in ids
    created = server.client.get(FILES, params={"status": "created"}).json()["unprocessed_files"]
    assert waiting in [record["id"] for record in created]
    assert server.stranger.get(FILES).json()["unprocessed_files"] == []
    assert server.client.get(FILES, params={"status": "odd"}).status_code == 422
    assert server.client.get(FILES, params={"cursor": "odd"}).status_code == 422


def test_delete_takes_the_record_and_its_bytes(server):
    data = some_bytes()
    record = uploaded(server.client, data)
    place = f"{FILES}/{record['id']}"
    assert server.stranger.delete(place).status_code == 404
    assert server.client.delete(place).status_code == 204
    for path in (place, f"{place}/upload", f"{FILES}/md5/{md5_of(data)}"):
        assert server.client.get(path).status_code == 404
    assert server.client.post(f"{place}/upload", content=data).status_code == 404
    assert server.client.delete(place).status_code == 404
    assert announced(server.client, data)["next_byte"] == 0


@pytest.mark.parametrize("id_", [UNKNOWN, "undefined", "%00", "a/b"])
def test_what_is_not_there_is_404(server, id_):
    for path in ("", "/upload"):
        assert server.client.get(f"{FILES}/{id_}{path}").status_code == 404
    assert server.client.post(f"{FILES}/{id_}/process").status_code == 404
    assert server.client.get(f"{API}/process_isobmff/{id_}").status_code == 404
    assert server.client.get(f"{API}/process_isobmff/{id_}/progress").status_code == 404
