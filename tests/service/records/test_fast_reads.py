"""Fast reads give what a query gives, or nothing; they never wait for long."""

import sqlite3
import threading
import time

import pytest
import sqlalchemy as sa

from fragdex.service.records import tables
from fragdex.service.records.identifiers import instant, new_id

TRASH = sa.select(tables.trash).where(tables.trash.c.store_key == sa.bindparam("key"))
BLOB = sa.select(tables.blobs).where(
    tables.blobs.c.md5 == sa.bindparam("md5"), tables.blobs.c.tenant_id == sa.bindparam("tenant")
)


def add(database, key):
    with database.write() as connection:
        connection.execute(tables.trash.insert().values(store_key=key, delete_after=instant()))


def test_a_fast_read_gives_what_a_query_gives(database):
    add(database, "a")
    tenant = new_id()
    with database.write() as connection:
        row = {"id": tenant, "name": "ours", "created_at": instant()}
        connection.execute(tables.tenants.insert().values(**row))
        row = {"tenant_id": tenant, "md5": bytes(range(16)), "sha256": bytes(32), "byte_size": 5}
        row |= {"store_key": "é", "stored_bytes": 5, "created_at": instant()}
        connection.execute(tables.blobs.insert().values(**row))
    for statement, values in (
        (TRASH, {"key": "a"}),
        (TRASH, {"key": "b"}),
        (BLOB, {"tenant": tenant, "md5": bytes(range(16))}),
    ):
        with database.read() as connection:
            long_way = connection.execute(statement, values).all()
        assert database.rows(statement, **values) == long_way
        if database.dialect == "postgresql":
            with pytest.raises(BlockingIOError):
                database.nonblocking().rows(statement, **values)
        else:
            rows = database.nonblocking().rows(statement, **values)
            assert [row._asdict() for row in rows] == [row._asdict() for row in long_way]


def test_a_fast_read_sees_what_was_committed_and_nothing_else(sqlite_database):
    assert sqlite_database.nonblocking().rows(TRASH, key="a") == []
    with sqlite_database.write() as connection:
        connection.execute(tables.trash.insert().values(store_key="a", delete_after=instant()))
        assert sqlite_database.nonblocking().rows(TRASH, key="a") == []
    assert len(sqlite_database.nonblocking().rows(TRASH, key="a")) == 1


def test_where_it_would_have_to_wait_it_tells_nothing(sqlite_database):
    add(sqlite_database, "a")
    sqlite_database.close()
    other = sqlite3.connect(sqlite_database.url.database, isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    with pytest.raises(BlockingIOError):
        sqlite_database.nonblocking().rows(TRASH, key="a")
    assert time.monotonic() - began < 10  # and not the 30 s of others
    other.rollback()
    other.close()
    assert len(sqlite_database.nonblocking().rows(TRASH, key="a")) == 1


def test_a_fast_read_cannot_write(sqlite_database):
    assert sqlite_database.nonblocking().rows(TRASH, key="a") == []
    (connection,) = sqlite_database._fast_reads._open
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("DELETE FROM fragdex_trash")


def test_each_thread_reads_by_itself(sqlite_database):
    add(sqlite_database, "a")
    answers = []
    threads = [
        threading.Thread(
            target=lambda: answers.append(sqlite_database.nonblocking().rows(TRASH, key="a"))
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(rows) for rows in answers] == [1] * 4
