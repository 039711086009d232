"""A draft against a model: whatever is done to it, durable bytes are a prefix that was written."""

import secrets
import tempfile

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fragdex.errors import SourceNotFound
from fragdex.service.store import open_store


class DraftMachine(RuleBasedStateMachine):
    """`written` is all that was appended, `durable` how much of it the last sync told."""

    def __init__(self):
        super().__init__()
        self.store = self.open()
        self.name = f"d{secrets.token_hex(4)}"
        self.draft = self.store.draft(self.name)
        self.written = b""
        self.durable = 0

    @rule(data=st.binary(max_size=50), back=st.one_of(st.just(0), st.integers(0, 60)))
    def append(self, data, back):
        start = max(0, len(self.written) - back)
        self.draft.append(start, data)
        self.written = self.written[:start] + data
        self.durable = min(self.durable, start)

    @rule(gap=st.integers(1, 100))
    def append_behind_a_gap(self, gap):
        try:
            self.draft.append(len(self.written) + gap, b"x")
        except ValueError:
            return
        raise AssertionError("a gap was written")

    @rule()
    def sync(self):
        self.durable = self.draft.sync()
        assert self.durable == len(self.written)

    @rule()
    def killed_and_reopened(self):
        self.draft = self.open().draft(self.name)
        size = self.draft.size()
        assert self.durable <= size <= len(self.written)
        self.written = self.written[:size]
        self.durable = size

    @rule()
    def closed_and_used_again(self):
        self.draft.close()
        size = self.draft.size()
        assert self.durable <= size <= len(self.written)
        self.written = self.written[:size]
        self.durable = size

    @rule()
    def held_and_used_again(self):
        """As an upload goes on: what is durable is known, and nothing is flushed for it."""
        self.draft.close()
        assert self.draft.holds(self.durable)
        assert not self.draft.holds(len(self.written) + 1)
        self.draft.append(self.durable, b"")
        self.written = self.written[: self.durable]

    @precondition(lambda self: self.durable)
    @rule(data=st.data())
    def forked(self, data):
        size = data.draw(st.integers(1, self.durable))
        self.name = f"d{secrets.token_hex(4)}"
        old, self.draft = self.draft, self.draft.fork(self.name, size)
        old.append(0, b"of a writer that was given up")
        old.sync()
        old.discard()
        self.written = self.written[:size]
        self.durable = size

    @rule()
    def finished(self):
        self.sync()
        key = f"o/{secrets.token_hex(4)}"
        if self.written:
            self.draft.finish(key)
            assert b"".join(self.store.read(key, _all(self.store, key))) == self.written
        else:
            try:
                self.draft.finish(key)
            except SourceNotFound:
                pass
            else:
                raise AssertionError("nothing became an object")
        self.written, self.durable = b"", 0

    @rule()
    def discarded(self):
        self.draft.discard()
        self.written, self.durable = b"", 0

    @invariant()
    def durable_bytes_are_those_written(self):
        # through another Draft, which asks the store
        seen = b"".join(bytes(piece) for piece in self.open().draft(self.name).read())
        assert self.durable <= len(seen) <= len(self.written)
        assert self.written.startswith(seen)


def _all(store, key):
    from fragdex import ByteRange

    return ByteRange(0, store.size(key))


class DiskMachine(DraftMachine):
    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        super().__init__()

    def open(self):
        return open_store(self.folder.name)

    def teardown(self):
        self.draft.close()
        self.folder.cleanup()


class ObjectMachine(DraftMachine):
    def __init__(self):
        self.bucket = open_store("memory://")
        super().__init__()

    def open(self):
        return self.bucket


TestDisk = DiskMachine.TestCase
TestDisk.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
TestObjects = ObjectMachine.TestCase
TestObjects.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
