"""What transcriptions are asked for, and what is refused; nothing is heard yet."""

import uuid

import pytest

import fragdex
from fragdex.service.records import tables
from fragdex.service.records.identifiers import instant
from fragdex.speech.engines import default_engine
from service.serving import API
from service.transcriptions.working import SPEECH, packed, sound_file
from service.working import UNKNOWN, announced, events_of, fixture_bytes, md5_of

AT = f"{API}/transcriptions"


@pytest.fixture(scope="module")
def film(server):
    """A file of video and audio, in tracks."""
    return sound_file(
        server.client, fixture_bytes("frag-default-base.mp4", salt=uuid.uuid4()), "film.mp4"
    )


@pytest.fixture(scope="module")
def sound(server):
    return sound_file(server.client, (SPEECH / "late-opus.mp4").read_bytes())


def errors(answer, status):
    """What a refusal points at."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return [error.get("pointer") for error in answer.json().get("errors", ())]


def test_a_transcription_waits_for_a_worker(client, sound):
    body = {"file_id": sound, "track_id": 1, "language": "en", "work_slice_ms": 5000}
    answer = client.post(AT, json=body)
    assert answer.status_code == 201
    record = answer.json()
    assert record["status"] == "pending"
    assert record["engine"] == default_engine()
    assert record["slices"] is None
    assert (record["language"], record["work_slice_ms"]) == ("en", 5000)
    # it begins at 7 s: what players count slices by is where it ends
    assert abs(record["isobmff_track"]["duration_ms"] - (7000 + 14745)) < 100
    assert client.get(f"{AT}/{record['id']}").json()["id"] == record["id"]
    assert client.get(answer.headers["location"]).json()["id"] == record["id"]
    for form in ("vtt", "srt", "json", "mp4"):
        refused = client.get(f"{AT}/{record['id']}.{form}")
        assert refused.status_code == 409
        assert refused.json()["state"] == "pending"
    assert client.post(f"{AT}/{record['id']}/copy").status_code == 409
    assert client.get(f"{AT}/{record['id']}/fragments/0").status_code == 404


def test_the_first_audio_track_is_taken(client, film):
    assert client.post(AT, json={"file_id": film}).json()["track_id"] == 2


@pytest.mark.parametrize("track", [2, "2"])
def test_tracks_are_named_by_number_or_text(client, film, track):
    answer = client.post(AT, json={"file_id": film, "track_id": track})
    assert answer.json()["track_id"] == 2
    for name in ("track_id", "trackId"):  # the latter is what published clients send
        answer = client.post(f"{API}/isobmff_files/{film}/transcribe", json={name: track})
        assert answer.json()["track_id"] == 2
    both = {"track_id": track, "trackId": track}
    refused = client.post(f"{API}/isobmff_files/{film}/transcribe", json=both)
    assert "the same field" in refused.json()["detail"]


def test_fields_that_are_refused_are_named(client, film):
    for field, values in {
        "track_id": ["x", "-1", -1, 1.5, True, "", "99999999999", 2**31],
        "work_slice_ms": [4999, 60_001, "5000", 5000.5],
        "language": ["english", "", "e", 5, "en\x00"],
        "file_id": ["", "\x00", None, 7],
        "engine": ["siri", ""],
    }.items():
        for value in values:
            body = {"file_id": film, "track_id": 2, field: value}
            assert errors(client.post(AT, json=body), 422) == [f"#/{field}"], (field, value)


def test_a_track_that_is_no_sound_or_not_there(client, film):
    at = f"{API}/isobmff_files/{film}/transcribe"
    assert errors(client.post(AT, json={"file_id": film, "track_id": 1}), 422) == ["#/track_id"]
    assert errors(client.post(AT, json={"file_id": film, "track_id": 7}), 404) == ["#/track_id"]
    assert errors(client.post(at, json={"trackId": 1}), 422) == ["#/trackId"]
    assert errors(client.post(at, json={"track_id": 1}), 422) == ["#/track_id"]
    assert errors(client.post(at, json={"trackId": "7"}), 404) == ["#/trackId"]
    assert errors(client.post(f"{API}/files/{film}/transcribe", json={"trackId": "x"}), 422) == [
        "#/trackId"
    ]


def test_a_language_that_the_engine_lacks(client, film):
    body = {"file_id": film, "language": "de"}
    assert errors(client.post(AT, json=body), 422) == ["#/language"]
    # of another one nobody knows before it is opened
    assert client.post(AT, json={**body, "engine": "faster-whisper"}).status_code == 201
    of_file = f"{API}/isobmff_files/{film}/transcribe"
    assert errors(client.post(of_file, json={"language": "de"}), 422) == ["#/language"]
    assert errors(client.post(of_file, json={"engine": "siri"}), 422) == ["#/engine"]
    for id in [one["id"] for one in client.get(AT).json()["transcriptions"]]:
        client.post(f"{AT}/{id}/cancel", json={})
    begun = client.post(of_file, json={"language": "de", "engine": "faster-whisper"})
    assert begun.status_code == 201
    assert client.get(f"{AT}/{begun.json()['id']}").json()["engine"] == "faster-whisper"


def test_a_vocabulary_is_kept_and_one_that_cannot_be_used_is_refused(client, film):
    of_file = f"{API}/isobmff_files/{film}/transcribe"
    body = {"file_id": film, "vocabulary": [" Ada  Lovelace", "", "fragdex"]}
    entries = ["Ada Lovelace", "fragdex"]
    record = client.post(AT, json=body).json()
    assert record["vocabulary"] == entries
    assert client.get(f"{AT}/{record['id']}").json()["vocabulary"] == entries
    again = client.post(of_file, json={"vocabulary": entries})
    assert (again.status_code, again.json()["id"]) == (200, record["id"])
    for other in ([], ["fragdex"]):
        assert client.post(of_file, json={"vocabulary": other}).json()["id"] != record["id"]
    wrong = (["x" * 61], ["1"], ["a\nb c d e f"], ["a\0"], ["Ada"] * 501, "Ada", [7], [None], None)
    for vocabulary in wrong:
        pointers = errors(client.post(AT, json=body | {"vocabulary": vocabulary}), 422)
        assert pointers[0].startswith("#/vocabulary"), vocabulary
    sherpa = body | {"engine": "sherpa-onnx"}
    assert errors(client.post(AT, json=sherpa), 422) == ["#/vocabulary"]
    assert client.post(AT, json=sherpa | {"language": "en"}).status_code == 201


def test_files_that_cannot_be_heard(client):
    silent = sound_file(client, fixture_bytes("frag-global-sidx-video.mp4", salt=uuid.uuid4()))
    answer = client.post(f"{API}/isobmff_files/{silent}/transcribe")
    assert errors(answer, 422) == []
    assert "no audio track" in answer.json()["detail"]
    for path in (f"{API}/isobmff_files/{UNKNOWN}", f"{API}/files/{UNKNOWN}"):
        assert client.post(f"{path}/transcribe").status_code == 404
        assert client.get(f"{path}/transcription").status_code == 404
    assert client.post(AT, json={"file_id": UNKNOWN, "track_id": 1}).status_code == 404
    data = uuid.uuid4().bytes
    body = {"md5": md5_of(data), "filename": "to-come.mp4"}
    bare = client.post(f"{API}/isobmff_files", json=body).json()["id"]
    assert client.post(AT, json={"file_id": bare, "track_id": 1}).status_code == 409
    sent = announced(client, uuid.uuid4().bytes, "a.mp4", "files", type="video")["id"]
    assert client.post(f"{API}/files/{sent}/transcribe").status_code == 409


def test_a_file_whose_bytes_are_missing(client):
    data = fixture_bytes("frag-audio.m4a", salt=uuid.uuid4())
    body = {"md5": md5_of(data), "filename": "a.m4a"}
    file = client.post(f"{API}/isobmff_files", json=body).json()["id"]
    index = packed(fragdex.index(data))
    client.post(f"{API}/isobmff_files/{file}/index/upload", content=index)
    answer = client.post(f"{API}/isobmff_files/{file}/transcribe")
    assert answer.status_code == 409
    assert "missing" in answer.json()["detail"]


def test_asking_twice_for_a_file_is_asking_once(client, film):
    at = f"{API}/isobmff_files/{film}"
    first = client.post(f"{at}/transcribe", json={})
    second = client.post(f"{API}/files/{film}/transcribe")
    assert second.status_code == 200
    assert second.json() == {"id": first.json()["id"], "file_id": film, "track_id": 2}
    # what is made is told of while there is nothing better
    transcription = client.get(f"{at}/transcription").json()
    assert transcription["work_slice_ms"] == 30_000
    assert transcription["isobmff_track"]["duration_ms"] > 0
    assert transcription == client.get(f"{API}/files/{film}/transcription").json()
    client.post(f"{AT}/{first.json()['id']}/cancel")
    third = client.post(f"{at}/transcribe", json={})
    assert third.status_code in (200, 201)
    assert third.json()["id"] != first.json()["id"]


def test_what_is_complete_is_given_again_and_what_differs_is_made(server, client, film):
    """By engine and language, where they are requested; and a failed one is not an answer."""
    at = f"{API}/files/{film}"

    def ended(id, **values):
        with server.context.database.write() as connection:
            row = tables.transcriptions
            connection.execute(row.update().where(row.c.id == id).values(**values))

    def asked(**choice):
        answer = client.post(f"{at}/transcribe", json=choice)
        return answer.status_code, answer.json()["id"]

    for running in client.get(AT).json()["transcriptions"]:
        client.post(f"{AT}/{running['id']}/cancel")
    status, first = asked()
    assert status == 201
    assert client.get(f"{at}/transcription").json()["status"] == "pending"
    assert asked(engine=default_engine()) == (200, first)
    status, other = asked(engine="pocketsphinx")
    assert (status, other != first) == (201, True)
    status, english = asked(language="en")
    assert (status, english not in (first, other)) == (201, True)
    assert asked(language="EN") == (200, english)
    assert asked(language="en", engine="pocketsphinx")[0] == 201
    for id in {one["id"] for one in client.get(AT).json()["transcriptions"]} - {other}:
        client.post(f"{AT}/{id}/cancel")
    ended(other, status="complete", completed_at=instant())
    assert asked() == (200, other)
    assert asked(engine="pocketsphinx") == (200, other)
    told = client.get(f"{at}/transcription").json()
    assert (told["id"], told["status"], told["engine"]) == (other, "complete", "pocketsphinx")
    assert told["created_at"] <= told["completed_at"]
    assert told["failed_at"] is None
    client.delete(f"{AT}/{other}")
    told = client.get(f"{at}/transcription").json()
    assert (told["status"], told["problem"]["detail"]) == (
        "failed",
        "the transcription was cancelled",
    )
    assert asked()[0] == 201


def test_the_same_idempotency_key_is_one_transcription(client, sound):
    key = {"Idempotency-Key": str(uuid.uuid4())}
    body = {"file_id": sound, "track_id": 1}
    first, second = (client.post(AT, json=body, headers=key) for _ in range(2))
    assert first.json() == second.json()
    other = client.post(AT, json={**body, "work_slice_ms": 5000}, headers=key)
    assert other.status_code == 422
    # without one, every request makes one
    assert client.post(AT, json=body).json()["id"] != first.json()["id"]


def test_lists_show_the_newest_first_and_one_status(client, sound):
    ids = [client.post(AT, json={"file_id": sound}).json()["id"] for _ in range(3)]
    client.post(f"{AT}/{ids[0]}/cancel")
    page = client.get(AT, params={"limit": 2}).json()
    assert [one["id"] for one in page["transcriptions"]] == [ids[2], ids[1]]
    page = client.get(AT, params={"limit": 1, "cursor": page["next_cursor"]}).json()
    assert page["transcriptions"][0]["id"] == ids[0]
    failed = client.get(AT, params={"status": "failed"}).json()["transcriptions"]
    assert ids[0] in [one["id"] for one in failed]
    assert {one["status"] for one in failed} == {"failed"}
    assert client.get(AT, params={"status": "done"}).status_code == 422


def test_a_cancelled_transcription_has_failed(client, sound):
    id = client.post(AT, json={"file_id": sound}).json()["id"]
    for _ in range(2):
        answer = client.post(f"{AT}/{id}/cancel")
        assert answer.status_code == 200
        record = answer.json()
        assert record["status"] == "failed"
        assert "cancelled" in record["problem"]["detail"]
    events = events_of(client, f"/transcriptions/{id}/progress")
    assert events == [("size", {"size": 0}), ("error", record["problem"])]
    assert client.get(f"{AT}/{id}.vtt").status_code == 409


def test_deleting(client, sound):
    id = client.post(AT, json={"file_id": sound}).json()["id"]
    assert client.delete(f"{AT}/{id}").status_code == 204
    for answer in (client.get(f"{AT}/{id}"), client.delete(f"{AT}/{id}")):
        assert answer.status_code == 404
    # with its file
    file = sound_file(client, fixture_bytes("frag-default-base.mp4", salt=uuid.uuid4()))
    id = client.post(AT, json={"file_id": file}).json()["id"]
    assert client.delete(f"{API}/isobmff_files/{file}").status_code == 204
    assert client.get(f"{AT}/{id}").status_code == 404


@pytest.mark.parametrize("n", ["NaN", "-1", "1.5", "undefined", "٣", "9" * 30])
def test_what_is_no_slice_is_a_plain_404(client, sound, n):
    id = client.post(AT, json={"file_id": sound}).json()["id"]
    answer = client.get(f"{AT}/{id}/fragments/{n}")
    assert answer.status_code == 404
    assert client.get(f"{AT}/undefined/fragments/{n}").status_code == 404
    assert client.get(f"{AT}/undefined").status_code == 404
