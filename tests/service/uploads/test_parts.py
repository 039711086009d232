"""Parts that clients put into a real S3 server by signed URLs, and what becomes of them."""

import hashlib
import os
from datetime import timedelta

import httpx
import pytest

from fragdex.client import Client, procedures
from fragdex.errors import FragdexError
from fragdex.service.records import blobs
from fragdex.service.uploads import operations, receiving
from service.serving import API, serving
from service.working import fixture_bytes, md5_of


@pytest.fixture
def served(tmp_path, s3_url):
    with serving(tmp_path, store_url=s3_url, presigned_uploads=True) as one:
        yield one


def announced(served, data, **more):
    new = {"filename": "a.mp4", "type": "video", "byte_size": len(data), **more}
    answer = served.client.post(f"{API}/files", json=new)
    assert answer.status_code == 201, answer.text
    return f"{API}/files/{answer.json()['id']}"


def plan(served, file):
    answer = served.client.post(f"{file}/parts")
    assert answer.status_code == 200, answer.text
    return answer.json()


def put(part, data):
    content = data[part["start"] : part["start"] + part["byte_size"]]
    assert httpx.put(part["url"], content=content, trust_env=False, timeout=60).status_code == 200


def complete(served, file):
    return served.client.post(f"{file}/parts/complete")


@pytest.fixture
def small(monkeypatch):
    """Parts of 1,000 bytes, so that small files have several."""
    monkeypatch.setattr(operations, "PART_BYTES", 1000)


def test_a_push_goes_past_the_service(served, tmp_path, monkeypatch):
    def never(*_, **__):
        raise AssertionError("bytes came to the service")

    monkeypatch.setattr(receiving, "open_session", never)
    monkeypatch.setattr(operations, "PART_BYTES", 1 << 20)
    monkeypatch.setattr(procedures, "DIRECT_BYTES", 2 << 20)
    data = os.urandom((2 << 20) + 17)
    path = tmp_path / "film.bin"
    path.write_bytes(data)
    progress = []
    for hash_first in (False, True):  # the second time nothing is sent
        with Client(served.url, served.key, trust_env=False) as client:
            record = client.push(
                path, type="video", hash_first=hash_first, progress=lambda *at: progress.append(at)
            )
        assert record.md5.replace("-", "") == hashlib.md5(data).hexdigest()
    assert progress == [(n, len(data)) for n in (1 << 20, 2 << 20, len(data), len(data))]


def test_a_film_is_indexed_from_its_parts(served, small):
    data = fixture_bytes("frag-global-sidx-video.mp4")
    file = announced(served, data, md5=md5_of(data))
    first = plan(served, file)
    assert first["missing"] == len(first["parts"]) == -(-len(data) // 1000)
    for part in first["parts"][1:]:
        put(part, data)
    missing = complete(served, file)
    assert (missing.status_code, missing.json()["next_byte"]) == (409, 0)
    again = plan(served, file)  # those that are here are not asked for again
    assert [part["start"] for part in again["parts"]] == [0]
    put(again["parts"][0], data)
    record = complete(served, file)
    assert record.status_code == 201, record.text
    sent = f"{API}/unprocessed_files/{file.rpartition('/')[2]}"
    assert served.client.post(f"{sent}/process").json()["status"] == "complete"
    tracks = served.client.get(file).json()["tracks"]
    assert [track["type"] for track in tracks] == ["video"]
    # whoever still has a URL changes nothing, and what he leaves is swept
    for part in again["parts"]:
        put(part, bytes(len(data)))
    assert complete(served, file).status_code == 201
    assert served.client.get(f"{file}/tracks/1").content == data
    store = served.context.store
    assert [*store.drafts()]
    blobs.sweep(served.context.database, store, timedelta(hours=1))
    assert not [*store.drafts()]


def test_a_part_of_another_size_is_not_taken(served, small):
    data = os.urandom(2500)
    file = announced(served, data)
    parts = plan(served, file)["parts"]
    for part in parts:
        put(part, data)
    httpx.put(parts[1]["url"], content=bytes(5000), trust_env=False, timeout=60)
    refused = complete(served, file)
    assert (refused.status_code, refused.json()["next_byte"]) == (409, 1000)
    again = plan(served, file)["parts"]
    assert [part["start"] for part in again] == [1000]
    put(again[0], data)
    assert complete(served, file).json()["md5"].replace("-", "") == md5_of(data)


def test_the_claim_of_a_client_is_not_believed(served, small):
    data = os.urandom(1500)
    file = announced(served, data, md5=md5_of(b"other"))
    for part in plan(served, file)["parts"]:
        put(part, data)
    assert complete(served, file).status_code == 422
    assert plan(served, file)["missing"] == 2  # it starts over


def test_what_died_while_it_was_assembled_is_assembled_again(served, small, monkeypatch):
    data = os.urandom(2500)
    file = announced(served, data)
    for part in plan(served, file)["parts"]:
        put(part, data)
    with monkeypatch.context() as patched:
        patched.setattr(operations.completion, "complete", _dies)
        assert complete(served, file).status_code == 500
    assert complete(served, file).json()["md5"].replace("-", "") == md5_of(data)


def _dies(*_):
    raise FragdexError("the process ends here")


def test_where_parts_are_not_taken(served, tmp_path, small):
    file = announced(served, bytes(10))
    for path in (f"{file}/parts", f"{file}/parts/complete"):
        assert served.stranger.post(path).status_code == 404
        assert served.anyone.post(path).status_code == 401
    content_range = {"Content-Range": "bytes 0-3/10"}
    served.client.post(f"{file}/upload", content=b"0123", headers=content_range)
    for path in (f"{file}/parts", f"{file}/parts/complete"):
        begun = served.client.post(path)
        assert (begun.status_code, begun.json()["next_byte"]) == (409, 4)
    assert served.client.delete(file).status_code == 204
    assert served.client.post(f"{file}/parts").status_code == 404
    with serving(tmp_path / "disk", presigned_uploads=True) as folder:
        file = announced(folder, bytes(10))
        refused = folder.client.post(f"{file}/parts")
        assert (refused.status_code, refused.json()["offered"]) == (409, False)
