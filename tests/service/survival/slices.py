"""Whatever dies while slices are worked on: stories that renders and transcriptions share.

A test gives `begun`, which asks a client for work and returns who asked and the id once some of it
is done, and `right`, which waits with a client until that work is complete, looks at what came of
it, and returns its record.
"""

import pytest

from fragdex.service.records import tables
from service.descendants import descendants, gone
from service.survival.processes import Site

__all__ = [
    "a_worker_is_killed",
    "any_site",
    "cloud",
    "one_of_two_machines_dies",
    "the_service_ends_well",
]


@pytest.fixture(params=["sqlite", "postgresql"])
def any_site(request, tmp_path):
    """Each kind of database in turn, and a folder."""
    url = request.getfixturevalue("new_postgres")() if request.param == "postgresql" else ""
    new_site = Site(tmp_path, url)
    yield new_site
    new_site.close()


@pytest.fixture
def cloud(tmp_path, new_postgres, s3_url):
    """PostgreSQL and an object store: nothing is kept on the machines that work."""
    new_site = Site(tmp_path, new_postgres(), s3_url)
    yield new_site
    new_site.close()


def a_worker_is_killed(site, client, begun, right):
    """Another finishes the work; gives its record, and how much was done at the death."""
    first = site.worker(slice_workers=2)
    asker, id = begun(client)
    before = list(descendants(first.process.pid))
    done = asker.done(id)
    first.kill()
    gone(before)
    kept = asker.done(id)
    assert kept >= done
    site.worker(slice_workers=2)
    return right(client, id), kept


def the_service_ends_well(site, begun, right):
    """It hands its slices back, and finishes them when it is started again."""
    serving = site.serve(job_workers=1, slice_workers=2)
    with site.client(serving) as client:
        _, id = begun(client)
    before = list(descendants(serving.process.pid))
    serving.end()
    gone(before)
    assert all(job.problem is None for job in site.rows(tables.jobs))
    serving = site.serve(job_workers=1, slice_workers=2)
    with site.client(serving) as client:
        right(client, id)


def one_of_two_machines_dies(cloud, begun, right):
    """The other reads what it needs from the store."""
    serving = cloud.serve(job_workers=0)
    one = cloud.worker(apart=True, slice_workers=1)
    with cloud.client(serving) as client:
        _, id = begun(client)
        cloud.worker(apart=True, slice_workers=1)
        one.kill()
        right(client, id)
