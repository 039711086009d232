"""What a service consists of, of real parts: both databases, real stores."""

from types import SimpleNamespace

import pytest
import sqlalchemy as sa

from fragdex.service.records import tables
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.store import open_store
from fragdex.service.uploads import hashing

LEASE_S = 60.0
"""So long that no slow machine lets one end while a test goes on; tests end them by `expire`."""


def a_context(database, store, lease_seconds=LEASE_S):
    """What uploads need of a context."""
    settings = SimpleNamespace(lease_seconds=lease_seconds)
    return SimpleNamespace(settings=settings, database=database, store=store)


def new_tenant(database):
    tenant = new_id()
    with database.write() as connection:
        connection.execute(
            tables.tenants.insert().values(id=tenant, name=tenant, created_at=instant())
        )
    return tenant


def row_of(context, record_id, family="image"):
    query = sa.select(tables.uploads).where(
        tables.uploads.c.record_id == record_id, tables.uploads.c.family == family
    )
    with context.database.read() as connection:
        return connection.execute(query).one()


@pytest.fixture(autouse=True)
def _no_memory_of_other_tests():
    hashing.held.clear()


@pytest.fixture
def context(database, tmp_path):
    return a_context(database, open_store(tmp_path / "store"))


@pytest.fixture(params=["disk", "objects"])
def quick_house(request, sqlite_database, tmp_path):
    """For laws that have nothing to do with the database; over both kinds of store."""
    where = tmp_path / "store" if request.param == "disk" else "memory://"
    return a_context(sqlite_database, open_store(where))


@pytest.fixture
def tenant(request):
    name = "context" if "context" in request.fixturenames else "quick_house"
    return new_tenant(request.getfixturevalue(name).database)
