"""Whatever dies in the middle of a render, it completes, and every frame is right."""

import io
import os
import signal
import time
from contextlib import suppress

import av
import numpy as np
import pytest

from fragdex.rendering.plan import ONE_BROWSER
from rendering.frames.numbers import plane
from service.descendants import browsers, descendants, gone
from service.renders.working import Renderer, numbers, numbers_of
from service.survival import slices
from service.survival.processes import until
from service.survival.slices import (  # noqa: F401
    any_site,
    cloud,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]
# What each kind of database makes of a worker's death is held by service/jobs/test_kill.py.
over_sqlite = pytest.mark.parametrize("any_site", ["sqlite"], indirect=True)
over_postgresql = pytest.mark.parametrize("any_site", ["postgresql"], indirect=True)

FRAMES = 90
HOW = {"duration_ms": 3000, "work_slice_ms": 1000}
# Takes its time for every frame, so that no machine is done before something dies.
BUSY = (
    "<script>(function f() { for (let i = 0; i < 2e7; i++); requestAnimationFrame(f) })()</script>"
)


def begun(client):
    """A render, and its id, of which some frames are done."""
    renderer = Renderer(client)
    id = renderer.begin(numbers() + BUSY, **HOW)
    renderer.until(id, lambda record: record["frames_done"] > 0)
    return renderer, id


def right(client, id):
    """The record of a render that completes, and shows every frame."""
    renderer = Renderer(client)
    record = renderer.ended(id)
    assert record["status"] == "complete", record
    film = client.get(f"/renders/{id}.mp4").content
    assert numbers_of(film) == list(range(FRAMES))
    return record


def attempts(client, id):
    return {one["attempts"] for one in client.get(f"/renders/{id}").json()["slices"]}


def tidy(site, client, id):
    """Nothing is left of a render but its record, and of that nothing once it is deleted."""
    until(lambda: not [file for file in site.work() if file.name.startswith(f"{id}.")])
    assert client.delete(f"/renders/{id}").status_code == 204
    site.age()
    until(lambda: site.sweep() or not site.left())


@over_postgresql
def test_a_worker_is_killed(any_site):  # noqa: F811
    serving = any_site.serve(job_workers=0)
    with any_site.client(serving) as client:
        record, _ = slices.a_worker_is_killed(any_site, client, begun, right)
        assert max(one["attempts"] for one in record["slices"]) == 2
        tidy(any_site, client, record["id"])


@over_sqlite
def test_the_service_is_killed_and_started_again(any_site):  # noqa: F811
    serving = any_site.serve(job_workers=1, slice_workers=2)
    with any_site.client(serving) as client:
        _, id = begun(client)
    before = list(descendants(serving.process.pid))
    serving.kill()
    gone(before)
    serving = any_site.serve(job_workers=1, slice_workers=2)
    with any_site.client(serving) as client:
        right(client, id)
        tidy(any_site, client, id)


@over_sqlite
def test_a_browser_is_killed(any_site):  # noqa: F811
    # No worker dies, and none is taken for dead: what counts is the attempt after the browser's.
    serving = any_site.serve(job_workers=1, slice_workers=2, lease_seconds=120)
    with any_site.client(serving) as client:
        _, id = begun(client)
        # One that has drawn its slice and is kept for the next costs no attempt.
        for _ in range(5):
            for pid in browsers(serving.process.pid):
                with suppress(ProcessLookupError):  # it went with the one before
                    os.kill(pid, signal.SIGKILL)
            deadline = time.monotonic() + 3
            while 2 not in attempts(client, id) and time.monotonic() < deadline:
                time.sleep(0.1)
            if 2 in attempts(client, id):
                break
        record = right(client, id)
        assert {one["attempts"] for one in record["slices"]} == {1, 2}
        tidy(any_site, client, id)


# A random key gives each browser a colour of its own, which two slices do not share.
COLOURED = """<style>
#own { position: absolute; left: 0; top: 150px; width: 320px; height: 30px }
</style>
<div id=own></div><script>
const make = crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, true, ["encrypt"]);
make.then((key) => crypto.subtle.exportKey("raw", key)).then((bytes) => {
  const grey = (value, i) => `hsl(0 0% ${value % 100}%) 0 ${10 * i + 10}px`;
  own.style.background = `linear-gradient(to right, ${[...new Uint8Array(bytes)].map(grey)})`;
});
</script>"""


@over_sqlite
def test_the_service_is_killed_while_one_browser_draws_a_film_again(any_site):  # noqa: F811
    """It is still drawn by one browser, and once: its slices do not come back."""
    serving = any_site.serve(job_workers=1, slice_workers=2)
    with any_site.client(serving) as client:
        renderer = Renderer(client)
        id = renderer.begin(numbers() + COLOURED + BUSY, **HOW)
        renderer.until(id, lambda record: len(record["slices"]) == 1 and record["frames_done"] > 0)
    before = list(descendants(serving.process.pid))
    serving.kill()
    gone(before)
    serving = any_site.serve(job_workers=1, slice_workers=2)
    with any_site.client(serving) as client:
        record = right(client, id)
        (one,) = record["slices"]
        assert (one["frames"], one["reused"], one["attempts"]) == (FRAMES, False, 2)
        assert record["seconds"]["discarded"] > 0
        assert [line for line in record["browser"] if line.startswith(ONE_BROWSER)]
        stripes = stripes_of(client.get(f"/renders/{id}.mp4").content)
        assert np.ptp(stripes, axis=0).max() < 20
        tidy(any_site, client, id)


def stripes_of(film):
    """The brightness of the stripes of each frame."""
    with av.open(io.BytesIO(film)) as container:
        return np.array([plane(frame)[165, 5:320:10] for frame in container.decode(video=0)])


@over_sqlite
def test_the_service_ends_well_and_hands_its_slices_back(any_site):  # noqa: F811
    slices.the_service_ends_well(any_site, begun, right)


def test_one_of_two_machines_dies(cloud):  # noqa: F811
    slices.one_of_two_machines_dies(cloud, begun, right)
