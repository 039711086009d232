"""Sources on this machine: exact reads, counted reads, and files that change meanwhile."""

import gzip
import io
import mmap
import os
import pickle
import socket
import subprocess
import sys
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragdex.byterange import ByteRange
from fragdex.errors import (
    BudgetExceeded,
    MissingExtra,
    SourceChanged,
    SourceError,
    SourceNotFound,
    SourceUnavailable,
    TruncatedInput,
)
from fragdex.sources import Source, open_source
from fragdex.sources.files import BytesSource, FileObjectSource, FileSource

CONTENT = bytes(range(256)) * 40


def given_as(kind, content, folder):
    path = folder / "movie.mp4"
    path.write_bytes(content)
    match kind:
        case "path":
            return path
        case "str":
            return str(path)
        case "url":
            return path.as_uri()
        case "bytes":
            return content
        case "bytearray":
            return bytearray(content)
        case "memoryview":
            return memoryview(content)
        case "mmap":
            with path.open("rb") as file:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if content else b""
        case "numpy":
            return pytest.importorskip("numpy").frombuffer(content, dtype="u1")
        case "file":
            return path.open("rb")
        case "unbuffered":
            return path.open("rb", buffering=0)
        case "read and write":
            return path.open("r+b")
        case "BytesIO":
            return io.BytesIO(content)
        case "gzip":
            with gzip.open(folder / "movie.gz", "wb") as packed:
                packed.write(content)
            return gzip.open(folder / "movie.gz")
        case "zip":
            with zipfile.ZipFile(folder / "movie.zip", "w") as packed:
                packed.writestr("movie.mp4", content)
            return zipfile.ZipFile(folder / "movie.zip").open("movie.mp4")
    raise AssertionError(kind)


KINDS = [
    "path",
    "str",
    "url",
    "bytes",
    "bytearray",
    "memoryview",
    "mmap",
    "numpy",
    "file",
    "unbuffered",
    "read and write",
    "BytesIO",
    "gzip",
    "zip",
]


@pytest.fixture(params=KINDS)
def opened(request, tmp_path):
    what = given_as(request.param, CONTENT, tmp_path)
    with open_source(what) as source:
        yield source
    if hasattr(what, "close"):
        what.close()


class TestEverySource:
    def test_reads_exactly_what_was_asked(self, opened):
        assert opened.size == len(CONTENT)
        assert opened.read(ByteRange(300, 700)) == CONTENT[300:700]
        assert opened.read(ByteRange(0, len(CONTENT))) == CONTENT
        assert opened.read(ByteRange(5, 5)) == b""
        assert isinstance(opened.read(ByteRange(0, 1)), bytes)

    def test_a_range_past_the_end_is_refused_before_reading(self, opened):
        with pytest.raises(TruncatedInput) as raised:
            opened.read(ByteRange(len(CONTENT) - 1, len(CONTENT) + 1))
        assert raised.value.offset == len(CONTENT)
        assert opened.bytes_read == 0

    def test_a_guess_is_cut_at_the_end(self, opened):
        end = len(CONTENT)
        assert opened.read_up_to(ByteRange(end - 5, end + 100)) == CONTENT[-5:]
        assert opened.read_up_to(ByteRange(end, end + 100)) == b""
        assert opened.read_up_to(ByteRange(end + 100, end + 200)) == b""

    def test_pieces_join_to_the_whole(self, opened):
        assert b"".join(map(bytes, opened.pieces(size=999))) == CONTENT
        part = map(bytes, opened.pieces(ByteRange(10, 5000), size=999))
        assert b"".join(part) == CONTENT[10:5000]
        assert list(opened.pieces(ByteRange(7, 7))) == []
        with pytest.raises(TruncatedInput):
            list(opened.pieces(ByteRange(0, len(CONTENT) + 1)))

    def test_counts_requests_and_bytes(self, opened):
        opened.read(ByteRange(0, 10))
        opened.read_up_to(ByteRange(len(CONTENT) - 5, len(CONTENT) + 5))
        assert (opened.requests, opened.bytes_read) == (2, 15)
        opened.note_read(100, requests=1)
        assert (opened.requests, opened.bytes_read) == (3, 115)

    def test_the_budget_of_bytes_is_never_passed(self, opened):
        opened.max_bytes = 100
        opened.read(ByteRange(0, 60))
        with pytest.raises(BudgetExceeded):
            opened.read(ByteRange(0, 41))
        with pytest.raises(BudgetExceeded):
            opened.note_read(41)
        assert (opened.requests, opened.bytes_read) == (1, 60)
        opened.read(ByteRange(0, 40))
        assert opened.bytes_read == 100

    def test_the_budget_of_requests_is_never_passed(self, opened):
        opened.max_requests = 1
        opened.read(ByteRange(0, 60))
        with pytest.raises(BudgetExceeded):
            opened.read(ByteRange(0, 1))
        assert (opened.requests, opened.bytes_read) == (1, 60)

    def test_a_view_is_all_of_it_or_none(self, opened):
        view = opened.view()
        if view is None:
            assert isinstance(opened, FileObjectSource)
        else:
            assert view == CONTENT
            assert view.readonly
        assert opened.bytes_read == 0

    def test_refresh_finds_nothing_new(self, opened):
        assert opened.refresh() == len(CONTENT)

    def test_nothing_works_after_close(self, opened):
        view = opened.view()
        opened.close()
        opened.close()
        for act in (
            lambda: opened.read(ByteRange(0, 1)),
            opened.view,
            lambda: list(opened.pieces()),
        ):
            with pytest.raises(SourceError, match="is closed"):
                act()
        assert view is None or view[:3] == CONTENT[:3]

    def test_an_open_source_is_returned_as_it_is(self, opened):
        assert open_source(opened) is opened
        assert open_source(opened, max_bytes=5, max_requests=1).max_bytes == 5
        assert open_source(opened).max_requests == 1

    def test_prints_itself(self, opened):
        assert f"{len(CONTENT)} bytes" in repr(opened)
        assert not opened.remote
        assert opened.etag is None


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_to_read_is_no_error(kind, tmp_path):
    what = given_as(kind, b"", tmp_path)
    with open_source(what) as source:
        assert source.size == 0
        assert source.read_up_to(ByteRange(0, 64)) == b""
        assert source.view() in (None, b"")
        assert list(source.pieces()) == []
        with pytest.raises(TruncatedInput):
            source.read(ByteRange(0, 1))
    if hasattr(what, "close"):
        what.close()


@given(
    st.binary(max_size=200),
    st.lists(st.tuples(st.integers(0, 250), st.integers(0, 100))),
    st.data(),
)
def test_reads_are_slices(content, asked, data):
    kind = data.draw(st.sampled_from([bytes, io.BytesIO]))
    with open_source(kind(content)) as source:
        for start, size in asked:
            one = ByteRange.of(start, size)
            assert source.read_up_to(one) == content[start : start + size]
            if one.stop <= len(content):
                assert source.read(one) == content[start : start + size]


class TestWhatCannotBeRead:
    def test_a_path_where_nothing_is(self, tmp_path):
        for what in (tmp_path / "none.mp4", "", "a\0b", tmp_path / ("x" * 5000)):
            with pytest.raises(SourceNotFound):
                open_source(what)
        (tmp_path / "file").touch()
        with pytest.raises(SourceNotFound):
            open_source(tmp_path / "file" / "below")

    def test_a_directory(self, tmp_path):
        with pytest.raises(SourceError, match="is a directory"):
            open_source(tmp_path)

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
    def test_a_pipe_is_refused_without_waiting_for_its_other_end(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(SourceError, match=r"is a pipe.*fragdex\.Indexer"):
            open_source(tmp_path / "pipe")

    @pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no devices here")
    def test_a_device(self):
        with pytest.raises(SourceError, match="is a character device"):
            open_source("/dev/zero")

    @pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="no such sockets here")
    def test_a_socket(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)  # their paths are short
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("socket")
            with pytest.raises(SourceError, match="is a socket"):
                open_source("socket")

    def test_the_reading_end_of_a_pipe(self):
        reading, writing = os.pipe()
        refused = pytest.raises(SourceError, match=r"fragdex\.Indexer")
        with open(reading, "rb") as file, open(writing, "wb"), refused:
            open_source(file)

    def test_a_file_that_may_not_be_read(self, tmp_path):
        path = tmp_path / "locked.mp4"
        path.touch(mode=0)
        if os.access(path, os.R_OK):
            pytest.skip("this user may read everything")
        with pytest.raises(SourceError, match="may not be read"):
            open_source(path)

    def test_a_text_file(self, tmp_path):
        (tmp_path / "a").touch()
        with (tmp_path / "a").open() as file, pytest.raises(SourceError, match="mode 'rb'"):
            open_source(file)
        with pytest.raises(SourceError, match="mode 'rb'"):
            open_source(io.StringIO("text"))

    def test_a_closed_file(self):
        file = io.BytesIO(CONTENT)
        file.close()
        with pytest.raises(SourceError):
            open_source(file)

    def test_what_is_no_input(self):
        for what in (None, 5, object(), ["movie.mp4"]):
            with pytest.raises(SourceError, match="pass a path"):
                open_source(what)

    def test_bytes_in_several_pieces(self):
        with pytest.raises(SourceError, match="contiguous"):
            open_source(memoryview(CONTENT)[::2])

    def test_an_unknown_scheme(self):
        with pytest.raises(SourceError, match="ftp://"):
            open_source("ftp://example.org/movie.mp4")


class TestFilesThatChange:
    def test_a_growing_file_shows_its_growth_on_refresh(self, tmp_path):
        path = tmp_path / "growing.mp4"
        path.write_bytes(b"first")
        with open_source(path) as source, path.open("ab") as writer:
            before = source.view()
            writer.write(b"second")
            writer.flush()
            assert source.read_up_to(ByteRange(0, 100)) == b"first"
            with pytest.raises(TruncatedInput):
                source.read(ByteRange(0, 6))
            assert source.refresh() == 11
            assert source.read(ByteRange(3, 11)) == b"stsecond"
            assert source.view() == b"firstsecond"
            assert before == b"first"

    def test_a_file_cut_off_meanwhile_ends_no_process(self, tmp_path):
        path = tmp_path / "cut.mp4"
        path.write_bytes(bytes(5 * mmap.PAGESIZE))
        with open_source(path) as source:
            source.view()
            os.truncate(path, mmap.PAGESIZE)
            for act in (
                source.view,
                source.refresh,
                lambda: source.read(ByteRange(0, 2 * mmap.PAGESIZE)),
                lambda: list(source.pieces()),
            ):
                with pytest.raises(SourceChanged) as raised:
                    act()
                assert raised.value.found == str(mmap.PAGESIZE)
            # what is still there can be read
            assert source.read(ByteRange(0, mmap.PAGESIZE)) == bytes(mmap.PAGESIZE)

    def test_another_file_in_its_place_is_found_by_refresh(self, tmp_path):
        path = tmp_path / "movie.mp4"
        path.write_bytes(b"old")
        with open_source(path) as source:
            (tmp_path / "new").write_bytes(b"longer than before")
            os.replace(tmp_path / "new", path)
            assert source.read(ByteRange(0, 3)) == b"old"
            with pytest.raises(SourceChanged, match="another file"):
                source.refresh()

    def test_a_deleted_file_lives_on_while_open(self, tmp_path):
        path = tmp_path / "movie.mp4"
        path.write_bytes(b"old")
        with open_source(path) as source:
            path.unlink()
            assert source.refresh() == 3
            assert source.view() == b"old"

    def test_an_open_file_may_grow_and_shrink_too(self):
        file = io.BytesIO(b"first")
        with open_source(file) as source:
            file.seek(0, io.SEEK_END)
            file.write(b"second")
            assert source.read_up_to(ByteRange(0, 100)) == b"first"
            assert source.refresh() == 11
            assert source.read(ByteRange(5, 11)) == b"second"
            file.truncate(3)
            with pytest.raises(SourceChanged):
                source.read(ByteRange(0, 11))
            with pytest.raises(SourceChanged):
                source.refresh()


class TestOpenFiles:
    def test_are_left_open_and_where_they_stood(self, tmp_path):
        (tmp_path / "a").write_bytes(CONTENT)
        for file in (io.BytesIO(CONTENT), (tmp_path / "a").open("rb")):
            file.seek(7)
            with open_source(file) as source:
                assert source.read(ByteRange(0, 3)) == CONTENT[:3]
            assert file.read(3) == CONTENT[7:10]
            file.close()

    def test_plain_files_are_mapped(self, tmp_path):
        (tmp_path / "a").write_bytes(CONTENT)
        with (tmp_path / "a").open("rb") as file:
            source = open_source(file)
        # a descriptor of its own: it outlives the file it came from
        assert isinstance(source, FileSource)
        assert source.view() == CONTENT
        source.close()

    def test_compressed_files_are_read_through_their_own_reader(self, tmp_path):
        with gzip.open(tmp_path / "a.gz", "wb") as packed:
            packed.write(CONTENT)
        with gzip.open(tmp_path / "a.gz") as file, open_source(file) as source:
            assert isinstance(source, FileObjectSource)
            assert source.read(ByteRange(1, 3)) == CONTENT[1:3]

    def test_short_reads_are_put_together(self):
        class Reluctant(io.BytesIO):
            def read(self, size=-1):
                return super().read(min(size, 3))

        assert open_source(Reluctant(CONTENT)).read(ByteRange(0, 100)) == CONTENT[:100]

    def test_reads_that_fail_say_so(self):
        class Broken(io.BytesIO):
            def read(self, size=-1):
                raise OSError("the disk is gone")

        class Lying(io.BytesIO):
            def read(self, size=-1):
                return bytes(size + 1)

        with pytest.raises(SourceUnavailable, match="the disk is gone"):
            open_source(Broken(CONTENT)).read(ByteRange(0, 10))
        with pytest.raises(SourceError, match="answers read wrongly"):
            open_source(Lying(CONTENT)).read(ByteRange(0, 10))


def test_bytes_are_not_copied():
    data = bytearray(CONTENT)
    source = BytesSource(data)
    data[0] = 99
    assert source.view()[0] == 99
    assert source.fileno() is None


def test_a_piece_kept_too_long_is_never_other_bytes(tmp_path):
    (tmp_path / "a").write_bytes(CONTENT)
    with open_source(tmp_path / "a") as source:
        kept = list(source.pieces(size=999))
        with pytest.raises(ValueError, match="released"):
            bytes(kept[0])
        # who holds the buffer itself keeps it
        held = [pickle.PickleBuffer(piece) for piece in source.pieces(size=999)]
        assert b"".join(held) == CONTENT


def test_files_lend_their_descriptor(tmp_path):
    (tmp_path / "a").write_bytes(CONTENT)
    with open_source(tmp_path / "a") as source:
        assert os.pread(source.fileno(), 3, 1) == CONTENT[1:4]


def test_a_forgotten_source_closes_its_file(tmp_path):
    (tmp_path / "a").write_bytes(CONTENT)
    source = open_source(tmp_path / "a")
    descriptor = source.fileno()
    del source
    with pytest.raises(OSError):
        os.fstat(descriptor)


def test_a_source_of_ones_own_needs_one_method():
    class Rot13(Source):
        def read_up_to(self, range):
            asked = self._spend(range)
            return b"abcdef"[asked.start : asked.stop]

    with Rot13("mine", size=None) as source:
        assert b"".join(source.pieces(size=4)) == b"abcdef"
        assert source.read(ByteRange(1, 3)) == b"bc"
        with pytest.raises(TruncatedInput):
            source.read(ByteRange(1, 9))
        with pytest.raises(TruncatedInput):
            list(source.pieces(ByteRange(0, 9), size=4))
        assert source.view() is None
        assert source.refresh() is None
        assert "size unknown" in repr(source)


@pytest.mark.parametrize(
    ("module", "what", "extra"),
    [
        ("httpx", "http://127.0.0.1:9/movie.mp4", "fragdex[remote]"),
        ("obstore", "s3://bucket/movie.mp4", "fragdex[remote]"),
    ],
)
def test_a_missing_extra_is_named(module, what, extra):
    program = f"""
import sys
sys.modules[{module!r}] = None
from fragdex.errors import MissingExtra
from fragdex.sources import open_source
assert open_source(b"abc").size == 3
try:
    open_source({what!r})
except MissingExtra as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert extra in done.stdout, done.stderr
    assert issubclass(MissingExtra, ImportError)


def test_opening_a_file_imports_no_extra(tmp_path):
    (tmp_path / "a").write_bytes(CONTENT)
    program = f"""
import sys
from fragdex.sources import md5
md5({str(tmp_path / "a")!r})
print(sorted({{"httpx", "obstore", "numpy", "construct"}} & set(sys.modules)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "[]", done.stderr
