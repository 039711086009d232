"""Large pieces that go past the system's cache: the file is the same as with it."""

import errno
import os

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fragdex.errors import StoreFull
from fragdex.service.config import Settings
from fragdex.service.store import disk, disk_files, open_store
from fragdex.service.store.disk_files import BLOCK, BUFFER, LEAST, Buffers, DirectFile

PATTERN = bytes(range(251)) * (3 * BUFFER // 251 + 1)

needs_direct = pytest.mark.skipif(
    not hasattr(os, "O_DIRECT"), reason="the system cannot write past its cache"
)


@pytest.fixture
def draft(tmp_path):
    draft = open_store(tmp_path / "store").draft("d")
    yield draft
    draft.close()


def content(draft):
    return b"".join(bytes(piece) for piece in draft.read())


def near(*sizes):
    return st.sampled_from(sizes).flatmap(lambda size: st.integers(max(0, size - 2), size + 2))


sizes = near(0, 100, BLOCK, LEAST, LEAST + BLOCK, BUFFER, 2 * BUFFER + LEAST)


@settings(deadline=None, max_examples=60)
@given(steps=st.lists(st.tuples(sizes, near(0, 0, 100, BLOCK, LEAST), st.booleans()), max_size=6))
@example(steps=[(LEAST, 0, False)] * 3)
@example(steps=[(BLOCK - 1, 0, False), (BUFFER + 1, 0, True), (BUFFER, 0, False)])
@example(steps=[(2 * BUFFER, 0, False), (LEAST, BLOCK, False), (BUFFER, 100, True)])
def test_pieces_of_all_lengths_at_all_places(tmp_path_factory, steps):
    draft = open_store(tmp_path_factory.mktemp("store")).draft("d")
    written = b""
    for number, (size, back, sync) in enumerate(steps):
        start = max(0, len(written) - back)
        data = PATTERN[number : number + size]
        draft.append(start, data)
        written = written[:start] + data
        if sync:
            assert draft.sync() == len(written)
            assert content(draft) == written
    assert content(draft) == written
    draft.discard()


@needs_direct
def test_a_file_whose_name_is_gone(tmp_path):
    """A writer that slept meanwhile writes where nobody reads; its next look at the file tells."""
    path = tmp_path / "file"
    with path.open("w+b") as cached:
        path.unlink()
        file = DirectFile(path, Buffers())
        file.write(cached.fileno(), PATTERN, 0)
        file.close()
        assert cached.read() == PATTERN


@needs_direct
@pytest.mark.parametrize("where", ["open", "pwrite"])
@pytest.mark.parametrize("number", [errno.EINVAL, errno.EOPNOTSUPP])
def test_a_file_system_that_refuses(draft, monkeypatch, where, number):
    real, refusals = getattr(os, where), []

    def refuse(target, flags_or_data, *more, **named):
        direct = (
            flags_or_data & os.O_DIRECT
            if where == "open"
            else len(flags_or_data) == BUFFER
            and isinstance(flags_or_data.obj, disk_files.mmap.mmap)
        )
        if direct:
            refusals.append(1)
            raise OSError(number, os.strerror(number))
        return real(target, flags_or_data, *more, **named)

    monkeypatch.setattr(os, where, refuse)
    draft.append(0, PATTERN[:BUFFER])
    draft.append(BUFFER, PATTERN[BUFFER : 2 * BUFFER])
    assert draft.sync() == 2 * BUFFER
    assert content(draft) == PATTERN[: 2 * BUFFER]
    assert refusals == [1], "it is asked once"


@needs_direct
def test_a_disk_that_is_full_in_the_middle(draft, monkeypatch):
    real = os.pwrite

    def short(descriptor, data, at):
        if at + len(data) > BUFFER:
            if at >= BUFFER:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(descriptor, data[: BUFFER - at], at)
        return real(descriptor, data, at)

    draft.append(0, PATTERN[:LEAST])
    assert draft.sync() == LEAST
    monkeypatch.setattr(os, "pwrite", short)
    with pytest.raises(StoreFull):
        draft.append(LEAST, PATTERN[LEAST : 2 * BUFFER])
    monkeypatch.undo()
    assert draft.size() == LEAST
    draft.append(LEAST, PATTERN[LEAST : 2 * BUFFER])
    assert content(draft) == PATTERN[: 2 * BUFFER]


@needs_direct
def test_more_writers_than_buffers(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "Buffers", lambda: Buffers(0))
    draft = open_store(tmp_path / "store").draft("d")
    draft.append(0, PATTERN[:BUFFER])
    assert content(draft) == PATTERN[:BUFFER]
    draft.close()


@needs_direct
@pytest.mark.parametrize("direct", [True, False])
def test_the_setting_decides(tmp_path, monkeypatch, direct):
    real, flags = os.open, []
    monkeypatch.setattr(os, "open", lambda *a, **k: flags.append(a[1]) or real(*a, **k))
    settings = Settings(data=tmp_path, direct_writes=direct)
    store = open_store(settings.store_url, direct=settings.direct_writes)
    draft = store.draft("d")
    draft.append(0, PATTERN[:BUFFER])
    draft.fork("e", BUFFER)
    assert sum(bool(flag & os.O_DIRECT) for flag in flags) == (2 if direct else 0)
    draft.close()
