"""What every store is held to: checks that take a store and raise AssertionError.

A new store passes when every check of CHECKS passes. Each works under names of its own, and leaves
nothing behind when it passes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

from fragdex import ByteRange, index
from fragdex.errors import InvalidRange, SourceNotFound
from fragdex.service.store.contract import DRAFT_PIECE_BYTES, PIECE_BYTES, Store
from fragdex.testing import movie

__all__ = ["CHECKS"]

# No period of it is a power of two, so that no two places look alike.
CONTENT = bytes(range(251)) * 5000
SIZE = len(CONTENT)

BAD_KEYS = (
    "",
    "/",
    "/a",
    "a/",
    "a//b",
    ".",
    "..",
    "../a",
    "a/../b",
    "a/.b",
    "A",
    "a b",
    "a\\b",
    "a\0",
    "a\n",
    "ä",
    "a" * 200,
    "/".join(["a"] * 300),
)


def _hold(truth: bool, law: str) -> None:
    # not `assert`, which -O takes away
    if not truth:
        raise AssertionError(law)


def _refuse(kind: type[Exception], call: Callable[[], object], law: str) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(law)


def _name() -> str:
    return f"conformance/{secrets.token_hex(8)}"


def _whole(store: Store, key: str) -> bytes:
    return b"".join(store.read(key, ByteRange(0, store.size(key))))


def what_is_written_is_read(store: Store) -> None:
    """Sizes, ranges at every edge, and pieces that are never too large."""
    key = _name()
    _hold(store.write(key, [CONTENT[:7], b"", CONTENT[7:]]) == SIZE, "write tells the size")
    _hold(store.size(key) == SIZE, "size tells the size")
    for wanted in (
        ByteRange(0, SIZE),
        ByteRange(0, 1),
        ByteRange(SIZE - 1, SIZE),
        ByteRange(PIECE_BYTES - 1, PIECE_BYTES + 1),
        ByteRange(5, 5 + PIECE_BYTES),
        ByteRange(0, 0),
        ByteRange(SIZE, SIZE),
    ):
        pieces = list(store.read(key, wanted))
        _hold(b"".join(pieces) == CONTENT[wanted.start : wanted.stop], f"the bytes {wanted}")
        _hold(all(0 < len(piece) <= PIECE_BYTES for piece in pieces), "pieces are small")
    store.delete(key)


def empty_objects_are_objects(store: Store) -> None:
    """An object of no bytes is there, unlike one that was never written."""
    key = _name()
    _hold(store.write(key, []) == 0, "nothing is written")
    _hold(store.size(key) == 0, "it is there")
    _hold(list(store.read(key, ByteRange(0, 0))) == [], "and empty")
    _hold(list(store.keys(key)) == [key], "and listed")
    store.delete(key)


def what_is_missing_is_said(store: Store) -> None:
    """SourceNotFound from every door, before a byte is given."""
    key = _name()
    _refuse(SourceNotFound, lambda: store.size(key), "size of nothing")
    _refuse(SourceNotFound, lambda: list(store.read(key, ByteRange(0, 1))), "bytes of nothing")
    _refuse(SourceNotFound, lambda: list(store.read(key, ByteRange(0, 0))), "no bytes of nothing")
    _refuse(SourceNotFound, lambda: store.local(key).__enter__(), "a file of nothing")

    def read_source() -> None:
        with store.source(key) as source:
            source.read_up_to(ByteRange(0, 1))

    _refuse(SourceNotFound, read_source, "a source of nothing")
    store.delete(key)
    # what lies below is not what was asked for
    store.write(f"{key}/below", [b"x"])
    _refuse(SourceNotFound, lambda: store.size(key), "a folder is not an object")
    _refuse(SourceNotFound, lambda: list(store.read(key, ByteRange(0, 1))), "nor to be read")
    store.delete(f"{key}/below")


def ranges_end_with_the_object(store: Store) -> None:
    """A range beyond the end is InvalidRange, never fewer bytes."""
    key = _name()
    store.write(key, [b"abc"])
    for wanted in (ByteRange(0, 4), ByteRange(3, 4), ByteRange(9, 12), ByteRange(9, 9)):
        _refuse(InvalidRange, lambda wanted=wanted: list(store.read(key, wanted)), f"{wanted}")  # type: ignore[misc]
    store.delete(key)


def a_read_can_be_left(store: Store) -> None:
    """An iterator that is closed early gives back what it held."""
    key = _name()
    store.write(key, [CONTENT])
    reading = store.read(key, ByteRange(0, SIZE))
    _hold(next(reading) == CONTENT[: len(next(store.read(key, ByteRange(0, SIZE))))], "a piece")
    close = getattr(reading, "close", None)
    _hold(close is not None, "it can be closed")
    if close is not None:
        close()
    store.delete(key)


def writing_replaces(store: Store) -> None:
    """The last write counts, whether it is longer or shorter."""
    key = _name()
    for content in (b"first", b"the second, longer", b"3rd"):
        store.write(key, [content])
        _hold(_whole(store, key) == content, "the last one written")
    store.delete(key)


def a_write_that_breaks_off_leaves_nothing(store: Store) -> None:
    """Where the pieces raise, that is raised, and what was there before is untouched."""

    class Broken(Exception):
        """What the writer of the pieces raises."""

    def pieces() -> Iterator[bytes]:
        yield CONTENT
        raise Broken

    fresh, old = _name(), _name()
    store.write(old, [b"old"])
    _refuse(Broken, lambda: store.write(fresh, pieces()), "the pieces' own error")
    _refuse(Broken, lambda: store.write(old, pieces()), "the pieces' own error")
    _refuse(SourceNotFound, lambda: store.size(fresh), "nothing was written")
    _hold(_whole(store, old) == b"old", "what was there stays")
    store.delete(old)


def deleting_is_final_and_harmless(store: Store) -> None:
    """Deleted objects are gone; deleting again does nothing; neighbours stay."""
    key = _name()
    store.write(f"{key}/a", [b"a"])
    store.write(f"{key}/b", [b"b"])
    store.delete(f"{key}/a")
    store.delete(f"{key}/a")
    _refuse(SourceNotFound, lambda: store.size(f"{key}/a"), "gone")
    _hold(_whole(store, f"{key}/b") == b"b", "the neighbour stays")
    store.write(f"{key}/a", [b"again"])
    _hold(_whole(store, f"{key}/a") == b"again", "the key can be used again")
    store.delete(f"{key}/a")
    store.delete(f"{key}/b")


def keys_are_listed_in_order(store: Store) -> None:
    """By prefix, which may end within a segment; sorted as texts; drafts are not among them."""
    base = _name()
    wanted = [f"{base}/{name}" for name in ("a-b", "a.b", "a/b", "a/c/d", "a0", "b/a", "b_")]
    for key in reversed(wanted):
        store.write(key, [b"x"])
    draft = store.draft(f"{base}/draft")
    draft.append(0, b"x")
    draft.sync()
    _hold(list(store.keys(f"{base}/")) == sorted(wanted), "all of them, sorted")
    for prefix in ("a", "a/", "a/c", "a/c/d", "a0", "b", "c", "a/b/"):
        keys = list(store.keys(f"{base}/{prefix}"))
        expected = sorted(key for key in wanted if key.startswith(f"{base}/{prefix}"))
        _hold(keys == expected, f"those that begin with {prefix}")
    _hold(set(store.keys()) >= set(wanted), "an empty prefix is every key")
    draft.discard()
    for key in wanted:
        store.delete(key)


def keys_follow_the_rule(store: Store) -> None:
    """A key that breaks the rule is ValueError at every door, and touches nothing."""
    held = _name()
    store.write(held, [b"x"])
    draft = store.draft(_name())
    for bad in BAD_KEYS:
        doors: tuple[Callable[[str], object], ...] = (
            store.size,
            lambda key: list(store.read(key, ByteRange(0, 1))),
            store.source,
            lambda key: store.write(key, [b"x"]),
            store.delete,
            store.draft,
            lambda key: store.local(key).__enter__(),
            store.path,
            draft.finish,
        )
        for door in doors:
            _refuse(ValueError, lambda door=door, bad=bad: door(bad), f"{bad!r}")  # type: ignore[misc]
    _hold(_whole(store, held) == b"x", "nothing was touched")
    draft.discard()
    store.delete(held)


def the_library_reads_objects(store: Store) -> None:
    """An index built from the source is the one built from the bytes; so is the local file."""
    key = _name()
    data = movie(fragments=3)
    store.write(key, [data])
    with store.source(key) as source:
        _hold(source.read(ByteRange(4, 8)) == data[4:8], "ranges")
        starts = index(source).track(1).fragments.moof_offset.tolist()
    _hold(starts == index(data).track(1).fragments.moof_offset.tolist(), "the same index")
    with store.local(key) as path:
        _hold(path.read_bytes() == data, "a local file")
    own = store.path(key)
    _hold(own is None or own.read_bytes() == data, "its own path, where it has one")
    store.delete(key)


def drafts_grow_and_become_objects(store: Store) -> None:
    """Appended, synced, found again under the name, finished: then an object, and no draft."""
    name, key = _name(), _name()
    draft = store.draft(name)
    _hold(draft.size() == 0, "a draft never written is empty")
    _hold(draft.holds(0) and not draft.holds(1), "and holds no byte")
    _hold(list(draft.read()) == [], "and holds nothing")
    _hold(name not in list(store.drafts()), "and is not listed")
    at = 0
    for size in (1, 100_000, 3_000_000):
        piece = (CONTENT * 3)[at : at + size]
        draft.append(at, memoryview(bytearray(piece)))
        at += len(piece)
        _hold(draft.sync() == at, "sync tells what is durable")
    whole = (CONTENT * 3)[:at]
    draft.close()
    again = store.draft(name)
    _hold(again.holds(at) and again.holds(0), "found again")
    _hold(not again.holds(at + 1), "and no more of it")
    _hold(again.size() == at, "as long as it was")
    _hold(name in list(store.drafts()), "and listed")
    pieces = [bytes(piece) for piece in again.read()]
    _hold(b"".join(pieces) == whole, "with all its bytes")
    _hold(all(0 < len(piece) <= DRAFT_PIECE_BYTES for piece in pieces), "in small pieces")
    for start in (1, 100_001, at - 1, at, at + 1):
        rest = b"".join(bytes(piece) for piece in again.read(start))
        _hold(rest == whole[start:], f"also from byte {start} on")
    _refuse(SourceNotFound, lambda: store.size(key), "not an object yet")
    again.finish(key)
    _hold(_whole(store, key) == whole, "an object")
    _hold(again.size() == 0 and store.draft(name).size() == 0, "and the draft is empty")
    _hold(name not in list(store.drafts()), "and not listed")
    again.finish(key)
    store.draft(name).finish(key)
    _hold(_whole(store, key) == whole, "finishing again is harmless")
    store.delete(key)


def drafts_go_back(store: Store) -> None:
    """Appending before the end drops what stood there; after it is ValueError."""
    name, key = _name(), _name()
    draft = store.draft(name)
    draft.append(0, b"0123456789")
    draft.sync()
    draft.append(10, b"abc")
    draft.append(12, b"X")
    _refuse(ValueError, lambda: draft.append(14, b"gap"), "no gaps")
    _refuse(ValueError, lambda: draft.append(-1, b"before"), "nor before the first byte")
    _hold(draft.sync() == 13, "the end goes back too")
    _hold(b"".join(bytes(p) for p in draft.read()) == b"0123456789abX", "and the bytes")
    draft.append(4, b"")
    _hold(draft.sync() == 4, "nothing appended cuts")
    draft.append(4, b"45")
    draft.append(2, b"two")
    _hold(draft.sync() == 5, "within what was not synced too")
    draft.finish(key)
    _hold(_whole(store, key) == b"01two", "what was left")
    store.delete(key)


def drafts_fork(store: Store) -> None:
    """A fork is a copy that its origin cannot reach any more."""
    name = _name()
    origin = store.draft(f"{name}.0")
    for at in range(0, SIZE, 300_000):
        origin.append(at, CONTENT[at : at + 300_000])
        origin.sync()
    _refuse(ValueError, lambda: origin.fork(f"{name}.1", SIZE + 1), "no more than there is")
    fork = origin.fork(f"{name}.1", 7)
    for size in (0, 1, 300_000, 400_000, SIZE):
        fork = origin.fork(f"{name}.1", size)
        _hold(fork.size() == size, "as long as asked for")
        _hold(b"".join(bytes(p) for p in fork.read()) == CONTENT[:size], "the same bytes")
    origin.append(0, b"what the old writer writes")
    origin.sync()
    _hold(b"".join(bytes(p) for p in fork.read()) == CONTENT, "untouched by the origin")
    origin.discard()
    fork.append(SIZE, b"more")
    _hold(fork.sync() == SIZE + 4, "and it goes on")
    fork.discard()


def finished_objects_stay(store: Store) -> None:
    """An object that is there stays; nothing cannot become an object; discard is harmless."""
    name, key = _name(), _name()
    _refuse(SourceNotFound, lambda: store.draft(name).finish(key), "nothing to finish")
    store.write(key, [b"first"])
    draft = store.draft(name)
    draft.append(0, b"second")
    draft.sync()
    draft.finish(key)
    _hold(_whole(store, key) == b"first", "keys name their content")
    _hold(store.draft(name).size() == 0, "the draft is gone all the same")
    draft.append(0, b"third")
    draft.sync()
    draft.discard()
    draft.discard()
    _hold(draft.size() == 0, "discarded")
    draft.close()
    draft.close()
    store.delete(key)


def it_answers(store: Store) -> None:
    """`check` passes and leaves nothing behind."""
    store.check()
    _hold(not list(store.keys("checks/")), "check leaves nothing behind")


CHECKS: tuple[Callable[[Store], None], ...] = (
    what_is_written_is_read,
    empty_objects_are_objects,
    what_is_missing_is_said,
    ranges_end_with_the_object,
    a_read_can_be_left,
    writing_replaces,
    a_write_that_breaks_off_leaves_nothing,
    deleting_is_final_and_harmless,
    keys_are_listed_in_order,
    keys_follow_the_rule,
    the_library_reads_objects,
    drafts_grow_and_become_objects,
    drafts_go_back,
    drafts_fork,
    finished_objects_stay,
    it_answers,
)
"""Every check, in an order from the simple to the composed."""
