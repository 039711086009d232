"""Whatever dies in the middle of a render, it completes, and every frame is right."""

import os
import signal
from contextlib import suppress

import pytest

from fragdex.service.records import tables
from service.renders.working import Renderer, browsers, descendants, gone, numbers, numbers_of
from service.store.conftest import s3_environment, s3_server, s3_url  # noqa: F401
from service.survival.processes import Site, until

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]

FRAMES = 90
HOW = {"duration_ms": 3000, "work_slice_ms": 1000}
# Takes its time for every frame, so that no machine is done before something dies.
BUSY = (
    "<script>(function f() { for (let i = 0; i < 2e7; i++); requestAnimationFrame(f) })()</script>"
)


@pytest.fixture(params=["sqlite", "postgresql"])
def site(request, tmp_path):
    """Each kind of database, and a folder."""
    url = request.getfixturevalue("new_postgres")() if request.param == "postgresql" else ""
    made = Site(tmp_path, url)
    yield made
    made.close()


@pytest.fixture
def cloud(tmp_path, new_postgres, s3_url):  # noqa: F811
    """PostgreSQL and an object store: nothing is kept on the machines that work."""
    made = Site(tmp_path, new_postgres(), s3_url)
    yield made
    made.close()


def begun(client):
    """A render, and its id, of which some frames are done."""
    renderer = Renderer(client)
    id = renderer.begin(numbers() + BUSY, **HOW)
    renderer.until(id, lambda record: record["frames_done"] > 0)
    return renderer, id


def right(renderer, id):
    """The record of a render that completes, and shows every frame."""
    record = renderer.ended(id)
    assert record["status"] == "complete", record
    film = renderer.client.get(f"/renders/{id}.mp4").content
    assert numbers_of(film) == list(range(FRAMES))
    return record


def tidy(site, renderer, id):
    """Nothing is left of a render but its record, and of that nothing once it is deleted."""
    until(lambda: not [file for file in site.work() if file.name.startswith(f"{id}.")])
    assert renderer.client.delete(f"/renders/{id}").status_code == 204
    site.age()
    until(lambda: site.sweep() or not site.left())


def test_a_worker_is_killed(site):
    serving, first = site.serve(job_workers=0), site.worker(slice_workers=2)
    with site.client(serving) as client:
        renderer, id = begun(client)
        before = list(descendants(first.process.pid))
        done = renderer.record(id)["frames_done"]
        first.kill()
        gone(before)
        assert renderer.record(id)["frames_done"] >= done
        site.worker(slice_workers=2)
        record = right(renderer, id)
        assert max(one["attempts"] for one in record["slices"]) == 2
        tidy(site, renderer, id)


def test_the_service_is_killed_and_started_again(site):
    serving = site.serve(job_workers=1, slice_workers=2)
    with site.client(serving) as client:
        _, id = begun(client)
    before = list(descendants(serving.process.pid))
    serving.kill()
    gone(before)
    serving = site.serve(job_workers=1, slice_workers=2)
    with site.client(serving) as client:
        renderer = Renderer(client)
        right(renderer, id)
        tidy(site, renderer, id)


def test_a_browser_is_killed(site):
    serving = site.serve(job_workers=1, slice_workers=2)
    with site.client(serving) as client:
        renderer, id = begun(client)
        for pid in browsers(serving.process.pid):
            with suppress(ProcessLookupError):  # it went with the one before
                os.kill(pid, signal.SIGKILL)
        record = right(renderer, id)
        assert {one["attempts"] for one in record["slices"]} == {1, 2}
        tidy(site, renderer, id)


def test_the_service_ends_well_and_hands_its_slices_back(site):
    serving = site.serve(job_workers=1, slice_workers=2)
    with site.client(serving) as client:
        _, id = begun(client)
    before = list(descendants(serving.process.pid))
    serving.end()
    gone(before)
    assert all(job.problem is None for job in site.rows(tables.jobs))
    serving = site.serve(job_workers=1, slice_workers=2)
    with site.client(serving) as client:
        right(Renderer(client), id)


def test_one_of_two_machines_dies(cloud):
    serving = cloud.serve(job_workers=0)
    one = cloud.worker(apart=True, slice_workers=1)
    with cloud.client(serving) as client:
        renderer, id = begun(client)
        cloud.worker(apart=True, slice_workers=1)
        one.kill()
        right(renderer, id)
