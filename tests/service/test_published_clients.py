"""What clients in the field do on the wire, as they do it; none of it may change under them.

They send `Content-Type: application/json` with every request, binary chunks included, write
`Content-Range: bytes=START-END/TOTAL`, ask whether an upload is complete before they begin it and
begin again from byte 0, stream bodies without telling their length, write md5 dashed, and break on
events that they do not know.
"""

import http.client
import io
import json
import os
import re
import time
import uuid

import httpx
import pytest
from PIL import Image

from service.serving import API
from service.working import events_of, fixture_bytes, md5_of

KNOWN_EVENTS = {"size", "completion", "progress", "complete", "error", "heartbeat"}
CHUNK = 1000


class Published:
    """A client as it is in the field."""

    def __init__(self, served):
        # how they take a key apart
        name, rest = re.fullmatch(r"(ef_[^_]+)_(.+)", served.key).groups()
        headers = {"Authorization": f"Bearer {name}_{rest}", "Content-Type": "application/json"}
        self.http = httpx.Client(
            base_url=served.url + API, headers=headers, trust_env=False, timeout=30
        )

    def post(self, path, body=None):
        answer = self.http.post(path, content=None if body is None else json.dumps(body))
        assert answer.is_success, answer.text
        return answer.json()

    def chunk(self, path, data, start, size=CHUNK):
        """Send one chunk, streamed: its length is not told."""
        part = data[start : start + size]
        place = f"bytes={start}-{start + len(part) - 1}/{len(data)}"
        return self.http.post(path, content=iter([part]), headers={"Content-Range": place})

    def upload(self, path, data):
        """Send all, from byte 0, unless it is there; returns the statuses."""
        if self.http.get(path).status_code == 200:
            return []
        return [self.chunk(path, data, at).status_code for at in range(0, len(data), CHUNK)]


@pytest.fixture
def published(server):
    """A published client of the service."""
    client = Published(server)
    yield client
    client.http.close()


def picture():
    out = io.BytesIO()
    Image.frombytes("RGB", (40, 30), os.urandom(3600)).save(out, "PNG")
    return out.getvalue()


def sound():
    return fixture_bytes("frag-audio.m4a", salt=uuid.uuid4())


def dashed(data):
    return str(uuid.UUID(md5_of(data)))


def image_file(published):
    data = picture()
    body = {"filename": "a.png", "byte_size": len(data), "md5": dashed(data)}
    body |= {"mime_type": "image/png", "width": 40, "height": 30}
    return data, f"/image_files/{published.post('/image_files', body)['id']}/upload"


def unprocessed_file(published):
    data = sound()
    body = {"filename": "a.m4a", "byte_size": len(data), "md5": dashed(data)}
    return data, f"/unprocessed_files/{published.post('/unprocessed_files', body)['id']}/upload"


def track(published):
    data = sound()
    body = {"filename": "a.m4a", "md5": dashed(data)}
    file_id = published.post("/isobmff_files", body)["id"]
    body = {"file_id": file_id, "track_id": "1", "type": "audio", "byte_size": len(data)}
    body |= {"probe_info": {"channels": 1}, "duration_ms": 2064.0, "codec_name": "aac"}
    published.post("/isobmff_tracks", body)
    return data, f"/isobmff_tracks/{file_id}/1/upload"


def file_of(type_, make, name):
    def made(published):
        data = make()
        body = {"filename": name, "byte_size": len(data), "md5": dashed(data), "type": type_}
        return data, f"/files/{published.post('/files', body)['id']}/upload"

    made.__name__ = f"file_{type_}"
    return made


uploads = pytest.mark.parametrize(
    "made",
    [
        image_file,
        unprocessed_file,
        track,
        file_of("image", picture, "a.png"),
        file_of("video", sound, "a.m4a"),
    ],
    ids=lambda made: made.__name__,
)


@uploads
def test_chunks_called_json_with_their_own_way_to_write_ranges(published, made):
    data, path = made(published)
    assert published.http.get(path).status_code == 404
    statuses = published.upload(path, data)
    assert statuses == [202] * (len(statuses) - 1) + [201]
    assert len(statuses) > 2
    answer = published.http.get(path)
    assert answer.status_code == 200
    record = answer.json()
    assert (record["complete"] if "complete" in record else record["status"] == "ready") is True
    assert published.upload(path, data) == []


@uploads
def test_an_upload_broken_off_begins_again_from_byte_0(published, made):
    data, path = made(published)
    for start in (0, CHUNK):
        assert published.chunk(path, data, start).status_code == 202
    missing = published.http.get(path)
    assert (missing.status_code, missing.json()["next_byte"]) == (404, 2 * CHUNK)
    statuses = published.upload(path, data)
    assert statuses == [202] * (len(statuses) - 1) + [201]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/files/{file}/tracks", {"track_id": 1, "type": "audio", "byte_size": 9, "file_id": "x"}),
        ("/renders", {"html": "<p>", "backend": "gpu"}),
        ("/unprocessed_files", {"filename": "a.mp4", "byte_size": 9, "processes": ["isobmff"]}),
    ],
    ids=["file_id", "backend", "processes"],
)
def test_fields_that_only_they_know_are_tolerated(published, path, body):
    """All others are refused, as everyone's."""
    new = {"filename": "a.mp4", "type": "video", "byte_size": 9, "md5": str(uuid.uuid4())}
    if "{file}" not in path and path != "/renders":
        body = {**body, "md5": str(uuid.uuid4())}
    path = path.format(file=published.post("/files", new)["id"])
    published.post(path, body)
    refused = published.http.post(path, content=json.dumps({**body, "other": 1}))
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "#/other")


@uploads
def test_the_last_chunk_may_come_twice(published, made):
    data, path = made(published)
    published.upload(path, data)
    last = (len(data) - 1) // CHUNK * CHUNK
    assert published.chunk(path, data, last).status_code == 201


@uploads
def test_a_whole_body_without_a_length(published, made):
    data, path = made(published)
    parts = (data[at : at + 77] for at in range(0, len(data), 77))
    assert published.http.post(path, content=parts).status_code == 201


@uploads
def test_a_client_that_is_cut_off_goes_on_later(server, published, made):
    """Its bytes so far stay; nobody waits for the rest."""
    data, path = made(published)
    connection = http.client.HTTPConnection(*server.address, timeout=30)
    connection.putrequest("POST", API + path)
    connection.putheader("Authorization", f"Bearer {server.key}")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", str(len(data)))
    connection.endheaders(data[: len(data) // 2])
    connection.close()
    statuses = published.upload(path, data)
    for _ in range(100):
        if 409 not in statuses:
            break
        time.sleep(0.2)  # the one that is gone is still thought to be there
        statuses = published.upload(path, data)
    assert statuses in ([], [202] * (len(statuses) - 1) + [201])
    assert published.http.get(path).status_code == 200


def test_md5_look_ups_are_dashed(published):
    data, path = unprocessed_file(published)
    record = published.http.get(f"/unprocessed_files/md5/{dashed(data)}").json()
    assert record["md5"] == dashed(data)
    assert path == f"/unprocessed_files/{record['id']}/upload"
    unknown = published.http.get(f"/unprocessed_files/md5/{uuid.uuid4()}")
    assert unknown.status_code == 404
    assert published.http.get(f"/isobmff_files/md5/{uuid.uuid4()}").status_code == 404
    assert published.http.get(f"/image_files/md5/{uuid.uuid4()}").status_code == 404


@pytest.mark.parametrize("operation", ["process", "isobmff"])
def test_from_the_file_to_the_player(published, operation):
    """Announce, send, process, wait, look up by md5, fetch the index, fetch the track whole."""
    data, path = unprocessed_file(published)
    published.upload(path, data)
    process = published.post(path.replace("upload", operation))
    events = events_of(published.http, f"/process_isobmff/{process['id']}/progress")
    assert events[-1][0] == "complete"
    assert {name for name, _ in events} <= KNOWN_EVENTS
    file = published.http.get(f"/isobmff_files/md5/{dashed(data)}").json()
    assert {"id", "md5", "filename", "fragment_index_complete"} <= file.keys()
    answer = published.http.get(f"/isobmff_files/{file['id']}/index")
    assert answer.headers["content-type"] == "application/json"
    (index,) = answer.json().values()
    assert index["type"] == "audio"
    whole = published.http.get(f"/isobmff_tracks/{file['id']}/{index['track']}")
    assert (whole.status_code, whole.content) == (200, data)
    place = index["segments"][0]
    asked = {"Range": f"bytes={place['offset']}-{place['offset'] + place['size'] - 1}"}
    part = published.http.get(f"/isobmff_tracks/{file['id']}/{index['track']}", headers=asked)
    assert (part.status_code, len(part.content)) == (206, place["size"])


def test_an_index_made_by_the_client_is_streamed(published):
    data, path = track(published)
    published.upload(path, data)
    twin, twin_path = unprocessed_file(published)
    published.upload(twin_path, twin)
    published.post(twin_path.replace("upload", "process"))
    twin_id = twin_path.split("/")[2]
    index = published.http.get(f"/isobmff_files/{twin_id}/index").content
    place = f"/isobmff_files/{path.split('/')[2]}/index"
    parts = (index[at : at + 10] for at in range(0, len(index), 10))
    answer = published.http.post(f"{place}/upload", content=parts)
    assert answer.is_success
    assert answer.json()["fragment_index_complete"] is True
    assert published.http.get(place).json() == json.loads(index)


def test_an_image_that_nobody_measured_is_announced_as_0_by_0(published):
    data = picture()
    body = {"filename": "a.png", "byte_size": len(data), "md5": dashed(data)}
    body |= {"mime_type": "image/png", "width": 0, "height": 0}
    record = published.post("/image_files", body)
    place = f"/image_files/{record['id']}"
    announced = published.http.get(f"{place}.json").json()
    assert (announced["width"], announced["height"]) == (None, None)
    published.upload(f"{place}/upload", data)
    measured = published.http.get(f"{place}.json").json()
    assert (measured["width"], measured["height"]) == (40, 30)


def test_events_are_of_known_names_and_end(published):
    """Of a process that is complete, a file that is ready, and files that have failed."""
    data, path = unprocessed_file(published)
    published.upload(path, data)
    process = published.post(path.replace("upload", "process"))
    places = [(f"/process_isobmff/{process['id']}/progress", "complete")]
    for type_, make, end in (("image", picture, "complete"), ("video", sound, "complete")):
        data, path = file_of(type_, make, f"a.{'png' if type_ == 'image' else 'm4a'}")(published)
        published.upload(path, data)
        places.append((path.replace("upload", "progress"), end))
    data, path = file_of("video", lambda: b"no film " + uuid.uuid4().hex.encode(), "a.mp4")(
        published
    )
    published.upload(path, data)
    places.append((path.replace("upload", "progress"), "error"))
    for place, end in places:
        events = events_of(published.http, place)
        assert {name for name, _ in events} <= KNOWN_EVENTS
        assert [name for name, _ in events if name in ("complete", "error")] == [end]
        assert events[-1][0] == end


def test_elements_that_name_no_type_get_an_image_and_programs_its_record(published, server):
    data, path = file_of("image", picture, "a.png")(published)
    published.upload(path, data)
    place = path.removesuffix("/upload")
    assert published.http.get(place).json()["status"] == "ready"
    shown = server.client.get(API + place, headers={"Accept": "image/avif,image/*,*/*;q=0.8"})
    assert shown.content == data
    token = published.post("/url-token", {"url": f"{server.url}{API}{place}"})["token"]
    bearer = {"Authorization": f"Bearer {token}"}
    assert server.anyone.get(API + place, headers=bearer).content == data


def test_what_a_player_asks_by_mistake_is_plainly_404(published):
    for path in (
        "/isobmff_files/undefined/index",
        "/isobmff_files/undefined",
        "/isobmff_tracks/undefined/NaN",
        "/files/undefined",
        "/files/null/index",
        "/image_files/undefined",
        "/process_isobmff/undefined/progress",
    ):
        answer = published.http.get(path)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/problem+json"
