"""An order of the numbers below a count that is computed, and not stored."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fragdex.fragments.table import Int64

_ROUNDS: Final = 12
_LOW: Final = np.uint64(0xFFFFFFFF)


class Permutation:
    """The numbers from 0 to `count` (exclusive) in an order that a key chooses.

    A generalised Feistel network over pairs of numbers, whose results outside of the range go
    through it again (Black and Rogaway, "Ciphers with Arbitrary Finite Domains", 2002). The number
    at a place is computed from the place, the count and the key alone, so that any number of
    processes know the same order, and it needs no memory.

    Args:
        count: how many there are, up to 2^62.
        key: numbers of 0 or more, such as a seed and an epoch.

    >>> Permutation(6, 1, 0)(np.arange(6)).tolist()
    [4, 5, 2, 3, 0, 1]
    """

    def __init__(self, count: int, *key: int) -> None:
        if not 0 <= count <= 1 << 62:
            raise ValueError(f"count is 0 to 2^62, not {count}")
        self.count = count
        self._columns = max(int(np.ceil(np.sqrt(count))), 1)
        while self._columns**2 < count:  # a square root in floating point may be too small
            self._columns += 1
        self._rows = max(-(-count // self._columns), 1)
        # The words of a seed sequence are the same in every version of numpy (NEP 19).
        self._keys = np.random.SeedSequence(key).generate_state(_ROUNDS, np.uint64)

    def __call__(self, places: Int64) -> Int64:
        """The numbers at these places, each from 0 to count (exclusive)."""
        found = self._once(places.astype(np.uint64))
        outside = np.flatnonzero(found >= np.uint64(self.count))
        while len(outside):
            found[outside] = self._once(found[outside])
            outside = outside[found[outside] >= np.uint64(self.count)]
        return found.astype(np.int64)

    def _once(self, values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        columns, rows = np.uint64(self._columns), np.uint64(self._rows)
        row, column = values // columns, values % columns
        for number, key in enumerate(self._keys):
            if number % 2:
                row = _added(row, column, key, rows)
            else:
                column = _added(column, row, key, columns)
        return row * columns + column


def _added(
    value: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64], key: np.uint64, count: np.uint64
) -> npt.NDArray[np.uint64]:
    """A value below count, moved around by what a mix of the other one and the key says."""
    mixed = other ^ key  # the finalizer of SplitMix64 (Steele, Lea and Flood, 2014)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    moved = value + (((mixed & _LOW) * count) >> np.uint64(32))
    return np.where(moved < count, moved, moved - count)
