"""What is stored of an upload: its own bytes, its tracks, or both; and what a client gets of each.

A client never sees the difference: what is composed of the upload has the bytes that would be
stored.
"""

import hashlib
import os
import random
import signal
import subprocess
import sys

import pytest
import sqlalchemy as sa

from fragdex.errors import Conflict
from fragdex.service.isobmff import operations as isobmff
from fragdex.service.records import blobs, tables
from fragdex.service.records.tenant_limits import stored_bytes
from fragdex.service.store.composing import is_composed
from fragdex.service.unprocessed import operations, worker
from service.records.test_blobs import let_all_be_due
from service.serving import API
from service.unprocessed import worker_program
from service.unprocessed.test_worker import FIXTURES, job_of, order, upload
from service.working import JSON, events_of, fixture_bytes, uploaded, working

FILMS = (
    "faststart.mp4", "frag-every-frame.mp4", "frag-two-languages.mp4", "frag-vp9-flac.mp4",
    "all-intra.mp4", "quicktime.mov",
)  # fmt: skip


@pytest.fixture(scope="module")
def tracks_alone(tmp_path_factory):
    """A service that stores tracks and no uploads."""
    folder = tmp_path_factory.mktemp("tracks")
    (folder / "fragdex.toml").write_text('keep = "tracks"')
    with working(folder, "--config", str(folder / "fragdex.toml")) as served:
        yield served


def made_of(client, data):
    """The ISOBMFF file of a film."""
    record = uploaded(client, data)
    process = client.post(f"{API}/unprocessed_files/{record['id']}/process").json()
    assert events_of(client, f"/process_isobmff/{process['id']}/progress")[-1] == ("complete", {})
    id_ = client.get(f"{API}/process_isobmff/{process['id']}").json()["isobmff_file_id"]
    return client.get(f"{API}/isobmff_files/{id_}", headers=JSON).json()


def test_every_byte_that_a_client_gets_is_the_same(working, tracks_alone):
    rng = random.Random(46)
    composed = 0
    for name in FILMS:
        data = fixture_bytes(name, salt="keep")
        one, other = (made_of(served.client, data) for served in (working, tracks_alone))
        for track, twin in zip(one["tracks"], other["tracks"], strict=True):
            same = ("track_id", "type", "codec_name", "byte_size", "md5", "duration_ms")
            assert {n: track[n] for n in same} == {n: twin[n] for n in same}
            places = [
                f"{API}/isobmff_tracks/{file['id']}/{track['track_id']}" for file in (one, other)
            ]
            size, composed = track["byte_size"], composed + is_composed_at(working, one, track)
            start = rng.randrange(size)
            for headers in (
                {},
                {"Range": f"bytes={start}-{rng.randrange(start, size)}"},
                {"Range": "bytes=-99"},
                {"Range": "bytes=0-9,700-1500"},
            ):
                answers = [
                    served.client.get(place, headers=headers)
                    for served, place in zip((working, tracks_alone), places, strict=True)
                ]
                kinds = [answer.headers["Content-Type"].partition(";")[0] for answer in answers]
                assert answers[0].status_code == answers[1].status_code == (206 if headers else 200)
                assert kinds[0] == kinds[1]
                assert answers[0].headers["ETag"] == answers[1].headers["ETag"]
                if "," not in headers.get("Range", ""):  # parts have a boundary of chance
                    assert answers[0].content == answers[1].content
                if not headers:
                    digest = hashlib.md5(answers[0].content).hexdigest()
                    assert digest == track["md5"].replace("-", "")
    assert composed >= 8


def is_composed_at(served, file, track):
    with served.context.database.read() as connection:
        name = f"{file['id']}/{track['track_id']}"
        return is_composed(blobs.used_by(connection, served.tenant, "tracks", name).store_key)


def test_all_that_is_made_of_tracks_is_the_same(working, tracks_alone):
    data = fixture_bytes("faststart.mp4", salt="views")
    files = [(served, made_of(served.client, data)["id"]) for served in (working, tracks_alone)]

    def both(below):
        answers = [served.client.get(f"{API}/isobmff_files/{id_}/{below}") for served, id_ in files]
        assert [answer.status_code for answer in answers] == [200, 200], answers[0].text
        texts = [
            answer.content.replace(id_.encode(), b"ID")
            for answer, (_, id_) in zip(answers, files, strict=True)
        ]
        assert texts[0] == texts[1]
        return texts[0].decode("latin-1")

    both("index")
    both("dash/manifest.mpd")
    for name in [line for line in both("hls/master.m3u8").split() if line.endswith(".m3u8")]:
        for line in both(f"hls/{name}").splitlines():
            if line and not line.startswith("#"):
                both(f"hls/{line}")
    both("clip.mp4?start_ms=500&end_ms=1500")
    both("thumbnail.jpg?time_ms=1000")
    both("peaks.json")


def keys_of(context, tenant):
    """Families of uses, and whether what they use is composed; and all bytes that are stored."""
    row, use = tables.blobs.c, tables.blob_uses.c
    query = sa.select(use.family, row.store_key).join(
        tables.blobs, (use.tenant_id == row.tenant_id) & (use.sha256 == row.sha256)
    )
    with context.database.read() as connection:
        uses = connection.execute(query).all()
        stored_size = stored_bytes(connection, tenant)
        keys = connection.scalars(sa.select(row.store_key)).all()
    assert stored_size == sum(map(context.store.plain.size, keys))
    return sorted((family, is_composed(key)) for family, key in uses), stored_size


def test_each_setting_stores_what_it_says(context, tenant):
    data = (FIXTURES / "faststart.mp4").read_bytes()
    file_id = upload(context, tenant, data)
    sizes = {}
    for keep, wanted in {
        "both": [("tracks", False)] * 3 + [("video", False)],
        "original": [("tracks", False), ("tracks", True), ("tracks", True), ("video", False)],
        "tracks": [("tracks", False)] * 3,
    }.items():
        url, data_folder = context.settings.database_url, context.settings.data
        other = worker_program.open_context(url, data_folder, keep=keep)
        worker._run(other, job_of(order(context, tenant, file_id)))
        uses, sizes[keep] = keys_of(context, tenant)
        assert uses == wanted
        other.database.close()
        if keep != "tracks":
            isobmff.delete_file(context, tenant, file_id)
    assert sizes["original"] < sizes["both"]

    # Only tracks are here: the upload is known as long as they are, and sent again afterwards.
    md5, name_and_size = hashlib.md5(data).digest(), ("a.mp4", len(data))
    assert operations.announce(context, tenant, *name_and_size, md5)[0].id == file_id
    isobmff.delete_file(context, tenant, file_id)
    with pytest.raises(Conflict, match="only the tracks"):
        operations.process_file(context, tenant, file_id)
    record, is_new = operations.announce(context, tenant, *name_and_size, md5)
    assert is_new
    assert not record.complete
    assert operations.announce(context, tenant, *name_and_size, md5)[0].id == record.id


def test_tracks_outlive_their_upload_and_take_it_with_them(context, tenant):
    file_id = upload(context, tenant, (FIXTURES / "faststart.mp4").read_bytes())
    worker._run(context, job_of(order(context, tenant, file_id)))
    operations.delete_file(context, tenant, file_id)
    uses, _ = keys_of(context, tenant)
    assert uses == [("tracks", False), ("tracks", True), ("tracks", True)]
    isobmff.delete_file(context, tenant, file_id)
    assert keys_of(context, tenant) == ([], 0)
    with context.database.read() as connection:
        assert connection.execute(sa.select(tables.blobs)).all() == []


KILLED = """
import os, signal, sys
from pathlib import Path
from service.unprocessed import worker_program
from service.unprocessed.test_worker import job_of
from fragdex.service.unprocessed import worker

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

worker.publish = killed
worker._run(worker_program.open_context(sys.argv[1], Path(sys.argv[2])), job_of(sys.argv[3]))
"""


# what is stored is the same beside either database
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_kill_9_before_its_tracks_are_seen_leaves_nothing_and_loses_nothing(context, tenant):
    file_id = upload(context, tenant, (FIXTURES / "faststart.mp4").read_bytes())
    process = order(context, tenant, file_id)
    settings = context.settings
    command = [sys.executable, "-c", KILLED, settings.database_url, settings.data, process]
    path = os.pathsep.join([str(FIXTURES.parent / "tests"), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(list(context.store.keys("composed/"))) == 2
    worker._run(context, job_of(process))
    uses, stored_size = keys_of(context, tenant)
    for _ in range(2):
        let_all_be_due(context.database)
        blobs.sweep(context.database, context.store)
    assert len(list(context.store.keys("composed/"))) == 2  # of the second run
    assert keys_of(context, tenant) == (uses, stored_size)
    operations.delete_file(context, tenant, file_id)
    isobmff.delete_file(context, tenant, file_id)
    for _ in range(2):
        let_all_be_due(context.database)
        blobs.sweep(context.database, context.store)
    assert list(context.store.keys()) == []
