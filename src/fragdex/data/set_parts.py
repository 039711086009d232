"""The rows of a set while it is written: saved in parts, put together at the end."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final

from fragdex.data.set_rows import VERSION, Known, schema
from fragdex.errors import DamagedIndex
from fragdex.sources.files import write_file

__all__ = ["SetParts", "opened_set"]

_GROUP_BYTES: Final = 2 << 20
"""Bytes of indexes in a row group; one row group is read to open a film."""
_GROUP_ROWS: Final = 256
_LIGHT: Final = ["path", "size", "etag", "mtime_ns", "error"]


def opened_set(path: str) -> Any:
    """A set as a `pyarrow.parquet.ParquetFile`.

    Raises:
        DamagedIndex: it is no Parquet file, or no set, or a newer one.
        MissingExtra: pyarrow is not installed.
        OSError: it cannot be opened.
    """
    wanted = schema()
    import pyarrow as pa
    from pyarrow import parquet

    try:
        opened = parquet.ParquetFile(path)
    except pa.ArrowInvalid as error:
        raise DamagedIndex(f"{path} is no Parquet file: {error}") from error
    found = (opened.schema_arrow.metadata or {}).get(b"fragdex.set")
    if found != str(VERSION).encode() or not opened.schema_arrow.equals(wanted):
        opened.close()
        raise DamagedIndex(
            f"{path} is no set of films that this version reads",
            expected=f"fragdex.set {VERSION} in the metadata of its schema",
            found="nothing" if found is None else found.decode("ascii", "replace"),
            advice="write another file (fragdex index FOLDER -o NAME.parquet)",
        )
    return opened


class SetParts:
    """The rows of a set that is written.

    Args:
        path: of the set; what was saved of a run before lies beside it.

    A context manager.

    Raises: as `opened_set`.
    """

    def __init__(self, path: str) -> None:
        self._path, self._folder = path, path + ".parts"
        self._schema = schema()
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0
        self._kept: set[str] = set()
        self._files: list[Any] = []
        # name → file, row group, row in it
        self._places: dict[str, tuple[int, int, int]] = {}
        self._known: dict[str, Known] = {}
        os.makedirs(self._folder, exist_ok=True)
        parts = sorted(os.listdir(self._folder))
        older = [os.path.join(self._folder, one) for one in parts if one.endswith(".parquet")]
        for one in ([path] if os.path.exists(path) else []) + older:
            self._take(one)

    def known(self) -> dict[str, Known]:
        """What earlier runs know of films that they could index, by name."""
        return self._known

    def keep(self, name: str) -> None:
        """Take over the row of an earlier run."""
        self._kept.add(name)

    def add(self, row: dict[str, Any]) -> None:
        """Another row; it is saved now or with the next few."""
        self._rows.append(row)
        self._bytes += len(row["index"] or b"")
        if self._bytes >= _GROUP_BYTES or len(self._rows) >= _GROUP_ROWS:
            self._save()

    def finish(self) -> None:
        """Put the set together from what was added and kept, and forget the parts."""
        self._save()
        write_file(self._path, self._pieces())
        self._close()
        shutil.rmtree(self._folder)

    def __enter__(self) -> SetParts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if os.path.isdir(self._folder):  # not finished
            self._save()
            self._close()
            if not os.listdir(self._folder):
                os.rmdir(self._folder)

    def _close(self) -> None:
        for file in self._files:
            file.close()

    def _save(self) -> None:
        if not self._rows:
            return
        sink = _Sink()
        writer = self._writer(sink)
        writer.write_table(self._table(self._rows))
        writer.close()
        name = f"{len(self._files):06}-{secrets.token_hex(4)}.parquet"
        path = os.path.join(self._folder, name)
        write_file(path, [sink.taken()])
        added = {row["path"] for row in self._rows}
        self._rows, self._bytes = [], 0
        self._take(path)
        self._kept |= added

    def _take(self, path: str) -> None:
        opened = opened_set(path)
        number = len(self._files)
        self._files.append(opened)
        for group in range(opened.num_row_groups):
            light = opened.read_row_group(group, _LIGHT).to_pylist()
            for row, one in enumerate(light):
                name = one["path"]
                self._places[name] = number, group, row
                if one["error"] is None:
                    self._known[name] = Known(one["size"], one["etag"], one["mtime_ns"])
                else:
                    self._known.pop(name, None)

    def _pieces(self) -> Iterator[bytes]:
        sink = _Sink()
        writer = self._writer(sink)
        rows: list[Any] = []
        size = 0
        import pyarrow as pa

        for row, weight in self._chosen():
            if rows and (size + weight > _GROUP_BYTES or len(rows) >= _GROUP_ROWS):
                writer.write_table(pa.concat_tables(rows).combine_chunks())
                rows, size = [], 0
                yield sink.taken()
            rows.append(row)
            size += weight
        if rows:
            writer.write_table(pa.concat_tables(rows).combine_chunks())
        writer.close()
        yield sink.taken()

    def _chosen(self) -> Iterator[tuple[Any, int]]:
        """The rows of the set by name, each with the bytes of its index."""
        last: tuple[int, int] | None = None
        table: Any = None
        for name in sorted(self._kept):
            file, group, row = self._places[name]
            if last != (file, group):
                table, last = self._files[file].read_row_group(group), (file, group)
            one = table.slice(row, 1)
            yield one, len(one["index"][0].as_py() or b"")

    def _table(self, rows: list[dict[str, Any]]) -> Any:
        import pyarrow as pa

        return pa.Table.from_pylist(rows, self._schema)

    def _writer(self, sink: _Sink) -> Any:
        from pyarrow import parquet

        return parquet.ParquetWriter(sink, self._schema, compression="zstd")


class _Sink:
    """A file that is taken away in pieces."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self.closed = False

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)
