"""One family for all, over HTTP and both databases; what needs a worker is in test_videos."""

import io
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from PIL import Image

from fragdex.service.records import deletion
from service.serving import API
from service.working import JSON, UNKNOWN, announced, events_of, fixture_bytes, md5_of, uploaded

FILES = f"{API}/files"


def picture(width=30, height=20):
    out = io.BytesIO()
    pixels = uuid.uuid4().bytes * (3 * width * height // 16 + 1)
    Image.frombytes("RGB", (width, height), pixels[: 3 * width * height]).save(out, "PNG")
    return out.getvalue()


def captions():
    return f"WEBVTT\n\n00:01.000 --> 00:02.000\n{uuid.uuid4()}\n".encode()


def video():
    return fixture_bytes("frag-audio.m4a", salt=uuid.uuid4())


MAKERS = {
    "image": (picture, "a.png"),
    "caption": (captions, "a.vtt"),
    "video": (video, "a.m4a"),
}
types = pytest.mark.parametrize("type_", MAKERS)


def new(server, type_, **more):
    make, name = MAKERS[type_]
    data = make()
    return data, announced(server.client, data, name, "files", type=type_, **more)


def record_of(server, file_id):
    return server.client.get(f"{FILES}/{file_id}", headers=JSON).json()


@types
def test_a_file_from_its_announcement_to_its_deletion(server, type_):
    data, record = new(server, type_)
    assert record["status"] == "created"
    assert (record["type"], record["byte_size"], record["next_byte"]) == (type_, len(data), 0)
    assert record["md5"] == str(uuid.UUID(md5_of(data)))
    place = f"{FILES}/{record['id']}"
    missing = server.client.get(f"{place}/upload")
    assert (missing.status_code, missing.json()["next_byte"]) == (404, 0)
    part = {"Content-Range": f"bytes 0-9/{len(data)}"}
    begun = server.client.post(f"{place}/upload", content=data[:10], headers=part)
    assert (begun.status_code, begun.json()["status"]) == (202, "uploading")
    assert begun.json()["next_byte"] == 10
    ended = server.client.post(f"{place}/upload", content=data)
    # a fragmented file of one track needs no worker
    assert (ended.status_code, ended.json()["status"]) == (201, "ready")
    assert ended.json()["completed_at"] is not None
    assert server.client.get(f"{place}/upload").json() == ended.json()
    assert server.client.get(place, headers=JSON).json() == ended.json()
    assert server.client.get(f"{FILES}/md5/{md5_of(data)}").json() == ended.json()
    assert events_of(server.client, f"/files/{record['id']}/progress") == [
        ("progress", {"progress": 1}),
        ("complete", {}),
    ]
    assert server.stranger.post(f"{place}/delete").status_code == 404
    assert server.client.post(f"{place}/delete").json() == {"id": record["id"], "success": True}
    assert server.client.get(place, headers=JSON).status_code == 404
    assert server.client.get(f"{FILES}/md5/{md5_of(data)}").status_code == 404


@types
def test_a_file_is_given_another_name(server, type_):
    data, record = new(server, type_)
    place = f"{FILES}/{record['id']}"
    named = server.client.patch(place, json={"filename": "Mine.bin"})
    assert named.json() == record | {"filename": "Mine.bin"}
    assert server.client.post(f"{place}/upload", content=data).json()["filename"] == "Mine.bin"
    file = server.client.patch(place, json={"filename": "Ours.bin"}).json()
    assert file == record_of(server, record["id"])
    for family in {"image": ["image_files"], "caption": ["caption_files"]}.get(
        type_, ["unprocessed_files", "isobmff_files"]
    ):
        answer = server.client.get(f"{API}/{family}/{record['id']}", headers=JSON)
        if "json" in answer.headers["content-type"]:
            assert answer.json()["filename"] == "Ours.bin", family
    assert server.stranger.patch(place, json={"filename": "x"}).status_code == 404
    assert server.client.patch(place, json={"filename": ""}).status_code == 422
    assert record_of(server, record["id"])["filename"] == "Ours.bin"


@types
def test_post_of_an_md5_that_is_there_gives_the_record_again(server, type_):
    data, record = new(server, type_)
    body = {"filename": record["filename"], "byte_size": len(data), "type": type_}
    again = server.client.post(FILES, json={**body, "md5": md5_of(data)})
    assert (again.status_code, again.json()) == (200, record)


@types
def test_a_look_up_by_md5_gives_the_record_with_most_bytes(server, type_):
    """There it goes on; others of the same md5 are of other bytes."""
    family = {"image": "image_files", "caption": "caption_files", "video": "unprocessed_files"}
    name, md5 = MAKERS[type_][1], uuid.uuid4().hex
    body = {"filename": name, "type": type_, "md5": md5}
    ids = []
    for size, sent in ((900, 3), (901, 5), (902, 0)):
        ids.append(server.client.post(FILES, json={**body, "byte_size": size}).json()["id"])
        if sent:
            place = {"Content-Range": f"bytes 0-{sent - 1}/{size}"}
            at = f"{FILES}/{ids[-1]}/upload"
            answer = server.client.post(at, content=bytes(sent), headers=place)
            assert answer.status_code == 202, answer.text
    for of in ("files", family[type_]):
        assert server.client.get(f"{API}/{of}/md5/{md5}").json()["id"] == ids[1]


def test_the_records_are_those_of_the_other_families(server):
    for type_, family, more in (
        ("image", "image_files", ".json"),
        ("caption", "caption_files", ".json"),
        ("video", "unprocessed_files", ""),
        ("video", "isobmff_files", ""),
    ):
        make, name = MAKERS[type_]
        record = uploaded(server.client, make(), name, "files", type=type_)
        other = server.client.get(f"{API}/{family}/{record['id']}{more}").json()
        assert (other["id"], other["md5"]) == (record["id"], record["md5"])


@types
def test_the_address_of_another_type_does_not_know_a_file(server, type_):
    data, record = new(server, type_)
    begun = {"content": data[:10], "headers": {"Content-Range": f"bytes 0-9/{len(data)}"}}
    ours = {"image": "image_files", "caption": "caption_files", "video": "unprocessed_files"}
    for family in {*ours.values(), "isobmff_files"} - {ours[type_]}:
        place = f"{API}/{family}/{record['id']}"
        end = ".json" if family in ("image_files", "caption_files") else ""
        assert server.client.get(place + end, headers=JSON).status_code == 404, family
        assert server.client.delete(place).status_code == 404, family
        if family != "isobmff_files":
            assert server.client.post(f"{place}/upload", **begun).status_code == 404, family
            md5 = f"{API}/{family}/md5/{md5_of(data)}"
            assert server.client.get(md5).status_code == 404, family
            listed = server.client.get(f"{API}/{family}", params={"limit": 100}).json()[family]
            assert record["id"] not in [one["id"] for one in listed]
    assert record_of(server, record["id"]) == record
    place = f"{FILES}/{record['id']}"
    assert server.client.post(f"{place}/upload", content=data).json()["status"] == "ready"
    if type_ != "video":
        assert server.client.get(f"{place}/clip.mp4", params={"end": 1}).status_code == 404


def test_a_file_announced_elsewhere_is_found_here(server):
    for type_, family in (("image", "image_files"), ("caption", "caption_files")):
        make, name = MAKERS[type_]
        record = uploaded(server.client, make(), name, family)
        assert record_of(server, record["id"])["type"] == type_
    data = video()
    sent = uploaded(server.client, data)
    # nobody asked for it to be processed
    assert record_of(server, sent["id"])["status"] == "created"
    again = announced(server.client, data, family="files", type="video")
    assert (again["id"], again["status"]) == (sent["id"], "ready")
    body = {"md5": md5_of(video()), "filename": "b.mp4"}
    registered = server.client.post(f"{API}/isobmff_files", json=body).json()
    record = record_of(server, registered["id"])
    assert (record["type"], record["status"], record["tracks"]) == ("video", "created", [])


def test_an_image_is_given_as_bytes_unless_json_is_named(server):
    data = picture(30, 20)
    record = uploaded(server.client, data, "a.png", "files", type="image")
    place = f"{FILES}/{record['id']}"
    shown = server.client.get(place)
    assert (shown.content, shown.headers["content-type"]) == (data, "image/png")
    assert "Accept" in shown.headers["vary"]
    part = server.client.get(place, headers={"Range": "bytes=0-7", "Accept": "image/*"})
    assert (part.status_code, part.content) == (206, data[:8])
    for headers in (JSON, {"Content-Type": "application/json"}):
        fields = server.client.get(place, headers=headers).json()
        assert (fields["width"], fields["height"], fields["mime_type"]) == (30, 20, "image/png")
    head = server.client.head(place)
    assert (head.headers["content-length"], head.content) == (str(len(data)), b"")
    waiting = announced(server.client, picture(), "b.png", "files", type="image")
    assert server.client.get(f"{FILES}/{waiting['id']}").status_code == 409
    assert record_of(server, waiting["id"])["status"] == "created"


def test_a_video_is_its_own_track_where_it_can_be(server):
    data = fixture_bytes("frag-global-sidx-video.mp4", salt=uuid.uuid4())
    record = uploaded(server.client, data, "a.mp4", "files", type="video", mime_type="video/mp4")
    assert record["status"] == "ready"
    assert (record["width"], record["height"], record["mime_type"]) == (64, 48, "video/mp4")
    (track,) = record["tracks"]
    assert track == {
        "track_id": 1,
        "type": "video",
        "codec_name": "h264",
        "duration_ms": 2000,
        "byte_size": len(data),
    }
    place = f"{FILES}/{record['id']}"
    assert server.client.get(f"{place}/tracks/1").content == data
    part = server.client.get(f"{place}/tracks/1", headers={"Range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, b"ftyp")
    assert server.client.head(f"{place}/tracks/1").headers["content-length"] == str(len(data))
    index = server.client.get(f"{place}/index")
    assert index.json()["1"]["codec"] == "avc1.64000A"
    asked = {"If-None-Match": index.headers["etag"]}
    assert server.client.get(f"{place}/index", headers=asked).status_code == 304
    playlist = server.client.get(f"{place}/index", params={"format": "hls"}).text
    assert "\ntracks/1.mp4\n" in playlist
    for path in ("tracks/2", "tracks/x", "tracks/-1"):
        assert server.client.get(f"{place}/{path}").status_code == 404


def test_an_md5_that_nobody_told_is_known_at_the_end(server):
    data = video()
    body = {"filename": "a.m4a", "byte_size": len(data), "type": "video"}
    first, second = (server.client.post(FILES, json=body).json() for _ in range(2))
    assert first["md5"] is None
    assert first["id"] != second["id"]
    for record in (first, second):
        place = f"{FILES}/{record['id']}"
        assert server.client.post(f"{place}/upload", content=data).status_code == 201
        file = record_of(server, record["id"])
        assert (file["md5"], file["status"]) == (str(uuid.UUID(md5_of(data))), "ready")
        assert server.client.get(f"{place}/tracks/1").content == data


@types
def test_the_md5_of_any_type_may_be_left_out(server, type_):
    make, name = MAKERS[type_]
    data = make()
    body = {"filename": name, "byte_size": len(data), "type": type_}
    record = server.client.post(FILES, json=body).json()
    assert record["md5"] is None
    sent = server.client.post(f"{FILES}/{record['id']}/upload", content=data)
    assert (sent.status_code, sent.json()["md5"]) == (201, str(uuid.UUID(md5_of(data))))


def test_a_client_may_send_tracks_and_index_itself(server):
    data = fixture_bytes("frag-global-sidx-video.mp4", salt=uuid.uuid4())
    record = announced(server.client, bytes(500), "raw.mov", "files", type="video")
    place = f"{FILES}/{record['id']}"
    assert server.client.get(f"{place}/index").status_code == 404
    assert server.client.get(f"{place}/tracks").status_code == 404
    track = {"track_id": "1", "type": "video", "byte_size": len(data), "codec_name": "h264"}
    track |= {"duration_ms": 2000.4, "probe_info": {"width": 64, "height": "odd"}}
    answer = server.client.post(f"{place}/tracks", json=track)
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"{place}/tracks/1"
    assert server.client.post(f"{place}/tracks", json=track).status_code == 200
    missing = server.client.get(f"{place}/tracks/1/upload")
    assert (missing.status_code, missing.json()["next_byte"]) == (404, 0)
    assert server.client.get(f"{place}/tracks/1").status_code == 409
    half = {"Content-Range": f"bytes=0-99/{len(data)}"}
    begun = server.client.post(f"{place}/tracks/1/upload", content=data[:100], headers=half)
    assert (begun.status_code, begun.json()["next_byte"]) == (202, 100)
    ended = server.client.post(f"{place}/tracks/1/upload", content=data)
    assert (ended.status_code, ended.json()["complete"]) == (201, True)
    assert server.client.get(f"{place}/tracks/1/upload").json() == ended.json()
    assert server.client.get(f"{place}/tracks/1").content == data
    listed = server.client.get(f"{place}/tracks").json()["isobmff_tracks"]
    assert [one["track_id"] for one in listed] == [1]
    twin = uploaded(server.client, data, "twin.mp4", "files", type="video")
    index = server.client.get(f"{FILES}/{twin['id']}/index").content
    sent = server.client.post(f"{place}/index/upload", content=iter([index[:50], index[50:]]))
    assert (sent.status_code, sent.json()["fragment_index_complete"]) == (201, True)
    assert (
        server.client.get(f"{place}/index").json()
        == server.client.get(f"{FILES}/{twin['id']}/index").json()
    )
    record = record_of(server, record["id"])
    assert (record["status"], record["next_byte"], record["width"]) == ("ready", 0, 64)
    assert record["height"] is None
    assert server.client.delete(f"{place}/tracks/1").status_code == 204
    assert server.client.get(f"{place}/tracks/1").status_code == 404


def test_tracks_need_a_video_whose_md5_is_known(server):
    track = {"track_id": 1, "type": "video", "byte_size": 10}
    body = {"filename": "a.mp4", "byte_size": 10, "type": "video"}
    nameless = server.client.post(FILES, json=body).json()["id"]
    assert server.client.post(f"{FILES}/{nameless}/tracks", json=track).status_code == 409
    image = new(server, "image")[1]["id"]
    assert server.client.post(f"{FILES}/{image}/tracks", json=track).status_code == 404
    assert server.client.get(f"{FILES}/{image}/index").status_code == 404


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"type": "film"}, "#/type"),
        ({"type": "image", "filename": "a.bmp"}, "#/filename"),
        ({"type": "image", "filename": "a.png", "mime_type": "text/html"}, "#/mime_type"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "#/expires_at"),
        ({"expires_at": "2120-01-01T00:00:00"}, "#/expires_at"),
        ({"md5": "short"}, "#/md5"),
        ({"byte_size": 1.5}, "#/byte_size"),
    ],
)
def test_a_field_that_breaks_a_rule_is_422_and_named(server, body, pointer):
    whole = {"filename": "a.mp4", "byte_size": 10, "type": "video", **body}
    answer = server.client.post(FILES, json=whole)
    assert answer.status_code == 422
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("type_", "name", "limit"),
    [("video", "a.mp4", 2**30), ("image", "a.png", 2**24), ("caption", "a.vtt", 2**21)],
)
def test_each_type_has_its_limit(server, type_, name, limit):
    body = {"filename": name, "byte_size": limit + 1, "type": type_, "md5": "0" * 32}
    answer = server.client.post(FILES, json=body)
    assert (answer.status_code, answer.json()["limit"]) == (413, limit)


def test_what_is_no_video_has_failed(server):
    record = uploaded(server.client, uuid.uuid4().hex.encode(), family="files", type="video")
    assert record["status"] == "failed"
    assert "text" in record["problem"]["detail"]
    events = events_of(server.client, f"/files/{record['id']}/progress")
    assert events[-1] == ("error", record["problem"])
    again = announced(server.client, b"", family="files", type="video")
    assert (again["status"], again["problem"]["detail"]) == ("failed", "the file is empty")


@types
def test_a_file_past_its_time_goes_with_all_that_was_made_of_it(server, type_):
    make, name = MAKERS[type_]
    when = datetime.now(UTC) + timedelta(hours=1)
    data = make()
    more = {"type": type_, "expires_at": when.isoformat()}
    record = uploaded(server.client, data, name, "files", **more)
    assert datetime.fromisoformat(record["expires_at"]) <= when
    deletion.expired(server.context.database)
    assert record_of(server, record["id"])["status"] == "ready"
    for family in deletion.FAMILIES.values():
        if "expires_at" in family.table.c:
            with server.context.database.write() as connection:
                past = {"expires_at": when - timedelta(hours=2)}
                mine = family.table.c.id == record["id"]
                connection.execute(family.table.update().where(mine).values(**past))
    assert deletion.expired(server.context.database) == (2 if type_ == "video" else 1)
    assert server.client.get(f"{FILES}/{record['id']}", headers=JSON).status_code == 404
    assert server.client.get(f"{API}/isobmff_files/{record['id']}").status_code == 404


def test_a_list_of_all_types_by_pages_type_and_status(server):
    new_ids = {type_: new(server, type_)[1]["id"] for type_ in MAKERS}
    ready = uploaded(server.client, video(), "r.m4a", "files", type="video")
    query: dict[str, object] = {"limit": 3}
    records = []
    while True:
        page = server.client.get(FILES, params=query).json()
        records += page["files"]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    ids = [record["id"] for record in records]
    assert ids == sorted(set(ids), reverse=True)
    assert {*new_ids.values(), ready["id"]} <= set(ids)
    assert next(record for record in records if record["id"] == ready["id"]) == ready
    for type_, id_ in new_ids.items():
        listing = server.client.get(FILES, params={"type": type_, "status": "created"}).json()
        assert id_ in [record["id"] for record in listing["files"]]
        assert {record["type"] for record in listing["files"]} == {type_}
        assert {record["status"] for record in listing["files"]} == {"created"}
    assert server.stranger.get(FILES).json() == {"files": [], "next_cursor": None}


@pytest.mark.parametrize("id_", [UNKNOWN, "undefined", "%00"])
@pytest.mark.parametrize("path", ["", "/upload", "/progress", "/index", "/tracks", "/tracks/1"])
def test_what_is_not_there_is_404(server, id_, path):
    assert server.client.get(f"{FILES}/{id_}{path}").status_code == 404
