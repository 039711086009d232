"""An unprocessed file becomes tracks that are found, in one step, whatever dies on the way."""

import contextlib
import hashlib
import subprocess
import sys
import time
from pathlib import Path

import av
import pytest
import sqlalchemy as sa

import fragdex
from fragdex import ByteRange
from fragdex.errors import Unprocessable
from fragdex.service.jobs.work import Job, Stop
from fragdex.service.records import blobs, tables
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.unprocessed import worker
from service.unprocessed import worker_program

FIXTURES = Path(__file__).parents[3] / "fixtures"
PATIENCE = 90


def upload(context, tenant, data, filename="film.mov"):
    """An unprocessed file whose bytes are here, as the upload leaves it."""
    file_id, md5 = new_id(), hashlib.md5(data).digest()
    sha256 = hashlib.sha256(data).digest()
    with context.database.write() as connection:
        key = blobs.expect(connection, tenant, sha256)
    context.store.write(key, [data])
    with context.database.write() as connection:
        blobs.keep(connection, tenant, md5, sha256, len(data), "video", file_id, key)
        values = {
            "id": file_id, "tenant_id": tenant, "filename": filename, "byte_size": len(data),
            "md5": md5, "sha256": sha256, "created_at": instant(), "completed_at": instant(),
            "process_when_complete": False, "type": "video",
        }  # fmt: skip
        connection.execute(tables.files.insert().values(**values))
    return file_id


def order(context, tenant, file_id):
    """A process and its job, in one commit."""
    process = new_id()
    with context.database.write() as connection:
        values = {
            "id": process, "tenant_id": tenant, "unprocessed_file_id": file_id,
            "created_at": instant(),
        }  # fmt: skip
        connection.execute(tables.processes.insert().values(**values))
        context.jobs.enqueue(connection, worker.PROCESS, process, tenant_id=tenant)
    return process


def job_of(process, wanted=lambda _: True):
    return Job(f"process-{process}", worker.PROCESS, process, {}, 1, wanted, None)


def row(context, process):
    with context.database.read() as connection:
        query = sa.select(tables.processes).where(tables.processes.c.id == process)
        return connection.execute(query).one()


def tracks(context, file_id):
    with context.database.read() as connection:
        query = sa.select(tables.isobmff_tracks).where(tables.isobmff_tracks.c.file_id == file_id)
        return {track.track_id: track for track in connection.execute(query)}


def count(context, table):
    with context.database.read() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(table))


def objects(context):
    return set(context.store.keys())


def holds(context, tenant, file_id):
    """Every track has its bytes and its index, and nothing lies about."""
    track_rows = tracks(context, file_id)
    named = set()
    for track_id, track in track_rows.items():
        with context.database.read() as connection:
            blob = blobs.used_by(connection, tenant, "tracks", f"{file_id}/{track_id}")
        key = blob.store_key
        size = context.store.size(key)
        data = b"".join(context.store.read(key, ByteRange(0, size)))
        assert hashlib.md5(data).digest() == track.md5
        assert len(data) == track.byte_size
        with context.store.local(track.index_key) as path:
            index = fragdex.open_index(path)
            assert index.track(max(track_id, 1)).fragments is not None
            assert index.file.size == track.byte_size
        named |= {key, track.index_key}
    with context.database.read() as connection:
        used = set(connection.scalars(sa.select(tables.blobs.c.store_key)))
    trash = set()
    with context.database.read() as connection:
        trash = set(connection.scalars(sa.select(tables.trash.c.store_key)))
    assert named <= objects(context)
    assert not named & trash
    assert objects(context) - named - used - trash == set()
    assert not list((context.settings.data / "work").iterdir())


def test_a_film_becomes_tracks(context, tenant):
    data = (FIXTURES / "quicktime.mov").read_bytes()
    file_id = upload(context, tenant, data)
    process = order(context, tenant, file_id)

    worker._run(context, job_of(process))

    done = row(context, process)
    assert done.isobmff_file_id == file_id  # one record across the families
    assert done.progress == 1
    assert done.started_at <= done.completed_at
    track_rows = tracks(context, file_id)
    assert {n: t.codec_name for n, t in track_rows.items()} == {1: "h264", 2: "aac", -1: "h264"}
    assert {n: t.type for n, t in track_rows.items()} == {1: "video", 2: "audio", -1: "video"}
    assert track_rows[1].duration_ms == 2000
    with context.database.read() as connection:
        (file,) = connection.execute(sa.select(tables.isobmff_files)).all()
    assert (file.md5, file.filename) == (hashlib.md5(data).digest(), "film.mov")
    assert file.index_completed_at is not None
    holds(context, tenant, file_id)

    # Running it again changes nothing, and neither does another process of the same file.
    before = objects(context)
    worker._run(context, job_of(process))
    assert objects(context) == before
    again = order(context, tenant, file_id)
    worker._run(context, job_of(again))
    assert row(context, again).isobmff_file_id == file_id
    assert count(context, tables.isobmff_files) == 1
    holds(context, tenant, file_id)


def test_a_file_that_is_known_already_gets_the_tracks(context, tenant):
    """A client registered the ISOBMFF file under this md5 before."""
    data = (FIXTURES / "faststart.mp4").read_bytes()
    known = new_id()
    with context.database.write() as connection:
        values = {
            "id": known, "tenant_id": tenant, "filename": "mine.mp4",
            "md5": hashlib.md5(data).digest(), "created_at": instant(),
        }  # fmt: skip
        connection.execute(tables.isobmff_files.insert().values(**values))
    process = order(context, tenant, upload(context, tenant, data))
    worker._run(context, job_of(process))
    assert row(context, process).isobmff_file_id == known
    holds(context, tenant, known)
    assert set(tracks(context, known)) == {1, 2, -1}


def test_what_is_no_film_fails_with_the_reason(context, tenant):
    process = order(context, tenant, upload(context, tenant, b"#EXTM3U\nhttp://example.org/\n"))
    with pytest.raises(Unprocessable) as refused:
        worker._run(context, job_of(process))
    problem = {"error": "Unprocessable", "detail": str(refused.value)}
    worker._failed(context, job_of(process), problem)
    failed = row(context, process)
    assert failed.failed_at is not None
    assert "playlist" in failed.problem["detail"]
    worker._run(context, job_of(process))  # over is over
    assert row(context, process).completed_at is None
    assert count(context, tables.isobmff_tracks) == 0


def test_who_is_cancelled_leaves_nothing_behind(context, tenant):
    file_id = upload(context, tenant, (FIXTURES / "faststart.mp4").read_bytes())
    process = order(context, tenant, file_id)
    with pytest.raises(Stop):
        worker._run(context, job_of(process, wanted=lambda _: False))
    assert row(context, process).completed_at is None
    assert not list((context.settings.data / "work").iterdir())


def test_a_deleted_process_is_no_work(context, tenant):
    process = order(context, tenant, upload(context, tenant, b"no film at all"))
    with context.database.write() as connection:
        connection.execute(tables.processes.delete())
    worker._run(context, job_of(process))  # which would refuse these bytes
    assert count(context, tables.processes) == count(context, tables.isobmff_files) == 0
    assert not list((context.settings.data / "work").glob("*"))


@pytest.mark.slow
def test_processing_goes_on_after_kill_9(context, tenant):
    """Killed while it makes the tracks; another process makes them, once."""
    film = long_film(context.settings.data / "long.mkv")
    file_id = upload(context, tenant, film.read_bytes())
    process = order(context, tenant, file_id)
    with worker_of(context):
        until(lambda: 0 < row(context, process).progress < 0.9)
    assert row(context, process).completed_at is None
    with worker_of(context):
        until(lambda: row(context, process).completed_at)
        assert tracks(context, file_id)[1].duration_ms == pytest.approx(20_000, abs=100)
        until(lambda: not list((context.settings.data / "work").iterdir()))
        holds(context, tenant, file_id)


@contextlib.contextmanager
def worker_of(context, *more):
    """A process that works; ended by kill -9, whatever the test comes to."""
    process = subprocess.Popen(
        [
            sys.executable,
            worker_program.__file__,
            context.settings.database_url,
            str(context.settings.data),
            *map(str, more),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def until(true):
    deadline = time.monotonic() + PATIENCE
    while not (outcome := true()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return outcome


def long_film(path):
    """A film that is slow to process: all its pictures must be encoded anew."""
    with av.open(str(path), "w") as out:
        stream = out.add_stream("mpeg4", rate=25)
        stream.width, stream.height = 960, 540
        stream.codec_context.bit_rate = 4_000_000
        frame = av.VideoFrame(960, 540, "yuv420p")
        for n in range(500):
            frame.planes[0].update(bytes([n % 256]) * frame.planes[0].buffer_size)
            frame.pts = n
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path
