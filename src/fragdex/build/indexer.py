"""`Indexer`: a file that arrives in pieces → its index, ready at the last byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragdex.build.making import finished, read_init
from fragdex.byterange import ByteRange
from fragdex.fragments.scan import Scan
from fragdex.seeking.model import FragmentIndex, SourceInfo
from fragdex.sources import SourceLike

if TYPE_CHECKING:
    from fragdex.digest import Md5

__all__ = ["Indexer"]

AT_ONCE = 1 << 12
"""Bytes of small pieces that are gathered: to read one fragment costs as much as to read ten."""


class Indexer:
    """Takes pieces of a file in any size as they arrive; stores no media.

    Args:
        md5: hash the bytes too; they must then arrive in order and without gaps.
        init: the initialization segment of a segment without moov.
        strict: as in `fragdex.index`.

    `feed` takes bytes; `need` is the next range that is needed, for sources that can seek;
    `finish` returns the index.

    >>> from fragdex.testing import movie
    >>> data = movie(fragments=2)
    >>> indexer = Indexer()
    >>> for at in range(0, len(data), 100):
    ...     indexer.feed(data[at : at + 100])
    >>> len(indexer.finish().track(1).fragments)
    2
    """

    def __init__(
        self,
        *,
        md5: bool = False,
        init: SourceLike | FragmentIndex | None = None,
        strict: bool = False,
    ) -> None:
        self._init = read_init(init) if init is not None else None
        defaults = None
        if self._init is not None:
            movie = self._init[1]
            defaults = {t.id: t.defaults for t in movie.tracks if t.defaults is not None}
        self._scan = Scan(defaults=defaults)
        self._md5 = _new_md5() if md5 else None
        self._strict = strict
        self._size = 0
        self._fed = 0
        self._gathered = bytearray()
        self._gathered_at = 0
        self._small_end: int | None = None

    @property
    def need(self) -> ByteRange | None:
        """The least range that is needed to continue; None where the file may end.

        >>> Indexer().need
        ByteRange(start=0, stop=8)
        """
        self._flush()
        return self._scan.need

    @property
    def position(self) -> int:
        """Bytes from the start of the file up to which its boxes are known."""
        self._flush()
        return self._scan.position

    def feed(self, data: bytes | bytearray | memoryview, offset: int | None = None) -> None:
        """Take a piece of the file.

        Args:
            data: any number of bytes.
            offset: their position in the file; None: directly after the piece before.

        What is wrong with small pieces may be raised by a later call, `need` and `position` too.

        Raises:
            ValueError: needed bytes between the last piece and this one are missing, or the file
                is hashed and this piece does not follow the one before.
            LimitExceeded: a box that must be kept is larger than a named limit.
            MalformedBox: a moov breaks the rules.
        """
        at = self._fed if offset is None else offset
        if self._md5 is not None:
            if at != self._fed:
                raise ValueError(f"to be hashed, bytes must follow: {self._fed} expected, not {at}")
            self._md5.update(data)
        size = memoryview(data).nbytes
        self._fed = at + size
        self._size = max(self._size, self._fed)
        follows, self._small_end = at == self._small_end, self._fed if size < AT_ONCE else None
        if not follows or size >= AT_ONCE or self._scan.need is None:
            self._flush()
            self._scan.feed(data, at)
            return
        if not self._gathered:
            self._gathered_at = at
        self._gathered += memoryview(data).cast("B")
        if len(self._gathered) >= AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        """Read the small pieces that were gathered."""
        if self._gathered:
            data, self._gathered = self._gathered, bytearray()
            self._scan.feed(data, self._gathered_at)

    def finish(self, size: int | None = None) -> FragmentIndex:
        """The index of what was fed.

        Args:
            size: bytes of the file, where the last ones were jumped over.

        Raises: as `fragdex.index`.
        """
        self._flush()
        end = self._size if size is None else size
        md5 = self._md5.hexdigest() if self._md5 is not None else None
        info = SourceInfo("", end, md5)
        return finished(self._scan, None, size=end, info=info, init=self._init, strict=self._strict)


def _new_md5() -> Md5:
    from fragdex.digest import Md5

    return Md5()
