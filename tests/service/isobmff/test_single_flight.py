"""What several ask for at once is made once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fragdex import lru_cache
from fragdex.errors import Unavailable
from fragdex.lru_cache import SingleFlight, SingleFlightCache


class Making:
    """A `make` that ends when it is let."""

    def __init__(self, ends):
        self.begun, self.may_end, self.calls, self._ends = (
            threading.Event(),
            threading.Event(),
            0,
            ends,
        )

    def __call__(self):
        self.calls += 1
        self.begun.set()
        self.may_end.wait()
        return self._ends()


def failing():
    raise ValueError("no film")


@pytest.fixture
def pool():
    with ThreadPoolExecutor(8) as pool:
        yield pool


def waiting(flight, key, count):
    """Wait until so many wait."""
    while flight._waiting[key] < count:
        threading.Event().wait(0.001)


@pytest.mark.parametrize("ends", [lambda: "film", failing], ids=["made", "failed"])
def test_all_have_what_one_made(pool, ends):
    flight, making = SingleFlight("the film"), Making(ends)
    asked = [pool.submit(flight.do, "key", making) for _ in range(8)]
    making.begun.wait()
    waiting(flight, "key", 7)
    assert flight.do("other", lambda: "another") == "another"
    making.may_end.set()
    answers = [one.exception() or one.result() for one in asked]
    assert len(set(map(str, answers))) == 1
    assert making.calls == 1
    assert flight.do("key", lambda: "anew") == "anew"
    assert not flight._waiting


def test_few_wait_and_not_for_ever(pool, monkeypatch):
    monkeypatch.setattr(lru_cache, "MOST_WAITING", 1)
    flight, making = SingleFlight("the film"), Making(lambda: "film")
    first = pool.submit(flight.do, "key", making)
    making.begun.wait()
    second = pool.submit(flight.do, "key", making)
    waiting(flight, "key", 1)
    with pytest.raises(Unavailable, match="the film is being indexed"):
        flight.do("key", making)
    making.may_end.set()
    assert (first.result(), second.result(), making.calls) == ("film", "film", 1)

    monkeypatch.setattr(lru_cache, "MOST_SECONDS", 0.01)
    endless = Making(lambda: "film")
    first = pool.submit(flight.do, "key", endless)
    endless.begun.wait()
    with pytest.raises(Unavailable):
        flight.do("key", endless)
    endless.may_end.set()
    assert first.result() == "film"


def test_a_cache_asks_once_and_then_never(pool):
    cache, making = SingleFlightCache("the film"), Making(lambda: "film")
    asked = [pool.submit(cache.get_once, "key", 4, making) for _ in range(8)]
    making.begun.wait()
    making.may_end.set()
    assert [one.result() for one in asked] == ["film"] * 8
    assert cache.get_once("key", 4, failing) == "film"
    assert making.calls == 1
