"""Videos are processed by themselves once their last byte is in."""

import random

from service.serving import API
from service.working import events_of, fixture_bytes, uploaded

FILES = f"{API}/files"


def test_a_video_is_processed_by_itself(working):
    data = fixture_bytes("faststart.mp4", salt="by itself")
    record = uploaded(working.client, data, "a.mp4", "files", type="video")
    assert record["status"] == "processing"
    events = events_of(working.client, f"/files/{record['id']}/progress")
    assert {name for name, _ in events} == {"progress", "complete"}
    progress = [data["progress"] for name, data in events if name == "progress"]
    assert progress == sorted(progress)
    ready = working.client.get(f"{FILES}/{record['id']}").json()
    assert (ready["status"], ready["width"], ready["height"]) == ("ready", 64, 48)
    assert [track["track_id"] for track in ready["tracks"]] == [-1, 1, 2]
    place = f"{FILES}/{record['id']}"
    for track in ready["tracks"]:
        got = working.client.get(f"{place}/tracks/{track['track_id']}")
        assert len(got.content) == track["byte_size"]
    assert set(working.client.get(f"{place}/index").json()) == {"-1", "1", "2"}


def test_a_video_that_cannot_be_processed_has_failed_and_may_be_sent_again(working):
    noise = random.Random(3).randbytes(10_000)
    record = uploaded(working.client, noise, "a.mp4", "files", type="video")
    events = events_of(working.client, f"/files/{record['id']}/progress")
    assert events[-1][0] == "error"
    failed = working.client.get(f"{FILES}/{record['id']}").json()
    assert failed["status"] == "failed"
    assert failed["problem"] == events[-1][1]
    assert "not a media file" in failed["problem"]["detail"]
    body = {key: record[key] for key in ("filename", "type", "byte_size", "md5")}
    again = working.client.post(FILES, json=body)
    assert (again.status_code, again.json()["status"]) == (200, "processing")


def test_deleting_a_video_ends_its_processing(working):
    data = fixture_bytes("moov-last.mp4", salt="deleted as a file")
    record = uploaded(working.client, data, "a.mp4", "files", type="video")
    assert working.client.delete(f"{FILES}/{record['id']}").status_code == 204
    assert working.client.get(f"{FILES}/{record['id']}").status_code == 404
    assert working.client.get(f"{API}/isobmff_files/{record['id']}").status_code == 404
