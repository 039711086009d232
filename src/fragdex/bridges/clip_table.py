"""Windows of a set as rows of a table, for Parquet, Iceberg, Lance, Ray, Daft, and all of Arrow.

A row is a window: which video and frames, when they are shown, and the bytes that decode them. On
request it also has the md5 of these bytes, a seed, a small MP4 of them, and the pixels.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

import numpy as np

from fragdex.data.window_order import WindowSampler, parts
from fragdex.data.windows import Windows
from fragdex.digest import Md5
from fragdex.errors import IndexMismatch

PLAIN: Final = ("uri", "video", "track", "first", "stop", "start", "end", "ranges", "wanted")
MD5, SEED, CLIP, FRAMES = "md5", "seed", "clip", "frames"
_ROWS: Final = 64
"""Windows of a batch."""


def schema(columns: Sequence[str]) -> Any:
    """The columns as a pyarrow schema; `clip` is marked as Lance marks blobs."""
    import pyarrow as pa

    place = pa.struct([("offset", pa.int64()), ("length", pa.int64())])
    kinds = {
        "uri": pa.string(), "video": pa.int64(), "track": pa.int64(), "first": pa.int64(),
        "stop": pa.int64(), "start": pa.float64(), "end": pa.float64(), "ranges": pa.list_(place),
        "wanted": pa.list_(pa.int64()), MD5: pa.string(), SEED: pa.int64(),
        CLIP: pa.large_binary(), FRAMES: pa.list_(pa.uint8()),
    }  # fmt: skip
    unknown = [name for name in columns if name not in kinds]
    if unknown:
        raise ValueError(f"there is no column {unknown[0]!r}: there are {', '.join(kinds)}")
    blob = {"lance-encoding:blob": "true"}
    return pa.schema(
        [pa.field(name, kinds[name], metadata=blob if name == CLIP else None) for name in columns]
    )


class ClipTable:
    """All windows of a set as batches of Arrow; what is not requested is neither read nor decoded.

    Args:
        windows: `fragdex.data.Windows` at the rate of their videos (no `fps`).
        columns: some of uri, video, track, first, stop (frames, stop exclusive), start, end
            (seconds, of the first and last frame), ranges (offset and length of each), wanted
            (which decoded pictures of clip the frames are), md5 (of the bytes of the ranges, one
            after the other, in hex), seed (of the window in this epoch, by `order`), clip (a small
            MP4) and frames (pixels, one row after the other; `windows` says their shape).
            None: those up to wanted.
        order: of the rows: those of an epoch, or of its part for a rank; None: that of the set.

    `lance.write_dataset(table.reader(), "clips.lance")` writes them; `ray_source` and `daft_source`
    read them in pieces. Each worker opens the set for itself.

    Raises:
        ValueError: there is no such column, the windows have an `fps`, or seed lacks an `order`.
    """

    def __init__(
        self,
        windows: Windows,
        columns: Sequence[str] | None = None,
        *,
        order: WindowSampler | None = None,
    ) -> None:
        if windows.fps is not None:
            raise ValueError("a row has neighbouring frames: give windows without fps")
        self.windows, self.order = windows, order
        self.columns = list(PLAIN if columns is None else columns)
        if SEED in self.columns and order is None:
            raise ValueError("the column seed is by an order: order=WindowSampler(windows, seed=…)")
        self.schema = schema(self.columns)

    def __len__(self) -> int:
        return len(self.windows if self.order is None else self.order)

    def select(self, columns: Sequence[str]) -> ClipTable:
        """The same with these columns."""
        return ClipTable(self.windows, columns, order=self.order)

    def reader(self, start: int = 0, stop: int | None = None) -> Any:
        """Rows `start` to `stop` (exclusive) as a `pyarrow.RecordBatchReader`."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_batches(self.schema, self.batches(start, stop))

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[Any]:
        """The same as `pyarrow.RecordBatch`es."""
        import pyarrow as pa

        stop = len(self) if stop is None else min(stop, len(self))
        whole = np.arange(start, stop)
        pieces = iter([whole]) if self.order is None else self.order.pieces(start, stop)
        for numbers in (part.tolist() for part in parts(pieces, _ROWS)):
            rows = [self._row(number) for number in numbers]
            if FRAMES in self.columns:
                for row, sample in zip(rows, self.windows.__getitems__(numbers), strict=True):
                    row[FRAMES] = np.ascontiguousarray(sample["frames"]).reshape(-1)
            yield pa.RecordBatch.from_pylist(rows, self.schema)

    def numbers(self, rows: Iterable[Mapping[str, Any]]) -> list[int]:
        """The windows of rows that a query gave back, in their order, for `windows.batch`.

        Args:
            rows: each with video and first. Other columns that are in it must be what they would be
                now: ranges come from the index, and where there is an md5, their bytes are read.

        Raises:
            IndexMismatch: a row is of another set or of other windows, or its video has changed.
            And what opening and reading a video raise.
        """
        return [self._number(row) for row in rows]

    def _number(self, row: Mapping[str, Any]) -> int:
        windows, video, first = self.windows, row["video"], row["first"]

        def place(number: int) -> tuple[int, int]:
            return windows.video_of(number), windows.first_frame(number)

        numbers, number = range(len(windows)), -1
        if isinstance(video, int) and isinstance(first, int):
            number = bisect_left(numbers, (video, first), key=place)
        if number not in numbers or place(number) != (video, first):
            raise IndexMismatch(f"no window begins at first={first!r} of video={video!r}")
        checked = [name for name in ("uri", "track", "stop", "ranges", MD5) if name in row]
        now = ClipTable(windows, checked)._row(number)
        for name in checked:
            if row[name] != now[name]:
                raise IndexMismatch(
                    f"the {name} of window {number} differs from that of the row",
                    expected=repr(row[name])[:200], found=repr(now[name])[:200],
                    advice="write the table again from the set and videos as they are now",
                )  # fmt: skip
        return number

    def _row(self, number: int) -> dict[str, Any]:
        windows = self.windows
        place = windows.video_of(number)
        video = windows.videos[place]
        first = windows.first_frame(number)
        stop = first + (windows.length - 1) * windows.stride + 1
        row: dict[str, Any] = {
            "uri": video.path, "video": place, "track": video.track, "first": first, "stop": stop,
        }  # fmt: skip
        if SEED in self.columns and self.order is not None:
            row[SEED] = self.order.seed_of(number)
        if {"start", "end", "ranges", "wanted", MD5, CLIP} & set(self.columns):
            index, init = windows.videos.index_of(place)
            window = index.window(video.track, first, stop)
            times = window.times
            row |= {"start": float(times[0]), "end": float(times[-1])}
            row["wanted"] = window.wanted[:: windows.stride].tolist()
            row["ranges"] = [{"offset": one.start, "length": one.size} for one in window.ranges]
            if {MD5, CLIP} & set(self.columns):
                with windows.videos.source(place) as source:
                    if MD5 in self.columns:
                        row[MD5] = str(Md5(b"".join(source.read_many(window.ranges))).digest())
                    if CLIP in self.columns:
                        row[CLIP] = window.mp4(source, init=init)
        return {name: row[name] for name in self.columns if name in row}


def ray_source(table: ClipTable) -> Any:
    """A data source of Ray Data: `ray.data.read_datasource(ray_source(table))`.

    Its tasks are runs of windows; `table.columns` are what is read.
    """
    ray: Any = import_module("ray.data")
    metadata: Any = import_module("ray.data.block").BlockMetadata

    class ClipSource(ray.Datasource):  # type: ignore[misc]
        """Windows of a set."""

        def estimate_inmemory_data_size(self) -> int | None:
            """Not known before it is read."""
            return None

        def get_read_tasks(
            self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
        ) -> list[Any]:
            """Runs of windows, one after the other."""
            edges = np.linspace(0, len(table), max(min(parallelism, len(table)), 1) + 1, dtype=int)
            shared = import_module("ray").put(table)
            return [
                ray.ReadTask(
                    _read(shared, start, stop),
                    metadata(num_rows=stop - start, size_bytes=None, input_files=None,
                             exec_stats=None),
                    schema=table.schema, per_task_row_limit=per_task_row_limit,
                )
                for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
            ]  # fmt: skip

    return ClipSource()


class _read:  # noqa: N801 — a function that goes to other processes
    def __init__(self, shared: Any, start: int, stop: int) -> None:
        self._shared, self._start, self._stop = shared, start, stop

    def __call__(self) -> Iterator[Any]:
        import pyarrow as pa

        for batch in _table(self._shared).batches(self._start, self._stop):
            yield pa.Table.from_batches([batch])


@lru_cache(1)
def _table(shared: Any) -> ClipTable:
    table: ClipTable = import_module("ray").get(shared)
    return table


def daft_source(table: ClipTable, rows: int = 256) -> Any:
    """A data source of Daft: `daft_source(table).read()` is a DataFrame.

    Columns and limits that a query leaves are pushed down: what is not requested is not decoded.

    Args:
        rows: of a task.
    """
    source: Any = import_module("daft.io.source")
    batch: Any = import_module("daft.recordbatch").RecordBatch
    schema: Any = import_module("daft.schema").Schema

    class ClipTask(source.DataSourceTask):  # type: ignore[misc]
        """Some windows."""

        def __init__(self, table: ClipTable, start: int, stop: int) -> None:
            self._table, self._start, self._stop = table, start, stop

        @property
        def schema(self) -> Any:
            """Of the columns that are read."""
            return schema.from_pyarrow_schema(self._table.schema)

        async def read(self) -> Any:
            """Batches of them."""
            for one in self._table.batches(self._start, self._stop):
                yield batch.from_arrow_record_batches([one], self._table.schema)

    class ClipSource(source.DataSource):  # type: ignore[misc]
        """Windows of a set."""

        @property
        def name(self) -> str:
            """In plans."""
            return "fragdex"

        @property
        def schema(self) -> Any:
            """Of all columns."""
            return schema.from_pyarrow_schema(table.schema)

        async def get_tasks(self, pushdowns: Any) -> Any:
            """Some windows each, with the columns that the query leaves."""
            kept = pushdowns.columns
            chosen = (
                table if kept is None else table.select([c for c in table.columns if c in kept])
            )
            limit = pushdowns.limit if pushdowns.filters is None else None
            stop = len(table) if limit is None else min(limit, len(table))
            for start in range(0, stop, rows):
                yield ClipTask(chosen, start, min(start + rows, stop))

    return ClipSource()
