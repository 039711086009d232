"""Tracks: announced, sent in chunks, read by ranges, deleted."""

import hashlib
import json

import pytest

import fragdex
from service.isobmff.conftest import FILM, index_json
from service.serving import API

TRACKS = f"{API}/isobmff_tracks"
JSON = {"Content-Type": "application/json"}  # what published clients send with bytes too


@pytest.fixture
def file(new_file):
    return new_file()


def announce(client, file, track_id=1, **more):
    body = {
        "file_id": file["id"],
        "track_id": track_id,
        "type": "video",
        "probe_info": {"index": 0, "tags": {"language": "und"}},
        "duration_ms": 12000,
        "codec_name": "h264",
        "byte_size": len(FILM),
    }
    return client.post(TRACKS, json=body | more)


def chunk(client, path, start, stop):
    headers = JSON | {"Content-Range": f"bytes={start}-{stop - 1}/{len(FILM)}"}
    return client.post(f"{path}/upload", content=FILM[start:stop], headers=headers)


def test_post_announces_a_track(client, file):
    answer = announce(client, file)
    assert answer.status_code == 201
    record = answer.json()
    assert record["file_id"] == file["id"]
    assert (record["byte_size"], record["next_byte"], record["complete"]) == (len(FILM), 0, False)
    assert record["probe_info"]["tags"] == {"language": "und"}
    assert answer.headers["location"] == f"{TRACKS}/{file['id']}/1"
    again = announce(client, file, track_id="1")
    assert (again.status_code, again.json()) == (200, record)
    assert announce(client, file, byte_size=5).status_code == 409


def test_a_track_is_sent_in_chunks_and_read_by_ranges(client, file):
    announce(client, file)
    path = f"{TRACKS}/{file['id']}/1"
    before = client.get(f"{path}/upload")
    assert (before.status_code, before.json()["next_byte"]) == (404, 0)
    early = client.get(path)
    assert (early.status_code, early.json()["state"]) == (409, "uploading")
    half = len(FILM) // 2
    first = chunk(client, path, 0, half)
    assert (first.status_code, first.json()["next_byte"]) == (202, half)
    assert client.get(f"{path}/upload").json()["next_byte"] == half
    # published clients start again from the first byte
    assert chunk(client, path, 0, half).status_code == 202
    assert chunk(client, path, half + 1, len(FILM)).status_code == 409
    last = chunk(client, path, half, len(FILM))
    assert last.status_code == 201
    assert last.json()["complete"] is True
    assert last.json()["md5"] == fragdex.digest.Md5(FILM).digest().dashed
    assert client.get(f"{path}/upload").json() == last.json()
    whole = client.get(path)
    assert whole.content == FILM
    assert whole.headers["content-type"] == "video/mp4"
    assert whole.headers["etag"] == f'"{last.json()["md5"]}"'
    part = client.get(path, headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, FILM[10:20])
    head = client.head(path)
    assert (head.content, head.headers["content-length"]) == (b"", str(len(FILM)))
    assert client.get(f"{API}/isobmff_files/{file['id']}").json()["tracks"] == [last.json()]
    assert client.get(TRACKS, params={"file_id": file["id"]}).json() == {
        "isobmff_tracks": [last.json()]
    }


def test_a_player_needs_the_index_and_ranges_alone(client, file):
    """The bytes a seek names begin a fragment of the track's own file."""
    announce(client, file)
    path = f"{TRACKS}/{file['id']}/1"
    client.post(f"{path}/upload", content=FILM, headers=JSON)
    client.post(
        f"{API}/isobmff_files/{file['id']}/index/upload", content=json.dumps(index_json()).encode()
    )
    moment = client.get(f"{API}/isobmff_files/{file['id']}/seek", params={"time_ms": 7000}).json()
    start, stop = moment["offset"], moment["offset"] + moment["size"]
    fragment = client.get(path, headers={"Range": f"bytes={start}-{stop - 1}"}).content
    place = moment["init"]
    stop = place["offset"] + place["size"] - 1
    init = client.get(path, headers={"Range": f"bytes={place['offset']}-{stop}"}).content
    index = fragdex.index(init + fragment)
    assert index.track(1).seek(7.0).time.seconds == moment["time_ms"] / 1000 == 6.0


@pytest.mark.parametrize("track", ["x", "01", "1.0", "-2", "+1", "99999999999", "1%2f2", "%00"])
def test_what_is_no_number_is_of_no_track(client, file, track):
    announce(client, file)
    for path in (f"{TRACKS}/{file['id']}/{track}", f"{TRACKS}/{file['id']}/{track}/upload"):
        assert client.get(path).status_code == 404


def test_tracks_belong_to_their_tenant(client, server, file):
    announce(client, file)
    path = f"{TRACKS}/{file['id']}/1"
    client.post(f"{path}/upload", content=FILM)
    stranger = server.stranger
    assert stranger.get(path).status_code == 404
    assert stranger.head(path).status_code == 404
    assert stranger.get(f"{path}/upload").status_code == 404
    assert stranger.post(f"{path}/upload", content=FILM).status_code == 404
    assert stranger.delete(path).status_code == 404
    assert stranger.get(TRACKS, params={"file_id": file["id"]}).status_code == 404
    assert announce(stranger, file).status_code == 404
    assert client.get(path).status_code == 200


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"byte_size": -1}, 422),
        ({"byte_size": (1 << 30) + 1}, 413),
        ({"track_id": "one"}, 422),
        ({"track_id": -2}, 422),
        ({"type": "nonsense"}, 422),
        ({"duration_ms": -1}, 422),
        ({"file_id": "nonsense"}, 404),
        ({"probe_info": {"a": "\0"}}, 422),
        ({"codec_name": "\0"}, 422),
    ],
)
def test_a_track_that_breaks_a_rule_is_refused(client, file, more, status):
    assert announce(client, file, **more).status_code == status


def test_a_track_of_no_bytes_is_complete_at_once(client, file):
    record = announce(client, file, byte_size=0).json()
    assert record["complete"] is True
    assert client.get(f"{TRACKS}/{file['id']}/1").content == b""


def test_delete_takes_the_bytes_along(client, server, file, new_file):
    other = new_file("other")
    for owner in (file, other):
        announce(client, owner)
        client.post(f"{TRACKS}/{owner['id']}/1/upload", content=FILM)
    assert client.delete(f"{TRACKS}/{file['id']}/1").status_code == 204
    assert client.delete(f"{TRACKS}/{file['id']}/1").status_code == 404
    assert client.get(f"{TRACKS}/{file['id']}/1").status_code == 404
    # the same bytes are those of another track too
    kept = client.get(f"{TRACKS}/{other['id']}/1")
    assert hashlib.md5(kept.content).digest() == hashlib.md5(FILM).digest()
    assert client.delete(f"{API}/isobmff_files/{other['id']}").status_code == 204
    assert client.get(f"{TRACKS}/{other['id']}/1").status_code == 404
    assert announce(client, file).status_code == 201
