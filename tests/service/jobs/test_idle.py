"""A worker that has nothing to do asks its database next to nothing, and is woken by an order."""

import program
import pytest
import sqlalchemy as sa

from fragdex.service.jobs import engine, wakeups
from fragdex.service.records.tables import executors

BEATS = 6
HOUR = 3600.0


@pytest.fixture
def start(yard, monkeypatch):
    """A function that has this process work, and waits until it has nothing to do."""
    opened = []

    def start(**options):
        jobs = program.open_jobs(yard.database, yard.folder, yard.path, **options)
        opened.append(jobs)
        jobs.start_worker(None)
        yard.until(lambda: not jobs._engine._watch._signal._waiting, "a worker with nothing to do")
        return jobs

    yield start
    for jobs in opened:
        jobs.close()


@pytest.fixture
def start_without_net(start, monkeypatch):
    """The same, but whoever is not woken sleeps for an hour."""
    monkeypatch.setattr(wakeups, "NET_SECONDS", HOUR)
    monkeypatch.setattr(engine, "NET_SECONDS", HOUR)
    monkeypatch.setattr(engine, "QUEUE_NET_SECONDS", HOUR)
    return start


def test_who_has_nothing_to_do_asks_for_little_but_its_heartbeat(yard, start):
    start(heartbeat_seconds=1.0)
    statements = []

    def beats():
        return sum(s.startswith(f"INSERT INTO {executors.name}") for s in statements)

    def count(connection, cursor, statement, *_):
        statements.append(statement)

    sa.event.listen(sa.engine.Engine, "before_cursor_execute", count)
    try:
        yard.until(lambda: beats() >= BEATS, "some heartbeats")
    finally:
        sa.event.remove(sa.engine.Engine, "before_cursor_execute", count)
    # a heartbeat is three or four; the rest are the nets, which come every few seconds
    assert len(statements) <= 10 * BEATS, statements


def test_an_order_wakes_who_sleeps(yard, start_without_net):
    start_without_net()
    for n, name in enumerate(("steps", "waiting")):  # a queue for all, and one of each tenant
        job = yard.order(name, f"r{n}", count=2)
        assert yard.ended(job) == "done"


def test_an_order_of_the_same_process_waits_for_no_poll(yard, start_without_net):
    start_without_net(poll_seconds=HOUR)
    assert yard.ended(yard.order("steps", "r")) == "done"


def test_an_order_in_another_transaction_wakes_who_has_just_worked(yard, start_without_net):
    jobs = start_without_net()
    signal = jobs._engine._watch._signal
    for n in range(3):
        assert yard.ended(yard.order("steps", f"r{n}")) == "done"
        yard.until(lambda: not signal._waiting, "a worker with nothing to do")


def test_a_delay_that_is_over_wakes_who_sleeps(yard, start_without_net):
    start_without_net()
    with yard.database.write() as connection:
        job = yard.jobs.enqueue(connection, "steps", "later", tenant_id="t", delay_seconds=1.5)
    assert yard.ended(job) == "done"


def test_a_job_that_is_put_back_wakes_who_sleeps(yard, start_without_net):
    """As the failure detector puts back what a dead worker had begun."""
    yard.start(1)
    job = yard.order("gated", "r", gate=str(yard.folder / "gate"))
    pid = yard.begun(job)
    start_without_net()
    yard.kill(pid)
    (yard.folder / "gate").touch()
    yard.jobs._engine.resume(job, None)
    assert yard.ended(job) == "done"


def test_a_watch_whose_database_was_away_wakes_again(yard, start_without_net, monkeypatch):
    jobs = start_without_net()
    looks = []

    def refuse(*_):
        looks.append(1)
        raise OSError("away")

    for kind in (wakeups._SqliteLook, wakeups._PostgresLook):
        monkeypatch.setattr(kind, "changed", refuse)
    # it is awake and looks again; PostgreSQL needs a word to wake
    with yard.database.write() as connection:
        wakeups.announce(connection)
    yard.until(lambda: len(looks) >= 2, "a watch that fails, twice")
    assert jobs._engine._watch._signal._waiting
    monkeypatch.undo()
    assert yard.ended(yard.order("steps", "r")) == "done"
