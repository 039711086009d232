"""A video that was published as it came is ready at once, and gets its scrub track afterwards."""

import time

import pytest
import sqlalchemy as sa

from fragdex.service.jobs.work import Job
from fragdex.service.records import tables
from fragdex.service.unprocessed import worker
from fragdex.transcode.tracks import SCRUB_TRACK
from service.serving import API
from service.working import events_of, fixture_bytes, uploaded

VIDEO = "frag-global-sidx-video.mp4"
PATIENCE = 60


def published(served, name, salt):
    """A file that needs no processing; its process."""
    record = uploaded(served.client, fixture_bytes(name, salt=f"{salt} {served.url}"))
    process = served.client.post(f"{API}/unprocessed_files/{record['id']}/process").json()
    assert process["status"] == "complete"
    return process


def tracks(client, process):
    record = client.get(f"{API}/isobmff_files/{process['isobmff_file_id']}").json()
    return {track["track_id"]: track for track in record["tracks"]}


def run(served, process):
    job = Job(f"scrub-{process['id']}", "scrub", process["id"], {}, 1, lambda _: True, None)
    (scrub,) = (one for one in worker.WORK if one.name == worker.SCRUB)
    scrub.run(served.context, job)
    work = served.context.settings.data / "work"
    assert not work.exists() or not list(work.iterdir())


def test_the_scrub_track_follows(working):
    client = working.client
    data = fixture_bytes(VIDEO, salt="scrubbed")
    record = uploaded(client, data, "film.mp4", "files", type="video")
    at_once = events_of(client, f"/files/{record['id']}/progress")
    assert at_once == [("progress", {"progress": 1}), ("complete", {})]
    place = f"{API}/files/{record['id']}/index"
    first = client.get(place)
    assert "1" in first.json()
    deadline = time.monotonic() + PATIENCE
    while "-1" not in (index := client.get(place)).json():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert index.json()["1"] == first.json()["1"], "the film stays what it was"
    assert index.json()["-1"]["width"] <= 320
    if "-1" not in first.json():
        assert index.headers["etag"] != first.headers["etag"]
    scrub = client.get(f"{API}/files/{record['id']}/tracks/-1").content
    init = index.json()["-1"]["initSegment"]
    assert scrub[init["offset"] + 4 :][:4] == b"ftyp"
    assert client.get(f"{API}/files/{record['id']}/tracks/1").content == data


def test_sound_has_none(server):
    process = published(server, "frag-audio.m4a", "sound")
    assert server.context.jobs.status(f"scrub-{process['id']}") is None


def test_the_job_waits_until_a_worker_has_time(server):
    process = published(server, VIDEO, "waits")
    assert server.context.jobs.status(f"scrub-{process['id']}") is not None
    assert set(tracks(server.client, process)) == {1}
    run(server, process)
    both_tracks = tracks(server.client, process)
    assert set(both_tracks) == {1, SCRUB_TRACK}
    assert both_tracks[SCRUB_TRACK]["complete"]
    run(server, process)  # once more changes nothing
    assert tracks(server.client, process) == both_tracks


def test_the_one_that_a_client_sent_stays(server):
    process = published(server, VIDEO, "own")
    new = {
        "file_id": process["isobmff_file_id"], "track_id": SCRUB_TRACK, "type": "video",
        "byte_size": 5,
    }  # fmt: skip
    assert server.client.post(f"{API}/isobmff_tracks", json=new).status_code == 201
    run(server, process)
    assert tracks(server.client, process)[SCRUB_TRACK]["byte_size"] == 5


@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_file_that_is_deleted_gets_none(server, when, monkeypatch):
    process = published(server, VIDEO, f"deleted {when}")
    place = f"{API}/isobmff_files/{process['isobmff_file_id']}"

    def delete(*args):
        assert server.client.delete(place).status_code == 204
        return real(*args)

    real = worker.keep if when == "meanwhile" else worker._video
    monkeypatch.setattr(worker, real.__name__, delete)
    run(server, process)
    assert server.client.get(place).status_code == 404
    left = sa.select(tables.isobmff_tracks.c.track_id).where(
        tables.isobmff_tracks.c.file_id == process["isobmff_file_id"]
    )
    with server.context.database.read() as connection:
        assert connection.scalars(left).all() == []
