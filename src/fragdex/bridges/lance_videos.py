"""Videos in a column of a Lance table: a file system of them, and batches of windows in one read.

Lance reads many ranges of many blobs in one call, and leaves it to the application to know which;
the index of a set knows. A table of LanceDB is such a table too: the folder `<name>.lance` of the
database.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from itertools import islice
from typing import Any, Final

from fragdex.byterange import ByteRange
from fragdex.data.windows import Sample, Windows

_SUFFIX: Final = ".mp4"
_FILES: Final = 1 << 16
"""Rows of which length and entity tag are held."""
_ROWS: Final = 1 << 14
"""Rows that are listed at once."""


class LanceVideos:
    """The videos of a column of blobs, as files `0000000000.mp4` … by the numbers of their rows.

    Args:
        uri: of the table, as `lance.dataset` takes it.
        column: of the videos; a row without one has no file.
        version: of the table; None: the present one. Rows that are added later are in a later one.
        storage_options: as `lance.dataset` takes them.

    It has what fragdex asks of a file system of fsspec, so everything that takes `filesystem=`
    reads them: `write_set`, `VideoSet`, `Frames`, `index`. The entity tag of a video is the place
    of its bytes in a file that Lance writes once: a set is brought up to date by the rows that are
    new. Other processes open the table for themselves: a pickle has `storage_options`, secrets too.

    Raises:
        ImportError: Lance (pylance) is not installed.
        ValueError: there is no such table or column, or it has no blobs.

        videos = LanceVideos("films.lance", "video")
        write_set("", "set.parquet", filesystem=videos)
        windows = Windows(VideoSet("set.parquet", root="", filesystem=videos), frames=16)
        batch = videos.batch(windows, [3, 77, 12])
    """

    protocol = "lance-videos"

    def __init__(
        self,
        uri: str | os.PathLike[str],
        column: str,
        *,
        version: int | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> None:
        lance: Any = import_module("lance")
        options = None if storage_options is None else dict(storage_options)
        self._table: Any = lance.dataset(uri, version=version, storage_options=options)
        kind = dict(zip(self._table.schema.names, self._table.schema.types, strict=True))
        if "blob" not in str(kind.get(column)):
            raise ValueError(f"{column!r} is not a column of blobs: there are {kind}")
        self._column, self._field = column, self._table.lance_schema.field(column).id()
        self._stored: dict[int, str] = {}  # by fragment
        self._files: OrderedDict[int, dict[str, Any]] = OrderedDict()
        self._fetched: dict[int, list[tuple[int, bytes]]] = {}
        # By these another process opens the same version.
        self.storage_args = (uri, column)
        self.storage_options = {"version": self._table.version, "storage_options": options}
        self._pid = os.getpid()

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(LanceVideos, **self.storage_options), self.storage_args

    def batch(self, windows: Windows, numbers: Sequence[int], **options: Any) -> Sample:
        """`windows.batch(numbers, **options)`, with what it reads of all videos read at once.

        Args:
            windows: of a set with this file system.
            numbers: of the windows, in the order of the batch.

        Raises: as `Windows.batch`; FileNotFoundError if a row has no video any more.
        """
        chosen = {windows.video_of(number) for number in numbers}
        rows = {self._row(windows.videos[number].path) for number in chosen}
        self._describe(sorted(rows - self._files.keys()))
        with self.fetched(windows.reads(numbers)):
            return windows.batch(numbers, **options)

    @contextmanager
    def fetched(self, reads: Mapping[str, Sequence[ByteRange]]) -> Iterator[None]:
        """Ranges of videos in one call of Lance, which answer reads while the context lasts.

        Args:
            reads: by the names of videos, inside of them.

        Raises: what Lance raises where a range is not in its video.
        """
        wanted = [
            (self._row(name), one.start, one.size)
            for name, ranges in reads.items()
            for one in ranges
        ]
        for (row, start, _), data in zip(wanted, self._ranges(wanted), strict=True):
            self._fetched.setdefault(row, []).append((start, data))
        for parts in self._fetched.values():
            parts.sort(key=lambda part: part[0])
        try:
            yield
        finally:
            self._fetched = {}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None) -> bytes:
        """Bytes `start` to `end` (exclusive) of a video; negative from its end; None: its edge.

        Raises: as `info`.
        """
        row = self._row(path)
        size = self.info(path)["size"]
        first, stop, _ = slice(start, end).indices(size)
        parts = self._fetched.get(row, ())
        place = bisect_right(parts, first, key=lambda part: part[0]) - 1
        if place >= 0:
            at, data = parts[place]
            if stop <= at + len(data):
                return data[first - at : stop - at]
        return self._ranges([(row, first, max(stop - first, 0))])[0]

    def info(self, path: str) -> dict[str, Any]:
        """Name, size and entity tag of a video.

        Raises:
            FileNotFoundError: there is no such row, or it has no video.
        """
        row = self._row(path)
        file = self._files.get(row)
        if file is None:
            self._describe([row])
            file = self._files.get(row)
        if file is None:
            raise FileNotFoundError(f"row {row} of {self.storage_args[0]} has no video")
        return file

    def isdir(self, path: str) -> bool:
        """Whether a name is that of all videos."""
        return not self._strip_protocol(path)

    def find(self, path: str = "", *, detail: bool = False) -> Any:
        """The names of all videos in the order of their rows; with `detail` a dict of `info`."""
        listed: dict[str, dict[str, Any]] = {}
        count = self._table.count_rows() if self.isdir(path) else 0
        for first in range(0, count, _ROWS):
            for file in self._described(range(first, min(first + _ROWS, count))):
                if file is not None:
                    listed[file["name"]] = file
        return listed if detail else list(listed)

    def invalidate_cache(self) -> None:
        """Nothing changes in a version."""

    def open(self, path: str) -> Any:
        """A video as a file (`lance.BlobFile`); raises as `info`."""
        self.info(path)
        return self._table.take_blobs(self._column, indices=[self._row(path)])[0]

    def _row(self, path: str) -> int:
        name = self._strip_protocol(path)
        digits = name.removesuffix(_SUFFIX)
        if not (digits.isascii() and digits.isdigit()):
            raise FileNotFoundError(f"a video is named by its row, such as 7{_SUFFIX}, not {path}")
        return int(digits)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(path).removeprefix(f"{cls.protocol}://").strip("/")

    def _ranges(self, wanted: list[tuple[int, int, int]]) -> list[bytes]:
        read = self._table.read_blob_ranges(self._column, wanted, selector="indices")
        return [data for _, _, data in read]

    def _describe(self, rows: Sequence[int]) -> None:
        count = self._table.count_rows()
        rows = [row for row in rows if row < count]
        for row, file in zip(rows, self._described(rows), strict=True):
            if file is not None:
                self._files[row] = file
        for oldest in list(islice(self._files, max(0, len(self._files) - _FILES))):
            del self._files[oldest]

    def _described(self, rows: Sequence[int]) -> list[dict[str, Any] | None]:
        if not rows:
            return []
        columns = {"address": "_rowaddr", "video": self._column}
        taken = self._table.take(list(rows), columns=columns).to_pylist()
        return [
            None
            if one["video"] is None
            else {
                "name": f"{row:010}{_SUFFIX}",
                "size": one["video"]["size"],
                "type": "file",
                "ETag": "-".join(map(str, (self._file(one["address"]), *one["video"].values()))),
            }
            for row, one in zip(rows, taken, strict=True)
        ]

    def _file(self, address: int) -> str:
        """The name of the file in which the column of a row is; no other has it."""
        fragment = address >> 32
        if fragment not in self._stored:
            files = self._table.get_fragment(fragment).data_files()
            self._stored[fragment] = next(one.path for one in files if self._field in one.fields)
        return self._stored[fragment]
