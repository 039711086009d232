"""The tables of an index: their columns, dtypes, units and meaning stand here and nowhere else.

Columns are numpy arrays of equal length, in decode order of one track. Bytes count from the start
of the file; `start` is inclusive and `stop` exclusive. Times are ticks of the track's timescale on
the media timeline (before the edit list). What an index cannot tell is `NULL`.

The binary index (docs/index-format.md), Arrow and the CSV forms are these declarations after a
header: to add a column, add a line here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from enum import IntFlag
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from fragdex.fragments import FAR, FARTHEST, NULL
from fragdex.record import record

__all__ = [
    "FAR",
    "FARTHEST",
    "NULL",
    "Column",
    "FragmentFlags",
    "FragmentTable",
    "Growing",
    "SampleTable",
    "SyncTable",
    "Table",
]

Int64: TypeAlias = npt.NDArray[np.int64]
UInt32: TypeAlias = npt.NDArray[np.uint32]
Bool: TypeAlias = npt.NDArray[np.bool_]


class FragmentFlags(IntFlag):
    """What is special about one row of a fragment table.

    >>> FragmentFlags(3)
    <FragmentFlags.VIRTUAL|REPAIRED: 3>
    """

    VIRTUAL = 1
    """A run of samples of a progressive file (moov tables), not a moof."""
    REPAIRED = 2
    """The declared base offset led outside the media data; moof-relative positions were taken."""
    NO_TFDT = 4
    """No tfdt: `dts` continues from the fragment before (ISO/IEC 14496-12, 8.8.12)."""
    OUTSIDE = 8
    """Some of its samples lie outside every mdat, or past the end of the file."""
    TIMES_GUESSED = 16
    """No default duration was known: times inside this fragment are not to be trusted."""
    APPROXIMATE = 32
    """Taken from a sidx or mfra; the moof itself was not read."""
    DECLARED_BASE = 64
    """A tfhd declares base_data_offset, which MSE players refuse (ISO/IEC 14496-12, 8.8.7)."""
    BETWEEN = 128
    """Boxes of content stand before its moof, after the moof before: events, producer times. On the
    last row also what stands after it, and on that of a progressive file what stands anywhere."""
    BESIDE = 256
    """Moofs say more of samples than where they lie and when: groups, sub-samples. Set on all rows
    of a file if it may be so on one."""


@record(frozen=True, slots=True)
class Column:
    """One column: its name, numpy dtype, unit, whether it may hold NULL, and meaning.

    Attributes:
        stored: its name in files (`.fidx`, Arrow), which may be older.
    """

    name: str
    dtype: str
    unit: str
    nullable: bool
    meaning: str
    stored: str


def column(dtype: str, unit: str, meaning: str, *, nullable: bool = False, stored: str = "") -> Any:
    """Declare a column of a table: dtype, unit, meaning, whether it may hold NULL, its old name."""
    about = {"dtype": dtype, "unit": unit, "nullable": nullable, "meaning": meaning}
    return field(metadata={"column": about | ({"stored": stored} if stored else {})})


_SCHEMAS: dict[str, tuple[Column, ...]] = {}
_EMPTY: dict[type[Table], Table] = {}
"""Nobody can write to a table without rows, so that all may have the same."""


@record(frozen=True, slots=True, eq=False, repr=False)
class Table:
    """Columns of equal length; the base of the three tables below.

    >>> FragmentTable.empty().columns()["offset"].dtype
    dtype('int64')
    """

    SCHEMA_NAME: ClassVar[str] = "table"

    @classmethod
    def schema(cls) -> tuple[Column, ...]:
        """The columns in order.

        >>> [column.name for column in SampleTable.schema()]
        ['offset', 'size', 'dts', 'cts', 'duration', 'sync']
        """
        known = _SCHEMAS.get(cls.SCHEMA_NAME)
        if known is None:
            known = tuple(
                Column(**{"name": c.name, "stored": c.name} | c.metadata["column"])
                for c in fields(cls)
            )
            _SCHEMAS[cls.SCHEMA_NAME] = known
        return known

    @classmethod
    def empty(cls) -> Self:
        """A table without rows.

        >>> len(SampleTable.empty())
        0
        """
        known = _EMPTY.get(cls)
        if known is None:
            columns = {column.name: np.zeros(0, column.dtype) for column in cls.schema()}
            known = _EMPTY[cls] = cls(**columns)
        return known  # type: ignore[return-value]

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> Self:
        """A table of the given columns; each is brought to its declared dtype.

        Raises:
            ValueError: a column is missing, or their lengths differ.
        """
        arrays = {c.name: np.asarray(columns[c.name], c.dtype) for c in cls.schema()}
        if len({len(a) for a in arrays.values()}) > 1:
            raise ValueError(
                f"columns of different lengths: { {k: len(v) for k, v in arrays.items()} }"
            )
        return cls(**arrays)

    @classmethod
    def concat(cls, tables: Sequence[Self]) -> Self:
        """The rows of several tables, one after the other.

        >>> len(SampleTable.concat([]))
        0
        """
        if not tables:
            return cls.empty()
        if len(tables) == 1:
            return tables[0]
        return cls(
            **{
                c.name: np.concatenate([getattr(table, c.name) for table in tables])
                for c in cls.schema()
            }
        )

    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """Name → array, in schema order; the arrays themselves, not copies."""
        return {column.name: getattr(self, column.name) for column in self.schema()}

    def rows(self, which: Any) -> Self:
        """The rows that a slice, a mask or an array of row numbers names."""
        columns = self.columns().items()
        if isinstance(which, slice):
            return type(self)(**{name: array[which] for name, array in columns})
        # Faster than indexing, and a mask is turned into numbers once.
        numbers = np.asarray(which)
        if numbers.dtype == np.bool_:
            numbers = np.flatnonzero(numbers)
        return type(self)(**{name: array.take(numbers) for name, array in columns})

    def __len__(self) -> int:
        return len(getattr(self, self.schema()[0].name))

    def __arrow_c_schema__(self) -> object:
        """The columns as an Arrow schema capsule (Arrow PyCapsule interface)."""
        from fragdex.fragments.arrow_capsule import schema_capsule

        return schema_capsule(self.schema())

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        """Schema and columns as Arrow capsules; values are not copied, NULL becomes null."""
        from fragdex.fragments.arrow_capsule import array_capsules

        return array_capsules(self.schema(), list(self.columns().values()), null=NULL)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The table as an Arrow stream capsule: what pandas, polars and duckdb ask for."""
        from fragdex.fragments.arrow_capsule import stream_capsule

        return stream_capsule(self.schema(), list(self.columns().values()), null=NULL)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        theirs = other.columns()
        return all(np.array_equal(array, theirs[name]) for name, array in self.columns().items())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self):,} rows × {len(self.schema())} columns>"

    @property
    def nbytes(self) -> int:
        """Bytes that the columns take in memory."""
        return sum(array.nbytes for array in self.columns().values())


T = TypeVar("T", bound=Table)
MOST_GROWTH = 16
"""How many times what is needed is reserved at most where a table grows."""


SPARE = 1024
"""Rows that are reserved besides, and kept though nothing was written to them."""


class Growing(Generic[T]):
    """A table that grows part by part; its parts are copied at once and need not stay."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._only: T | None = None
        self._numbers = [column.name for column in kind.schema() if column.dtype == "i8"]
        self._cells = np.empty((len(self._numbers), 0), np.int64)
        self._others: dict[str, npt.NDArray[Any]] = {
            column.name: np.zeros(0, column.dtype)
            for column in kind.schema()
            if column.dtype != "i8"
        }
        self._rows = 0

    def add(self, part: T, done: float | None = 0.5) -> None:
        """Put rows after those that are there.

        Args:
            part: the rows.
            done: the share of all rows there then are; None: no more come. It is a guess that
                spares copies. Memory that is reserved and not written to costs nothing.
        """
        if not len(part):
            return
        if not self._rows:
            self._only, self._rows = part, len(part)
            return
        cells, start = self.reserve(len(part), done)
        self._write(part, cells, start)
        self._rows += len(part)

    def reserve(self, rows: int, done: float | None = 0.5) -> tuple[Int64, int]:
        """Room for more rows, for who writes them there and lets the table `grow` by them.

        Args:
            rows: how many.
            done: as in `add`.

        Returns: the columns of int64 as rows of one array, and the first place after what is
        there; the other columns are 0.
        """
        stop = self._rows + rows
        if stop > self._cells.shape[1] or self._only is not None:
            room = stop
            if done is not None:
                room = int(stop * min(MOST_GROWTH, 1.05 / max(done, 0.01))) + SPARE
            cells, others = self._cells, self._others
            self._cells = np.empty((len(cells), room), np.int64)
            self._others = {name: np.zeros(room, old.dtype) for name, old in others.items()}
            if self._only is not None:
                self._write(self._only, self._cells, 0)
                self._only = None
            else:
                self._cells[:, : self._rows] = cells[:, : self._rows]
                for name, old in others.items():
                    self._others[name][: self._rows] = old[: self._rows]
        return self._cells, self._rows

    def _write(self, part: T, cells: Int64, start: int) -> None:
        stop = start + len(part)
        for row, name in enumerate(self._numbers):
            cells[row, start:stop] = getattr(part, name)
        for name, whole in self._others.items():
            whole[start:stop] = getattr(part, name)

    def grow(self, rows: int) -> None:
        """Count rows in that were written where `reserve` said."""
        self._rows += rows

    def last(self, name: str) -> Any:
        """The value of a column in the last row; there must be one."""
        if self._only is not None:
            return getattr(self._only, name)[-1]
        if name in self._others:
            return self._others[name][self._rows - 1]
        return self._cells[self._numbers.index(name), self._rows - 1]

    def taken(self) -> T:
        """All rows as a table; the columns are given away, nothing can be added any more."""
        if self._only is not None:
            return self._only
        rows, cells, others = self._rows, self._cells, self._others
        if cells.shape[1] > rows + rows // 8 + SPARE:
            cells = cells[:, :rows].copy()
            others = {name: whole[:rows].copy() for name, whole in others.items()}
        columns = dict(zip(self._numbers, cells, strict=True)) | others
        return self._kind(**{name: column[:rows] for name, column in columns.items()})


@record(frozen=True, slots=True, eq=False, repr=False)
class FragmentTable(Table):
    """One row per fragment of one track, in file order.

    >>> len(FragmentTable.empty())
    0
    """

    SCHEMA_NAME: ClassVar[str] = "fragments"

    offset: Int64 = column(
        "i8", "byte", "first styp, sidx, emsg or prft before the moof, or the moof"
    )
    size: Int64 = column("i8", "byte", "from offset to the end of the last mdat with its samples")
    moof_offset: Int64 = column(
        "i8", "byte", "the moof; NULL for a virtual fragment", nullable=True
    )
    data_start: Int64 = column(
        "i8",
        "byte",
        "first byte of this track's samples; NULL where they have no bytes",
        nullable=True,
    )
    data_stop: Int64 = column(
        "i8",
        "byte",
        "one past the last byte of this track's samples; NULL where they have no bytes",
        nullable=True,
    )
    dts: Int64 = column("i8", "tick", "decode time of the first sample", nullable=True)
    duration: Int64 = column("i8", "tick", "sum of the sample durations", nullable=True)
    cts_min: Int64 = column("i8", "tick", "least composition time", nullable=True)
    cts_end: Int64 = column("i8", "tick", "greatest composition time + duration", nullable=True)
    sample_start: Int64 = column(
        "i8", "sample", "samples of the track before this row", nullable=True
    )
    sample_count: Int64 = column("i8", "sample", "samples in this row", nullable=True)
    first_sync: Int64 = column(
        "i8",
        "sample",
        "first sync sample, counted in the row; -1: none",
        nullable=True,
        stored="sync",
    )
    flags: UInt32 = column("u4", "bits", "FragmentFlags")


@record(frozen=True, slots=True, eq=False, repr=False)
class SampleTable(Table):
    """One row per sample of one track, in decode order.

    >>> SampleTable.empty().sync.dtype
    dtype('bool')
    """

    SCHEMA_NAME: ClassVar[str] = "samples"

    offset: Int64 = column("i8", "byte", "first byte of the sample")
    size: Int64 = column("i8", "byte", "bytes of the sample")
    dts: Int64 = column("i8", "tick", "decode time")
    cts: Int64 = column("i8", "tick", "composition time: dts + composition offset")
    duration: Int64 = column("i8", "tick", "until the next sample's decode time")
    sync: Bool = column("?", "", "sample_is_non_sync_sample is 0")


@record(frozen=True, slots=True, eq=False, repr=False)
class SyncTable(Table):
    """The sync samples of one track as runs that are evenly spaced in time and number.

    Row r stands for `count` sync samples; the k-th (from 0) is sample `sample + k × sample_step`
    with times `cts + k × step` and `dts + k × step`. Runs are sorted by cts and do not overlap.
    A track of sound is one run; a track of pictures has one a group of pictures, or fewer.

    >>> SyncTable.empty().count.dtype
    dtype('int64')
    """

    SCHEMA_NAME: ClassVar[str] = "sync"

    cts: Int64 = column("i8", "tick", "composition time of the first")
    dts: Int64 = column("i8", "tick", "decode time of the first", nullable=True)
    step: Int64 = column("i8", "tick", "time from one to the next")
    count: Int64 = column("i8", "sample", "sync samples in the run")
    sample: Int64 = column("i8", "sample", "number in the track of the first", nullable=True)
    sample_step: Int64 = column("i8", "sample", "samples from one to the next")
    fragment: Int64 = column("i8", "row", "row of the fragment table that holds the first")
