"""What each test took: `--times FILE` adds a line a test, with tabs between its columns.

The columns: the test; seconds of wall time; processor seconds of its own process and of children
that ended meanwhile; the most memory that its worker had so far, in KiB; the worker.
"""

import os
import resource
import time

import pytest


def pytest_addoption(parser):
    parser.getgroup("timing").addoption("--times", metavar="FILE", help="add what each test took")


def _spent():
    own = resource.getrusage(resource.RUSAGE_SELF)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = [time.monotonic(), *(one.ru_utime + one.ru_stime for one in (own, children))]
    return took, own.ru_maxrss


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    path = item.config.getoption("times")
    if not path:
        return (yield)
    before, _ = _spent()
    result = yield
    after, memory = _spent()
    columns = [f"{b - a:.3f}" for a, b in zip(before, after, strict=True)]
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    with open(path, "a", encoding="utf-8") as out:
        print(item.nodeid, *columns, memory, worker, sep="\t", file=out)
    return result
