"""Two films of one md5 are two, whether their bytes are the same or not: each goes alone."""

import hashlib
import io
import re
import uuid
from base64 import b64encode
from datetime import datetime, timedelta
from itertools import pairwise
from types import SimpleNamespace

import av
import pytest

from fragdex.service.jobs.work import Job
from fragdex.service.records import deletion, tables
from fragdex.service.records.identifiers import instant
from fragdex.service.records.tenant_limits import set_limits
from fragdex.service.unprocessed import worker
from fragdex.service.uploads import hashing
from service.serving import API
from service.uploads.test_collisions import announce, kept_for, md5_of, pair, send, swept
from service.working import FIXTURES, announced, fixture_bytes


def films():
    """Two films whose md5 is really one: a demuxer of MPEG-TS looks for its first packet."""
    out = io.BytesIO()
    with (
        av.open(str(FIXTURES / "faststart.mp4")) as source,
        av.open(out, "w", format="mpegts") as target,
    ):
        streams = {s.index: target.add_stream_from_template(s) for s in source.streams}
        for packet in source.demux():
            if packet.dts is not None:
                packet.stream = streams[packet.stream.index]
                target.mux(packet)
    return [blocks + out.getvalue() for blocks in pair()]


@pytest.fixture
def one_md5(monkeypatch):
    """Whatever is uploaded has this md5: films that differ in all else collide."""
    mark = uuid.uuid4().bytes
    digest = SimpleNamespace(update=lambda _: None, digest=lambda: mark)
    weak = SimpleNamespace(md5=lambda **_: digest, sha256=hashlib.sha256)
    monkeypatch.setattr(hashing, "hashlib", weak)
    return mark.hex()


def process(server, id):
    """Do the job of a film, where it has one."""
    runs = server.client.get(f"{API}/process_isobmff").json()["processes"]
    (run,) = (one for one in runs if one["unprocessed_file_id"] == id)
    if run["status"] != "complete":
        name = f"{worker.PROCESS}-{run['id']}"
        job = Job(name, worker.PROCESS, run["id"], {}, 1, lambda _: True, None)
        worker._run(server.context, job)


def sent(server, data):
    """The id of a film that is uploaded, and processed where it does not come as a track."""
    place = announce(server.client, data)
    assert send(server.client, place, data).status_code == 201
    id = place.rpartition("/")[2]
    process(server, id)
    return id


def shown(client, id):
    answer = client.get(f"{API}/files/{id}", headers={"Accept": "application/json"})
    assert answer.status_code == 200, answer.text
    return answer.json()


def tracks(client, id):
    """The bytes of a film's tracks."""
    ids = [track["track_id"] for track in shown(client, id)["tracks"]]
    answers = {track_id: client.get(f"{API}/files/{id}/tracks/{track_id}") for track_id in ids}
    assert {answer.status_code for answer in answers.values()} == {200}
    return {track_id: answer.content for track_id, answer in answers.items()}


def of_md5(client, md5):
    return [
        client.get(f"{API}/{family}/md5/{md5}").json().get("id")
        for family in ("files", "isobmff_files")
    ]


@pytest.mark.parametrize("first", [0, 1])
def test_both_are_processed_and_outlive_each_other(server, first):
    both = films()
    both = [both[first], both[1 - first]]
    md5 = md5_of(both[0])
    assert md5 == md5_of(both[1])
    ids = [sent(server, data) for data in both]
    for id, data in zip(ids, both, strict=True):
        assert shown(server.client, id)["status"] == "ready"
        assert set(tracks(server.client, id)) == {1, 2, -1}
        assert server.client.get(f"{API}/isobmff_files/{id}").json()["status"] == "ready"
        assert kept_for(server, f"/{id}") == data
        for family in ("files", "isobmff_files", "unprocessed_files"):
            assert server.stranger.get(f"{API}/{family}/{id}").status_code == 404
    assert of_md5(server.client, md5) == [ids[1]] * 2
    assert of_md5(server.stranger, md5) == [None] * 2
    before = tracks(server.client, ids[0])
    assert server.client.delete(f"{API}/files/{ids[1]}").status_code == 204
    swept(server)
    assert tracks(server.client, ids[0]) == before
    assert kept_for(server, f"/{ids[0]}") == both[0]
    assert of_md5(server.client, md5) == [ids[0]] * 2


def test_films_that_need_no_work_keep_their_own_bytes(server, one_md5):
    names = ("frag-global-sidx-video.mp4", "frag-audio.m4a")
    both = [fixture_bytes(name, salt=server.url) for name in names]
    ids = [sent(server, data) for data in both]
    for id, data in zip(ids, both, strict=True):
        assert list(tracks(server.client, id).values()) == [data]
        size = server.client.get(f"{API}/isobmff_files/{id}").json()["byte_size"]
        assert size == len(data)
    assert server.client.delete(f"{API}/isobmff_files/{ids[0]}").status_code == 204
    swept(server)
    assert list(tracks(server.client, ids[1]).values()) == [both[1]]


def test_tracks_that_a_client_made_go_to_the_film_they_are_of(server, one_md5):
    film_id = sent(server, fixture_bytes("frag-audio.m4a", salt=server.url))
    data = fixture_bytes("faststart.mp4", salt=server.url)
    other = announced(server.client, data, md5=one_md5)["id"]
    assert send(server.client, f"{API}/unprocessed_files/{other}", data).status_code == 201
    track = {"track_id": 7, "type": "video", "byte_size": 10}
    assert server.client.post(f"{API}/files/{other}/tracks", json=track).status_code == 201
    numbers = [
        {track["track_id"] for track in server.client.get(place).json()["tracks"]}
        for place in (f"{API}/isobmff_files/{film_id}", f"{API}/isobmff_files/{other}")
    ]
    assert 7 not in numbers[0]
    assert 7 in numbers[1]


def test_each_is_listed_once(server, one_md5):
    """Also where a third is announced, whose bytes may be those of either."""
    names = ("frag-global-sidx-video.mp4", "frag-audio.m4a")
    ids = [sent(server, fixture_bytes(name, salt=server.url)) for name in names]
    third = announced(server.client, b"to come", md5=one_md5)["id"]
    # what was made of it stays
    assert server.client.delete(f"{API}/unprocessed_files/{ids[0]}").status_code == 204
    listed = server.client.get(f"{API}/files").json()["files"]
    md5 = str(uuid.UUID(one_md5))
    assert [file["id"] for file in listed if file["md5"] == md5] == [third, ids[1], ids[0]]
    assert shown(server.client, third)["tracks"] == shown(server.client, ids[1])["tracks"]


def test_a_film_that_was_named_is_not_taken_by_another(server, one_md5):
    """Its tracks came before its bytes; those of another film of its md5 came in between."""
    data = fixture_bytes("frag-audio.m4a", salt=server.url)
    named = announced(server.client, data, md5=one_md5)["id"]
    track = {"track_id": 7, "type": "video", "byte_size": 10}
    assert server.client.post(f"{API}/files/{named}/tracks", json=track).status_code == 201
    other = sent(server, fixture_bytes("frag-global-sidx-video.mp4", salt=server.url))
    place = f"{API}/unprocessed_files/{named}"
    assert send(server.client, place, data).status_code == 201
    assert server.client.post(f"{place}/process").status_code == 201
    for id, numbers in ((other, {1}), (named, {1, 7})):
        assert {track["track_id"] for track in shown(server.client, id)["tracks"]} == numbers


def equals(server, name="frag-global-sidx-video.mp4", count=2):
    """A film of its own, uploaded again and again without its md5: the ids, and its bytes."""
    data = fixture_bytes(name, salt=uuid.uuid4().hex)
    ids = []
    for n in range(count):
        new = {"filename": f"{n}.mp4", "type": "video", "byte_size": len(data)}
        ids.append(server.client.post(f"{API}/files", json=new).json()["id"])
        sent = server.client.post(f"{API}/files/{ids[-1]}/upload", content=data)
        assert sent.status_code == 201, sent.text
        assert shown(server.client, ids[-1])["status"] == "ready"
    return ids, data


def listed(server):
    return {file["id"] for file in server.client.get(f"{API}/files?limit=200").json()["files"]}


@pytest.mark.parametrize("kept", [0, 1])
def test_one_of_two_equal_films_goes_alone(server, kept):
    ids, data = equals(server)
    gone = ids[1 - kept]
    assert server.client.delete(f"{API}/files/{gone}").status_code == 204
    swept(server)
    deletion.expired(server.context.database)
    for method, path in (("GET", ""), ("GET", "/index"), ("DELETE", ""), ("PATCH", "")):
        body = {"json": {"filename": "b.mp4"}} if method == "PATCH" else {}
        answer = server.client.request(method, f"{API}/files/{gone}{path}", **body)
        assert answer.status_code == 404, (method, path)
    assert listed(server) & set(ids) == {ids[kept]}
    assert tracks(server.client, ids[kept]) == {1: data}
    assert server.client.delete(f"{API}/files/{ids[kept]}").status_code == 204
    deletion.expired(server.context.database)
    assert of_md5(server.client, md5_of(data)) == [None, None]


def test_a_film_whose_time_is_over_leaves_its_equal(server):
    ids, data = equals(server)
    past = instant() - timedelta(days=2)
    with server.context.database.write() as connection:
        for table in (tables.files, tables.isobmff_files):
            change = table.update().where(table.c.id == ids[0])
            connection.execute(change.values(expires_at=past, created_at=past))
    deletion.expired(server.context.database)
    assert listed(server) & set(ids) == {ids[1]}
    assert tracks(server.client, ids[1]) == {1: data}


def test_a_film_older_than_its_tenant_keeps_leaves_its_equal(server, monkeypatch):
    ids, data = equals(server)
    newer = datetime.fromisoformat(shown(server.client, ids[1])["created_at"])
    set_limits(server.context.database, server.tenant, {"retention_days": 1})
    monkeypatch.setattr(deletion, "instant", lambda: newer + timedelta(days=1, milliseconds=-1))
    deletion.outlived(server.context.database)
    set_limits(server.context.database, server.tenant, {"retention_days": None})
    assert listed(server) & set(ids) == {ids[1]}
    assert tracks(server.client, ids[1]) == {1: data}


PATHS = (
    "isobmff_files/{id}",
    "isobmff_files/{id}/index",
    "isobmff_files/{id}/seek?track=1&time_ms=500",
    "isobmff_files/{id}/seek?track=1&time_ms=500&verified=true",
    "isobmff_files/{id}/hls/master.m3u8",
    "isobmff_files/{id}/faststart.mp4",
    "isobmff_tracks?file_id={id}",
    "isobmff_tracks/{id}/1",
    "isobmff_tracks/{id}/1/upload",
    "files/{id}/tracks/1",
)


@pytest.mark.parametrize("path", [one for one in PATHS if one.startswith("isobmff")])
def test_what_is_not_made_yet_is_not_over(server, path):
    """An id that names an upload says what to do until it is an ISOBMFF file."""
    data = fixture_bytes("hevc-aac.mp4", salt=uuid.uuid4().hex)
    new = {"filename": "a.mp4", "type": "video", "byte_size": len(data)}
    id = server.client.post(f"{API}/files", json=new).json()["id"]

    def refusal(id, client=server.client):
        answer = client.get(f"{API}/{path.format(id=id)}")
        assert answer.status_code == 404
        return answer.json()["action"], "retry-after" in answer.headers

    assert refusal(id) == ("resend", False)
    assert server.client.post(f"{API}/files/{id}/upload", content=data).is_success
    assert server.client.get(f"{API}/files/{id}").json()["status"] == "processing"
    assert refusal(id) == ("retry", True)
    assert refusal(id, server.stranger) == refusal(str(uuid.uuid4())) == ("stop", False)
    paths = server.client.get("/openapi.json").json()["paths"]
    wanted = path.partition("?")[0].format(id=id)
    told = [item["get"]["responses"]["404"] for template, item in paths.items() if "get" in item
            and re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), f"{API}/{wanted}")]  # fmt: skip
    assert any("Retry-After" in one.get("headers", {}) for one in told), wanted


@pytest.fixture
def works(monkeypatch):
    """Grows by one whenever a film is transcoded."""
    done, real = [], worker.run_media
    monkeypatch.setattr(worker, "run_media", lambda *a, **k: done.append(1) or real(*a, **k))
    return done


def uploaded(server, data, name):
    new = {"filename": name, "type": "video", "byte_size": len(data)}
    id = server.client.post(f"{API}/files", json=new).json()["id"]
    assert server.client.post(f"{API}/files/{id}/upload", content=data).is_success
    return id


def in_chunks(server, data, name):
    """The id of a film that came in three requests."""
    new = {"filename": name, "type": "video", "byte_size": len(data)}
    id = server.client.post(f"{API}/files", json=new).json()["id"]
    places = [0, len(data) // 3, len(data) // 2, len(data)]
    for start, stop in pairwise(places):
        assert send(server.client, f"{API}/files/{id}", data, start, stop).is_success
    return id


def by_tus(server, data, name):
    version = {"Tus-Resumable": "1.0.0"}
    new = {
        "Upload-Length": str(len(data)),
        "Upload-Metadata": f"filename {b64encode(name.encode()).decode()}",
    }
    url = server.client.post(f"{API}/tus", headers=version | new).headers["Location"]
    part = {"Content-Type": "application/offset+octet-stream", "Upload-Offset": "0"}
    assert server.client.patch(url, content=data, headers=version | part).status_code == 204
    return url.rpartition("/")[2]


def by_draft(server, data, name):
    new = {"Upload-Complete": "?1", "Content-Disposition": f'inline; filename="{name}"'}
    answer = server.client.post(f"{API}/uploads", content=data, headers=new)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("faststart.mp4", uploaded),
        ("frag-global-sidx-video.mp4", uploaded),
        ("frag-global-sidx-video.mp4", in_chunks),
        ("frag-global-sidx-video.mp4", by_tus),
        ("frag-global-sidx-video.mp4", by_draft),
    ],
)
def test_the_second_upload_of_the_same_bytes_is_the_first_under_its_own_id(
    server, name, again, works
):
    """It has every record that the docs promise under its id, and is not processed again."""
    data, ids = fixture_bytes(name, salt=uuid.uuid4().hex), []
    for n, way in enumerate((uploaded, again)):
        ids.append(way(server, data, f"{n}.mp4"))
        process(server, ids[-1])
    assert len(works) == (name == "faststart.mp4")
    for path in PATHS:
        first, second = (server.client.get(f"{API}/{path.format(id=id)}") for id in ids)
        assert (second.status_code, second.content) == (first.status_code, first.content), path
        assert second.status_code == 200, path
        assert server.stranger.get(f"{API}/{path.format(id=ids[1])}").status_code == 404
    own, other = (shown(server.client, id) for id in ids)
    assert [own["isobmff_file_id"], other["isobmff_file_id"]] == [ids[0]] * 2
    assert other["created_at"] <= other["completed_at"]
    assert own["completed_at"] <= other["completed_at"]
    refused = server.client.delete(f"{API}/isobmff_files/{ids[1]}")
    assert (refused.status_code, refused.json()["isobmff_file_id"]) == (409, ids[0])
    assert server.client.delete(f"{API}/files/{ids[1]}").status_code == 204
    swept(server)
    assert server.client.get(f"{API}/isobmff_tracks/{ids[0]}/1").status_code == 200
    assert server.client.get(f"{API}/isobmff_files/{ids[1]}").status_code == 404


def test_of_two_that_wait_one_is_processed(server, works):
    data = fixture_bytes("faststart.mp4", salt=uuid.uuid4().hex)
    ids = [uploaded(server, data, f"{n}.mp4") for n in range(2)]
    for id in reversed(ids):
        process(server, id)
    assert len(works) == 1
    assert [shown(server.client, id)["status"] for id in ids] == ["ready"] * 2
