"""Files are processed whatever dies: once, whole, and nothing is left of what was broken off."""

import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from processes import (
    announced_track,
    done,
    emptied,
    holds,
    noise,
    ordered,
    progress,
    span,
    until,
)

from fragdex.service.records import tables

pytestmark = pytest.mark.slow


def test_one_process_is_killed_and_started_again(site, slow_film):
    serving = site.serve(job_workers=1)
    with site.client(serving) as client:
        process, _ = ordered(client, slow_film)
        until(lambda: progress(site) > 0)
    with serving.held_up():
        serving.kill()
    assert progress(site) < 1

    serving = site.serve(job_workers=1)
    with site.client(serving) as client:
        record = done(client, process)
        assert holds(client, slow_film)["id"] == record["isobmff_file_id"]
        until(lambda: not serving.works)
        emptied(site, client)


def test_sigterm_lets_requests_end_and_hands_jobs_back(site, slow_film):
    serving = site.serve(job_workers=1)
    data = noise(1 << 20)
    with site.client(serving) as client, ExitStack() as stack:
        process, _ = ordered(client, slow_film)
        path = announced_track(client, data)
        until(lambda: progress(site) > 0)
        stack.enter_context(serving.held_up())

        def slowly():
            yield data[:1000]
            # On a busy machine the request may not have arrived, and would not be one in progress.
            until(lambda: any(upload.lease_holder for upload in site.rows(tables.uploads)))
            serving.process.terminate()
            time.sleep(0.5)
            yield data[1000:]

        headers = {**span(0, len(data), len(data)), "Content-Length": str(len(data))}
        answer = client.post(f"{path}/upload", content=slowly(), headers=headers)
        assert answer.status_code == 201
        serving.ended()
    assert progress(site) < 1
    # Handed back, not left to be found: no attempt is counted, no worker is missed.
    (job,) = site.rows(tables.jobs)
    assert (job.attempt, job.problem, site.rows(tables.executors)) == (0, None, [])

    serving = site.serve(job_workers=1)
    with site.client(serving) as client:
        done(client, process)
        assert client.get(path).content == data
        until(lambda: not serving.works)


@pytest.mark.parametrize("end", ["killed", "frozen"])
def test_a_worker_beside_the_service_is(end, site, slow_film):
    """SQLite: one process answers, another works; a third one takes its place."""
    serving, first = site.serve(job_workers=0), site.worker()
    with site.client(serving) as client:
        process, _ = ordered(client, slow_film)
        until(lambda: progress(site) > 0)
        with first.held_up() as media:
            assert media or not any(Path("/proc/self/task").glob("*/children"))
            first.kill() if end == "killed" else first.freeze()
        if end == "killed":
            # what it had started does not work on for nobody
            until(lambda: not any(map(is_alive, media)))
        second = site.worker()
        done(client, process)
        file = holds(client, slow_film)
        before = client.get(f"/isobmff_files/{file['id']}").json()
        if end == "frozen":
            first.thaw()
        until(lambda: not second.works)
        assert client.get(f"/isobmff_files/{file['id']}").json() == before
        emptied(site, client)
        second.end()
    if end == "frozen":
        first.end()


def is_alive(pid):
    """Whether it runs; one that ended and that nobody has asked about does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_one_of_two_workers_on_other_machines_is_killed(cloud, slow_film):
    """PostgreSQL and an object store, three processes: the other worker takes up the work."""
    serving = cloud.serve(job_workers=0)
    workers = [cloud.worker(apart=True), cloud.worker(apart=True)]
    with cloud.client(serving) as client:
        events = []
        process, _ = ordered(client, slow_film)
        listening = threading.Thread(target=listen, args=(client, process, events))
        listening.start()
        until(lambda: progress(cloud) > 0)
        (owner,) = (worker for worker in workers if worker.works)
        (heir,) = (worker for worker in workers if worker is not owner)
        with owner.held_up():
            owner.kill()
        done(client, process)
        listening.join()
        event_lines = [line for line in events if line.startswith("event: ")]
        assert event_lines[-1] == "event: complete"
        assert set(event_lines) <= {"event: progress", "event: complete", "event: heartbeat"}
        holds(client, slow_film)
        until(lambda: not heir.works)
        for killed in (owner.data / "work").iterdir():
            killed.rename(cloud.folder / "gone-with-its-machine")
        emptied(cloud, client)
    heir.end()
    serving.end()


def listen(client, process, events):
    with client.stream("GET", f"{process}/progress") as answer:
        events.extend(answer.iter_lines())
