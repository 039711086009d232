"""The service as an operator runs it: processes over one database and one store, that may die."""

import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import av
import httpx
import sqlalchemy as sa

from fragdex.service.config import Settings
from fragdex.service.context import open_database
from fragdex.service.records import blobs, deletion, keys, tables
from fragdex.service.records.identifiers import instant
from fragdex.service.store import open_store
from service.ready_tables import put_tables
from service.serving import API

PATIENCE = 60
"""Bounds a busy machine; on a quiet one nothing here is waited for longer than some seconds."""

MIB = 1 << 20
SETTINGS = {"heartbeat_seconds": 0.5, "lease_seconds": 4}


@dataclass
class Child:
    """A process of the service; `url` where it serves."""

    process: subprocess.Popen
    data: Path
    log: Path
    url: str = ""
    said: list = field(default_factory=list)

    def kill(self):
        self.process.kill()
        self._reap()

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        """As an operator ends it; it has to be a good end."""
        self.process.send_signal(signal.SIGTERM)
        self.ended()

    def ended(self):
        self.process.wait(PATIENCE)
        self._reap()
        assert self.process.returncode == 0, self.log.read_text()

    def _reap(self):
        self.process.wait(PATIENCE)
        if self.process.stdout is not None:
            self.process.stdout.close()

    @contextmanager
    def held_up(self):
        """The media work that it started stands still meanwhile, where the system tells of it.

        Gives the ids of those processes. However fast the machine is, the work does not end here.
        """
        lists = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        pids = [int(pid) for one in lists for pid in one.read_text().split()]
        _signal(pids, signal.SIGSTOP)
        try:
            yield pids
        finally:
            _signal(pids, signal.SIGCONT)

    @property
    def works(self):
        """Whether a job of it makes files in its data folder."""
        return any((self.data / "work").glob("*.*"))


@dataclass
class Site:
    """A database, a store and a key; processes are started over them."""

    folder: Path
    database_url: str = ""
    store_url: str = ""
    children: list = field(default_factory=list)
    key: str = ""

    def __post_init__(self):
        self.settings = Settings(
            data=self.folder / "data", database_url=self.database_url, store_url=self.store_url
        )
        if not self.database_url:
            put_tables(self.settings.data / "fragdex.db")
        self.database = open_database(self.settings)
        self.key = self.key or keys.create_key(self.database, "ours")

    @property
    def store(self):
        return open_store(self.settings.store_url)

    def serve(self, *, within=(), **settings):
        """`fragdex serve`, answering; `within` is a command that it is run by."""
        data = settings.pop("data", self.settings.data)
        child = self._start("serve", data, within, port=0, **settings)
        for line in child.process.stdout:
            child.said.append(line.strip())
            if match := re.match(r"Serving (http://\S+)", line):
                child.url = match[1]
                return child
        child.process.wait(PATIENCE)
        raise NotServing(child.log.read_text())

    def worker(self, *, apart=False, **settings):
        """`fragdex worker`, working; `apart`: as on a machine of its own."""
        data = self.folder / f"machine-{len(self.children)}" if apart else self.settings.data
        child = self._start("worker", data, job_workers=1, **settings)
        until(lambda: "working as" in child.log.read_text())
        return child

    def _start(self, command, data, within=(), **settings):
        given = {**SETTINGS, "database_url": self.settings.database_url, "data": data}
        given |= {"store_url": self.settings.store_url, **settings}
        # A process that is killed tells nothing of its coverage, and would be slower for it.
        left_out = ("FRAGDEX_", "COVERAGE_")
        environment = {k: v for k, v in os.environ.items() if not k.startswith(left_out)}
        environment |= {f"FRAGDEX_{name.upper()}": str(value) for name, value in given.items()}
        log = self.folder / f"log-{len(self.children)}"
        with log.open("w") as errors:
            process = subprocess.Popen(
                [*within, sys.executable, "-m", "fragdex", command],
                stdout=subprocess.PIPE if command == "serve" else subprocess.DEVNULL,
                stderr=errors,
                text=True,
                env=environment,
            )
        self.children.append(Child(process, data, log))
        return self.children[-1]

    def client(self, child, key=None):
        return httpx.Client(
            base_url=child.url + API,
            headers={"Authorization": f"Bearer {key or self.key}"},
            trust_env=False,
            timeout=PATIENCE,
            verify=False,
        )

    def age(self, days=2):
        """Let time pass for what is on its way in and on its way out."""
        upload, due = tables.uploads, instant() - timedelta(days=days)
        ended = {"lease_until": due, "created_at": due, "written_at": due}
        with self.database.write() as connection:
            connection.execute(tables.trash.update().values(delete_after=due))
            going = tables.trash.c.deleting_at.is_not(None)
            connection.execute(tables.trash.update().where(going).values(deleting_at=due))
            connection.execute(upload.update().where(upload.c.completed_at.is_(None)).values(ended))

    def sweep(self):
        """What every serving process does once a minute."""
        deletion.expired(self.database)
        blobs.sweep(self.database, self.store)

    def receives(self, path):
        """Whether a request holds the upload of this track."""
        name = path.removeprefix("/isobmff_tracks/")
        rows = [row for row in self.rows(tables.uploads) if row.record_id == name]
        return rows[0].lease_holder is not None

    def work(self):
        """Files and folders of work that lie about, on all machines."""
        return [file for folder in self.folder.glob("*/work") for file in folder.iterdir()]

    def left(self):
        """All objects, drafts and files of work that lie about."""
        return [*self.store.keys(), *self.store.drafts(), *map(str, self.work())]

    def rows(self, table):
        with self.database.read() as connection:
            return connection.execute(sa.select(table)).all()

    def close(self):
        for child in self.children:
            child.process.kill()
            child._reap()
        self.database.close()


def _signal(pids, number):
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


class NotServing(Exception):
    """It ended before it served; what it said."""


def until(true):
    deadline = time.monotonic() + PATIENCE
    while not (outcome := true()):
        assert time.monotonic() < deadline, "what was waited for did not happen"
        time.sleep(0.05)
    return outcome


def noise(size, seed=0):
    """Bytes that are like no others."""
    return random.Random(seed).randbytes(size)


def md5_of(data):
    return hashlib.md5(data).hexdigest()


def plain(md5):
    return md5.replace("-", "")


def span(start, stop, total):
    return {"Content-Range": f"bytes {start}-{stop - 1}/{total}"}


def announced_track(client, data, track_id=1):
    """The path of a track whose bytes are announced: they can be read again."""
    body = {"md5": md5_of(data + b"."), "filename": "film.mp4"}
    file = client.post("/isobmff_files", json=body).json()
    body = {"file_id": file["id"], "track_id": track_id, "type": "video", "byte_size": len(data)}
    answer = client.post("/isobmff_tracks", json=body)
    assert answer.status_code == 201, answer.text
    return f"/isobmff_tracks/{file['id']}/{track_id}"


def send(client, path, data, start, stop):
    """A chunk, from a client that comes again as it is told to."""
    while True:
        answer = client.post(
            f"{path}/upload", content=data[start:stop], headers=span(start, stop, len(data))
        )
        if answer.status_code != 409:
            assert answer.status_code == (201 if stop == len(data) else 202), answer.text
            return answer.json()
        assert answer.json()["type"].endswith("#upload-busy")
        time.sleep(min(0.2, int(answer.headers["retry-after"])))


def next_byte(client, path):
    answer = client.get(f"{path}/upload")
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.json()["next_byte"]


def ordered(client, data, name="film.mkv"):
    """The path of the process that a file is given to, and the file's record."""
    body = {"filename": name, "byte_size": len(data), "md5": md5_of(data)}
    record = client.post("/unprocessed_files", json=body).json()
    path = f"/unprocessed_files/{record['id']}"
    assert client.post(f"{path}/upload", content=data).status_code == 201
    process = client.post(f"{path}/process").json()
    return f"/process_isobmff/{process['id']}", record


def done(client, process):
    """The record of a process that has ended well."""
    record = until(lambda: (r := client.get(process).json())["completed_at"] and r)
    assert record["failed_at"] is None
    return record


def progress(site):
    """How far the only process is."""
    (row,) = site.rows(tables.processes)
    return row.progress if row.completed_at is None else 1.0


def film(path, seconds=8):
    """A film that takes some seconds: browsers do not play its codec, and it is noisy."""
    lines = [noise(1024, seed) for seed in range(64)]
    with av.open(str(path), "w") as out:
        stream = out.add_stream("mpeg4", rate=25)
        stream.width, stream.height = 960, 540
        stream.codec_context.bit_rate = 500_000
        frame = av.VideoFrame(960, 540, "yuv420p")
        for n in range(25 * seconds):
            plane = frame.planes[0]
            row = lines[n % 64][: plane.line_size].ljust(plane.line_size, b"\0")
            plane.update(row * (plane.buffer_size // plane.line_size))
            frame.pts = n
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    return path


def holds(client, film_bytes, seconds=8, *, others=0):
    """A processed film is there, once, and can be played from; beside it are other files."""
    assert len(client.get("/isobmff_files").json()["isobmff_files"]) == 1 + others
    file = client.get(f"/isobmff_files/md5/{md5_of(film_bytes)}").json()
    assert file["fragment_index_complete"]
    tracks = client.get(f"/isobmff_files/{file['id']}").json()["tracks"]
    assert {track["track_id"] for track in tracks} == {1, -1}
    for track in tracks:
        path = f"/isobmff_tracks/{file['id']}/{track['track_id']}"
        whole = client.get(path).content
        assert md5_of(whole) == plain(track["md5"])
        where = {"track": track["track_id"], "time_ms": seconds * 500}
        place = client.get(f"/isobmff_files/{file['id']}/seek", params=where).json()
        first, last = place["offset"], place["offset"] + place["size"] - 1
        part = client.get(path, headers={"Range": f"bytes={first}-{last}"})
        assert part.status_code == 206
        assert part.content == whole[first : last + 1]
        assert part.content[4:8] in (b"moof", b"styp", b"sidx", b"prft", b"emsg")
    return file


def emptied(site, client):
    """Every record is deleted; after the sweep nothing is left of them."""
    for family in ("isobmff_files", "unprocessed_files", "image_files", "caption_files"):
        for record in client.get(f"/{family}").json()[family]:
            assert client.delete(f"/{family}/{record['id']}").status_code == 204
    site.age()
    site.sweep()
    assert site.left() == []
