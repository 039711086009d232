"""`Indexer`: a file that arrives in pieces → its index, ready at the last byte."""

from __future__ import annotations

from typing import Any

from fragdex.build.making import finished, read_init
from fragdex.byterange import ByteRange
from fragdex.digest import Md5
from fragdex.fragments.scan import Scan
from fragdex.seeking.model import FragmentIndex, SourceInfo

__all__ = ["Indexer"]


class Indexer:
    """Takes pieces of a file in any size as they arrive; never keeps media bytes.

    Args:
        md5: hash the bytes on their way; they must then arrive in order and without gaps.
        init: the initialization segment of a segment without moov.
        strict: as in `fragdex.index`.

    `feed` takes bytes; `need` names the next bytes that are not known, for whoever can jump;
    `finish` gives the index.

    >>> from fragdex.testing import movie
    >>> data = movie(fragments=2)
    >>> indexer = Indexer()
    >>> for at in range(0, len(data), 100):
    ...     indexer.feed(data[at : at + 100])
    >>> len(indexer.finish().track(1).fragments)
    2
    """

    def __init__(self, *, md5: bool = False, init: Any = None, strict: bool = False) -> None:
        self._init = read_init(init) if init is not None else None
        defaults = None
        if self._init is not None:
            movie = self._init[2]
            defaults = {t.id: t.defaults for t in movie.tracks if t.defaults is not None}
        self._scan = Scan(defaults=defaults)
        self._md5 = Md5() if md5 else None
        self._strict = strict
        self._size = 0
        self._fed = 0

    @property
    def need(self) -> ByteRange | None:
        """The least range without which nothing goes on; None where the end may come.

        >>> Indexer().need
        ByteRange(start=0, stop=8)
        """
        return self._scan.need

    @property
    def position(self) -> int:
        """Bytes from the start of the file up to which its boxes are known."""
        return self._scan.position

    def feed(self, data: bytes | bytearray | memoryview, offset: int | None = None) -> None:
        """Take a piece of the file.

        Args:
            data: any number of bytes.
            offset: their place in the file; None: directly behind the piece before.

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
        self._fed = at + memoryview(data).nbytes
        self._size = max(self._size, self._fed)
        self._scan.feed(data, at)

    def finish(self, size: int | None = None) -> FragmentIndex:
        """The index of what was fed.

        Args:
            size: bytes of the file, where the last ones were jumped over.

        Raises: as `fragdex.index`.
        """
        end = self._size if size is None else size
        md5 = self._md5.hexdigest() if self._md5 is not None else None
        info = SourceInfo("", end, md5)
        return finished(self._scan, None, size=end, info=info, init=self._init, strict=self._strict)
