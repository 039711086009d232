"""Sites of every kind, and a film that takes some seconds to process."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from processes import Site, film

from service.survival.slices import cloud  # noqa: F401


@pytest.fixture
def site(tmp_path):
    """SQLite and a folder: what `fragdex serve` has without any set-up."""
    new_site = Site(tmp_path)
    yield new_site
    new_site.close()


@pytest.fixture
def postgres_site(tmp_path, new_postgres):
    """PostgreSQL and a folder."""
    new_site = Site(tmp_path, new_postgres())
    yield new_site
    new_site.close()


@pytest.fixture(scope="session")
def slow_film(tmp_path_factory):
    return film(tmp_path_factory.mktemp("film") / "film.mkv").read_bytes()
