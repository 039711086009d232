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

sys.path.insert(0, str(Path(__file__).parent))

import worker_program

import fragdex
from fragdex import ByteRange
from fragdex.service.errors import Unprocessable
from fragdex.service.jobs.door import Job, Stop, upgrade
from fragdex.service.records import blobs, migrations, tables
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.unprocessed import worker

FIXTURES = Path(__file__).parents[3] / "fixtures"
PATIENCE = 90


@pytest.fixture
def house(database_url, tmp_path):
    opened = worker_program.open_house(database_url, tmp_path)
    migrations.upgrade(opened.database)
    upgrade(opened.database)
    yield opened
    opened.jobs.close()
    opened.database.close()


@pytest.fixture
def tenant(house):
    tenant = new_id()
    with house.database.write() as connection:
        values = {"id": tenant, "name": tenant, "created_at": instant()}
        connection.execute(tables.tenants.insert().values(**values))
    return tenant


def upload(house, tenant, data, filename="film.mov"):
    """An unprocessed file whose bytes are here, as the upload leaves it."""
    file_id, md5 = new_id(), hashlib.md5(data).digest()
    with house.database.write() as connection:
        key = blobs.expect(connection, tenant, md5)
    house.store.write(key, [data])
    with house.database.write() as connection:
        sha256 = hashlib.sha256(data).digest()
        blobs.keep(connection, tenant, md5, sha256, len(data), "unprocessed", file_id)
        values = {
            "id": file_id, "tenant_id": tenant, "filename": filename, "byte_size": len(data),
            "md5": md5, "created_at": instant(), "completed_at": instant(),
            "process_when_complete": False,
        }  # fmt: skip
        connection.execute(tables.unprocessed_files.insert().values(**values))
    return file_id


def order(house, tenant, file_id):
    """A process and its job, in one commit."""
    process = new_id()
    with house.database.write() as connection:
        values = {
            "id": process, "tenant_id": tenant, "unprocessed_file_id": file_id,
            "created_at": instant(),
        }  # fmt: skip
        connection.execute(tables.processes.insert().values(**values))
        house.jobs.enqueue(connection, worker.PROCESS, process)
    return process


def job_of(process, wanted=lambda _: True):
    return Job(f"process-{process}", worker.PROCESS, process, {}, 1, wanted, None)


def row(house, process):
    with house.database.read() as connection:
        query = sa.select(tables.processes).where(tables.processes.c.id == process)
        return connection.execute(query).one()


def tracks(house, file_id):
    with house.database.read() as connection:
        query = sa.select(tables.isobmff_tracks).where(tables.isobmff_tracks.c.file_id == file_id)
        return {found.track_id: found for found in connection.execute(query)}


def count(house, table):
    with house.database.read() as connection:
        return connection.scalar(sa.select(sa.func.count()).select_from(table))


def objects(house):
    return set(house.store.keys())


def holds(house, tenant, file_id):
    """Every track has its bytes and its index, and nothing lies about."""
    found = tracks(house, file_id)
    named = set()
    for track_id, track in found.items():
        key = blobs.blob_key(tenant, track.md5)
        size = house.store.size(key)
        data = b"".join(house.store.read(key, ByteRange(0, size)))
        assert hashlib.md5(data).digest() == track.md5
        assert len(data) == track.byte_size
        with house.store.local(track.index_key) as path:
            index = fragdex.open_index(path)
            assert index.track(max(track_id, 1)).fragments is not None
            assert index.source.size == track.byte_size
        named |= {key, track.index_key}
    with house.database.read() as connection:
        used = set(connection.scalars(sa.select(tables.blobs.c.store_key)))
    trash = set()
    with house.database.read() as connection:
        trash = set(connection.scalars(sa.select(tables.trash.c.store_key)))
    assert named <= objects(house)
    assert not named & trash
    assert objects(house) - named - used - trash == set()
    assert not list((house.settings.data / "work").iterdir())


def test_a_film_becomes_tracks(house, tenant):
    data = (FIXTURES / "quicktime.mov").read_bytes()
    file_id = upload(house, tenant, data)
    process = order(house, tenant, file_id)

    worker._run(house, job_of(process))

    done = row(house, process)
    assert done.isobmff_file_id == file_id  # one record across the families
    assert done.progress == 1
    assert done.started_at <= done.completed_at
    found = tracks(house, file_id)
    assert {n: t.codec_name for n, t in found.items()} == {1: "h264", 2: "aac", -1: "h264"}
    assert {n: t.type for n, t in found.items()} == {1: "video", 2: "audio", -1: "video"}
    assert found[1].duration_ms == 2000
    with house.database.read() as connection:
        (file,) = connection.execute(sa.select(tables.isobmff_files)).all()
    assert (file.md5, file.filename) == (hashlib.md5(data).digest(), "film.mov")
    assert file.index_completed_at is not None
    holds(house, tenant, file_id)

    # Running it again changes nothing, and neither does another process of the same file.
    before = objects(house)
    worker._run(house, job_of(process))
    assert objects(house) == before
    again = order(house, tenant, file_id)
    worker._run(house, job_of(again))
    assert row(house, again).isobmff_file_id == file_id
    assert count(house, tables.isobmff_files) == 1
    holds(house, tenant, file_id)


def test_a_file_that_is_known_already_gets_the_tracks(house, tenant):
    """A client registered the ISOBMFF file under this md5 before."""
    data = (FIXTURES / "faststart.mp4").read_bytes()
    known = new_id()
    with house.database.write() as connection:
        values = {
            "id": known, "tenant_id": tenant, "filename": "mine.mp4",
            "md5": hashlib.md5(data).digest(), "created_at": instant(),
        }  # fmt: skip
        connection.execute(tables.isobmff_files.insert().values(**values))
    process = order(house, tenant, upload(house, tenant, data))
    worker._run(house, job_of(process))
    assert row(house, process).isobmff_file_id == known
    holds(house, tenant, known)
    assert set(tracks(house, known)) == {1, 2, -1}


def test_what_is_no_film_fails_with_the_reason(house, tenant):
    process = order(house, tenant, upload(house, tenant, b"#EXTM3U\nhttp://example.org/\n"))
    with pytest.raises(Unprocessable) as refused:
        worker._run(house, job_of(process))
    problem = {"error": "Unprocessable", "detail": str(refused.value)}
    worker._failed(house, job_of(process), problem)
    failed = row(house, process)
    assert failed.failed_at is not None
    assert "playlist" in failed.problem["detail"]
    worker._run(house, job_of(process))  # over is over
    assert row(house, process).completed_at is None
    assert count(house, tables.isobmff_tracks) == 0


def test_who_is_cancelled_leaves_nothing_behind(house, tenant):
    file_id = upload(house, tenant, (FIXTURES / "faststart.mp4").read_bytes())
    process = order(house, tenant, file_id)
    with pytest.raises(Stop):
        worker._run(house, job_of(process, wanted=lambda _: False))
    assert row(house, process).completed_at is None
    assert not list((house.settings.data / "work").iterdir())


def test_a_deleted_process_is_no_work(house):
    worker._run(house, job_of(new_id()))


@pytest.mark.slow
def test_processing_goes_on_after_kill_9(house, tenant):
    """Killed while it makes the tracks; another process makes them, once."""
    film = long_film(house.settings.data / "long.mkv")
    file_id = upload(house, tenant, film.read_bytes())
    process = order(house, tenant, file_id)
    with worker_of(house):
        until(lambda: 0 < row(house, process).progress < 0.9)
    assert row(house, process).completed_at is None
    with worker_of(house):
        until(lambda: row(house, process).completed_at)
        assert tracks(house, file_id)[1].duration_ms == pytest.approx(20_000, abs=100)
        until(lambda: not list((house.settings.data / "work").iterdir()))
        holds(house, tenant, file_id)


@contextlib.contextmanager
def worker_of(house):
    """A process that works; ended by kill -9, whatever the test comes to."""
    process = subprocess.Popen(
        [
            sys.executable,
            worker_program.__file__,
            house.settings.database_url,
            str(house.settings.data),
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
    while not (found := true()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


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
