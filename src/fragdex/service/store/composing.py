"""A store that also composes: an object may be made bytes and ranges of another object.

Such an object has a key of `COMPOSED`. What is written under it is the record of a `Composition`;
what is read is what the record describes, so that nobody who reads needs to know. It is no file:
`path` has none, and `local` makes a copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

from fragdex import ByteRange, Source
from fragdex.errors import InvalidRange
from fragdex.lru_cache import LRUCache
from fragdex.service.store.composition import Composition
from fragdex.service.store.contract import PIECE_BYTES, DirectParts, Draft, Store, local_copy
from fragdex.views.view import Sources, View

__all__ = ["COMPOSED", "ComposingStore", "is_composed"]

COMPOSED: Final = "composed/"
"""What the keys of composed objects begin with."""

_MEMORY: Final = 64 << 20
"""Bytes of records that a process keeps."""


def is_composed(key: str) -> bool:
    """Whether an object of this key is composed.

    >>> is_composed("composed/t1/0199"), is_composed("blobs/t1/0199")
    (True, False)
    """
    return key.startswith(COMPOSED)


class ComposingStore:
    """Objects of `plain`, some of which are composed of others there.

    >>> import numpy as np
    >>> from fragdex.service.store.opening import open_store
    >>> store = ComposingStore(open_store("memory://"))
    >>> _ = store.write("blobs/whole", [b"abcdefgh"])
    >>> column = lambda *values: np.array(values, np.int64)
    >>> of = Composition("blobs/whole", 8, b"12", column(2), column(1), column(4), column(3))
    >>> _ = store.write("composed/part", [of.built()])
    >>> b"".join(store.read("composed/part", ByteRange(1, 5))), store.size("composed/part")
    (b'2efg', 5)
    """

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
            SourceError: what is to be written under the key of a composed object is no record.
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

    def sweep_temporary(self) -> int:
        """Remove what killed processes left half written; returns how many files."""
        return self.plain.sweep_temporary()

    def check(self) -> None:
        """Write, read and delete a small object."""
        self.plain.check()

    def _composition(self, key: str) -> tuple[Composition, View]:
        """A record, and what it describes; an object never changes, so neither is ever stale."""
        found = self._opened.get(key)
        if found is None:
            whole = ByteRange(0, self.plain.size(key))
            composition = Composition.parsed(b"".join(self.plain.read(key, whole)))
            found = composition, composition.view()
            self._opened.put(key, found, composition.weight)
        return found


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
        """Close the object behind it."""
        super().close()
        self._whole.close()
