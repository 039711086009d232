"""Where the samples of a moov are, whose file was put together in another way than it says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from fragdex.fragments.table import Bool, Int64, SampleTable
from fragdex.repairing.syntax import Found, Syntax, Window

IN_A_ROW: Final = 8
"""Samples of a track that are found where the tables have them, but for a shift."""
SEARCHED: Final = 1 << 22
"""Bytes of media data in which the first samples are looked for."""


class Moves:
    """By how many bytes samples lie after what the tables say: parts of a file differ.

    Args:
        shifts: the distances, the most likely one first.
    """

    def __init__(self, shifts: Sequence[int]) -> None:
        self.shifts = list(shifts)
        self._places: list[Int64] = []
        self._used: list[Int64] = []
        self._sorted: tuple[Int64, Int64] | None = None

    def note(self, offset: Int64, used: Int64) -> None:
        """Where the tables have samples that were looked at, and which shift is right; -1: none."""
        self._places.append(offset)
        self._used.append(used)
        self._sorted = None

    def find(
        self, syntax: Syntax, window: Window, at: int, size: int, last: int
    ) -> tuple[int, Found] | None:
        """A sample where the tables say, moved by one of the shifts; and which one.

        Args:
            last: the shift of the sample before it, which is tried first.
        """
        sample = sample_at(syntax, window, at + self.shifts[last], size)
        if sample is not None:
            return last, sample
        for number, shift in enumerate(self.shifts):
            if number != last:
                sample = sample_at(syntax, window, at + shift, size)
                if sample is not None:
                    return number, sample
        return None

    def around(self, offset: Int64) -> tuple[Int64, Bool]:
        """The shift of samples that do not say where they end, and whether it is known.

        It is that of the samples before and after them. Where all lies where the tables say, one
        of these two is enough: the other one may be damaged.
        """
        places, used = self._noted()
        if not len(places):
            return np.full(len(offset), self.shifts[0], np.int64), np.ones(len(offset), np.bool_)
        after = np.searchsorted(places, offset)
        last = len(places) - 1
        low = used[np.clip(after - 1, 0, last)]
        high = used[np.clip(after, 0, last)]
        chosen = np.maximum(low, high)
        known = (chosen >= 0) & ((low == high) | (self.shifts == [0]))
        return np.array(self.shifts, np.int64)[np.maximum(chosen, 0)], known

    def _noted(self) -> tuple[Int64, Int64]:
        if self._sorted is None:
            none = np.zeros(0, np.int64)
            places, used = (np.concatenate([none, *a]) for a in (self._places, self._used))
            order = np.argsort(places, kind="stable")
            self._sorted = places[order], used[order]
        return self._sorted


def sample_at(syntax: Syntax, window: Window, at: int, size: int) -> Found | None:
    """The sample of this size that begins here; None: none does."""
    if at < 0 or size <= 0 or at + size > window.stop:
        return None
    sample = syntax.find(window, at, at + size)
    return sample if sample is not None and sample.stop == at + size else None


def is_sample(syntax: Syntax, window: Window, at: int, size: int) -> bool:
    """Whether a sample of this size begins here."""
    return sample_at(syntax, window, at, size) is not None


def shift_to(samples: SampleTable, syntax: Syntax, window: Window, start: int) -> int | None:
    """By how much samples lie after what the tables say; None: they are not found.

    Args:
        samples: the first of which are looked for, as many as are in a row.
        start: of media data, in which they are looked for.
    """
    first = samples.rows(slice(0, IN_A_ROW))
    if len(first) < 2:
        return None
    places, sizes = (first.offset - first.offset[0]).tolist(), first.size.tolist()
    data = window.take(start, SEARCHED)
    for place in syntax.starts(data):
        at = start + place
        if all(
            is_sample(syntax, window, at + step, size)
            for step, size in zip(places, sizes, strict=True)
        ):
            return at - int(first.offset[0])
        if syntax.spent > SEARCHED:
            break
    return None


def first_elsewhere(
    samples: SampleTable, syntax: Syntax, window: Window, shifts: Sequence[int], tried: int
) -> int | None:
    """The first of samples that lie at none of these distances; None: there are not two of them.

    Args:
        tried: how many of them are looked at; between two of these it is searched by halves.
    """

    def is_elsewhere(row: int) -> bool:
        at, size = int(samples.offset[row]), int(samples.size[row])
        return not any(is_sample(syntax, window, at + shift, size) for shift in shifts)

    rows = list(range(0, len(samples), max(1, len(samples) // tried)))
    elsewhere = [is_elsewhere(row) for row in rows]
    pairs: Iterable[int] = (n for n in range(1, len(rows)) if elsewhere[n - 1] and elsewhere[n])
    number = next(iter(pairs), None)
    if number is None:
        return None
    low, high = (rows[number - 2] if number > 1 else -1), rows[number - 1]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_elsewhere(middle) else (middle, high)
    return high
