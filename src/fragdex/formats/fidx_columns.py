"""The columns of a binary index, after its head.

Each column starts at a multiple of 64 bytes and is followed by zero bytes to the next multiple. The
JSON part lists `[name, dtype, offset, crc32]` of each, with offsets from the first column.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Iterable, Iterator
from pickle import PickleBuffer
from typing import Any, NamedTuple, Self, SupportsIndex, TypeVar

import numpy as np
import numpy.typing as npt

from fragdex.formats.fidx_head import ALIGNMENT, aligned
from fragdex.formats.records import integer, item, refuse
from fragdex.fragments.pieces import PieceTable
from fragdex.fragments.table import FragmentTable, SampleTable, SyncTable, Table, column
from fragdex.record import record
from fragdex.seeking.model import SampleGroup

AnyTable = TypeVar("AnyTable", bound=Table)


@record(frozen=True, slots=True, eq=False, repr=False)
class GroupTable(Table):
    """The sample groups of one track, one row a run of samples (ISO/IEC 14496-12, 8.9)."""

    SCHEMA_NAME = "groups"

    grouping_type: npt.NDArray[np.uint32] = column(
        "u4", "code", "four-letter code, first letter highest"
    )
    sample_start: npt.NDArray[np.int64] = column(
        "i8", "sample", "number in the track of the first sample"
    )
    sample_count: npt.NDArray[np.int64] = column("i8", "sample", "samples in the run")
    value: npt.NDArray[np.int64] = column(
        "i8", "sample", "roll_distance or num_leading_samples; of `stsd` sample_description_index"
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


class ColumnWriter:
    """Gives columns their places, and hands out their bytes afterwards."""

    def __init__(self) -> None:
        self._arrays: list[memoryview] = []
        self.size = 0

    def add(self, table: Table) -> dict[str, Any]:
        """Place the columns of a table; give what the JSON part says of it."""
        places = []
        forms = _forms(type(table)).values()
        for form, array in zip(forms, table.columns().values(), strict=True):
            dtype = form.written
            if array.dtype != dtype or not array.flags.c_contiguous:
                array = np.ascontiguousarray(array, dtype)
            data = _bytes_of(array)
            places.append([form.name, form.stored, self.size, zlib.crc32(data)])
            self._arrays.append(data)
            self.size += aligned(data.nbytes)
        return {"rows": len(table), "columns": places}

    def pieces(self) -> Iterator[bytes | memoryview]:
        """The bytes of all columns with what fills up between them; no column is copied."""
        for data in self._arrays:
            if data.nbytes:
                yield data
                yield bytes(-data.nbytes % ALIGNMENT)


def _bytes_of(array: npt.NDArray[Any]) -> memoryview:
    """The bytes of a contiguous array; giving out its own buffer, it would grow for good."""
    return array.view(np.uint8).data


class PlacedColumn(NamedTuple):
    """One column where it was found.

    Attributes:
        offset: from the first column, in bytes.
        checksum: CRC-32 that its entry claims.
    """

    pointer: str
    array: npt.NDArray[Any]
    offset: int
    checksum: int


class ColumnForm(NamedTuple):
    """How a column is stored: its name, the dtype that it is shown in, and the stored one."""

    name: str
    dtype: np.dtype[Any]
    written: np.dtype[Any]
    stored: str
    itemsize: int


class TablePlaces(NamedTuple):
    """Where the columns of one table are.

    Attributes:
        offsets: of the columns in the order of the kind, in bytes from the first of the file.
    """

    rows: int
    offsets: tuple[int, ...]


class _Listed(NamedTuple):
    """A table as the JSON part has it, and the JSON pointer of it there."""

    kind: type[Table]
    entries: list[Any]
    rows: int
    pointer: str


class ColumnReader:
    """Takes tables out of the column part of a file, without copying or reading them.

    Opening an index is mostly this, once a column: what only errors tell is made for errors alone.

    Args:
        verifying: keep what the JSON part says of each, so that `placed` can be asked.

    Attributes:
        is_explained: whether every column that was met is one of this version.
    """

    def __init__(self, space: memoryview, *, verifying: bool = False) -> None:
        self._space = space
        self._whole: dict[str, npt.NDArray[Any]] = {}
        self._left = len(space)
        self._listed: list[_Listed] | None = [] if verifying else None
        self.is_explained = True

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Pickled as the bytes of all columns; out of band, and not copied, where that is asked."""
        space = PickleBuffer(self._space) if int(protocol) >= 5 else bytes(self._space)
        return _of_bytes, (space,)

    def __deepcopy__(self, memo: object) -> Self:
        return self  # nothing of it changes

    @property
    def placed(self) -> list[PlacedColumn]:
        """Every column of the tables located so far, of a reader that is `verifying`."""
        places = []
        for table in self._listed or ():
            forms = _forms(table.kind)
            for number, (name, _, offset, checksum) in enumerate(table.entries):
                if name in forms:
                    array = self._column(int(offset), table.rows, forms[name])
                    place = f"{table.pointer}/columns/{number}"
                    places.append(PlacedColumn(place, array, int(offset), int(checksum)))
        return places

    def locate(self, kind: type[Table], plain: Any, pointer: str) -> TablePlaces:
        """Where the columns of a table are, checked in exact integers; no column is read.

        Columns that the kind does not have are skipped: a later minor version may add some.

        Raises:
            DamagedIndex: a column is missing, of another dtype, or leads outside the file, or all
                columns together take more bytes than the file has.
        """
        rows = integer(item(plain, "rows", pointer), f"{pointer}/rows", 0)
        entries = item(plain, "columns", pointer)
        if type(entries) is not list:
            raise refuse(f"{pointer}/columns", "a list", entries)
        offsets = self._offsets(kind, entries, rows)
        if offsets is None:
            offsets = self._searched(kind, entries, rows, f"{pointer}/columns")
        self._left -= rows * sum([width for _, _, width in _layout(kind)])
        if self._left < 0:
            raise refuse(f"{pointer}/columns", "columns that do not overlap", "some that do")
        if self._listed is not None:
            self._listed.append(_Listed(kind, entries, rows, pointer))
        return TablePlaces(rows, tuple(offsets))

    def table(self, kind: type[AnyTable], places: TablePlaces) -> AnyTable:
        """The table at these places, as views of the file."""
        rows, forms = places.rows, _forms(kind).values()
        return kind(*[self._column(at, rows, form) for at, form in zip(places.offsets, forms)])  # noqa: B905 - slower

    def _offsets(self, kind: type[Table], entries: list[Any], rows: int) -> list[int] | None:
        """Where the columns start, where every entry is as we write it."""
        expected = _layout(kind)
        if len(entries) != len(expected):
            return None
        size, offsets = len(self._space), []
        try:
            for (name, claimed, offset, checksum), (wanted, stored, width) in zip(
                entries, expected, strict=True
            ):
                # Only integers have bits to look at: others raise TypeError.
                if (
                    name != wanted
                    or claimed != stored
                    or offset & 63
                    or checksum >> 32
                    or not 0 <= offset <= size - rows * width
                ):
                    return None
                offsets.append(offset)
        except (TypeError, ValueError):
            return None
        return offsets

    def _searched(
        self, kind: type[Table], entries: list[Any], rows: int, pointer: str
    ) -> list[int]:
        """Where the columns start, whatever else there is; refuses what is wrong."""
        forms, results = _forms(kind), {}
        for number, entry in enumerate(entries):
            place = f"{pointer}/{number}"
            if type(entry) is not list or len(entry) != 4 or type(entry[0]) is not str:
                raise refuse(place, "[name, dtype, offset, crc32]", entry)
            form = forms.get(entry[0])
            if form is None:
                self.is_explained = False
                continue
            if entry[0] in results:
                raise refuse(place, "each column once", entry[0])
            last = len(self._space) - rows * form.itemsize
            results[entry[0]] = _checked(entry, form.stored, rows, last, place)
        for name in forms:
            if name not in results:
                raise refuse(pointer, f"a column {name}", "none")
        return [results[name] for name in forms]

    def _column(self, offset: int, rows: int, form: ColumnForm) -> npt.NDArray[Any]:
        whole = self._whole.get(form.stored)
        if whole is None:
            # All columns as if they were of one dtype: a slice costs less than an array of its own.
            # In native order by name: memoryviews of such arrays can be indexed, others cannot.
            read = form.dtype if sys.byteorder == "little" else form.written
            count = len(self._space) // form.itemsize
            whole = np.frombuffer(self._space if count else _NOTHING, read, count)
            self._whole[form.stored] = whole
        start = offset // form.itemsize
        array = whole[start : start + rows]
        if _SWAPPED:
            array = array.astype(form.dtype)
            array.setflags(write=False)
        return array


def _of_bytes(data: Any) -> ColumnReader:
    return ColumnReader(memoryview(data).cast("B").toreadonly())


def _checked(entry: list[Any], stored: str, rows: int, last: int, pointer: str) -> int:
    """The offset of an entry that is not as we write it; `last`: the greatest one."""
    _, dtype, offset, checksum = entry
    if dtype != stored:
        raise refuse(f"{pointer}/1", f"dtype {stored}", dtype)
    if last < 0:
        raise refuse(pointer, f"{rows} rows inside the file", "fewer bytes than they take")
    offset = integer(offset, f"{pointer}/2", 0, last)
    if offset % ALIGNMENT:
        raise refuse(f"{pointer}/2", f"a multiple of {ALIGNMENT}", offset)
    integer(checksum, f"{pointer}/3", 0, 2**32 - 1)
    return offset


def _forms(kind: type[Table]) -> dict[str, ColumnForm]:
    if kind in _FORMS:
        return _FORMS[kind]
    forms = {}
    for declared in kind.schema():
        name, dtype = declared.stored, np.dtype(declared.dtype)
        written = dtype.newbyteorder("<")
        forms[name] = ColumnForm(name, dtype, written, written.str, dtype.itemsize)
    _FORMS[kind] = forms
    return forms


def _layout(kind: type[Table]) -> list[tuple[str, str, int]]:
    """Name, stored dtype and bytes a row of the columns: `_forms` without look-ups."""
    if kind not in _LAYOUTS:
        _LAYOUTS[kind] = [(name, f.stored, f.itemsize) for name, f in _forms(kind).items()]
    return _LAYOUTS[kind]


_LAYOUTS: dict[type[Table], list[tuple[str, str, int]]] = {}
_FORMS: dict[type[Table], dict[str, ColumnForm]] = {}
_SWAPPED = sys.byteorder == "big"
# frombuffer refuses an empty buffer
_NOTHING = bytes(8)

TABLES: dict[str, type[Table]] = {
    kind.SCHEMA_NAME: kind
    for kind in (FragmentTable, SyncTable, SampleTable, GroupTable, PieceTable)
}
"""Every table that stands in a binary index, by the name that the JSON part gives it."""
