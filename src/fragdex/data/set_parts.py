"""The rows of a set: a video to its row, rows saved in parts, and put together at the end."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import field
from functools import partial
from tempfile import TemporaryFile
from typing import Any, Final, Unpack

import numpy as np

from fragdex.boxes import Box, find, parse
from fragdex.byterange import ByteRange
from fragdex.data.film_listing import ListedFilm, listed
from fragdex.data.set_file import Groups, GroupWriter, SetFile, schema
from fragdex.data.set_names import Known, Named, SetNames
from fragdex.data.small_inits import remembered
from fragdex.decoding.open_track import TrackSetup
from fragdex.decoding.video_track import chosen_track
from fragdex.errors import BuildError, FragdexError, SourceError, UndecodableMedia
from fragdex.formats.fidx import write
from fragdex.fragments.table import Int64, SampleTable
from fragdex.indexing.making import index_source
from fragdex.indexing.moov import plain_init
from fragdex.indexing.reading import Head
from fragdex.lru_cache import LRUCache
from fragdex.muxing.movie import clip_init, traks_of
from fragdex.record import record
from fragdex.seeking.model import Index
from fragdex.seeking.numbering import Numbering
from fragdex.seeking.track import Track
from fragdex.sources import Source, SourceOptions, check_options, open_source
from fragdex.sources.files import write_file

_BACK: Final = 16
"""Sync samples after which leading pictures are searched for; real ones follow the first."""


def row_of(
    film: ListedFilm, known: Known | None, name: str, options: SourceOptions
) -> dict[str, Any] | None:
    """The row of a video; None: it is as an earlier run knows it.

    Args:
        name: that the row has.

    Raises: what opening and indexing raise; UndecodableMedia where its pictures are encrypted.
    """
    try:
        film.name.encode()
    except UnicodeEncodeError as error:
        raise SourceError(
            f"the name of {name} is not UTF-8", expected="a name that Parquet can hold",
            advice="rename the file",
        ) from error  # fmt: skip
    with open_source(film.name, **options) as source:
        if known is not None and source.remote:
            source.refresh()
            if known.same_as(ListedFilm(name, source.size, source.etag)):
                return None
        head = Head()
        index = index_source(source, exact=True, head=head)
        pictures = [track for track in index.tracks if track.kind == "video"]
        track = chosen_track(index, None) if pictures else None
        if track is not None and track.is_encrypted():
            raise UndecodableMedia(f"the pictures of track {track.id} are encrypted")
        tracks = sorted(index.tracks, key=lambda one: one is not track)
        return {
            "path": name,
            "size": source.size,
            "etag": source.etag,
            "mtime_ns": source.mtime_ns,
            "error": None,
            "tracks": [_track(one, source.size) for one in tracks],
            "init": None if track is None else small_init(index, track, source, head),
            "index": write(index, samples=True),
        }


def small_init(index: Index, track: Track, source: Source, head: Head) -> bytes | None:
    """Ftyp and moov without samples; None where the samples say which sample entry they have."""
    ranges = index.periods[track.period].init
    init = head.read_again(source, ranges)
    if head.is_simple:
        return remembered(init, track.id, lambda: _small_init(init, index, track, source, head))
    return _small_init(plain_init(init), index, track, source, head)


def _small_init(
    init: bytes, index: Index, track: Track, source: Source, head: Head
) -> bytes | None:
    try:
        boxes = _boxes(init, index.periods[track.period].init, head)
        trak = traks_of(boxes).get(track.id) if find(boxes, "moov") is not None else None
        stsd = None if trak is None else trak.find("mdia/minf/stbl/stsd")
        if stsd is not None and len(stsd.children) > 1:
            entries = TrackSetup(init, track.id).entries(track, len(track.samples), source)
            if entries is not None:
                return None
        pieces = clip_init(init, {track.id}, delays=False, from_samples=True, boxes=boxes)
        return b"".join(pieces)
    except BuildError:
        return None


def _boxes(init: bytes, ranges: Sequence[ByteRange], head: Head) -> tuple[Box, ...]:
    """The boxes of an initialization segment; a moov that the scan has parsed is taken over."""
    if head.moov is not None and ranges:
        place, moov = head.moov
        # The moov is the last box, and plain: a compressed one has another size.
        if ranges[-1].stop == place + moov.size:
            return *parse(init[: len(init) - moov.size]), moov
    return parse(init)


def _track(track: Track, size: int | None) -> dict[str, Any]:
    info = track.info
    row: dict[str, Any] = {
        "id": track.id, "kind": track.kind, "codec": track.codec,
        "width": info.width, "height": info.height, "timescale": track.timescale,
        "frames": None, "start": None, "end": None, "gops": [],
    }  # fmt: skip
    if track.kind != "video" or not track.timescale:
        return row
    numbering = Numbering(track, track.samples, size=size)
    ticks = numbering.ticks
    row |= {"timescale": numbering.timescale, "frames": len(numbering)}
    if len(numbering):
        row["start"] = int(ticks.min())
        row["end"] = int((ticks + numbering.durations).max())
        groups = groups_of(track.samples, numbering)
        columns = [column.tolist() for column in groups]
        row["gops"] = [Groups(*one)._asdict() for one in zip(*columns, strict=True)]
    return row


def groups_of(samples: SampleTable, numbering: Numbering) -> Groups:
    """The groups of pictures of a track in file order; those without a frame are left out."""
    begins = np.union1d(np.flatnonzero(samples.sync), [0]).astype(np.int64)
    place = np.searchsorted(begins, numbering.sample, side="right") - 1
    cts = samples.cts[numbering.sample]
    for _ in range(_BACK):
        leading = (place > 0) & (cts < samples.cts[begins[place]])
        if not leading.any():
            break
        place = place - leading
    numbers = np.argsort(place, kind="stable")
    group, first, frames = np.unique(place[numbers], return_index=True, return_counts=True)
    ticks, until = numbering.ticks, numbering.ticks + numbering.durations
    return Groups(
        frame=np.minimum.reduceat(numbers, first),
        frames=frames,
        start=np.minimum.reduceat(ticks[numbers], first),
        end=np.maximum.reduceat(until[numbers], first),
        offset=np.minimum.reduceat(samples.offset, begins)[group],
        stop=np.maximum.reduceat(samples.offset + samples.size, begins)[group],
        bytes=np.add.reduceat(samples.size, begins)[group],
    )


GROUP_BYTES: Final = 2 << 20
"""Bytes of indexes in a row group; one row group is read to open a video."""
GROUP_ROWS: Final = 256
_OPEN: Final = 16
"""Files of parts that are open at once; there may be thousands."""
_UNPACKED: Final = 8 << 20
"""Bytes of row groups that are held while rows of several are put together."""
_LIGHT: Final = ["path", "size", "etag", "mtime_ns", "error"]


class SetParts:
    """The rows of a set that is written.

    Args:
        path: of the set; what was saved of a run before lies next to it.

    Attributes:
        names: of the videos that it is to have, and of the rows that there are.

    A context manager.
    """

    def __init__(self, path: str) -> None:
        self._path, self._folder = path, path + ".parts"
        self._schema = schema()
        self._rows: list[dict[str, Any]] = []
        self._bytes = 0
        self._files: list[str] = []
        self._own: dict[int, tuple[int, bool]] = {}  # by file of this run: its rows, and is full
        self._before: SetFile | None = None
        self._opened = LRUCache[SetFile]()
        self._unpacked = LRUCache[tuple[Any, Int64]]()
        os.makedirs(self._folder, exist_ok=True)
        self.names = SetNames(self._folder)
        try:
            parts = sorted(os.listdir(self._folder))
            older = [os.path.join(self._folder, one) for one in parts if one.endswith(".parquet")]
            for one in ([path] if os.path.exists(path) else []) + older:
                self._take(one)
        except BaseException:
            self._close()
            raise

    def add(self, row: dict[str, Any]) -> None:
        """Another row; it is saved now or with the next few."""
        self._rows.append(row)
        self._bytes += len(row["index"] or b"")
        if self._is_full:
            self._save()

    @property
    def _is_full(self) -> bool:
        return self._bytes >= GROUP_BYTES or len(self._rows) >= GROUP_ROWS

    def finish(self) -> None:
        """Put the set together from the rows of its names, and forget the parts."""
        self._save()
        write_file(self._path, self._pieces())
        self._close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> SetParts:
        return self

    def __exit__(self, *_: object) -> None:
        if os.path.isdir(self._folder):  # not finished
            try:
                self._save()
            finally:
                self._close()

    def _close(self) -> None:
        if self._before is not None:
            self._before.close()
        self._opened.close()
        self.names.close()
        with suppress(OSError):  # there are parts
            os.rmdir(self._folder)

    def _save(self) -> None:
        if not self._rows:
            return
        number = len(self._files)
        path = os.path.join(self._folder, f"{number:06}-{secrets.token_hex(4)}.parquet")
        with self._writer() as writer:
            write_file(path, [writer.group(self._table(self._rows)), *writer.end()])
        self._files.append(path)
        self._own[number] = len(self._rows), self._is_full
        self.names.add_rows(number, 0, self._rows)
        self._rows, self._bytes = [], 0

    def _take(self, path: str) -> None:
        """The rows of a file; those of another file with their names are forgotten."""
        number, opened = len(self._files), SetFile(path)
        self._files.append(path)
        if path == self._path:  # another run may replace it
            self._before = opened
        for first, light in opened.pieces(_LIGHT):
            self.names.add_rows(number, first, light.to_pylist())

    def _file(self, number: int) -> SetFile:
        path = self._files[number]
        if path == self._path and self._before is not None:
            return self._before
        return self._opened.get_or_make(number, _OPEN, partial(SetFile, path))

    @contextmanager
    def _writer(self) -> Iterator[GroupWriter]:
        with TemporaryFile(dir=self._folder) as described:
            yield GroupWriter(described)

    def _pieces(self) -> Iterator[bytes]:
        runs: list[tuple[Any, int, int]] = []  # a table, its first row, where they end
        size = count = 0
        with self._writer() as writer:
            for number, first, stop, is_last in _runs(self.names.places()):
                rows, is_full = self._own.get(number, (0, False))
                if not runs and (first, stop) == (0, rows) and (is_full or is_last):
                    # A row group as it should be: unpacked and packed it would be the same.
                    with open(self._files[number], "rb") as part:
                        yield writer.again(part.read())
                    continue
                for table, row, weight in self._chosen(number, first, stop):
                    if runs and (size + weight > GROUP_BYTES or count >= GROUP_ROWS):
                        yield writer.group(_joined(runs))
                        runs, size, count = [], 0, 0
                    if runs and runs[-1][0] is table and runs[-1][2] == row:
                        runs[-1] = table, runs[-1][1], row + 1
                    else:
                        runs.append((table, row, row + 1))
                    size, count = size + weight, count + 1
            if runs:
                yield writer.group(_joined(runs))
            yield from writer.end()

    def _chosen(self, number: int, first: int, stop: int) -> Iterator[tuple[Any, int, int]]:
        """Rows of a file: a table, a row of it, the bytes of its index."""
        for row in range(first, stop):
            file = self._file(number)
            group = bisect_right(file.ends, row)
            table, sizes = self._unpacked.get_or_make(
                (number, group), _UNPACKED, partial(_group, file, group),
                weight=lambda unpacked: unpacked[0].nbytes,
            )  # fmt: skip
            place = row - (file.ends[group - 1] if group else 0)
            yield table, place, int(sizes[place])

    def _table(self, rows: list[dict[str, Any]]) -> Any:
        import pyarrow as pa

        return pa.Table.from_pylist(rows, self._schema)


def _runs(places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, int, bool]]:
    """Rows of one file that follow each other: the file, the first, where they end, is the last."""
    file, first, stop = -1, 0, 0
    for number, row in places:
        if (number, row) == (file, stop):
            stop += 1
            continue
        if stop > first:
            yield file, first, stop, False
        file, first, stop = number, row, row + 1
    if stop > first:
        yield file, first, stop, True


def _group(file: SetFile, group: int) -> tuple[Any, Int64]:
    """A row group, and the bytes of the index of each of its rows."""
    from pyarrow import compute

    table = file.read(group)
    sizes = compute.fill_null(compute.binary_length(table["index"]), 0)
    return table, sizes.to_numpy().astype(np.int64)


def _joined(runs: Sequence[tuple[Any, int, int]]) -> Any:
    import pyarrow as pa

    return pa.concat_tables(
        [table.slice(first, stop - first) for table, first, stop in runs]
    ).combine_chunks()


_AHEAD: Final = 4
"""Batches a thread that wait for their turn."""
_BATCH_FILMS: Final = 16
"""Videos that are handed to another process together: a message costs as much as a short one."""
_BATCH_BYTES: Final = 16 << 20
"""Bytes of them at most; rows of a batch stand in memory together."""


@record(slots=True)
class SetSummary:
    """The result of writing a set.

    Attributes:
        films: names in the set, including broken ones.
        indexed: how many were indexed.
        unchanged: how many had not changed since the last run.
        gone: how many were in the set, and are no longer named.
        broken: name → problem; these have rows without an index.

    >>> SetSummary(films=2, indexed=1, unchanged=1)
    SetSummary(films=2, indexed=1, unchanged=1, gone=0, broken={})
    """

    films: int = 0
    indexed: int = 0
    unchanged: int = 0
    gone: int = 0
    broken: dict[str, str] = field(default_factory=dict)


def write_set(
    what: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    path: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    executor: Executor | None = None,
    each: Callable[[str, str | None], object] | None = None,
    **options: Unpack[SourceOptions],
) -> SetSummary:
    """Index many videos into one Parquet file, one row per video.

    A video that is already in the file, with the same size and entity tag or date, is not indexed
    again; a broken one is tried again. Progress is saved every few videos in a folder next to the
    file, so that an interrupted run resumes. The file itself is replaced at the end. Memory does
    not grow with the number of videos: names, too, are in that folder meanwhile.

    Args:
        what: paths, folders (all videos below them), globs with `**`, URLs, and the same for
            buckets (`s3://bucket/folder/`, `s3://bucket/**/*.mp4`).
        path: of the set. Paths of videos are written relative to it.
        jobs: videos that are indexed at once; None: twice the processors.
        executor: where they are indexed, such as a `ProcessPoolExecutor`, or
            `fragdex.bridges.ray_executor.RayExecutor`; None: in `jobs` threads.
        each: called with the name of each finished video, and with its problem or None.
        options: passed on to `open_source`; with `store` or `filesystem`, names are looked up
            there.

    Raises:
        SourceNotFound: a folder or glob has no video.
        DamagedIndex: the file exists, and is not a set.
        MissingExtra: pyarrow is not installed.
        OSError: the file cannot be written.

    >>> import os, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "set.parquet")
    >>> write_set(["fixtures/open-gop.mp4", "fixtures/frag-cmaf.mp4"], path)
    SetSummary(films=2, indexed=2, unchanged=0, gone=0, broken={})
    >>> write_set(["fixtures/open-gop.mp4"], path)
    SetSummary(films=1, indexed=0, unchanged=1, gone=1, broken={})
    """
    check_options("write_set", options, ("jobs", "executor", "each"))
    if jobs is not None and jobs < 1:
        raise ValueError(f"at least one job, not {jobs}")
    names = [what] if isinstance(what, str | os.PathLike) else what
    films = listed(
        (os.fspath(name) for name in names),
        store=options.get("store"),
        filesystem=options.get("filesystem"),
    )
    elsewhere = options.get("store") is not None or options.get("filesystem") is not None
    folder = os.path.dirname(os.path.abspath(path))
    with SetParts(os.fspath(path)) as parts:
        parts.names.add_films(
            (_shown(film.name if elsewhere else _seen_from(folder, film.name)), film)
            for film in films
        )
        count, changed, gone = parts.names.counts()
        summary = SetSummary(films=count, unchanged=count - changed, gone=gone)
        workers = jobs or 2 * (os.cpu_count() or 1)
        own = ThreadPoolExecutor(workers, "fragdex-set") if executor is None else None
        run = executor or own
        assert run is not None
        try:
            batches = _batches(parts.names.changed(), changed, workers)
            for film, name, (row, error) in _in_order(run, batches, options, _AHEAD * workers):
                if row is not None:
                    summary.indexed += 1
                    parts.add(row)
                elif error is not None:
                    summary.broken[name] = error
                    parts.add(_broken(name, film, error))
                else:
                    summary.unchanged += 1
                if each is not None:
                    each(name, error)
        finally:
            if own is not None:
                own.shutdown(cancel_futures=True)
        parts.finish()
    return summary


Result = tuple[dict[str, Any] | None, str | None]


def _batches(work: Iterable[Named], count: int, workers: int) -> Iterator[list[Named]]:
    """Small local videos together, if each worker still gets several batches; others alone."""
    most = min(_BATCH_FILMS, count // (_AHEAD * workers))
    batch: list[Named] = []
    size = 0
    for named in work:
        film = named[0]
        is_local = film.mtime_ns is not None and film.size is not None
        weight = (film.size or 0) if is_local else _BATCH_BYTES + 1
        if batch and (len(batch) >= most or size + weight > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(named)
        size += weight
    if batch:
        yield batch


def _in_order(
    run: Executor, work: Iterator[list[Named]], options: SourceOptions, ahead: int
) -> Iterator[tuple[ListedFilm, str, Result]]:
    waiting: deque[tuple[list[Named], Future[list[Result]]]] = deque()
    try:
        while True:
            while len(waiting) < ahead and (batch := next(work, None)) is not None:
                waiting.append((batch, run.submit(_indexed, batch, options)))
            if not waiting:
                return
            batch, future = waiting.popleft()
            try:
                results = future.result()
            except FragdexError as error:  # of an executor: the process of a task ended
                if len(batch) > 1:  # one of them ends it; which one is seen if each is alone
                    yield from _in_order(run, iter([[one] for one in batch]), options, ahead)
                    continue
                results = [(None, str(error))]
            for (film, _, name), result in zip(batch, results, strict=True):
                yield film, name, result
    finally:
        for _, future in waiting:
            future.cancel()


def _indexed(films: list[Named], options: SourceOptions) -> list[Result]:
    return [_row_or_error(*film, options) for film in films]


def _row_or_error(
    film: ListedFilm, known: Known | None, name: str, options: SourceOptions
) -> Result:
    try:
        return row_of(film, known, name, options), None
    except (FragdexError, OSError) as error:
        return None, str(error)


def _broken(name: str, film: ListedFilm, error: str) -> dict[str, Any]:
    return {
        "path": name, "size": film.size, "etag": film.etag, "mtime_ns": film.mtime_ns,
        "error": error, "tracks": [], "init": None, "index": None,
    }  # fmt: skip


def _shown(name: str) -> str:
    """A name as a row has it: bytes that are not UTF-8 are escaped."""
    return name.encode("utf-8", "backslashreplace").decode()


def _seen_from(folder: str, name: str) -> str:
    """A local path as seen from the folder of the set, if it is below; else the whole path."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name):
        return name
    path = os.path.abspath(name)
    inside = os.path.commonpath([folder, path]) == folder
    return os.path.relpath(path, folder).replace(os.sep, "/") if inside else path
