"""The tables of an index for Arrow and Parquet, all tracks below each other (extra `data`)."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np

from fragdex.errors import MissingExtra
from fragdex.formats.records import to_plain
from fragdex.fragments.table import NULL, FragmentTable, SampleTable, SyncTable, Table
from fragdex.seeking.model import Index, Track

TABLES: dict[str, type[Table]] = {
    "fragments": FragmentTable,
    "samples": SampleTable,
    "sync": SyncTable,
}
"""What can be written, by name."""

LEADING = {
    "period": ("int32", "number of the period, from 0"),
    "track_id": ("int64", "track_ID"),
    "timescale": ("int64", "ticks a second of the times in this row"),
}
"""Columns in front of the table's own, so that rows of all tracks can stand in one table."""


def table(index: Index, *, of: str = "fragments", tracks: Iterable[int] | None = None) -> Any:
    """A `pyarrow.Table` of all tracks, in file order.

    Columns: period, track_id and timescale, then those of the table, with unit and meaning in the
    metadata of each field. NULL becomes an Arrow null. The metadata of the schema holds `fragdex`:
    a JSON object with source, how and tracks.

    Args:
        of: fragments, samples or sync.
        tracks: track ids; None: all.

    Raises:
        ValueError: there is no such table.
        InexactIndex: samples are requested that the index does not hold.
        MissingExtra: pyarrow is not installed.
    """
    pa = _pyarrow()
    if of not in TABLES:
        raise ValueError(f"there is no table {of!r}: expected one of {', '.join(TABLES)}")
    chosen = list(index.tracks) if tracks is None else [index.track(i) for i in tracks]
    parts = [getattr(track, "sync_samples" if of == "sync" else of) for track in chosen]
    fields, columns = [], []
    for name, (kind, meaning) in LEADING.items():
        numbers = [_leading(track)[name] for track in chosen]
        values = np.repeat(np.array(numbers, kind), [len(part) for part in parts])
        fields.append(pa.field(name, kind, nullable=False, metadata={"meaning": meaning}))
        columns.append(pa.chunked_array([pa.array(values)]))
    for column in TABLES[of].schema():
        kind = pa.from_numpy_dtype(np.dtype(column.dtype))
        metadata = {"meaning": column.meaning} | ({"unit": column.unit} if column.unit else {})
        fields.append(pa.field(column.stored, kind, nullable=column.nullable, metadata=metadata))
        chunks = []
        for part in parts:
            values = getattr(part, column.name)
            chunks.append(pa.array(values, mask=values == NULL if column.nullable else None))
        columns.append(pa.chunked_array(chunks, kind))
    about = {
        "table": of,
        "source": to_plain(index.file),
        "how": to_plain(index.how),
        "tracks": [_leading(track) | to_plain(track.info) for track in chosen],
    }
    schema = pa.schema(fields, metadata={"fragdex": json.dumps(about)})
    return pa.Table.from_arrays(columns, schema=schema)


def _leading(track: Track) -> dict[str, int]:
    return {"period": track.period, "track_id": track.id, "timescale": track.timescale}


def write(
    index: Index,
    *,
    of: str = "fragments",
    tracks: Iterable[int] | None = None,
    container: str = "stream",
) -> bytes:
    """The table as an Arrow IPC stream or file.

    Args:
        of, tracks: as `table`.
        container: stream (to be read from front to back) or file (with a footer, to be mapped).

    Raises: as `table`; ValueError for another container.
    """
    pa = _pyarrow()
    rows = table(index, of=of, tracks=tracks)
    if container not in ("stream", "file"):
        raise ValueError(f"there is no container {container!r}: expected stream or file")
    sink = pa.BufferOutputStream()
    opened = pa.ipc.new_stream if container == "stream" else pa.ipc.new_file
    with opened(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def write_parquet(
    index: Index,
    *,
    of: str = "fragments",
    tracks: Iterable[int] | None = None,
    compression: str = "zstd",
) -> bytes:
    """The table as a Parquet file.

    Args:
        of, tracks: as `table`.
        compression: a codec of pyarrow's, or "none".

    Raises: as `table`.
    """
    rows = table(index, of=of, tracks=tracks)
    from pyarrow import parquet

    sink = io.BytesIO()
    parquet.write_table(rows, sink, compression=compression)
    return sink.getvalue()


def _pyarrow() -> ModuleType:
    try:
        import pyarrow
    except ImportError as error:
        raise MissingExtra("Arrow and Parquet need pyarrow", extra="data") from error
    module: ModuleType = pyarrow
    return module
