"""Gathers the boxes of a file that an index is made of, as long as they are few.

Nothing is parsed here but the headers at the top level. So what it costs is known before any of it
is parsed: a little at a time is parsed where it arrives, and more of it elsewhere.
"""

from __future__ import annotations

from typing import Final

from fragdex import FragmentIndex, Indexer
from fragdex.errors import NotISOBMFF
from fragdex.indexing.headers import WHOLE
from fragdex.service.indexing.isolated import IN_THREAD

__all__ = ["Structure"]

MOST_BOXES: Final = 1 << 14
"""Boxes at the top level that are walked there: some ten milliseconds."""
MOST_BEFORE: Final = 1 << 10
"""Boxes before the first that a movie is made of. Numbers in a row read as boxes without end: such
a file is no movie, and no process is started to find that out."""

_KEPT: Final = frozenset(WHOLE[at : at + 4] for at in range(0, len(WHOLE), 4))


class Structure:
    r"""The boxes of a file, in pieces as they come.

    Attributes:
        large: whether there is more of it than is parsed in a thread; nothing is kept then.

    >>> structure = Structure()
    >>> structure.feed(b"\0\0\0\x10free" + bytes(8) + b"\0\0\0\x08mdat")
    >>> structure.large, structure.size
    (False, 24)
    """

    def __init__(self) -> None:
        self.large = False
        self.size = 0
        self._boxes = 0
        self._bytes = 0
        # Runs of bytes that are kept, and where they lie in the file.
        self._runs: list[tuple[int, bytearray]] = []
        self._head = bytearray()
        self._keep = 0
        self._skip = 0
        self._over = False
        self._begun = self._none = False

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file."""
        at, start = 0, self.size
        self.size += len(data)
        while at < len(data) and not (self._over or self.large):
            if self._skip:
                passed = min(self._skip, len(data) - at)
                self._skip -= passed
                at += passed
            elif self._keep:
                taken = data[at : at + self._keep]
                self._take(start + at, taken)
                self._keep -= len(taken)
                at += len(taken)
            else:
                at += self._header(data, at, start + at)

    def index(self) -> FragmentIndex:
        """The index of all that was fed; raises as `Indexer.finish` and `Indexer.feed`."""
        if self._none:
            raise NotISOBMFF(
                "this is not an ISO base media file",
                expected=f"a box of a movie among the first {MOST_BEFORE}",
                found="others",
            )
        indexer = Indexer()
        for place, run in self._runs:
            indexer.feed(run, place)
        return indexer.finish(self.size)

    def _header(self, data: bytes, at: int, place: int) -> int:
        """Take bytes of a header (ISO/IEC 14496-12, 4.2.2); returns how many."""
        head = self._head
        wanted = 16 if len(head) >= 8 and head[:4] == b"\0\0\0\1" else 8
        taken = data[at : at + wanted - len(head)]
        head += taken
        self._take(place, taken)
        if len(head) < wanted or (wanted == 8 and head[:4] == b"\0\0\0\1"):
            return len(taken)
        size = int.from_bytes(head[8:16] if wanted == 16 else head[:4], "big")
        kept = bytes(head[4:8]) in _KEPT
        head.clear()
        self._boxes += 1
        self._begun = self._begun or kept
        if self._boxes > MOST_BEFORE and not self._begun:
            self._over = self._none = True
            self._runs.clear()
        elif self._boxes > MOST_BOXES:
            self._let_go()
        elif size == 0 and wanted == 8:  # up to the end of the file
            self._over, self._keep = not kept, 1 << 62
        elif size < wanted:
            self._over = True  # no box: nothing can be found behind it
        elif kept:
            self._keep = size - wanted
        else:
            self._skip = size - wanted
        return len(taken)

    def _take(self, place: int, data: bytes) -> None:
        self._bytes += len(data)
        if self._bytes > IN_THREAD:
            self._let_go()
        elif self._runs and self._runs[-1][0] + len(self._runs[-1][1]) == place:
            self._runs[-1][1].extend(data)
        else:
            self._runs.append((place, bytearray(data)))

    def _let_go(self) -> None:
        self.large = True
        self._runs.clear()
