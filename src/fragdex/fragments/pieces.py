"""The pieces of a file and their digests, and the Merkle tree over them.

The pieces lie one after the other from the first byte of a file to its last, so that every byte is
in one of them. Their digests are the leaves of a binary tree: a node is the SHA-256 of its two
children one after the other, and a node without a neighbour goes up as it is. That is the tree
of C2PA's BMFF hashes (C2PA 2.1, 18.7). Its root and the number of leaves stand for the whole file;
a path of digests from a leaf to the root shows that a piece belongs to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from fragdex.byterange import ByteRange
from fragdex.errors import DamagedIndex
from fragdex.fragments.table import Int64, Table, column
from fragdex.record import record

__all__ = [
    "ALGORITHM",
    "MOST_BYTES",
    "PieceDigests",
    "PieceTable",
    "layers_of",
    "path_in",
    "path_of",
    "root_of",
    "root_of_path",
]

ALGORITHM = "sha256"
"""FIPS 180-4; by the name that C2PA has for it."""
DIGEST_SIZE = 32
MOST_BYTES: Final = 1 << 20
"""Bytes of a piece at most: what a checked read may need more than was requested."""

_PAIR = np.dtype("V64")
_LEAF = np.dtype(f"V{DIGEST_SIZE}")
Digests = npt.NDArray[np.void]


@record(frozen=True, slots=True, eq=False, repr=False)
class PieceTable(Table):
    """One row per piece of a file, in file order, without gaps."""

    SCHEMA_NAME: ClassVar[str] = "pieces"

    start: Int64 = column("i8", "byte", "first byte of the piece")
    size: Int64 = column("i8", "byte", "bytes of the piece")
    digest: Digests = column("V32", "", "SHA-256 of its bytes")


class PieceDigests:
    """The digest of each piece of a file.

    Attributes:
        table: `PieceTable`, one row a piece.
    """

    table: PieceTable
    _load: Callable[[], PieceTable]

    def __init__(self, table: PieceTable) -> None:
        self.table = table
        self._claimed: str | None = None

    @classmethod
    def deferred(cls, load: Callable[[], PieceTable], root: str) -> PieceDigests:
        """Digests whose table is loaded on first use.

        Args:
            load: gives the table, or raises DamagedIndex.
            root: the Merkle root that is claimed, as hex digits; `check_root` compares it.
        """
        digests = cls.__new__(cls)
        digests._load, digests._claimed = load, root
        return digests

    if not TYPE_CHECKING:  # to mypy, it would make every name an attribute

        def __getattr__(self, name: str) -> Any:
            """Only called for what is missing: the table of deferred digests."""
            load = self.__dict__.get("_load") if name == "table" else None
            if load is None:
                raise AttributeError(name)
            self.table = load()
            return self.table

    def __getstate__(self) -> dict[str, Any]:
        """A saved index sends its columns as they lie in the file, and these digests with them."""
        state = dict(self.__dict__)
        state.pop("root", None)
        if "_load" in state:
            state.pop("table", None)
        return state

    @cached_property
    def root(self) -> bytes:
        """The Merkle root, 32 bytes: what stands for the whole file."""
        return root_of(self.table.digest)

    def check_root(self) -> None:
        """Compare the root with the one that the saved index claims.

        Raises:
            DamagedIndex: it is another one.
        """
        if self._claimed not in (None, self.root.hex()):
            raise DamagedIndex(
                "the Merkle root is not that of the digests",
                path="/digests/root",
                expected=self.root.hex(),
                found=repr(self._claimed)[:80],
                advice="build the index again",
            )

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return int(self.table.start[-1] + self.table.size[-1]) if len(self) else 0

    def touching(self, range: ByteRange) -> slice:
        """The rows of the pieces that have bytes of a range."""
        first = int(np.searchsorted(self.table.start, range.start, side="right")) - 1
        last = int(np.searchsorted(self.table.start, range.stop, side="left"))
        return slice(max(first, 0), max(last, first, 0))

    def range(self, row: int) -> ByteRange:
        """The bytes of a piece."""
        return ByteRange.of(int(self.table.start[row]), int(self.table.size[row]))

    def wrong(self, rows: slice, data: bytes | memoryview) -> list[int]:
        """The rows whose digests are not those of these bytes.

        Args:
            rows: pieces one after the other.
            data: the bytes from the start of the first of them on; what is missing is wrong.
        """
        view, wrong = memoryview(data), []
        base = int(self.table.start[rows.start]) if rows.start < rows.stop else 0
        for row in range(rows.start, rows.stop):
            piece = self.range(row)
            part = view[piece.start - base : piece.stop - base]
            if len(part) != piece.size or sha256(part).digest() != self.table.digest[row].tobytes():
                wrong.append(row)
        return wrong

    def __len__(self) -> int:
        return len(self.table)

    def __eq__(self, other: object) -> bool:
        return self.table == other.table if isinstance(other, PieceDigests) else NotImplemented

    def __hash__(self) -> int:
        return hash((len(self), self.size))

    def __repr__(self) -> str:
        return f"<PieceDigests: {len(self):,} pieces, root {self.root.hex()}>"


def sha256(data: bytes | memoryview = b"") -> Any:
    """A running SHA-256; hashlib is imported only if digests are requested."""
    from hashlib import sha256

    return sha256(data)


def leaves_of(digests: Sequence[bytes]) -> Digests:
    """Digests as a column."""
    return np.frombuffer(b"".join(digests), _LEAF) if digests else np.zeros(0, _LEAF)


def root_of(leaves: Digests) -> bytes:
    """The root of the tree over these digests; of none, the digest of nothing."""
    if not len(leaves):
        return bytes(sha256().digest())
    return bytes(layers_of(leaves)[-1][0])


def path_of(leaves: Digests, number: int) -> tuple[bytes, ...]:
    """What has to be hashed with a leaf, layer by layer, to come to the root.

    Raises:
        IndexError: there is no such leaf.
    """
    if not 0 <= number < len(leaves):
        raise IndexError(f"there is no leaf {number}: there are {len(leaves)}, from 0")
    return path_in(layers_of(leaves), number)


def path_in(layers: Sequence[Digests], number: int) -> tuple[bytes, ...]:
    """`path_of` a leaf in the layers of a tree, for many paths of one tree."""
    path = []
    for layer in layers:
        beside = number ^ 1
        if beside < len(layer):
            path.append(layer[beside].tobytes())
        number >>= 1
    return tuple(path)


def root_of_path(leaf: bytes, number: int, count: int, path: Sequence[bytes]) -> bytes | None:
    """The root that a path leads to, or None where it is not one of a tree with so many leaves."""
    if not 0 <= number < count:
        return None
    left = list(path)
    while count > 1:
        if number ^ 1 < count:
            if not left:
                return None
            beside = left.pop(0)
            leaf = sha256(beside + leaf if number & 1 else leaf + beside).digest()
        number, count = number >> 1, (count + 1) >> 1
    return None if left else leaf


def layers_of(leaves: Digests) -> list[Digests]:
    """The leaves, and each layer of the tree above them up to the root."""
    layers: list[Any] = [np.ascontiguousarray(leaves)]
    while len(layer := layers[-1]) > 1:
        pairs = layer[: len(layer) & ~1].view(_PAIR)
        above = [sha256(pair).digest() for pair in pairs.tolist()]
        if len(layer) & 1:
            above.append(layer[-1].tobytes())
        layers.append(leaves_of(above))
    return layers
