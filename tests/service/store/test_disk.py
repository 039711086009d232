"""What only a disk does: full, gone, killed in the middle."""

import errno
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fragdex import ByteRange
from fragdex.errors import ConfigError, SourceNotFound, StoreFull, Unavailable
from fragdex.service.store import disk, open_store
from fragdex.service.store.disk import JUST_NOW_S, DiskStore
from service.store.conformance import CONTENT

PROGRAM = Path(__file__).with_name("draft_program.py")


@pytest.fixture
def store(tmp_path):
    return open_store(tmp_path / "store")


def whole(store, key):
    return b"".join(store.read(key, ByteRange(0, store.size(key))))


class TestKilled:
    def test_durable_bytes_survive_kill_9(self, store):
        durable_bytes = 0
        for _ in range(3):
            command = [sys.executable, PROGRAM, store.root]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
                for _ in range(15):
                    durable_bytes = int(writer.stdout.readline())
                writer.send_signal(signal.SIGKILL)
                durable_bytes = max(
                    [durable_bytes, *(int(line) for line in writer.stdout.read().split())]
                )
            draft = store.draft("killed")
            size = draft.size()
            assert size >= durable_bytes > 0
            content = b"".join(bytes(piece) for piece in draft.read())
            assert content == (CONTENT * (size // len(CONTENT) + 2))[:size]
            draft.close()
        draft.finish("whole")
        assert whole(store, "whole") == content

    def test_what_a_crash_left_is_swept(self, tmp_path, store):
        def pieces():
            yield b"half"
            (left,) = (tmp_path / "store" / "temporary").iterdir()
            kept.append(left.read_bytes())
            os.link(left, left.with_name("left"))
            os.link(left, left.with_name("older"))

        kept = []
        store.write("a", pieces())
        assert whole(store, "a") == b"half"
        temporary = tmp_path / "store" / "temporary"
        old = temporary / "old"
        old.write_bytes(b"of a crash")
        os.utime(old, (time.time() - JUST_NOW_S - 60,) * 2)
        open_store(tmp_path / "store")
        assert {path.name for path in temporary.iterdir()} == {"left", "older"}


class TestFull:
    """With a real limit: a file system of 2 MiB where that can be had, and the limit on files."""

    LIMIT = 300_000

    @pytest.fixture
    def limited(self):
        """Files of this process may have LIMIT bytes: EFBIG, as on a disk that is full."""
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.LIMIT, before[1]))
        yield
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)

    def test_nothing_that_was_durable_is_lost(self, store, limited):
        self.fill(store)

    def fill(self, store):
        draft = store.draft("a")
        piece = CONTENT[:100_000]

        def append_for_ever():
            while True:
                draft.append(draft.sync(), piece)

        with pytest.raises(StoreFull) as full:
            append_for_ever()
        assert full.value.retry_after
        at = draft.sync()
        assert at
        assert at % len(piece) == 0, "no part of a piece is left"
        draft.close()
        again = store.draft("a")
        assert again.size() == at
        assert b"".join(bytes(p) for p in again.read()) == piece * (at // len(piece))
        with pytest.raises(StoreFull):
            store.write("b", [CONTENT] * 20)
        with pytest.raises(SourceNotFound):
            store.size("b")
        again.finish("c")
        assert store.size("c") == at
        store.delete("c")
        store.write("b", [piece])
        assert whole(store, "b") == piece

    def test_on_a_small_file_system(self, tmp_path):
        program = (
            "import sys; sys.path[:0] = sys.argv[1:3]\n"
            "from test_disk import TestFull, open_store\n"
            "TestFull().fill(open_store(sys.argv[3]))\n"
            "print('held')"
        )
        here = Path(__file__).parent
        mount = f'mount -t tmpfs -o size=2m none "{tmp_path}" && exec "$@"'
        command = [sys.executable, "-c", program, here, here.parents[1], tmp_path / "store"]
        done = subprocess.run(
            ["unshare", "-rm", "sh", "-c", mount, "sh", *command],
            capture_output=True,
            check=False,
            text=True,
        )
        if done.returncode and "Traceback" not in done.stderr:
            pytest.skip("a file system cannot be mounted here")
        assert done.stdout == "held\n", done.stderr


class TestGone:
    def test_a_disk_that_is_not_mounted_is_not_an_empty_one(self, tmp_path, store):
        store.write("a", [b"a"])
        draft = store.draft("d")
        draft.append(0, b"d")
        draft.close()
        (tmp_path / "store").rename(tmp_path / "elsewhere")
        for call in (
            lambda: store.size("a"),
            lambda: list(store.read("a", ByteRange(0, 1))),
            lambda: store.write("b/c", [b"b"]),
            lambda: store.draft("d").size(),
            lambda: store.draft("d").append(0, b"x"),
            store.check,
        ):
            with pytest.raises(Unavailable):
                call()
        assert not (tmp_path / "store").exists()
        (tmp_path / "elsewhere").rename(tmp_path / "store")
        store.check()
        assert whole(store, "a") == b"a"
        assert store.draft("d").size() == 1

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(Unavailable):
            open_store(tmp_path / "file" / "store")


@pytest.mark.parametrize("again", [False, True])
def test_what_a_failed_flush_left_in_doubt_is_not_counted(store, monkeypatch, again):
    """The system tells once that it lost pages; the flush after that succeeds."""
    draft = store.draft("d")
    draft.append(0, b"durable")
    draft.sync()
    if again:
        draft.close()
        draft = store.draft("d")
        assert draft.holds(7)
    draft.append(7, b"lost")

    def lose(descriptor):
        raise OSError(errno.EIO, "lost")

    with monkeypatch.context() as broken:
        broken.setattr(disk, "_flush", lose)
        with pytest.raises(Unavailable):
            draft.sync()
    assert draft.sync() == 7
    assert b"".join(bytes(piece) for piece in draft.read()) == b"durable"


class TestPlaces:
    def test_links_are_not_followed(self, tmp_path, store):
        (tmp_path / "secret").write_bytes(b"secret")
        (tmp_path / "store" / "objects" / "a").symlink_to(tmp_path / "secret")
        with pytest.raises(SourceNotFound):
            store.size("a")
        with pytest.raises((SourceNotFound, Unavailable)):
            list(store.read("a", ByteRange(0, 1)))

    def test_empty_folders_go(self, tmp_path, store):
        store.write("a/b/c", [b"x"])
        draft = store.draft("d/e")
        draft.append(0, b"x")
        draft.finish("a/d")
        store.delete("a/b/c")
        store.delete("a/d")
        names = sorted(path.name for path in (tmp_path / "store").rglob("*"))
        assert names == ["drafts", "objects", "temporary"]

    def test_a_draft_that_became_an_object_is_not_written_any_more(self, store):
        first, second = store.draft("d"), store.draft("d")
        first.append(0, b"content")
        second.finish("a")
        first.append(0, b"x")
        assert whole(store, "a") == b"content"
        first.discard()


@pytest.mark.parametrize(
    "url", ["ftp://a/b", "s3://", "s3:///a", "file://", "file://elsewhere/a", "http://a/b"]
)
def test_settings_that_name_no_store(url):
    with pytest.raises(ConfigError):
        open_store(url)


def test_settings_that_name_a_folder(tmp_path):
    for where in (tmp_path, str(tmp_path), tmp_path.as_uri()):
        store = open_store(where)
        assert isinstance(store, DiskStore)
        assert store.root == tmp_path


WRITER = """
import sys
from fragdex.service.store.disk import DiskStore

def pieces():
    yield b"first"
    print("writing", flush=True)
    sys.stdin.read()
    yield b" and last"

DiskStore(sys.argv[1]).write("an/object", pieces())
"""


def test_what_a_killed_writer_left_is_swept_and_what_a_live_one_writes_is_not(tmp_path):
    store = DiskStore(tmp_path)
    temporary = tmp_path / "temporary"
    writers = []
    for _ in range(2):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        writers.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        assert writers[-1].stdout.readline() == b"writing\n"
    killed, alive = writers
    killed.kill()
    killed.communicate()
    assert len(list(temporary.iterdir())) == 2
    assert store.sweep_temporary() == 0  # made just now: it might not be locked yet
    for path in temporary.iterdir():
        os.utime(path, (0, 0))
    assert store.sweep_temporary() == 1
    alive.communicate()
    assert alive.returncode == 0
    assert b"".join(store.read("an/object", ByteRange(0, 14))) == b"first and last"
    assert list(temporary.iterdir()) == []
