"""What every test may ask for: hypothesis profiles, the shared corpus, the oracle."""

import gc
import json
import linecache
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import forkserver

ROOT = Path(__file__).parent.parent

forkserver.install()

# What is imported and collected stays: to look for garbage in it takes a third of the start.
gc.disable()

# Programs that need more than the library does, not tests.
collect_ignore = ["oracle/ffmpeg_packets.py", "oracle/pymp4_dump.py"]

# No deadlines: a test that fails because the machine is busy proves nothing.
settings.register_profile(
    "fragdex", deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow]
)
# A build server judges the change, not the draw: the same examples every time. New ones are drawn
# by every local run, and by `./dev fuzz`. A failing one is printed in a form that can be replayed.
settings.register_profile(
    "ci", settings.get_profile("fragdex"), derandomize=True, print_blob=True, database=None
)
PROFILE = "ci" if os.environ.get("CI", "") not in ("", "false", "0") else "fragdex"
settings.register_profile("short", settings.get_profile(PROFILE), max_examples=15)
settings.register_profile("many", settings.get_profile(PROFILE), max_examples=300)
settings.load_profile(PROFILE)


def pytest_make_parametrize_id(val, argname):
    """Bytes are named after their argument: a made archive holds the second it was made in, and
    processes that run tests side by side must agree about the names of the tests.
    """
    return argname if isinstance(val, bytes) else None


def pytest_configure(config):
    """The full product draws many more examples."""
    if config.getoption("full_product"):
        settings.load_profile("many")


def pytest_collection_modifyitems(config, items):
    """Slow tests hang later; a test's own `timeout` stands."""
    allowed = 3 * float(config.getini("timeout"))
    for item in items:
        slow = item.get_closest_marker("slow")
        if slow and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(allowed))


def pytest_collection_finish(session):
    """The thousands of tests stay: Python's collector need not look at them again and again.

    Lines of source that were looked up stay no longer: 20 MB of each process.
    """
    linecache.clearcache()
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def starting(request):
    """Tests marked `true_start` start true interpreters."""
    if request.node.get_closest_marker("true_start"):
        with forkserver.turned_off():
            yield
    else:
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    """Whatever a test calls may change how its process is scheduled, and all that come after it."""
    done = yield
    if hasattr(os, "sched_getscheduler") and os.sched_getscheduler(0) != os.SCHED_OTHER:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        pytest.fail("the test left its process in another scheduling class", pytrace=False)
    return done


@pytest.fixture(scope="session")
def root():
    """The root of the checkout."""
    return ROOT


def corpus_folder():
    """The folder that FRAGDEX_CORPUS names, or None."""
    named = os.environ.get("FRAGDEX_CORPUS", "")
    return Path(named) if named else None


@pytest.fixture(scope="session")
def corpus():
    """The folder with the shared corpus of real files; without it the test is skipped."""
    folder = corpus_folder()
    if folder is None:
        pytest.skip("FRAGDEX_CORPUS names no folder")
    if not (folder / "MANIFEST.json").is_file():
        pytest.fail(f"FRAGDEX_CORPUS={folder} holds no MANIFEST.json")
    return folder


@pytest.fixture(scope="session")
def ask_pymp4():
    """ask_pymp4(*paths): one dict per top-level box, as oracle/pymp4_dump.py describes it."""
    python = ROOT / ".venv-pymp4" / "bin" / "python"
    if not python.is_file():
        pytest.skip("no .venv-pymp4: ./dev setup makes it")
    program = Path(__file__).parent / "oracle" / "pymp4_dump.py"

    def ask(*paths):
        done = subprocess.run(
            [python, program, *paths],
            capture_output=True,
            check=True,
            text=True,
            # the environment under test has no say in the oracle's
            env={k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COVERAGE"))},
        )
        return [json.loads(line) for line in done.stdout.splitlines()]

    return ask


@pytest.fixture(scope="session")
def ask_mp4box():
    """ask_mp4box(*files): one dict per list of paths, as oracle/node/samples.mjs describes it."""
    folder = Path(__file__).parent / "oracle" / "node"
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: MP4Box.js is not asked (on Debian: apt-get install nodejs npm)")
    version = subprocess.run([node, "--version"], capture_output=True, check=True, text=True).stdout
    if int(version.strip().lstrip("v").partition(".")[0]) < 20:
        pytest.skip(f"node is {version.strip()}: MP4Box.js asks for 20.8.1 or later")
    if not (folder / "node_modules" / "mp4box").is_dir():
        pytest.skip("no MP4Box.js: ./dev setup installs it where npm is there")

    def ask(*files):
        lines = [json.dumps([str(path) for path in paths]) for paths in files]
        done = subprocess.run(
            [node, folder / "samples.mjs"],
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            check=True,
            text=True,
        )
        answers = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(answers) == len(files)
        return answers

    return ask


@pytest.fixture
def checkout(tmp_path, monkeypatch, root):
    """A folder that looks like a checkout to a reader of the docs, and may be written to.

    What the examples leave there, git must not show; what is there when a test says
    `git add` is the test's own.
    """
    (tmp_path / "fixtures").symlink_to(root / "fixtures")
    shutil.copy(root / ".gitignore", tmp_path)
    monkeypatch.chdir(tmp_path)
    git = shutil.which("git")
    if git is not None:
        subprocess.run([git, "init", "--quiet"], check=True)
        subprocess.run([git, "add", "--all"], check=True)
    yield tmp_path
    if git is not None:
        status = [git, "status", "--porcelain"]
        told = subprocess.run(status, check=True, capture_output=True, text=True).stdout
        left = sorted(line[3:] for line in told.splitlines() if line.startswith("??"))
        assert left == [], "examples write below out/, or .gitignore has what they write"
