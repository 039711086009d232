"""A set of videos, opened."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from fragdex.data.film_listing import Connections
from fragdex.data.set_file import Groups, SetFile
from fragdex.decoding.video_track import chosen_track
from fragdex.errors import DamagedIndex, UndecodableMedia
from fragdex.formats.fidx import read
from fragdex.fragments.table import Int64
from fragdex.frames import FrameCache, Frames
from fragdex.record import record
from fragdex.seeking.model import Index
from fragdex.sources import Source, SourceOptions, check_options, open_source
from fragdex.sources.files import written_here
from fragdex.sources.names_in_files import SetPlace

UNPACKED = 16 << 20
"""Bytes of rows that are held unpacked."""
_BYTES_OF_VIDEO = 800
_TRACK = "tracks.list.element."
_COLUMNS = [
    "path", "size", "error",
    *(_TRACK + name for name in
      ("id", "codec", "width", "height", "timescale", "frames", "start", "end")),
]  # fmt: skip


_Rows: TypeAlias = "range | npt.NDArray[np.integer[Any]]"


class Spans(NamedTuple):
    """Lengths of some videos; arrays of int64.

    Attributes:
        start, end: ticks of presentation time of the first frame and after the last one.
    """

    frames: Int64
    start: Int64
    end: Int64
    timescale: Int64


@record(frozen=True, slots=True)
class Video:
    """A video of a set, and its first track of pictures.

    Attributes:
        path: as in the set.
        size: bytes.
        track: track_ID.
        codec: its RFC 6381 string, or None.
        width, height: as coded, or None.
        frames: how many there are.
        timescale: ticks a second.
        start, end: ticks of presentation time at which the first frame begins, and the last one
            ends.
        row: of the set.

    >>> Video("a.mp4", 1000, 1, "avc1.64001f", 640, 360, 50, 25, 0, 50, 0).duration
    2.0
    """

    path: str
    size: int | None
    track: int
    codec: str | None
    width: int | None
    height: int | None
    frames: int
    timescale: int
    start: int
    end: int
    row: int

    @property
    def duration(self) -> float:
        """Seconds."""
        return (self.end - self.start) / self.timescale


class SharedFrames(Frames):
    """Frames that share the connections of their set, and hold them as long as they need them."""

    def __init__(self, connections: Connections, what: str, *given: Any, **options: Any) -> None:
        self._connections = connections
        super().__init__(what, *given, **options)

    def _source(self) -> Source:
        name = str(self._what)
        options = {**self._budget, **self._options}
        return open_source(name, **self._connections.options(name, options))


class VideoSet(Sequence[Video]):
    """The videos of a set that have frames, by path.

    Args:
        path: of the Parquet file that `write_set` or `fragdex index` wrote.
        root: folder or URL that relative paths of videos start from; None: that of the set. In a
            store or file system that is not of this machine: the folder of it ("": all of it).
        follow: open videos outside of root as well, in other folders or on other hosts. None: only
            if this process wrote the set. A set from a stranger could name anything that you may
            read.
        options: passed on to `open_source`.

    A pickle is small: it has only the path of the set and the selection of videos. Rows are read
    when they are used, with their neighbours, and a few megabytes of them are held: memory does not
    grow with the set, except 4 bytes for each video where some rows have no frames, or were not
    selected.

    Raises:
        DamagedIndex: the file is not a set.
        MissingExtra: pyarrow is not installed.
        OSError: it cannot be opened.

    >>> import os, tempfile
    >>> from fragdex.data import write_set
    >>> path = os.path.join(tempfile.mkdtemp(), "set.parquet")
    >>> _ = write_set("fixtures/open-gop.mp4", path)
    >>> videos = VideoSet(path)
    >>> len(videos), videos[0].frames, videos[0].duration, videos.frames(0)[[3, 40]].data.shape
    (1, 50, 2.0, (2, 48, 64, 3))
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        root: str | os.PathLike[str] | None = None,
        follow: bool | None = None,
        **options: Unpack[SourceOptions],
    ) -> None:
        check_options("VideoSet", options, ("root", "follow"))
        self._path = os.path.abspath(path)
        self._place = SetPlace(
            os.path.dirname(self._path),
            None if root is None else os.fspath(root),
            written_here(self._path) if follow is None else follow,
        )
        self._options = options
        self._connections = Connections()
        self._open()
        self._rows: _Rows = self._playable()

    def _open(self) -> None:
        self._file = SetFile(self._path)
        self._unpacked = FrameCache(UNPACKED)

    def _playable(self) -> _Rows:
        """The rows that have frames."""
        rows = []
        for first, table in self._file.pieces(["error", _TRACK + "frames"]):
            tracks, has = _first_tracks(table)
            has[has] = _int64(tracks, "frames") > 0
            has &= ~table["error"].is_valid().to_numpy()
            rows.append(np.flatnonzero(has) + first)
        row_numbers = np.concatenate([np.zeros(0, np.int64), *rows])
        count = self._file.ends[-1] if self._file.ends else 0
        return range(count) if len(row_numbers) == count else _small(row_numbers)

    @property
    def broken(self) -> dict[str, str]:
        """Path → problem, for videos that could not be indexed; read from the set."""
        broken: dict[str, str] = {}
        for _, table in self._file.pieces(["path", "error"]):
            table = table.filter(table["error"].is_valid())
            broken.update(zip(table["path"].to_pylist(), table["error"].to_pylist(), strict=True))
        return broken

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, number: Any) -> Any:
        """The video of this number; negative from the end."""
        rows = self._rows[number]
        if isinstance(number, slice):
            return [self._video(int(row)) for row in rows]
        return self._video(int(rows))

    def __iter__(self) -> Iterator[Video]:
        return (self._video(int(row)) for row in self._rows)

    def select(self, wanted: Callable[[Video], bool] | Sequence[int]) -> VideoSet:
        """A set of some of the videos.

        Args:
            wanted: a function that accepts or rejects a video, or the numbers of the accepted ones.
        """
        if callable(wanted):
            keep = np.flatnonzero(np.fromiter((wanted(one) for one in self), bool, len(self)))
        else:
            keep = np.arange(len(self))[np.asarray(wanted, np.int64)]
        chosen = VideoSet.__new__(VideoSet)
        chosen.__dict__.update(self.__dict__)
        chosen._rows = _small(np.asarray(self._rows)[keep])
        return chosen

    @property
    def ascending(self) -> bool:
        """Whether the videos are in the order of the set."""
        return isinstance(self._rows, range) or bool((self._rows[1:] > self._rows[:-1]).all())

    def spans(self) -> Iterator[tuple[Int64, Spans]]:
        """The lengths of all videos, some at a time: their numbers, ascending, and spans.

        Raises:
            DamagedIndex: a video has no timescale.
        """
        for numbers, table in self._tables([_TRACK + name for name in Spans._fields]):
            tracks, _ = _first_tracks(table)
            spans = Spans(*(_int64(tracks, name) for name in Spans._fields))
            if (spans.timescale < 1).any():
                video = self[int(numbers[np.argmin(spans.timescale)])]
                raise DamagedIndex(f"the set has {video.path} with a timescale below 1")
            yield numbers, spans

    def group_starts(
        self, *, by_time: bool
    ) -> Iterator[tuple[Int64, Int64, npt.NDArray[np.int64 | np.float64]]]:
        """Where the groups of pictures of all videos begin, some videos at a time.

        Args:
            by_time: in seconds from the start of the video; otherwise as frame numbers.

        Yields: the numbers of the videos, ascending; for each of their groups the place of its
        video among these numbers, and where it begins.
        """
        name = "start" if by_time else "frame"
        columns = [f"{_TRACK}gops.list.element.{name}"]
        columns += [_TRACK + "start", _TRACK + "timescale"] if by_time else []
        for numbers, table in self._tables(columns):
            tracks, _ = _first_tracks(table)
            groups = tracks.field("gops")
            video = np.repeat(np.arange(len(numbers)), _lengths(groups))
            begins: npt.NDArray[Any] = _int64(groups.flatten(), name)
            if by_time:
                begins = begins - _int64(tracks, "start")[video]
                begins = begins / _int64(tracks, "timescale")[video]
            yield numbers, video, begins

    def _tables(self, columns: list[str]) -> Iterator[tuple[Int64, Any]]:
        """Numbers of videos, ascending, and their rows, some row groups at a time."""
        sorts = None if isinstance(self._rows, range) else np.argsort(self._rows, kind="stable")
        for first, table in self._file.pieces(columns):
            stop = first + table.num_rows
            if sorts is None:
                yield np.arange(first, stop), table
                continue
            rows = np.asarray(self._rows)
            start, end = np.searchsorted(rows, [first, stop], sorter=sorts).tolist()
            numbers = np.sort(sorts[start:end])
            if len(numbers):
                yield numbers, table.take(rows[numbers].astype(np.int64) - first)

    def _video(self, row: int) -> Video:
        group = bisect_right(self._file.ends, row)
        first = self._file.ends[group - 1] if group else 0
        videos = self._unpacked.get(group)
        if videos is None:
            rows = self._file.read(group, _COLUMNS).to_pylist()
            videos = [_video(one, first + place) for place, one in enumerate(rows)]
            self._unpacked.put(group, videos, _BYTES_OF_VIDEO * len(videos))
        video: Video | None = videos[row - first]
        if video is None:
            raise DamagedIndex(f"row {row} of the set has no frames: it was written again")
        return video

    def groups(self, number: int) -> Groups:
        """The groups of pictures of a video, in file order."""
        column = "tracks.list.element.gops.list.element"
        row = self._row(self[number].row, [f"{column}.{name}" for name in Groups._fields])
        gops = row["tracks"][0]["gops"]
        return Groups(*(np.array([one[name] for one in gops], np.int64) for name in Groups._fields))

    def frames(self, number: int, **options: Any) -> Frames:
        """The frames of a video.

        Args:
            options: those of `fragdex.Frames`.

        Raises: as `fragdex.Frames`; SourceError if the video is outside of root and `follow` does
            not allow it; SourceChanged if it has changed since it was indexed.
        """
        video = self[number]
        index, init = self.index_of(number)
        opening = {**self._options, **options}
        name = self._address(video.path, opening)
        track = chosen_track(index, None)
        opened = SharedFrames(self._connections, name, index, track, init=init, **opening)
        try:
            index.file.refuse_other(name, mtime_ns=opened.source.mtime_ns)
        except BaseException:
            opened.close()
            raise
        return opened

    def index_of(self, number: int) -> tuple[Index, bytes | None]:
        """The index of a video, and its initialization segment without samples, from the set.

        None where its samples say which sample entry they have: then it is read from the video.
        """
        video = self[number]
        row = self._row(video.row, ["index", "init"])
        if row["index"] is None:
            raise UndecodableMedia(f"{video.path} has no index in the set")
        return read(row["index"]), row["init"]

    def source(self, number: int) -> Source:
        """A video, opened; refused as by `frames`."""
        name = self._address(self[number].path, self._options)
        return open_source(name, **self._connections.options(name, self._options))

    def _row(self, number: int, columns: list[str]) -> dict[str, Any]:
        group = bisect_right(self._file.ends, number)
        first = self._file.ends[group - 1] if group else 0
        # Neighbours are in one group, which has to be unpacked as a whole.
        table = self._unpacked.get((group, *columns))
        if table is None:
            table = self._file.read(group, columns)
            self._unpacked.put((group, *columns), table, table.nbytes)
        row: dict[str, Any] = table.slice(number - first, 1).to_pylist()[0]
        return row

    def _address(self, path: str, opening: Mapping[str, Any]) -> str:
        return self._place.address(
            path, store=opening.get("store"), filesystem=opening.get("filesystem")
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: self.__dict__[name] for name in ("_path", "_place", "_options", "_rows")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._connections = Connections()
        self._open()

    def __repr__(self) -> str:
        frames = sum(int(spans.frames.sum()) for _, spans in self.spans())
        return f"<VideoSet {self._path!r}: {len(self)} videos with {frames} frames>"


def _small(rows: Int64) -> npt.NDArray[np.integer[Any]]:
    return rows.astype(np.uint32) if rows.max(initial=0) < 1 << 32 else rows


def _lengths(lists: Any) -> Int64:
    lengths: Int64 = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    return lengths.astype(np.int64)


def _first_tracks(table: Any) -> tuple[Any, npt.NDArray[np.bool_]]:
    """The first track of each row that has one, as a pyarrow array, and which rows have."""
    import pyarrow as pa

    tracks = table["tracks"].combine_chunks()
    has = _lengths(tracks) > 0
    return tracks.values.take(pa.array(tracks.offsets.to_numpy()[:-1][has])), has


def _int64(structs: Any, name: str) -> Int64:
    """A field of pyarrow's structs; 0 where there is none."""
    column = structs.field(name).fill_null(0)
    values: Int64 = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _video(row: dict[str, Any], number: int) -> Video | None:
    if row["error"] is not None or not row["tracks"] or not row["tracks"][0]["frames"]:
        return None
    track = row["tracks"][0]
    return Video(
        row["path"], row["size"], track["id"], track["codec"], track["width"], track["height"],
        track["frames"], track["timescale"], track["start"], track["end"], number,
    )  # fmt: skip
