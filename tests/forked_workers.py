"""Runs tests in several processes that are forked after one collection: `--workers N`.

Collecting these tests takes some ten seconds and hundreds of megabytes. pytest-xdist does it again
in each of its workers; a fork has it already. The tests of a file stay in one worker and in their
order, so that what they set up for themselves is set up once. The files that took longest in the
last run come first, as pytest's cache remembers them: they shall not begin when all other workers
have nothing left to do. Of those that it does not know, files with tests marked `slow` are taken to
be long.

Many wait for processes that they start. While processors are idle, further workers are forked, up
to twice as many, which take files from the other end of the queue, without tests that are slow or
need a browser: as many browsers as workers would be too many. They end when no processor is idle
any more.

A worker says what pytest-xdist's say (`workerinput`), so that plugins treat it as one.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import itertools
import json
import os
import selectors
import signal
import sys
import threading
import time
import traceback
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from _pytest.config import create_terminal_writer

LAST_SECONDS = "forked_workers/seconds"
"""Where pytest's cache has {file: what its tests took when they last ran}."""
SLOW_SECONDS, OTHER_SECONDS = 10, 0.05
"""What a test is taken to need in a file that was never run, where it is marked slow, and else."""
SECONDS_TO_END = 3
"""Until workers that do not end are killed, once the run is broken off."""
LEAST_KEPT, MOST_KEPT, SHARE_KEPT = 100 << 20, 512 << 20, 1 / 32
"""A worker that holds more than it began with, by a share of the free memory between these bounds,
ends after its file, and another follows: which starts servers and imports anew, some 5 s."""
BROWSERS = {"browser", "chromium", "page"}
"""Fixtures of tests that need a browser."""
MUCH_IDLE, LITTLE_IDLE = 0.2, 0.04
"""Shares of the processors' time: above the one workers are added, below the other they end."""
FREE_MEMORY = 2 << 30
"""Bytes that are free where a worker is added."""


def pytest_addoption(parser):
    parser.getgroup("forked workers").addoption(
        "--workers", type=int, default=0, metavar="N",
        help="run tests in N processes forked after one collection, and in up to twice as many "
        "while processors are idle; 0: in this one",
    )  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """Run the collected tests in workers; as pytest does where no workers are asked for."""
    options = session.config.option
    if options.workers < 1 or options.collectonly or len(session.items) < 2:
        return None
    if session.testsfailed and not options.continue_on_collection_errors:
        raise session.Interrupted(f"{session.testsfailed} errors during collection")
    gc.collect()
    gc.freeze()
    Run(session, options.workers).go()
    return True


@dataclass
class Worker:
    """The controller's side of a worker.

    `nodeid` is the test that it runs since `began`, `left` are those that it was given and has not
    begun, by their places among all tests. An extra one is there because processors were idle.
    """

    number: int
    pid: int
    requests: io.FileIO
    answers: io.FileIO
    is_extra: bool
    is_used: bool = False
    nodeid: str = ""
    began: float = 0
    left: list = field(default_factory=list)
    received: bytes = b""


class Run:
    """Hands groups of tests to workers, and what they report to pytest."""

    def __init__(self, session, count):
        self.session, self.config = session, session.config
        cache = getattr(session.config, "cache", None)  # -p no:cacheprovider
        self.seconds, self.last = {}, cache.get(LAST_SECONDS, {}) if cache else {}
        self.queue = grouped(session.items, self.last)
        self.count = min(count, len(self.queue))
        self.selector = selectors.DefaultSelector()
        self.workers = []
        self.numbers = itertools.count()
        self.idle = IdleProcessors()

    def go(self):
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            for _ in range(self.count):
                self.start()
            while self.workers:
                for key, _ in self.selector.select(1):
                    self.hear(key.data)
                self.add_worker()
                if self.session.shouldfail:
                    raise self.session.Failed(self.session.shouldfail)
                if self.session.shouldstop:
                    raise self.session.Interrupted(self.session.shouldstop)
            self.remember()
        finally:
            self.end()

    def remember(self):
        """Keep what each file took for the order of the next run."""
        cache = getattr(self.config, "cache", None)
        if cache:
            rounded = {name: round(seconds, 2) for name, seconds in self.seconds.items()}
            cache.set(LAST_SECONDS, {**self.last, **rounded})

    def add_worker(self):
        """Fork a further worker where processors are idle and there is memory for it."""
        if (
            len(self.workers) < 2 * self.count
            and (self.idle.share() or 0) > MUCH_IDLE
            and free_memory() > FREE_MEMORY
            and any(computes(self.session.items, group) for group in self.queue)
        ):
            self.start(is_extra=True)
            self.idle.forget()

    def next_group(self, worker):
        """The tests that a worker runs next; none where it is to end."""
        if not self.queue:
            return []
        place = 0
        if worker.is_extra:
            idle = self.idle.share()
            if idle is not None and idle <= LITTLE_IDLE:
                return []
            items, places = self.session.items, reversed(range(len(self.queue)))
            place = next((n for n in places if computes(items, self.queue[n])), None)
            if place is None:
                return []
        # what takes much memory comes first in a process, or in the one that follows this
        if worker.is_used and self.session.items[self.queue[place][0]].get_closest_marker("large"):
            return []
        worker.is_used = True
        return self.queue.pop(place)

    def start(self, *, is_extra=False):
        """Fork a worker."""
        number = next(self.numbers)
        requests, our_requests = os.pipe()
        our_answers, answers = os.pipe()
        pid = os.fork()
        if pid == 0:
            for other in self.workers:
                other.requests.close()
                other.answers.close()
            os.close(our_requests)
            os.close(our_answers)
            code = 1
            try:
                code = work(self, number, requests, answers)
            except BaseException:  # noqa: BLE001 — it is a worker's end, whatever it is
                os.write(2, traceback.format_exc().encode())
            finally:
                os._exit(code)
        os.close(requests)
        os.close(answers)
        worker = Worker(
            number, pid, os.fdopen(our_requests, "wb", 0), os.fdopen(our_answers, "rb", 0), is_extra
        )
        self.workers.append(worker)
        self.selector.register(worker.answers, selectors.EVENT_READ, worker)

    def hear(self, worker):
        """What a worker says: it wants a group, begins a test, or has a report of one."""
        data = os.read(worker.answers.fileno(), 1 << 16)
        if not data:
            self.gone(worker)
            return
        *lines, worker.received = (worker.received + data).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "want" in message:
                group = self.next_group(worker)
                worker.left += group
                worker.requests.write(json.dumps(group).encode() + b"\n")
            elif "start" in message:
                worker.nodeid, worker.began = message["start"], time.monotonic()
                del worker.left[0]
                self.config.hook.pytest_runtest_logstart(
                    nodeid=worker.nodeid, location=tuple(message["location"])
                )
            elif "finish" in message:
                self.config.hook.pytest_runtest_logfinish(
                    nodeid=worker.nodeid, location=tuple(message["location"])
                )
                name, took = file_of(worker.nodeid), time.monotonic() - worker.began
                self.seconds[name] = self.seconds.get(name, 0) + took
                worker.nodeid = ""
            else:
                report = self.config.hook.pytest_report_from_serializable(
                    config=self.config, data=message["report"]
                )
                # JSON knows no tuples
                report.location = tuple(report.location)
                if isinstance(report.longrepr, list):
                    report.longrepr = tuple(report.longrepr)
                self.config.hook.pytest_runtest_logreport(report=report)

    def gone(self, worker):
        """A worker has ended: as it should, or in the middle of a test, which failed then."""
        self.selector.unregister(worker.answers)
        self.workers.remove(worker)
        worker.requests.close()
        worker.answers.close()
        _, status = os.waitpid(worker.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        if code == 0 and not worker.nodeid:
            if self.queue and not worker.is_extra:
                self.start()  # it had taken too much memory
            return
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        report = pytest.TestReport(
            worker.nodeid or "worker", (worker.nodeid, None, worker.nodeid or "worker"), {},
            "failed", f"worker {worker.number} ended by {how} while it ran this test", "call",
        )  # fmt: skip
        self.config.hook.pytest_runtest_logreport(report=report)
        if worker.left:
            self.queue.insert(0, worker.left)
        if self.queue:
            self.start(is_extra=worker.is_extra)

    def end(self):
        """End what still runs, where the run is broken off."""
        for worker in self.workers:
            worker.requests.close()
            worker.answers.close()
        for worker in self.workers:
            for _ in range(SECONDS_TO_END * 20):
                if os.waitpid(worker.pid, os.WNOHANG)[0]:
                    break
                threading.Event().wait(0.05)
            else:
                os.kill(worker.pid, signal.SIGKILL)
                os.waitpid(worker.pid, 0)
        self.workers.clear()


class IdleProcessors:
    """What part of the processors' time was idle lately, as Linux counts it.

    Busy are also those who have nothing to do with the tests: beside them no worker is added.
    """

    SECONDS = 3
    COUNTED = 8
    """Columns of /proc/stat that do not count twice: the fourth and fifth are idle."""

    def __init__(self, source="/proc/stat", clock=time.monotonic):
        self.source, self.clock = Path(source), clock
        self.marks = deque()

    def share(self):
        """0 to 1; None where it is not known, or not yet for some seconds."""
        now = self.clock()
        if not self.marks or now - self.marks[-1][0] >= 0.5:
            try:
                words = self.source.read_text().split(maxsplit=self.COUNTED + 1)
            except OSError:
                return None
            spent = [int(word) for word in words[1 : self.COUNTED + 1]]
            self.marks.append((now, sum(spent), sum(spent[3:5])))
        while len(self.marks) > 1 and now - self.marks[1][0] >= self.SECONDS:
            self.marks.popleft()
        (then, all_before, idle_before), (_, all_now, idle_now) = self.marks[0], self.marks[-1]
        if now - then < self.SECONDS or all_now == all_before:
            return None
        return (idle_now - idle_before) / (all_now - all_before)

    def forget(self):
        """What was, before another worker had something to do."""
        self.marks.clear()


def free_memory():
    """Bytes that processes may still take; as good as all where the system does not tell."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:
        return 1 << 62
    return int(text.partition("MemAvailable:")[2].split()[0]) << 10


def grouped(items, seconds):
    """The places of the tests of one file each, in their order; the longest files come first.

    `seconds` is {file: what its tests took}, of those that are known.
    """
    files = {}
    for place, item in enumerate(items):
        files.setdefault(item.path, []).append(place)

    def expected(group):
        known = seconds.get(file_of(items[group[0]].nodeid))
        if known is not None:
            return known
        slow = slow_ones(items, group)
        return SLOW_SECONDS * slow + OTHER_SECONDS * (len(group) - slow)

    return sorted(files.values(), key=expected, reverse=True)


def file_of(nodeid):
    return nodeid.partition("::")[0]


def slow_ones(items, group):
    return sum(items[place].get_closest_marker("slow") is not None for place in group)


def computes(items, group):
    """Whether no test of a file is slow or needs a browser."""
    fixtures = {name for place in group for name in getattr(items[place], "fixturenames", ())}
    return not slow_ones(items, group) and BROWSERS.isdisjoint(fixtures)


# ---- inside a worker ------------------------------------------------------------------------


def work(run, number, requests, answers):
    """Run groups of tests until there are none left; the exit code."""
    config, session = run.config, run.session
    name = f"gw{number}"
    os.environ["PYTEST_XDIST_WORKER"] = name
    config.workerinput = {"workerid": name, "workercount": run.count}
    for plugin in ("terminalreporter", "junitxml"):
        reporter = config.pluginmanager.get_plugin(plugin)
        if reporter is not None:
            config.pluginmanager.unregister(reporter)
    config.pluginmanager.register(Silent(config), "terminalreporter")
    speaker = Speaker(config, answers)
    config.pluginmanager.register(speaker)
    source = os.fdopen(requests, "rb")

    def next_group():
        speaker.say(want=True)
        return [session.items[place] for place in json.loads(source.readline() or "[]")]

    most = held_memory() + min(max(LEAST_KEPT, int(free_memory() * SHARE_KEPT)), MOST_KEPT)
    group = next_group()
    while group:
        following = []
        for item, after in itertools.pairwise([*group, None]):
            if after is None:
                # whether another group follows decides what the last test takes down
                following = [] if is_full(most) else next_group()
                after = following[0] if following else None
            config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if held_memory() > most:
                trim_memory()
        group = following
    config.hook.pytest_sessionfinish(session=session, exitstatus=0)
    config._ensure_unconfigure()
    threading._shutdown()
    atexit._run_exitfuncs()
    return 0


def is_full(most):
    """Whether this process holds more than so many bytes after it gave back what it can."""
    if held_memory() > most:
        gc.collect()
        trim_memory()
    return held_memory() > most


def trim_memory():
    """Give back what was freed and lies between what is held; glibc alone can."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def held_memory():
    """Bytes that this process has in memory; 0 where the system does not tell."""
    try:
        pages = Path("/proc/self/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


class Silent:
    """In the place of pytest's reporter, whose writer some plugins ask for."""

    def __init__(self, config):
        self._tw = create_terminal_writer(config, io.StringIO())


class Speaker:
    """Tells the controller what happens in a worker."""

    def __init__(self, config, answers):
        self.config, self.answers, self.location = config, answers, None
        self.pid = os.getpid()

    def say(self, **message):
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self.answers, data) :]

    def pytest_runtest_logstart(self, nodeid, location):
        self.location = location
        self.say(start=nodeid, location=location)

    def pytest_runtest_logfinish(self, nodeid, location):
        self.say(finish=nodeid, location=location)

    def pytest_runtest_logreport(self, report):
        # a process that a test forked and that came back to pytest has no say
        if os.getpid() != self.pid or not self.is_wanted(report):
            return
        plain = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        if report.passed:
            # The controller keeps all reports of all tests, and forks workers that have them, too.
            plain["keywords"] = {}
            if not {"P", "A"} & set(self.config.option.reportchars):
                plain["sections"] = []
        self.say(report=plain)

    def is_wanted(self, report):
        """Whether a report says more than that something was set up or taken down, as it should."""
        option = self.config.option
        asks_for_all = option.durations is not None or option.xmlpath
        return not report.passed or report.when == "call" or asks_for_all
