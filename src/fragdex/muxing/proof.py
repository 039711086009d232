"""What a view proves of its bytes: the pieces of a source that stand in it as they are.

A clip, a package or any other view makes boxes again and keeps samples. A piece that it keeps whole
has the digest that it had in the source, and the path from there to the Merkle root of the source:
whoever trusts that root can check those bytes of the view without the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fragdex.byterange import ByteRange
from fragdex.errors import DamagedIndex, InexactIndex, InvalidRange
from fragdex.fragments.pieces import ALGORITHM, PieceDigests, layers_of, path_in, root_of_path
from fragdex.muxing.view import Block, Interleaved, Scattered, SourceRange, size_of
from fragdex.record import record
from fragdex.seeking.model import Index
from fragdex.sources import SourceLike, open_source

if TYPE_CHECKING:
    from fragdex.muxing.view import View

__all__ = ["KeptPiece", "Proof", "proof_of"]


class KeptPiece(NamedTuple):
    """A piece of a source that a view has whole.

    Attributes:
        ranges: where it is in the view, in the order of the source: one, or several where it is
            parted, as a fragment is between the parts of a segment.
        number: of the piece in the source, from 0.
        path: digests from its own to the root, as `fragdex.fragments.pieces.path_of` gives them.
    """

    ranges: tuple[ByteRange, ...]
    number: int
    digest: bytes
    path: tuple[bytes, ...]


@record(frozen=True, slots=True)
class Proof:
    """Which bytes of a view are bytes of a source, by the Merkle root of the source.

    Attributes:
        root: of all pieces of the source, 32 bytes; to be compared with one that is trusted.
        count: pieces of the source.
        kept: those that are in the view, in its order.
    """

    root: bytes
    count: int
    kept: tuple[KeptPiece, ...]

    @property
    def size(self) -> int:
        """Bytes of the view that are proved."""
        return sum(one.size for piece in self.kept for one in piece.ranges)

    def wrong(self, what: SourceLike) -> tuple[ByteRange, ...]:
        """Which of the proved bytes of a file are not those of the source.

        Args:
            what: the view as received, in any form that `fragdex.open_source` takes.

        Raises:
            SourceError: it cannot be read.
        """
        source = open_source(what)
        try:
            proved: list[ByteRange] = []
            for piece in self.kept:
                running = sha256()
                for one in piece.ranges:
                    running.update(source.read_up_to(one))
                found = root_of_path(running.digest(), piece.number, self.count, piece.path)
                if found != self.root:
                    proved += piece.ranges
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
                    "ranges": [[one.start, one.stop] for one in piece.ranges],
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
        """
        try:
            if values["algorithm"] != ALGORITHM:
                raise ValueError(f"algorithm {str(values['algorithm'])[:40]!r}")
            kept = [
                KeptPiece(
                    tuple(ByteRange(int(start), int(stop)) for start, stop in piece["ranges"]),
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
    for ranges, number in _kept(view, sources[0] if sources else 0, digests):
        digest = digests.table.digest[number].tobytes()
        kept.append(KeptPiece(ranges, number, digest, path_in(layers, number)))
    return Proof(digests.root, len(digests), tuple(kept))


def _kept(
    view: View, source: int, digests: PieceDigests
) -> Sequence[tuple[tuple[ByteRange, ...], int]]:
    """Places in the view and number of each piece that it has whole, in the view's order."""
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
    begin, end, place = start[first], (start + size)[last], place[first]
    stops = digests.table.start + digests.table.size
    low = np.searchsorted(digests.table.start, begin, side="left")
    high = np.searchsorted(stops, end, side="right")
    kept: list[tuple[tuple[ByteRange, ...], int]] = []
    for run in np.flatnonzero(low < high).tolist():
        shift = int(place[run]) - int(begin[run])
        for row in range(int(low[run]), int(high[run])):
            at = int(digests.table.start[row]) + shift
            kept.append(((ByteRange.of(at, int(digests.table.size[row])),), row))
    kept += _parted((place, begin, end), digests, {row for _, row in kept})
    return sorted(kept, key=lambda one: one[0][0].start)


def _parted(
    runs: tuple[Any, Any, Any], digests: PieceDigests, known: set[int]
) -> Iterator[tuple[tuple[ByteRange, ...], int]]:
    """Pieces that a view has in several runs, which touch each other in the source.

    Args:
        runs: place in the view, begin and end in the source of each.
    """
    order = np.argsort(runs[1], kind="stable")
    place, begin, end = (column[order] for column in runs)
    heads = np.flatnonzero(np.append(True, begin[1:] != end[:-1]))
    starts, stops = digests.table.start, digests.table.start + digests.table.size
    low = np.searchsorted(starts, begin[heads], side="left")
    high = np.searchsorted(stops, end[np.append(heads[1:], len(end)) - 1], side="right")
    for group in np.flatnonzero(low < high).tolist():
        for row in range(int(low[group]), int(high[group])):
            if row in known or starts[row] == stops[row]:
                continue
            run, ranges = int(np.searchsorted(begin, starts[row], side="right")) - 1, []
            at = int(starts[row])
            while at < stops[row]:
                stop = min(int(end[run]), int(stops[row]))
                ranges.append(ByteRange.of(int(place[run]) + at - int(begin[run]), stop - at))
                at, run = stop, run + 1
            yield tuple(ranges), row


def _of_source(block: Block, source: int, at: int) -> tuple[Any, Any, Any] | None:
    """Place in the view, place in the source and size of each range of a block."""
    if isinstance(block, SourceRange) and block.source == source:
        part = block.range
        return np.array([at]), np.array([part.start]), np.array([part.size])
    if isinstance(block, (Scattered, Interleaved)) and block.source == source:
        inside, places = block.start >= 0, at + np.cumsum(block.size) - block.size
        return places[inside], block.start[inside], block.size[inside]
    return None
