"""From a name in an address to the film: opened, indexed and packaged, the last few in memory."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import md5
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import fragdex
from fragdex.boxes.limits import MAX_MADE_SAMPLES
from fragdex.byterange import ByteRange
from fragdex.errors import (
    BuildError,
    DamagedIndex,
    FormatError,
    FragdexError,
    NoSyncSample,
    SourceChanged,
    SourceError,
    SourceNotFound,
    TruncatedInput,
)
from fragdex.fragments.table import NULL, FragmentFlags
from fragdex.muxing.kinds import described
from fragdex.muxing.view import View
from fragdex.origin.film_list import FilmList, film_list, is_name
from fragdex.packaging.package import Package, package
from fragdex.packaging.subtitles import Captions, read_captions
from fragdex.seeking.model import Index
from fragdex.sources import Source, open_source

SUFFIX = ".fidx"


class IndexFiles:
    """Where the indexes of files are.

    Args:
        folder: that indexes are written to; None: they are not written.
        beside: whether they are written next to local files, as `film.mp4.fidx`. Those that are
            there are read in any case.

    Attributes:
        folder, beside: as given.
    """

    def __init__(self, folder: Path | None = None, *, beside: bool = False) -> None:
        self.folder, self.beside = folder, beside

    def index(
        self,
        place: str,
        source: Source,
        known: Index | None = None,
        *,
        growing: bool = False,
    ) -> Index:
        """The index of a film: one that was kept, if it is of these very bytes, or a new one.

        Args:
            place: path or URL of the file.
            source: the file.
            known: the index of its beginning.
            growing: whether it may grow: its index is not written then.

        Raises: as `fragdex.index`.
        """
        for path in self._paths(place, source.remote):
            saved = _of(path, place, source)
            if saved is not None:
                return saved
        index = None if known is None else known.extend(source)
        if index is None or index.file.mtime_ns != source.mtime_ns:
            index = fragdex.index(source, exact=True)
        written = None if growing else self._written(place, source.remote)
        samples = sum(track.sample_count or 0 for track in index.tracks)
        # raw sound may have billions of them, and they are found again quickly
        if written is not None and samples <= MAX_MADE_SAMPLES:
            with suppress(OSError):  # a full or read-only disk: the video plays all the same
                written.parent.mkdir(parents=True, exist_ok=True)
                index.save(written, samples=True)
        return index

    def _paths(self, place: str, remote: bool) -> list[Path]:
        beside = [] if remote else [Path(place + SUFFIX)]
        written = self._written(place, remote)
        return list(dict.fromkeys([*beside, *([] if written is None else [written])]))

    def _written(self, place: str, remote: bool) -> Path | None:
        if self.folder is not None:
            name = hashlib.md5(os.fsencode(place), usedforsecurity=False).hexdigest()
            return self.folder / f"{name}{SUFFIX}"
        return Path(place + SUFFIX) if self.beside and not remote else None


def _of(path: Path, place: str, source: Source) -> Index | None:
    """The index in a file, if it is of this file and knows its samples."""
    if not path.is_file():
        return None
    try:
        index = fragdex.open_index(path)
        if source.remote:
            source.read_up_to(fragdex.ByteRange(0, 16))  # its size and tag come with an answer
        index.file.refuse_other(place, size=source.size, etag=source.etag, mtime_ns=source.mtime_ns)
    except (DamagedIndex, FormatError, SourceChanged, OSError):
        return None
    return index if all(track.has_samples for track in index.tracks) else None


_MOST_VIEWS: Final = 8
_MOST_IDLE: Final = 16


@dataclass(eq=False)
class ServedFilm:
    """One or several files that are opened.

    Attributes:
        names: of the files, as addresses name them.
        indexes: of each.
        titles: where it was opened.
        idle: its files, opened and not used now, for one thread at a time.
        forgotten: whether files that are given back are closed.
        captions: the caption files of the first file, where that is local.
        trusted_until: on the clock of `time.monotonic`, when a remote file is looked at again.
        growing: as `fragdex.package` takes it.
        grows_until: on the clock of `time.time`, when it has ended if nothing is written.
        fingerprints: of its files, while it grows.
    """

    names: tuple[str, ...]
    indexes: tuple[Index, ...]
    titles: Titles
    _views: OrderedDict[str, View] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    idle: list[list[Source]] = field(default_factory=list)
    forgotten: bool = False
    trusted_until: float = 0.0
    captions: CaptionsBeside | None = None
    checking: threading.Lock = field(default_factory=threading.Lock)
    growing: bool | Literal["ended"] = False
    grows_until: float = 0.0
    fingerprints: tuple[str, ...] = ()

    @property
    def is_packaged(self) -> bool:
        """Whether its package is made."""
        return "package" in self.__dict__

    def give_back(self, opened: list[Source]) -> None:
        """Its files, for whoever reads next."""
        if len(self.idle) < _MOST_IDLE and not self.forgotten:
            self.idle.append(opened)
        else:
            _close(opened)

    def continued(self, sources: list[Source]) -> list[Index | None]:
        """Its indexes, where it grew and files are the same with more; None for others."""
        if not self.growing:
            return [None] * len(sources)
        every = zip(self.indexes, sources, self.fingerprints, strict=True)
        return [
            index if fingerprint(index, source) == known else None for index, source, known in every
        ]

    def close(self) -> None:
        """Close its files, now or when whoever reads from them is done."""
        self.forgotten = True
        while self.idle:
            _close(self.idle.pop())

    @cached_property
    def package(self) -> Package:
        """All files as one title in HLS and DASH.

        Raises: as `fragdex.package`.
            NotYet: it grows, and no segment is complete.
        """
        with self.titles.sources(self) as sources:
            try:
                return package(
                    self.indexes,
                    source=sources,
                    segment_duration=self.titles.segment_duration,
                    captions=[] if self.captions is None else self.captions.read(),
                    growing=self.growing,
                )
            except (BuildError, NoSyncSample) as error:
                if self.growing is True:
                    raise NotYet(str(error)) from error
                raise

    def view(self, kind: str, **options: Any) -> View:
        """A view of the first file, as `fragdex.view` makes it; the last few are kept."""
        key = repr((kind, sorted(options.items())))
        with self._lock:
            if key in self._views:
                self._views.move_to_end(key)
                return self._views[key]
        with self.titles.sources(self) as sources:
            index, length = self.indexes[0], self.titles.segment_duration
            view = described(index, kind, source=sources[0], segment_duration=length, **options)  # type: ignore[arg-type]
        with self._lock:
            self._views[key] = view
            while len(self._views) > _MOST_VIEWS:
                self._views.popitem(last=False)
        return view


class Titles:
    """The files of a folder, or below a URL.

    Args:
        root: path of a folder, or a URL (https, s3, gs, az) that names are put after.
        segment_duration: wanted length of segments.
        in_memory: how many files stay open.
        indexes: where indexes are kept; None: they are made again. That of a file of two hours
            takes about 30 MB.
        max_bytes: that may be read of a remote file to index it; None: no bound.
        trust: seconds for which a remote file is taken to be the same without asking. What is
            read of it is checked in any case.
        growing: seconds after its last write for which a local fragmented file counts as one that
            grows, unless it ends with an mfra; 0: none does.
        options: for `fragdex.open_source`.

    For several threads at a time.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        segment_duration: Any = 4,
        in_memory: int = 16,
        indexes: IndexFiles | None = None,
        max_bytes: int | None = None,
        trust: float = 60,
        growing: float = 0,
        **options: Any,
    ) -> None:
        text = os.fspath(root)
        self.remote = "://" in text
        self.root = text.rstrip("/") if self.remote else os.path.realpath(text)
        if not self.remote and not os.path.isdir(self.root):
            raise SourceNotFound(f"there is no folder {text}", advice="name a folder or a URL")
        self.segment_duration, self._in_memory = segment_duration, in_memory
        self._indexes = IndexFiles() if indexes is None else indexes
        self._max_bytes, self._trust, self._options = max_bytes, trust, options
        self._growing = 0.0 if self.remote else growing
        self._films: OrderedDict[tuple[str, ...], ServedFilm] = OrderedDict()
        self._lock = threading.Lock()
        self._opening: dict[tuple[str, ...], threading.Lock] = {}

    def listed(self, after: str, most: int) -> FilmList:
        """Some files of the folder or bucket and below, by their names.

        Raises: as `film_list`.
        """
        return film_list(self.root, self.remote, after, most, self._options)

    def place(self, name: str) -> str:
        """The path or URL of a file.

        Raises:
            SourceNotFound: the name leads out of the folder, or to no file in it.
        """
        if not is_name(name):
            raise SourceNotFound(f"there is no file {name!r}")
        if self.remote:
            return f"{self.root}/{quote(name)}"
        path = os.path.realpath(os.path.join(self.root, *name.split("/")))
        inside = os.path.commonpath([path, self.root]) == self.root
        if not inside or not os.path.isfile(path):
            raise SourceNotFound(f"there is no file {name!r}")
        return path

    @contextmanager
    def sources(self, film: ServedFilm) -> Iterator[list[Source]]:
        """The files of a title, opened for this thread; returned ones are reused."""
        try:
            opened = film.idle.pop()
        except IndexError:
            opened = [open_source(self.place(name), **self._options) for name in film.names]
        try:
            yield opened
        except BaseException:
            _close(opened)
            raise
        film.give_back(opened)

    def opened(self, names: tuple[str, ...]) -> ServedFilm | None:
        """A local file that is open and unchanged, at once; None: it has to be opened."""
        film = self._films.get(names)
        if film is None or self.remote:
            return None
        places = [f"{self.root}/{name}" for name in names]
        if not self._is_current(film, places):
            return None
        with self._lock:
            if self._films.get(names) is not film:
                return None
            self._films.move_to_end(names)
        return film

    def open(self, names: tuple[str, ...]) -> ServedFilm:
        """The title of some files that are its renditions.

        Raises:
            SourceNotFound: there is no such file.
            NotYet: a file is still being written, and cannot be indexed yet.
            FragdexError: as `fragdex.index` and `fragdex.package`.
        """
        places = [self.place(name) for name in names]
        with self._lock:
            film = self._films.get(names)
            if film is not None:
                self._films.move_to_end(names)
        if film is not None and self._is_current(film, places):
            return film
        with self._lock:
            opening = self._opening.setdefault(names, threading.Lock())
        try:
            with opening:  # other callers wait meanwhile, and find it made
                with self._lock:
                    film = self._films.get(names)
                if film is None or not self._is_current(film, places):
                    film = self._made(names, places, film)
                    with self._lock:
                        gone = [self._films.pop(names, None)]
                        self._films[names] = film
                        while len(self._films) > self._in_memory:
                            gone.append(self._films.popitem(last=False)[1])
                    for old in gone:
                        if old is not None:
                            old.close()
        finally:
            with self._lock:
                self._opening.pop(names, None)
        return film

    def forget(self, film: ServedFilm) -> None:
        """Open a title again on its next request: one of its files has changed."""
        with self._lock:
            if self._films.get(film.names) is film:
                del self._films[film.names]
        film.close()

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            films = list(self._films.values())
            self._films.clear()
        for film in films:
            film.close()

    def _is_current(self, film: ServedFilm, places: list[str]) -> bool:
        """Whether files are those that were indexed; remote ones are asked from time to time.

        Raises:
            SourceError: a remote one cannot be asked.
        """
        if self.remote:
            return self._is_trusted(film, places)
        if film.growing is True and time.time() >= film.grows_until:
            return False
        for index, place in zip(film.indexes, places, strict=True):
            try:
                now = os.stat(place)
            except OSError:
                return False
            if (now.st_size, now.st_mtime_ns) != (index.file.size, index.file.mtime_ns):
                return False
        try:
            return film.captions is None or film.captions.is_current()
        except OSError:
            return False

    def _is_trusted(self, film: ServedFilm, places: list[str]) -> bool:
        if time.monotonic() < film.trusted_until:
            return True
        with film.checking:  # other callers wait meanwhile for the answer
            if time.monotonic() < film.trusted_until:
                return True
            for index, place in zip(film.indexes, places, strict=True):
                with open_source(place, **self._options) as source:
                    source.read_up_to(fragdex.ByteRange(0, 1))
                    try:
                        index.file.refuse_other(place, size=source.size, etag=source.etag)
                    except SourceChanged:
                        return False
            film.trusted_until = time.monotonic() + self._trust
        return True

    def _made(
        self, names: tuple[str, ...], places: list[str], before: ServedFilm | None
    ) -> ServedFilm:
        """A file that is opened; of one that grew, what has come is indexed alone."""
        most = self._max_bytes if self.remote else None
        captions = None if self.remote else CaptionsBeside(places[0])
        until = time.monotonic() + self._trust
        grows_until = max(growing_until(place, self._growing) for place in places)
        sources = [open_source(place, max_bytes=most, **self._options) for place in places]
        growing: bool | Literal["ended"] = False
        try:
            known = [None] * len(places) if before is None else before.continued(sources)
            indexes = tuple(
                self._indexes.index(place, source, index, growing=grows_until > 0)
                for place, source, index in zip(places, sources, known, strict=True)
            )
            if grows_until:
                growing = any(map(may_grow, indexes, sources))
            if not growing and None not in known:
                growing = "ended"  # what was announced of it keeps its entity tags
            if growing:
                indexes = tuple(map(_growing, indexes, sources))
            fingerprints = tuple(map(fingerprint, indexes, sources)) if growing else ()
        except FragdexError as error:
            unread = isinstance(error, SourceError) and not isinstance(error, TruncatedInput)
            if unread or not grows_until:
                raise
            raise NotYet(str(error)) from error
        finally:
            _close(sources)
        return ServedFilm(
            names, indexes, self, trusted_until=until, captions=captions,
            growing=growing, grows_until=grows_until, fingerprints=fingerprints,
        )  # fmt: skip


def _growing(index: Index, source: Source) -> Index:
    """The index of a file to which more is written while it is served."""
    return Index(
        replace(index.file, grows_as=source.identity),
        index.how,
        index.periods,
        findings=index.findings,
        complete=index.complete,
        resume_offset=index.resume_offset,
        digests=index.digests,
    )


def _close(sources: list[Source]) -> None:
    for source in sources:
        source.close()


_FINGERPRINT: Final = 64 << 10
"""Bytes of the last fragment that two files have to share to be one file with more."""
_MFRO: Final = 16
"""Bytes of the box that ends a complete file (ISO/IEC 14496-12, 8.8.11)."""


class NotYet(Exception):
    """A file is still being written, and the requested part cannot be made yet."""


def growing_until(place: str, seconds: float) -> float:
    """On the clock of `time.time`, until when a file counts as being written; 0: it does not."""
    if not seconds:
        return 0.0
    try:
        written = os.stat(place).st_mtime
    except OSError:
        return 0.0  # whoever opens it says why
    # a file of the future, by a clock that is wrong, must not grow for ever
    return written + seconds if abs(time.time() - written) < seconds else 0.0


def may_grow(index: Index, source: Source) -> bool:
    """Whether a file has fragments, or none yet, and no mfra, which writers put after them.

    Others do not grow: their moov says all.
    """
    tables = [track.fragments for track in index.tracks if len(track.fragments)]
    real = [bool(((rows.flags & FragmentFlags.VIRTUAL) == 0).any()) for rows in tables]
    if real and not any(real):
        return False
    size = source.size or 0
    return source.read_up_to(ByteRange(max(size - _MFRO, 0), size))[4:8] != b"mfro"


def fingerprint(index: Index, source: Source) -> str:
    """A hash of the moov and of the last fragment's begin: a file that grew still has them.

    Raises: as `Source.read_up_to`.
    """
    period = index.periods[-1]
    tables = [track.fragments for track in period.tracks if len(track.fragments)]
    last = max((int(rows.moof_offset[-1]) for rows in tables), default=NULL)
    stop = index.file.size or 0
    spans = [
        *period.init,
        ByteRange(max(last, 0), stop if last < 0 else min(last + _FINGERPRINT, stop)),
    ]
    digest = md5(usedforsecurity=False)
    for span in spans:
        digest.update(source.read_up_to(span))
    return digest.hexdigest()


_SUFFIXES: Final = (".vtt", ".srt")
_MOST: Final = 64
"""Caption files of one file."""


def files_beside(place: str) -> tuple[tuple[str, int, int], ...]:
    """Path, size and time of the last change of each caption file of a local file, in order."""
    film = Path(place)
    files = []
    with os.scandir(film.parent) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith(f"{film.stem}.") and name.lower().endswith(_SUFFIXES):
                try:
                    now = entry.stat()
                except OSError:  # gone meanwhile
                    continue
                files.append((entry.path, now.st_size, now.st_mtime_ns))
    return tuple(sorted(files)[:_MOST])


@dataclass(slots=True)
class CaptionsBeside:
    """The caption files of a local file, as they were when it was opened.

    Args:
        place: path of the file.
    """

    place: str
    changed: int = field(init=False)
    files: tuple[tuple[str, int, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        self.changed = self._folder()
        self.files = files_beside(self.place)

    def read(self) -> list[Captions]:
        """Those that can be read; the file plays without the others."""
        captions = []
        for path, _, _ in self.files:
            with suppress(FormatError, SourceError):
                captions.append(read_captions(path))
        return captions

    def is_current(self) -> bool:
        """Whether the same files are there, unchanged.

        Raises:
            OSError: the folder is gone.
        """
        changed = self._folder()
        if changed != self.changed:  # a file was added or removed, perhaps another video's
            if files_beside(self.place) != self.files:
                return False
            self.changed = changed
        for path, size, mtime_ns in self.files:
            now = os.stat(path)
            if (now.st_size, now.st_mtime_ns) != (size, mtime_ns):
                return False
        return True

    def _folder(self) -> int:
        return os.stat(os.path.dirname(self.place)).st_mtime_ns
