"""Processes of the version before run beside those of this one: each step only adds.

The version before is told by its own step, which declares its tables and never changes.
"""

from __future__ import annotations

import contextlib
import importlib

import pytest
import sqlalchemy as sa

from fragdex.errors import ConfigError
from fragdex.service.records import migrations, tables
from fragdex.service.records.database import Database
from fragdex.service.records.identifiers import instant, new_id
from fragdex.service.records.migrations import COMPATIBLE_SINCE, known_versions, upgrade

FIRST = importlib.import_module("fragdex.service.records.migrations.versions.r0021_first")


@pytest.fixture(scope="module")
def before():
    """The tables of the version before, as its processes know them."""
    return FIRST.declared()


def value_of(column, ids):
    if column.foreign_keys:
        (key,) = column.foreign_keys
        return ids[key.column.table.name]
    kind = column.type
    if isinstance(kind, sa.DateTime):
        return instant()
    if isinstance(kind, sa.JSON):
        return {"a": "ä"}
    if isinstance(kind, sa.LargeBinary):
        return b"0123456789abcdef"
    if isinstance(kind, sa.String):
        return new_id()[: kind.length or 36]
    return kind.python_type(1)


def test_the_version_before_is_the_oldest_that_may_run(database):
    assert known_versions()[-2] == COMPATIBLE_SINCE
    with database.read() as connection:
        assert connection.execute(sa.select(tables.schema)).one() == (
            known_versions()[-1],
            COMPATIBLE_SINCE,
        )


def test_what_the_version_before_writes_and_reads_is_as_it_was(database, before):
    """Its rows, before and after the step; every statement names the columns that it knows."""
    ids = {}
    with database.write() as connection:
        for table in before.sorted_tables:
            row = {column.name: value_of(column, ids) for column in table.columns}
            ids[table.name] = row.get("id")
            connection.execute(table.insert().values(row))
            short = {name: value for name, value in row.items() if not table.c[name].nullable}
            own = table.primary_key.columns.keys()
            stored_row = connection.execute(sa.select(table)).mappings().one()
            assert {name: stored_row[name] for name in own} == {name: short[name] for name in own}
            connection.execute(table.update().values({name: row[name] for name in row}))
    with database.read() as connection:
        for table in before.sorted_tables:
            now = tables.metadata.tables[table.name]
            assert len(connection.execute(sa.select(now)).all()) == 1
            if "row_bytes" in now.c:
                assert connection.scalar(sa.select(now.c.row_bytes)) >= 256


def test_rows_that_were_there_before_the_step_count_after_it(new_database_before, before):
    database = new_database_before
    with database.write() as connection:
        connection.execute(
            before.tables["fragdex_tenants"].insert().values(id="t", name="t", created_at=instant())
        )
        connection.execute(
            before.tables["fragdex_timelines"]
            .insert()
            .values(id="a", tenant_id="t", name="ää", files=[1], gaps="keep", created_at=instant())
        )
    upgrade(database)
    with database.read() as connection:
        assert connection.scalar(sa.select(tables.timelines.c.row_bytes)) == 256 + 4 + len("[1]")


@pytest.fixture
def new_database_before(database_url):
    """A database that the version before has made."""
    with contextlib.closing(Database(database_url)) as database:
        with database.write(remaking=True) as connection:
            migrations._step_to(connection, COMPATIBLE_SINCE)
        yield database


def test_a_process_starts_on_tables_that_a_newer_one_says_it_may_use(database):
    """As the version before will, when the next one has been there."""
    newer = "0999"
    with database.write() as connection:
        version = sa.table(migrations.VERSION_TABLE, sa.column("version_num"))
        connection.execute(version.update().values(version_num=newer))
        row = {"version": newer, "compatible_since": known_versions()[-1]}
        connection.execute(tables.schema.update().values(row))
    upgrade(database)
    with database.read() as connection:
        assert connection.scalar(sa.select(version.c.version_num)) == newer, "it was left alone"
    with database.write() as connection:
        connection.execute(tables.schema.update().values(compatible_since="0998"))
    with pytest.raises(ConfigError, match="newer"):
        upgrade(database)
