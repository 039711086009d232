"""What is learnt of a file while its bytes arrive: its index, or why it is not media file.

`Structure` gathers the boxes that an index is made of, as long as they are few. Nothing is parsed
but the headers at the top level. So what it costs is known before any of it is parsed: a little at
a time is parsed where it arrives, and more of it elsewhere.

`Inspections` are remembered for the next request in this process: clients upload a file and then
have it processed. Without them, a child process would index it once more to answer what was known a
moment ago. After a restart, or in another process, one does.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from dataclasses import replace
from typing import Final

from fragdex import Index, Indexer
from fragdex.digest import Digest
from fragdex.errors import FragdexError, NotISOBMFF
from fragdex.indexing.headers import WHOLE
from fragdex.record import record
from fragdex.service.indexing.isolated import IN_THREAD

MOST_BOXES: Final = 1 << 14
"""Boxes at the top level that are walked there: some ten milliseconds."""
MOST_BEFORE: Final = 1 << 10
"""Boxes before the first that a movie is made of. Numbers in a row read as boxes without end: such
a file is not a movie, and no process is started to find that out."""

_KEPT: Final = frozenset(WHOLE[at : at + 4] for at in range(0, len(WHOLE), 4))


class Structure:
    """The boxes of a file, in pieces as they come.

    Attributes:
        large: whether there is more of it than is parsed in a thread; nothing is kept then.
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
                piece = data[at : at + self._keep]
                self._take(start + at, piece)
                self._keep -= len(piece)
                at += len(piece)
            else:
                at += self._header(data, at, start + at)

    def index(self) -> Index:
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
        piece = data[at : at + wanted - len(head)]
        head += piece
        self._take(place, piece)
        if len(head) < wanted or (wanted == 8 and head[:4] == b"\0\0\0\1"):
            return len(piece)
        size = int.from_bytes(head[8:16] if wanted == 16 else head[:4], "big")
        is_kept = bytes(head[4:8]) in _KEPT
        head.clear()
        self._boxes += 1
        self._begun = self._begun or is_kept
        if self._boxes > MOST_BEFORE and not self._begun:
            self._over = self._none = True
            self._runs.clear()
        elif self._boxes > MOST_BOXES:
            self._let_go()
        elif size == 0 and wanted == 8:  # up to the end of the file
            self._over, self._keep = not is_kept, 1 << 62
        elif size < wanted:
            self._over = True  # no box: nothing can be found after it
        elif is_kept:
            self._keep = size - wanted
        else:
            self._skip = size - wanted
        return len(piece)

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


log = logging.getLogger("fragdex.service")

HEAD: Final = 4096
"""First bytes that are kept, to tell text from media."""

# What begins like text and is not: the file format of AMR (RFC 4867, 5).
_MEDIA_WORDS: Final = (b"#!AMR",)
_TEXT_CONTROLS: Final = frozenset(b"\t\n\r\f\x1b")


class Inspector:
    """Sees every byte of an upload once, in order; keeps no media bytes."""

    def __init__(self) -> None:
        self._head = b""
        self._structure = Structure()

    def feed(self, data: bytes) -> None:
        """Take the next bytes. What cannot be indexed is still uploaded: nothing is raised."""
        if len(self._head) < HEAD:
            self._head += data[: HEAD - len(self._head)]
        self._structure.feed(data)

    @property
    def large(self) -> bool:
        """Whether it has to be indexed in a process of its own."""
        return self._structure.large

    def index(self, md5: bytes) -> Index | None:
        """The index of the whole file; None where it is no ISO base media file, or a broken one."""
        try:
            index = self._structure.index()
        except FragdexError:
            return None
        except Exception:
            log.exception("a file could not be indexed after it arrived")
            return None
        return usable(index, md5)

    def refusal(self) -> str | None:
        """Why this can be no media file, as far as its first bytes tell.

        No container that is processed begins with a page of text; playlists, which would lead a
        demuxer to other files, all do.
        """
        head = self._head
        if not head:
            return "the file is empty"
        if head.startswith(_MEDIA_WORDS) or not _is_text(head):
            return None
        if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(
            (b"#EXTM3U", b"ffconcat", b"<?xml", b"<MPD")
        ):
            return "the file is a playlist or a description of media, not a media file"
        return "the file is text, not a media file"


def usable(index: Index | None, md5: bytes) -> Index | None:
    """The index of a file of this md5, if all of the file is there and can be found by it."""
    if index is None or not (index.complete and index.tracks):
        return None
    if not all(period.init for period in index.periods):
        return None
    index.file = replace(index.file, md5=Digest(md5))
    return index


def _is_text(head: bytes) -> bool:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        # UTF-16 with its mark; MPEG audio begins with 0xFFE and more, so look at what follows
        units = head[2:] if len(head) % 2 == 0 else head[2:-1]
        try:
            text = units.decode("utf-16-le" if head[0] == 0xFF else "utf-16-be")
        except UnicodeDecodeError:
            return False
        return bool(text) and all(char.isprintable() or char in "\t\r\n" for char in text)
    if any(byte < 32 and byte not in _TEXT_CONTROLS for byte in head):
        return False
    try:
        head.decode()
    except UnicodeDecodeError as error:
        return len(head) == HEAD and error.start >= HEAD - 3  # a character cut off by our own end
    return True


MOST: Final = 4096
"""Files that are remembered; the one that was seen first is forgotten first."""


@record(frozen=True, slots=True)
class Inspection:
    """What is known of a file.

    Attributes:
        small: whether its boxes are few enough to be parsed in a thread; then nothing else is said.
        reason: why it must be processed, as `why_not` said of a large one.
    """

    small: bool
    reason: str | None = None


class Inspections:
    """What is known of files, by their keys in the store; the bytes of a key never change."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, Inspection] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, key: str, seen: Inspection) -> None:
        """Remember what was seen."""
        with self._lock:
            self._seen[key] = seen
            if len(self._seen) > MOST:
                self._seen.popitem(last=False)

    def get(self, key: str) -> Inspection | None:
        """What was seen, or None: it is not known any more."""
        with self._lock:
            return self._seen.get(key)

    def close(self) -> None:
        """Forget all."""
        with self._lock:
            self._seen.clear()
