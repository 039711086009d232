"""Whatever clients send in whatever order: `next_byte` as told, and in the end the right bytes."""

import hashlib
import tempfile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from fragdex import ByteRange
from fragdex.errors import Unprocessable, UploadGap
from fragdex.service.records import blobs
from fragdex.service.records.database import Database
from fragdex.service.records.identifiers import new_id
from fragdex.service.records.migrations import upgrade
from fragdex.service.store import open_store
from fragdex.service.uploads import hashing
from fragdex.service.uploads.model import Progress
from fragdex.service.uploads.operations import begin, receive, state

from .conftest import a_context, new_tenant

SIZE = 1000
CONTENT = bytes(number * 7 % 251 for number in range(SIZE))
WRONG = bytes(SIZE)
MD5 = hashlib.md5(CONTENT).digest()
SHA256 = hashlib.sha256(CONTENT).digest()


class _Gone(Exception):
    pass


class UploadMachine(RuleBasedStateMachine):
    """The model: what the bytes up to `next_byte` are, by which of two clients sent them."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        database = Database(f"sqlite:///{self.folder.name}/fragdex.db")
        upgrade(database)
        self.context = a_context(database, open_store(f"{self.folder.name}/store"))
        self.tenant = new_tenant(database)
        self.record = new_id()
        self.held = b""
        self.complete = False

    @initialize(is_measured=st.booleans())
    def announce(self, is_measured):
        """`is_measured`: its length is announced, too; else the total of some chunk says it."""
        size, self.is_measured = SIZE if is_measured else None, is_measured
        with self.context.database.write() as connection:
            begin(self.context, connection, self.tenant, "image", self.record, size, MD5)

    def teardown(self):
        self.context.database.close()
        self.folder.cleanup()

    @rule(
        start=st.integers(0, SIZE - 1),
        size=st.integers(1, SIZE),
        content=st.sampled_from([CONTENT, CONTENT, CONTENT, WRONG]),
        piece=st.sampled_from([10, 333, SIZE]),
        total=st.sampled_from([SIZE, "*"]),
    )
    def chunk(self, start, size, content, piece, total):
        stop = min(SIZE, start + size)
        self.send(start, stop, content, piece, f"bytes {start}-{stop - 1}/{total}")

    @rule(
        size=st.integers(1, SIZE),
        content=st.sampled_from([CONTENT, CONTENT, WRONG]),
        total=st.sampled_from([SIZE, "*"]),
    )
    def chunk_at_next_byte(self, size, content, total):
        if len(self.held) < SIZE:
            start = len(self.held)
            stop = min(SIZE, start + size)
            self.send(start, stop, content, 100, f"bytes {start}-{stop - 1}/{total}")

    @rule()
    def total_alone(self):
        self.send(SIZE, SIZE, CONTENT, 100, f"bytes */{SIZE}")

    @rule(content=st.sampled_from([CONTENT, CONTENT, WRONG]))
    def whole(self, content):
        self.send(0, SIZE, content, 300, None)

    def send(self, start, stop, content, piece, text):
        if text and text.endswith(f"/{SIZE}") and start <= len(self.held) < SIZE:
            self.is_measured = True
        ends = text is None or text.endswith(f"/{SIZE}")
        pieces = [content[at : min(stop, at + piece)] for at in range(start, stop, piece)]
        answer = None
        try:
            answer = receive(self.context, self.tenant, "image", self.record, text, pieces)
        except (UploadGap, Unprocessable) as error:
            refused = error
        if answer is None:
            if self.complete:
                assert content != CONTENT
            self.refused(refused, start, self.held + content[len(self.held) : stop])
            return
        assert not (self.complete and text is None and content != CONTENT)
        ends = ends or self.is_measured
        assert self.complete or start <= len(self.held)
        if stop > len(self.held):
            self.held += content[len(self.held) : stop]
        self.complete = self.complete or (ends and self.held == CONTENT)
        self.is_measured |= self.complete
        assert answer == self.expected()

    def refused(self, error, start, bytes_then):
        if self.complete:
            # another whole file than the one that is here: its sender learns that it is not kept
            assert len(bytes_then) == SIZE
            return
        if isinstance(error, UploadGap):
            assert start > len(self.held) == error.more["next_byte"]
        else:
            assert error.more["next_byte"] == 0
            assert len(bytes_then) == SIZE
            assert bytes_then != CONTENT
            self.held = b""

    @rule(stop=st.integers(1, SIZE - 1))
    def client_gone(self, stop):
        def pieces():
            yield CONTENT[:stop]
            raise _Gone

        try:
            receive(self.context, self.tenant, "image", self.record, None, pieces())
        except _Gone:
            if not self.complete and stop > len(self.held):
                self.held += CONTENT[len(self.held) : stop]

    @rule()
    def restart(self):
        hashing.held.clear()

    def expected(self):
        next_byte = SIZE if self.complete else len(self.held)
        return Progress(SIZE if self.is_measured else None, next_byte, self.complete)

    @invariant()
    def the_state_is_the_models(self):
        assert state(self.context, self.tenant, "image", self.record) == self.expected()

    @invariant()
    def complete_means_the_right_bytes(self):
        with self.context.database.read() as connection:
            blob = blobs.find(connection, self.tenant, SHA256)
        assert (blob is not None) == self.complete
        if blob is not None:
            stored = self.context.store.read(blob.store_key, ByteRange(0, SIZE))
            assert b"".join(stored) == CONTENT
            assert blob.sha256 == hashlib.sha256(CONTENT).digest()
            assert list(self.context.store.drafts()) == []


TestUploads = UploadMachine.TestCase
TestUploads.settings = settings(max_examples=15, stateful_step_count=15, deadline=None)
