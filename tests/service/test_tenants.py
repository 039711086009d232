"""Tenants never see each other: every operation of the OpenAPI document, with another one's ids."""

import io
import itertools
import uuid
import zipfile

import pytest
from PIL import Image

from fragdex.service.records import keys, tables
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.renders.model import TYPES, suffix_of
from fragdex.speech.plan import TranscriptionPlan
from fragdex.speech.words import SliceTranscript, Word
from service.serving import API, client_of, serving
from service.working import announced, fixture_bytes, md5_of, uploaded

SECRET = f"geheim-{uuid.uuid4()}"
KINDS = {name for name in TYPES if suffix_of(name) == name} - {"mp4"}
"""What renders are made into, by their suffixes, besides MP4."""
STREAMED = {"playlist": "master.m3u8", "rendition": "v1", "part": "init.mp4", "sheet": "0.jpg"}
STREAMED |= {"form": "json"}


def picture():
    out = io.BytesIO()
    Image.frombytes("RGB", (4, 4), uuid.uuid4().bytes * 3).save(out, "PNG")
    return out.getvalue()


def captions():
    return f"WEBVTT\n\n00:01.000 --> 00:02.000\n{uuid.uuid4()}\n".encode()


def records(served):
    """For the beginning of each path: the path parameters of records that are complete."""
    client, image_bytes, caption_bytes = served.client, picture(), captions()
    video_bytes = fixture_bytes("frag-global-sidx-video.mp4", salt=SECRET)
    image = uploaded(client, image_bytes, f"{SECRET}.png", "image_files")["id"]
    caption = uploaded(client, caption_bytes, f"{SECRET}.vtt", "caption_files")["id"]
    video = uploaded(client, video_bytes, f"{SECRET}.mp4")["id"]
    process = client.post(f"{API}/unprocessed_files/{video}/process").json()
    assert process["status"] == "complete", process
    track = {"track_id": 7, "type": "video", "byte_size": len(video_bytes)}
    client.post(f"{API}/files/{video}/tracks", json=track)
    client.post(f"{API}/files/{video}/tracks/7/upload", content=video_bytes)
    sound = fixture_bytes("frag-audio.m4a", salt=SECRET)
    track = {"track_id": 8, "type": "audio", "byte_size": len(sound)}
    client.post(f"{API}/files/{video}/tracks", json=track)
    client.post(f"{API}/files/{video}/tracks/8/upload", content=sound)
    timeline = client.post(f"{API}/timelines", json={"files": [video], "name": SECRET}).json()
    hook = {"url": f"https://example.org/{SECRET}", "types": ["webhook.*"]}
    webhook = client.post(f"{API}/webhooks", json=hook).json()
    delivery = client.post(f"{API}/webhooks/{webhook['id']}/ping").json()["id"]
    repair = over(served, client.post(f"{API}/files/{video}/repair", json={}).json()["id"])
    mark = uuid.uuid4().hex
    key = client.post(f"{API}/keys", json={"name": SECRET}).json()["id"]
    renders = rendered(client, {"md5": mark, "metadata": {"film": SECRET}})
    spoken = heard(served, video)
    md5s = {name: md5_of(data) for name, data in (("i", image_bytes), ("v", video_bytes))}
    every_file = [{"id": image}, {"id": caption}, {"id": video}]
    return {
        "/image_files/{id}": [{"id": image}],
        "/image_files/md5/": [{"md5": md5s["i"]}],
        "/caption_files/{id}": [{"id": caption}],
        "/caption_files/md5/": [{"md5": md5_of(caption_bytes)}],
        "/unprocessed_files/{id}": [{"id": video}],
        "/unprocessed_files/md5/": [{"md5": md5s["v"]}],
        "/process_isobmff/{id}": [{"id": process["id"]}],
        "/isobmff_files/{id}": [{"id": video}],
        "/isobmff_files/md5/": [{"md5": md5s["v"]}],
        "/isobmff_tracks/{file_id}": [{"file_id": video, "track_id": "7"}],
        "/repairs/{id}": [{"id": repair}],
        "/renders/{id}": [{"id": renders["mp4"]}],
        **{f"/renders/{{id}}.{kind}": [{"id": renders[kind]}] for kind in KINDS},
        "/renders/{id}/progress": [{"id": renders["over"]}],
        "/renders/{id}/upload": [{"id": renders["site"]}],
        "/renders/md5/": [{"md5": mark}],
        "/transcriptions/{id}": [{"id": spoken, "n": "0"}],
        "/files/{id}/transc": [{"id": video}],
        "/files/{id}/tracks": [{"id": video, "track_id": "7"}],
        "/files/{id}/index": [{"id": video}],
        "/files/{id}": every_file,
        "/uploads/{id}": [{"id": caption}],
        **{
            f"/{family}/{{id}}/{below}": [{"id": video} | STREAMED]
            for family in ("files", "isobmff_files")
            for below in (
                "hls",
                "dash",
                "fragmented",
                "faststart",
                "clip",
                "storyboard",
                "peaks",
                "loudness",
            )
        },
        **{
            f"/{family}/{{id}}/thumbnail": [{"id": video, "form": "jpg"}]
            for family in ("files", "isobmff_files")
        },
        "/timelines/{id}": [{"id": timeline["id"]} | STREAMED],
        "/timelines/{id}/thumbnail": [{"id": timeline["id"], "form": "jpg"}],
        "/files/md5/": [{"md5": md5} for md5 in md5s.values()],
        "/keys/{id}": [{"id": key}],
        "/webhooks/{id}": [{"id": webhook["id"], "delivery_id": delivery}],
    }


def over(served, repair):
    """A repair whose events come to an end."""
    change = tables.repairs.update().where(tables.repairs.c.id == repair)
    with served.context.database.write() as connection:
        connection.execute(change.values(failed_at=instant(), problem={"detail": SECRET}))
    return repair


def heard(served, file_id):
    """A transcription that is complete, its copy with captions included."""
    id, now = new_id(), instant()
    words = SliceTranscript(0, (Word(SECRET, 0, 500),)).as_json()
    done = {"status": "complete", "copy_status": "complete", "copy_file_id": file_id}
    done |= {"plan": TranscriptionPlan(1, 30_000, 0, 100, 0.0, "en", (0,)).as_json(), "slices": 1}
    done |= {"engine": "pocketsphinx", "work_slice_ms": 30_000, "duration_ms": 1000}
    times = {"created_at": now, "completed_at": now}
    row = {"id": id, "tenant_id": served.tenant, "file_id": file_id, "track_id": 1}
    part = {"transcription_id": id, "number": 0, "heard": words, "completed_at": now}
    with served.context.database.write() as connection:
        connection.execute(tables.transcriptions.insert().values(**row, **done, **times))
        connection.execute(tables.transcription_slices.insert().values(**part))
    return id


def rendered(client, marks):
    """Renders, by what they make; they wait for a worker. One has its page by upload."""
    page, site = f"<p>{SECRET}", io.BytesIO()
    bodies = {kind: {"html": page, "output": {"container": kind}} for kind in KINDS}
    bodies |= {"site": {}, "over": {}, "mp4": {"html": page, **marks}}
    answers = {kind: client.post(f"{API}/renders", json=body) for kind, body in bodies.items()}
    ids = {kind: answer.json()["id"] for kind, answer in answers.items()}
    with zipfile.ZipFile(site, "w") as archive:
        archive.writestr("index.html", page)
    uploaded = client.post(f"{API}/renders/{ids['site']}/upload", content=site.getvalue())
    assert uploaded.status_code == 201, uploaded.text
    # its events come to an end
    client.post(f"{API}/renders/{ids['over']}/cancel")
    return ids


OF_NO_RECORD = f"{API}/transcode/"
"""What lies below speaks of media beyond the service, which belong to no tenant."""


class Ours:
    """The service, its document, and one tenant's records."""

    def __init__(self, served):
        self.served = served
        self.document = served.anyone.get("/openapi.json").json()
        self.records = records(served)

    def operations(self):
        """(method, path, operation) of all below /api/v1, those that delete at the end."""
        operations = [
            (method, path, operation)
            for path, item in self.document["paths"].items()
            if path.startswith(API)
            for method, operation in item.items()
        ]
        return sorted(operations, key=lambda one: one[0] == "delete" or one[1].endswith("/delete"))

    def parameters(self, path):
        """Path parameters of our records; a new path needs its records above."""
        places = [place for place in self.records if path.startswith(API + place)]
        assert places, f"say which records {path} speaks of"
        return self.records[max(places, key=len)]

    def request(self, method, path, operation, values):
        """The arguments of a request that is valid but for who asks."""
        query = {
            parameter["name"]: self.example(parameter["schema"])
            for parameter in operation.get("parameters", ())
            if parameter["in"] == "query" and parameter.get("required")
        }
        body = operation.get("requestBody", {}).get("content", {})
        more = {}
        if "application/octet-stream" in body:
            more["content"] = b"x"
        elif "application/json" in body:
            more["json"] = self.example(body["application/json"]["schema"])
        return {"method": method, "url": path.format(**values), "params": query, **more}

    def example(self, schema):
        """A value that a schema takes."""
        if "$ref" in schema:
            return self.example(
                self.document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
            )
        if schema.get("examples"):
            return schema["examples"][0]
        if "enum" in schema:
            return schema["enum"][0]
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self.example(schema[several][0])
        if schema.get("type") == "object":
            needed = schema.get("required", ())
            return {name: self.example(schema["properties"][name]) for name in needed}
        by_type = {"integer": 1, "number": 1.0, "boolean": True, "array": []}
        return by_type.get(schema.get("type"), "x" * schema.get("minLength", 1))


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    """The service, and records of a tenant."""
    with serving(tmp_path_factory.mktemp("tenants")) as served:
        yield Ours(served)


def test_another_tenants_records_are_not_found(ours):
    seen = 0
    for method, path, operation in ours.operations():
        if "{" not in path or path.startswith(OF_NO_RECORD):
            continue
        for values in ours.parameters(path):
            request = ours.request(method, path, operation, values)
            answer = ours.served.stranger.request(**request)
            assert answer.status_code == 404, f"{method} {request['url']}: {answer.text}"
            if method != "head":
                assert answer.headers["content-type"] == "application/problem+json"
                assert answer.json()["status"] == 404
            assert SECRET.encode() not in answer.content
            seen += 1
    assert seen > 50


def scope_of(method, path):
    """What a key needs for an operation: by its method, but for keys and for signing tokens."""
    if path.startswith(f"{API}/keys"):
        return keys.ADMIN
    reads = method in ("get", "head", "options") or path == f"{API}/url-token"
    return keys.READ if reads else keys.WRITE


def test_a_key_that_may_only_read_changes_nothing(ours):
    """And so says the document; URL tokens open GET, so it may sign them."""
    key = keys.create_key(ours.served.context.database, "ours", scope=keys.READ)
    with client_of(ours.served.url, key) as reader:
        for method, path, operation in ours.operations():
            needed = scope_of(method, path)
            assert operation["security"][0] == {"key": [needed]}, path
            if path.startswith(OF_NO_RECORD):
                continue
            for values in ours.parameters(path) if "{" in path else [{}]:
                answer = reader.request(**ours.request(method, path, operation, values))
                message = f"{method} {path}: {answer.text}"
                assert (answer.status_code == 403) is (needed != keys.READ), message
                if method != "head" and answer.status_code == 403:
                    assert answer.json()["scope"] == needed


def test_keys_are_for_keys_with_the_scope_admin(ours):
    """Not for those that write, nor for URL tokens that an admin key signed."""
    writer = keys.create_key(ours.served.context.database, "ours", scope=keys.WRITE)
    place = {"url": f"{API}/keys"}
    token = ours.served.client.post(f"{API}/url-token", json=place).json()["token"]
    for bearer in (writer, token):
        with client_of(ours.served.url, bearer) as client:
            for method, path, operation in ours.operations():
                if scope_of(method, path) != keys.ADMIN:
                    continue
                values = ours.parameters(path)[0] if "{" in path else {}
                answer = client.request(**ours.request(method, path, operation, values))
                assert answer.status_code == 403, f"{method} {path}: {answer.text}"


def test_nothing_of_it_was_changed_and_the_requests_were_good(ours):
    """The same requests find something where the owner asks; what deletes comes last."""
    for method, path, operation in ours.operations():
        if "{" not in path or method == "delete" or path.endswith("/delete"):
            continue
        if path.startswith(OF_NO_RECORD):
            continue
        values = ours.parameters(path)[-1]
        answer = ours.served.client.request(**ours.request(method, path, operation, values))
        assert answer.status_code not in (401, 403, 404, 405), f"{method} {path}: {answer.text}"
        assert answer.status_code < 500


def test_without_a_key_it_is_401(ours):
    no_values = {"id": str(uuid.uuid4()), "md5": "0" * 32, "file_id": "x", "track_id": "1"}
    no_values |= {"n": "0", "delivery_id": str(uuid.uuid4()), **STREAMED}
    for method, path, operation in ours.operations():
        of_records = "{" in path and not path.startswith(OF_NO_RECORD)
        known = ours.parameters(path) if of_records else []
        for values in [*known, no_values] if "{" in path else [{}]:
            request = ours.request(method, path, operation, values)
            bare = {"method": method, "url": request["url"]}
            for asked in (request, bare):
                answer = ours.served.anyone.request(**asked)
                assert answer.status_code == 401, f"{method} {asked['url']}: {answer.text}"
                assert answer.headers["www-authenticate"].startswith("Bearer")
                assert SECRET.encode() not in answer.content


def test_lists_and_bodies_name_no_record_of_another_tenant(ours):
    ids = {value for values in itertools.chain(*ours.records.values()) for value in values.values()}
    ids -= {"7", "0"}
    for method, path, operation in ours.operations():
        if "{" in path or method != "get":
            continue
        answer = ours.served.stranger.request(**ours.request(method, path, operation, {}))
        assert not [one for one in ids if one in answer.text], path
        assert SECRET not in answer.text
    video = ours.records["/isobmff_files/{id}"][0]["id"]
    listed = ours.served.stranger.get(f"{API}/isobmff_tracks", params={"file_id": video})
    assert listed.status_code == 404
    track = {"file_id": video, "track_id": 1, "type": "video", "byte_size": 1}
    assert ours.served.stranger.post(f"{API}/isobmff_tracks", json=track).status_code == 404


def test_the_same_bytes_are_each_tenants_own(ours):
    data = captions()
    mine = uploaded(ours.served.client, data, "a.vtt", "caption_files")
    theirs = announced(ours.served.stranger, data, "a.vtt", "caption_files")
    assert theirs["id"] != mine["id"]
    assert (theirs["next_byte"], theirs["complete"]) == (0, False)


def test_a_replayed_answer_is_not_for_another_tenant(ours):
    body = {"filename": f"{SECRET}.png", "byte_size": 10, "md5": uuid.uuid4().hex}
    headers = {"Idempotency-Key": str(uuid.uuid4())}
    path = f"{API}/image_files"
    mine = ours.served.client.post(path, json=body, headers=headers).json()
    theirs = ours.served.stranger.post(path, json=body, headers=headers).json()
    assert mine["id"] != theirs["id"]
