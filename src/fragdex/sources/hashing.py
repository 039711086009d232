"""The md5 of anything that can be opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Unpack

from fragdex import digest
from fragdex.byterange import ByteRange
from fragdex.sources.base import Source
from fragdex.sources.opening import SourceLike, SourceOptions, check_options, open_source


def md5(
    what: SourceLike,
    ranges: Iterable[ByteRange] | None = None,
    *,
    progress: Callable[[int, int | None], object] | None = None,
    max_bytes: int | None = None,
    max_requests: int | None = None,
    **options: Unpack[SourceOptions],
) -> digest.Digest:
    """The md5 of whatever `open_source` opens, whole or of parts of it.

    Args:
        what: in any form that `open_source` takes; a source that was open already stays open.
        ranges: what to hash, one after the other; None: everything.
        progress: called after each piece with the bytes done and the bytes in all (None where a
            server does not tell).
        max_bytes, max_requests: budget of the reads; a read that would exceed it raises
            BudgetExceeded.
        options: passed on to `open_source`: retries, timeout, connections, headers, client,
            store.

    Raises:
        TruncatedInput: a range reaches past the end.
        TypeError: there is no such option.
        And what opening and reading raise.

    >>> print(md5(b"abc"))
    900150983cd24fb0d6963f7d28e17f72
    """
    check_options("fragdex.md5", options, ("ranges", "progress"))
    source = open_source(what, max_bytes=max_bytes, max_requests=max_requests, **options)
    try:
        return digest.md5(source, ranges, progress)
    finally:
        if source is not what:
            source.close()


@contextmanager
def md5_beside(source: Source) -> Iterator[Callable[[], digest.Digest]]:
    """Hash a source on another thread while it is read for something else.

    Gives a function that waits for the digest. A source that only one can read is hashed when that
    is called; on leaving, hashing that nobody waited for is given up.

    >>> with open_source(b"abc") as source, md5_beside(source) as hashed:
    ...     print(hashed())
    900150983cd24fb0d6963f7d28e17f72
    """
    twin = source.twin()
    if twin is None:
        yield lambda: md5(source)
        return
    from concurrent.futures import ThreadPoolExecutor
    from threading import Event

    left = Event()

    def go_on(done: int, total: int | None) -> None:
        if left.is_set():
            raise InterruptedError("nobody waits for the digest any more")

    with twin, ThreadPoolExecutor(1) as pool:
        hashing = pool.submit(digest.md5, twin, None, go_on)
        try:
            yield hashing.result
        finally:
            left.set()
