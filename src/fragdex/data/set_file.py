"""The file of a set: its columns, and its rows by row group.

A Parquet file describes each column of each row group at its end, which for a million videos is
tens of megabytes, and several times that once it is parsed. Here only the places of these
descriptions are kept; the description of a row group is parsed when it is read.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import IO, Any, Final, NamedTuple

from fragdex.errors import DamagedIndex, MissingExtra
from fragdex.fragments.table import Int64

VERSION: Final = 1
"""Of the columns."""


class Groups(NamedTuple):
    """Groups of pictures: what is decoded from one sync sample on; arrays of int64.

    Attributes:
        frame: the least number of a frame in it.
        frames: how many frames it has.
        start, end: ticks of presentation time of its first and after its last frame.
        offset, stop: the bytes of the file that its samples lie in; stop is exclusive.
        bytes: of its samples alone.
    """

    frame: Int64
    frames: Int64
    start: Int64
    end: Int64
    offset: Int64
    stop: Int64
    bytes: Int64


def schema() -> Any:
    """The columns of a set (docs/training.md), as a pyarrow schema."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtra("a set is a Parquet file, and needs pyarrow", extra="data") from error
    group = pa.struct([(name, pa.int64()) for name in Groups._fields])
    track = pa.struct(
        [
            ("id", pa.int64()),
            ("kind", pa.string()),
            ("codec", pa.string()),
            ("width", pa.int32()),
            ("height", pa.int32()),
            ("timescale", pa.int64()),
            ("frames", pa.int64()),
            ("start", pa.int64()),
            ("end", pa.int64()),
            ("gops", pa.list_(group)),
        ]
    )
    return pa.schema(
        [
            ("path", pa.string()),
            ("size", pa.int64()),
            ("etag", pa.string()),
            ("mtime_ns", pa.int64()),
            ("error", pa.string()),
            ("tracks", pa.list_(track)),
            ("init", pa.binary()),
            ("index", pa.binary()),
        ],
        metadata={"fragdex.set": str(VERSION)},
    )


class SetFile:
    """The rows of a set, by row group.

    Attributes:
        ends: of each row group, the number of rows up to its end.

    It keeps 32 bytes for each row group. A process that is forked may use it, too.
    """

    def __init__(self, path: str) -> None:
        wanted = schema()
        import pyarrow as pa

        self._path = path
        self._file = pa.OSFile(path)
        try:
            self._footer = _Footer(self._file)
            self.ends = array("q", accumulate(self._footer.rows))
            stored_schema = self._opened(self._footer.with_groups(b"", 0, 0)).schema_arrow
        # ValueError: a name in the schema that is not UTF-8.
        except (pa.ArrowException, OSError, OverflowError, ValueError, DamagedIndex) as error:
            self._file.close()
            raise DamagedIndex(f"{path} is not a Parquet file: {error}") from error
        version = (stored_schema.metadata or {}).get(b"fragdex.set")
        if version != str(VERSION).encode() or not stored_schema.equals(wanted):
            self._file.close()
            raise DamagedIndex(
                f"{path} is not a set of videos that this version can read",
                expected=f"fragdex.set {VERSION} in the metadata of its schema",
                found="nothing" if version is None else version.decode("ascii", "replace"),
                advice="write another file (fragdex index FOLDER -o NAME.parquet)",
            )

    def read(self, group: int, columns: Sequence[str] | None = None) -> Any:
        """A row group as a `pyarrow.Table`."""
        return self._read(group, group + 1, columns)

    def pieces(self, columns: Sequence[str]) -> Iterator[tuple[int, Any]]:
        """All rows, some row groups at a time: the number of the first row, and a table."""
        for group in range(0, len(self.ends), _TOGETHER):
            table = self._read(group, min(group + _TOGETHER, len(self.ends)), columns)
            yield (self.ends[group - 1] if group else 0), table

    def _read(self, start: int, stop: int, columns: Sequence[str] | None) -> Any:
        import pyarrow as pa

        footer, names = self._footer, None if columns is None else list(columns)
        try:
            place = footer.places[start]
            described = self._file.read_at(footer.places[stop] - place, place)
            rows = self.ends[stop - 1] - (self.ends[start - 1] if start else 0)
            opened = self._opened(footer.with_groups(described, stop - start, rows))
            table = opened.read_row_groups(range(stop - start), names, use_threads=False)
            # Its texts are UTF-8, too.
            table.validate(full=True)
            return table
        except (pa.ArrowException, OSError, ValueError) as error:
            raise DamagedIndex(
                f"row groups {start} to {stop} of {self._path} are damaged: {error}"
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _opened(self, footer: bytes) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        described = parquet.read_metadata(pa.BufferReader(footer))
        return parquet.ParquetFile(self._file, metadata=described)


class GroupWriter:
    """Writes the file of a set row group by row group; memory does not grow with their number.

    pyarrow's writer keeps the descriptions of all row groups until the end. Here each row group is
    written as a file of its own, and what describes it is moved to its place in the whole, and
    waits in another file.

    Args:
        described: an empty file that can be read and written.
    """

    def __init__(self, described: IO[bytes]) -> None:
        self._described, self._footer = described, _footer_of(_written(None))
        self._place = self._groups = self._rows = 0

    def group(self, table: Any) -> bytes:
        """The bytes of the next row group."""
        return self.again(_written(table))

    def again(self, file: bytes) -> bytes:
        """The bytes of the row groups of another file of a set, which follow, still packed."""
        footer = _footer_of(file)
        begin = len(_MAGIC) if self._place else 0  # of those of each file, the whole has the first
        for place, end in pairwise(footer.places):
            described, _ = _moved(file[place:end], 0, (), self._place - begin, self._groups)
            self._described.write(described)
            self._groups += 1
        self._rows += sum(footer.rows)
        data = file[begin : footer.start]
        self._place += len(data)
        return data

    def end(self) -> Iterator[bytes]:
        """The rest of the file."""
        if not self._place:
            yield _MAGIC
        before, after = self._footer.around(self._groups, self._rows)
        yield before
        size = len(before) + self._described.tell() + len(after)
        self._described.seek(0)
        while piece := self._described.read(_PIECE):
            yield piece
        yield after + size.to_bytes(4, "little") + _MAGIC


def set_writer(where: Any) -> Any:
    """A `pyarrow.parquet.ParquetWriter` of a set, to a path or a file."""
    from pyarrow import parquet

    return parquet.ParquetWriter(where, schema(), compression="zstd", write_statistics=_SHORT)


def _written(table: Any) -> bytes:
    """A set with a table, or with no row groups."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with set_writer(sink) as writer:
        if table is not None:
            writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _footer_of(data: bytes) -> _Footer:
    import pyarrow as pa

    return _Footer(pa.BufferReader(data))


_SHORT: Final = [
    "path", "size", "etag", "mtime_ns", "error",
    *(f"tracks.list.element.{name}" for name in ("frames", "start", "end")),
]  # fmt: skip
"""Columns whose least and largest values are written: those of an index would be two indexes."""
_TOGETHER: Final = 64
"""Row groups that are read at once where all are."""
_MAGIC: Final = b"PAR1"
_PIECE: Final = 1 << 20
"""Bytes of a footer that are read at once; its schema and its end have to be shorter."""
_DEEPEST: Final = 32
_I16, _I64, _BINARY, _LIST, _SET, _MAP, _STRUCT = 4, 6, 8, 9, 10, 11, 12
_SIZES: Final = {3: 1, 7: 8, 13: 16}
"""Bytes of the types of fixed size: byte, double, UUID."""


class _Footer:
    """The places of the row groups in FileMetaData (parquet.thrift, by Thrift's compact protocol).

    Attributes:
        start: where it begins in the file.
        places: where the description of each row group begins in the file, and where the last one
            ends.
    """

    def __init__(self, file: Any) -> None:
        whole = file.size()
        tail = file.read_at(8, max(whole - 8, 0))
        size = int.from_bytes(tail[:4], "little")
        if tail[4:] != _MAGIC or size + 12 > whole:
            raise DamagedIndex("it does not end as one")
        self._file, self._end = file, whole - 8
        self._before = self._after = b""
        self.places, self.rows = array("q"), array("q")
        self.start = whole - 8 - size
        try:
            self._find(self.start)
        except (IndexError, OverflowError) as error:
            raise DamagedIndex("its footer is cut off") from error
        if not self._after:
            raise DamagedIndex("its footer has no row groups")

    def _find(self, start: int) -> None:
        data = self._piece(start, _PIECE)
        at = number = 0
        while (head := data[at]) != 0:
            kind, step = head & 15, head >> 4
            if not step:
                raise DamagedIndex("a field of its footer has no short number")
            number += step
            field, at = at, at + 1
            if number == 3:  # num_rows, and row_groups after it
                self._before = data[:field]
            elif number == 4 and kind == _LIST:
                count, inner, at = _list(data, at)
                if inner != _STRUCT or not self._before:
                    raise DamagedIndex("its row groups are described in another way")
                start += at
                for _ in range(count):
                    self.places.append(start)
                    data, at, start = self._next(data, at, start)
                self.places.append(start)
                self._after = self._piece(start, _PIECE)
                return
            at = _skip(data, at, kind, 0)

    def _next(self, data: bytes, at: int, start: int) -> tuple[bytes, int, int]:
        """Pass a row group that begins at a place of `data`, and at `start` in the file."""
        while True:
            try:
                rows, stop = _row_group(data, at)
            except IndexError:
                if start + len(data) - at >= self._end:
                    raise
                data, at = self._piece(start, max(_PIECE, 2 * (len(data) - at))), 0
            else:
                self.rows.append(rows)
                return data, stop, start + stop - at

    def _piece(self, start: int, size: int) -> bytes:
        data: bytes = self._file.read_at(min(size, self._end - start), start)
        return data

    def with_groups(self, described: bytes, count: int, rows: int) -> bytes:
        """A Parquet file that is a footer alone, with some neighbouring row groups or none."""
        before, after = self.around(count, rows)
        footer = before + described + after
        return _MAGIC + footer + len(footer).to_bytes(4, "little") + _MAGIC

    def around(self, count: int, rows: int) -> tuple[bytes, bytes]:
        """A footer before and after the descriptions of so many row groups with so many rows."""
        rows_field = bytes([1 << 4 | _I64]) + _varint(rows << 1)  # zigzag
        groups = bytes([1 << 4 | _LIST, 15 << 4 | _STRUCT]) + _varint(count)
        return self._before + rows_field + groups, self._after


def _row_group(data: bytes, at: int) -> tuple[int, int]:
    """How many rows a RowGroup has (its third field), and where it ends."""
    rows = number = 0
    while (head := data[at]) != 0:
        kind, step = head & 15, head >> 4
        at += 1
        if not step:
            raise DamagedIndex("a field of a row group has no short number")
        number += step
        if number == 3 and kind == _I64:
            rows = _number(data, at)[0] >> 1
        at = _skip(data, at, kind, 0)
    return rows, at + 1


_PLACES: Final = {(5,), (1, 2), (1, 4), (1, 6), (1, 3, 9), (1, 3, 10), (1, 3, 11), (1, 3, 14)}
"""Fields of RowGroup, ColumnChunk and ColumnMetaData that are places in the file; 0: none."""
_ORDINAL: Final = (7,)


def _moved(data: bytes, at: int, path: tuple[int, ...], by: int, ordinal: int) -> tuple[bytes, int]:
    """A RowGroup, or what lies at a path in it, moved by so many bytes; where it ends in `data`."""
    copy, number = bytearray(), 0
    while (head := data[at]) != 0:
        kind, field, at = head & 15, at, at + 1
        number += head >> 4
        here = (*path, number)
        if here in _PLACES and kind == _I64:
            value, at = _number(data, at)
            copy.append(head)
            copy += _varint(value + (by << 1) if value else 0)
        elif here == _ORDINAL and kind == _I16:
            _, at = _number(data, at)
            if ordinal < 1 << 15:  # it has 16 bits, and is the last field
                copy.append(head)
                copy += _varint(ordinal << 1)
        elif here == (1,) and kind == _LIST:
            count, _, begin = _list(data, at)
            copy += data[field:begin]
            at = begin
            for _ in range(count):
                chunk, at = _moved(data, at, here, by, ordinal)
                copy += chunk
        elif here == (1, 3) and kind == _STRUCT:
            described, at = _moved(data, at, here, by, ordinal)
            copy.append(head)
            copy += described
        else:
            at = _skip(data, at, kind, 0)
            copy += data[field:at]
    copy.append(0)
    return bytes(copy), at + 1


def _number(data: bytes, at: int) -> tuple[int, int]:
    """A varint, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise DamagedIndex("a number of its footer has more than 64 bits")


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 127:
        digits.append(value & 127 | 128)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def _list(data: bytes, at: int) -> tuple[int, int, int]:
    """Count and type of the elements of a list, and where they begin."""
    head = data[at]
    count, at = head >> 4, at + 1
    if count == 15:
        count, at = _number(data, at)
    return count, head & 15, at


def _skip(data: bytes, at: int, kind: int, depth: int) -> int:
    """Where a value ends that begins at a place. Each byte is looked at once at most."""
    if kind <= 2:  # true and false are in the type
        return at
    if kind <= _I64 and kind > 3:
        while data[at] > 127:
            at += 1
        return at + 1
    if kind == _BINARY:
        size, at = _number(data, at)
        return at + size
    if kind in _SIZES:
        return at + _SIZES[kind]
    if depth > _DEEPEST:
        raise DamagedIndex("its footer nests too deep")
    if kind == _STRUCT:
        while head := data[at]:
            at += 1
            if head < 16:  # the number of the field follows
                at = _skip(data, at, _I64, depth)
            at = _skip(data, at, head & 15, depth + 1)
        return at + 1
    if kind in (_LIST, _SET):
        count, inner, at = _list(data, at)
        inner = 3 if inner <= 2 else inner  # a byte for each bool
        if inner in _SIZES:
            return at + count * _SIZES[inner]
        for _ in range(count):
            at = _skip(data, at, inner, depth + 1)
        return at
    if kind == _MAP:
        raise DamagedIndex("its footer has a map, which Parquet has not")
    raise DamagedIndex(f"its footer has a value of type {kind}")
