"""A context that works on this family alone, over each kind of database."""

import pytest

from fragdex.service.jobs.engine import upgrade
from fragdex.service.records import migrations, tables
from fragdex.service.records.identifiers import instant, new_id
from service.unprocessed import worker_program


@pytest.fixture
def context(database_url, tmp_path):
    opened = worker_program.open_context(database_url, tmp_path)
    migrations.upgrade(opened.database)
    upgrade(opened.database)
    yield opened
    opened.jobs.close()
    opened.database.close()


@pytest.fixture
def tenant(context):
    tenant = new_id()
    with context.database.write() as connection:
        values = {"id": tenant, "name": tenant, "created_at": instant()}
        connection.execute(tables.tenants.insert().values(**values))
    return tenant
