"""The order of windows in an epoch: runs of neighbours, shuffled over all videos of a set.

An order is computed piece by piece, and not stored. What grows with the set is a byte for each run.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import numpy.typing as npt

from fragdex.fragments.table import Int64

if TYPE_CHECKING:
    from fragdex.data.windows import Windows

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
        numbers = self._once(places.astype(np.uint64))
        outside = np.flatnonzero(numbers >= np.uint64(self.count))
        while len(outside):
            numbers[outside] = self._once(numbers[outside])
            outside = outside[numbers[outside] >= np.uint64(self.count)]
        return numbers.astype(np.int64)

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


TOGETHER: Final = 4
_PIECE: Final = 1 << 12
"""Runs that are computed at once."""
_ROW: Final = 32
"""Runs after which the number of the next window is stored."""


Lengths = npt.NDArray[np.unsignedinteger[Any]]
"""How many windows runs have, in as few bytes as the longest run may need."""


class Runs:
    """Runs of neighbouring windows by their lengths."""

    def __init__(self, lengths: Iterator[Lengths]) -> None:
        data, kind = bytearray(), np.dtype(np.uint8)
        for piece in lengths:
            kind = piece.dtype
            data += piece.tobytes()
        self._count = len(data) // kind.itemsize
        data += bytes(-self._count % _ROW * kind.itemsize)
        self._rows: Lengths = np.frombuffer(data, kind).reshape(-1, _ROW)
        sums = self._rows.sum(axis=1, dtype=np.int64)
        self._before = np.cumsum(sums) - sums

    def __len__(self) -> int:
        return self._count

    def lengths(self, runs: Int64) -> Int64:
        """How many windows each of these runs has."""
        return self._rows.reshape(-1)[runs].astype(np.int64)

    def windows(self, runs: Int64) -> Int64:
        """The windows of these runs, one run after the other."""
        row, place = np.divmod(runs, _ROW)
        earlier = np.arange(_ROW) < place[:, None]
        first = self._before[row] + (self._rows[row] * earlier).sum(axis=1, dtype=np.int64)
        lengths = self.lengths(runs)
        ends = np.cumsum(lengths)
        return np.repeat(first - (ends - lengths), lengths) + np.arange(
            ends[-1] if len(ends) else 0
        )


class Singles:
    """As `Runs`, each of one window."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __len__(self) -> int:
        return self._count

    def lengths(self, runs: Int64) -> Int64:
        """1 for each run: none has neighbours to keep together."""
        return np.ones(len(runs), np.int64)

    def windows(self, runs: Int64) -> Int64:
        """The numbers of the runs."""
        return runs


SOON: Final = 64
"""Windows that are looked at ahead, for what shares groups of pictures with the current ones."""


def with_soon(shares: Iterator[list[int]]) -> Iterator[tuple[list[int], list[int]]]:
    """The windows of one process with those that follow them in it, up to 64."""
    coming: deque[list[int]] = deque()
    known = 0
    for share in shares:
        coming.append(share)
        known += len(share)
        while known - len(coming[0]) >= SOON:
            yield _first_of(coming)
            known -= len(coming.popleft())
    while coming:
        yield _first_of(coming)
        coming.popleft()


def _first_of(coming: deque[list[int]]) -> tuple[list[int], list[int]]:
    return coming[0], list(chain.from_iterable(islice(coming, 1, None)))[:SOON]


def parts(pieces: Iterator[Int64], size: int) -> Iterator[Int64]:
    """The numbers of arrays, so many at a time; the last ones may be fewer."""
    left = np.zeros(0, np.int64)
    for piece in pieces:
        left = np.concatenate([left, piece])
        whole = len(left) - len(left) % size
        yield from (left[first : first + size] for first in range(0, whole, size))
        left = left[whole:]
    if len(left):
        yield left


class WindowSampler:
    """The numbers of windows in a shuffled order, as a sampler of torch's DataLoader.

    Up to `together` neighbouring windows that begin in one group of pictures stay in sequence, so
    that the frames before them are decoded once for all; these runs are shuffled over all videos.
    The order depends only on the seed, the epoch and the windows, on every machine. Each rank gets
    its own part of the same length.

    The order is computed while it is used: in memory are about 1.25 bytes for each run, and
    nothing with `together=1` or without shuffling.

    Args:
        windows: the data set.
        seed: 0 or more.
        shuffle: False: in the order of the set.
        together: windows of a group that are kept together; 1: every window for itself. A batch
            size that is a multiple keeps them in one batch.
        rank, ranks: which part, of how many.
        uneven: what is done with windows that do not divide among the ranks: `drop` the last ones
            of the order, or `repeat` its first ones.

    Raises:
        ValueError: an invalid number or word.

    A loop over it goes through one epoch; the next loop is the next epoch, unless `set_epoch`
    says which one.

    >>> import os, tempfile
    >>> from fragdex.data import VideoSet, Windows, write_set
    >>> path = os.path.join(tempfile.mkdtemp(), "set.parquet")
    >>> _ = write_set("fixtures/open-gop.mp4", path)
    >>> sampler = WindowSampler(Windows(VideoSet(path), frames=4), seed=1)
    >>> list(sampler)
    [0, 1, 2, 9, 10, 11, 6, 7, 8, 3, 4, 5]
    """

    def __init__(
        self,
        windows: Windows,
        *,
        seed: int = 0,
        shuffle: bool = True,
        together: int = TOGETHER,
        rank: int = 0,
        ranks: int = 1,
        uneven: Literal["drop", "repeat"] = "drop",
    ) -> None:
        if seed < 0 or together < 1:
            raise ValueError("seed is 0 or more, together 1 or more")
        if not 0 <= rank < ranks:
            raise ValueError(f"rank is 0 to {ranks - 1}, not {rank}")
        if uneven not in ("drop", "repeat"):
            raise ValueError(f"uneven is drop or repeat, not {uneven!r}")
        self.together = together
        self._windows, self._seed, self._shuffle = windows, seed, shuffle
        self._rank, self._ranks, self._uneven = rank, ranks, uneven
        self._epoch = self._begun = self._start = self._taken = 0
        self._runs: Runs | Singles | None = None

    @property
    def epoch(self) -> int:
        """The epoch of the current loop, or of the next one."""
        return self._epoch

    def set_epoch(self, epoch: int) -> None:
        """Begin the next loop at the start of this epoch."""
        if epoch != self._epoch:
            self._epoch = self._begun = epoch
            self._start = self._taken = 0

    def __len__(self) -> int:
        """Windows of an epoch of this rank."""
        whole, rest = divmod(len(self._windows), self._ranks)
        return whole + (rest > 0 and self._uneven == "repeat")

    def order(self, start: int = 0, stop: int | None = None) -> Int64:
        """The windows of this rank in this epoch, from a place to another (exclusive)."""
        pieces = list(self.pieces(start, stop))
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int64)

    def pieces(self, start: int = 0, stop: int | None = None) -> Iterator[Int64]:
        """The same as arrays of some thousands, so that a long order is never whole in memory."""
        stop = len(self) if stop is None else min(stop, len(self))
        whole, epoch = len(self._windows), self._epoch
        place, end = self._rank * len(self) + start, self._rank * len(self) + stop
        while place < end:  # at its end the order begins again: the parts of ranks may repeat it
            for piece in self._from(place % whole, epoch):
                yield piece[: end - place]
                place += len(piece)
                if place >= end:
                    return

    def seed_of(self, window: int) -> int:
        """A seed for what is random about a window in this epoch: the same on every machine.

        Returns: 0 or more, below 2**63.
        """
        words = np.random.SeedSequence((self._seed, self._epoch, window))
        return int(words.generate_state(1, np.uint64)[0] >> np.uint64(1))

    def _from(self, start: int, epoch: int) -> Iterator[Int64]:
        """The windows of an epoch, over all ranks, from a place on."""
        runs = self._in_runs()
        order = Permutation(len(runs), self._seed, epoch) if self._shuffle else None
        for first in range(0, len(runs), _PIECE):
            chosen = np.arange(first, min(first + _PIECE, len(runs)))
            chosen = chosen if order is None else order(chosen)
            count = int(runs.lengths(chosen).sum())
            if start < count:
                yield runs.windows(chosen)[start:]
            start = max(start - count, 0)

    def _in_runs(self) -> Runs | Singles:
        if self._runs is None:
            alone = not self._shuffle or self.together == 1
            windows = self._windows
            self._runs = Singles(len(windows)) if alone else Runs(windows.runs(self.together))
        return self._runs

    def __iter__(self) -> Iterator[int]:
        epoch = self._begun = self._epoch
        start, self._start = self._start, 0
        self._taken = start
        for piece in self.pieces(start):
            for number in piece.tolist():
                self._taken += 1
                yield number
        if self._epoch == epoch:
            self._epoch, self._taken = epoch + 1, 0

    def state_dict(self, used: int | None = None) -> dict[str, Any]:
        """Where the loop is.

        Args:
            used: windows of this epoch that were used, counted from its start; None: those that
                were taken from here. A loader with workers takes more ahead than it hands out:
                say how many you used.
        """
        if used is None:
            epoch, position = self._epoch, self._taken
        elif used >= len(self):
            epoch, position = self._begun + 1, 0
        else:
            epoch, position = self._begun, used
        return {"epoch": epoch, "taken": position, "of": self._of()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume where another one was.

        Raises:
            ValueError: its order was another one: of other windows, seed, ranks or options.
        """
        if dict(state["of"]) != self._of():
            differ = [f"{k}: {v!r} there, {self._of().get(k)!r} here"
                      for k, v in dict(state["of"]).items() if self._of().get(k) != v]  # fmt: skip
            raise ValueError("the state is of another order; " + "; ".join(differ))
        self._epoch = self._begun = int(state["epoch"])
        self._start = self._taken = int(state["taken"])

    def _of(self) -> dict[str, Any]:
        return {
            "windows": len(self._windows), "seed": self._seed, "shuffle": self._shuffle,
            "together": self.together, "rank": self._rank, "ranks": self._ranks,
            "uneven": self._uneven,
        }  # fmt: skip
