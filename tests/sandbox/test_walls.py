"""What a child of each kind cannot do, tried from inside, and what it still can."""

import json
import os
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

from fragdex.errors import Unprocessable
from fragdex.rendering import pool as renders
from fragdex.rendering.site import Page
from fragdex.sandbox import walls
from fragdex.sandbox.child import ChildProcess
from fragdex.sandbox.processes import memory_of_one, share_memory_among
from fragdex.service.images import probe as images
from fragdex.speech import process as speech
from fragdex.speech.engines import EngineChoice
from fragdex.transcode import running as media
from service.descendants import alive

pytestmark = pytest.mark.true_start

KINDS = ["media", "images", "speech", "renders"]
STARTERS = {"renders"}
"""Kinds that start programs: browsers, which are behind the same walls."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may change its user")


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def child(kind, inside, monkeypatch, root, tmp_path):
    """A child with the walls that the service puts around its kind, and other work in it."""
    seen = []
    began = ChildProcess.__init__

    class Seen(Exception):
        pass

    def noted(self, module, walls, failures, **more):
        seen.append((module, walls, failures, more))
        raise Seen

    file = root / "fixtures" / "faststart.mp4"
    start = {
        "media": lambda: media.run(file, tmp_path),
        "images": lambda: images.Prober().probe(file, "image/png", 1),
        "speech": lambda: speech.SpeechProcess(EngineChoice()),
        "renders": lambda: renders.RenderProcess(Page("<p>")),
    }[kind]
    monkeypatch.setattr(ChildProcess, "__init__", noted)
    with pytest.raises(Seen):
        start()
    monkeypatch.setattr(ChildProcess, "__init__", began)
    ((module, walls, failures, more),) = seen
    assert module.startswith("fragdex.")
    folder = more.pop("folder", None)
    if folder is not None:
        (folder / "work").mkdir()
        more["folder"] = folder / "work"
    child_process = ChildProcess("inside", walls, failures, **more)
    yield child_process
    child_process.end()


@pytest.fixture
def secrets(tmp_path):
    """What a child must not reach: a listening port, a socket, a database, another job's folder."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "fragdex.db").write_text("every tenant's")
    with (
        # not below TMPDIR, which may be in the memory that browsers share among their processes
        tempfile.TemporaryDirectory(dir="/var/tmp") as other,
        socket.create_server(("127.0.0.1", 0)) as port,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        # Others may look into it: only the walls are in the way.
        os.chmod(other, 0o777)
        Path(other, "secret").write_text("another job's")
        unix.bind(f"{other}/socket")
        os.chmod(f"{other}/socket", 0o777)
        unix.listen()
        abstract.bind("\0socket")
        abstract.listen()
        yield {
            "port": port.getsockname()[1], "unix": f"{other}/socket",
            "database": str(data / "fragdex.db"), "other": other,
            "outside": f"{other}/outside", "parent": os.getpid(),
        }  # fmt: skip


def test_no_way_out_of_a_child(child, kind, secrets):
    errors = child.do("ways_out", **secrets)
    open_ways = {name for name, error in errors.items() if not error}
    assert open_ways == ({"start", "fork"} if kind in STARTERS else set()), errors
    # What is refused is refused, and not merely not there.
    odd = {name: error for name, error in errors.items() if error and error != "PermissionError"}
    assert not odd


def test_no_message_goes_to_a_socket_that_has_a_name(child, tmp_path):
    """Every family and kind of socket, made alone or as one of a pair, to a path and without."""
    with (
        tempfile.TemporaryDirectory() as folder,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as at_path,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as abstract,
    ):
        os.chmod(folder, 0o777)
        places = [f"{folder}/socket", f"\0{folder}"]
        for server, place in zip((at_path, abstract), places, strict=True):
            server.bind(place)
            server.setblocking(False)
        os.chmod(places[0], 0o777)
        went = child.do("datagrams", places=places)["went"]
        came = []
        for server in (at_path, abstract):
            with suppress(BlockingIOError):
                came.append(server.recv(100))
    assert came == [], went


def test_a_child_has_no_rights(child):
    rights = child.do("rights")
    assert rights["capabilities"] == [0] * 5
    assert rights["no_new_privileges"]
    assert rights["seccomp"] == 2
    if os.geteuid() == 0:
        assert len(set(rights["user"])) == 1
        assert rights["user"][0] > 1_000_000
        assert rights["groups"] == []


def test_a_child_can_do_its_work(child):
    facts = child.do("work")
    assert (facts["own"], facts["threads"]) == ("x", 1)
    assert facts["stands"] == str(child.folder)


def test_a_child_that_takes_more_memory_than_it_may_is_not_started_again(
    inside, kind, monkeypatch, child
):
    before = memory_of_one()
    assert before > 1 << 29
    with pytest.raises(Unprocessable, match="needs more memory than"):
        child.do("take", megabytes=(16 << 30) >> 20)
    assert not child.alive


def test_nothing_is_left_of_a_child(child, kind):
    if kind not in STARTERS:
        pytest.skip("it cannot start anything")
    left = child.do("leave")["pid"]
    assert alive([left])
    child.end()
    assert not alive([left])


@as_root
def test_children_are_users_of_their_own(inside):
    one, two = inside().do("rights"), inside().do("rights")
    assert one["user"] != two["user"]


def test_a_child_that_changes_no_user_is_shut_in_too(secrets, pytestconfig):
    """As a service that does not run as root: the kernel's walls alone."""
    if os.geteuid() != 0:
        pytest.skip("every other test is about this then")
    script = f"""
import json, os, sys
os.chdir({str(Path(secrets["other"]))!r})
sys.path.insert(0, {str(Path(walls.__file__).parents[2])!r})
sys.path.insert(0, {str(Path(__file__).parent)!r})
from fragdex.sandbox.walls import Walls, shut_in
import inside
os.makedirs("mine"); os.chdir("mine")
missing = shut_in(Walls(1 << 30, 1 << 20))
print(json.dumps([missing, inside.ways_out(**{secrets!r}), inside.rights(), inside.work()]))
"""
    done = subprocess.run(
        ["/usr/bin/python3", "-B", "-c", script], capture_output=True, text=True, check=False,
        user=12345, group=12345, extra_groups=[],
    )  # fmt: skip
    if "SyntaxError" in done.stderr:
        pytest.skip("the system's Python is too old")
    assert done.returncode == 0, done.stderr
    missing, errors, rights, work = json.loads(done.stdout)
    assert missing == []
    assert not [name for name, error in errors.items() if not error]
    assert rights["capabilities"] == [0] * 5
    assert rights["user"] == [12345] * 3
    assert work["own"] == "x"


def test_a_wall_that_cannot_be_had_is_said_and_the_others_stand(secrets):
    """The kernel refuses a second filter to whoever may not make one: here it is told to."""
    script = f"""
import json, os, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from fragdex.sandbox import walls
def none(*_, **__): raise OSError(38, "Function not implemented")
walls.restrict_files = walls.install_filter = none
os.chdir({secrets["other"]!r}); os.makedirs("mine"); os.chdir("mine")
import inside
missing = walls.shut_in(walls.Walls(1 << 30, 1 << 20))
print(json.dumps([missing, inside.rights(), inside.ways_out(**{secrets!r})]))
"""
    output = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    missing, rights, ways = json.loads(output)
    assert len(missing) == 2
    assert "Landlock" in missing[0]
    assert "seccomp" in missing[1]
    assert rights["capabilities"] == [0] * 5
    assert ways["loopback"]  # the namespace has no network
    assert ways["read database"]  # another user's


def test_memory_is_shared_among_workers():
    share_memory_among(1)
    alone = memory_of_one()
    share_memory_among(1000)
    try:
        assert (1 << 30) == memory_of_one() <= alone <= (8 << 30)
    finally:
        share_memory_among(os.cpu_count() or 1)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_filters_lead_to_an_answer_from_every_step(machine):
    """No step jumps past the end, and every way ends in a return (seccomp(2))."""
    import struct

    for programs in (True, False):
        code = walls.compiled_filter(machine, programs=programs, own=7)
        steps = list(struct.iter_unpack("=HBBI", code))
        assert 0 < len(steps) <= 4096
        for place, (kind, true, false, _) in enumerate(steps):
            ways = [] if kind == 0x06 else [0] if kind == 0x20 else [true, false]
            assert all(place + 1 + way < len(steps) for way in ways)
        assert steps[-1][0] == 0x06
