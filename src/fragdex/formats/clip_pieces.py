"""What a clip is: bytes and ranges of its source, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from fragdex.byterange import ByteRange
from fragdex.formats.clip_samples import Ranges

__all__ = ["Block", "Clip", "Piece", "Read"]

Read = Callable[[ByteRange], bytes]
Piece = bytes | ByteRange
"""Bytes to write as they are, or a range of the source to copy."""
Block = Piece | Ranges
"""The same, or many ranges of the source."""


@dataclass(frozen=True, slots=True)
class Clip:
    """What a clip is made of.

    Attributes:
        blocks: bytes and ranges of the source, to be written in this order; can be iterated once.
        start, stop: seconds of the source's presentation that the clip really spans (exclusive).
        tracks: track ids in it.
        whole_fragments: whether fragments were taken as they are, and samples were not chosen.
        exact: whether it presents what was asked for and no more.
        left_out: which tracks are not in it and why, as sentences.

    >>> Clip(iter([b"abc"]), Fraction(0), Fraction(2), (1,), True).stop
    Fraction(2, 1)
    """

    blocks: Iterator[Block]
    start: Fraction
    stop: Fraction
    tracks: tuple[int, ...]
    whole_fragments: bool
    exact: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def pieces(self) -> Iterator[Piece]:
        """The blocks, with each range by itself."""
        for block in self.blocks:
            if isinstance(block, Ranges):
                yield from block.parts()
            else:
                yield block
