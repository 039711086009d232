"""Caption files as clients use them."""

import hashlib

import pytest

from fragdex.muxing.captions import parse_webvtt
from fragdex.service.records.identifiers import md5_text
from muxing.test_captions_text import SRT, VTT

FILES = "/api/v1/caption_files"
JSON = '{"segments": [{"start": 0, "end": 1, "text": "Grüße"}], "word_segments": []}'


def dashed(data):
    return md5_text(hashlib.md5(data).digest())


def announce(client, data, filename, **fields):
    body = {"md5": dashed(data), "filename": filename, "byte_size": len(data), **fields}
    return client.post(FILES, json=body)


@pytest.mark.parametrize(
    ("text", "filename", "content_type"),
    [
        (VTT, "a.vtt", "text/vtt; charset=utf-8"),
        (SRT, "a.SRT", "application/x-subrip; charset=utf-8"),
        (JSON, "a.json", "application/json"),
    ],
)
def test_a_caption_file_from_announcement_to_deletion(server, text, filename, content_type):
    client, data = server.client, text.encode()
    answer = announce(client, data, filename)
    assert answer.status_code == 201
    record = answer.json()
    assert (record["complete"], record["md5"]) == (False, dashed(data))
    path = f"{FILES}/{record['id']}"
    assert client.get(f"{path}/upload").json()["next_byte"] == 0
    early = client.get(path)
    assert (early.status_code, early.json()["state"]) == (409, "created")
    answer = client.post(
        f"{path}/upload", content=data, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 201
    record = answer.json()
    assert (record["complete"], record["status"]) == (True, "ready")
    assert announce(client, data, "b.vtt").status_code == 200
    for same in (f"{path}/upload", f"{path}.json", f"{FILES}/md5/{dashed(data)}"):
        assert client.get(same).json() == record
        assert server.stranger.get(same).status_code == 404
    answer = client.get(path)
    assert answer.content == data
    assert answer.headers["content-type"] == content_type
    assert client.head(path).headers["content-length"] == str(len(data))
    assert server.stranger.get(path).status_code == 404
    assert client.get(FILES).json()["caption_files"][0] == record
    assert client.get(FILES, params={"status": "created"}).json()["caption_files"] == []
    assert server.stranger.delete(path).status_code == 404
    assert client.delete(path).status_code == 204
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("text", "filename"),
    [("Hello", "a.vtt"), ("Hello", "a.srt"), ("Hello", "a.json"), (SRT, "a.vtt"), (VTT, "b.json")],
)
def test_what_cannot_be_parsed_does_not_count_as_complete(client, text, filename):
    data = text.encode() + b" " + filename.encode()
    record = announce(client, data, filename).json()
    answer = client.post(f"{FILES}/{record['id']}/upload", content=data)
    assert answer.status_code == 422
    assert "cannot be read" in answer.json()["detail"]
    record = client.get(f"{FILES}/{record['id']}.json").json()
    assert (record["complete"], record["next_byte"]) == (False, 0)


def test_a_type_can_be_declared_where_the_name_tells_none(client):
    data = b"WEBVTT\n\nNOTE declared"
    assert announce(client, data, "captions").status_code == 422
    record = announce(client, data, "captions", mime_type="text/vtt; charset=utf-8")
    assert record.json()["mime_type"] == "text/vtt"


def test_no_bytes_are_complete_at_once(client):
    assert announce(client, b"", "a.vtt").json()["complete"]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"md5": None}, 422),
        ({"md5": "x"}, 422),
        ({"filename": "a.txt"}, 422),
        ({"byte_size": (2 << 20) + 1}, 413),
        ({"byte_size": 10**400}, 413),
    ],
)
def test_POST_of_what_breaks_a_rule(client, fields, status):
    body = {"md5": "0" * 32, "filename": "a.vtt", "byte_size": 1, **fields}
    assert client.post(FILES, json=body).status_code == status


@pytest.mark.parametrize(
    ("text", "filename", "cues"),
    [
        (VTT, "c.vtt", 2),
        (SRT, "c.srt", 3),
        (JSON, "c.json", 1),
        ("", "c.vtt", 0),
        ('{"segments": [{"start": 0, "end": 0, "text": "\\ud800\\n\\n--> <"}]}', "d.json", 1),
    ],
)
def test_what_is_accepted_is_given_as_webvtt(server, text, filename, cues):
    client, data = server.client, text.encode()
    path = f"{FILES}/{announce(client, data, filename).json()['id']}"
    if data:
        assert client.get(f"{path}.vtt").json()["state"] == "created"
        client.post(f"{path}/upload", content=data).raise_for_status()
    answer = client.get(f"{path}.vtt")
    assert answer.headers["content-type"] == "text/vtt; charset=utf-8"
    assert len(parse_webvtt(answer.content)) == cues
    again = {"If-None-Match": answer.headers["etag"]}
    assert client.get(f"{path}.vtt", headers=again).status_code == 304
    assert server.stranger.get(f"{path}.vtt").status_code == 404
