"""The database is away, the disk is full: refused, nothing lost, and well again by itself."""

import os
import subprocess
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import sqlalchemy as sa
from processes import (
    MIB,
    announced_track,
    done,
    emptied,
    holds,
    next_byte,
    noise,
    ordered,
    progress,
    send,
    span,
    until,
)

pytestmark = pytest.mark.slow


@contextmanager
def away(postgres_url, site):
    """Every connection to the site's database is cut, and none is let in."""
    server = sa.create_engine(
        postgres_url, isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool
    )
    name = sa.make_url(site.database_url).database
    with server.connect() as connection:
        connection.execute(sa.text(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false"))
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
        connection.execute(sa.text(cut), {"name": name})
        try:
            yield
        finally:
            connection.execute(sa.text(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true"))


def test_the_database_goes_and_comes_back(postgres_site, postgres_url, slow_film):
    site = postgres_site
    data = noise(4 * MIB)
    serving = site.serve(job_workers=1)
    with site.client(serving) as client:
        path = announced_track(client, data)
        send(client, path, data, 0, MIB)
        process, record = ordered(client, slow_film)
        until(lambda: progress(site) > 0)
        chunk = {"content": data[MIB:], "headers": span(MIB, len(data), len(data))}
        with serving.held_up(), away(postgres_url, site):
            for answer in (
                client.get(f"/unprocessed_files/md5/{record['md5']}"),
                client.get(process),
                client.post("/isobmff_files", json={"md5": "0" * 32, "filename": "a"}),
                client.post(f"{path}/upload", **chunk),
            ):
                assert answer.status_code == 503, answer.text
                assert answer.headers["content-type"] == "application/problem+json"
                assert int(answer.headers["retry-after"]) >= 1
                assert "psycopg" not in answer.text
            assert client.get(serving.url + "/healthz").status_code == 200
            ready = client.get(serving.url + "/readyz")
            assert (ready.status_code, ready.json()["database"]) == (503, "does not answer")
            assert serving.process.poll() is None
        until(lambda: client.get(serving.url + "/readyz").status_code == 200)
        assert next_byte(client, path) == MIB
        assert send(client, path, data, MIB, len(data))["complete"]
        assert client.get(path).content == data
        done(client, process)
        holds(client, slow_film, others=1)
        until(lambda: not serving.works)
        emptied(site, client)
    serving.end()


def on_a_small_disk(folder, size):
    """The command that runs another one with a file system of so many bytes at `folder`."""
    folder.mkdir(parents=True)
    mount = f'mount -t tmpfs -o size={size} none "{folder}" && exec "$@"'
    return ["unshare", "-rm", "sh", "-c", mount, "sh"]


def fill(path):
    """Write until there is no room."""
    with path.open("wb", buffering=0) as ballast, suppress(OSError):
        while True:
            ballast.write(bytes(4096))


def test_a_full_disk_refuses_and_goes_on_after_room_is_made(site):
    kept, data = noise(2 * MIB), noise(6 * MIB, 1)
    folder = site.settings.store_folder
    within = on_a_small_disk(folder, 12 * MIB)
    if subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a file system cannot be mounted here")
    serving = site.serve(within=within, job_workers=0)
    # the folder as the process sees it
    seen = Path(f"/proc/{serving.process.pid}/root{folder}")
    with site.client(serving) as client:
        before = announced_track(client, kept)
        assert send(client, before, kept, 0, len(kept))["complete"]
        path = announced_track(client, data, track_id=2)
        send(client, path, data, 0, MIB)
        ballast = seen / "ballast"
        ballast.write_bytes(bytes(6 * MIB))

        chunk = {"content": data[MIB:], "headers": span(MIB, len(data), len(data))}
        for _ in range(2):  # coming again does no harm
            refused = client.post(f"{path}/upload", **chunk)
            assert refused.status_code == 507, refused.text
            assert refused.headers["content-type"] == "application/problem+json"
        reached = next_byte(client, path)
        assert MIB <= reached < len(data)
        assert client.get(before).content == kept
        assert client.get(serving.url + "/healthz").status_code == 200

        ballast.unlink()
        assert send(client, path, data, reached, len(data))["complete"]
        assert client.get(path).content == data
        assert client.get(before).content == kept
    serving.end()


def test_a_disk_too_small_for_the_records_is_told(tmp_path, site):
    """The whole data folder is full, the database with it."""
    data = noise(3 * MIB)
    folder = tmp_path / "small"
    within = on_a_small_disk(folder, 8 * MIB)
    if subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a file system cannot be mounted here")
    small = {"data": folder, "store_url": "", "database_url": ""}
    serving = site.serve(within=within, job_workers=0, **small)
    seen = Path(f"/proc/{serving.process.pid}/root{folder}")
    # the key that the first start told
    key = next(line for line in serving.said if line.startswith("ef_"))
    with site.client(serving, key) as client:
        path = announced_track(client, data)
        send(client, path, data, 0, MIB)
        fill(seen / "ballast")
        chunk = {"content": data[MIB:], "headers": span(MIB, len(data), len(data))}
        refused = client.post(f"{path}/upload", **chunk)
        assert refused.status_code == 507, refused.text
        statuses = {
            client.post("/isobmff_files", json={"md5": f"{n:032x}", "filename": "a"}).status_code
            for n in range(60)
        }
        assert 507 in statuses
        assert statuses <= {201, 507}
        assert next_byte(client, path) >= MIB
        (seen / "ballast").unlink()
        assert send(client, path, data, MIB, len(data))["complete"]
        assert client.get(path).content == data
    serving.end()


@contextmanager
def small_disk(folder, size):
    """A file system of so many bytes at `folder`, which outlives what runs in it.

    Gives the command that runs another one with it, and where it is seen from outside.
    """
    within = on_a_small_disk(folder, size)
    if subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip("a file system cannot be mounted here")
    with subprocess.Popen([*within, "sleep", "600"]) as holder:
        seen = Path(f"/proc/{holder.pid}/root{folder}")
        try:
            until(lambda: Path(f"/proc/{holder.pid}/comm").read_text().strip() == "sleep")
            yield ["nsenter", "-t", str(holder.pid), "-U", "-m", "--preserve-credentials"], seen
        finally:
            holder.kill()


def test_a_disk_that_others_have_filled_is_no_dead_end(tmp_path, site):
    """At 100 % what is here is read and deleted, and the service starts."""
    data, folder = noise(4 * MIB), tmp_path / "small"
    small = {"data": folder, "store_url": "", "database_url": "", "job_workers": 0}
    with small_disk(folder, 32 * MIB) as (within, seen):
        serving = site.serve(within=within, **small)
        key = next(line for line in serving.said if line.startswith("ef_"))
        with site.client(serving, key) as client:
            paths = [announced_track(client, data), announced_track(client, noise(MIB, 1))]
            assert send(client, paths[0], data, 0, len(data))["complete"]
            ready = client.get(serving.url + "/readyz")
            assert (ready.status_code, ready.json()["disk"]) == (200, "ok")
            until((seen / "reserve").exists)
        serving.kill()  # what it left is what the next start finds
        fill(seen / "ballast")
        serving = site.serve(within=within, **small)
        with site.client(serving, key) as client:
            assert not (seen / "reserve").exists()
            ready = client.get(serving.url + "/readyz")
            assert ready.json()["disk"] == "nearly full"
            assert client.get(paths[0]).content == data
            refused = client.post(
                f"{paths[1]}/upload", content=bytes(MIB), headers=span(0, MIB, MIB)
            )
            assert refused.status_code == 507, refused.text
            before = os.statvfs(seen).f_bavail
            assert client.delete(paths[0]).status_code == 204
            until(lambda: os.statvfs(seen).f_bavail * 4096 >= before * 4096 + 3 * MIB)
            (seen / "ballast").unlink()
            assert client.get(serving.url + "/readyz").json()["disk"] == "ok"
        assert "a disk is nearly full" in serving.log.read_text()
        serving.end()
