"""Which workers are dead, and what becomes of the work that they had begun."""

import pytest
from sqlalchemy import select

from fragdex.service.jobs import workers
from fragdex.service.jobs.workers import Executor
from fragdex.service.records.tables import executors


@pytest.fixture
def abandoned(yard):
    """A job that was begun by a worker that is dead now, and nobody to take it up."""
    (worker,) = yard.start(1)
    job = yard.order("steps", "film", seconds=1)
    yard.begun(job)
    yard.kill(worker)
    return job


def owner(yard, job):
    (state,) = yard.jobs._engine.states([job])
    return state


def test_the_dead_are_those_that_began_work_and_are_silent(yard, abandoned):
    engine, database = yard.jobs._engine, yard.database
    begun = owner(yard, abandoned)
    assert begun.status == "PENDING"
    assert workers.dead_owners(database, engine, "me", 3600) == []
    assert workers.dead_owners(database, engine, begun.executor, 0) == []
    assert workers.dead_owners(database, engine, "me", 0) == [begun.executor]
    # Its row stays as long as something is its own; a row of nothing goes.
    workers.beat(database, "idle")
    workers.dead_owners(database, engine, "me", -1)
    with database.read() as connection:
        assert list(connection.execute(select(executors.c.id)).scalars()) == [begun.executor]
    workers.leave(database, begun.executor)
    assert workers.dead_owners(database, engine, "me", 3600) == [begun.executor]


def test_what_the_dead_had_begun_is_queued_again(yard, abandoned):
    engine, database = yard.jobs._engine, yard.database
    dead = owner(yard, abandoned).executor
    assert workers.take_over(database, engine, dead, 0) == []
    assert workers.take_over(database, engine, "me", 3600) == []
    assert owner(yard, abandoned).status == "PENDING"
    assert workers.take_over(database, engine, "me", 0) == [dead]
    assert owner(yard, abandoned).status == "ENQUEUED"
    yard.start(1)
    assert yard.ended(abandoned) == "done"
    # The engine counts from 0 again after such a call, and we do not.
    assert [line.attempt for line in yard.lines("begin", abandoned)] == [1, 2]


def test_one_watcher_at_a_time_takes_over(yard, abandoned):
    """The engine puts a job back without asking who runs it by now."""
    engine, database = yard.jobs._engine, yard.database
    workers.leave(database, owner(yard, abandoned).executor)
    with_lock = watcher_that_stops(engine)
    with pytest.raises(ZeroDivisionError):
        workers.take_over(database, with_lock, "first", 3600)
    assert workers.take_over(database, engine, "second", 3600) == []
    assert owner(yard, abandoned).status == "PENDING"


def test_a_watcher_that_slept_leaves_alone_what_another_has_put_back(yard, abandoned):
    engine, database = yard.jobs._engine, yard.database
    dead = owner(yard, abandoned).executor

    class Slept:
        """Between looking and putting back, another watcher has done so, and a worker began."""

        def states(self, *args, **options):
            states = engine.states(*args, **options)
            if options.get("executors") and not self.over:
                self.over = True
                with database.write() as connection:
                    connection.execute(executors.delete())
                assert workers.take_over(database, engine, "other", 0) == [dead]
                yard.start(1)
                yard.begun(abandoned, times=2)
            return states

        over = False
        owners = engine.owners
        resume = engine.resume

    workers.take_over(database, Slept(), "me", 0)
    assert yard.ended(abandoned) == "done"
    assert [line.attempt for line in yard.lines("begin", abandoned)] == [1, 2]


def watcher_that_stops(engine):
    """An engine that fails whoever holds the lock."""

    class Stops:
        owners = engine.owners
        states = engine.states

        def resume(self, *_):
            raise ZeroDivisionError

    return Stops()


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
