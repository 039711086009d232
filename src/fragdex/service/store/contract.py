"""What a store must do. Tests hold every store to it (`tests/service/store`).

Keys and names of drafts are relative paths of lower-case letters, digits, `-`, `_`, `.` and `/`,
made by the service and never by a caller: no file name or path of a request reaches a store.
Whatever breaks the rule of `checked` is ValueError in every call: such a name cannot leave its
folder, hide, or mean two things on a file system that does not tell upper from lower case. No key
is the folder of another. All calls block; the service runs them in threads.

An object is written once and whole: it is not there, or it is complete and durable. What arrives
piece by piece goes into a draft, which becomes an object by `Draft.finish`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from fragdex import ByteRange, Source
from fragdex.errors import SourceNotFound
from fragdex.sandbox.folders import OwnFolder

PIECE_BYTES = 256 << 10
"""The largest piece that `Store.read` yields."""

DRAFT_PIECE_BYTES = 1 << 20
"""The largest piece that `Draft.read` yields."""

MAX_KEY_LENGTH = 400
"""Characters of a whole key; object stores end at 1,024 bytes, prefix included."""

# A segment never begins with a dot, so that neither `..` nor hidden files can be named. 120
# characters leave room for what a store adds in file names (255 bytes).
_KEY = re.compile(r"[a-z0-9_-][a-z0-9._-]{0,119}(/[a-z0-9_-][a-z0-9._-]{0,119})*", re.ASCII)


def checked(key: str) -> str:
    """Return a key or name of a draft as it is, or raise ValueError."""
    if len(key) > MAX_KEY_LENGTH or not _KEY.fullmatch(key):
        raise ValueError(f"invalid store key: {key[:80]!r}")
    return key


class Draft(Protocol):
    """Bytes on their way in, under one name; survives the process, also `kill -9`.

    One writer at a time: who writes is settled above, by the leases of uploads. A writer that was
    given up but may still live is kept off by `fork`.
    """

    def size(self) -> int:
        """Bytes that are durable, from the first on without a gap. 0 for a draft never written.

        After a `kill -9` they may be more than the last `sync` told: also bytes that were appended
        and never synced, from the first on, without a gap.
        """

    def holds(self, size: int) -> bool:
        """Whether the first `size` bytes, which a `sync` made durable before, are here.

        Unlike `size`, it makes nothing durable.
        """

    def append(self, start: int, data: bytes | memoryview) -> None:
        """Put `data` at byte `start`, which is at most the end of what was appended so far.

        What stood at and after `start` is gone. Durable only after `sync`. `data` may be used
        again after the return.

        Raises:
            ValueError: `start` lies beyond the end.
            StoreFull: no room; what was durable stays so.
            Unavailable: the store does not answer; what was durable stays so.
        """

    def sync(self) -> int:
        """Make durable what was appended; returns the size that is durable now.

        Raises:
            StoreFull, Unavailable: as `append`; whether what was appended since the last `sync`
                is still there, `size` tells.
        """

    def read(self, start: int = 0) -> Iterator[bytes | memoryview]:
        """The durable bytes from `start` on, in pieces of at most 1 MiB, valid until the next."""

    def fork(self, name: str, size: int) -> Draft:
        """The first `size` bytes as the draft `name`, durable at return; this one stays.

        For taking over from a writer that may yet wake up: what it writes goes into this draft.
        """

    def finish(self, key: str) -> None:
        """Make the durable bytes the object `key`, and the draft empty. Repeating it is harmless.

        An object that is there already under `key` stays (keys name their content).

        Raises:
            SourceNotFound: the draft holds nothing, and there is no object `key`.
            StoreFull, Unavailable: the draft is as it was.
        """

    def discard(self) -> None:
        """Drop the draft. Harmless where there is none."""

    def close(self) -> None:
        """Give back what is held open; what was not synced may be lost. Repeating it is harmless.

        The draft can be used again afterwards.
        """


class DirectParts(Protocol):
    """Pieces of drafts that clients put into the store themselves, by URLs that are signed."""

    def urls(self, draft: str, starts: Sequence[int], seconds: float) -> list[str]:
        """URLs to PUT the pieces that begin at these bytes, valid so long.

        Raises:
            Unavailable: no signing credentials.
        """

    def pieces(self, draft: str) -> list[tuple[int, int]]:
        """(first byte, size) of all pieces that are here, in order, gaps or not."""

    def drop(self, draft: str, starts: Sequence[int]) -> None:
        """Delete the pieces that begin at these bytes."""


class Store(Protocol):
    """Bytes by key."""

    def size(self, key: str) -> int:
        """Bytes of the object.

        Raises:
            SourceNotFound: there is no such object.
        """

    def read(self, key: str, wanted: ByteRange) -> Iterator[bytes]:
        """The bytes of a range of an object, in pieces of at most 256 KiB (PIECE_BYTES).

        Nothing is read before the first piece is requested, and the object is closed when the
        iterator is exhausted or closed.

        Raises:
            SourceNotFound: there is no such object.
            InvalidRange: the range reaches beyond its end.
            Unavailable: the store does not answer.
        """

    def source(self, key: str) -> Source:
        """The object as the library reads it (ranges; mapped where it is a local file).

        Raises SourceNotFound here or at the first read.
        """

    def write(self, key: str, pieces: Iterable[bytes]) -> int:
        """Write an object, durable at return; returns its size. One that is there is replaced.

        Where `pieces` raises, nothing is written and what was there stays.

        Raises:
            StoreFull, Unavailable: nothing is written and what was there stays.
        """

    def delete(self, key: str) -> None:
        """Delete the object. Harmless where there is none."""

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Keys of all objects that begin with `prefix`, sorted. Drafts are not objects."""

    def draft(self, name: str) -> Draft:
        """The draft of that name; nothing is written yet."""

    def drafts(self) -> Iterator[str]:
        """Names of all drafts that hold bytes, sorted."""

    def direct(self) -> DirectParts | None:
        """Pieces of drafts that clients put into the store themselves; None: not into this one."""

    def local(self, key: str) -> AbstractContextManager[Path]:
        """The object as a local file while the context lasts: itself, or a copy that is removed.

        Raises:
            SourceNotFound: there is no such object.
        """

    def path(self, key: str) -> Path | None:
        """Where the object lies on the local disk, for sendfile and X-Accel; None elsewhere."""

    def sweep_temporary(self) -> int:
        """Remove what killed processes left half written; returns how many files."""

    def check(self) -> None:
        """Write, read and delete a small object: what readiness asks.

        Raises:
            Unavailable: the store does not answer.
            StoreFull: no room.
        """


@contextmanager
def local_copy(store: Store, key: str) -> Iterator[Path]:
    """A copy of an object in a temporary file, removed when the context ends.

    Raises:
        SourceNotFound: there is no such object.
    """
    size = store.size(key)
    with OwnFolder() as folder:
        path = folder / "object"
        with path.open("wb") as file:
            file.writelines(store.read(key, ByteRange(0, size)))
        yield path


def round_trips(store: Store) -> bool:
    """Whether a store gives back what is written into it; nothing is left of the trial.

    Raises:
        StoreFull, Unavailable: as the store's own calls.
    """
    key, content = f"checks/{secrets.token_hex(16)}", secrets.token_bytes(16)
    try:
        store.write(key, [content])
        return b"".join(store.read(key, ByteRange(0, len(content)))) == content
    except SourceNotFound:
        return False
    finally:
        store.delete(key)
