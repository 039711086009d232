"""A context that works on this family alone, over each kind of database."""

import pytest

from fragdex.service.jobs.engine import upgrade
from fragdex.service.records import migrations
from service.unprocessed import worker_program


@pytest.fixture
def context(database_url, tmp_path):
    opened = worker_program.open_context(database_url, tmp_path)
    migrations.upgrade(opened.database)
    upgrade(opened.database)
    yield opened
    opened.jobs.close()
    opened.database.close()
