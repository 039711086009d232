"""Turns between tenants: whose work begins next, counted in starts, never in seconds."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select

from fragdex.errors import TooManyRequests
from fragdex.service.jobs import runs
from fragdex.service.jobs.work import JOBS, SLICES
from fragdex.service.records import tables

HEAVY = 40


def gate(yard):
    return str(yard.folder / "gate")


def open_gate(yard):
    (yard.folder / "gate").touch()


def begins(yard, name):
    """Records in the order in which their work began, each once."""
    jobs = [line.job for line in yard.lines("begin") if line.job.startswith(f"{name}-")]
    return list(dict.fromkeys(job.removeprefix(f"{name}-") for job in jobs))


def tenants(yard, name):
    return "".join(record[0] for record in begins(yard, name))


def all_end(yard, jobs):
    assert {yard.ended(job) for job in jobs} == {"done"}


def test_a_small_job_waits_for_what_runs_and_for_nothing_else(yard):
    yard.start(job_workers=2)
    running = 2 * yard.count
    heavy = [yard.order("gated", f"a{n}", "a", gate=gate(yard)) for n in range(HEAVY)]
    yard.until(lambda: len(begins(yard, "gated")) == running, "work on every worker")

    small = yard.order("gated", "b0", "b", gate=gate(yard))
    open_gate(yard)
    all_end(yard, [small, *heavy])

    # Every worker took one or more at once: the small one is of those that began first.
    assert "b0" in begins(yard, "gated")[running : 2 * running]


def test_three_tenants_take_turns(yard):
    jobs = [yard.order("steps", f"{t}{n}", t) for t in "abc" for n in range(6)]
    jobs += [yard.order("steps", f"d{n}", "d") for n in range(2)]
    yard.start(1, job_workers=1)
    all_end(yard, jobs)
    assert tenants(yard, "steps") == "abcdabcd" + "abc" * 4


def test_who_comes_again_does_not_get_ahead(yard):
    """A tenant that orders piece by piece has one turn in two, as one that orders all at once."""
    yard.start(1, job_workers=1)
    first = yard.order("gated", "a0", "a", gate=gate(yard))
    yard.begun(first)
    jobs = [yard.order("steps", f"a{n}", "a") for n in range(6)]
    jobs += [yard.order("steps", f"b{n}", "b") for n in range(4)]
    open_gate(yard)
    all_end(yard, jobs)
    assert tenants(yard, "steps") == "babababaaa"


def test_slices_of_one_long_job_take_turns_with_those_of_others(yard):
    yard.start(1, job_workers=1, slice_workers=1)
    long = yard.order("waiting", "a", "a", count=HEAVY, slice="gatedslice", gate=gate(yard))
    yard.begun(f"{long}-s0")
    short = yard.order("waiting", "b", "b", count=4, slice="gatedslice", gate=gate(yard))
    counts = {long: HEAVY, short: 4}

    # One slice after the other, each when the next of both jobs are in the queue.
    order = []
    while len(order) < 8:
        running = yard.until(lambda: slices(yard)[len(order) :], "the next slice")[0]
        order.append(running)
        for job, count in counts.items():
            done = sum(id.startswith(job) for id in order)
            following = f"{job}-s{min(done, count - 1)}"
            yard.until(lambda id=following: queued(yard, id), "the next slices of both")
        Path(f"{gate(yard)}-{running}").touch()

    # Who comes new is next; which of two slices with one number begins first is open.
    assert order[:2] == [f"{long}-s0", f"{short}-s0"]
    for n in range(2, 8, 2):
        assert {id.rsplit("-", 1)[0] for id in order[n : n + 2]} == {long, short}
    open_gate(yard)
    all_end(yard, [short, long])


def slices(yard):
    """The slices in the order in which they began."""
    return [line.job for line in yard.lines("begin") if "-s" in line.job]


def queued(yard, job):
    with yard.database.read() as connection:
        return connection.scalar(select(tables.jobs.c.id).where(tables.jobs.c.id == job))


def test_jobs_that_wait_for_slices_leave_others_a_seat(yard):
    yard.start(1, job_workers=1, slice_workers=1)
    long = [
        yard.order("waiting", f"a{n}", "a", count=2, slice="gatedslice", gate=gate(yard))
        for n in range(HEAVY)
    ]
    # which of them has the first slice is a race; nothing else begins before it has ended
    yard.until(lambda: any("-s" in line.job for line in yard.lines("begin")), "a slice")
    other = yard.order("waiting", "b0", "b", count=2, slice="gatedslice", gate=gate(yard))
    yard.begun(other)
    assert len(begins_of_parents(yard, "a")) < HEAVY
    open_gate(yard)
    all_end(yard, [other, *long])
    # with the gate open several seats come free at once, and their order in the file is a race
    assert set(begins_of_parents(yard, "a")) == {f"a{n}" for n in range(HEAVY)}


def begins_of_parents(yard, tenant):
    return [r for r in begins(yard, "waiting") if r.startswith(tenant) and "-s" not in r]


def test_a_tenant_that_is_alone_gets_every_worker(yard):
    yard.start(job_workers=1, slice_workers=2)
    job = yard.order("waiting", "a", "a", count=HEAVY, slice="gatedslice", gate=gate(yard))
    running = 2 * yard.count
    yard.until(lambda: len([r for r in begins(yard, "waiting") if "-s" in r]) == running)
    open_gate(yard)
    all_end(yard, [job])
    (end,) = yard.lines("end", job)
    assert json.loads(end.detail)["results"] == list(range(HEAVY))


@pytest.mark.slow
@pytest.mark.usefixtures("deaths")
def test_killed_workers_lose_no_turn_and_do_nothing_twice(yard):
    first = yard.start(job_workers=1, slice_workers=1)
    jobs = [yard.order("steps", f"{t}{n}", t, seconds=0.2) for t in "abc" for n in range(6)]
    jobs += [yard.order("waiting", f"{t}-film", t, count=5, seconds=0.2) for t in "ab"]
    # Something is left for those who come after, however fast the first are.
    jobs += [yard.order("gated", f"{t}-last", t, gate=gate(yard)) for t in "ab"]
    for n, pid in enumerate(first):
        yard.until(lambda n=n: len(yard.lines("end")) > 4 * (n + 1), "work that has ended")
        yard.kill(pid)
        yard.start(1, job_workers=1, slice_workers=1)
    open_gate(yard)
    all_end(yard, jobs)
    ends = yard.lines("end")
    assert len({line.job for line in ends}) == len(jobs) + 10
    # Between the last line of a run and its result in the database a worker may die: with one job
    # and one slice at most.
    assert len(ends) - len(jobs) - 10 <= 2 * len(first)
    assert max(Counter(line.job for line in ends if line.pid not in first).values()) == 1


def test_work_in_progress_has_a_limit(yard):
    limit = 3
    yard.jobs.options = replace(yard.jobs.options, tenant_jobs=limit)
    for n in range(limit):
        ensure_room(yard, "a")
        yard.order("gated", f"a{n}", "a", gate=gate(yard))
    with pytest.raises(TooManyRequests, match="3 jobs of this tenant") as refused:
        ensure_room(yard, "a")
    assert refused.value.retry_after
    assert refused.value.more == {"limit": limit}
    ensure_room(yard, "b")

    # What is cancelled or over makes room.
    yard.jobs.cancel("gated-a0")
    ensure_room(yard, "a")
    sliced = yard.order("waiting", "a3", "a", count=9)
    yard.start(1)
    assert yard.ended(sliced) == "done"  # its slices did not count
    yard.until(lambda: has_room(yard, "a"), "room")
    open_gate(yard)


def ensure_room(yard, tenant):
    with yard.database.read() as connection:
        yard.jobs.ensure_room(connection, tenant)


def has_room(yard, tenant):
    try:
        ensure_room(yard, tenant)
    except TooManyRequests:
        return False
    return True


def test_numbers_that_say_nothing_are_forgotten(yard):
    with yard.database.write() as connection:
        assert runs.take_turns(connection, JOBS, "a", 5) == 1
        assert runs.take_turns(connection, JOBS, "a") == 6
        assert runs.take_turns(connection, SLICES, "a") == 1
        assert runs.take_turns(connection, JOBS, "b") == 1
        runs.turn_begun(connection, JOBS, 4)
        runs.turn_begun(connection, JOBS, 2)  # a run that comes again does not turn the queue back
        assert runs.take_turns(connection, JOBS, "c") == 4
        runs.forget_turns(connection, JOBS, empty=True)
        rows = select(tables.turns.c.tenant_id).where(tables.turns.c.queue == JOBS)
        assert set(connection.scalars(rows)) == {"", "a", "c"}


def test_the_last_number_is_no_end(yard):
    with yard.database.write() as connection:
        runs.turn_begun(connection, JOBS, runs.LAST)
        assert runs.take_turns(connection, JOBS, "a") == runs.LAST
        assert runs.take_turns(connection, JOBS, "a") == runs.LAST
    yard.order("steps", "a0", "a")
    with yard.database.write() as connection:
        runs.forget_turns(connection, JOBS, empty=False)
        assert runs.take_turns(connection, JOBS, "b") == runs.LAST
        runs.forget_turns(connection, JOBS, empty=True)
        assert runs.take_turns(connection, JOBS, "b") == 1
