"""Bodies as asynchronous streams: many at once, slow, broken off, refused."""

import asyncio
import hashlib
import threading
import time
from functools import partial

import pytest

from fragdex import ByteRange
from fragdex.errors import RecordNotFound, StoreFull, Unprocessable
from fragdex.service.records import blobs
from fragdex.service.records.identifiers import new_id
from fragdex.service.uploads import receiving, upload_session
from fragdex.service.uploads.hashing import FairBudget
from fragdex.service.uploads.model import Arrival
from fragdex.service.uploads.operations import begin, state
from fragdex.service.uploads.upload_session import UploadSession

from .conftest import row_of

CONTENT = bytes(range(251)) * 400
SIZE = len(CONTENT)


def announced(context, tenant, content=CONTENT):
    record = new_id()
    with context.database.write() as connection:
        md5 = hashlib.md5(content).digest()
        begin(context, connection, tenant, "image", record, len(content), md5)
    return record


async def body(content, size=777):
    for at in range(0, len(content), size):
        await asyncio.sleep(0)
        yield content[at : at + size]


def receive_stream(context, tenant, family, record, content_range, stream, **more):
    about = (context, tenant, family, record, upload_session.announced(content_range, None))
    return receiving.receive_stream(partial(upload_session.open_session, *about, **more), stream)


async def upload(context, tenant, record, content=CONTENT, chunk=None):
    if chunk is None:
        return await receive_stream(context, tenant, "image", record, None, body(content))
    for start in range(0, len(content), chunk):
        stop = min(len(content), start + chunk)
        text = f"bytes {start}-{stop - 1}/{len(content)}"
        stream = body(content[start:stop])
        answer = await receive_stream(context, tenant, "image", record, text, stream)
        assert answer.next_byte == stop
    return answer


def test_many_at_once(context, tenant):
    """Each with bytes of its own, in chunks, all of them right."""
    contents = [bytes([number]) + CONTENT[number:] for number in range(60)]
    records = [announced(context, tenant, content) for content in contents]

    async def all_at_once():
        return await asyncio.gather(
            *(
                upload(context, tenant, record, content, chunk=40_000)
                for record, content in zip(records, contents, strict=True)
            )
        )

    assert all(answer.complete for answer in asyncio.run(all_at_once()))
    for content in contents[::7]:
        with context.database.read() as connection:
            blob = blobs.find(connection, tenant, hashlib.sha256(content).digest())
        assert b"".join(context.store.read(blob.store_key, ByteRange(0, len(content)))) == content
    assert list(context.store.drafts()) == []


def test_clients_that_wait_hold_no_thread(quick_house, tenant):
    """More uploads than threads, none of which ends before the last one begins."""
    count = 4 * receiving.THREADS
    records = [announced(quick_house, tenant) for _ in range(count)]

    async def all_wait():
        everybody = asyncio.Barrier(count)

        async def slow():
            yield CONTENT[:50_000]
            await everybody.wait()
            yield CONTENT[50_000:]

        return await asyncio.gather(
            *(
                receive_stream(quick_house, tenant, "image", record, None, slow())
                for record in records
            )
        )

    assert all(answer.complete for answer in asyncio.run(all_wait()))
    names = [thread.name for thread in threading.enumerate()]
    assert sum(name.startswith("fragdex-upload") for name in names) <= receiving.THREADS
    # those whose bytes are all here may have to wait for their turn to be indexed
    assert sum(name.startswith("fragdex-ending") for name in names) <= receiving.ENDING_THREADS


def test_a_client_that_is_gone(quick_house, tenant):
    class Gone(Exception):
        pass

    async def stream():
        yield CONTENT[:70_000]
        raise Gone

    record = announced(quick_house, tenant)
    with pytest.raises(Gone):
        asyncio.run(receive_stream(quick_house, tenant, "image", record, None, stream()))
    row = row_of(quick_house, record)
    assert (row.next_byte, row.lease_holder) == (70_000, None), "every byte that arrived stays"
    assert asyncio.run(upload(quick_house, tenant, record)).complete


def test_a_request_that_is_cancelled(quick_house, tenant):
    record = announced(quick_house, tenant)

    async def cancelled():
        arrived = asyncio.Event()

        async def stream():
            yield bytes(CONTENT[:90_000])
            arrived.set()
            await asyncio.sleep(600)
            yield b""

        request = receive_stream(quick_house, tenant, "image", record, None, stream())
        task = asyncio.create_task(request)
        await arrived.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert row_of(quick_house, record).lease_holder is None
        return await upload(quick_house, tenant, record)

    assert asyncio.run(cancelled()).complete


def test_a_request_that_is_cancelled_while_it_begins(quick_house, tenant, monkeypatch):
    record = announced(quick_house, tenant)
    begun, real = threading.Event(), upload_session.open_session

    def open_session(*about, **more):
        try:
            return real(*about, **more)
        finally:
            begun.set()

    monkeypatch.setattr(upload_session, "open_session", open_session)

    async def cancelled():
        task = asyncio.create_task(upload(quick_house, tenant, record))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert begun.wait(60)
    stop = time.monotonic() + 60
    while row_of(quick_house, record).lease_holder is not None:
        assert time.monotonic() < stop
        time.sleep(0.05)  # given back by the thread that took it
    assert asyncio.run(upload(quick_house, tenant, record)).complete


def test_a_body_that_is_refused_is_read_all_the_same(quick_house, tenant):
    """So that the client reads the answer instead of finding its connection broken."""
    record = announced(quick_house, tenant)
    read = []

    async def stream(content):
        async for piece in body(content):
            read.append(len(piece))
            yield piece

    for text, kind in (
        (f"bytes 0-{SIZE - 1}/{SIZE + 1}", Unprocessable),
        (None, Unprocessable),
    ):
        read.clear()
        content = CONTENT + CONTENT
        with pytest.raises(kind):
            asyncio.run(receive_stream(quick_house, tenant, "image", record, text, stream(content)))
        assert sum(read) == len(content)
    with pytest.raises(RecordNotFound):
        asyncio.run(receive_stream(quick_house, tenant, "image", "none", None, body(CONTENT)))


def test_refused_in_the_end(quick_house, tenant):
    record = announced(quick_house, tenant)
    with pytest.raises(Unprocessable):
        asyncio.run(receive_stream(quick_house, tenant, "image", record, None, body(bytes(SIZE))))
    assert state(quick_house, tenant, "image", record).next_byte == 0


def test_what_the_family_hears(quick_house, tenant):
    heard = []
    record = announced(quick_house, tenant)
    arrival = Arrival(finished=lambda connection, arrived: heard.append(arrived.byte_size))
    asyncio.run(
        receive_stream(quick_house, tenant, "image", record, None, body(CONTENT), arrival=arrival)
    )
    assert heard == [SIZE]


def test_what_waits_behind_a_piece_that_failed_is_not_written(quick_house, tenant, monkeypatch):
    """Several pieces are under way at once; a gap would be filled with the wrong bytes."""
    record = announced(quick_house, tenant)
    real, calls = UploadSession._append, []

    def full_once(self, new):
        calls.append(len(new))
        if len(calls) == 2:
            time.sleep(0.1)  # until more pieces wait
            raise StoreFull("no room")
        real(self, new)

    monkeypatch.setattr(UploadSession, "_append", full_once)
    monkeypatch.setattr(receiving, "GATHERED", FairBudget(1, least=1, most=1))
    with pytest.raises(StoreFull):
        asyncio.run(upload(quick_house, tenant, record))
    assert len(calls) == 2
    assert state(quick_house, tenant, "image", record).next_byte == calls[0]
    assert asyncio.run(upload(quick_house, tenant, record)).complete
