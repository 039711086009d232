"""A forked process of the tests is what a started one is."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import forkserver

PROGRAM = Path(__file__).parent / "forked_program.py"


def started(*arguments, **more):
    return subprocess.Popen([sys.executable, str(PROGRAM), *arguments], text=True, **more)


def told(*arguments, **more):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, check=True,
        **more,
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.fixture(params=["forked", pytest.param("true", marks=pytest.mark.true_start)])
def way(request):
    """The same of both ways to start."""
    return request.param


def test_one_way_is_a_fork_and_the_other_is_not(way):
    assert told("state")["is_fork"] == (way == "forked")


def test_it_has_the_arguments_environment_and_folder_that_it_was_given(way, tmp_path):
    state = told("state", "ä", "", cwd=tmp_path, env={**os.environ, "FRAGDEX_OF_A_TEST": "1"})
    assert state["argv"] == [str(PROGRAM), "state", "ä", ""]
    assert state["cwd"] == str(tmp_path.resolve())
    assert state["variable"] == "1"
    assert state["path"] == str(PROGRAM.parent)
    assert "FRAGDEX_OF_A_TEST" not in os.environ


def test_it_is_a_child_of_whoever_started_it(way):
    assert told("state")["parent"] == os.getpid()


def test_it_has_no_files_but_those_that_it_was_given(way, tmp_path):
    with open(tmp_path / "kept", "w") as kept, open(tmp_path / "passed", "w") as passed:
        state = told("state", pass_fds=[passed.fileno()])
        assert not kept.closed
        assert set(state["files"]) == {0, 1, 2, passed.fileno()}


def test_a_session_of_its_own(way):
    with started("sleep", stdout=subprocess.PIPE, start_new_session=True) as process:
        process.stdout.readline()
        assert os.getsid(process.pid) == process.pid
        os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


def test_the_session_is_there_as_soon_as_the_process_is(way):
    """Whoever ended a session at once ended that of the tests."""
    for _ in range(30 if way == "forked" else 3):
        with started("sleep", stdout=subprocess.DEVNULL, start_new_session=True) as process:
            session = os.getsid(process.pid)
            process.kill()
        assert session == process.pid


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_it_ends_by_signals(way, number):
    with started("sleep", stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdout.readline()
        process.send_signal(number)
        assert process.wait(60) == -number


@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        ("exit", 7, ""),
        ("words", 1, "the words\n"),
        ("none", 0, ""),
        ("raise", 1, "ValueError: x\n"),
    ],
)
def test_it_ends_by_itself(way, how, code, said):
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "end", how], capture_output=True, text=True, check=False
    )
    assert done.returncode == code
    assert done.stdout == "at exit\n"
    assert done.stderr.endswith(said)


def test_what_is_written_to_it_comes_back(way):
    process = started("echo", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.communicate("ä\n" * 100_000)[0] == "ä\n" * 100_000


def test_no_two_draw_the_same(way):
    assert len({told("state")["drawn"] for _ in range(3)}) == 3


def test_what_decides_about_imports_starts_an_interpreter():
    plain = dict(os.environ)
    command = [sys.executable, "-m", "fragdex", "info"]
    child = [sys.executable, "-P", "-B", "-m", "fragdex.sandbox.start", "module", "{}"]
    assert forkserver.program_of(command, plain)
    little = {"PATH": plain["PATH"], "HOME": "."} | forkserver._that_change_imports(plain)
    assert forkserver.program_of(child, little)
    for name in (
        "FRAGDEX_PURE_PYTHON",
        "PYTHONPATH",
        "OTEL_SDK_DISABLED",
        "COVERAGE_PROCESS_START",
    ):
        assert forkserver.program_of(command, plain | {name: "1"}) is None
    for other in (["ls"], [sys.executable, "-c", "1"], [sys.executable, "-m", "json"], "ls"):
        assert forkserver.program_of(other, plain) is None
