"""What is deleted, expires or is given up leaves no byte behind, in every family."""

import hashlib
import json
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from processes import MIB, announced_track, emptied, md5_of, next_byte, noise, span, until

from fragdex.service import app
from fragdex.service.records import blobs, tables
from fragdex.service.records.identifiers import instant, new_id, rfc3339
from fragdex.service.store.disk import DiskStore
from service.serving import API, serving
from service.working import announced, fixture_bytes, uploaded

pytestmark = pytest.mark.slow

SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="2"/>'
VTT = b"WEBVTT\n\n00:01.000 --> 00:02.000\n%d\n"
JSON = {"Accept": "application/json"}


def one_of_each(client, salt, **more):
    """Files of every type, through the one family."""
    for data, name, type_ in (
        (SVG % (salt + 1), "a.svg", "image"),
        (VTT % salt, "a.vtt", "caption"),
        (fixture_bytes("frag-audio.m4a", salt), "a.m4a", "video"),
    ):
        yield uploaded(client, data, name, "files", type=type_, **more)


def with_index(client):
    """An ISOBMFF file whose index a client sent, with a track beside it; its id."""
    body = {"md5": md5_of(b"told"), "filename": "told.mp4"}
    file = client.post(f"{API}/isobmff_files", json=body).json()
    segments = [{"cts": 0, "dts": 0, "duration": 10, "offset": 100, "size": 50}]
    track = {
        "track": 1, "type": "audio", "channel_count": 2, "sample_rate": 48000, "sample_size": 16,
        "timescale": 10, "sample_count": 10, "codec": "mp4a.40.2", "duration": 10,
        "initSegment": {"offset": 0, "size": 100}, "segments": segments,
    }  # fmt: skip
    index = json.dumps({"1": track, "mine": "kept"})
    sent = client.post(f"{API}/isobmff_files/{file['id']}/index/upload", content=index)
    assert sent.status_code in (200, 201), sent.text
    return file["id"]


def test_what_is_deleted_stays_for_the_grace_that_is_set(tmp_path):
    with serving(tmp_path, deletion_grace_seconds=0) as served:
        image = uploaded(served.client, SVG % 1, "a.svg", "image_files")["id"]
        blobs.sweep(served.context.database, served.context.store)
        assert len(list(served.context.store.keys())) == 1
        served.client.delete(f"{API}/image_files/{image}")
        blobs.sweep(served.context.database, served.context.store)
        assert list(served.context.store.keys()) == []


def test_a_disk_that_becomes_full_ends_the_grace(tmp_path, monkeypatch):
    little = []
    monkeypatch.setattr(app, "disks_nearly_full", lambda _: little)
    monkeypatch.setattr(app, "HOUSEKEEPING_SECONDS", 3600)
    monkeypatch.setattr(app, "HURRIED_SECONDS", 0.05)
    with serving(tmp_path) as served:
        image = uploaded(served.client, SVG % 1, "a.svg", "image_files")["id"]
        served.client.delete(f"{API}/image_files/{image}")
        blobs.sweep(served.context.database, served.context.store)
        assert len(list(served.context.store.keys())) == 1
        little.append("1 MiB of 100 MiB are left")
        until(lambda: not list(served.context.store.keys()))


def test_deleted_records_of_every_kind_leave_nothing(site):
    serving = site.serve(job_workers=1)
    with site.client(serving) as client:
        client.base_url = serving.url  # the makers name whole paths
        kept = uploaded(client, SVG % 500, "kept.svg", "image_files")
        before = set(site.left())
        files = list(one_of_each(client, 1))
        apart = with_index(client)
        image = uploaded(client, SVG % 7, "b.svg", "image_files")
        # one more use of bytes that are there: they stay until the last of both goes
        same = uploaded(client, SVG % 500, "again.svg", "image_files")
        assert same["id"] == kept["id"]
        caption = uploaded(client, VTT % 7, "b.vtt", "caption_files")
        film = uploaded(client, fixture_bytes("faststart.mp4"))
        path = f"{API}/unprocessed_files/{film['id']}/process"
        process = f"{API}/process_isobmff/{client.post(path).json()['id']}"
        until(lambda: client.get(process).json()["completed_at"])
        begun = announced(client, noise(MIB))
        chunk = {"content": noise(MIB)[:1000], "headers": span(0, 1000, MIB)}
        answer = client.post(f"{API}/unprocessed_files/{begun['id']}/upload", **chunk)
        assert answer.status_code == 202
        assert len(set(site.left()) - before) > 10

        for file in files:
            assert client.post(f"{API}/files/{file['id']}/delete").status_code == 200
        for place in (
            f"isobmff_files/{apart}",
            f"image_files/{image['id']}",
            f"caption_files/{caption['id']}",
            f"isobmff_tracks/{film['id']}/1",
            f"isobmff_files/{film['id']}",
            f"unprocessed_files/{film['id']}",
            f"unprocessed_files/{begun['id']}",
        ):
            assert client.delete(f"{API}/{place}").status_code == 204, place
        assert client.get(process).status_code == 404
        site.age()
        site.sweep()
        assert set(site.left()) == before
        site.age()
        site.sweep()  # once more, in case that somebody wrote late; then they are forgotten
        assert set(site.left()) == before
        assert client.get(f"{API}/image_files/{kept['id']}").content == SVG % 500
        for table in (tables.uploads, tables.blob_uses, tables.blobs):
            assert len(site.rows(table)) == 1, table.name
        for table in (tables.processes, tables.isobmff_files, tables.isobmff_tracks, tables.trash):
            assert site.rows(table) == [], table.name


def test_what_expires_or_is_given_up_goes_by_itself(site):
    serving = site.serve(job_workers=0, upload_hours=1)
    with site.client(serving) as client:
        given_up, data = announced_track(client, noise(MIB)), noise(MIB)
        chunk = {"content": data[:1000], "headers": span(0, 1000, MIB)}
        assert client.post(f"{given_up}/upload", **chunk).status_code == 202
        alive = announced_track(client, data, track_id=2)
        client.base_url = serving.url
        soon = rfc3339(instant() + timedelta(hours=1))
        files = list(one_of_each(client, 1, expires_at=soon))
    serving.end()

    past = instant() - timedelta(hours=2)
    for table, count in ((tables.files, 3), (tables.isobmff_files, 1)):
        with site.database.write() as connection:
            due = table.update().where(table.c.expires_at.is_not(None))
            assert connection.execute(due.values(expires_at=past)).rowcount == count
    site.age(days=0.2)

    # The sweep is the service's own from here: one at its start.
    serving = site.serve(job_workers=0, upload_hours=1)
    with site.client(serving) as client:
        for file in files:
            path = f"/files/{file['id']}"
            until(lambda path=path: client.get(path, headers=JSON).status_code == 404)
        until(lambda: not list(site.store.drafts()))
        # It may begin anew; one that nobody began is not harmed.
        for path in (given_up, alive):
            assert next_byte(client, path) == 0
            answer = client.post(f"{path}/upload", content=data)
            assert answer.status_code == 201
            assert client.get(path).content == data
        emptied(site, client)


KILLED = """
import os, signal, sys
from fragdex.service.records import blobs
from fragdex.service.records.database import Database
from fragdex.service.store.disk import DiskStore

class Killed(DiskStore):
    def delete(self, key):
        if sys.argv[3] == "after":
            super().delete(key)
        os.kill(os.getpid(), signal.SIGKILL)

blobs.sweep(Database(sys.argv[1]), Killed(sys.argv[2]))
"""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_sweep_that_is_killed_is_finished_by_the_next(database, tmp_path, moment):
    """Bytes that are used stay; what nobody uses goes, wherever the sweep was killed."""
    store, tenant = DiskStore(tmp_path / "store"), new_id()
    with database.write() as connection:
        row = {"id": tenant, "name": tenant, "created_at": instant()}
        connection.execute(tables.tenants.insert().values(**row))
    used = {}
    for name in ("stays", "goes"):
        data = name.encode()
        sha256 = hashlib.sha256(data).digest()
        with database.write() as connection:
            used[name] = blobs.expect(connection, tenant, sha256)
        store.write(used[name], [data])
        with database.write() as connection:
            own = (bytes(16), sha256, len(data), "images", name, used[name])
            blobs.keep(connection, tenant, *own)
    with database.write() as connection:
        blobs.release(connection, "images", "goes")
        connection.execute(tables.trash.update().values(delete_after=instant() - timedelta(days=1)))
    url = database.url.render_as_string(hide_password=False)
    program = [sys.executable, "-c", KILLED, url, str(store.root), moment]
    assert subprocess.run(program, check=False).returncode == -signal.SIGKILL
    blobs.sweep(database, store)
    assert list(store.keys()) == [used["stays"]]
    with database.read() as connection:
        assert blobs.used_by(connection, tenant, "images", "goes") is None
        assert blobs.used_by(connection, tenant, "images", "stays").store_key == used["stays"]
