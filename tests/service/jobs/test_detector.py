"""What the detector needs of the engine, so that a new release of it cannot break us silently."""

import inspect

import pytest
from dbos import DBOS
from sqlalchemy import select

from fragdex.service.jobs import detector
from fragdex.service.jobs.executors import Executor
from fragdex.service.records.tables import executors


@pytest.fixture
def abandoned(yard):
    """A job that was begun by a worker that is dead now, and nobody to take it up."""
    (worker,) = yard.start(1)
    job = yard.order("steps", "film", seconds=1)
    yard.begun(job)
    yard.kill(worker)
    return job


def test_the_engine_still_has_the_call_that_is_not_public():
    signature = inspect.signature(DBOS._recover_pending_workflows)
    assert next(iter(signature.parameters)) == "executor_ids"


def owner(yard, job):
    (state,) = yard.jobs._engine.states([job])
    return state


def test_the_dead_are_those_that_began_work_and_are_silent(yard, abandoned):
    engine, database = yard.jobs._engine, yard.database
    begun = owner(yard, abandoned)
    assert begun.status == "PENDING"
    assert detector.dead_owners(database, engine, "me", 3600) == []
    assert detector.dead_owners(database, engine, begun.executor, 0) == []
    assert detector.dead_owners(database, engine, "me", 0) == [begun.executor]
    # Its row stays as long as something is its own; a row of nothing goes.
    detector.beat(database, "idle")
    detector.dead_owners(database, engine, "me", -1)
    with database.read() as connection:
        assert list(connection.execute(select(executors.c.id)).scalars()) == [begun.executor]
    detector.leave(database, begun.executor)
    assert detector.dead_owners(database, engine, "me", 3600) == [begun.executor]


@pytest.mark.parametrize("way", ["public", "automatic"])
def test_what_the_dead_had_begun_is_queued_again(yard, abandoned, way, monkeypatch):
    engine, database = yard.jobs._engine, yard.database
    if way == "automatic":
        monkeypatch.setattr(type(engine), "recover", missing)
    dead = [owner(yard, abandoned).executor]
    detector.take_over_by_public_calls(database, engine, ["somebody else"], 10)
    assert owner(yard, abandoned).status == "PENDING"
    if way == "automatic":
        detector.take_over(database, engine, dead, 10)
    else:
        detector.take_over_by_public_calls(database, engine, dead, 10)
    assert owner(yard, abandoned).status == "ENQUEUED"
    yard.start(1)
    assert yard.ended(abandoned) == "done"
    # The engine counts from 0 again after such a call, and we do not.
    assert [line.attempt for line in yard.lines("begin", abandoned)] == [1, 2]


def missing(*_):
    raise AttributeError("_recover_pending_workflows")


def test_one_watcher_at_a_time_uses_public_calls(yard):
    assert detector._locked(yard.database, 3600)
    assert not detector._locked(yard.database, 3600)
    assert detector._locked(yard.database, 0)


def test_processes_of_one_machine_have_different_ids(tmp_path):
    first, second = Executor(tmp_path), Executor(tmp_path)
    assert first.id != second.id
    first.close()
    heir = Executor(tmp_path)
    assert heir.id == first.id
    heir.close()
    second.close()


def test_processes_of_several_machines_have_an_id_for_each_start():
    assert Executor(None).id != Executor(None).id
