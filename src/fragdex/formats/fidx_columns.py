"""The columns of the binary index: where they lie, how they are checked, which tables they make.

Each column starts at a multiple of 64 bytes and is followed by zero bytes to the next multiple.
The JSON part lists `[name, dtype, offset, crc32]` of each, with offsets from the first column.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fragdex.formats.records import integer, item, refuse
from fragdex.fragments.table import FragmentTable, SampleTable, SyncTable, Table
from fragdex.seeking.model import SampleGroup

__all__ = ["ALIGNMENT", "ColumnReader", "ColumnWriter", "GroupTable", "PlacedColumn", "aligned"]

ALIGNMENT = 64
"""Bytes: a cache line, and what Arrow recommends."""

AnyTable = TypeVar("AnyTable", bound=Table)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class GroupTable(Table):
    """The sample groups of one track, one row a run of samples (ISO/IEC 14496-12, 8.9).

    >>> GroupTable.of_groups((SampleGroup("roll", 0, 10, -1),)).groups()
    (SampleGroup(grouping_type='roll', sample_start=0, sample_count=10, value=-1),)
    """

    SCHEMA_NAME = "groups"

    grouping_type: npt.NDArray[np.uint32] = field(
        metadata={"column": ("u4", "code", False, "four-letter code, first letter highest")}
    )
    sample_start: npt.NDArray[np.int64] = field(
        metadata={"column": ("i8", "sample", False, "number in the track of the first sample")}
    )
    sample_count: npt.NDArray[np.int64] = field(
        metadata={"column": ("i8", "sample", False, "samples in the run")}
    )
    value: npt.NDArray[np.int64] = field(
        metadata={"column": ("i8", "sample", False, "roll_distance or num_leading_samples")}
    )

    @classmethod
    def of_groups(cls, groups: Iterable[SampleGroup]) -> GroupTable:
        """The table of these groups."""
        rows = [
            (
                int.from_bytes(group.grouping_type.encode("latin-1"), "big"),
                group.sample_start,
                group.sample_count,
                group.value,
            )
            for group in groups
        ]
        columns = zip(*rows, strict=True) if rows else [()] * 4
        return cls.of(dict(zip((c.name for c in cls.schema()), columns, strict=True)))

    def groups(self) -> tuple[SampleGroup, ...]:
        """The groups of this table."""
        codes = [code.to_bytes(4, "big").decode("latin-1") for code in self.grouping_type.tolist()]
        numbers = (self.sample_start.tolist(), self.sample_count.tolist(), self.value.tolist())
        return tuple(map(SampleGroup, codes, *numbers))


def aligned(position: int) -> int:
    """The next multiple of 64 at or after a position.

    >>> aligned(65)
    128
    """
    return -(-position // ALIGNMENT) * ALIGNMENT


class ColumnWriter:
    """Gives columns their places, and hands out their bytes afterwards.

    >>> writer = ColumnWriter()
    >>> writer.add(SampleTable.empty())["rows"], writer.size
    (0, 0)
    """

    def __init__(self) -> None:
        self._arrays: list[npt.NDArray[Any]] = []
        self.size = 0

    def add(self, table: Table) -> dict[str, Any]:
        """Place the columns of a table; give what the JSON part says of it."""
        places = []
        for declared in table.schema():
            dtype = np.dtype(declared.dtype).newbyteorder("<")
            array = np.ascontiguousarray(getattr(table, declared.name), dtype)
            places.append([declared.name, dtype.str, self.size, zlib.crc32(array.data)])
            self._arrays.append(array)
            self.size += aligned(array.nbytes)
        return {"rows": len(table), "columns": places}

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The bytes of all columns with what fills up between them; no column is copied."""
        for array in self._arrays:
            if array.nbytes:
                yield array.data.cast("B")
                yield bytes(-array.nbytes % ALIGNMENT)


class PlacedColumn(NamedTuple):
    """One column where it was found.

    Attributes:
        pointer: JSON pointer of its entry.
        offset: from the first column, in bytes.
        checksum: CRC-32 that its entry claims.
    """

    pointer: str
    array: npt.NDArray[Any]
    offset: int
    checksum: int


class ColumnReader:
    """Takes tables out of the column part of a file, without copying or reading them.

    Opening an index is mostly this, once a column: what only errors tell is made for errors alone.

    >>> writer = ColumnWriter()
    >>> plain = writer.add(SampleTable.empty())
    >>> len(ColumnReader(memoryview(b"")).table(SampleTable, plain, "/samples"))
    0
    """

    def __init__(self, space: memoryview) -> None:
        self._space = space
        self._whole: dict[str, npt.NDArray[Any]] = {}
        self._read: list[tuple[type[Table], list[Any], int, str]] = []

    @property
    def placed(self) -> list[PlacedColumn]:
        """Every column of the tables read so far."""
        found = []
        for kind, entries, rows, pointer in self._read:
            wanted = _dtypes(kind)
            for number, (name, _, offset, checksum) in enumerate(entries):
                if name in wanted:
                    array = self._column(int(offset), rows, *wanted[name])
                    place = f"{pointer}/columns/{number}"
                    found.append(PlacedColumn(place, array, int(offset), int(checksum)))
        return found

    def table(self, kind: type[AnyTable], plain: Any, pointer: str) -> AnyTable:
        """The table of a kind as its entry in the JSON part describes it.

        Columns that the kind does not have are passed over: a later minor version may add some.

        Raises:
            DamagedIndex: a column is missing, of another dtype, or leads outside the file.
        """
        rows = integer(item(plain, "rows", pointer), f"{pointer}/rows", 0)
        entries = item(plain, "columns", pointer)
        if not isinstance(entries, list):
            raise refuse(f"{pointer}/columns", "a list", entries)
        wanted = _dtypes(kind)
        size = len(self._space)
        found = {}
        for number, entry in enumerate(entries):
            if type(entry) is not list or len(entry) != 4 or type(entry[0]) is not str:
                raise refuse(f"{pointer}/columns/{number}", "[name, dtype, offset, crc32]", entry)
            name, said, offset, checksum = entry
            if name not in wanted:
                continue
            dtype, stored = wanted[name]
            last = size - rows * dtype.itemsize
            if (
                said != stored
                or type(offset) is not int
                or not 0 <= offset <= last
                or offset % ALIGNMENT
                or type(checksum) is not int
                or not 0 <= checksum < 2**32
            ):
                offset = _checked(entry, stored, rows, last, f"{pointer}/columns/{number}")
            found[name] = self._column(offset, rows, dtype, stored)
        for name in wanted:
            if name not in found:
                raise refuse(f"{pointer}/columns", f"a column {name}", "none")
        self._read.append((kind, entries, rows, pointer))
        return kind(**found)

    def _column(
        self, offset: int, rows: int, dtype: np.dtype[Any], stored: str
    ) -> npt.NDArray[Any]:
        whole = self._whole.get(stored)
        if whole is None:
            whole = self._whole[stored] = self._as(dtype, stored)
        start = offset // dtype.itemsize
        array = whole[start : start + rows]
        if whole.dtype != dtype:
            array = array.astype(dtype)
            array.setflags(write=False)
        return array

    def _as(self, dtype: np.dtype[Any], stored: str) -> npt.NDArray[Any]:
        """All columns as if they were of one dtype: a slice costs less than an array of its own."""
        # In native order by name: memoryviews of such arrays can be indexed, others cannot.
        read = dtype if sys.byteorder == "little" else np.dtype(stored)
        rows = len(self._space) // read.itemsize
        return np.frombuffer(self._space if rows else _NOTHING, read, rows)


def _checked(entry: list[Any], stored: str, rows: int, last: int, pointer: str) -> int:
    """The offset of an entry that is not as we write it; `last`: the greatest one."""
    _, said, offset, checksum = entry
    if said != stored:
        raise refuse(f"{pointer}/1", f"dtype {stored}", said)
    if last < 0:
        raise refuse(pointer, f"{rows} rows inside the file", "fewer bytes than they take")
    offset = integer(offset, f"{pointer}/2", 0, last)
    if offset % ALIGNMENT:
        raise refuse(f"{pointer}/2", f"a multiple of {ALIGNMENT}", offset)
    integer(checksum, f"{pointer}/3", 0, 2**32 - 1)
    return offset


def _dtypes(kind: type[Table]) -> dict[str, tuple[np.dtype[Any], str]]:
    """Of each column the dtype it is shown in, and the name of the one it is stored in."""
    if kind not in _DTYPES:
        _DTYPES[kind] = {
            c.name: (np.dtype(c.dtype), np.dtype(c.dtype).newbyteorder("<").str)
            for c in kind.schema()
        }
    return _DTYPES[kind]


_DTYPES: dict[type[Table], dict[str, tuple[np.dtype[Any], str]]] = {}
# frombuffer refuses an empty buffer
_NOTHING = bytes(8)

TABLES: dict[str, type[Table]] = {
    kind.SCHEMA_NAME: kind for kind in (FragmentTable, SyncTable, SampleTable, GroupTable)
}
"""Every table that stands in a binary index, by the name that the JSON part gives it."""
