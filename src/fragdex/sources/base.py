"""What every source promises: exact reads, counted reads, and a budget that holds.

A source is the one thing in fragdex that does I/O. It knows nothing of boxes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from threading import Condition
from typing import TYPE_CHECKING, TypeVar

from fragdex.byterange import ByteRange
from fragdex.errors import BudgetExceeded, SourceChanged, SourceError, TruncatedInput

if TYPE_CHECKING:
    from typing import Self


CONNECTIONS = 32
"""Requests under way at once; half as many wherever a server of HTTP refuses some of them."""
PIECE_SIZE = 1 << 20
"""Bytes per piece when everything is read once: larger ones fall out of the processor's cache."""


class Source(ABC):
    r"""An input that can be read anywhere: a file, bytes, a URL, an object in a store.

    Attributes:
        name: its name in messages; a path or a URL without credentials.
        size: length in bytes, or None while that of a remote source is unknown.
        etag: the entity tag that a remote source gave (RFC 9110, 8.8.3), or None.
        mtime_ns: when a local file was last written, in nanoseconds since 1970, or None.
        remote: whether reads go over a network, so that few large ones are better than many.
        requests: reads made so far, including failed tries.
        bytes_read: bytes received so far, or touched in the view and told by `note_read`.
        max_bytes, max_requests: the budget, or None; the read that would exceed it is not made,
            and BudgetExceeded is raised instead.
        connections: parallel reads of `read_many`; 1: one after the other.

    Made by `open_source`; a context manager. For one thread at a time. Subclass it to
    read from elsewhere: `read_up_to` is the only method to write.

    >>> class Zeros(Source):
    ...     def read_up_to(self, range):
    ...         return bytes(self._spend(range).size)
    >>> with Zeros("zeros", size=1000) as source:
    ...     source.read(ByteRange(990, 1000)), source.requests, source.bytes_read
    (b'\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00', 1, 10)
    """

    def __init__(
        self,
        name: str,
        *,
        size: int | None,
        etag: str | None = None,
        remote: bool = False,
        max_bytes: int | None = None,
        max_requests: int | None = None,
    ) -> None:
        self.name = name
        self.size = size
        self.etag = etag
        self.mtime_ns: int | None = None
        self.remote = remote
        self.requests = 0
        self.bytes_read = 0
        self.max_bytes = max_bytes
        self.max_requests = max_requests
        self.connections = 1
        # Bytes of answers that are being read by several threads, and are still to come.
        self._under_way = 0
        self.closed = False

    @abstractmethod
    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, or as many as the object has; b"" past its end.

        A remote source gets its size and ETag here, so the first read may be a guess.
        """

    def read(self, range: ByteRange) -> bytes:
        """Return exactly the bytes of `range`, in one request.

        Raises TruncatedInput where the object ends before `range.stop`, before reading if its
        size is known; SourceChanged where it has changed since it was opened.

        >>> from fragdex.sources import open_source
        >>> open_source(b"abcdef").read(ByteRange(1, 4))
        b'bcd'
        """
        if self.size is not None and range.stop > self.size:
            raise self._ends_before(range, self.size)
        data = self.read_up_to(range)
        if len(data) != range.size:
            raise self._ends_before(range, range.start + len(data))
        return data

    def read_many(self, ranges: Sequence[ByteRange]) -> list[bytes]:
        """Return the result of `read_up_to` for each range, in the requested order.

        Sources over a network have up to `connections` reads under way at once, or ask for several
        ranges in one request. No thread is left when it returns or raises. BudgetExceeded before
        the first read where the ranges together pass the budget.

        >>> from fragdex.sources import open_source
        >>> open_source(b"abcdef").read_many([ByteRange(4, 9), ByteRange(0, 2)])
        [b'ef', b'ab']
        """
        self._all_within_budget(ranges)
        return [self.read_up_to(one) for one in ranges]

    def view(self) -> memoryview | None:
        """Return all bytes of a local source without copying them, or None.

        Whoever reads from the view tells `note_read` how much. A view of a file stays valid while
        the file does not shrink: reading from it where the file was cut off meanwhile ends the
        process (SIGBUS). The length is therefore tested each time a view is handed out; for files
        that other programs cut, use `read`, which is always safe.

        >>> from fragdex.sources import open_source
        >>> bytes(open_source(b"abcdef").view()[:3])
        b'abc'
        """
        self._within_budget(0, 0)
        return None

    def pieces(
        self, range: ByteRange | None = None, size: int = PIECE_SIZE
    ) -> Iterator[bytes | memoryview]:
        """Yield the bytes of `range` (default: everything) in order, at most `size` at a time.

        A piece is valid until the next one is requested: the buffer of a file is reused, and an
        older piece raises ValueError when touched. Raises TruncatedInput if the source ends
        before the range does.

        >>> from fragdex.sources import open_source
        >>> [bytes(piece) for piece in open_source(b"abcde").pieces(size=2)]
        [b'ab', b'cd', b'e']
        """
        start = 0 if range is None else range.start
        while range is None or start < range.stop:
            stop = start + size if range is None else min(start + size, range.stop)
            data = self.read_up_to(ByteRange(start, stop))
            if data:
                yield data
            start += len(data)
            if start < stop:
                if range is not None:
                    raise self._ends_before(range, start)
                return

    def read_resident(self, range: ByteRange, buffer: memoryview) -> bool:
        """Fill a buffer with the bytes of `range`, if that waits for no disk and no network.

        Args:
            range: bytes that the source has.
            buffer: of that size, writable.

        Returns: whether it was filled; if not, `read` has the bytes.

        >>> from fragdex.sources import open_source
        >>> open_source(b"abcdef").read_resident(ByteRange(0, 2), memoryview(bytearray(2)))
        False
        """
        self._within_budget(0, 0)
        return False

    def note_read(self, size: int, requests: int = 0) -> None:
        """Count `size` bytes about to be touched in the view; BudgetExceeded if that is too much.

        >>> from fragdex.sources import open_source
        >>> source = open_source(b"abcdef", max_bytes=4)
        >>> source.note_read(3)
        >>> source.bytes_read
        3
        """
        self._within_budget(size, requests)
        self.requests += requests
        self.bytes_read += size

    def twin(self) -> Source | None:
        """Open the same bytes a second time for another thread; None where that cannot be.

        >>> from fragdex.sources import open_source
        >>> open_source(b"abc").twin() is None
        True
        """
        return None

    def passed(self, stop: int) -> None:
        """Say that the view is not needed before `stop` for now, so that memory can be given back.

        Reading from there again is allowed, and costs what it cost the first time.

        >>> from fragdex.sources import open_source
        >>> open_source(b"abcdef").passed(4)
        """
        self._within_budget(0, 0)

    def refresh(self) -> int | None:
        """Look again how long a growing source is, and return its size.

        Until then, `size` and all reads stay with the length first seen. Raises SourceChanged if
        the source is shorter than it was, or was replaced by another one. Views handed out before
        keep the old length.

        >>> from fragdex.sources import open_source
        >>> open_source(b"abcdef").refresh()
        6
        """
        return self.size

    def expect(self, size: int | None, etag: str | None) -> None:
        """Hold every read to what is known of the bytes already, as if a read had told it.

        Args:
            size, etag: of the bytes that an index describes; None: not known.

        Raises:
            SourceChanged: this source is known to be another one.

        >>> from fragdex.sources import open_source
        >>> open_source(b"abcdef").expect(7, None)
        Traceback (most recent call last):
        ...
        fragdex.errors.SourceChanged: <bytes> is not what was indexed: expected 7 bytes, found 6
        """
        for what, was, now in (("bytes", size, self.size), ("as ETag", etag, self.etag)):
            if was is not None and now is not None and was != now:
                raise SourceChanged(
                    f"{self.name} is not what was indexed", expected=f"{was} {what}", found=now
                )

    @property
    def identity(self) -> tuple[int, int] | None:
        """Device and inode of a local file: the same for as long as it is that file, or None.

        >>> from fragdex.sources import open_source
        >>> open_source(b"abcdef").identity is None
        True
        """
        return None

    def fileno(self) -> int | None:
        """Return the descriptor of a local file, to be read at any position, or None.

        >>> from fragdex.sources import open_source
        >>> open_source(b"abcdef").fileno() is None
        True
        """
        return None

    def next_data(self, at: int) -> int:
        """Return the first place from `at` on that may hold other bytes than 0.

        What lies between is a hole: the file system stores nothing for it. `at` itself where
        nothing is known of holes; the size of the source where no data follows.

        >>> from fragdex.sources import open_source
        >>> open_source(bytes(10)).next_data(3)
        3
        """
        return at

    def close(self) -> None:
        """Give back files and connections; views already handed out stay valid.

        >>> from fragdex.sources import open_source
        >>> source = open_source(b"abcdef")
        >>> source.close()
        >>> source.closed
        True
        """
        self.closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        size = "size unknown" if self.size is None else f"{self.size} bytes"
        return (
            f"<{type(self).__name__} {self.name!r}, {size}, "
            f"{self.requests} reads of {self.bytes_read} bytes>"
        )

    # for subclasses

    def _spend(self, range: ByteRange) -> ByteRange:
        """Count one read of `range`, cut at the known size, and return the rest of it."""
        cut = range
        if self.size is not None and range.stop > self.size:
            cut = ByteRange(min(range.start, self.size), self.size)
        self._within_budget(cut.size, 1)
        self.requests += 1
        self.bytes_read += cut.size
        return cut

    def _all_within_budget(self, ranges: Sequence[ByteRange]) -> None:
        """BudgetExceeded where reads of all these ranges would exceed the budget."""
        end = self.size
        sizes = [r.size if end is None else max(0, min(r.stop, end) - r.start) for r in ranges]
        self._within_budget(sum(sizes), sum(map(bool, sizes)))

    def _within_budget(self, size: int, requests: int) -> None:
        if self.closed:
            raise SourceError(f"{self.name} is closed", advice="open it again")
        if self.max_bytes is not None and self.bytes_read + self._under_way + size > self.max_bytes:
            raise BudgetExceeded(
                f"the next read of {self.name} would exceed the budget",
                expected=f"at most {self.max_bytes} bytes",
                found=f"{self.bytes_read} read and {size} more wanted",
                advice="raise max_bytes",
            )
        if self.max_requests is not None and self.requests + requests > self.max_requests:
            raise BudgetExceeded(
                f"the next read of {self.name} would exceed the budget",
                expected=f"at most {self.max_requests} requests",
                found=f"{self.requests} made and {requests} more wanted",
                advice="raise max_requests",
            )

    def _ends_before(self, range: ByteRange, end: int) -> TruncatedInput:
        return TruncatedInput(
            f"{self.name} ends too early",
            offset=end,
            expected=f"the bytes {range}",
            found=f"the end at {end}",
        )


def changed_since(name: str, expected: str, found: str) -> SourceChanged:
    """Return the error for a source that is another one by now."""
    return SourceChanged(
        f"{name} has changed since it was opened",
        expected=expected,
        found=found,
        advice="open and index it again",
    )


def steps(whole: ByteRange, size: int) -> range:
    """Return the starts of the pieces of `size` bytes that `whole` falls into."""
    return range(whole.start, whole.stop, size)


T = TypeVar("T")
R = TypeVar("R")

CLEAN_CALLS = 16
"""Calls without a refusal after which one request more is tried at once."""


class Cancelled(Exception):
    """Another read of the batch failed, so that this one ends too."""


class ReadBatch:
    """How many requests may be under way at once, and whether to continue at all.

    Args:
        most: requests under way at once.
        interrupt: called when the rest is cancelled, to wake reads that wait for their server.

    `width` halves where a server refuses some of the requests that are under way together, and
    grows by one after many calls without a refusal.
    """

    def __init__(self, most: int, interrupt: Callable[[], None] | None = None) -> None:
        self.most = self.width = most
        self.cancelled = False
        self._interrupt = interrupt
        self._active = 0
        self._clean = 0
        self._changed = Condition()

    def run(self, jobs: Sequence[T], work: Callable[[T], R]) -> list[R]:
        """Do all the jobs, at most `width` at once, and return what came of them, in order.

        The first error cancels the rest, is waited for until every thread has ended, and raised.
        """
        if len(jobs) < 2 or self.width < 2:
            return [work(job) for job in jobs]
        from concurrent.futures import ThreadPoolExecutor, as_completed  # slow to import

        with ThreadPoolExecutor(min(self.width, len(jobs)), "fragdex-read") as pool:
            futures = [pool.submit(work, job) for job in jobs]
            try:
                for future in as_completed(futures):
                    future.result()
            except BaseException:
                self.cancel()
                pool.shutdown(cancel_futures=True)
                self.cancelled = False
                raise
        self._clean += 1
        if self._clean >= CLEAN_CALLS and self.width < self.most:
            self.width, self._clean = self.width + 1, 0
        return [future.result() for future in futures]

    def begin(self) -> int:
        """Wait until one more request may be made; returns the width at that moment."""
        with self._changed:
            while self._active >= self.width and not self.cancelled:
                self._changed.wait()
            self.check()
            self._active += 1
            return self.width

    def end(self, width: int, *, refused: bool = False) -> bool:
        """Say that a request is over that began at a width; whether that may be why it failed."""
        with self._changed:
            self._active -= 1
            if refused:
                self._clean = 0
                self.width = max(1, min(self.width, width // 2))
            self._changed.notify_all()
        return refused and width > 1

    def pause(self, seconds: float) -> None:
        """Wait so long, or until the batch is cancelled."""
        with self._changed:
            self._changed.wait_for(lambda: self.cancelled, seconds)
            self.check()

    def check(self) -> None:
        """Raise Cancelled where the batch is over."""
        if self.cancelled:
            raise Cancelled

    def cancel(self) -> None:
        """End whatever is under way or waits."""
        with self._changed:
            self.cancelled = True
            self._changed.notify_all()
        if self._interrupt is not None:
            self._interrupt()
