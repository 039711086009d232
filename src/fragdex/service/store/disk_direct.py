"""Writing past the system's cache, from memory to the disk.

Bytes that come in are copied once for the cache and may push out what others read. Large pieces
skip that where the file system lets them (Linux: O_DIRECT), which takes the work off a core and
leaves little for the flush. Whatever else there is to write goes through the cache: what is short
or does not lie on blocks, and everything where the file system refuses.
"""

from __future__ import annotations

import errno
import mmap
import os
import threading
from pathlib import Path

from fragdex.service.store.disk_files import NO_FOLLOW, write_all

__all__ = ["BLOCK", "LEAST", "Buffers", "DirectFile"]

BLOCK = max(4096, mmap.PAGESIZE)
"""Where direct writes begin and end, in the file and in memory: no disk asks for more."""

LEAST = 256 << 10
"""A piece shorter than this goes through the cache, which joins it with others."""

BUFFER = 1 << 20
BUFFERS = 4
"""Writers at once; others use the cache meanwhile."""

_DIRECT = getattr(os, "O_DIRECT", 0)


class Buffers:
    """Memory that lies on a block, which that of `bytes` does not; made once, for all drafts."""

    def __init__(self, count: int = BUFFERS) -> None:
        self._left = count
        self._spare: list[mmap.mmap] = []
        self._lock = threading.Lock()

    def take(self) -> mmap.mmap | None:
        """One that nobody uses, of BUFFER bytes; None where all are in use."""
        with self._lock:
            if self._spare:
                return self._spare.pop()
            if not self._left:
                return None
            self._left -= 1
        return mmap.mmap(-1, BUFFER)

    def give_back(self, buffer: mmap.mmap) -> None:
        """Others may use it now."""
        self._spare.append(buffer)


class DirectFile:
    """A file that is open for large writes beside the descriptor that it is open with otherwise.

    Not to be used by two threads at once. Without buffers, all goes through the cache.
    """

    def __init__(self, path: Path, buffers: Buffers | None) -> None:
        self._path, self._buffers = path, buffers if _DIRECT else None
        self._descriptor: int | None = None

    def write(self, cached: int, data: bytes | memoryview, at: int) -> None:
        """Write all of `data` at byte `at`; `cached` is the same file, open for writing.

        Raises: what writing raises; how much was written then is open.
        """
        view = memoryview(data).cast("B")
        head = -at % BLOCK
        blocks = (len(view) - head) // BLOCK * BLOCK
        done = 0
        if blocks >= LEAST and self._buffers is not None:
            write_all(cached, view[:head], at)
            done = head + self._write_blocks(
                self._buffers, cached, view[head : head + blocks], at + head
            )
        write_all(cached, view[done:], at + done)

    def close(self) -> None:
        """Close what is open. Repeating it is harmless."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def _write_blocks(self, buffers: Buffers, cached: int, view: memoryview, at: int) -> int:
        """Write as much as goes, at least nothing; returns how much."""
        buffer = buffers.take()
        if buffer is None:
            return 0
        done = 0
        try:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_WRONLY | NO_FOLLOW | _DIRECT)
                if not os.path.sameopenfile(self._descriptor, cached):
                    self._buffers = None  # the name is another file's by now
                    return 0
            while done < len(view):
                part = view[done : done + BUFFER]
                buffer[: len(part)] = part
                with memoryview(buffer)[: len(part)] as aligned:
                    written = os.pwrite(self._descriptor, aligned, at + done)
                done += written
                if written < len(part):
                    break  # the disk is full, or will say through the cache what it is
        except OSError as error:
            # Without its name, it is a file that nobody but us has open any more.
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOENT):
                raise
            self._buffers = None
        finally:
            buffers.give_back(buffer)
        return done
