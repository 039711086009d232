"""Streams of events ask the database once a tick for all listeners, and go on after a kill."""

import asyncio
import socket
import time
from contextlib import ExitStack, contextmanager

import httpx
import pytest
import sqlalchemy as sa

from fragdex.errors import RecordNotFound
from fragdex.service.records import tables
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.renders.records import progress
from fragdex.service.web.events import Watcher
from service.serving import API, serving
from service.survival.processes import Site, until

SIZE = 10


def rendering(database, tenant_id, done=0):
    """The id of a render in the middle of its work, which nobody does."""
    id_ = new_id()
    row = {
        "id": id_,
        "tenant_id": tenant_id,
        "metadata": {},
        "status": "rendering",
        "wanted": {},
        "frames": SIZE,
        "created_at": instant(),
    }
    with database.write() as connection:
        connection.execute(tables.renders.insert().values(row))
        part = {"render_id": id_, "number": 0, "first": 0, "stop": SIZE, "done": done}
        connection.execute(tables.render_parts.insert().values(part))
    return id_


def advance(database, id_, done, **values):
    with database.write() as connection:
        part = tables.render_parts
        connection.execute(part.update().where(part.c.render_id == id_).values(done=done))
        if values:
            table = tables.renders
            connection.execute(table.update().where(table.c.id == id_).values(values))


@contextmanager
def counting(database):
    """The statements that a database is sent meanwhile."""
    seen = []

    def look(connection, cursor, statement, *rest):
        seen.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", look)
    try:
        yield seen
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", look)


def listening(served, stack, paths):
    """Open streams that have sent their first event, and go on."""
    for path in paths:
        connection = stack.enter_context(socket.create_connection(served.address, 60))
        head = f"GET {API}{path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {served.key}"
        connection.sendall(f"{head}\r\n\r\n".encode())
        got = b""
        while b"event: size" not in got:
            piece = connection.recv(4096)
            assert piece, got
            got += piece


def statements_of_ticks(served, ticks=5):
    """How many statements the looks of so many ticks take."""
    watcher = served.app.state.watcher
    # the statements of the looks alone: a tick may begin before it is counted
    first = watcher.ticks
    until(lambda: watcher.ticks > first)
    with counting(served.context.database) as seen:
        begin = watcher.ticks
        until(lambda: watcher.ticks >= begin + ticks)
    looks = [one for one in seen if "fragdex_render" in one]
    return len(looks) / (watcher.ticks - begin)


@pytest.mark.parametrize("same", [True, False])
def test_200_listeners_ask_no_more_than_one(tmp_path, same):
    with serving(tmp_path) as served:
        database = served.context.database
        ids = [rendering(database, served.tenant) for _ in range(1 if same else 200)]
        paths = [f"/renders/{ids[n % len(ids)]}/progress" for n in range(200)]
        with ExitStack() as stack:
            listening(served, stack, paths[:1])
            alone = statements_of_ticks(served)
        with ExitStack() as stack:
            listening(served, stack, paths)
            together = statements_of_ticks(served)
        # 2 a tick: renders, and their parts; one more tick may have begun and not ended
        assert alone <= 2 * 6 / 5
        assert together <= 2 * 6 / 5
        # nobody listens: nothing is asked
        watcher = served.app.state.watcher
        until(lambda: not watcher._topics and watcher._ticking is None)
        with counting(database) as seen:
            time.sleep(1)
        assert [one for one in seen if "fragdex_render" in one] == []


def test_what_changes_wakes_its_listeners_and_no_others(sqlite_database, tmp_path):
    """Counted at the watcher: a change of one record is one state for each of its listeners."""
    states = {"a": ("progress", {"done": 0}), "b": ("progress", {"done": 0})}
    asked = []

    def look(context, tenant_id, ids):
        asked.append((tenant_id, sorted(ids)))
        return {one: states[one] for one in ids if one in states}

    async def run():
        watcher = Watcher(None, 0.01)
        got = {name: [] for name in ("a1", "a2", "b")}

        async def listen(name):
            async for state in watcher.states(look, "t", name[0], states[name[0]]):
                got[name].append(state[1]["done"])

        tasks = [asyncio.create_task(listen(name)) for name in got]
        for done in (1, 2):
            await ticks(watcher, 2)
            states["a"] = ("progress", {"done": done})
        await ticks(watcher, 2)
        states["a"] = ("complete", {"done": 3})
        await asyncio.gather(*tasks[:2])
        assert got == {"a1": [0, 1, 2, 3], "a2": [0, 1, 2, 3], "b": [0]}
        assert {tuple(ids) for _, ids in asked} == {("a", "b")}, "one look for both"
        del states["b"]
        with pytest.raises(RecordNotFound):
            await tasks[2]
        before = watcher.ticks
        await asyncio.sleep(0.1)
        assert watcher.ticks <= before + 1
        assert watcher._ticking is None

    asyncio.run(run())


async def ticks(watcher, count):
    aim = watcher.ticks + count
    while watcher.ticks < aim:
        await asyncio.sleep(0.001)


def test_a_fault_of_a_look_reaches_every_listener():
    def look(context, tenant_id, ids):
        raise KeyError("x")

    async def run():
        watcher = Watcher(None, 0.01)
        first = ("progress", {})

        async def listen(name):
            return [state async for state in watcher.states(look, "t", name, first)]

        errors = await asyncio.gather(*map(listen, "abc"), return_exceptions=True)
        assert [type(one) for one in errors] == [KeyError] * 3

    asyncio.run(run())


def frames(text):
    """(id, event, data) of each event that came in whole."""
    return [
        tuple(line.partition(": ")[2] for line in frame.split("\n"))
        for frame in text.split("\n\n")[:-1]
    ]


def read_until(client, path, wanted, **headers):
    """The events of a stream, until one of them is wanted or it breaks off."""
    text = ""
    with client.stream("GET", path, headers=headers) as answer:
        assert answer.status_code == 200
        try:
            for piece in answer.iter_text():
                text += piece
                if any(wanted(*one) for one in frames(text)):
                    break
        except httpx.RemoteProtocolError:
            pass
    return frames(text)


def test_a_listener_goes_on_after_the_server_was_killed(tmp_path):
    site = Site(tmp_path)
    try:
        with site.database.read() as connection:
            tenant = connection.scalar(sa.select(tables.tenants.c.id))
        id_ = rendering(site.database, tenant, done=4)
        path = f"/renders/{id_}/progress"
        first = site.serve(job_workers=0)
        with site.client(first) as client:
            had = read_until(client, path, lambda i, *_: i == "4")
            assert had == [
                ("0", "size", '{"size":10}'),
                ("4", "completion", '{"count":4}'),
            ]
            # the listener is there while the process dies
            broken = []
            with client.stream("GET", path, headers={"Last-Event-ID": "4"}) as answer:
                pieces = answer.iter_text()
                advance(site.database, id_, 6)
                broken += frames(next(pieces))
                first.kill()
                with pytest.raises(httpx.RemoteProtocolError):
                    next(pieces)
        assert broken == [("6", "completion", '{"count":2}')]
        advance(site.database, id_, 7)
        second = site.serve(job_workers=0)
        with site.client(second) as client:
            again = read_until(client, path, lambda i, *_: i == "7", **{"Last-Event-ID": "6"})
            assert again == [("7", "completion", '{"count":1}')]
            advance(site.database, id_, 10, status="complete", completed_at=instant())
            last = read_until(client, path, lambda _, e, d: False, **{"Last-Event-ID": "7"})
            assert last == [("10", "completion", '{"count":3}'), ("end", "complete", "{}")]
            # who has all is told to stay away; who has nothing gets the whole
            end = client.get(path, headers={"Last-Event-ID": "end"})
            assert (end.status_code, end.content) == (204, b"")
            whole = read_until(client, path, lambda *_: False)
            assert [one[1] for one in whole] == ["size", "completion", "complete"]
    finally:
        site.close()


def test_looks_are_of_the_tenant_s_own_records(sqlite_database):
    class Context:
        database = sqlite_database

    with sqlite_database.write() as connection:
        for name in ("a", "b"):
            row = {"id": name, "name": name, "created_at": instant()}
            connection.execute(tables.tenants.insert().values(row))
    id_ = rendering(sqlite_database, "a")
    assert list(progress(Context, "a", [id_, new_id()])) == [id_]
    assert progress(Context, "b", [id_]) == {}
