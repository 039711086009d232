"""Seats of a process: no more at once than there are, and tenants in turn."""

import threading

import pytest

from fragdex.service.jobs.runs import Seats


class Guests:
    """Threads that wait for a seat; `order` is that in which they got one."""

    def __init__(self, seats):
        self.seats, self.order, self.threads = seats, [], []

    def come(self, tenant):
        """Another thread waits behind those that wait already."""
        waiting = len(self.seats._waiting)
        thread = threading.Thread(target=self._sit, args=(tenant,))
        self.threads.append(thread)
        thread.start()
        while len(self.seats._waiting) <= waiting:
            pass

    def _sit(self, tenant):
        with self.seats.taken(tenant, lambda: None):
            self.order.append(tenant)

    def all_gone(self):
        for thread in self.threads:
            thread.join()


def test_a_new_tenant_does_not_wait_for_all_that_another_ordered():
    seats = Seats(1)
    guests = Guests(seats)
    with seats.taken("a", lambda: None):
        for tenant in "aaaaabbc":
            guests.come(tenant)
    guests.all_gone()
    assert "".join(guests.order) == "bcabaaaa"
    assert seats.free == 1


def test_who_gives_up_keeps_nobody_waiting():
    seats = Seats(1)

    def give_up():
        raise InterruptedError

    guests = Guests(seats)
    with seats.taken("a", lambda: None):
        with pytest.raises(InterruptedError), seats.taken("b", give_up):
            pass
        guests.come("a")
    guests.all_gone()
    assert guests.order == ["a"]


def test_no_more_sit_than_there_are_seats():
    seats, most = Seats(3), []
    lock, inside = threading.Lock(), []

    def sit(n):
        for _ in range(20):
            with seats.taken(str(n % 3), lambda: None):
                with lock:
                    inside.append(n)
                    most.append(len(inside))
                with lock:
                    inside.remove(n)

    threads = [threading.Thread(target=sit, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 160
    assert max(most) <= 3
    assert seats.free == 3
