"""What a walk asks of a codec: whether a sample begins here, and where it ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final, NamedTuple

from fragdex.repairing.window import Window

HOLE: Final = bytes(16)
"""So many zeros are not in coded samples: they come of bytes that were never written."""


class Found(NamedTuple):
    """A sample by the syntax of its codec.

    Attributes:
        stop: behind its last byte.
        sync: whether decoding can start here.
        fresh: whether the order of pictures begins anew here.
        order: number in the order in which pictures are shown, since the last fresh one, or in the
            codec's own terms until it was accepted.
        head: what the codec needs to place it, or None.
    """

    stop: int
    sync: bool = True
    fresh: bool = False
    order: int = 0
    head: tuple[int, ...] | None = None


class Syntax(ABC):
    """A codec of a track, as it stands in samples."""

    delimited = True
    """Whether a sample says where it ends; else only its neighbours do."""
    learned = False
    """Whether a good film was studied."""
    remembers = False
    """Whether what is a sample depends on the samples before it."""
    holes = False
    """Whether samples of the good film have so many zeros all the same."""
    spent = 0
    """Bytes that were read in vain or not, where a look costs more than a few of them."""

    @abstractmethod
    def find(self, window: Window, at: int, stop: int) -> Found | None:
        """The sample that begins at `at` and ends at or before `stop`; None: none does."""

    def may_follow(self, found: Found) -> bool:
        """Whether a sample may come right behind the last one that was accepted."""
        return True

    def accept(self, found: Found) -> Found:
        """A sample of the film, in its turn: with its place in the order of pictures."""
        return found

    def is_whole(self, window: Window, at: int, found: Found) -> bool:
        """Whether a sample that was found behind a loss cannot have begun before it."""
        return False

    def study(self, window: Window, at: int, found: Found) -> None:
        """Learn from a sample of a good film."""
        return  # most codecs have nothing to learn

    def begins(self, window: Window, at: int) -> bool:
        """Whether a sample begins here that ends behind the last byte that is there."""
        return False

    def interrupted(self) -> None:
        """Samples are missing from here on."""
        return  # most codecs have nothing to forget

    def starts(self, data: bytes) -> list[int]:
        """Places in `data` where a sample may begin, rising; cheap, and never too few."""
        return list(range(len(data)))
