"""The store or the database fails in the middle of an upload: nothing that was told is lost."""

import hashlib
import threading
from datetime import timedelta

import pytest
import sqlalchemy as sa

from fragdex import ByteRange
from fragdex.errors import StoreFull, Unavailable
from fragdex.service.records import blobs, tables
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.uploads import hashing
from fragdex.service.uploads.hashing import FairBudget, OrderedWorker
from fragdex.service.uploads.operations import begin, receive, state

from .conftest import row_of

CONTENT = bytes(range(251)) * 400
SIZE = len(CONTENT)
MD5 = hashlib.md5(CONTENT).digest()
SHA256 = hashlib.sha256(CONTENT).digest()


class Failing:
    """A draft whose method `name` fails from its `after`-th call on, while `away` says so."""

    def __init__(self, store, name, after, error):
        self._store, self._name, self._after, self._error = store, name, after, error
        self.away = True
        self._calls = 0

    def draft(self, name):
        draft = self._store.draft(name)
        whole = self

        class FailingDraft:
            def __getattr__(self, attribute):
                if attribute == whole._name and whole.away:
                    whole._calls += 1
                    if whole._calls >= whole._after:
                        raise whole._error
                return getattr(draft, attribute)

        return FailingDraft()

    def __getattr__(self, attribute):
        return getattr(self._store, attribute)


@pytest.mark.parametrize("error", [StoreFull("full"), Unavailable("away")], ids=["full", "away"])
@pytest.mark.parametrize(
    ("name", "after"), [("append", 1), ("append", 4), ("sync", 1), ("sync", 3), ("finish", 1)]
)
def test_a_store_that_fails(quick_house, tenant, name, after, error):
    record = new_id()
    with quick_house.database.write() as connection:
        begin(quick_house, connection, tenant, "image", record, SIZE, MD5)
    good = quick_house.store
    quick_house.store = failing = Failing(good, name, after, error)
    offsets = []

    def send(start, stop):
        pieces = [CONTENT[at : min(at + 7000, stop)] for at in range(start, stop, 7000)]
        text = f"bytes {start}-{stop - 1}/{SIZE}"
        return receive(quick_house, tenant, "image", record, text, pieces)

    def send_all():
        starts = range(0, SIZE, 20_000)
        offsets.extend(send(start, min(SIZE, start + 20_000)).next_byte for start in starts)

    with pytest.raises(type(error)):
        send_all()
    now = state(quick_house, tenant, "image", record)
    assert not now.complete
    assert now.next_byte >= max(offsets, default=0)
    assert row_of(quick_house, record).lease_holder is None
    failing.away = False
    assert send(now.next_byte, SIZE).complete
    with quick_house.database.read() as connection:
        blob = blobs.find(connection, tenant, SHA256)
    assert b"".join(good.read(blob.store_key, ByteRange(0, SIZE))) == CONTENT


def test_a_database_that_is_away_while_bytes_flow(quick_house, tenant, monkeypatch):
    record = new_id()
    with quick_house.database.write() as connection:
        begin(quick_house, connection, tenant, "image", record, SIZE, MD5)
    database = quick_house.database
    write = database.write

    def pieces():
        yield CONTENT[:30_000]
        monkeypatch.setattr(database, "write", away)
        yield CONTENT[30_000:]

    def away(**how):
        raise Unavailable("the database does not answer")

    with pytest.raises(Unavailable):
        receive(quick_house, tenant, "image", record, None, pieces())
    monkeypatch.setattr(database, "write", write)
    # the lease could not be given back; it ends by itself, and the bytes come again
    with write() as connection:
        lease = sa.update(tables.uploads).where(tables.uploads.c.record_id == record)
        connection.execute(lease.values(lease_until=instant() - timedelta(seconds=1)))
    assert state(quick_house, tenant, "image", record).next_byte == 0
    assert receive(quick_house, tenant, "image", record, None, [CONTENT]).complete


class TestStrands:
    def test_what_work_raises_is_raised_where_it_is_waited_for(self):
        class Broken(Exception):
            pass

        def work(piece):
            raise Broken

        worker = OrderedWorker(work)
        worker.put(b"a", 10)
        with pytest.raises(Broken):
            worker.wait()
        with pytest.raises(Broken):
            worker.put(b"b", 10)

    def test_never_far_ahead(self):
        gate = threading.Event()
        worker = OrderedWorker(lambda piece: gate.wait())
        worker.put(b"12345", 8)
        worker.put(b"12345", 8)
        third = threading.Thread(target=worker.put, args=(b"12345", 8))
        third.start()
        third.join(0.1)
        assert third.is_alive(), "more than 8 bytes are waiting"
        gate.set()
        third.join()
        worker.wait()

    def test_shares(self):
        shares = FairBudget(100, least=10, most=50)
        seen = []
        for _ in range(20):
            shares.enter()
            seen.append(shares.each)
        assert seen[:3] == [50, 50, 33]
        assert seen[-1] == 10
        for _ in range(20):
            shares.leave()
        assert shares.each == 50


def test_a_watcher_with_a_fault_of_its_own_ends_the_request(quick_house, tenant):
    class Faulty:
        def feed(self, data):
            raise ZeroDivisionError

    hashes = hashing.Hashes(Faulty())
    hashes.feed(b"abc")
    with pytest.raises(ZeroDivisionError):
        hashes.wait()
