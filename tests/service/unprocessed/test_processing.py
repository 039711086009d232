"""Processing by a worker, from the last byte to tracks that players append; followed by events."""

import io
import random
import wave
from concurrent.futures import ThreadPoolExecutor

import fragdex
from service.serving import API
from service.working import events_of, fixture_bytes, uploaded

FILES = f"{API}/unprocessed_files"


def processed(client, data, name="a.mp4"):
    """The process of a file that is sent, after its end, and its events."""
    record = uploaded(client, data, name)
    process = client.post(f"{FILES}/{record['id']}/process").json()
    events = events_of(client, f"/process_isobmff/{process['id']}/progress")
    return client.get(f"{API}/process_isobmff/{process['id']}").json(), events


def sound(seconds=2):
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(bytes(range(256)) * (125 * seconds))
    return out.getvalue()


def test_several_tracks_are_parted_by_copying(working):
    data = fixture_bytes("frag-cmaf.mp4", salt="parted")
    process, events = processed(working.client, data, "zwei.mp4")
    assert process["failed_at"] is None
    record = working.client.get(f"{API}/isobmff_files/{process['isobmff_file_id']}").json()
    assert record["id"] == process["unprocessed_file_id"]
    assert record["filename"] == "zwei.mp4"
    tracks = {track["track_id"]: track for track in record["tracks"]}
    assert {id_: track["codec_name"] for id_, track in tracks.items()} == {
        -1: "h264", 1: "h264", 2: "aac",
    }  # fmt: skip
    assert tracks[1]["probe_info"]["copied"]
    assert tracks[2]["probe_info"]["copied"]
    source = fragdex.index(data, exact=True)
    index = working.client.get(f"{API}/isobmff_files/{record['id']}/index").json()
    assert set(index) == {"-1", "1", "2"}
    for track in (1, 2):
        assert index[str(track)]["sample_count"] == source.track(track).sample_count
        got = working.client.get(f"{API}/isobmff_tracks/{record['id']}/{track}").content
        assert len(fragdex.index(got).tracks) == 1
    names = [name for name, _ in events]
    assert set(names) == {"progress", "complete"}
    assert names[-1] == "complete"
    progress = [data["progress"] for name, data in events if name == "progress"]
    assert progress == sorted(progress)
    assert progress[-1] == 1


def test_sound_that_browsers_do_not_play_becomes_aac(working):
    process, _ = processed(working.client, sound(), "ton.wav")
    record = working.client.get(f"{API}/isobmff_files/{process['isobmff_file_id']}").json()
    (track,) = record["tracks"]
    assert (track["type"], track["codec_name"]) == ("audio", "aac")
    assert abs(track["duration_ms"] - 2000) < 100


def test_what_is_no_media_fails_with_the_reason_and_may_be_tried_again(working):
    noise = random.Random(7).randbytes(20_000)
    process, events = processed(working.client, noise, "noise.mp4")
    assert process["failed_at"] is not None
    assert process["completed_at"] is process["isobmff_file_id"] is None
    assert "not a media file" in process["problem"]["detail"]
    assert process["problem"]["status"] == 422
    assert events[-1] == ("error", process["problem"])
    again = working.client.post(f"{FILES}/{process['unprocessed_file_id']}/process")
    assert again.status_code == 201
    assert again.json()["id"] != process["id"]
    path = f"/process_isobmff/{again.json()['id']}/progress"
    assert events_of(working.client, path)[-1][0] == "error"


def test_everybody_sees_the_same_end_whenever_they_connect(working):
    record = uploaded(working.client, fixture_bytes("faststart.mp4", salt="many"))
    process = working.client.post(f"{FILES}/{record['id']}/process").json()
    path = f"/process_isobmff/{process['id']}/progress"
    with ThreadPoolExecutor(4) as pool:
        streams = list(pool.map(lambda _: events_of(working.client, path), range(4)))
    streams.append(events_of(working.client, path))
    for events in streams:
        assert events[0][0] == "progress"
        assert events[-2:] == [("progress", {"progress": 1}), ("complete", {})]
    assert streams[-1] == events[-2:]


def test_deleting_a_file_ends_its_processing(working):
    record = uploaded(working.client, fixture_bytes("moov-last.mp4", salt="deleted"))
    process = working.client.post(f"{FILES}/{record['id']}/process").json()
    assert working.client.delete(f"{FILES}/{record['id']}").status_code == 204
    assert working.client.get(f"{API}/process_isobmff/{process['id']}").status_code == 404
    assert working.client.get(f"{API}/isobmff_files/md5/{record['md5']}").status_code == 404


def test_a_process_that_is_deleted_makes_nothing(working):
    record = uploaded(working.client, fixture_bytes("moov-last.mp4", salt="forgotten"))
    process = working.client.post(f"{FILES}/{record['id']}/process").json()
    place = f"{API}/process_isobmff/{process['id']}"
    assert working.stranger.delete(place).status_code == 404
    assert working.client.delete(place).status_code == 204
    assert working.client.get(place).status_code == 404
    next_one = working.client.post(f"{FILES}/{record['id']}/process")
    assert next_one.status_code == 201
    assert next_one.json()["id"] != process["id"]


def test_a_stream_of_a_process_that_goes_away_ends(working):
    record = uploaded(working.client, fixture_bytes("faststart.mp4", salt="gone"))
    process = working.client.post(f"{FILES}/{record['id']}/process").json()
    place = f"{API}/process_isobmff/{process['id']}"
    with working.client.stream("GET", f"{place}/progress") as answer:
        pieces = answer.iter_raw()
        text = next(pieces)
        assert working.client.delete(f"{FILES}/{record['id']}").status_code == 204
        text += b"".join(pieces)
    last = text.decode().split("\n\n")[-2]
    assert last.startswith(("id: end\nevent: error\n", "id: end\nevent: complete\n"))
