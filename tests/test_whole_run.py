"""How a whole run goes: one collection, forked workers, and what becomes of tests that fail.

The functions of `dev` run a suite of a few lines in a folder of its own.
"""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forked_workers

# Others take seconds to import.
FEW_PLUGINS = {
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTEST_PLUGINS": "pytest_timeout,_hypothesis_pytestplugin",
}

PROJECT = """
[tool.pytest.ini_options]
testpaths = ["tests"]
pythonpath = ["tests", "{plugins}"]
addopts = ["-p", "forked_workers", "-ra"]
filterwarnings = ["ignore::hypothesis.errors.HypothesisWarning"]
markers = ["slow: takes long"]
timeout = {timeout}
"""

PROFILES = """
from hypothesis import settings

settings.register_profile("short", max_examples=1)
"""

FIRST_TIME = """
from pathlib import Path


def test_passes_the_second_time():
    been = Path(__file__).parent / "been"
    assert been.exists() or been.touch()
"""

WITHOUT_NATIVE = """
import os

from hypothesis import given, strategies


@given(strategies.none())
def test_without_native(_):
    assert not os.environ.get("FRAGDEX_PURE_PYTHON")
"""

SET_UP_ONCE = """
import os
from pathlib import Path

import pytest

LOG = Path(__file__).parent / "log"
print("collected", file=LOG.open("a"))


def say(*words):
    with LOG.open("a") as out:
        print(*words, file=out)


@pytest.fixture(scope="module")
def shared():
    say("up", os.getpid())
    yield
    say("down", os.getpid())


@pytest.mark.parametrize("n", range(3))
def test_n(shared, n):
    say("test", os.getpid())
"""

ALWAYS = "def test_fails_always():\n    assert False, 'the reason'\n"
PASSES = "def test_passes():\n    assert True\n"
SKIPS = "import pytest\n\n\ndef test_skips():\n    pytest.skip('why')\n"
HANGS = "import threading\n\n\ndef test_hangs():\n    threading.Event().wait()\n"
DIES = f"import os\n\n\ndef test_dies():\n    os.kill(os.getpid(), 9)\n\n\n{PASSES}"


@pytest.fixture
def run_all(root, tmp_path):
    """run_all(files, timeout=): status and output of `all_tests`."""
    functions, _, _ = (root / "dev").read_text().partition("\ncommand=")
    dev = tmp_path / "dev"

    def run(files, *, timeout=0):
        dev.write_text(f"{functions}\nvenv={sys.prefix}\ncall_native=tests\nall_tests\n")
        project = PROJECT.format(timeout=timeout, plugins=root / "tests")
        (tmp_path / "pyproject.toml").write_text(project)
        (tmp_path / "tests").mkdir(exist_ok=True)
        (tmp_path / "tests" / "conftest.py").write_text(PROFILES)
        for name, text in files.items():
            (tmp_path / "tests" / f"test_{name}.py").write_text(text)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "COV"))}
        done = subprocess.run(
            ["sh", dev],
            env={**kept, **FEW_PLUGINS},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    return run


def test_no_test_is_tried_again(run_all):
    status, output = run_all({"first_time": FIRST_TIME, "passes": PASSES})
    assert status != 0
    assert "FAILED tests/test_first_time.py::test_passes_the_second_time" in output
    assert "1 failed, 1 passed" in output


def test_what_workers_report_is_what_pytest_reports(run_all):
    status, output = run_all({"always": ALWAYS, "passes": PASSES, "skips": SKIPS})
    assert status != 0
    assert "AssertionError: the reason" in output
    assert "SKIPPED [1] tests/test_skips.py:5: why" in output
    assert "1 failed, 1 passed, 1 skipped" in output


def test_a_property_runs_without_the_extension(run_all):
    pytest.importorskip("fragdex._native", reason="the C extension is not built")
    status, output = run_all({"property": WITHOUT_NATIVE, "passes": PASSES})
    assert status != 0
    assert "FAILED tests/test_property.py::test_without_native" in output
    # in the first of two runs alone
    assert "2 passed" in output


def test_a_file_is_collected_once_and_its_tests_stay_together(run_all, tmp_path):
    _, output = run_all({"one": SET_UP_ONCE, "two": SET_UP_ONCE.replace('"log"', '"log2"')})
    assert "6 passed" in output
    for name in ("log", "log2"):
        lines = (tmp_path / "tests" / name).read_text().splitlines()
        # the other time is the run of properties, which finds none
        assert lines.count("collected") == 1 + ("deselected" in output)
        what, pids = zip(*(line.split() for line in lines if line != "collected"), strict=True)
        assert what == ("up", "test", "test", "test", "down")
        assert len(set(pids)) == 1


def test_a_file_that_cannot_be_read_fails_the_run(run_all):
    status, output = run_all({"broken": "import absent_module", "passes": PASSES})
    assert status != 0, output


def test_a_test_whose_process_ends_fails_and_the_others_go_on(run_all):
    status, output = run_all({"dies": DIES, "passes": PASSES, "skips": SKIPS})
    assert status != 0
    assert "ended by SIGKILL while it ran this test" in output
    assert "FAILED tests/test_dies.py::test_dies" in output
    assert "1 failed, 2 passed, 1 skipped" in output


TAKES = """
import os

HELD = []


def test_takes():
    HELD.append(b"1" * (1100 << 20))
    print("takes", os.getpid(), file=open("log", "a"))


def test_last_of_its_file():
    pass
"""
USES = 'import os\n\n\ndef test_uses():\n    print("uses", os.getpid(), file=open("log", "a"))\n'


def test_a_worker_that_takes_much_memory_is_followed_by_another(run_all, tmp_path):
    _, output = run_all({"takes": TAKES, **{f"uses{n}": USES for n in range(8)}})
    assert "10 passed" in output
    ran = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    (large,) = {pid for what, pid in ran if what == "takes"}
    after = ran[[what for what, _ in ran].index("takes") + 1 :]
    assert large not in {pid for _, pid in after}


def test_a_test_that_hangs_fails_under_its_name_and_the_others_go_on(run_all):
    status, output = run_all({"hangs": HANGS, "passes": PASSES}, timeout=2)
    assert status != 0
    assert "FAILED tests/test_hangs.py::test_hangs - Failed: Timeout" in output
    assert "1 failed, 1 passed" in output


class Machine:
    """Processors as /proc/stat counts them, for as long as a test says."""

    def __init__(self, folder):
        self.file, self.now, self.busy, self.idle = folder / "stat", 100.0, 0, 0
        self.processors = forked_workers.IdleProcessors(self.file, lambda: self.now)
        self.passes(0, 0)

    def passes(self, seconds, idle):
        """Let time pass on two processors of which a part is idle."""
        ticks = round(200 * seconds)
        self.busy, self.idle = self.busy + ticks - round(ticks * idle), self.idle + ticks * idle
        self.now += seconds
        # guests are counted twice: with user and by themselves
        self.file.write_text(
            f"cpu  {self.busy} 0 0 {self.idle:.0f} 0 0 0 0 {self.busy} 0\ncpu0 1\n"
        )
        return self.processors.share()


def test_processors_are_idle_where_they_were_for_some_seconds(tmp_path):
    machine = Machine(tmp_path)
    assert [machine.passes(1, 0.5) for _ in range(4)] == [None, None, 0.5, 0.5]
    assert machine.passes(3, 0.25) == 0.25
    machine.processors.forget()
    assert machine.passes(1, 1) is None
    assert forked_workers.IdleProcessors(tmp_path / "absent").share() is None


class Item(SimpleNamespace):
    """A test that has some marks."""

    def __init__(self, path, *marks, fixtures=()):
        nodeid = f"{path}::test"
        super().__init__(path=path, nodeid=nodeid, marks=marks, fixturenames=fixtures)

    def get_closest_marker(self, name):
        return name if name in self.marks else None


@pytest.fixture
def queue():
    """A run whose workers are never forked, and how idle its processors are."""
    run = object.__new__(forked_workers.Run)
    run.queue, run.count, run.started, run.share = [[n] for n in range(6)], 2, [], 0.5
    run.workers = [SimpleNamespace(is_extra=False, is_used=False) for _ in range(2)]
    run.session = SimpleNamespace(items=[Item("small") for _ in range(6)])
    run.idle = SimpleNamespace(share=lambda: run.share, forget=lambda: None)
    run.start = lambda is_extra: run.workers.append(
        SimpleNamespace(is_extra=is_extra, is_used=False)
    )
    return run


def test_workers_are_added_while_processors_are_idle(queue, monkeypatch):
    monkeypatch.setattr(forked_workers, "free_memory", lambda: 1 << 62)
    for _ in range(9):
        queue.add_worker()
    assert [one.is_extra for one in queue.workers] == [False, False, True, True]
    plain, extra = queue.workers[0], queue.workers[-1]
    # the longest files come first, and are not theirs
    assert queue.next_group(extra) == [5]
    assert queue.next_group(plain) == [0]
    queue.share = 0.01
    assert queue.next_group(extra) == []
    assert queue.next_group(plain) == [1]
    queue.share = None
    assert queue.next_group(extra) == [4]


def test_added_workers_take_no_browsers_and_nothing_slow(queue):
    extra = SimpleNamespace(is_extra=True, is_used=False)
    queue.session.items[5] = Item("browses", fixtures=["page"])
    queue.session.items[4] = Item("slow", "slow")
    assert queue.next_group(extra) == [3]
    queue.queue = [[4], [5]]
    assert queue.next_group(extra) == []


def test_what_is_large_begins_in_a_new_worker(queue):
    queue.session.items[1] = Item("large", "large")
    first, second = queue.workers
    assert queue.next_group(first) == [0]
    assert queue.next_group(first) == [], "another one is started in its place"
    assert queue.next_group(second) == [1]
    assert queue.next_group(second) == [2]


@pytest.mark.parametrize(
    ("share", "free", "queued"),
    [(0.1, 1 << 62, 1), (None, 1 << 62, 1), (1, 1 << 30, 1), (1, 1 << 62, 0)],
)
def test_no_worker_is_added_without_need_time_or_memory(queue, monkeypatch, share, free, queued):
    monkeypatch.setattr(forked_workers, "free_memory", lambda: free)
    queue.share, queue.queue = share, queue.queue[:queued]
    queue.add_worker()
    assert len(queue.workers) == 2


def test_long_files_begin_first():
    items = [Item("a"), Item("b"), Item("b"), Item("c", "slow"), Item("a")]
    assert forked_workers.grouped(items, {}) == [[3], [0, 4], [1, 2]]
    assert forked_workers.grouped(items, {"b": 70, "c": 0.01}) == [[1, 2], [0, 4], [3]]


def test_what_took_long_begins_first_in_the_next_run(run_all, tmp_path):
    _, output = run_all({"passes": PASSES, "long": f"import time\n{PASSES}    time.sleep(1)\n"})
    assert "2 passed" in output
    remembered = tmp_path / ".pytest_cache" / "v" / forked_workers.LAST_SECONDS
    seconds = json.loads(remembered.read_text())
    assert set(seconds) == {"tests/test_long.py", "tests/test_passes.py"}
    assert seconds["tests/test_long.py"] >= 1
    items = [Item("tests/test_new.py"), *map(Item, seconds)]
    cache = SimpleNamespace(get=lambda name, _: {forked_workers.LAST_SECONDS: seconds}[name])
    session = SimpleNamespace(items=items, config=SimpleNamespace(cache=cache))
    first = items[forked_workers.Run(session, 2).queue[0][0]]
    assert first.path == max(seconds, key=seconds.get)


def test_a_large_example_does_not_hide_what_failed():
    @settings(database=None)
    @given(st.booleans().map(lambda is_long: "x" * 40_000 * is_long))
    def text_is_short(text):
        assert len(text) < 10, "what failed"

    with pytest.raises(AssertionError, match="what failed"):
        text_is_short()
