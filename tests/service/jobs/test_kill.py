"""Processes die, freeze and meet poison: the work ends all the same, and once."""

import json
import os
import signal
import time

import pytest
import sqlalchemy as sa

from fragdex.errors import Unavailable

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("deaths")]


@pytest.mark.true_start
def test_the_work_of_a_killed_worker_is_taken_up(yard):
    yard.start()
    job = yard.order("sliced", "film", count=9, seconds=1)
    owner = yard.begun(job)
    yard.begun(f"{job}-s1")
    yard.kill(owner)

    assert yard.ended(job) == "done"

    (end,) = yard.lines("end", job)
    assert end.pid != owner
    assert json.loads(end.detail)["results"] == list(range(9))
    # Slices that had ended before are not done again.
    for n in range(9):
        begun = yard.lines("begin", f"{job}-s{n}")
        assert len(begun) == 1 or begun[0].pid == owner


def test_a_worker_that_comes_back_goes_on_with_its_own(yard):
    """One process, killed and started again, as on most machines."""
    (first,) = yard.start(1)
    job = yard.order("steps", "film", seconds=1)
    yard.begun(job)
    yard.kill(first)
    yard.start(1)
    assert yard.ended(job) == "done"
    assert [line.attempt for line in yard.lines("begin", job)] == [1, 2]


def test_a_frozen_worker_is_replaced_and_its_run_ends_without_a_trace(yard):
    yard.start()
    gate = yard.folder / "gate"
    job = yard.order("gated", "film", gate=str(gate), n=1)
    frozen = yard.begun(job)
    os.kill(frozen, signal.SIGSTOP)
    heir = yard.until(
        lambda: {line.pid for line in yard.lines("begin", job)} - {frozen}, "another that begins it"
    ).pop()
    os.kill(frozen, signal.SIGCONT)

    # The thawed worker works on, under a row of its own again.
    for n in range(100):
        assert yard.ended(yard.order("steps", f"later-{n}", seconds=1)) == "done"
        if frozen in {line.pid for line in yard.lines("end")}:
            break
    else:
        pytest.fail("the worker takes no work any more")
    # It has been told meanwhile: only the heir comes to the end.
    gate.touch()
    assert yard.ended(job) == "done"
    assert [line.pid for line in yard.lines("end", job)] == [heir]


def test_poison_is_given_up(yard):
    yard.start()
    job = yard.order("poison", "film")
    yard.begun(job)
    yard.begun(job, times=2)
    if yard.count == 2:  # both are dead now
        yard.start(1)
    assert yard.ended(job) == "failed"
    (failure,) = yard.lines("failed", job)
    assert "begun 2 times" in json.loads(failure.detail)["detail"]
    assert len(yard.lines("begin", job)) == 2


def test_a_poisonous_slice_fails_its_job_and_spares_the_rest(yard):
    yard.start()
    job = yard.order("sliced", "film", count=1, slice="poisonslice")
    slice_ = f"{job}-s0"
    yard.begun(slice_)
    yard.begun(slice_, times=2)
    yard.start(1)
    assert yard.ended(job) == "failed"
    assert "begun 2 times" in yard.lines("failed", job)[0].detail
    assert len(yard.lines("begin", slice_)) == 2


def test_a_database_that_was_away_costs_nothing(yard, postgres_url):
    """Every connection is cut and none is let in for longer than the lease."""
    if yard.database.dialect == "sqlite":
        pytest.skip("a file is not away")
    yard.start()
    job = yard.order("sliced", "film", count=6, seconds=1)
    yard.begun(f"{job}-s1")
    name = sa.engine.make_url(yard.url).database
    server = sa.create_engine(
        postgres_url, isolation_level="AUTOCOMMIT", poolclass=sa.pool.NullPool
    )
    with server.connect() as connection:
        connection.execute(sa.text(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false"))
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name"
        connection.execute(sa.text(cut), {"name": name})
        time.sleep(6)
        connection.execute(sa.text(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true"))

    assert yard.until(lambda: answered(yard, job) == "done", "the end of the job")

    # Nobody was taken for dead: all were silent for the same reason.
    assert {line.attempt for line in yard.lines("end")} == {1}
    assert len(yard.lines("begin")) == 7


def answered(yard, job):
    try:
        return yard.jobs.status(job)
    except Unavailable:
        return None
