"""A context that works on this family alone, over each kind of database."""

import pytest

from service.unprocessed import worker_program


@pytest.fixture
def context(database_url, tmp_path):
    with worker_program.new_context(database_url, tmp_path) as opened:
        yield opened
