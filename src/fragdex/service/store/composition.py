"""The record of an object that is composed: bytes that were made, and ranges of another object.

A record begins with its name and version, then the SHA-256 of the rest, which is compressed by zlib
(RFC 1950): one line of JSON, four columns of little-endian int64 (for each block, the size of its
made bytes and how many ranges follow; for each range, the bytes left out before it and its size),
and the made bytes.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.errors import SourceError
from fragdex.fragments.table import Int64
from fragdex.seeking.origin import SourceInfo
from fragdex.views.view import Block, Scattered, SourceRange, View

__all__ = ["MOST_RECORD_BYTES", "Composition"]

MOST_RECORD_BYTES: Final = 64 << 20
"""Bytes of a record before they are compressed, at most: what a process holds of one."""

_MAGIC: Final = b"fragdex composition 1\n"
_DIGEST: Final = hashlib.sha256().digest_size
_INT64: Final = np.dtype("<i8")
_LARGEST: Final = 1 << 48
"""Bytes of the other object: sums of as many ranges as a record holds stay inside an int64."""


@dataclass(frozen=True, slots=True, eq=False)
class Composition:
    """What an object consists of: blocks of made bytes, each followed by ranges of another object.

    Attributes:
        source_key, source_size: the other object in the store, and its bytes.
        made: the made bytes of all blocks, one behind the other.
        made_sizes, counts: int64, for each block: its made bytes, and how many ranges follow.
        starts, sizes: int64, for each range: its first byte in the other object, and its bytes.

    >>> column = lambda *values: np.array(values, np.int64)
    >>> one = Composition("a", 9, b"moof", column(4), column(1), column(2), column(5))
    >>> one.size, Composition.parsed(one.built()).source_key
    (9, 'a')
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
        made = rest[numbers * _INT64.itemsize :]
        inside = (starts >= 0) & (sizes > 0) & (sizes <= whole) & (starts <= whole - sizes)
        if not inside.all():
            raise ValueError("a range outside of the other object")
        for column, total in ((made_sizes, len(made)), (counts, ranges)):
            # none is larger than the total: sums cannot wrap
            if ((column < 0) | (column > total)).any() or int(column.sum()) != total:
                raise ValueError("blocks that do not add up")
        return cls(key, whole, made, made_sizes, counts, starts, sizes)

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

        known = (SourceInfo(self.source_key, self.source_size),)
        recipe: Any = "composition"
        return View("video/mp4", known, recipe, lengths, make)
