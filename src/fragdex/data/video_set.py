"""A set of videos, opened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from fragdex.data.film_listing import Connections
from fragdex.data.set_parts import Groups, opened_set
from fragdex.decoding.video_track import chosen_track
from fragdex.errors import SourceError, UndecodableMedia
from fragdex.formats.fidx import read
from fragdex.frames import FrameCache, Frames
from fragdex.seeking.model import Index
from fragdex.sources import Source, SourceOptions, check_options, open_source
from fragdex.sources.files import written_here
from fragdex.sources.opening import lies_below

UNPACKED = 16 << 20
"""Bytes of indexes that are held unpacked."""
_COLUMNS = [
    "path", "size", "etag", "error",
    *(f"tracks.list.element.{name}" for name in
      ("id", "codec", "width", "height", "timescale", "frames", "start", "end")),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
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
        root: folder or URL that relative paths of videos start from; None: that of the set.
        follow: open videos outside of root as well, in other folders or on other hosts. None: only
            if this process wrote the set. A set from a stranger could name anything that you may
            read.
        options: passed on to `open_source`.

    Attributes:
        broken: path → problem, for videos that could not be indexed.

    A pickle is small: it has only the path of the set and the selection of videos. The index of a
    video is read when it is opened.

    Raises:
        DamagedIndex: the file is no set.
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
        self._root = os.path.dirname(self._path) if root is None else os.fspath(root)
        self._follow = written_here(self._path) if follow is None else follow
        self._options = options
        self._chosen: list[int] | None = None
        self._connections = Connections()
        self._open()

    def _open(self) -> None:
        self._file = opened_set(self._path)
        self._pid = os.getpid()
        self._unpacked = FrameCache(UNPACKED)
        counts = [
            self._file.metadata.row_group(n).num_rows for n in range(self._file.num_row_groups)
        ]
        self._ends = np.cumsum(counts)
        self.broken: dict[str, str] = {}
        videos: list[Video] = []
        for row, one in enumerate(self._file.read(_COLUMNS).to_pylist()):
            if one["error"] is not None:
                self.broken[one["path"]] = one["error"]
            elif one["tracks"] and one["tracks"][0]["frames"]:
                track = one["tracks"][0]
                videos.append(
                    Video(
                        one["path"], one["size"], track["id"], track["codec"], track["width"],
                        track["height"], track["frames"], track["timescale"], track["start"],
                        track["end"], row,
                    )
                )  # fmt: skip
        chosen = range(len(videos)) if self._chosen is None else self._chosen
        self._all, self._videos = videos, [videos[number] for number in chosen]

    def __len__(self) -> int:
        return len(self._videos)

    def __getitem__(self, number: Any) -> Any:
        """The video of this number; negative from the end."""
        return self._videos[number]

    def __iter__(self) -> Iterator[Video]:
        return iter(self._videos)

    def select(self, wanted: Callable[[Video], bool] | Sequence[int]) -> VideoSet:
        """A set of some of the videos.

        Args:
            wanted: a function that accepts or rejects a video, or the numbers of the accepted ones.
        """
        if callable(wanted):
            keep = [number for number, video in enumerate(self._videos) if wanted(video)]
        else:
            keep = list(wanted)
        before = range(len(self._all)) if self._chosen is None else self._chosen
        chosen = VideoSet.__new__(VideoSet)
        chosen.__dict__.update(self.__dict__)
        chosen._chosen = [before[number] for number in keep]
        chosen._videos = [self._all[number] for number in chosen._chosen]
        return chosen

    def groups(self, number: int) -> Groups:
        """The groups of pictures of a video, in file order."""
        column = "tracks.list.element.gops.list.element"
        row = self._row(self._videos[number].row, [f"{column}.{name}" for name in Groups._fields])
        gops = row["tracks"][0]["gops"]
        return Groups(*(np.array([one[name] for one in gops], np.int64) for name in Groups._fields))

    def frames(self, number: int, **options: Any) -> Frames:
        """The frames of a video.

        Args:
            options: those of `fragdex.Frames`.

        Raises: as `fragdex.Frames`; SourceError if the video is outside of root and `follow` does
            not allow it; SourceChanged if it has changed since it was indexed.
        """
        video = self._videos[number]
        index, init = self.index_of(number)
        name = self._address(video.path)
        track = chosen_track(index, None)
        opening = {**self._options, **options}
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
        video = self._videos[number]
        row = self._row(video.row, ["index", "init"])
        if row["index"] is None:
            raise UndecodableMedia(f"{video.path} has no index in the set")
        return read(row["index"]), row["init"]

    def source(self, number: int) -> Source:
        """A video, opened; refused as by `frames`."""
        name = self._address(self._videos[number].path)
        return open_source(name, **self._connections.options(name, self._options))

    def _row(self, number: int, columns: list[str]) -> dict[str, Any]:
        if self._pid != os.getpid():  # a file that was opened before a fork has one position
            self._open()
        group = int(np.searchsorted(self._ends, number, side="right"))
        first = int(self._ends[group - 1]) if group else 0
        # Neighbours are in one group, which has to be unpacked as a whole.
        table = self._unpacked.get((group, *columns))
        if table is None:
            table = self._file.read_row_group(group, columns, use_threads=False)
            self._unpacked.put((group, *columns), table, table.nbytes)
        row: dict[str, Any] = table.slice(number - first, 1).to_pylist()[0]
        return row

    def _address(self, path: str) -> str:
        if any(self._options.get(name) is not None for name in ("store", "filesystem")):
            return path
        if not self._follow and not lies_below(path, self._root):
            raise SourceError(
                f"the set names {path}, which lies outside of {self._root}",
                expected="a file below the folder of the set, or below root",
                advice="VideoSet(…, root=…) says where its files are; if you trust the set,"
                " follow=True opens every file that it names",
            )
        if "://" in path or os.path.isabs(path):
            return path
        if "://" in self._root:
            return f"{self._root.rstrip('/')}/{path}"
        # as it was looked at: a `..` after a link would lead elsewhere
        return os.path.normpath(os.path.join(self._root, path))

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: self.__dict__[name]
            for name in ("_path", "_root", "_follow", "_options", "_chosen")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._connections = Connections()
        self._open()

    def __repr__(self) -> str:
        frames = sum(video.frames for video in self._videos)
        return f"<VideoSet {self._path!r}: {len(self)} videos with {frames} frames>"
