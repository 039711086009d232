"""The service as a process of its own that works on jobs: the engine works once a process."""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import httpx
import sqlalchemy as sa

from fragdex.service.app import close_context, open_context
from fragdex.service.config import Settings
from fragdex.service.records import keys
from service.ready_tables import put_tables
from service.serving import API, Served, client_of, serving

FIXTURES = Path(__file__).parents[2] / "fixtures"
JSON = {"Accept": "application/json"}
# Well-formed, and nobody's: a fixed one, so that processes that share the tests name them alike.
UNKNOWN = "01890a5d-ac96-774b-bcce-b302099a8057"
PATIENCE = 180


@contextmanager
def working(folder, *flags):
    """`fragdex serve` over `folder`; two tenants have keys."""
    put_tables(folder / "fragdex.db")
    context = open_context(Settings(data=folder, job_workers=0))
    key = keys.create_key(context.database, "ours", scope=keys.ADMIN)
    other = keys.create_key(context.database, "theirs", scope=keys.ADMIN)
    command = [sys.executable, "-m", "fragdex", "serve", "--port", "0", "--data", str(folder)]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FRAGDEX_")}
    child = subprocess.Popen([*command, *flags], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        match = re.match(r"Serving (http://\S+) ", child.stdout.readline())
        assert match
        url = match[1]
        with (
            client_of(url, key) as client,
            client_of(url, other) as stranger,
            client_of(url) as anyone,
        ):
            tenant = keys.find_key(context.database, key).tenant_id
            yield Served(url, context, key, tenant, client, stranger, anyone, None, child)
    finally:
        child.terminate()
        try:
            child.wait(60)
        finally:
            child.kill()
            child.stdout.close()
            close_context(context)


@contextmanager
def serving_over(database, request, tmp_path_factory, *routers, **settings):
    """`serving` over a new database of a kind; its jobs wait."""
    folder = tmp_path_factory.mktemp(database)
    if database == "sqlite":
        with serving(folder, *routers, **settings) as served:
            yield served
        return
    url = sa.make_url(request.getfixturevalue("postgres_url"))
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool)
    name = re.sub(r"\W", "_", folder.name)
    with admin.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    own = url.set(database=name).render_as_string(hide_password=False)
    try:
        with serving(folder, *routers, database_url=own, **settings) as served:
            yield served
    finally:
        with admin.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))


def fixture_bytes(name, salt=None):
    """A fixture; `salt` makes it another file of the same content: a free box at its end."""
    data = (FIXTURES / name).read_bytes()
    if salt is None:
        return data
    more = str(salt).encode()
    return data + (8 + len(more)).to_bytes(4, "big") + b"free" + more


def md5_of(data):
    return hashlib.md5(data).hexdigest()


def announced(client, data, name="a.mp4", family="unprocessed_files", **more):
    """The record of a file that is announced."""
    body = {"filename": name, "byte_size": len(data), "md5": md5_of(data), **more}
    answer = client.post(f"{API}/{family}", json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer.json()


def uploaded(client, data, name="a.mp4", family="unprocessed_files", **more):
    """The record of a file whose bytes are sent, whole."""
    record = announced(client, data, name, family, **more)
    answer = client.post(f"{API}/{family}/{record['id']}/upload", content=data)
    assert answer.status_code == 201, answer.text
    return answer.json()


def events_of(client, path):
    """All events of a stream, to its end: (name, data)."""
    path = path if client.base_url.path.startswith(API) else API + path
    with client.stream("GET", path) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        text = b"".join(answer.iter_raw()).decode("ascii")
    assert text.endswith("\n\n")
    events = []
    for frame in text.removesuffix("\n\n").split("\n\n"):
        id_, name, data = frame.split("\n")
        assert id_.startswith("id: ")
        events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return events


@dataclass
class Slices:
    """Asks a service for work that it divides in slices, and watches it.

    Attributes:
        family: The path of its records.
        counted: What a record calls that which the events count.
    """

    client: httpx.Client
    served: object = None
    family: ClassVar = ""
    counted: ClassVar = ""

    def path(self, below="", family=None):
        """Of its own family or another, from where the client begins."""
        prefix = "" if self.client.base_url.path.startswith(API) else API
        return f"{prefix}{family or self.family}{below}"

    def asked(self, **body):
        """The record of work that is just asked for."""
        answer = self.client.post(self.path(), json=body)
        assert answer.status_code == 201, answer.text
        record = answer.json()
        assert answer.headers["location"].endswith(f"{self.family}/{record['id']}")
        return record

    def record(self, id):
        answer = self.client.get(self.path(f"/{id}"))
        assert answer.status_code == 200, answer.text
        return answer.json()

    def done(self, id):
        """How much of it is done."""
        return self.record(id)[f"{self.counted}_done"]

    def ended(self, id):
        """The record of work that has come to its end; its events were right."""
        events = events_of(self.client, f"{self.family}/{id}/progress")
        record = self.record(id)
        names = [name for name, _ in events if name != "heartbeat"]
        assert names[0] == "size"
        assert set(names[1:-1]) <= {"completion"}
        if record["status"] == "complete":
            assert names[-1] == "complete"
            assert events[-1][1] == {}
            counts = [data["count"] for name, data in events if name == "completion"]
            assert sum(counts) == record[self.counted] == dict(events)["size"]["size"]
            assert all(count > 0 for count in counts)
        else:
            assert names[-1] == "error"
            assert events[-1][1] == record["problem"]
        return record

    def until(self, id, true):
        """The record once something is true of it."""
        deadline = time.monotonic() + PATIENCE
        while not true(record := self.record(id)):
            assert time.monotonic() < deadline, record
            time.sleep(0.05)
        return record
