"""The rows of a set: a video to its row, rows saved in parts, and put together at the end."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Unpack

import numpy as np

from fragdex.boxes import Box, find, parse
from fragdex.byterange import ByteRange
from fragdex.data.film_listing import ListedFilm, listed
from fragdex.data.set_file import Groups, SetFile, schema
from fragdex.decoding.open_track import TrackSetup
from fragdex.decoding.video_track import chosen_track
from fragdex.errors import BuildError, FragdexError, UndecodableMedia
from fragdex.formats.clip_movie import clip_init, traks_of
from fragdex.formats.fidx import write
from fragdex.fragments.table import SampleTable
from fragdex.indexing.making import index_source
from fragdex.indexing.moov import plain_init
from fragdex.indexing.reading import Head
from fragdex.seeking.model import Index
from fragdex.seeking.numbering import Numbering
from fragdex.seeking.track import Track
from fragdex.sources import Source, SourceOptions, check_options, open_source
from fragdex.sources.files import write_file

_BACK: Final = 16
"""Sync samples after which leading pictures are searched for; real ones follow the first."""


@dataclass(frozen=True, slots=True)
class Known:
    """What an earlier run knows of a video.

    >>> Known(10, None, 5).same_as(ListedFilm("a.mp4", 10, None, 5))
    True
    """

    size: int | None
    etag: str | None
    mtime_ns: int | None

    def same_as(self, film: ListedFilm) -> bool:
        """Whether the listing shows that it is still the same; False where it does not say."""
        if self.size is None or self.size != film.size:
            return False
        if film.mtime_ns is not None:
            return self.mtime_ns == film.mtime_ns
        return film.etag is not None and self.etag == film.etag


def row_of(
    film: ListedFilm, known: Known | None, name: str, options: SourceOptions
) -> dict[str, Any] | None:
    """The row of a video; None: it is as an earlier run knows it.

    Args:
        film: with the name that it is opened by.
        known: of an earlier run.
        name: that the row has.
        options: as `open_source` takes them.

    Raises: what opening and indexing raise; UndecodableMedia where its pictures are encrypted.
    """
    with open_source(film.name, **options) as source:
        if known is not None and source.remote:
            source.refresh()
            if known.same_as(ListedFilm(name, source.size, source.etag)):
                return None
        head = Head()
        index = index_source(source, exact=True, head=head)
        pictures = [track for track in index.tracks if track.kind == "video"]
        track = chosen_track(index, None) if pictures else None
        if track is not None and track.info.encryption is not None:
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
    init = plain_init(head.read_again(source, ranges))
    try:
        boxes = _boxes(init, ranges, head)
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
    """The groups of pictures of a track in file order; those without a frame are left out.

    >>> import fragdex
    >>> track = fragdex.index("fixtures/open-gop.mp4").track(1)
    >>> groups = groups_of(track.samples, Numbering(track, track.samples))
    >>> groups.frame.tolist(), int(groups.frames.sum())
    ([0, 12, 24, 36, 48], 50)
    """
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
_LIGHT: Final = ["path", "size", "etag", "mtime_ns", "error"]
_SHORT: Final = [*_LIGHT, *(f"tracks.list.element.{name}" for name in ("frames", "start", "end"))]
"""Columns whose least and largest values are written: those of an index would be two indexes."""


def set_writer(where: Any) -> Any:
    """A `pyarrow.parquet.ParquetWriter` of a set, to a path or a file."""
    from pyarrow import parquet

    return parquet.ParquetWriter(where, schema(), compression="zstd", write_statistics=_SHORT)


class SetParts:
    """The rows of a set that is written.

    Args:
        path: of the set; what was saved of a run before lies next to it.

    A context manager.

    Raises: as `SetFile`.
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
        """What earlier runs know of videos that they could index, by name."""
        return self._known

    def keep(self, name: str) -> None:
        """Take over the row of an earlier run."""
        self._kept.add(name)

    def add(self, row: dict[str, Any]) -> None:
        """Another row; it is saved now or with the next few."""
        self._rows.append(row)
        self._bytes += len(row["index"] or b"")
        if self._bytes >= GROUP_BYTES or len(self._rows) >= GROUP_ROWS:
            self._save()

    def finish(self) -> None:
        """Put the set together from what was added and kept, and forget the parts."""
        self._save()
        write_file(self._path, self._pieces())
        self._close()
        shutil.rmtree(self._folder)

    def __enter__(self) -> SetParts:
        return self

    def __exit__(self, *_: object) -> None:
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
        writer = set_writer(sink)
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
        opened = SetFile(path)
        number = len(self._files)
        self._files.append(opened)
        for group in range(len(opened.ends)):
            light = opened.read(group, _LIGHT).to_pylist()
            for row, one in enumerate(light):
                name = one["path"]
                self._places[name] = number, group, row
                if one["error"] is None:
                    self._known[name] = Known(one["size"], one["etag"], one["mtime_ns"])
                else:
                    self._known.pop(name, None)

    def _pieces(self) -> Iterator[bytes]:
        sink = _Sink()
        writer = set_writer(sink)
        rows: list[Any] = []
        size = 0
        import pyarrow as pa

        for row, weight in self._chosen():
            if rows and (size + weight > GROUP_BYTES or len(rows) >= GROUP_ROWS):
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
                table, last = self._files[file].read(group), (file, group)
            one = table.slice(row, 1)
            yield one, len(one["index"][0].as_py() or b"")

    def _table(self, rows: list[dict[str, Any]]) -> Any:
        import pyarrow as pa

        return pa.Table.from_pylist(rows, self._schema)


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


_AHEAD: Final = 4
"""Batches a thread that wait for their turn."""
_BATCH_FILMS: Final = 16
"""Videos that are handed to another process together: a message costs as much as a short one."""
_BATCH_BYTES: Final = 16 << 20
"""Bytes of them at most; rows of a batch stand in memory together."""


@dataclass(slots=True)
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
    file, so that an interrupted run resumes. The file itself is replaced at the end.

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
        [os.fspath(name) for name in names],
        store=options.get("store"),
        filesystem=options.get("filesystem"),
    )
    elsewhere = options.get("store") is not None or options.get("filesystem") is not None
    folder = os.path.dirname(os.path.abspath(path))
    named = {(f.name if elsewhere else _seen_from(folder, f.name)): f for f in films}
    summary = SetSummary(films=len(named))
    with SetParts(os.fspath(path)) as parts:
        known = parts.known()
        summary.gone = len(known.keys() - named.keys())
        work: list[tuple[str, ListedFilm]] = []
        for name, film in named.items():
            if name in known and known[name].same_as(film):
                parts.keep(name)
                summary.unchanged += 1
            else:
                work.append((name, film))
        workers = jobs or 2 * (os.cpu_count() or 1)
        own = ThreadPoolExecutor(workers, "fragdex-set") if executor is None else None
        run = executor or own
        assert run is not None
        try:
            ordered = _in_order(run, _batches(work, workers), known, options, _AHEAD * workers)
            for name, (row, error) in ordered:
                if row is not None:
                    summary.indexed += 1
                    parts.add(row)
                elif error is not None:
                    summary.broken[name] = error
                    parts.add(_broken(name, named[name], error))
                else:
                    summary.unchanged += 1
                    parts.keep(name)
                if each is not None:
                    each(name, error)
        finally:
            if own is not None:
                own.shutdown(cancel_futures=True)
        parts.finish()
    return summary


Result = tuple[dict[str, Any] | None, str | None]
Named = tuple[str, ListedFilm]
"""The name that a row has, and its video."""


def _batches(work: Sequence[Named], workers: int) -> Iterator[list[Named]]:
    """Small local videos together, if each worker still gets several batches; others alone."""
    most = min(_BATCH_FILMS, len(work) // (_AHEAD * workers))
    batch: list[Named] = []
    size = 0
    for name, film in work:
        weight = film.size if film.mtime_ns is not None and film.size is not None else _BATCH_BYTES
        if batch and (len(batch) >= most or size + weight > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((name, film))
        size += weight
    if batch:
        yield batch


def _in_order(
    run: Executor,
    work: Iterator[list[Named]],
    known: dict[str, Known],
    options: SourceOptions,
    ahead: int,
) -> Iterator[tuple[str, Result]]:
    waiting: deque[tuple[list[Named], Future[list[Result]]]] = deque()
    try:
        while True:
            while len(waiting) < ahead and (batch := next(work, None)) is not None:
                films = [(film, known.get(name), name) for name, film in batch]
                waiting.append((batch, run.submit(_indexed, films, options)))
            if not waiting:
                return
            batch, future = waiting.popleft()
            try:
                results = future.result()
            except FragdexError as error:  # of an executor: the process of a task ended
                if len(batch) > 1:  # one of them ends it; which one is seen if each is alone
                    yield from _in_order(run, iter([[one] for one in batch]), known, options, ahead)
                    continue
                results = [(None, str(error))]
            for (name, _), result in zip(batch, results, strict=True):
                yield name, result
    finally:
        for _, future in waiting:
            future.cancel()


def _indexed(
    films: list[tuple[ListedFilm, Known | None, str]], options: SourceOptions
) -> list[Result]:
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


def _seen_from(folder: str, name: str) -> str:
    """A local path as seen from the folder of the set, if it is below; else the whole path."""
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]+://", name):
        return name
    path = os.path.abspath(name)
    inside = os.path.commonpath([folder, path]) == folder
    return os.path.relpath(path, folder).replace(os.sep, "/") if inside else path
