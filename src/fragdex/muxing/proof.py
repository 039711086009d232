"""What a view proves of its bytes: the pieces of a source that stand in it as they are.

A clip, a package or any other view makes boxes again and keeps samples. A piece that it keeps whole
has the digest that it had in the source, and the path from there to the Merkle root of the source:
whoever trusts that root can check those bytes of the view without the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.errors import DamagedIndex, InexactIndex, InvalidRange
from fragdex.fragments.pieces import ALGORITHM, PieceDigests, layers_of, path_in, root_of_path
from fragdex.muxing.view import Block, Scattered, SourceRange, size_of
from fragdex.seeking.model import Index
from fragdex.sources import SourceLike, open_source

if TYPE_CHECKING:
    from fragdex.muxing.view import View

__all__ = ["KeptPiece", "Proof", "proof_of"]


class KeptPiece(NamedTuple):
    """A piece of a source that a view has whole.

    Attributes:
        range: where it is in the view.
        number: of the piece in the source, from 0.
        path: digests from its own to the root, as `fragdex.fragments.pieces.path_of` gives them.
    """

    range: ByteRange
    number: int
    digest: bytes
    path: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Proof:
    """Which bytes of a view are bytes of a source, by the Merkle root of the source.

    Attributes:
        root: of all pieces of the source, 32 bytes; to be compared with one that is trusted.
        count: pieces of the source.
        kept: those that are in the view, in its order.

    >>> import fragdex
    >>> index = fragdex.index("fixtures/frag-cmaf.mp4", digests=True)
    >>> clip = fragdex.clip(index, start=0.96, stop=1.44)
    >>> proof = proof_of(clip, index)
    >>> proof.root == index.digests.root, len(proof.kept), proof.wrong(clip.read())
    (True, 2, ())
    """

    root: bytes
    count: int
    kept: tuple[KeptPiece, ...]

    @property
    def size(self) -> int:
        """Bytes of the view that are proved."""
        return sum(piece.range.size for piece in self.kept)

    def wrong(self, what: SourceLike) -> tuple[ByteRange, ...]:
        """Which of the proved bytes of a file are not those of the source.

        Args:
            what: the view as received, in any form that `fragdex.open_source` takes.

        Raises:
            SourceError: it cannot be read.
        """
        source = open_source(what)
        try:
            proved = []
            for piece in self.kept:
                digest = sha256(source.read_up_to(piece.range)).digest()
                if root_of_path(digest, piece.number, self.count, piece.path) != self.root:
                    proved.append(piece.range)
            return tuple(proved)
        finally:
            if source is not what:
                source.close()

    def to_json(self) -> dict[str, Any]:
        """The proof as JSON values; digests as hex digits."""
        return {
            "algorithm": ALGORITHM,
            "root": self.root.hex(),
            "pieces": self.count,
            "kept": [
                {
                    "start": piece.range.start,
                    "stop": piece.range.stop,
                    "piece": piece.number,
                    "digest": piece.digest.hex(),
                    "path": [digest.hex() for digest in piece.path],
                }
                for piece in self.kept
            ],
        }

    @classmethod
    def from_json(cls, values: Any) -> Proof:
        """The proof that `to_json` gave.

        Raises:
            DamagedIndex: it is no proof, or one by another algorithm.

        >>> proof = Proof(bytes(32), 1, (KeptPiece(ByteRange(8, 9), 0, bytes(32), ()),))
        >>> Proof.from_json(proof.to_json()) == proof
        True
        """
        try:
            if values["algorithm"] != ALGORITHM:
                raise ValueError(f"algorithm {str(values['algorithm'])[:40]!r}")
            kept = [
                KeptPiece(
                    ByteRange(int(piece["start"]), int(piece["stop"])),
                    int(piece["piece"]),
                    bytes.fromhex(piece["digest"]),
                    tuple(map(bytes.fromhex, piece["path"])),
                )
                for piece in values["kept"]
            ]
            return cls(bytes.fromhex(values["root"]), int(values["pieces"]), tuple(kept))
        except (KeyError, TypeError, ValueError, InvalidRange) as error:
            raise DamagedIndex(
                "not a proof of this view",
                expected="JSON as fragdex view --proof writes it",
                found=str(error)[:80],
            ) from error


def proof_of(view: View, index: Index) -> Proof:
    """What a view proves of the bytes that it keeps of a file.

    Args:
        view: a view of the file: a clip, a copy, or a file of a package (`package[name]`).
        index: of the file, with digests.

    Raises:
        InexactIndex: the index has no digests.
        ValueError: the file is not one of the view's sources.
        And what making the view's boxes raises; no media is read.
    """
    if index.digests is None:
        raise InexactIndex(
            "the index has no digests of pieces",
            advice="make it with digests=True (fragdex index --digests)",
        )
    sources = [n for n, known in enumerate(view.sources) if known == index.file]
    if not sources and len(view.sources) != 1:
        raise ValueError(f"{index.file.name or 'this file'} is not a source of the view")
    digests = index.digests
    layers = layers_of(digests.table.digest)
    kept = []
    for place, number in _kept(view, sources[0] if sources else 0, digests):
        digest = digests.table.digest[number].tobytes()
        one = ByteRange.of(place, int(digests.table.size[number]))
        kept.append(KeptPiece(one, number, digest, path_in(layers, number)))
    return Proof(digests.root, len(digests), tuple(kept))


def _kept(view: View, source: int, digests: PieceDigests) -> Sequence[tuple[int, int]]:
    """Place in the view and number of each piece that it has whole, in the view's order."""
    parts = []
    at = 0
    for block in view.blocks():
        part = _of_source(block, source, at)
        if part is not None:
            parts.append(part)
        at += size_of(block)
    if not parts:
        return ()
    place, start, size = (np.concatenate(column) for column in zip(*parts, strict=True))
    joined = (place[1:] == (place + size)[:-1]) & (start[1:] == (start + size)[:-1])
    first = np.flatnonzero(np.append(True, ~joined))
    last = np.append(first[1:] - 1, len(place) - 1)
    begin, end = start[first], (start + size)[last]
    stops = digests.table.start + digests.table.size
    low = np.searchsorted(digests.table.start, begin, side="left")
    high = np.searchsorted(stops, end, side="right")
    places = []
    for run in np.flatnonzero(low < high).tolist():
        shift = int(place[first[run]]) - int(begin[run])
        rows = range(int(low[run]), int(high[run]))
        places += [(int(digests.table.start[row]) + shift, row) for row in rows]
    return places


def _of_source(block: Block, source: int, at: int) -> tuple[Any, Any, Any] | None:
    """Place in the view, place in the source and size of each range of a block."""
    if isinstance(block, SourceRange) and block.source == source:
        part = block.range
        return np.array([at]), np.array([part.start]), np.array([part.size])
    if isinstance(block, Scattered) and block.source == source:
        return at + np.cumsum(block.size) - block.size, block.start, block.size
    return None
