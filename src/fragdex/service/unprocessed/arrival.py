"""What is learnt of a file while its bytes arrive: its index, or why it is no media file."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Final

from fragdex import FragmentIndex
from fragdex.errors import FragdexError
from fragdex.service.unprocessed.structure import Structure

__all__ = ["Look", "usable"]

log = logging.getLogger("fragdex.service")

HEAD: Final = 4096
"""First bytes that are kept, to tell text from media."""

# What begins like text and is none: the file format of AMR (RFC 4867, 5).
_MEDIA_WORDS: Final = (b"#!AMR",)
_TEXT_CONTROLS: Final = frozenset(b"\t\n\r\f\x1b")


class Look:
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

    def index(self, md5: bytes) -> FragmentIndex | None:
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


def usable(index: FragmentIndex | None, md5: bytes) -> FragmentIndex | None:
    """The index of a file of this md5, if all of the file is there and can be found by it."""
    if index is None or not (index.complete and index.tracks):
        return None
    if not all(period.init for period in index.periods):
        return None
    index.source = replace(index.source, md5=md5.hex())
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
