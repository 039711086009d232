"""One run of a job, without processes: what is counted, what is waited for, what is told."""

import threading
from dataclasses import replace

import pytest
from sqlalchemy import select, update

from fragdex.errors import (
    EngineUnavailable,
    InvalidRequest,
    MalformedBox,
    NotISOBMFF,
    ServiceError,
    SourceUnavailable,
    StoreFull,
    Unavailable,
    Unprocessable,
)
from fragdex.service.jobs.runs import JobRuns
from fragdex.service.jobs.work import (
    JobOptions,
    SliceFailed,
    Stop,
    Work,
    problem_of,
    retryable,
)
from fragdex.service.metrics import Metrics
from fragdex.service.records.tables import jobs

OPTIONS = JobOptions(backoff_seconds=0.001, patience_seconds=600)


@pytest.fixture
def run(sqlite_database):
    """A function that runs a work once; `runs` and `row` stand beside it."""
    works = {}
    stopping = threading.Event()
    runs = JobRuns(sqlite_database, OPTIONS, works, None, stopping, Metrics())

    def go(function, failed=None, parent=None, **more):
        works["w"] = Work("w", function, failed or (lambda *_: None), **more)
        return runs.run(None, "w-1", "w", "1", {}, parent)

    def row():
        with sqlite_database.read() as connection:
            return connection.execute(select(jobs).where(jobs.c.id == "w-1")).one()

    def change(**values):
        with sqlite_database.write() as connection:
            connection.execute(update(jobs).where(jobs.c.id == "w-1").values(**values))

    go.runs, go.row, go.change, go.stopping = runs, row, change, stopping
    go.database = sqlite_database
    return go


def raising(*errors):
    """A work that raises these, one a call, and then ends."""
    left = list(errors)

    def work(context, job):
        if left:
            raise left.pop(0)
        return job.attempt

    return work


def test_an_error_that_may_pass_is_tried_again_and_counted(run):
    assert run(raising(OSError("disk"), ValueError("bug"))) == {"result": 3}
    assert run.row().attempt == 3
    assert run.row().problem is None


@pytest.mark.parametrize("error", [Unavailable, SourceUnavailable])
def test_a_database_or_store_that_is_away_is_waited_for_and_not_counted(run, error):
    assert run(raising(error("away"), error("away"))) == {"result": 1}
    assert run.row().attempt == 1


def test_patience_ends(run):
    run.runs.options = replace(OPTIONS, patience_seconds=0.05)
    problems = []
    answer = run(
        raising(*[Unavailable("away for ever")] * 10_000),
        lambda context, job, problem: problems.append(problem),
        attempts=2,
    )
    assert answer == {"problem": {"error": "Unavailable", "detail": "away for ever"}}
    assert problems == [answer["problem"]]


def test_the_news_of_a_failure_is_brought_again_until_it_is_taken(run):
    problems = []

    def failed(context, job, problem):
        problems.append(problem)
        if len(problems) < 3:
            raise OSError("disk")

    assert "problem" in run(raising(Unprocessable("no film")), failed)
    assert len(problems) == 3


def test_a_job_that_was_given_up_before_it_was_told_is_told_the_same(run):
    """The process died between the last attempt and the news."""
    run(raising(OSError("x")), attempts=2)
    run.change(attempt=2, problem={"error": "Unprocessable", "detail": "no film"})
    problems = []
    answer = run(
        raising(), lambda context, job, problem: problems.append(dict(problem)), attempts=2
    )
    assert answer == {"problem": {"error": "Unprocessable", "detail": "no film"}}
    assert problems == [answer["problem"]]


def test_a_run_that_was_replaced_ends_without_a_trace(run):
    def replaced(context, job):
        run.change(attempt=job.attempt + 1)
        job.check()

    with pytest.raises(Stop):
        run(replaced)
    assert run.row().attempt == 2
    assert not run.runs.going


@pytest.mark.parametrize("way", ["check", "return", "raise"])
def test_a_run_that_is_handed_back_does_not_count(run, way):
    def stopped(context, job):
        run.stopping.set()
        assert job.cancelled()
        if way == "check":
            job.check()
        if way == "raise":
            raise OSError("because of the stop")
        return "half"

    with pytest.raises(Stop):
        run(stopped)
    assert run.row().attempt == 0


@pytest.mark.parametrize("way", ["check", "return", "raise"])
def test_a_cancelled_run_ends_as_cancelled(run, way):
    def cancelled(context, job):
        with run.database.read() as connection:
            now = run.database.now(connection)
        run.change(cancelled_at=now)
        assert job.cancelled()
        if way == "check":
            job.check()
        if way == "raise":
            raise OSError("because of the end")
        return "half"

    assert run(cancelled) == {"cancelled": True}
    assert run(raising()) == {"cancelled": True}


def test_unknown_work_is_a_problem_and_no_crash(run):
    assert "problem" in run.runs.run(None, "other-1", "other", "1", {}, None)


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (Unavailable("away"), True),
        (StoreFull("full"), True),
        (OSError("disk"), True),
        (RuntimeError("bug"), True),
        (Unprocessable("no film"), False),
        (InvalidRequest("no"), False),
        (NotISOBMFF("no"), False),
        (EngineUnavailable("no browser"), False),
        (SliceFailed(3, {"detail": "no"}), False),
    ],
)
def test_what_the_bytes_are_to_blame_for_is_not_repeated(error, again):
    assert retryable(error) is again


def test_errors_that_were_not_meant_for_callers_keep_their_text():
    assert "secret" not in str(problem_of(OSError("/secret/path")))
    assert problem_of(Unprocessable("no film")) == {"error": "Unprocessable", "detail": "no film"}
    assert problem_of(SliceFailed(1, {"error": "X", "detail": "y"})) == {
        "error": "X",
        "detail": "y",
    }


def lines(caplog):
    """Level, and whether a traceback stands below it."""
    return [
        (one.levelname, one.exc_info is not None)
        for one in caplog.records
        if one.name == "fragdex.jobs"
    ]


def test_a_fault_is_one_error_with_its_traceback_however_often_it_is_tried(run, caplog):
    caplog.set_level("INFO")
    assert "problem" in run(raising(*[KeyError("x")] * 3), attempts=3)
    assert lines(caplog) == [("WARNING", False), ("WARNING", False), ("ERROR", True)]
    assert "w of 1 (job w-1, attempt 3) failed" in caplog.messages


@pytest.mark.parametrize(
    ("error", "parent", "expected"),
    [
        (Unprocessable("the file is empty"), None, [("INFO", False)]),
        (MalformedBox("too short", path="moov"), None, [("INFO", False)]),
        (Unprocessable("the file is empty"), "w-0", []),  # its job says it
        (SliceFailed(1, {"detail": "too loud"}), None, [("INFO", False)]),
        (EngineUnavailable("no Chromium"), None, [("WARNING", False)]),
        (ServiceError("who knows"), None, [("ERROR", True)]),
    ],
)
def test_what_ends_a_job_at_once_is_one_line(run, caplog, error, parent, expected):
    caplog.set_level("INFO")
    assert "problem" in run(raising(error), parent=parent)
    assert lines(caplog) == expected
    assert not expected or expected[0][1] or str(error) in caplog.messages[-1]
