"""Speech becomes words over HTTP: slice by slice, by itself or in a file of many tracks."""

import math
import time
import uuid

import pytest

import fragdex
from fragdex.speech.engines import EngineChoice, default_engine
from service.descendants import alive, descendants
from service.serving import API
from service.transcriptions.working import (
    SPEECH,
    TRUTH,
    by_itself,
    cue_times,
    first_seconds,
    in_ms,
    packed,
    sound_file,
)
from service.working import fixture_bytes, md5_of, uploaded

FLAC = SPEECH / "pauses-flac.mp4"
EACH_TEN_SECONDS = "pocketsphinx"
"""The engine that hears each ten seconds by themselves: more slices than one."""


@pytest.fixture(scope="module")
def heard(transcriber, spoken):
    """A transcription in slices of 5 s, complete."""
    id = transcriber.begin(spoken, work_slice_ms=5000, engine=EACH_TEN_SECONDS)
    seen = transcriber.until(id, lambda record: record["slices"] is not None)
    assert seen["status"] in ("transcribing", "complete")
    record = transcriber.ended(id)
    assert record["status"] == "complete", record
    return record


def test_slices_hear_what_the_whole_hears(transcriber, heard):
    assert transcriber.words(heard["id"]) == by_itself(FLAC, choice=EngineChoice(EACH_TEN_SECONDS))


def test_the_default_engine_hears_sentences(transcriber, spoken):
    record = transcriber.ended(transcriber.begin(spoken))
    assert (record["status"], record["engine"]) == ("complete", default_engine())
    assert transcriber.words(record["id"]) == by_itself(FLAC)
    document = transcriber.document(record["id"])
    assert all(0 <= word["time_confidence"] <= 1 for word in document["word_segments"])


def test_words_of_another_language_are_doubted(transcriber):
    """The default engine writes English words for German and Spanish."""
    if default_engine() != "moonshine":
        pytest.skip("moonshine is not installed")
    foreign = sound_file(transcriber.client, (SPEECH / "foreign-aac.mp4").read_bytes())
    ended = transcriber.ended(transcriber.begin(foreign))
    assert (ended["status"], ended["language"]) == ("complete", None)
    document = transcriber.document(ended["id"])
    assert {one["reason"] for one in document["doubted"]} == {"this does not sound like English"}
    path = transcriber.path(f"/{ended['id']}.vtt")
    cues = [
        cue_times(transcriber.client.get(path, params=params).text)
        for params in ({}, {"leave_out_doubted": "true"})
    ]
    assert len(cues[1]) < len(cues[0])
    # whoever says which language it is knows it better
    asked = transcriber.ended(transcriber.begin(foreign, language="en"))
    assert asked["language"] == "en"


def test_the_record_tells_how_it_was_heard(heard):
    assert (heard["engine"], heard["language"]) == (EACH_TEN_SECONDS, "en")
    assert heard["engine_version"]
    assert heard["model"]
    # sound is parted each ten seconds: of shorter slices every other one has nothing to hear
    assert heard["slices"] == heard["slices_done"] == 2
    assert heard["words"] > 25
    assert heard["missing"] == []
    assert {"wait", "whole", "plan", "slices", "hear"} <= heard["seconds"].keys()


def test_a_word_belongs_to_the_slice_that_holds_its_middle(transcriber, heard):
    slices = math.ceil(heard["isobmff_track"]["duration_ms"] / heard["work_slice_ms"])
    words = []
    for n in range(slices):
        answer = transcriber.fragment(heard["id"], n)
        assert answer.status_code == 200
        part = in_ms(answer.json())
        assert all(5000 * n <= (start + end) / 2 < 5000 * (n + 1) for _, start, end in part)
        spoken = " ".join(segment["text"] for segment in answer.json()["segments"])
        assert spoken.split() == [text for text, *_ in part]
        words += part
    assert words == transcriber.words(heard["id"])
    assert transcriber.fragment(heard["id"], slices).status_code == 404


def test_captions_come_in_three_forms(transcriber, heard):
    at = transcriber.path(f"/{heard['id']}")
    text = transcriber.client.get(f"{at}.vtt")
    assert text.headers["content-type"].startswith("text/vtt")
    assert text.text.startswith("WEBVTT\n")
    times = cue_times(text.text)
    words = transcriber.words(heard["id"])
    assert times[0][0] == words[0][1]
    assert all(start < end for start, end in times)
    again = transcriber.client.get(f"{at}.vtt", headers={"If-None-Match": text.headers["etag"]})
    assert again.status_code == 304
    head = transcriber.client.head(f"{at}.srt")
    assert head.status_code == 200
    assert head.headers["content-type"].startswith("application/x-subrip")
    assert transcriber.client.get(f"{at}.srt").text.startswith("1\n00:00:0")
    narrow = transcriber.client.get(f"{at}.vtt?line_length=12&max_lines=1").text
    lines = [line for line in narrow.splitlines()[2:] if line and "-->" not in line]
    assert max(map(len, lines)) <= 12
    assert " ".join(lines) == " ".join(text for text, *_ in words)
    for wrong in ("line_length=9", "min_duration_ms=9000&max_duration_ms=8000"):
        assert transcriber.client.get(f"{at}.vtt?{wrong}").status_code == 422
    document = transcriber.document(heard["id"])
    assert document["language"] == "en"
    assert document["text"].split() == [text for text, *_ in words]


def test_a_copy_with_captions_is_a_file_like_any_other(transcriber, heard):
    client, at = transcriber.client, transcriber.path(f"/{heard['id']}")
    assert client.get(f"{at}.mp4").status_code == 404
    for _ in range(2):  # asking again is asking once
        assert client.post(f"{at}/copy").status_code == 202
    record = transcriber.until(
        heard["id"], lambda one: one["copy_with_captions"]["status"] != "pending"
    )
    assert record["copy_with_captions"]["status"] == "complete", record
    copy = client.get(f"{at}.mp4")
    assert copy.headers["content-type"] == "video/mp4"
    index = fragdex.index(copy.content)
    assert [track.kind for track in index.tracks] == ["audio", "text"]
    part = client.get(f"{at}.mp4", headers={"Range": "bytes=4-7"})
    assert (part.status_code, part.content) == (206, b"ftyp")
    file = record["copy_with_captions"]["isobmff_file_id"]
    known = client.get(transcriber.path(f"/{file}", "/isobmff_files")).json()
    assert [track["type"] for track in known["tracks"]] == ["audio", "text"]
    assert known["byte_size"] == len(copy.content)
    where = {"track": 1, "time_ms": 5000}
    seek = transcriber.path(f"/{file}/seek", "/isobmff_files")
    assert client.get(seek, params=where).status_code == 200
    # deleted like any other, and made again
    assert client.delete(transcriber.path(f"/{file}", "/isobmff_files")).status_code == 204
    assert client.get(f"{at}.mp4").status_code == 404
    client.post(f"{at}/copy")
    transcriber.until(heard["id"], lambda one: one["copy_with_captions"]["status"] != "pending")
    assert client.get(f"{at}.mp4").content == copy.content


def test_the_newest_complete_one_is_the_files(transcriber, heard, spoken):
    at = transcriber.path(f"/{spoken}", "/isobmff_files")
    newer = transcriber.begin(spoken, engine=EACH_TEN_SECONDS)
    failed = transcriber.begin(spoken)
    transcriber.client.post(transcriber.path(f"/{failed}/cancel"))
    assert transcriber.ended(newer)["status"] == "complete"
    transcription = transcriber.client.get(f"{at}/transcription").json()
    assert transcription["id"] == newer
    assert transcription["status"] == "complete"
    assert transcription["work_slice_ms"] == 30_000
    assert transcription["isobmff_track"] == heard["isobmff_track"]
    assert transcriber.record(heard["id"])["status"] == "complete"
    assert transcriber.words(newer) == transcriber.words(heard["id"])


def test_a_file_that_came_as_it_is_and_begins_late(transcriber):
    """Its index was made as it came; nobody speaks in its first seconds."""
    data = (SPEECH / "late-opus.mp4").read_bytes()
    sent = uploaded(transcriber.client, data, "late.mp4", "files", type="video")
    at = transcriber.path(f"/{sent['id']}", "/files")
    transcriber.client.get(f"{at}/progress")  # to its end
    answer = transcriber.client.post(f"{at}/transcribe", json={"trackId": "1"})
    assert answer.status_code == 201, answer.text
    record = transcriber.ended(answer.json()["id"])
    assert record["status"] == "complete", record
    assert transcriber.words(record["id"])[0][1] >= 7000
    assert transcriber.words(record["id"]) == by_itself(SPEECH / "late-opus.mp4")
    truth = TRUTH["late-opus.mp4"]["words"]
    assert abs(transcriber.words(record["id"])[0][1] - truth[0][1]) < 400
    transcription = transcriber.client.get(f"{at}/transcription").json()
    assert transcription["id"] == record["id"]


def test_an_index_that_came_as_json_is_made_anew(transcriber):
    """It tells where bytes are, and not how they are decoded."""
    client, data = transcriber.client, FLAC.read_bytes() + b"\0\0\0\x08free"
    body = {"md5": md5_of(data), "filename": "whole.mp4"}
    file = client.post(f"{API}/isobmff_files", json=body).json()["id"]
    track = {"file_id": file, "track_id": 1, "type": "audio", "byte_size": len(data)}
    client.post(f"{API}/isobmff_tracks", json=track)
    client.post(f"{API}/isobmff_tracks/{file}/1/upload", content=data)
    index = fragdex.index(data).export("json")
    answer = client.post(f"{API}/isobmff_files/{file}/index/upload", content=index)
    assert answer.status_code == 201, answer.text
    record = transcriber.ended(transcriber.begin(file))
    assert record["status"] == "complete", record
    assert transcriber.words(record["id"]) == by_itself(FLAC)


def test_a_track_inside_of_the_file_itself(transcriber):
    """No track came as a file of its own: the bytes are those of the file."""
    client, data = transcriber.client, fixture_bytes("speech/pauses-flac.mp4", salt="inside")
    uploaded(client, data)
    body = {"md5": md5_of(data), "filename": "inside.mp4"}
    file = client.post(f"{API}/isobmff_files", json=body).json()["id"]
    index = packed(fragdex.index(data))
    client.post(f"{API}/isobmff_files/{file}/index/upload", content=index)
    assert client.get(f"{API}/isobmff_tracks", params={"file_id": file}).json() == {
        "isobmff_tracks": []
    }
    record = transcriber.ended(transcriber.begin(file))
    assert record["status"] == "complete", record
    assert transcriber.words(record["id"]) == by_itself(FLAC)


def test_a_deleted_file_is_heard_no_more(transcriber):
    data = first_seconds(SPEECH / "pauses-aac.mp4", 40)
    file = sound_file(transcriber.client, data)
    id = transcriber.begin(file, work_slice_ms=5000)
    transcriber.until(id, lambda record: record["slices_done"] > 0)
    at = transcriber.path(f"/{file}", "/isobmff_files")
    assert transcriber.client.delete(at).status_code == 204
    assert transcriber.client.get(transcriber.path(f"/{id}")).status_code == 404
    _rests(transcriber)


def test_what_cannot_be_heard_is_said_and_the_rest_is_kept(transcriber):
    """Bytes in the middle are lost."""
    data = bytearray((SPEECH / "pauses-flac.mp4").read_bytes())
    index = packed(fragdex.index(bytes(data)))
    track = fragdex.index(bytes(data)).tracks[0]
    span = fragdex.index(bytes(data)).span(4, 7, tracks=[track.id]).media[0]
    data[span.start : span.stop] = bytes(span.size)
    client = transcriber.client
    body = {"md5": md5_of(data), "filename": "damaged.mp4"}
    file = client.post(f"{API}/isobmff_files", json=body).json()["id"]
    new_track = {"file_id": file, "track_id": 1, "type": "audio", "byte_size": len(data)}
    client.post(f"{API}/isobmff_tracks", json=new_track)
    client.post(f"{API}/isobmff_tracks/{file}/1/upload", content=bytes(data))
    client.post(f"{API}/isobmff_files/{file}/index/upload", content=index)
    record = transcriber.ended(transcriber.begin(file, work_slice_ms=5000))
    assert record["status"] == "complete", record
    assert record["missing"]
    for gap in record["missing"]:
        assert 3000 < gap["start_ms"] < gap["end_ms"] < 8000
        assert gap["reason"]
    words = transcriber.words(record["id"])
    assert words[0][1] < 1000
    assert words[-1][1] > 8000
    assert transcriber.document(record["id"])["missing"]


def test_encrypted_sound_fails_with_the_reason(transcriber):
    data = fixture_bytes("frag-encrypted.mp4", salt=uuid.uuid4())
    file = sound_file(transcriber.client, data)
    answer = transcriber.client.post(transcriber.path(f"/{file}/transcribe", "/isobmff_files"))
    assert answer.status_code == 201, answer.text
    record = transcriber.ended(answer.json()["id"])
    assert record["status"] == "failed"
    assert record["problem"]["status"] == 422
    assert "encrypted" in record["problem"]["detail"]


def test_an_engine_that_is_missing_says_what_to_do(transcriber, spoken):
    record = transcriber.ended(transcriber.begin(spoken, engine="sherpa-onnx"))
    assert record["status"] == "failed"
    assert record["problem"]["type"].endswith("#engine-unavailable")
    assert record["problem"]["detail"]
    assert record["engine"] == "sherpa-onnx"


def test_nothing_of_a_cancelled_one_runs_on(transcriber):
    file = sound_file(transcriber.client, (SPEECH / "pauses-aac.mp4").read_bytes())
    id = transcriber.begin(file, work_slice_ms=5000)
    transcriber.until(id, lambda record: record["slices_done"] > 0)
    record = transcriber.client.post(transcriber.path(f"/{id}/cancel")).json()
    assert record["status"] == "failed"
    done = record["slices_done"]
    assert done < record["slices"]
    # what was heard stays
    statuses = [transcriber.fragment(id, n).status_code for n in range(record["slices"])]
    assert set(statuses) <= {200, 404}
    _rests(transcriber)
    assert transcriber.record(id)["slices_done"] <= done + 2


def _rests(transcriber):
    """Waits until the processes that hear do nothing any more."""
    busy = list(descendants(transcriber.served.server.pid))
    spent = sum(map(_cpu, busy))
    deadline = time.monotonic() + 60
    while True:
        time.sleep(1)
        now = sum(map(_cpu, alive(busy)))
        if now <= spent:
            return
        spent = now
        assert time.monotonic() < deadline


def _cpu(pid):
    """Ticks of the processor that a process has used."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])
