"""The rate of a key over several processes, and what becomes of it without their database."""

import asyncio
import threading

import pytest

from fragdex.errors import TooManyRequests
from fragdex.service.records.database import Database
from fragdex.service.records.migrations import upgrade
from fragdex.service.web import rates
from fragdex.service.web.rates import SharedRates, lease_of

NOBODY = "postgresql://nobody@127.0.0.1:1/nothing"


async def taken(rates, requests, key="key"):
    """How many of so many requests at once are let through."""
    done = await asyncio.gather(*(rates.take(key) for _ in range(requests)), return_exceptions=True)
    wrong = [one for one in done if one is not None and not isinstance(one, TooManyRequests)]
    assert not wrong
    return done.count(None)


@pytest.fixture
def postgres(new_postgres):
    database = Database(new_postgres())
    upgrade(database)
    yield database
    database.close()


def test_a_bucket_is_one_for_all_and_is_asked_seldom(postgres, monkeypatch):
    asked = []

    def take(*arguments):
        asked.append(arguments)
        return take_leases(*arguments)

    take_leases = rates.take_leases
    monkeypatch.setattr(rates, "take_leases", take)
    slow = 1 / 3600
    assert lease_of(20, 100) == 10

    async def run():
        rates = [SharedRates(postgres, slow, 100) for _ in range(3)]
        for one in rates:
            one._lease = 10
        counts = [await taken(one, 60) for one in rates]
        again = [await taken(one, 60) for one in rates]
        assert await taken(rates[0], 60, "another") == 60
        return counts, again

    counts, again = asyncio.run(run())
    assert (counts, again) == ([60, 40, 0], [0, 0, 0])
    # ten at a time; an empty bucket is asked once, however often it is refused
    assert len(asked) == 6 + (4 + 1) + 1 + 1 + 6
    given, wait = take_leases(postgres, "key", 1, slow, 100)
    assert (given, 3000 < wait <= 3600) == (0, True)


def test_a_bucket_fills_and_a_full_one_is_forgotten(postgres):
    assert rates.take_leases(postgres, "key", 50, 1e9, 50) == (50, 0.0)
    assert rates.take_leases(postgres, "key", 50, 1e9, 50) == (50, 0.0), "full within 50 ns"
    assert rates.take_leases(postgres, "other", 3, 1e-3, 3) == (3, 0.0)
    with postgres.write() as connection:
        full = rates.rates.c.full_at
        connection.execute(
            rates.rates.update().where(rates.rates.c.key_id == "key").values(full_at=full - 10)
        )
    rates.forget_full(postgres)
    with postgres.read() as connection:
        assert connection.scalars(rates.rates.select()).all() == ["other"]


def test_without_the_database_each_process_counts_for_itself(caplog):
    database = Database(NOBODY)

    async def run():
        rates = SharedRates(database, 1 / 3600, 5)
        return await taken(rates, 9), await taken(rates, 9)

    assert asyncio.run(run()) == (5, 0)
    database.close()
    assert "counted by each process for itself: the database does not answer" in caplog.text


def test_a_slow_database_is_not_waited_for(monkeypatch, caplog):
    answer = threading.Event()

    def take(*_):
        assert answer.wait(60)
        return 1, 0.0

    monkeypatch.setattr(rates, "take_leases", take)
    monkeypatch.setattr(rates, "PATIENCE_SECONDS", 0.01)
    database = Database(NOBODY)

    async def run():
        rates = SharedRates(database, 1 / 3600, 5)
        try:
            return await taken(rates, 9)
        finally:
            answer.set()

    assert asyncio.run(run()) == 5
    database.close()
    assert "the database is slow" in caplog.text
