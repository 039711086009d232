"""What a family may rely on: one commit, one job an order, slices in order, honest failures."""

import json
import signal
import threading
import time

import pytest

from fragdex.errors import ConfigError
from fragdex.service.config import Settings
from fragdex.service.jobs.runs import JobRuns
from fragdex.service.jobs.work import JOBS, PARENTS, SLICES, WEBHOOKS, JobOptions, Stop
from fragdex.service.web.health import StateMetrics


def test_an_order_that_is_rolled_back_was_never_given(yard):
    job = "steps-r1"
    with pytest.raises(RuntimeError, match="on second thoughts"):
        order_and_fail(yard)
    assert yard.jobs.status(job) is None
    assert yard.order("steps", "r1") == job
    assert yard.jobs.status(job) == "queued"


def order_and_fail(yard):
    with yard.database.write() as connection:
        assert yard.jobs.enqueue(connection, "steps", "r1", tenant_id="t") == "steps-r1"
        raise RuntimeError("on second thoughts")


def test_the_same_order_is_one_job(yard):
    assert yard.order("steps", "r1") == yard.order("steps", "r1") == "steps-r1"
    with yard.database.write() as connection:
        assert yard.jobs.enqueue(connection, "steps", "r1", tenant_id="t", again=2) == "steps-r1-2"


def test_unknown_work_is_refused_before_it_is_ordered(yard):
    with pytest.raises(ConfigError):
        yard.order("unheard-of", "r1")


def test_two_works_of_one_name_are_refused(yard):
    import program

    with pytest.raises(ConfigError):
        yard.jobs.register(*program.works(print))


def test_jobs_end(yard):
    """Everything a worker may meet in one go: success, slices, errors that pass and that stay."""
    yard.start(1)
    fine = yard.order("steps", "fine", n=7)
    sliced = yard.order("sliced", "film", count=5)
    weather = yard.order("raises", "weather", times=2)
    broken = yard.order("raises", "broken", times=1, final=True)
    storm = yard.order("raises", "storm", times=9)
    gone = yard.order("steps", "gone")
    yard.jobs.cancel(gone)
    ordered = time.time()
    with yard.database.write() as connection:
        later = yard.jobs.enqueue(
            connection, "steps", "later", {"n": 1}, tenant_id="t", delay_seconds=1.5
        )

    ends = {job: yard.ended(job) for job in (fine, sliced, weather, broken, storm, gone, later)}

    assert ends == {
        fine: "done",
        sliced: "done",
        weather: "done",
        broken: "failed",
        storm: "failed",
        gone: "cancelled",
        later: "done",
    }
    # No sooner than its order says; the log tells milliseconds.
    begun = [
        line.split() for line in yard.path.read_text().splitlines() if "begin steps-later" in line
    ]
    assert float(begun[0][0]) > ordered + 1.49
    (end,) = yard.lines("end", sliced)
    assert json.loads(end.detail) == {"results": [0, 1, 2, 3, 4], "seen": [0, 1, 2, 3, 4]}
    assert [line.attempt for line in yard.lines("begin", weather)] == [1, 2, 3]
    # An error that no repetition mends is not repeated, and speaks for itself.
    (failure,) = yard.lines("failed", broken)
    assert failure.attempt == 1
    assert json.loads(failure.detail) == {"error": "Unprocessable", "detail": "not a film"}
    # Others are tried as often as is allowed, and their text is told to nobody outside.
    (failure,) = yard.lines("failed", storm)
    assert failure.attempt == 3
    assert "weather" not in failure.detail
    assert not yard.lines(job=gone)

    # What is over is forgotten in time, and can be ordered anew.
    assert yard.jobs.purge(days=1) == 0
    assert yard.jobs.purge(days=-1) >= 6
    assert yard.jobs.status(fine) is None


def test_a_cancelled_job_ends_with_all_its_slices(yard):
    yard.start(1)
    job = yard.order("sliced", "film", count=8, seconds=300)
    yard.begun(f"{job}-s0")
    yard.begun(f"{job}-s1")
    yard.until(lambda: waiting_slices(yard) == {"slice": 2}, "two slices wait")

    assert yard.jobs.cancel(job)
    assert not yard.jobs.cancel(job)

    assert yard.ended(job) == "cancelled"
    # Two run, two are there when those end, and the rest was never put into the queue.
    for n in range(4):
        assert yard.ended(f"{job}-s{n}") == "cancelled"
    assert [yard.jobs.status(f"{job}-s{n}") for n in range(4, 8)] == [None] * 4
    assert len(yard.lines("begin")) == 3
    assert not yard.lines("end")
    assert waiting_slices(yard) == {}, "they were never begun, and wait no longer"


def waiting_slices(yard):
    """What `/metrics` tells of slices, by work."""
    metrics = StateMetrics(Settings(data=yard.folder), yard.database).collect()
    (gauge,) = (one for one in metrics if one.name == "fragdex_waiting_slices")
    return {sample.labels["work"]: sample.value for sample in gauge.samples}


def test_jobs_that_wait_for_slices_keep_nobody_waiting(yard):
    """A job that works begins beside them, and the slices of all of them take turns."""
    yard.start(1, job_workers=1, slice_workers=1)
    long = yard.order("waiting", "long", count=20, seconds=0.2)
    yard.begun(f"{long}-s1")
    short = yard.order("waiting", "short", count=3, seconds=0.2)
    plain = yard.order("steps", "plain")
    assert [yard.ended(job) for job in (plain, short)] == ["done", "done"]
    assert yard.ended(long) == "done"
    ends = [line.job for line in yard.lines("end")]
    assert ends.index(short) < ends.index(long)


def test_a_stopping_worker_hands_its_work_to_the_next(yard):
    (first,) = yard.start(1)
    job = yard.order("steps", "long", seconds=3)
    yard.begun(job)
    process = yard.processes[first]
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert yard.jobs.status(job) == "queued"

    (second,) = yard.start(1)

    assert yard.ended(job) == "done"
    (end,) = yard.lines("end", job)
    # Handed back is not failed: it is the first attempt still.
    assert (end.pid, end.attempt) == (second, 1)


def test_two_that_order_the_same_at_once_make_one_job(yard):
    errors = []

    def order():
        try:
            yard.order("steps", "r1")
        except Exception as error:  # noqa: BLE001  told below
            errors.append(error)

    threads = [threading.Thread(target=order) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert yard.jobs.status("steps-r1") == "queued"


def test_small_jobs_are_asked_for_most_often(yard):
    """A slot that is free waits for the next poll; asking for what takes long would be in vain."""
    yard.start(1, poll_seconds=0.04)
    table = "queues" if yard.database.dialect == "sqlite" else "dbos.queues"

    def polls():
        with yard.database.read() as connection:
            rows = connection.exec_driver_sql(f"SELECT name, polling_interval_sec FROM {table}")
            return {name: seconds for name, seconds in rows.all() if "_dbos" not in name}

    assert yard.until(lambda: len(intervals := polls()) == 4 and intervals) == {
        JOBS: pytest.approx(0.04),
        SLICES: pytest.approx(0.08),
        PARENTS: pytest.approx(0.2),
        WEBHOOKS: pytest.approx(0.2),
    }


def test_a_job_that_is_taken_while_its_process_stops_is_not_begun():
    """It stays as it is in the queue, for another process."""
    stopping = threading.Event()
    stopping.set()
    runs = JobRuns(None, JobOptions(), {"film": object()}, None, stopping, None)
    with pytest.raises(Stop):
        runs.run(None, "job", "film", "record", {}, None)
    assert not runs.going
