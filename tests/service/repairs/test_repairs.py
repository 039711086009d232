"""Files whose index was never written are repaired as jobs, whatever dies on the way."""

import hashlib
import tempfile
from pathlib import Path

import pytest
import sqlalchemy as sa

import fragdex
from fragdex.fragments.table import Int64
from fragdex.service.indexing.repairing import ALIKE, likeness
from fragdex.service.jobs.work import Job
from fragdex.service.records import tables
from fragdex.service.repairs import worker
from fragdex.service.repairs.operations import REPAIRS, NewRepair, repair_file
from fragdex.sources import open_source
from service.descendants import descendants, gone
from service.serving import API
from service.unprocessed import worker_program
from service.unprocessed.test_worker import until, upload, worker_of
from service.working import UNKNOWN, events_of, fixture_bytes, md5_of, uploaded

GOOD, BROKEN = "moov-last.mp4", "cut-moov-last.mp4"
OTHER = "hevc-aac.mp4"


def repaired(client, file_id, **how):
    """The repair of a file, after its end, and its events."""
    answer = client.post(f"{API}/files/{file_id}/repair", json=how)
    assert answer.status_code in (200, 201), answer.text
    events = events_of(client, f"/repairs/{answer.json()['id']}/progress")
    return client.get(f"{API}/repairs/{answer.json()['id']}").json(), events


def test_an_upload_without_its_index_names_a_film_like_it_and_is_repaired(working):
    client = working.client
    other = uploaded(client, fixture_bytes(OTHER), "CLIP0003.MP4")
    good = uploaded(client, fixture_bytes(GOOD), "GX010001.MP4")
    broken = uploaded(client, fixture_bytes(BROKEN), "GX010002.MP4")
    process = client.post(f"{API}/unprocessed_files/{broken['id']}/process").json()
    assert events_of(client, f"/process_isobmff/{process['id']}/progress")[-1][0] == "error"
    problem = client.get(f"{API}/process_isobmff/{process['id']}").json()["problem"]
    assert problem["status"] == 422
    assert good["id"] in problem["detail"]
    assert other["id"] not in problem["detail"]
    assert f"/files/{broken['id']}/repair" in problem["detail"]

    record, events = repaired(client, broken["id"])
    assert events[-2:] == [("progress", {"progress": 1}), ("complete", {})]
    assert (record["status"], record["like_file_id"]) == ("complete", good["id"])
    report = record["report"]
    assert [(one["codec"], one["samples"], one["proved"]) for one in report["tracks"]] == [
        ("avc1.64000A", 50, 50),
        ("mp4a.40.2", 33, 33),
    ]
    assert report["lost_bytes"] == 0
    assert report["spans"][-1]["stop"] == len(fixture_bytes(BROKEN))
    mended = fragdex.repair(fixture_bytes(BROKEN), fixture_bytes(GOOD))
    data = mended.view.read(source=fixture_bytes(BROKEN))
    file_id = record["repaired_file_id"]
    assert events_of(client, f"/files/{file_id}/progress")[-1][0] == "complete"
    file = client.get(f"{API}/files/{file_id}", headers={"Accept": "application/json"}).json()
    assert (file["filename"], file["status"]) == ("GX010002.repaired.mp4", "ready")
    assert file["md5"].replace("-", "") == md5_of(data)
    assert {track["track_id"] for track in file["tracks"]} == {-1, 1, 2}
    index = client.get(f"{API}/isobmff_files/{file_id}/index").json()
    assert [index[key]["sample_count"] for key in ("1", "2")] == [50, 33]

    again = client.post(f"{API}/files/{broken['id']}/repair", json={})
    assert (again.status_code, again.json()["id"]) == (200, record["id"])
    place = f"{API}/repairs/{record['id']}"
    assert record in client.get(f"{API}/repairs?status=complete").json()["repairs"]
    own = f"{API}/files/{broken['id']}/repairs"
    assert client.get(own).json() == {"repairs": [record], "next_cursor": None}
    assert client.get(f"{own}?status=failed").json()["repairs"] == []
    assert client.get(f"{API}/files/{good['id']}/repairs").json()["repairs"] == []
    for nothing in (place, own):
        assert working.stranger.get(nothing).status_code == 404
    assert client.delete(place).status_code == 204
    assert client.get(place).status_code == 404
    assert client.get(f"{API}/files/{file_id}/index").status_code == 200, "the repaired file stays"


def test_what_cannot_be_repaired_says_why(working):
    client = working.client
    broken = uploaded(client, fixture_bytes(BROKEN, salt="alone"), "alone.mp4")
    place = f"{API}/files/{broken['id']}/repair"
    wrong = client.post(place, json={"like_file_id": UNKNOWN})
    assert (wrong.status_code, wrong.json()["errors"][0]["pointer"]) == (422, "#/like_file_id")
    assert client.post(place, json={"rate": "fast"}).status_code == 422
    noise = uploaded(client, bytes(range(256)) * 40, "noise.bin")
    record, events = repaired(client, noise["id"])
    assert (record["status"], record["repaired_file_id"]) == ("failed", None)
    assert events[-1] == ("error", record["problem"])
    after = client.post(f"{API}/files/{noise['id']}/repair", json={})
    assert (after.status_code, after.json()["id"] != record["id"]) == (201, True)


@pytest.fixture
def keep():
    return "original"


@pytest.fixture(params=["sqlite"])
def context(request, tmp_path, keep):
    url = f"sqlite:///{tmp_path / 'a.db'}"
    if request.param == "postgresql":
        url = request.getfixturevalue("new_postgres")()
    with worker_program.new_context(url, tmp_path, *worker.WORK, keep=keep) as opened:
        yield opened


class Killed(BaseException):
    """What ends a run where a process would be killed."""


STEPS = ("_good_file", "repaired", "_composition", "_publish", "start")


@pytest.mark.parametrize("keep", ["original", "tracks"])
def test_a_run_that_was_killed_anywhere_comes_again_and_makes_one_file(
    context, tenant, monkeypatch
):
    good = upload(context, tenant, fixture_bytes(GOOD))
    broken = upload(context, tenant, fixture_bytes(BROKEN))
    record, _ = repair_file(context, tenant, broken, NewRepair(like_file_id=good))

    def job(attempt):
        return Job("", worker.REPAIR, record.id, {}, attempt, lambda _: True, None)

    for attempt, step in enumerate(STEPS, 1):
        with monkeypatch.context() as patch:
            patch.setattr(worker, step, dying)
            with pytest.raises(Killed):
                worker._run(context, job(attempt))
        assert REPAIRS.get(context, tenant, record.id).status == "repairing"
    worker._run(context, job(9))
    worker._run(context, job(10))  # too late: it is over
    done = REPAIRS.get(context, tenant, record.id)
    assert (done.status, done.progress) == ("complete", 1)
    with context.database.read() as connection:
        rows = connection.execute(sa.select(tables.files)).all()
        blobs = {row.sha256: row for row in connection.execute(sa.select(tables.blobs))}
        trash = set(connection.scalars(sa.select(tables.trash.c.store_key)))
        orders = connection.execute(sa.select(tables.processes)).all()
    (repaired_file,) = [row for row in rows if row.id not in (good, broken)]
    assert (
        [one.unprocessed_file_id for one in orders] == [repaired_file.id] == [done.repaired_file_id]
    )
    blob = blobs[repaired_file.sha256]
    with context.store.source(blob.store_key) as source:
        data = source.read(fragdex.ByteRange(0, repaired_file.byte_size))
    assert hashlib.md5(data).digest() == repaired_file.md5
    assert fragdex.index(data).track(1).sample_count == 50
    # composed of the broken file, or stored
    composed = context.settings.keep == "original"
    assert (blob.source_sha256 is not None) is composed
    named = {one.store_key for one in blobs.values()}
    assert set(context.store.keys()) <= named | trash


def dying(*args, **more):
    raise Killed


@pytest.fixture
def temporary(monkeypatch):
    """The temporary folder of the workers: not below pytest's own, which is closed."""
    with tempfile.TemporaryDirectory(prefix="fragdex-repairs-") as name:
        Path(name).chmod(0o1777)
        monkeypatch.setenv("TMPDIR", name)
        yield Path(name)


@pytest.mark.slow
@pytest.mark.database_decides
@pytest.mark.parametrize("context", ["sqlite", "postgresql"], indirect=True)
def test_the_repair_of_a_killed_worker_is_done_by_another_once(context, tenant, temporary):
    good, broken = (upload(context, tenant, fixture_bytes(name)) for name in (GOOD, BROKEN))
    record, _ = repair_file(context, tenant, broken, NewRepair(like_file_id=good))
    gate = context.settings.data / "gate"
    with worker_of(context, gate) as first:
        until(worker_program.reached(gate).exists)
        below = list(descendants(first.pid))
        assert below, "samples are found in a process of its own"
        assert list(temporary.iterdir()), "which has a folder"
    gone(below)
    assert REPAIRS.get(context, tenant, record.id).status == "repairing"

    with worker_of(context):
        until(lambda: REPAIRS.get(context, tenant, record.id).status != "repairing")
        until(lambda: all(row.ended_at for row in rows(context, tables.jobs)))
        until(lambda: not list(temporary.iterdir()))
        until(lambda: not list((context.settings.data / "work").iterdir()))
    done = REPAIRS.get(context, tenant, record.id)
    assert (done.status, done.progress, done.problem) == ("complete", 1, None)
    assert done.repaired_file_id is not None
    (repaired_file,) = [row for row in rows(context, tables.files) if row.id not in (good, broken)]
    (order,) = rows(context, tables.processes)
    assert order.unprocessed_file_id == repaired_file.id == done.repaired_file_id
    assert order.isobmff_file_id is not None
    mended = fragdex.repair(fixture_bytes(BROKEN), fixture_bytes(GOOD))
    (blob,) = [row for row in rows(context, tables.blobs) if row.sha256 == repaired_file.sha256]
    with context.store.source(blob.store_key) as source:
        data = source.read(fragdex.ByteRange(0, repaired_file.byte_size))
    assert data == mended.view.read(source=fixture_bytes(BROKEN))
    # objects and drafts have a name in the database: what a killed run expected is in the trash
    assert list(context.store.drafts()) == []
    named = {row.store_key for row in rows(context, tables.blobs)}
    named |= {row.index_key for row in rows(context, tables.isobmff_tracks)}
    assert set(context.store.keys()) <= named | {
        row.store_key for row in rows(context, tables.trash)
    }


def rows(context, table):
    with context.database.read() as connection:
        return connection.execute(sa.select(table)).all()


def test_a_repair_that_is_deleted_makes_nothing(context, tenant, monkeypatch):
    """Its row goes with its file, in the midst of a run."""
    broken = upload(context, tenant, fixture_bytes(BROKEN))
    good = upload(context, tenant, fixture_bytes(GOOD))
    record, _ = repair_file(context, tenant, broken, NewRepair(like_file_id=good))
    whole = worker.repaired

    def deleted_meanwhile(*args, **more):
        with context.database.write() as connection:
            connection.execute(tables.files.delete().where(tables.files.c.id == broken))
        return whole(*args, **more)

    monkeypatch.setattr(worker, "repaired", deleted_meanwhile)
    worker._run(context, Job("", worker.REPAIR, record.id, {}, 1, lambda _: True, None))
    with context.database.read() as connection:
        assert connection.scalars(sa.select(tables.files.c.id)).all() == [good]


def test_ranges_outside_of_the_file_are_refused(context, tenant):
    """Whoever broke the child may have written any."""
    blob = worker.Blob(b"", b"", 100, "blobs/a")
    for start, size in ((90, 11), (-1, 5), (5, 0), (1 << 62, 1 << 62)):
        column: Int64 = fragdex.repairing.film.np.array([start])
        repaired_file = worker.RepairedFile(b"head", column, column * 0 + size, "", {})
        with pytest.raises(fragdex.errors.Unprocessable, match="does not have"):
            worker._composition(blob, repaired_file)


def test_a_film_is_like_one_of_its_camera_and_no_other():
    broken = fixture_bytes(BROKEN)
    films = {
        name: likeness(broken, open_source(fixture_bytes(name)))
        for name in (GOOD, OTHER, "av1-opus.mp4", "pcm.mov", "aac.m4a")
    }
    assert films.pop(GOOD) > 0.9
    assert max(films.values()) < ALIKE
