"""A store that also composes: an object may be made bytes and ranges of another object.

Such an object has a key of `COMPOSED`. What is written under it is the record of a `Composition`;
what is read is what the record describes, so that nobody who reads needs to know. It is not a file:
`path` has none, and `local` makes a copy.

A record begins with its name and version, then the SHA-256 of the rest, which is compressed by zlib
(RFC 1950): one line of JSON, four columns of little-endian int64 (for each block, the size of its
made bytes and how many ranges follow; for each range, the bytes left out before it and its size),
and the made bytes.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import numpy as np

from fragdex import Source
from fragdex.byterange import ByteRange
from fragdex.errors import InvalidRange, SourceError
from fragdex.fragments.table import Int64
from fragdex.lru_cache import LRUCache
from fragdex.muxing.view import Block, Scattered, SourceRange, Sources, View
from fragdex.record import record
from fragdex.seeking.origin import FileInfo
from fragdex.service.store.contract import PIECE_BYTES, DirectParts, Draft, Store, local_copy

COMPOSED: Final = "composed/"
"""What the keys of composed objects begin with."""

_MEMORY: Final = 64 << 20
"""Bytes of records that a process keeps."""


def is_composed(key: str) -> bool:
    """Whether an object of this key is composed."""
    return key.startswith(COMPOSED)


class ComposingStore:
    """Objects of `plain`, some of which are composed of others there."""

    def __init__(self, plain: Store) -> None:
        self.plain = plain
        self._opened = LRUCache[tuple[Composition, View]](_MEMORY)

    def __repr__(self) -> str:
        return repr(self.plain)

    def size(self, key: str) -> int:
        """Bytes of the object."""
        return self._composition(key)[1].size if is_composed(key) else self.plain.size(key)

    def read(self, key: str, wanted: ByteRange) -> Iterator[bytes]:
        """The bytes of a range of an object, in pieces of at most 256 KiB."""
        return self._pieces(key, wanted) if is_composed(key) else self.plain.read(key, wanted)

    def _pieces(self, key: str, wanted: ByteRange) -> Iterator[bytes]:
        _, view = self._composition(key)
        if wanted.stop > view.size:
            raise InvalidRange("the range ends after the object", expected=view.size, found=wanted)
        with self.source(key) as source:
            assert isinstance(source, _ComposedSource)
            for piece in source.bytes_of(wanted):
                for at in range(0, len(piece), PIECE_BYTES):
                    yield piece[at : at + PIECE_BYTES]

    def source(self, key: str) -> Source:
        """The object as the library reads it."""
        if not is_composed(key):
            return self.plain.source(key)
        composition, view = self._composition(key)
        return _ComposedSource(key, view, self.plain.source(composition.source_key))

    def write(self, key: str, pieces: Iterable[bytes]) -> int:
        """Write an object, or the record of one that is composed; returns the size of that.

        Raises:
            SourceError: what is to be written under the key of a composed object is not a record.
        """
        if is_composed(key):
            pieces = [b"".join(pieces)]
            Composition.parsed(pieces[0])
        return self.plain.write(key, pieces)

    def delete(self, key: str) -> None:
        """Delete the object; the one that it is composed of stays."""
        self._opened.drop(key)
        self.plain.delete(key)

    def keys(self, prefix: str = "") -> Iterator[str]:
        """Keys of all objects that begin with `prefix`, sorted."""
        return self.plain.keys(prefix)

    def draft(self, name: str) -> Draft:
        """The draft of that name; nothing is written yet."""
        return self.plain.draft(name)

    def drafts(self) -> Iterator[str]:
        """Names of all drafts that hold bytes, sorted."""
        return self.plain.drafts()

    def direct(self) -> DirectParts | None:
        """Pieces that clients put into the store themselves; None: not into this one."""
        return self.plain.direct()

    def local(self, key: str) -> AbstractContextManager[Path]:
        """The object as a local file while the context lasts."""
        return local_copy(self, key) if is_composed(key) else self.plain.local(key)

    def path(self, key: str) -> Path | None:
        """Where the object lies on the local disk; None for one that is composed."""
        return None if is_composed(key) else self.plain.path(key)

    def file_of(self, key: str) -> ComposedFile | None:
        """The file of the local disk that a composed object has its bytes of.

        None: it is not composed, it is elsewhere, or its record was not read yet.
        """
        opened = self._opened.get(key) if is_composed(key) else None
        path = None if opened is None else self.plain.path(opened[0].source_key)
        return None if opened is None or path is None else ComposedFile(path, *opened)

    def sweep_temporary(self) -> int:
        """Remove what killed processes left half written; returns how many files."""
        return self.plain.sweep_temporary()

    def check(self) -> None:
        """Write, read and delete a small object."""
        self.plain.check()

    def located(self, key: str, places: Scattered) -> tuple[str, FileInfo | None, Scattered] | None:
        """The plain object on the local disk that holds bytes of an object, and where in it.

        Args:
            places: ranges of the object.

        Returns: its key, what a record knows of it, and as many bytes in the same order; None:
            it is elsewhere, some of the bytes are made, or the record was not read yet.
        """
        if not is_composed(key):
            return None if self.plain.path(key) is None else (key, None, places)
        opened = self._opened.get(key)
        if opened is None:
            return None
        composition, view = opened
        if self.plain.path(composition.source_key) is None:
            return None
        starts: list[Int64] = []
        sizes: list[Int64] = []
        for part in places.parts():
            for block in view.blocks(part.range):
                if isinstance(block, SourceRange):
                    starts.append(np.array([block.range.start], np.int64))
                    sizes.append(np.array([block.range.size], np.int64))
                elif isinstance(block, Scattered):
                    starts.append(block.start)
                    sizes.append(block.size)
                else:
                    return None
        if not starts:
            return None
        ranges = Scattered(0, np.concatenate(starts), np.concatenate(sizes))
        return composition.source_key, view.sources[0], ranges

    def _composition(self, key: str) -> tuple[Composition, View]:
        """A record, and what it describes; an object never changes, so neither is ever stale."""
        opened = self._opened.get(key)
        if opened is None:
            whole = ByteRange(0, self.plain.size(key))
            composition = Composition.parsed(b"".join(self.plain.read(key, whole)))
            opened = composition, composition.view()
            self._opened.put(key, opened, composition.weight)
        return opened


@record(frozen=True, slots=True)
class ComposedFile:
    """A file of the local disk of which, and of made bytes, an object consists."""

    path: Path
    _composition: Composition
    _view: View

    @property
    def size(self) -> int:
        """Bytes that the file has to have."""
        return self._composition.source_size

    def parts(self, wanted: ByteRange, most: int) -> list[bytes | ByteRange] | None:
        """What a range of the object consists of: made bytes, and ranges of the file.

        None: there are more than `most`.
        """
        parts: list[bytes | ByteRange] = []
        for block in self._view.blocks(wanted):
            if len(parts) + (len(block.size) if isinstance(block, Scattered) else 1) > most:
                return None
            if isinstance(block, bytes):
                parts.append(block)
            elif isinstance(block, SourceRange):
                parts.append(block.range)
            elif isinstance(block, Scattered):
                parts += [part.range for part in block.parts()]
            else:
                return None
        return parts


class _ComposedSource(Source):
    """Reads of a composed object; `whole` is the one that it is composed of, and closed with it."""

    def __init__(self, key: str, view: View, whole: Source) -> None:
        super().__init__(key, size=view.size, remote=whole.remote)
        self._view, self._whole = view, whole
        self._sources = Sources(view.sources, whole)

    def read_up_to(self, range: ByteRange) -> bytes:
        """Return the bytes of `range`, cut at the end."""
        return b"".join(self.bytes_of(self._spend(range)))

    def bytes_of(self, range: ByteRange) -> Iterator[bytes]:
        """The bytes of `range` in pieces; what lies near each other is read together."""
        return self._sources.bytes_of(self._view.blocks(range))

    def close(self) -> None:
        """Close its object."""
        super().close()
        self._whole.close()


MOST_RECORD_BYTES: Final = 64 << 20
"""Bytes of a record before they are compressed, at most: what a process holds of one."""

_MAGIC: Final = b"fragdex composition 1\n"
_DIGEST: Final = hashlib.sha256().digest_size
_INT64: Final = np.dtype("<i8")
_LARGEST: Final = 1 << 48
"""Bytes of the other object: sums of as many ranges as a record holds stay inside an int64."""


@record(frozen=True, slots=True, eq=False)
class Composition:
    """What an object consists of: blocks of made bytes, each followed by ranges of another object.

    Attributes:
        source_key, source_size: the other object in the store, and its bytes.
        made: the made bytes of all blocks, one after the other.
        made_sizes, counts: int64, for each block: its made bytes, and how many ranges follow.
        starts, sizes: int64, for each range: its first byte in the other object, and its bytes.
    """

    source_key: str
    source_size: int
    made: bytes
    made_sizes: Int64
    counts: Int64
    starts: Int64
    sizes: Int64

    @property
    def size(self) -> int:
        """Bytes of the object."""
        return len(self.made) + int(self.sizes.sum())

    @property
    def weight(self) -> int:
        """Bytes of memory that it takes."""
        columns = (self.made_sizes, self.counts, self.starts, self.sizes)
        return len(self.made) + sum(column.nbytes for column in columns)

    def built(self) -> bytes:
        """The record."""
        head = {
            "source": self.source_key,
            "source_size": self.source_size,
            "blocks": len(self.counts),
            "ranges": len(self.sizes),
        }
        # small numbers, which compress well
        gaps = np.diff(self.starts, prepend=0) - np.concatenate(([0], self.sizes))[:-1]
        columns = (self.made_sizes, self.counts, gaps, self.sizes)
        parts = [json.dumps(head).encode(), b"\n"]
        parts += [column.astype(_INT64).tobytes() for column in columns]
        body = zlib.compress(b"".join([*parts, self.made]))
        return _MAGIC + hashlib.sha256(body).digest() + body

    @classmethod
    def parsed(cls, record: bytes) -> Composition:
        """Read a record.

        Raises:
            SourceError: it is damaged: a byte of it changed, or a range is outside of the other
                object.
        """
        try:
            return cls._parsed(record)
        except (ValueError, KeyError, TypeError, OverflowError, zlib.error) as error:
            raise SourceError(
                "the record of a composed object is damaged",
                expected="a record as it was written",
                found=str(error),
                advice="restore it from a back-up, or process the file again",
            ) from error

    @classmethod
    def _parsed(cls, record: bytes) -> Composition:
        digest, body = record[len(_MAGIC) :][:_DIGEST], record[len(_MAGIC) + _DIGEST :]
        if not record.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
            raise ValueError("other bytes than its SHA-256 says")
        unpacker = zlib.decompressobj()
        content = unpacker.decompress(body, MOST_RECORD_BYTES)
        if not unpacker.eof:
            raise ValueError("an end too early or too late")
        line, _, rest = content.partition(b"\n")
        head = json.loads(line)
        key, whole, blocks, ranges = (
            head[name] for name in ("source", "source_size", "blocks", "ranges")
        )
        if not (isinstance(key, str) and 0 <= whole < _LARGEST and blocks >= 0 and ranges >= 0):
            raise ValueError(f"a head of other values: {line[:200]!r}")
        numbers = 2 * (blocks + ranges)
        columns = np.frombuffer(rest, _INT64, numbers).astype(np.int64)
        made_sizes, counts, gaps, sizes = np.split(
            columns, [blocks, 2 * blocks, 2 * blocks + ranges]
        )
        starts = np.cumsum(gaps) + np.cumsum(sizes) - sizes
        made_bytes = rest[numbers * _INT64.itemsize :]
        inside = (starts >= 0) & (sizes > 0) & (sizes <= whole) & (starts <= whole - sizes)
        if not inside.all():
            raise ValueError("a range outside of the other object")
        for column, total in ((made_sizes, len(made_bytes)), (counts, ranges)):
            # none is larger than the total: sums cannot wrap
            if ((column < 0) | (column > total)).any() or int(column.sum()) != total:
                raise ValueError("blocks that do not add up")
        return cls(key, whole, made_bytes, made_sizes, counts, starts, sizes)

    def view(self) -> View:
        """The object as a view of the other one."""
        made_stops = np.cumsum(self.made_sizes)
        range_stops = np.cumsum(self.counts)
        before = np.concatenate(([0], np.cumsum(self.sizes)))
        lengths = self.made_sizes + np.diff(before[np.concatenate(([0], range_stops))])

        def make(block: int) -> Sequence[Block]:
            stop = int(made_stops[block])
            parts: list[Block] = [self.made[stop - int(self.made_sizes[block]) : stop]]
            last = int(range_stops[block])
            first = last - int(self.counts[block])
            starts, sizes = self.starts[first:last], self.sizes[first:last]
            if len(sizes) == 1:
                start = int(starts[0])
                parts.append(SourceRange(0, ByteRange(start, start + int(sizes[0]))))
            elif len(sizes):
                parts.append(Scattered(0, starts, sizes))
            return parts

        known = (FileInfo(self.source_key, self.source_size),)
        recipe: Any = "composition"
        return View("video/mp4", known, recipe, lengths, make)
