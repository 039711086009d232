"""Lists: all pages together are all rows, newest first, whatever comes or goes meanwhile."""

import base64

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fragdex.errors import InvalidRequest
from fragdex.service.records import pages, tables
from fragdex.service.records.identifiers import instant, new_id


def add(database, count):
    ids = [new_id() for _ in range(count)]
    with database.write() as connection:
        for tenant_id in ids:
            row = {"id": tenant_id, "name": tenant_id, "created_at": instant()}
            connection.execute(tables.tenants.insert().values(**row))
    return ids


def empty(database):
    with database.write() as connection:
        connection.execute(tables.tenants.delete())


def one_page(database, limit, cursor):
    with database.read() as connection:
        return pages.page(
            connection, sa.select(tables.tenants), tables.tenants, limit=limit, cursor=cursor
        )


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(count=st.integers(0, 25), limit=st.integers(1, 30), added=st.integers(0, 3), data=st.data())
def test_pages_together_are_all_rows_newest_first(database, count, limit, added, data):
    empty(database)
    there = add(database, count)
    gone = set()
    seen, cursor = [], None
    while True:
        page = one_page(database, limit, cursor)
        assert len(page.rows) <= limit
        seen += [row.id for row in page.rows]
        if page.next_cursor is None:
            break
        assert len(page.rows) == limit
        cursor = page.next_cursor
        add(database, added)
        left = sorted(set(there) - set(seen) - gone)
        if left and data.draw(st.booleans()):
            unlucky = data.draw(st.sampled_from(left))
            gone.add(unlucky)
            with database.write() as connection:
                row = tables.tenants.c.id == unlucky
                connection.execute(tables.tenants.delete().where(row))
    assert seen == [record for record in reversed(there) if record not in gone]


def test_identifiers_sort_by_time():
    ids = [new_id() for _ in range(5000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 5000


@pytest.mark.parametrize("limit", [0, -1, 201])
def test_limits_out_of_bounds_are_refused(sqlite_database, limit):
    with pytest.raises(InvalidRequest) as caught:
        one_page(sqlite_database, limit, None)
    assert caught.value.pointer == "limit"


@pytest.mark.parametrize(
    "cursor",
    ["", "a", "é", "%%%", base64.urlsafe_b64encode(b"nonsense").decode(), "A" * 5000, "\0"],
)
def test_cursors_that_are_none_are_refused(sqlite_database, cursor):
    with pytest.raises(InvalidRequest) as caught:
        one_page(sqlite_database, 10, cursor)
    assert caught.value.pointer == "cursor"
