"""Children as their parent sees them: what they are asked, how they end, and what that means."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from fragdex.errors import SourceUnavailable, StoreFull, Unavailable, Unprocessable
from fragdex.sandbox.child import CRASHES, Idle
from fragdex.sandbox.folders import OwnFolder, take_file
from fragdex.sandbox.walls import Walls
from sandbox.conftest import FAILURES
from service.descendants import gone

pytestmark = pytest.mark.true_start


def test_a_child_gets_open_files_and_asks_for_more(inside, tmp_path):
    (tmp_path / "one").write_text("with the job")
    (tmp_path / "two").write_text("as an answer")
    child = inside()
    with (tmp_path / "one").open() as file:
        assert child.do("read", files=[file.fileno()]) == {"text": "with the job"}

    def answer(question):
        return {"twice": question["number"] * 2}, [os.open(tmp_path / "two", os.O_RDONLY)]

    replies = child.do("ask", number=21, answer=answer)
    assert replies == {"answer": {"twice": 42}, "text": "as an answer"}


@pytest.mark.parametrize("error", [SourceUnavailable("the store is away"), KeyError("x")])
def test_what_cannot_be_answered_is_raised_where_it_was_asked(inside, error):
    def answer(_):
        raise error

    child = inside()
    with pytest.raises(SourceUnavailable, match=r"away|KeyError"):
        child.do("ask", number=1, answer=answer)
    assert child.alive


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGFPE", "SIGXCPU"])
def test_a_crash_is_the_fault_of_what_it_was_given(inside, name):
    child = inside()
    with pytest.raises(Unprocessable, match=r"broke on this file|more processor time"):
        child.do("die", how=name)
    assert not child.alive


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_a_child_that_somebody_ended_may_be_tried_again(inside, name):
    with pytest.raises(Unavailable, match=name):
        inside().do("die", how=name)


def test_the_number_of_a_child_that_died_stays_its_own_until_it_is_ended(inside):
    """Else whoever gets the number next would be ended in its place."""
    child = inside()
    os.kill(child.pid, signal.SIGKILL)
    while child.alive:
        time.sleep(0.01)
    assert not child.alive
    os.kill(child.pid, 0)  # it is there
    child.end()
    gone([child.pid])


def test_an_exit_that_nobody_expected_tells_its_last_words(inside):
    with pytest.raises(RuntimeError, match=r"ended with 7: last words"):
        inside().do("die", how=7)


def test_a_child_that_hangs_is_ended(inside):
    child = inside(stall_seconds=0.5)
    with pytest.raises(Unprocessable, match="hung on this file"):
        child.do("burn")
    assert not child.alive


def test_a_child_that_takes_more_processor_time_than_it_may_is_ended(inside):
    with pytest.raises(Unprocessable, match="more processor time"):
        inside(Walls(256 << 20, 1 << 20, cpu_seconds=1)).do("burn")


@pytest.mark.parametrize(
    ("job", "arguments"),
    [
        ("go_on_without_memory", {}),
        ("clear_up_without_memory", {}),
        ("lose_the_error", {"memory": True}),
        ("ask_without_memory", {"answer": lambda _: ({}, ())}),
    ],
)
def test_a_child_without_memory_is_told_from_one_that_hangs(inside, job, arguments):
    child = inside(Walls(256 << 20, 1 << 20, cpu_seconds=30), stall_seconds=120)
    with pytest.raises(Unprocessable, match="needs more memory"):
        child.do(job, **arguments)
    assert not child.alive


def test_an_error_that_was_lost_with_memory_left_is_no_fault_of_the_file(inside):
    with pytest.raises(RuntimeError, match="without exception set"):
        inside().do("lose_the_error", memory=False)


def test_an_interpreter_that_gives_up_for_want_of_memory_needs_more_of_it():
    words = "Cannot recover from MemoryErrors while normalizing exceptions."
    assert "more memory" in str(FAILURES.ended("SIGABRT", words))


def test_a_child_that_writes_more_than_it_may_is_ended(inside):
    with pytest.raises(Unprocessable, match="would write more"):
        inside().do("fill", megabytes=2)


def test_a_full_disk_is_nobody_s_fault():
    error = FAILURES.ended(1, "OSError: [Errno 28] No space left on device")
    assert isinstance(error, StoreFull)


def test_who_is_not_wanted_any_more_ends_its_child(inside):
    class NotWanted(BaseException):
        pass

    def check():
        raise NotWanted

    child = inside()
    with pytest.raises(NotWanted):
        child.do("burn", check=check)
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)
    assert not child.folder.exists()


def test_a_child_knows_no_secret(inside, monkeypatch, tmp_path):
    monkeypatch.setenv("FRAGDEX_DATABASE_URL", "postgresql://user:secret@host/db")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    child = inside()
    child.do("path")
    assert b"secret" not in Path(f"/proc/{child.pid}/environ").read_bytes()
    assert b"secret" not in Path(f"/proc/{child.pid}/cmdline").read_bytes()


ALONE = """
import sys, threading
from fragdex.sandbox.child import ChildProcess
from fragdex.sandbox.child import Failures
from fragdex.sandbox.walls import Walls
child = ChildProcess("inside", Walls(256 << 20, 1 << 20), Failures("it", "this"))
child.do("path")
print(child.pid, child.folder, flush=True)
child.do("burn")
"""


def test_a_child_ends_with_its_parent_and_its_folder_goes_with_the_next(
    monkeypatch, tmp_path, pytestconfig
):
    scratch = Path("/tmp", f"test-{os.getpid()}")  # where its user comes through
    scratch.mkdir(mode=0o711)
    path = str(pytestconfig.rootpath / "tests" / "sandbox")
    with subprocess.Popen(
        [sys.executable, "-c", ALONE], text=True, stdout=subprocess.PIPE,
        env=os.environ | {"TMPDIR": str(scratch), "PYTHONPATH": path},
    ) as parent:  # fmt: skip
        pid, folder = parent.stdout.readline().split()
        parent.kill()
    gone([int(pid)])
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    ours, other = OwnFolder(), OwnFolder()
    assert sorted(scratch.iterdir()) == sorted([ours.path, other.path])
    assert Path(folder) not in scratch.iterdir()
    for one in (ours, other):
        one.remove()
        one.remove()
    scratch.rmdir()


@pytest.fixture(params=["here", "on another file system"])
def own(request, tmp_path):
    """The folder of a child: temporary folders are often in memory."""
    with tempfile.TemporaryDirectory(dir=tmp_path if request.param == "here" else MEMORY) as folder:
        if request.param != "here" and os.stat(folder).st_dev == tmp_path.stat().st_dev:
            pytest.skip("no other file system is known")
        yield Path(folder)


MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def test_only_plain_files_are_taken_from_a_child(own, tmp_path):
    secret = own / "secret"
    secret.write_text("x")
    for text in ("film", "the next one"):
        (own / "made").write_text(text)
        take_file(own / "made", tmp_path / "taken")
        assert (tmp_path / "taken").read_text() == text
        assert not (own / "made").exists()
    for trick in (
        lambda: os.symlink(secret, own / "made"),
        lambda: os.link(secret, own / "made"),
        lambda: os.mkfifo(own / "made"),
    ):
        trick()
        with pytest.raises(Unprocessable, match="not a file"):
            take_file(own / "made", tmp_path / "target")
        assert [path.name for path in tmp_path.iterdir() if path != own] == ["taken"]
        (own / "made").unlink(missing_ok=True)
    assert secret.read_text() == "x"


class Kept:
    def __init__(self, fit):
        self.fit, self.ended, self.alive = fit, False, True

    def end(self):
        self.ended = True


def test_of_what_is_kept_the_fittest_is_taken_and_the_oldest_goes():
    idle = Idle(60.0)
    one, two, three = (Kept(n) for n in (1, 3, 2))
    for kept in (one, two, three):
        idle.put(kept, most=2)
    assert one.ended
    assert idle.take(lambda kept: None) is None
    assert idle.take(lambda kept: kept.fit) is two
    idle.end()
    assert three.ended
    assert not two.ended


def test_what_died_while_it_was_kept_is_not_taken():
    idle = Idle(60.0)
    dead, other = Kept(2), Kept(1)
    for kept in (dead, other):
        idle.put(kept, most=2)
    dead.alive = False
    assert idle.take(lambda kept: kept.fit) is other
    assert dead.ended
    assert idle.take(lambda kept: kept.fit) is None


def test_what_nobody_takes_ends():
    idle = Idle(0.05)
    kept = Kept(1)
    idle.put(kept, most=1)
    until = time.monotonic() + 60
    while not kept.ended and time.monotonic() < until:
        time.sleep(0.01)
    assert kept.ended


def test_signals_that_crashes_send_have_names():
    import signal

    assert all(hasattr(signal, name) for name in CRASHES)


BESIDE = """
import subprocess, sys
from fragdex.sandbox.processes import end_session
one, other = (subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1) for _ in range(2))
end_session(one.pid)
one.kill()
print(one.wait(), other.poll())
other.kill()
"""


def test_whoever_ends_a_session_goes_on_itself():
    """A child that had not begun its session yet was in that of its parent: all of it ended."""
    done = subprocess.run(
        [sys.executable, "-c", BESIDE], start_new_session=True, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "-9 None\n")
